"""MedHallu's tables out of finished runs, with intervals, and paired differences of what was shown and offered.

Everything is computed anew from the verdicts in the run files, so no model is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.errors import DataError
from hedge_tasks.measures.measure import Measure, SumsMeasure
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
from hedge_tasks.measures.published import model_of_paper, read_published
from hedge_tasks.measures.run_measures import documents_of
from hedge_tasks.numbers import PERCENT, Table, format_number, format_value
from hedge_tasks.replies.parsing import HEDGE
from hedge_tasks.runs.model_names import short_names
from hedge_tasks.runs.run_files import Run
from hedge_tasks.suites.medhallu.documents import ABOUT, CATEGORIES, verdict_columns
from hedge_tasks.suites.medhallu.measures import LEVELS, MEASURES
from hedge_tasks.suites.medhallu.mesh import MESH
from hedge_tasks.suites.paper_tables import judge_settings, select, with_published
from hedge_tasks.suites.readings import vote_of

_FROM_REPLIES = [m for m in MEASURES if isinstance(m, SumsMeasure) and getattr(m, "parsing", None) is None]
"""Numbers of the verdicts of a run file, of whatever reading."""


def _named(*names: str) -> list[Measure]:
    return select(MEASURES, names)


MAIN = _named("f1", "precision", "recall", "accuracy", *(f"f1_{level}" for level in LEVELS), "response_rate")

NOT_SURE = _named("not_sure_rate", *(f"not_sure_rate_{level}" for level in LEVELS))

_BY_CATEGORY = "Accuracy by category of the row's hallucination"
RECALL = _named(*(f"recall_{kind}" for kind in CATEGORIES))

BLOCKS: Mapping[str, Sequence[Measure]] = {
    "Precision and recall by difficulty": [
        *_named(*(f"precision_{level}" for level in LEVELS)),
        *_named(*(f"recall_{level}" for level in LEVELS)),
    ],
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
"""Rows of averages in the paper's table."""

PUBLISHED = read_published(__package__)
"""The paper's numbers."""


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
        """Name of the setting in `published.csv`."""
        parts = [name for name, present in (("knowledge", self.knowledge), ("not sure", self.not_sure)) if present]
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
    return judge_settings(run).get("judge") == "medhallu"


def read_runs(runs: Sequence[Run], parsing: str | None = None) -> list[ReadRun]:
    """Return finished runs with their numbers, by model and variant.

    Args:
        parsing: whose reading of the replies counts; None for the run's own, which may be a judge model's in part.

    Raises:
        DataError: a run is none of MedHallu, or of an edition that kept less.
    """
    return sorted((_read_run(run, parsing) for run in runs), key=lambda a: (a.run.model, a.variant, a.run.task))


def _read_run(run: Run, parsing: str | None) -> ReadRun:
    if not is_medhallu(run):
        raise DataError(f"{run.title} is no run of MedHallu")
    verdicts = {answers.id: _verdict(run, answers, parsing) for answers in run.answer_sets}
    columns = {answers.id: _columns(run, answers) for answers in run.answer_sets}
    read, variant = replace(run, verdicts=verdicts, columns=columns), _variant(run, parsing)
    labels = {"model": run.model, "task": run.task, "asked": variant.asked, "shown, offered": variant.setting}
    numbers = numbers_in(read, _FROM_REPLIES)
    return ReadRun(read, variant, ModelNumbers(labels, numbers, counts={"documents": len(run.answer_sets)}))


def _variant(run: Run, parsing: str | None) -> Variant:
    documents = run.settings["documents"]
    options = documents.get("options") if isinstance(documents.get("options"), Mapping) else {}
    prompt = str(documents.get("prompt") or "").rpartition("/")[0].rpartition("/")[2] or "medhallu"
    data = "artificial" if "artificial" in run.task else "labeled"
    which_answers = str(options.get("show", "random")) + (f" {options['seed']}" if options.get("seed") else "")
    read = parsing or str(judge_settings(run).get("parsing", HEDGE))
    asked = ", ".join(
        [data, which_answers, *([prompt] if prompt != "medhallu" else []), *([read] if read != HEDGE else [])]
    )
    return Variant(asked, documents.get("context") is not None, bool(judge_settings(run).get("not_sure")))


def _verdict(run: Run, answers: AnswerSet, parsing: str | None) -> Mapping[str, Any]:
    verdict = run.verdicts.get(answers.id)
    if verdict is None or not all(column in verdict for column in ABOUT):
        raise DataError(f"{run.title}, {answers.id}: its verdict lacks {' or '.join(ABOUT)}; it is of an older edition")
    if parsing is None:
        return verdict
    try:
        return {**verdict, "category": vote_of(verdict, parsing).get("category")}
    except (KeyError, TypeError, StopIteration):
        raise DataError(f"{run.title}, {answers.id}: no reading {parsing!r} is kept with its verdict") from None


def _columns(run: Run, answers: AnswerSet) -> dict[str, Any]:
    if answers.reference not in ("0", "1") or answers.group is None:
        raise DataError(f"{run.title}, {answers.id}: no truth or no row is recorded")
    kept_columns = {column: run.verdicts[answers.id][column] for column in ABOUT}
    own_columns = {"truth": answers.reference, "row": answers.group, "difficulty": answers.question_type}
    return {**own_columns, **kept_columns, **verdict_columns(answers)}


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
    return adjusted([change for a, b, what, shared in _pairs(runs) for change in _changes(a, b, what, shared)])


def _pairs(runs: Sequence[ReadRun]) -> Iterator[tuple[ReadRun, ReadRun, str, str]]:
    by_place = {(a.run.model, a.variant): a for a in runs}
    for (model, variant), run in by_place.items():
        for what, shared, baseline in (
            ("knowledge", "not sure" if variant.not_sure else "", variant._replace(knowledge=False)),
            ("not sure", "knowledge" if variant.knowledge else "", variant._replace(not_sure=False)),
        ):
            if baseline != variant and (model, baseline) in by_place:
                yield run, by_place[model, baseline], what, shared


def _changes(a: ReadRun, b: ReadRun, what: str, shared: str) -> Iterator[Change]:
    places = paired(a, b)
    labels = {"model": a.run.model, "asked": a.variant.asked, "what": what, "given": shared}
    for measure in COMPARED:
        documents_a, documents_b = (documents_of(side.run, measure) for side in (a, b))
        pairs = [(documents_a[i].record, documents_b[j].record, documents_a[i].group) for i, j in places]
        answered_pairs = [
            (x, y, group) for x, y, group in pairs if x.get("said") is not None and y.get("said") is not None
        ]
        twice = measure.name in ("f1", "accuracy") and what == "not sure"
        for over, counted in (("", pairs), *([(SAME, answered_pairs)] if twice else [])):
            x, y, groups = zip(*counted, strict=True) if counted else ((), (), ())
            if (comparison := measure.compare(x, y, groups)) is not None:
                yield Change(labels, measure, comparison, over)


# --- text -------------------------------------------------------------------------------------------------------------


def beside_paper(runs: Sequence[ReadRun], names: Mapping[str, str]) -> list[ReadRun]:
    """Return runs with the paper's numbers of them: none where one is of another model or protocol.

    Args:
        names: the paper's model -> text in the name of a user's copy; see `model_of_paper`.
    """
    paired_models = [(run, model_of_paper(run.run.model, PATTERNS, names)) for run in runs]
    return [
        replace(run, numbers=with_published(run.numbers, PUBLISHED, model, run.variant.setting))
        for run, model in paired_models
    ]


def tables_of(runs: Sequence[ReadRun], changes: Sequence[Change]) -> list[Table]:
    """Return all tables but that of abstention. What all runs are asked alike is said once, above."""
    short = short_names([a.run.model for a in runs])
    shared = runs[0].variant.asked if len({a.variant.asked for a in runs}) == 1 else ""
    left_out = {"task", *(["asked"] if shared else [])}

    def about(texts: Mapping[str, str]) -> dict[str, str]:
        return {key: text for key, text in texts.items() if key not in left_out}

    rows = {id(a): replace(a.numbers, about=about(a.numbers.about)) for a in runs}
    title = "Detection; positive: hallucinated; over documents with a verdict 0 or 1; behind ± the standard error"
    means = [f"{p.model}, {p.setting}: F1 {format_value(p.value)}" for p in PUBLISHED if p.model in MEANS]
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
        defined = [
            replace(rows[id(a)], counts={})
            for a in runs
            if (measures is not NOT_SURE or a.variant.not_sure)
            and any(a.numbers.value(measure.name) is not None for measure in measures)
        ]
        if defined:
            accuracies = {m.name for m in measures if m.name.startswith("accuracy_")}
            beside = published_by_model(p for p in PUBLISHED if p.measure in accuracies)
            by_category = measures is RECALL or measures is BLOCKS[_BY_CATEGORY]
            tables.append(wide_table(defined, measures, title=block, names=short, beside=beside, counts=by_category))
    if changes:
        title = (
            "With less without, paired by document; tested between rows of the data set; max-T: adjusted for all rows"
        )
        labelled = [replace(change, about=about(change.about)) for change in changes]
        tables.append(changes_table(labelled, title=title, a="with", b="without", names=short))
    return tables


def paper_tables(runs: Sequence[Run]) -> list[Table]:
    """Return the paper's tables of the runs of MedHallu among these, each beside the paper's model of its name."""
    read = beside_paper(read_runs(list(filter(is_medhallu, runs))), {})
    return tables_of(read, differences(read)) if read else []


def _unread(run: ReadRun, short: Mapping[str, str]) -> Iterator[str]:
    unread, wrong = (run.numbers.numbers[name] for name in ("unreadable_rate", "f1_unread_wrong"))
    if unread.value:
        yield (
            f"{run.run.task} of {short[run.run.model]}: {PERCENT(unread.value)} of the replies cannot be read; "
            f"F1 {format_number(wrong)} where these count as wrong"
        )
