"""`hedge judge data` and `hedge judge train`: a judge of one's own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedge_tasks.cli.choices import LabelFileChoice
from hedge_tasks.cli.printing import typed
from hedge_tasks.errors import check_names

if TYPE_CHECKING:
    from hedge_tasks.judging.base import Case
    from hedge_tasks.judging.prompt import JudgePrompt
    from hedge_tasks.making.judging.examples import TrainingExample


def data(
    labels: list[Path],
    labelled: LabelFileChoice,
    *,
    out: Path,
    prompt: str,
    vqa: tuple[Path, ...] = (),
    benchmark: tuple[Path, ...] = (),
    twin_outcome: str | None = None,
    floor: float | None = None,
    verifier: tuple[str, ...] = (),
    hold_out: float = 0.2,
    seed: int = 0,
) -> dict[str, Any]:
    """Write conversations to train a judge on, in its own words.

    Args:
        labels: Answers that people judged: JSONL or CSV.
        out: Folder of the conversations.
        prompt: How the judge will be asked, such as medhallmark.
        vqa: Question, answer, image a row: tasks to learn besides; may be given again.
        benchmark: The same of the benchmark that the judge is for.
        twin_outcome: The prompt's word for an answer that is wrong by a word, such as attribute.
        floor: Share of the set that solvers without skill may get right, 1 for any; halfway from guessing to 1 if not
            given.
        verifier: model=NAME,url=...: says whether references contradict the wrong answers that are made of them; may be
            given again.
        hold_out: Share of the pictures.
        seed: Of the pictures held out.
    """
    from hedge_tasks.judging.prompt import load_judge_prompt
    from hedge_tasks.making.gate import attack as gate
    from hedge_tasks.making.judging import examples as made
    from hedge_tasks.models.by_text import model_from
    from hedge_tasks.numbers import Table

    asked_with = load_judge_prompt(prompt)
    has_categories = not {outcome.key for outcome in asked_with.outcomes} <= {"supported", "hallucinated"}
    judged, refused = _judged(labels, asked_with, labelled, prompt if has_categories else None)
    made.check_labels(judged, asked_with)
    check_names("wrong outcome", filter(None, [twin_outcome]), [o.key for o in asked_with.outcomes if o.label == 1])
    hint = "--twin-outcome says which an answer has that is wrong by a word"
    twin = twin_outcome or made.outcome_of(1, asked_with, hint)
    tasks = [*_tasks(vqa, made.TASK, labelled.images), *_tasks(benchmark, made.BENCHMARK, labelled.images)]
    twins = made.pairs_of(judged, asked_with, twin)
    verifiers = [model_from(spec) for spec in verifier]
    facts: dict[str, Any] = {
        "sources": [path.name for path in (*labels, *vqa, *benchmark)],
        "seed": seed,
        "refused": refused,
        "verifiers": [dict(model.identity) for model in verifiers],
    }
    notes = [f"Next: {typed('judge', 'train', out, '--base', 'Qwen/Qwen2.5-VL-3B-Instruct', '--out', 'judge')}"]
    if verifiers and twins:
        twins, checked = made.confirmed_pairs(twins, verifiers, out)
        facts |= {"verified": checked.report()}
    elif twins:
        notes = [f"Warning: nobody checked that {len(twins)} made wrong answers are wrong; name a --verifier", *notes]
    chosen = [*judged, *(example for pair in twins for example in pair)]
    parts = made.split([*chosen, *tasks], hold_out, seed)
    attacks = gate.attack(made.attacked_examples(chosen, asked_with), bound=floor)
    facts = dict(made.write_examples(out, parts, asked_with, facts, attacks))
    return {**facts, "solved": Table.of(*gate.floor_rows(attacks), title=gate.FLOOR_TITLE), "notes": notes}


def _judged(
    labels: Sequence[Path], prompt: JudgePrompt, labelled: LabelFileChoice, scheme: str | None
) -> tuple[list[TrainingExample], Mapping[str, int]]:
    """Return answers that people judged, and how many are no answers, by the reason."""
    from hedge_tasks.judging.check import read_checked
    from hedge_tasks.making.gate.refuse import no_answer
    from hedge_tasks.making.judging.examples import outcome_of

    examples, refused = [], Counter[str]()
    options = {**labelled.settings(), "images": None, "scheme": scheme}
    for path in labels:
        for number, (case, label) in enumerate(zip(*read_checked(path, **options), strict=True)):
            if why_none := no_answer(case.answer):
                refused[why_none] += 1
                continue
            outcome = label.category or outcome_of(label.label, prompt, "the category is needed")
            of_path = replace(case, id=f"{path.stem}/{number}")
            examples.append(_example(of_path, label.row, label.where, labelled.images, outcome=outcome))
    return examples, dict(sorted(refused.items()))


def _tasks(paths: Sequence[Path], origin: str, images: Path | None) -> Iterator[TrainingExample]:
    from hedge_tasks.data.cells import first_of
    from hedge_tasks.data.tables import read_rows
    from hedge_tasks.judging.base import Case

    for path in paths:
        for number, (where, row) in enumerate(read_rows(path)):
            question = first_of(row, ("question", "instruction"), where, "question")
            answer = first_of(row, ("answer", "reference", "ground_truth"), where, "answer")
            case = Case(f"{path.stem}/{number}", question, answer, answer)
            yield _example(case, row, where, images, outcome=None, origin=origin)


def _example(case: Case, row: Mapping[str, Any], where: str, images: Path | None, **about: Any) -> TrainingExample:
    """Return an example that shares a group with all about its picture, or else its question.

    Raises:
        DataError: There is no such picture below the folder.
    """
    from hedge_tasks.judging.check import picture_below
    from hedge_tasks.making.judging.examples import TrainingExample

    name = str(row.get("image") or "")
    image = picture_below(images, name, where) if images and name else None
    return TrainingExample(case=case, group=name or case.question, image=image, **about)


def train(
    data: Path,
    *,
    base: str,
    out: Path,
    revision: str | None = None,
    recipe: Path | None = None,
    kinds: str | None = None,
    set: str = "",
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
        set: Of the recipe, such as learning_rate=1e-5,num_train_epochs=2.
        max_steps: End after so many steps.
    """
    from hedge_tasks.io.options import pairs
    from hedge_tasks.making.judging.training import ADAPTERS, kinds_of, read_recipe, train_judge

    used = read_recipe(recipe, pairs("--set", set))
    done = train_judge(data, base, out, used, revision=revision, max_steps=max_steps, kinds=kinds_of(kinds))
    model = f"{base},peft={done.weights}" if used["trained"] == ADAPTERS else done.weights
    check = typed("judge", "--check", "LABELS", "--judge", f"hf:model={model},prompt=...")
    return {**vars(done), "notes": [f"Next: {check}"]}
