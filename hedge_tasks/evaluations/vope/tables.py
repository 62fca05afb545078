"""VOPE's tables out of finished runs: Table 1, the sweep over α of Table 2, and relevance as in Tables 4 to 6.

Everything is computed anew from the stored replies, so that a run can be read with the other parser without a model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hedge_tasks.errors import DataError
from hedge_tasks.evaluations.vope.judge import VopeJudge
from hedge_tasks.evaluations.vope.metrics import METRICS
from hedge_tasks.evaluations.vope.objects import ObjectRecord, answered_records
from hedge_tasks.evaluations.vope.relevance import METRICS as RELEVANCE
from hedge_tasks.replies.parsing import HEDGE
from hedge_tasks.runs.run_files import Run

SHARES = ("hal_d", "hal_i", "exp", "chair_i", "chair_s")

_CONTRAST = "contrast="


@dataclass(frozen=True)
class Cell:
    """A share in [0, 1] with its standard error over images, or the reason why there is none."""

    value: float | None
    stderr: float | None
    reason: str | None = None


@dataclass(frozen=True)
class TaskNumbers:
    """The numbers of one task and model.

    Attributes:
        task, model: of the run; the model without its contrast.
        alpha: of contrastive decoding; 0 without.
        prompts: which prompts were contrasted, "" for none.
        stories, objects, unread: numbers of stories, of objects in them, and of rechecks that say neither yes nor no.
        parsers_differ: rechecks that the two ways to read replies read differently.
        shares: by name, see `SHARES`.
        relevance: "hallucinated" and "imagined" -> numbers of objects with score 1, 2 and 3.
        kappa: weighted kappa of two judges by its weights.
    """

    task: str
    model: str
    alpha: float
    prompts: str
    stories: int
    objects: int
    unread: int
    parsers_differ: int
    shares: Mapping[str, Cell]
    relevance: Mapping[str, tuple[int, int, int]]
    kappa: Mapping[str, Cell]


@dataclass(frozen=True)
class _Place:
    """What a metric wants to know of a story besides its objects."""

    id: str
    group: str | None


def numbers_of(run: Run, parsing: str | None = None) -> TaskNumbers:
    """The numbers of a finished run.

    Args:
        parsing: how replies are read; None for as in the run.

    Raises:
        DataError: it is no run of VOPE.
        ConfigError: there is no such parsing, or the contrast in the model's arguments cannot be read.
    """
    judge = VopeJudge(parsing or _parsing(run))
    stories = [_objects(run, number, judge) for number in range(len(run.answer_sets))]
    if not any("objects" in (run.verdicts.get(a.id) or {}) for a in run.answer_sets):
        raise DataError(f"{run.title} is no run of VOPE")
    places = [_Place(a.id, a.group) for a in run.answer_sets]
    model, prompts, alpha = contrast_of(run.model)

    def cell(metric: Any) -> Cell:
        records = [metric.record(p, {"objects": objects}, {}) for p, objects in zip(places, stories, strict=True)]
        value, stderr = metric(records), metric.stderr(records)
        if isinstance(value, str):
            return Cell(None, None, value.removeprefix("undefined: "))
        return Cell(value, None if isinstance(stderr, str) else stderr)

    def count(name: str) -> int:
        return round(cell({**METRICS, **RELEVANCE}[name]).value or 0)

    return TaskNumbers(
        task=run.task,
        model=model,
        alpha=alpha,
        prompts=prompts,
        stories=len(stories),
        objects=count("objects"),
        unread=sum(entry["kind"] is None for objects in stories for entry in objects),
        parsers_differ=count("parsers_differ"),
        shares={name: cell(METRICS[name]) for name in SHARES},
        relevance={
            kind: (count(f"relevance_{kind}_1"), count(f"relevance_{kind}_2"), count(f"relevance_{kind}_3"))
            for kind in ("hallucinated", "imagined")
        },
        kappa={weights: cell(RELEVANCE[f"relevance_kappa_{weights}"]) for weights in ("linear", "quadratic")},
    )


def contrast_of(model: str) -> tuple[str, str, float]:
    """A model's identity without its contrast, the prompts that were contrasted, and α.

    Raises:
        DataError: α is no number.

    Example:
        >>> contrast_of("hedge_hf|contrast=vope/writing:vope/captioning:-0.5|pretrained=org/model")
        ('hedge_hf|pretrained=org/model', 'vope/writing:vope/captioning', -0.5)
    """
    parts = model.split("|")
    given = [part.removeprefix(_CONTRAST) for part in parts if part.startswith(_CONTRAST)]
    rest = "|".join(part for part in parts if not part.startswith(_CONTRAST))
    if not given:
        return rest, "", 0.0
    prompt, _, remainder = given[0].partition(":")
    other, _, numbers = remainder.partition(":")
    alpha, _, beta = numbers.partition(":")
    try:
        return rest, f"{prompt}:{other}" + (f", beta {beta}" if beta else ""), float(alpha)
    except ValueError:
        raise DataError(f"the contrast {given[0]!r} of {rest} has no alpha") from None


def difference(numbers: TaskNumbers, others: Sequence[TaskNumbers], name: str) -> float | None:
    """A share minus that of the same model and task at α = 0; None where there is none, or it is undefined."""
    value = numbers.shares[name].value
    for other in others:
        same = (other.task, other.model) == (numbers.task, numbers.model)
        base = other.shares[name].value
        if same and other.alpha == 0 and value is not None and base is not None:
            return value - base
    return None


def _parsing(run: Run) -> str:
    documents = run.settings.get("documents")
    judge = documents.get("judge") if isinstance(documents, Mapping) else None
    return str(judge.get("parsing", HEDGE)) if isinstance(judge, Mapping) else HEDGE


def _objects(run: Run, number: int, judge: VopeJudge) -> list[dict[str, Any]]:
    answers = run.answer_sets[number]
    kept = (run.verdicts.get(answers.id) or {}).get("objects") or []
    relevance = {entry.get("word"): tuple(entry.get("relevance") or ()) for entry in kept if isinstance(entry, dict)}
    return [_with_relevance(entry, relevance).to_dict() for entry in answered_records(answers, judge)]


def _with_relevance(entry: ObjectRecord, relevance: Mapping[Any, tuple[int | None, ...]]) -> ObjectRecord:
    return replace(entry, relevance=relevance.get(entry.word, ()))
