"""`hedge judge data` and `hedge judge train`: a judge of one's own."""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedge_tasks.cli.choices import add_label_columns, key_and_value
from hedge_tasks.io.commands import Parser, add_out, command, show
from hedge_tasks.making.commands import add_floor, add_models

if TYPE_CHECKING:
    from hedge_tasks.judging.prompt import JudgePrompt
    from hedge_tasks.making.judging.examples import TrainingExample


def add(commands: Parser) -> None:
    """Add the commands to `hedge judge`, beside its run: a run in a folder called data is `./data`."""
    parser = command(commands, "data", run_data, "write conversations to train a judge on, in its own words")
    parser.add_argument(
        "labels", type=Path, nargs="+", metavar="LABELS|RUN", help="judged answers: JSONL, CSV or a run"
    )
    add_out(parser, "folder of the conversations", required=True)
    parser.add_argument("--prompt", "--scheme", required=True, help="how the judge will be asked, such as medhallmark")
    add_label_columns(parser, "answer=said")
    parser.add_argument(
        "--vqa",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="question, answer, image a row: tasks to learn besides",
    )
    parser.add_argument(
        "--benchmark",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="the same of the benchmark that the judge is for",
    )
    parser.add_argument(
        "--sentences", action="store_true", help="sentences of references, such as reports, stand for them"
    )
    parser.add_argument(
        "--twin-outcome",
        metavar="KEY",
        help="what the prompt calls an answer that is wrong by a word, such as attribute",
    )
    add_floor(parser)
    text = "says whether references contradict the wrong answers that are made of them (repeat for several)"
    add_models(parser, "--verifier", text)
    parser.add_argument("--hold-out", type=float, default=0.2, metavar="SHARE", help="of the pictures (default: 0.2)")
    parser.add_argument("--seed", type=int, default=0, help="of the pictures held out")
    parser = command(commands, "train", run_train, "train a judge on the conversations of `hedge judge data`")
    parser.add_argument("data", type=Path, metavar="DIR", help="of `hedge judge data`")
    parser.add_argument(
        "--base", required=True, metavar="MODEL", help="hub id or folder, such as Qwen/Qwen2.5-VL-3B-Instruct"
    )
    parser.add_argument("--revision", help="of the base on the hub")
    add_out(parser, "folder of the checkpoints and, in the end, of the adapter or the model", required=True)
    parser.add_argument(
        "--recipe", type=Path, metavar="FILE", help="YAML, or paper; what it does not name is the package's own"
    )
    parser.add_argument(
        "--kinds", metavar="KINDS", help="of conversations that are trained on, such as task,benchmark,instruction"
    )
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a value of the recipe")
    parser.add_argument("--max-steps", type=int, metavar="N", help="end after so many steps")


# --- conversations ----------------------------------------------------------------------------------------------------


def run_data(arguments: argparse.Namespace) -> int:
    from hedge_tasks.judging.prompt import load_judge_prompt
    from hedge_tasks.making.gate.attack import FLOOR_TITLE, attack, floor_rows
    from hedge_tasks.making.gate.refuse import no_answer
    from hedge_tasks.making.judging import examples as made
    from hedge_tasks.models.by_text import model_from
    from hedge_tasks.numbers import Table

    prompt = load_judge_prompt(arguments.prompt)
    everything = [example for path in arguments.labels for example in _judged(arguments, path, prompt)]
    reasons = Counter(reason for example in everything if (reason := no_answer(example.case.answer)))
    judged = [example for example in everything if no_answer(example.case.answer) is None]
    tasks = [
        replace(example, origin=origin)
        for origin, paths in ((made.TASK, arguments.vqa), (made.BENCHMARK, arguments.benchmark))
        for path in paths
        for example in _tasks(arguments, path)
    ]
    pairs = made.pairs_of(judged, prompt, _twin_outcome(arguments, prompt), sentences=arguments.sentences)
    verifiers = [model_from(spec) for spec in arguments.verifier]
    facts: dict[str, Any] = {
        "sources": [path.name for path in (*arguments.labels, *arguments.vqa, *arguments.benchmark)],
        "seed": arguments.seed,
        "refused": dict(sorted(reasons.items())),
        "verifiers": [dict(model.identity) for model in verifiers],
    }
    if verifiers and pairs:
        pairs, checked = made.confirmed_pairs(pairs, verifiers, arguments.out)
        facts |= {"verified": checked.report()}
    chosen = [*judged, *(example for pair in pairs for example in pair)]
    parts = made.split([*chosen, *tasks], arguments.hold_out, arguments.seed)
    attacks = attack(made.attacked_examples(chosen, prompt), bound=arguments.floor)
    facts = made.write_examples(arguments.out, parts, prompt, facts, attacks)
    lines = [f"{part}: {counts}" for part, counts in facts["parts"].items()]
    lines += [f"refused: {count} × {why}" for why, count in reasons.items()]
    if pairs and not verifiers:
        lines.append(f"Warning: nobody checked that the {len(pairs)} made wrong answers are wrong; name a --verifier")
    next_step = f"Next: hedge judge train {arguments.out} --base Qwen/Qwen2.5-VL-3B-Instruct --out judge"
    show(arguments, facts, "\n".join(lines), Table.of(*floor_rows(attacks), title=FLOOR_TITLE), next_step)
    return 0


def _twin_outcome(arguments: argparse.Namespace, prompt: JudgePrompt) -> str:
    """Return the outcome of an answer that is wrong by a word.

    Raises:
        ConfigError: The prompt has several wrong ones and none is named, or it has no such outcome.
    """
    from hedge_tasks.errors import unknown

    wrong = [outcome.key for outcome in prompt.outcomes if outcome.label == 1]
    if arguments.twin_outcome is None:
        return _outcome_of(1, prompt, "--twin-outcome says which an answer has that is wrong by a word")
    if arguments.twin_outcome not in wrong:
        raise unknown("wrong outcome", arguments.twin_outcome, wrong)
    return str(arguments.twin_outcome)


def _judged(arguments: argparse.Namespace, path: Path, prompt: JudgePrompt) -> list[TrainingExample]:
    """Return answers that somebody judged, from a file of labels or a run."""
    from hedge_tasks.judging.check import read_checked
    from hedge_tasks.making.judging.examples import TrainingExample

    if path.is_dir() or path.name.startswith("run-"):
        return _judged_in_run(path, prompt)
    columns = dict(key_and_value("--column", text, "KEY=COLUMN") for text in arguments.column)
    scheme = arguments.prompt if any(o.key not in ("supported", "hallucinated") for o in prompt.outcomes) else None
    cases, labels = read_checked(path, label_field=arguments.label_field, scheme=scheme, columns=columns)
    examples = []
    for number, (case, label) in enumerate(zip(cases, labels, strict=True)):
        outcome = label.category or _outcome_of(label.label, prompt)
        image = label.row.get("image")
        file = _image(arguments, str(image), label.where) if image else None
        group = str(image) if image else case.question
        examples.append(TrainingExample(replace(case, id=f"{path.stem}/{number}"), outcome, group, image=file))
    return examples


def _judged_in_run(path: Path, prompt: JudgePrompt) -> list[TrainingExample]:
    from hedge_tasks.making.judging.examples import TrainingExample
    from hedge_tasks.runs.relabel import cases_of
    from hedge_tasks.runs.run_files import load_run

    finished = load_run(path, None)
    outcomes = {outcome.key for outcome in prompt.outcomes}
    examples = []
    for case, answers in zip(cases_of(finished), finished.answer_sets, strict=True):
        category = (finished.verdicts.get(case.id) or {}).get("category")
        outcome = category if category in outcomes else None
        if outcome is None and answers.label is not None:
            outcome = _outcome_of(answers.label, prompt)
        if outcome is not None:
            examples.append(TrainingExample(case, outcome, answers.group or case.question))
    return examples


def _outcome_of(label: int | None, prompt: JudgePrompt, hint: str = "the category is needed") -> str:
    """Return the outcome that stands for a label.

    Args:
        hint: What to do where there are several.

    Raises:
        ConfigError: There are several, so the label does not say which.
    """
    from hedge_tasks.errors import ConfigError

    keys = [outcome.key for outcome in prompt.outcomes if outcome.label == label]
    if len(keys) != 1:
        raise ConfigError(f"prompt {prompt.id}: label {label} may be any of {', '.join(keys)}; {hint}")
    return keys[0]


def _tasks(arguments: argparse.Namespace, path: Path) -> list[TrainingExample]:
    from hedge_tasks.data.cells import first_of
    from hedge_tasks.data.tables import read_rows
    from hedge_tasks.judging.base import Case
    from hedge_tasks.making.judging.examples import TrainingExample

    examples = []
    for number, (where, row) in enumerate(read_rows(path)):
        question = first_of(row, ("question", "instruction"), where, "question")
        answer = first_of(row, ("answer", "reference", "ground_truth"), where, "answer")
        image = row.get("image")
        file = _image(arguments, str(image), where) if image else None
        case = Case(f"{path.stem}/{number}", question, answer, answer)
        examples.append(TrainingExample(case, None, str(image) if image else question, image=file))
    return examples


def _image(arguments: argparse.Namespace, name: str, where: str) -> Path | None:
    """Return the file of a picture; None where no folder of pictures was named.

    Raises:
        DataError: There is no such file below the folder.
    """
    from hedge_tasks.judging.check import picture_below

    return None if arguments.images is None else picture_below(arguments.images, name, where)


# --- training ---------------------------------------------------------------------------------------------------------


def run_train(arguments: argparse.Namespace) -> int:
    import yaml

    from hedge_tasks.making.judging.training import ADAPTERS, kinds_of, read_recipe, train_judge
    from hedge_tasks.numbers import FOUR_DIGITS, format_value

    changed = (key_and_value("--set", text, empty=True) for text in arguments.set)
    recipe = read_recipe(arguments.recipe, {key: yaml.safe_load(value) for key, value in changed})
    done = train_judge(
        arguments.data,
        arguments.base,
        arguments.out,
        recipe,
        revision=arguments.revision,
        max_steps=arguments.max_steps,
        kinds=kinds_of(arguments.kinds),
    )
    model = f"{arguments.base},peft={done.weights}" if recipe.trained == ADAPTERS else str(done.weights)
    first, last = (format_value(done.losses[i][1] if done.losses else None, FOUR_DIGITS) for i in (0, -1))
    lines = [
        f"{done.steps} steps; {done.trained_weights[0]:,} of {done.trained_weights[1]:,} weights trained",
        f"loss: {first} at the first step, {last} at the last; held out: {format_value(done.eval_loss, FOUR_DIGITS)}",
        f"Next: hedge judge --check LABELS --judge hf:model={model},prompt=...",
    ]
    show(arguments, {**vars(done), "trained": recipe.trained}, "\n".join(lines))
    return 0
