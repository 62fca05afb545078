"""Conversations to train a judge on, in the very words that it will be asked in."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from loguru import logger

from hedge_tasks.errors import ConfigError, DataError, HedgeError
from hedge_tasks.io.files import write_whole
from hedge_tasks.judging.base import Case
from hedge_tasks.judging.prompt import JudgePrompt
from hedge_tasks.llm.models import Model
from hedge_tasks.making.digests import digest_number
from hedge_tasks.making.gate.attack import Attack, AttackedItem, check_floors, floors_by_stratum
from hedge_tasks.making.gate.refuse import folded
from hedge_tasks.making.gate.twins import reworded, wrong_twin
from hedge_tasks.making.gate.verify import (
    CONTRADICTED,
    VERIFIER,
    OpenBook,
    check_controls,
    evidence_verdicts,
    outcome,
    verifying,
)
from hedge_tasks.making.stages import Asking, Made, Rejected, make

JUDGED, REFERENCE, REWORDED, TWIN, TASK, BENCHMARK = "judged", "reference", "reworded", "twin", "task", "benchmark"
"""Where an example comes from: an answer that somebody judged; a reference, which is right by definition; the same in
other words; a reference that is wrong by one word; a question with its reference answer, as a task of its own; the same
out of the benchmark that the judge is for."""

INSTRUCTION = "instruction"
KINDS = (TASK, BENCHMARK, INSTRUCTION)
"""Kinds of conversations, as Med-HallMark's ablations tell them apart: tasks of other data sets, questions of the
benchmark itself, and judgements of answers."""


def kind_of(origin: str) -> str:
    """The kind of conversation that an origin is of."""
    return origin if origin in (TASK, BENCHMARK) else INSTRUCTION


TRAIN, EVAL = "train", "eval"


@dataclass(frozen=True)
class TrainingExample:
    """One conversation.

    Attributes:
        case: What the judge is shown; of a task its question, and the reference as the answer to give.
        outcome: Key of the outcome that is right; None of a task.
        group: Examples of one group never stand on both sides of the split: the picture, or else the question.
        origin: See `JUDGED` and its like.
        image: File of the picture; None without one.
    """

    case: Case
    outcome: str | None
    group: str
    origin: str = JUDGED
    image: Path | None = None


def outcome_of(label: int | None, prompt: JudgePrompt, hint: str = "one is needed") -> str:
    """Key of the outcome that stands for a label.

    Args:
        hint: What to do where there is none, or several.

    Raises:
        ConfigError: There is none, or several, so that the label does not say which.
    """
    keys = [outcome.key for outcome in prompt.outcomes if outcome.label == label]
    if len(keys) != 1:
        raise ConfigError(f"prompt {prompt.id}: label {label} stands for {', '.join(keys) or 'nothing'}; {hint}")
    return keys[0]


def pairs_of(
    examples: Sequence[TrainingExample], prompt: JudgePrompt, wrong_outcome: str
) -> list[tuple[TrainingExample, TrainingExample]]:
    """The reference of each judged question as a right answer, beside one that is wrong by a word; each once.

    Three of four, by a digest, are put in other words first, and the wrong one then stands in the same words: what
    equals the reference, and what is worded like a frame, tells right from wrong as little as it can. A text without a
    word to turn makes no pair.

    Args:
        wrong_outcome: Key of the outcome of an answer that is wrong by a word.
    """
    right_outcome = outcome_of(0, prompt)
    pairs: dict[tuple[str, str, str], tuple[TrainingExample, TrainingExample]] = {}
    for example in examples:
        case = example.case
        text = case.reference.strip()
        key = (example.group, case.question, text)
        answer = reworded(text) if digest_number("words", *key) % 4 else text
        twin = wrong_twin(answer) if wrong_twin(text) else None
        if twin is None or key in pairs:
            continue
        origin = REFERENCE if answer == text else REWORDED
        right = replace(case, id=f"{case.id}/reference", answer=answer)
        wrong = replace(case, id=f"{case.id}/twin", answer=twin)
        pairs[key] = (
            replace(example, case=right, outcome=right_outcome, origin=origin),
            replace(example, case=wrong, outcome=wrong_outcome, origin=TWIN),
        )
    return list(pairs.values())


def confirmed_pairs(
    pairs: Sequence[tuple[TrainingExample, TrainingExample]], verifiers: Sequence[Model], folder: Path
) -> tuple[list[tuple[TrainingExample, TrainingExample]], Made]:
    """The pairs whose wrong answers their references contradict, and what asking for it cost.

    Answers that people judged are not asked about: what a reference leaves open may be a hallucination all the same.

    Args:
        folder: Where replies are kept; the same command goes on from there.

    Raises:
        DataError: A verifier cannot be believed.
        HedgeError: A server refuses every request, is gone, or left some unanswered.
    """

    def check(pair: _Pair, asking: Asking) -> list[tuple[TrainingExample, TrainingExample]]:
        case = pair.wrong.case
        verdict = outcome(evidence_verdicts(OpenBook(case.question, case.reference), case.answer, asking))
        if verdict != CONTRADICTED:
            raise Rejected(f"verified as {verdict}")
        return [(pair.right, pair.wrong)]

    n = len(verifiers)
    result = make([_Pair(*pair) for pair in pairs], check, verifying((n, n), n), {VERIFIER: verifiers}, folder)
    if result.unfinished:
        first = next(iter(result.unfinished.values()))
        raise HedgeError(f"{len(result.unfinished)} made answers are not verified ({first}); run again to go on")
    check_controls(result.controls)
    return list(result.rows), result


class _Pair(NamedTuple):
    right: TrainingExample
    wrong: TrainingExample

    @property
    def id(self) -> str:
        return self.wrong.case.id


def check_labels(examples: Sequence[TrainingExample], prompt: JudgePrompt) -> None:
    """Refuse labels of somebody who does not know a reference, or its contrary, where it is the answer that was judged.

    Raises:
        DataError: Too many of either have the wrong label, as `check_controls`.
    """
    labels = {outcome.key: outcome.label for outcome in prompt.outcomes}
    controls: dict[tuple[str, str], tuple[int, int]] = {}
    for example in examples:
        answer, truth = folded(example.case.answer), example.case.reference
        for kind, text, label in (("reference itself", truth, 0), ("reference wrong by a word", wrong_twin(truth), 1)):
            if text and answer == folded(text):
                right, n = controls.get(("whoever labelled the answers", kind), (0, 0))
                right += labels[str(example.outcome)] == label
                controls["whoever labelled the answers", kind] = right, n + 1
    if not controls:
        logger.warning("no answer is its reference or the contrary: whoever labelled them passed no control")
    check_controls(controls)


def attacked_examples(examples: Sequence[TrainingExample], prompt: JudgePrompt) -> list[AttackedItem]:
    """Judged and made answers as solvers see them: right or wrong, whatever the level."""
    labels = {o.key: str(o.label) for o in prompt.outcomes}
    return [
        AttackedItem(labels[str(e.outcome)], e.case.question, e.case.answer, e.case.reference, group=e.group)
        for e in examples
        if labels.get(str(e.outcome), "None") != "None"
    ]


def split(examples: Sequence[TrainingExample], share: float, seed: int = 0) -> dict[str, list[TrainingExample]]:
    """Whole groups into two parts.

    Args:
        share: Of the groups that go into `eval`, between 0 and 1; a group's side is decided by a digest of it alone.

    Raises:
        ConfigError: The share is none, or a part is empty.
    """
    if not 0 <= share < 1:
        raise ConfigError(f"share: expected a number from 0 to below 1, got {share!r}")
    parts: dict[str, list[TrainingExample]] = {TRAIN: [], EVAL: []}
    for example in examples:
        held_out = digest_number(seed, example.group) < share * 2**32
        parts[EVAL if held_out else TRAIN].append(example)
    if not parts[TRAIN] or (share and not parts[EVAL]):
        groups = len({example.group for example in examples})
        raise ConfigError(f"share: {groups} pictures are too few to hold out {share:g} of them")
    return parts


def conversation(example: TrainingExample, prompt: JudgePrompt, name: str | None = None) -> dict[str, Any]:
    """A row in the form of prompt and completion that is trained on.

    Args:
        name: File of the picture beside the rows; None shows none.
    """
    # A placeholder stands where the picture goes: the trainer puts it in.
    images = [None] if name is not None and (example.outcome is None or prompt.images != "never") else []
    if example.outcome is None:
        content = [*({"type": "image"} for _ in images), {"type": "text", "text": example.case.question}]
        turns: list[dict[str, Any]] = [{"role": "user", "content": content}]
        reply = example.case.reference
    else:
        turns = prompt.messages(example.case, images)
        for turn in turns:
            turn["content"] = [{"type": "image"} if part["type"] == "image" else part for part in turn["content"]]
        reply = reply_of(prompt, example.outcome)
    completion = [{"role": "assistant", "content": [{"type": "text", "text": reply}]}]
    return {
        "id": example.case.id,
        "group": example.group,
        "origin": example.origin,
        "outcome": example.outcome,
        "images": [name] if images else [],
        "prompt": turns,
        "completion": completion,
    }


def reply_of(prompt: JudgePrompt, outcome: str) -> str:
    """The reply that names an outcome and gives no reason: there is none to learn from.

    Raises:
        ConfigError: The prompt would not read it so.
    """
    values = {prompt.outcome(value): value for value in prompt.reply_schema["properties"][prompt.answer_field]["enum"]}
    value = next((value for mapped, value in values.items() if mapped is not None and mapped.key == outcome), outcome)
    reply = json.dumps({prompt.answer_field: value}, ensure_ascii=False)
    read, _ = prompt.outcome_in(reply)
    if read is None or read.key != outcome:
        raise ConfigError(f"prompt {prompt.id}: {reply} is not read as {outcome!r}")
    return reply


def write_examples(
    folder: Path,
    parts: Mapping[str, Sequence[TrainingExample]],
    prompt: JudgePrompt,
    settings: Mapping[str, Any],
    attacks: Sequence[Attack] = (),
) -> dict[str, Any]:
    """Write `train.jsonl` and `eval.jsonl`, the pictures once each, and what they are made of.

    Args:
        attacks: What solvers without skill get right of the examples.

    Returns:
        Counts by part, origin and outcome, as in `examples.json`.

    Raises:
        DataError: A picture cannot be read; names it. A solver without skill is above its bound. The folder cannot be
            written.
    """
    check_floors(attacks)
    names: dict[Path, str] = {}
    counts: dict[str, dict[str, int]] = {}
    try:
        (folder / "images").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"cannot write {folder}: {error.strerror}") from error
    for part, examples in parts.items():
        lines = []
        for example in examples:
            name = None if example.image is None else names.get(example.image)
            if example.image is not None and name is None:
                name = names[example.image] = _keep_image(example.image, folder)
            lines.append(json.dumps(conversation(example, prompt, name), ensure_ascii=False))
        write_whole(folder / f"{part}.jsonl", "".join(f"{line}\n" for line in lines))
        tally = Counter(f"{e.origin}: {e.outcome or 'task'}" for e in examples)
        counts[part] = {
            "examples": len(examples),
            "groups": len({e.group for e in examples}),
            **dict(sorted(tally.items())),
        }
    facts = {"prompt": prompt.id, "prompt_digest": prompt.digest, **settings, "parts": counts}
    facts["floors"] = floors_by_stratum(attacks)
    write_whole(folder / "examples.json", json.dumps(facts, indent=2, ensure_ascii=False) + "\n")
    return facts


def _keep_image(path: Path, folder: Path) -> str:
    from PIL import Image

    from hedge_tasks.data.pictures import to_rgb8

    try:
        with Image.open(path) as opened:
            picture = to_rgb8(opened)
        name = f"images/{hashlib.sha256(picture.tobytes()).hexdigest()[:16]}.png"
        if not (folder / name).exists():
            picture.save(folder / name)
    except (OSError, ValueError) as error:
        raise DataError(f"picture {path} cannot be read: {error}") from error
    return name
