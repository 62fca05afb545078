"""`hedge judge data` and `hedge judge train`: a judge of one's own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedge_tasks.cli.choices import key_and_value
from hedge_tasks.cli.printing import typed
from hedge_tasks.errors import ConfigError

if TYPE_CHECKING:
    from hedge_tasks.judging.prompt import JudgePrompt
    from hedge_tasks.making.judging.examples import TrainingExample


def data(
    labels: list[Path],
    *,
    out: Path,
    prompt: str,
    label_field: str = "label",
    column: tuple[str, ...] = (),
    images: Path | None = None,
    vqa: tuple[Path, ...] = (),
    benchmark: tuple[Path, ...] = (),
    twin_outcome: str | None = None,
    floor: float | None = None,
    hold_out: float = 0.2,
    seed: int = 0,
) -> dict[str, Any]:
    """Write conversations to train a judge on, in its own words.

    Args:
        labels: Judged answers (JSONL, CSV).
        out: Folder of the conversations.
        prompt: How the judge will be asked, such as medhallmark.
        label_field: Column of the label.
        column: KEY=COLUMN, such as answer=said; may be given again.
        images: Folder of the pictures that the column `image` names.
        vqa: Question, answer, image a row: tasks to learn besides; may be given again.
        benchmark: The same of the benchmark that the judge is for.
        twin_outcome: The prompt's word for an answer that is wrong by a word, such as attribute.
        floor: Share of the set that solvers without skill may get right, 1 for any; halfway from guessing to 1 if not
            given.
        hold_out: Share of the pictures.
        seed: Of the pictures held out.
    """
    from hedge_tasks.judging.prompt import load_judge_prompt
    from hedge_tasks.making.gate import attack as gate
    from hedge_tasks.making.gate.refuse import no_answer
    from hedge_tasks.making.judging import examples as made
    from hedge_tasks.numbers import Table

    asked_with = load_judge_prompt(prompt)
    has_categories = not {outcome.key for outcome in asked_with.outcomes} <= {"supported", "hallucinated"}
    columns = dict(key_and_value("--column", text, "KEY=COLUMN") for text in column)
    options = {"label_field": label_field, "columns": columns, "scheme": prompt if has_categories else None}
    read = [example for path in labels for example in _judged(path, asked_with, images, options)]
    judged = [example for example in read if no_answer(example.case.answer) is None]
    pairs = made.pairs_of(judged, asked_with, twin_outcome or _outcome_of(1, asked_with, "say --twin-outcome"))
    chosen = [*judged, *(example for pair in pairs for example in pair)]
    tasks = [*_tasks(vqa, made.TASK, images), *_tasks(benchmark, made.BENCHMARK, images)]
    facts: dict[str, Any] = {
        "sources": [path.name for path in (*labels, *vqa, *benchmark)],
        "seed": seed,
        "refused": Counter(str(no_answer(example.case.answer)) for example in read if example not in judged),
    }
    attacks = gate.attack(made.attacked_examples(chosen, asked_with), bound=floor)
    parts = made.split([*chosen, *tasks], hold_out, seed)
    facts = dict(made.write_examples(out, parts, asked_with, facts, attacks))
    then = typed("judge", "train", out, "--base", "Qwen/Qwen2.5-VL-3B-Instruct", "--out", "judge")
    return {**facts, "solved": Table.of(*gate.floor_rows(attacks), title=gate.FLOOR_TITLE), "notes": [f"Next: {then}"]}


def _judged(
    path: Path, prompt: JudgePrompt, images: Path | None, options: Mapping[str, Any]
) -> Iterator[TrainingExample]:
    """Return answers that somebody judged."""
    from hedge_tasks.judging.check import read_checked
    from hedge_tasks.making.judging.examples import TrainingExample

    for number, (case, label) in enumerate(zip(*read_checked(path, **options), strict=True)):
        outcome = label.category or _outcome_of(label.label, prompt)
        image = label.row.get("image")
        group = str(image) if image else case.question
        of_path = replace(case, id=f"{path.stem}/{number}")
        yield TrainingExample(of_path, outcome, group, image=_image(images, image, label.where))


def _outcome_of(label: int | None, prompt: JudgePrompt, hint: str = "the category is needed") -> str:
    """Return the outcome that stands for a label.

    Args:
        hint: What to do where there are several.

    Raises:
        ConfigError: There are several, so the label does not say which.
    """
    keys = [outcome.key for outcome in prompt.outcomes if outcome.label == label]
    if len(keys) != 1:
        raise ConfigError(f"prompt {prompt.id}: label {label} may be any of {', '.join(keys)}; {hint}")
    return keys[0]


def _tasks(paths: Sequence[Path], origin: str, images: Path | None) -> Iterator[TrainingExample]:
    from hedge_tasks.data.cells import first_of
    from hedge_tasks.data.tables import read_rows
    from hedge_tasks.judging.base import Case
    from hedge_tasks.making.judging.examples import TrainingExample

    for path in paths:
        for number, (where, row) in enumerate(read_rows(path)):
            question = first_of(row, ("question", "instruction"), where, "question")
            answer = first_of(row, ("answer", "reference", "ground_truth"), where, "answer")
            image = row.get("image")
            case, group = Case(f"{path.stem}/{number}", question, answer, answer), str(image) if image else question
            yield TrainingExample(case, None, group, image=_image(images, image, where), origin=origin)


def _image(folder: Path | None, name: object, where: str) -> Path | None:
    """Return the file of a picture; None where there is none, or no folder of pictures was named.

    Raises:
        DataError: There is no such file below the folder.
    """
    from hedge_tasks.judging.check import picture_below

    return picture_below(folder, str(name), where) if folder and name else None


def train(
    data: Path,
    *,
    base: str,
    out: Path,
    revision: str | None = None,
    recipe: Path | None = None,
    kinds: str | None = None,
    set: tuple[str, ...] = (),
    max_steps: int | None = None,
) -> dict[str, Any]:
    """Train a judge on the conversations of `hedge judge data`.

    Args:
        data: Of `hedge judge data`.
        base: Hub id or folder of the model, such as Qwen/Qwen2.5-VL-3B-Instruct.
        out: Folder of the checkpoints and, in the end, of the adapter or the model.
        revision: Of the base on the hub.
        recipe: YAML, or paper; the package's own decides on what it does not name.
        kinds: Of conversations that are trained on, such as task,benchmark,instruction.
        set: KEY=VALUE of the recipe; may be given again.
        max_steps: End after so many steps.
    """
    import yaml

    from hedge_tasks.making.judging.training import ADAPTERS, kinds_of, read_recipe, train_judge

    changed = dict(key_and_value("--set", text, empty=True) for text in set)
    used = read_recipe(recipe, {key: yaml.safe_load(value) for key, value in changed.items()})
    done = train_judge(data, base, out, used, revision=revision, max_steps=max_steps, kinds=kinds_of(kinds))
    model = f"{base},peft={done.weights}" if used.trained == ADAPTERS else str(done.weights)
    check = typed("judge", "--check", "LABELS", "--judge", f"hf:model={model},prompt=...")
    return {**vars(done), "trained": used.trained, "notes": [f"Next: {check}"]}
