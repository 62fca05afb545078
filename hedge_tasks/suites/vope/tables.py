"""VOPE's tables out of finished runs: Table 1, Tables 2 and 3 (contrasted logits), and relevance as in Tables 4 to 6.

Everything is computed anew from the stored replies, so that a run can be read with the other parser or the other rule
of presence without a model. What a model read because the rules could not (`fallback`) stays as it was read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.errors import DataError
from hedge_tasks.measures.measure import Measure
from hedge_tasks.measures.paper_tables import ModelNumbers, numbers_in, tall_table, wide_table
from hedge_tasks.numbers import SIGNED_PERCENT, Column, Table
from hedge_tasks.replies.parsing import HEDGE
from hedge_tasks.runs.model_names import named_like, plain_model
from hedge_tasks.runs.run_files import Run
from hedge_tasks.runs.setting_verdicts import mitigation_line
from hedge_tasks.sampling.plan import CONTRAST
from hedge_tasks.suites.paper_tables import judge_settings, select, with_published
from hedge_tasks.suites.vope import measures, relevance
from hedge_tasks.suites.vope.documents import objects_of
from hedge_tasks.suites.vope.judge import FALSE_DESCRIPTION, SETS, TRUE_DESCRIPTION, VopeJudge
from hedge_tasks.suites.vope.measures import ObjectCount
from hedge_tasks.suites.vope.objects import ObjectRecord, recheck_records, story_facts, story_verdict, word_of
from hedge_tasks.suites.vope.presence import is_present
from hedge_tasks.suites.vope.published import KINDS, MODELS, PUBLISHED, setting_of
from hedge_tasks.suites.vope.vocabulary import coco


def _named(*names: str) -> list[Measure]:
    return select([*measures.MEASURES, *relevance.MEASURES], names)


SHARES = _named("hal_d", "hal_i", "exp", "chair_i", "chair_s", "cover")

COUNTS = [
    *_named("objects", "read_by_model", "parsers_differ"),
    ObjectCount(name="unread", count=measures.unread),
]
"""Of the objects of all stories; `unread`: those whose recheck says neither yes nor no."""

AUROCS = _named(*(f"{level}_{name}_auroc" for level in ("object", "story") for name in ("se", "radflag", "vase")))

RELEVANCE = _named(*(f"relevance_{kind}_{score}" for kind in KINDS for score in relevance.SCORES))

KAPPAS = _named("relevance_kappa_linear", "relevance_kappa_quadratic")

PLAIN = "plain"
"""Decoding that contrasts nothing."""


@dataclass(frozen=True)
class Stories:
    """A run as its replies are read.

    Attributes:
        numbers: its measures; about them task, model without its decoding, and decoding.
        alpha: of contrastive decoding between prompts; 0 without.
        prompts: which prompts were contrasted, "" for none.
    """

    numbers: ModelNumbers
    alpha: float
    prompts: str

    @property
    def model(self) -> str:
        return self.numbers.about["model"]

    @property
    def task(self) -> str:
        return self.numbers.about["task"]

    @property
    def decoding(self) -> str:
        return self.numbers.about["decoding"]

    @property
    def order(self) -> tuple[Any, ...]:
        """Key that rows are sorted by: plain decoding first among runs of one model and task."""
        return self.model, self.task, self.prompts, self.alpha, self.decoding != PLAIN, self.decoding

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {**self.numbers.to_dict(), "alpha": self.alpha, "prompts": self.prompts}


def numbers_of(run: Run, parsing: str | None = None, presence: str | None = None, beside: str | None = None) -> Stories:
    """Return the numbers of a finished run, with the paper's of the same task.

    Args:
        parsing: how replies are read; None for as in the run.
        presence: when an object is in the image (see `presence.PRESENCES`); None for as in the run.
        beside: model of the paper; None for the one whose name stands in the run's.

    Raises:
        DataError: it is no run of VOPE, or does not say how its logits were contrasted.
        ConfigError: there is no such parsing or presence.
    """
    own = str(judge_settings(run).get("parsing", HEDGE))
    judge = VopeJudge(parsing or own)
    if not is_vope(run):
        raise DataError(f"{run.title} is no run of VOPE")
    sets = tuple(a if presence is None else _with_presence(a, presence) for a in run.answer_sets)
    verdicts = {a.id: _story(run, a, judge, keep=judge.parsing == own) for a in sets}
    columns = {a.id: {"truth": a.reference or ""} for a in sets}
    method, model = _method(run), plain_model(run.model)
    read = replace(run, answer_sets=sets, verdicts=verdicts, columns=columns)
    numbers = numbers_in(read, [*SHARES, *COUNTS, *AUROCS, *RELEVANCE, *KAPPAS])
    between = method.get("name") == CONTRAST
    alpha = float(method["alpha"]) if between else 0.0
    prompts = f"{method['prompt']}:{method['other']}" if between else ""
    decoding = f"alpha {alpha:g}" if between else mitigation_line({"method": method}) if method else PLAIN
    labels = {"model": model, "task": run.task, "decoding": decoding or PLAIN}
    row = ModelNumbers(labels, numbers, counts={"stories": len(sets)})
    setting = setting_of(run.task, str(method.get("name", "")))
    row = with_published(row, PUBLISHED, beside or named_like(model, MODELS), setting)
    return Stories(row, alpha, prompts)


def is_vope(run: Run) -> bool:
    """Whether a run is of VOPE."""
    return any("objects" in (run.verdicts.get(answers.id) or {}) for answers in run.answer_sets)


def _method(run: Run) -> Mapping[str, Any]:
    """How logits were contrasted, as the run records it; empty where they were not.

    Raises:
        DataError: the model's arguments say that they were, and there is no record.
    """
    sampled = run.settings.get("sampled")
    decoding = sampled.get("decoding") if isinstance(sampled, Mapping) else None
    method = decoding.get("method") if isinstance(decoding, Mapping) else None
    if isinstance(method, Mapping) and isinstance(method.get("name"), str):
        return method
    if plain_model(run.model) != run.model:
        raise DataError(f"{run.title}: the run has no record of how its logits were contrasted; sample it once more")
    return {}


def difference(stories: Stories, others: Sequence[Stories], name: str) -> float | None:
    """A share minus that of the same model and task decoded plainly; None where there is none, or it is undefined."""
    value = stories.numbers.value(name)
    for plain in others:
        base = plain.numbers.value(name)
        same_task = (plain.task, plain.model) == (stories.task, stories.model)
        if same_task and plain.decoding == PLAIN and value is not None and base is not None:
            return value - base
    return None


def tables_of(runs: Sequence[Stories]) -> list[Table]:
    """Return Table 1, differences to plain decoding, ROC-AUCs, and relevance where objects were rated."""
    rows = [stories.numbers for stories in runs]
    tables = [wide_table([_bare(row) for row in rows], [*SHARES, *COUNTS], title="Shares of objects", stderr=False)]
    if any(stories.decoding != PLAIN for stories in runs):  # else every row would be compared with itself
        columns = [*map(Column, ("model", "task", "decoding"))]
        columns += [Column(m.name, m.title, SIGNED_PERCENT) for m in SHARES]
        lines = [
            {**stories.numbers.about, **{m.name: difference(stories, runs, m.name) for m in SHARES}} for stories in runs
        ]
        tables.append(Table(columns, lines, title="Differences to plain decoding (Tables 2 and 3)"))
    tables.append(tall_table(rows, SHARES, title="95 % intervals over images, and the paper's Tables 1 and 3"))
    title = "ROC-AUC of an object's score against its label, and of a story's (wrong about any of its objects)"
    tables.append(wide_table([_bare(row) for row in rows], AUROCS, title=title))
    rated = [row for row in rows if any(row.value(m.name) for m in RELEVANCE)]
    if rated:
        title = "Objects that are not in the image, by relevance (Tables 4 to 6, Figures 7 and 8)"
        only = {m.name for m in RELEVANCE}
        beside = [replace(row, published={k: p for k, p in row.published.items() if k in only}) for row in rated]
        tables.append(wide_table(beside, [*RELEVANCE, *KAPPAS], title=title, stderr=False))
    return tables


def paper_tables(runs: Sequence[Run]) -> list[Table]:
    """Return the paper's tables of the runs of VOPE among these."""
    stories = sorted(map(numbers_of, filter(is_vope, runs)), key=lambda run_stories: run_stories.order)
    return tables_of(stories) if stories else []


def _bare(numbers: ModelNumbers) -> ModelNumbers:
    return replace(numbers, published={})


def _with_presence(answers: AnswerSet, presence: str) -> AnswerSet:
    """Return the story with its rechecks' truths by another rule of presence."""
    truth = objects_of(answers.reference or "")

    def moved(recheck: AnswerSet) -> AnswerSet:
        word = word_of(answers, recheck)
        present = is_present(word, coco().category(word, recheck.id), truth, presence)
        return replace(recheck, reference="yes" if present else "no")

    return answers.with_follow_ups([moved(recheck) for recheck in answers.follow_ups])


def _story(run: Run, answers: AnswerSet, judge: VopeJudge, *, keep: bool) -> dict[str, Any]:
    """Return a story as the metrics see it, as `VopeTask.judge_cases` gives it.

    Args:
        keep: whether what a model read stays.
    """
    kept_objects = (run.verdicts.get(answers.id) or {}).get("objects") or []
    kept_by_word = {entry.get("word"): entry for entry in kept_objects if isinstance(entry, dict)}
    records = [
        _with_kept_reading(entry, kept_by_word.get(entry.word, {}), keep) for entry in recheck_records(answers, judge)
    ]
    verdict = story_verdict(records, judge.name, judge.version)
    return {**story_facts(answers, records), "label": verdict.label}


def _with_kept_reading(entry: ObjectRecord, kept_entry: Mapping[str, Any], keep: bool) -> ObjectRecord:
    entry = replace(entry, relevance=tuple(kept_entry.get("relevance") or ()))
    if not (keep and kept_entry.get("by_model") and entry.kind is None):
        return entry
    affirmed = kept_entry.get("kind") in (TRUE_DESCRIPTION, FALSE_DESCRIPTION)
    return replace(entry, kind=SETS[entry.present, affirmed], by_model=True)
