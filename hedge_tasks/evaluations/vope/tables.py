"""VOPE's tables out of finished runs: Table 1, the sweep over α of Table 2, and relevance as in Tables 4 to 6.

Everything is computed anew from the stored replies, so that a run can be read with the other parser or the other rule
of presence without a model. What a model read because the rules could not (`fallback`) stays as it was read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.errors import DataError
from hedge_tasks.evaluations.vope import published
from hedge_tasks.evaluations.vope.documents import objects_of
from hedge_tasks.evaluations.vope.judge import FALSE_DESCRIPTION, SETS, TRUE_DESCRIPTION, VopeJudge
from hedge_tasks.evaluations.vope.metrics import METRICS, ObjectShare
from hedge_tasks.evaluations.vope.objects import ObjectRecord, answered_records, story_scores, story_verdict
from hedge_tasks.evaluations.vope.presence import is_present
from hedge_tasks.evaluations.vope.published import models, task_of
from hedge_tasks.evaluations.vope.relevance import METRICS as RELEVANCE
from hedge_tasks.evaluations.vope.vocabulary import coco
from hedge_tasks.replies.parsing import HEDGE
from hedge_tasks.runs.model_names import named_like
from hedge_tasks.runs.run_files import Run
from hedge_tasks.statistics.base import Interval

SHARES = ("hal_d", "hal_i", "exp", "chair_i", "chair_s", "cover")

DETECTORS = ("se", "radflag", "vase")
LEVELS = ("object", "story")

_CONTRAST = "contrast="


@dataclass(frozen=True)
class Cell:
    """A share in [0, 1] with standard error and 95 % interval over images, or the reason why there is none."""

    value: float | None
    stderr: float | None
    reason: str | None = None
    interval: Interval | None = None


@dataclass(frozen=True)
class TaskNumbers:
    """The numbers of one task and model.

    Attributes:
        task, model: of the run; the model without its contrast.
        alpha: of contrastive decoding; 0 without.
        prompts: which prompts were contrasted, "" for none.
        stories, objects, unread: numbers of stories, of objects in them, and of rechecks that say neither yes nor no.
        parsers_differ: rechecks that the two ways to read replies read differently.
        by_model: rechecks that a model read because the rules could not.
        shares: by name, see `SHARES`.
        aurocs: ROC-AUC of each of `DETECTORS` by level: of an object against its label, of a story against its own.
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
    by_model: int
    shares: Mapping[str, Cell]
    aurocs: Mapping[str, Mapping[str, Cell]]
    relevance: Mapping[str, tuple[int, int, int]]
    kappa: Mapping[str, Cell]


@dataclass(frozen=True)
class _Place:
    """What a metric wants to know of a story besides its objects."""

    id: str
    group: str | None


def numbers_of(run: Run, parsing: str | None = None, presence: str | None = None) -> TaskNumbers:
    """The numbers of a finished run.

    Args:
        parsing: how replies are read; None for as in the run.
        presence: when an object is in the image (see `presence.PRESENCES`); None for as in the run.

    Raises:
        DataError: it is no run of VOPE.
        ConfigError: there is no such parsing or presence, or the contrast in the model's arguments cannot be read.
    """
    own = _parsing(run)
    judge = VopeJudge(parsing or own)
    if not any("objects" in (run.verdicts.get(a.id) or {}) for a in run.answer_sets):
        raise DataError(f"{run.title} is no run of VOPE")
    sets = [a if presence is None else _placed(a, presence) for a in run.answer_sets]
    stories = [_story(run, answers, judge, keep=judge.parsing == own) for answers in sets]
    places = [(_Place(a.id, a.group), {"truth": a.reference or ""}) for a in sets]
    model, prompts, alpha = contrast_of(run.model)

    def records(metric: Any) -> list[Any]:
        return [metric.record(at, story, document) for (at, document), story in zip(places, stories, strict=True)]

    def cell(metric: Any) -> Cell:
        value, stderr = metric(mine := records(metric)), metric.stderr(mine)
        if isinstance(value, str):
            return Cell(None, None, value.removeprefix("undefined: "))
        return Cell(value, None if isinstance(stderr, str) else stderr)

    def share(name: str) -> Cell:
        metric = METRICS[name]
        assert isinstance(metric, ObjectShare)
        return replace(cell(metric), interval=metric.measured(records(metric)).interval)

    def count(name: str) -> int:
        return round(cell({**METRICS, **RELEVANCE}[name]).value or 0)

    return TaskNumbers(
        task=run.task,
        model=model,
        alpha=alpha,
        prompts=prompts,
        stories=len(stories),
        objects=count("objects"),
        unread=sum(entry["kind"] is None for story in stories for entry in story["objects"]),
        parsers_differ=count("parsers_differ"),
        by_model=count("read_by_model"),
        shares={name: share(name) for name in SHARES},
        aurocs={level: {of: cell(METRICS[f"{level}_{of}_auroc"]) for of in DETECTORS} for level in LEVELS},
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


def beside(numbers: TaskNumbers, model: str | None = None) -> dict[str, Any]:
    """What the paper has for the same task: `model`, `task`, `shares` (in [0, 1]) and `relevance`, empty where nothing.

    Args:
        model: of the paper; None for the one whose name stands in the run's.
    """
    task, model = task_of(numbers.task), model or named_like(numbers.model, models())
    if task is None or model is None or numbers.alpha:
        return {"model": model, "task": task, "shares": {}, "relevance": {}}
    shares = {name: value for (of, name), value in published.shares()[model].items() if of == task}
    relevance = {kind: list(counts) for (of, kind), counts in published.relevance()[model].items() if of == task}
    return {"model": model, "task": task, "shares": shares, "relevance": relevance}


def _parsing(run: Run) -> str:
    documents = run.settings.get("documents")
    judge = documents.get("judge") if isinstance(documents, Mapping) else None
    return str(judge.get("parsing", HEDGE)) if isinstance(judge, Mapping) else HEDGE


def _placed(answers: AnswerSet, presence: str) -> AnswerSet:
    """The story with its rechecks' truths by another rule of presence."""
    truth = objects_of(answers.reference or "")

    def moved(recheck: AnswerSet) -> AnswerSet:
        word = recheck.id.removeprefix(f"{answers.id}/")
        there = is_present(word, coco().category(word, recheck.id), truth, presence)
        return replace(recheck, reference="yes" if there else "no")

    return answers.with_follow_ups([moved(recheck) for recheck in answers.follow_ups])


def _story(run: Run, answers: AnswerSet, judge: VopeJudge, *, keep: bool) -> dict[str, Any]:
    """What the metrics see of a story, as `VopeTask.judge_cases` gives it.

    Args:
        keep: whether what a model read stays.
    """
    kept = (run.verdicts.get(answers.id) or {}).get("objects") or []
    known = {entry.get("word"): entry for entry in kept if isinstance(entry, dict)}
    records = [_as_known(entry, known.get(entry.word, {}), keep) for entry in answered_records(answers, judge)]
    verdict = story_verdict(records, judge.name, judge.version)
    return {
        "objects": [entry.to_dict() for entry in records],
        "story": story_scores(answers),
        "label": verdict.label,
    }


def _as_known(entry: ObjectRecord, known: Mapping[str, Any], keep: bool) -> ObjectRecord:
    entry = replace(entry, relevance=tuple(known.get("relevance") or ()))
    if not (keep and known.get("by_model") and entry.kind is None):
        return entry
    affirmed = known.get("kind") in (TRUE_DESCRIPTION, FALSE_DESCRIPTION)
    return replace(entry, kind=SETS[entry.present, affirmed], by_model=True)
