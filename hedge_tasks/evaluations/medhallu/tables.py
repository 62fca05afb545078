"""MedHallu's tables out of finished runs, with intervals, and paired differences of what was shown and offered.

Everything is computed anew from the verdicts in the run files, so no model is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.errors import DataError
from hedge_tasks.evaluations.medhallu.documents import ABOUT, CATEGORIES, said_of
from hedge_tasks.evaluations.medhallu.measures import LEVELS, MEASURES
from hedge_tasks.evaluations.medhallu.mesh import MESH
from hedge_tasks.measures.measure import Measure, SumsMeasure, by_name
from hedge_tasks.measures.paper_tables import (
    Change,
    ModelNumbers,
    adjusted,
    changes_table,
    number_rows,
    numbers_in,
    published_by_model,
    wide_table,
)
from hedge_tasks.measures.published import Published, model_of_paper, read_published
from hedge_tasks.measures.run_measures import documents_of
from hedge_tasks.numbers import PERCENT, Table, format_number, format_value
from hedge_tasks.replies.parsing import HEDGE
from hedge_tasks.runs.model_names import short_names
from hedge_tasks.runs.run_files import Run

_BY_NAME = by_name(MEASURES)

_FROM_REPLIES = [m for m in MEASURES if isinstance(m, SumsMeasure) and getattr(m, "parsing", None) is None]
"""Numbers of the verdicts of a run file, of whatever reading."""


def _named(*names: str) -> list[Measure]:
    return [_BY_NAME[name] for name in names]


MAIN = _named("f1", "precision", "recall", "accuracy", *(f"f1_{level}" for level in LEVELS), "response_rate")

NOT_SURE = _named("not_sure_rate", *(f"not_sure_rate_{level}" for level in LEVELS))

_BY_CATEGORY = "Accuracy by category of the row's hallucination"
RECALL = _named(*(f"recall_{kind}" for kind in CATEGORIES))

BLOCKS: Mapping[str, Sequence[Measure]] = {
    "Precision and recall by difficulty": _named(*(f"{of}_{x}" for of in ("precision", "recall") for x in LEVELS)),
    'Share of "not sure"': NOT_SURE,
    _BY_CATEGORY: _named(*(f"accuracy_{kind}" for kind in CATEGORIES)),
    "Recall by category: of its hallucinated answers, the share that is called so": RECALL,
    "Accuracy by MeSH group": _named(*(f"accuracy_mesh_{name}" for name in MESH.values())),
    "F1 that can be had without medicine": _named("f1", "f1_constant", "f1_length"),
}
"""Tables below the main one; runs without a number in one are left out of it."""

COMPARED = _named("f1", "precision", "recall", "accuracy", "f1_hard", "response_rate")
"""Measures that the differences are of."""

PATTERNS = {
    "Gemma-2-2B": r"gemma-2-2b-it",
    "Gemma-2-9B": r"gemma-2-9b-it",
    "Llama-3.2-3B": r"llama-3\.2-3b-instruct",
    "Llama-3.1-8B": r"llama-3\.1-8b-instruct",
    "Qwen2-7B": r"qwen2-7b-instruct",
    "Qwen2.5-3B": r"qwen2\.5-3b-instruct",
    "Qwen2.5-7B": r"qwen2\.5-7b-instruct",
    "Qwen2.5-14B": r"qwen2\.5-14b-instruct",
    "GPT-4o": r"gpt-4o(?!-mini|-audio)",
    "OpenBioLLM-8B": r"openbiollm-8b",
    "UltraMedical": r"llama-3(?:\.1)?-8b-ultramedical",
}
"""The paper's models, as far as its text gives numbers of them, and their names on the hub."""

MEANS = ("general models (mean)", "medical models (mean)")


class Variant(NamedTuple):
    """Settings in which a run differs from another one of the same model.

    Attributes:
        asked: which documents and how: data set, answers shown, prompt file, reading of replies.
        knowledge: whether the abstract is shown.
        not_sure: whether "not sure" is offered.
    """

    asked: str
    knowledge: bool
    not_sure: bool

    @property
    def setting(self) -> str:
        """As the paper's numbers are filed."""
        parts = [name for name, there in (("knowledge", self.knowledge), ("not sure", self.not_sure)) if there]
        return " + ".join(parts) or "plain"


@dataclass(frozen=True)
class ReadRun:
    """A run as its replies are read.

    Attributes:
        run: with the verdicts of this reading, and all that measures look at in its columns.
        variant: what was shown, offered and read.
        numbers: its measures.
    """

    run: Run
    variant: Variant
    numbers: ModelNumbers

    @property
    def keys(self) -> list[tuple[str, str]]:
        """Id and question of each document."""
        return [(answers.id, answers.question or "") for answers in self.run.answer_sets]


def rows_of(runs: Sequence[ReadRun]) -> Table:
    """Return one row a number, with the parts of the variant in columns of their own: what `--out` writes."""
    return number_rows(
        [replace(a.numbers, about={"model": a.run.model, "task": a.run.task, **a.variant._asdict()}) for a in runs]
    )


def is_medhallu(run: Run) -> bool:
    """Whether a run is of MedHallu."""
    return _judge(run).get("judge") == "medhallu"


def answered(runs: Sequence[Run], parsing: str | None = None) -> list[ReadRun]:
    """Return finished runs with their numbers, by model and variant.

    Args:
        parsing: whose reading of the replies counts; None for the run's own, which may be a judge model's in part.

    Raises:
        DataError: a run is none of MedHallu, or of an edition that kept less.
    """
    return sorted((_answered(run, parsing) for run in runs), key=lambda a: (a.run.model, a.variant, a.run.task))


def _answered(run: Run, parsing: str | None) -> ReadRun:
    if not is_medhallu(run):
        raise DataError(f"{run.title} is no run of MedHallu")
    verdicts = {answers.id: _read(run, answers, parsing) for answers in run.answer_sets}
    columns = {answers.id: _columns(run, answers) for answers in run.answer_sets}
    read, variant = replace(run, verdicts=verdicts, columns=columns), _variant(run, parsing)
    about = {"model": run.model, "task": run.task, "asked": variant.asked, "shown, offered": variant.setting}
    numbers = numbers_in(read, _FROM_REPLIES)
    return ReadRun(read, variant, ModelNumbers(about, numbers, counts={"documents": len(run.answer_sets)}))


def _judge(run: Run) -> Mapping[str, Any]:
    documents = run.settings.get("documents")
    judge = documents.get("judge") if isinstance(documents, Mapping) else None
    return judge if isinstance(judge, Mapping) else {}


def _variant(run: Run, parsing: str | None) -> Variant:
    documents = run.settings["documents"]
    options = documents.get("options") if isinstance(documents.get("options"), Mapping) else {}
    prompt = str(documents.get("prompt") or "").rpartition("/")[0].rpartition("/")[2] or "medhallu"
    data = "artificial" if "artificial" in run.task else "labeled"
    shown = str(options.get("show", "random")) + (f" {options['seed']}" if options.get("seed") else "")
    read = parsing or str(_judge(run).get("parsing", HEDGE))
    asked = ", ".join([data, shown, *([prompt] if prompt != "medhallu" else []), *([read] if read != HEDGE else [])])
    return Variant(asked, documents.get("context") is not None, bool(_judge(run).get("not_sure")))


def _read(run: Run, answers: AnswerSet, parsing: str | None) -> Mapping[str, Any]:
    verdict = run.verdicts.get(answers.id)
    if verdict is None or not all(column in verdict for column in ABOUT):
        raise DataError(f"{run.title}, {answers.id}: its verdict lacks {' or '.join(ABOUT)}; it is of an older edition")
    if parsing is None:
        return verdict
    votes = [vote for vote in verdict.get("votes") or () if str(vote.get("judge")).endswith(f":{parsing}")]
    if len(votes) != 1:
        raise DataError(f"{run.title}, {answers.id}: no reading {parsing!r} is kept with its verdict")
    return {**verdict, "category": votes[0].get("category")}


def _columns(run: Run, answers: AnswerSet) -> dict[str, Any]:
    if answers.reference not in ("0", "1") or answers.group is None:
        raise DataError(f"{run.title}, {answers.id}: no truth or no row is recorded")
    about = {column: run.verdicts[answers.id][column] for column in ABOUT}
    asked = {"truth": answers.reference, "row": answers.group, "difficulty": answers.question_type}
    return {**asked, **about, **said_of(answers)}


# --- differences ------------------------------------------------------------------------------------------------------

SAME = "answered in both"
"""Over the documents alone that have a verdict in both runs."""


def paired(a: ReadRun, b: ReadRun) -> list[tuple[int, int]]:
    """Return the places of the documents that two runs have in common."""
    place = {key: i for i, key in enumerate(b.keys)}
    return [(i, place[key]) for i, key in enumerate(a.keys) if key in place]


def differences(runs: Sequence[ReadRun]) -> list[Change]:
    """Return differences with and without knowledge, and with and without "not sure", paired by document.

    F1 and accuracy of "not sure" are there once more over what both have answered: what is left out may be all that
    differs.
    """
    return adjusted([change for a, b, what, both in _pairs(runs) for change in _changes(a, b, what, both)])


def _pairs(runs: Sequence[ReadRun]) -> Iterator[tuple[ReadRun, ReadRun, str, str]]:
    by_place = {(a.run.model, a.variant): a for a in runs}
    for (model, variant), mine in by_place.items():
        for what, both, other in (
            ("knowledge", "not sure" if variant.not_sure else "", variant._replace(knowledge=False)),
            ("not sure", "knowledge" if variant.knowledge else "", variant._replace(not_sure=False)),
        ):
            if other != variant and (model, other) in by_place:
                yield mine, by_place[model, other], what, both


def _changes(a: ReadRun, b: ReadRun, what: str, both: str) -> Iterator[Change]:
    places = paired(a, b)
    about = {"model": a.run.model, "asked": a.variant.asked, "what": what, "given": both}
    for measure in COMPARED:
        ours, theirs = (documents_of(each.run, measure) for each in (a, b))
        pairs = [(ours[i].record, theirs[j].record, ours[i].group) for i, j in places]
        known = [(x, y, group) for x, y, group in pairs if x.get("said") is not None and y.get("said") is not None]
        again = measure.name in ("f1", "accuracy") and what == "not sure"
        for over, kept in (("", pairs), *([(SAME, known)] if again else [])):
            x, y, groups = zip(*kept, strict=True) if kept else ((), (), ())
            if (comparison := measure.compare(x, y, groups)) is not None:
                yield Change(about, measure, comparison, over)


# --- text -------------------------------------------------------------------------------------------------------------


def with_published(one: ReadRun, model: str | None, published: Sequence[Published]) -> ReadRun:
    """Return a run with the paper's numbers of it: none where it is of another model or protocol."""
    theirs = {p.measure: p for p in published if p.model == model and p.setting == one.variant.setting}
    return replace(one, numbers=replace(one.numbers, published=theirs))


def tables_of(runs: Sequence[ReadRun], changes: Sequence[Change], published: Sequence[Published]) -> list[Table]:
    """Return all tables but that of abstention. What all runs are asked alike is said once, above."""
    short = short_names([a.run.model for a in runs])
    shared = runs[0].variant.asked if len({a.variant.asked for a in runs}) == 1 else ""
    left_out = {"task", *(["asked"] if shared else [])}

    def about(texts: Mapping[str, str]) -> dict[str, str]:
        return {key: text for key, text in texts.items() if key not in left_out}

    rows = {id(a): replace(a.numbers, about=about(a.numbers.about)) for a in runs}
    title = "Detection; positive: hallucinated; over documents with a verdict 0 or 1; behind ± the standard error"
    means = [f"{p.model}, {p.setting}: F1 {format_value(p.value)}" for p in published if p.model in MEANS]
    notes = [*(note for a in runs for note in _unread(a, short)), f"The paper's averages: {'; '.join(means)}"]
    tables = [
        wide_table(
            list(rows.values()),
            MAIN,
            title=f"{title}; documents: {shared}" if shared else title,
            names=short,
            notes=notes,
        )
    ]
    for block, measures in BLOCKS.items():
        there = [
            replace(rows[id(a)], counts={})
            for a in runs
            if (measures is not NOT_SURE or a.variant.not_sure)
            and any(a.numbers.value(measure.name) is not None for measure in measures)
        ]
        if there:
            accuracies = {m.name for m in measures if m.name.startswith("accuracy_")}
            beside = published_by_model(p for p in published if p.measure in accuracies)
            by_category = measures is RECALL or measures is BLOCKS[_BY_CATEGORY]
            tables.append(wide_table(there, measures, title=block, names=short, beside=beside, counts=by_category))
    if changes:
        title = (
            "With less without, paired by document; tested between rows of the data set; max-T: adjusted for all rows"
        )
        shown = [replace(change, about=about(change.about)) for change in changes]
        tables.append(changes_table(shown, title=title, a="with", b="without", names=short))
    return tables


def paper_tables(runs: Sequence[Run]) -> list[Table]:
    """The paper's tables of the runs of MedHallu among these, each beside the paper's model of its name."""
    mine = [run for run in runs if is_medhallu(run)]
    published = read_published(__package__)
    read = [with_published(one, model_of_paper(one.run.model, PATTERNS, {}), published) for one in answered(mine)]
    return tables_of(read, differences(read), published) if read else []


def _unread(one: ReadRun, short: Mapping[str, str]) -> Iterator[str]:
    unread, wrong = (one.numbers.numbers[name] for name in ("unreadable_rate", "f1_unread_wrong"))
    if unread.value:
        yield (
            f"{one.run.task} of {short[one.run.model]}: {PERCENT(unread.value)} of the replies cannot be read; "
            f"F1 {format_number(wrong)} where these count as wrong"
        )
