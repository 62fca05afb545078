"""Med-HallMark's tables out of finished runs: VQA, counterfactual questions and reports, with and without prefixes.

Categories come from the verdicts in the run files. Common wording is measured anew from the stored answers, with the
libraries and models of whoever asks (`wording.settings_by_measure`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.errors import DataError
from hedge_tasks.measures.measure import Measure
from hedge_tasks.measures.paper_tables import Change, ModelNumbers, changes_table, published_by_model, wide_table
from hedge_tasks.measures.published import model_of_paper, read_published
from hedge_tasks.measures.run_measures import Document, compare_documents, documents_of, estimate_of
from hedge_tasks.numbers import PERCENT, Column, Number, Table, format_number
from hedge_tasks.numbers.table import Cell
from hedge_tasks.runs.model_names import short_names
from hedge_tasks.runs.run_files import Run
from hedge_tasks.statistics import estimate_mean
from hedge_tasks.suites.medhallmark import measures, wording
from hedge_tasks.suites.medhallmark.measures import MEDIHALL
from hedge_tasks.suites.medhallmark.released import PARTS
from hedge_tasks.suites.medhallmark.wording import BertScore, InCommon
from hedge_tasks.suites.paper_tables import select, with_published


def _named(*names: str) -> list[Measure]:
    return select([*measures.MEASURES, *wording.MEASURES], names)


SETTINGS: Mapping[str, tuple[str, str]] = {
    "vqa": ("Tables 1 and 6", "VQA: conventional, confidence-weakening (with prefix) and counterfactual questions"),
    "counterfactual": ("Table 7", "counterfactual questions"),
    "irg": ("Tables 2 and 8", "reports"),
    "plain": ("Table 3", "questions without prefix"),
    "weakened": ("Table 3", "the same questions with a confidence-weakening prefix"),
}
"""Which of the paper's rows a number is of: its tables, and what is in it."""

SHORT = _named("bertscore_f1", "meteor", "rouge1_f1", "rouge2_f1", "rougel_f1", "bleu", "medihall", "accuracy")
"""Columns of Tables 1 to 4."""

LONG = _named(
    *("bertscore_recall", "bertscore_precision", "bertscore_f1", "meteor"),
    *(f"rouge{kind}_{part}" for kind in ("1", "2", "l") for part in ("recall", "precision", "f1")),
)
"""Columns of Tables 6 to 8."""

SENTENCES = _named("wrong_sentences", "unjudged_sentences")

CATEGORIES = _named(*(f"share_{name}" for name in MEDIHALL))
"""Bars of Figure 15."""

_ALL = [*dict.fromkeys((*SHORT, *LONG)), *_named("accuracy_unread_wrong"), *SENTENCES, *CATEGORIES]

PATTERNS: Mapping[str, str] = {
    "BLIP2": r"blip2-",
    "InstructBLIP-7b": r"instructblip-vicuna-7b",
    "InstructBLIP-13b": r"instructblip-vicuna-13b",
    "LLaVA1.5-7b": r"llava-(?:v?1\.5)-7b",
    "LLaVA1.5-13b": r"llava-(?:v?1\.5)-13b",
    "LLaVA-Med (SF)": r"llava-?med.*slake",
    "LLaVA-Med (RF)": r"llava-?med.*(?:vqa_?rad|data_rad)",
    "LLaVA-Med (PF)": r"llava-?med.*pathvqa",
    "mPLUG-Owl2": r"mplug-owl2",
    "XrayGPT": r"xraygpt",
    "Mini-gpt4": r"minigpt-?4",
    "RadFM": r"radfm",
}
"""The paper's models, and their names on the hub."""

PUBLISHED = read_published(__package__)
"""The paper's numbers."""


@dataclass(frozen=True)
class SettingNumbers:
    """The answers of one model in one of `SETTINGS`.

    Attributes:
        setting: key of `SETTINGS`.
        answers: how many there are.
        numbers: by measure; about them model, setting and the parts of the data set that they are over. The paper's are
            over all of a setting's.
        documents: by measure; those that have a value, which is in their record.
    """

    setting: str
    answers: int
    numbers: ModelNumbers
    documents: Mapping[str, Sequence[Document]]

    @property
    def model(self) -> str:
        return self.numbers.about["model"]


def is_medhallmark(run: Run) -> bool:
    """Whether a run is of Med-HallMark."""
    documents = run.settings.get("documents")
    return isinstance(documents, Mapping) and documents.get("evaluation") == "medhallmark"


def numbers_of(runs: Sequence[Run]) -> list[SettingNumbers]:
    """Return the numbers of every model in every setting that its runs have answers for.

    Raises:
        DataError: an answer's id is none of the data set's, or two runs of a model have the same questions.
    """
    by_model: dict[str, list[Run]] = {}
    for run in runs:
        by_model.setdefault(run.model, []).append(run)
    return [
        numbers
        for _, runs_of_model in sorted(by_model.items())
        for numbers in _numbers_of_model(_merged(runs_of_model))
    ]


def _merged(runs: Sequence[Run]) -> Run:
    """Return all answers of a model as one run."""
    ids: set[str] = set()
    for run in runs:
        for answers in run.answer_sets:
            if answers.id in ids:
                raise DataError(f"{run.title}: {answers.id} is in another run of this model, too; give one of them")
            if _part(answers) not in PARTS:
                raise DataError(f"{run.title}: {answers.id!r} is no id of Med-HallMark")
            ids.add(answers.id)
    verdicts = {id: verdict for run in runs for id, verdict in run.verdicts.items()}
    return replace(runs[0], answer_sets=tuple(a for run in runs for a in run.answer_sets), verdicts=verdicts)


def _numbers_of_model(run: Run) -> Iterator[SettingNumbers]:
    for setting, answer_sets in _by_setting(run.answer_sets).items():
        if answer_sets:
            documents = {m.name: documents_of(replace(run, answer_sets=tuple(answer_sets)), m) for m in _ALL}
            numbers = {m.name: _number(m, documents[m.name]) for m in _ALL}
            parts = "+".join(part for part in PARTS if any(_part(answers) == part for answers in answer_sets))
            labels = {"model": run.model, "setting": setting, "parts": parts}
            valued = {m.name: _valued(m, documents[m.name]) if numbers[m.name].defined else [] for m in _ALL}
            yield SettingNumbers(
                setting, len(answer_sets), ModelNumbers(labels, numbers, counts={"answers": len(answer_sets)}), valued
            )


def _part(answers: AnswerSet) -> str:
    return answers.id.partition("-")[0]


def _weakened(answers: AnswerSet) -> bool:
    return answers.id.endswith("-weakened")


def _by_setting(sets: Sequence[AnswerSet]) -> dict[str, list[AnswerSet]]:
    prefixed = {a.id.removesuffix("-weakened") for a in sets if _weakened(a)}
    return {
        "vqa": [a for a in sets if _part(a) != "irg" and (_part(a) != "confidence" or _weakened(a))],
        "counterfactual": [a for a in sets if _part(a) == "counterfactual"],
        "irg": [a for a in sets if _part(a) == "irg"],
        "plain": [a for a in sets if _part(a) == "confidence" and a.id in prefixed],
        "weakened": [a for a in sets if _weakened(a)],
    }


def _valued(measure: Measure, documents: Sequence[Document]) -> list[Document]:
    """Return the documents that have a value."""
    if isinstance(measure, BertScore):
        records = measure.scored([document.record for document in documents])
        documents = [document._replace(record=record) for document, record in zip(documents, records, strict=True)]
    return [document for document in documents if document.record["value"] is not None]


def _number(measure: Measure, documents: Sequence[Document]) -> Number:
    """Return the number: of verdicts in [0, 1], with the interval that reports have; of wording, with Student's."""
    number = estimate_of(measure, documents)
    if not isinstance(measure, InCommon) or not number.defined:
        return number
    valued = _valued(measure, documents)
    return estimate_mean([document.record["value"] for document in valued], [document.group for document in valued])


def prefix_effects(rows: Sequence[SettingNumbers]) -> list[Change]:
    """Measures with the prefix less without, over the questions that have both (Table 3); tested between images."""
    by_place = {(row.model, row.setting): row for row in rows}
    changes = []
    for (model, setting), weakened in by_place.items():
        plain = by_place.get((model, "plain"))
        if setting != "weakened" or plain is None:
            continue
        for measure in SHORT:
            weakened_documents = [
                d._replace(id=d.id.removesuffix("-weakened")) for d in weakened.documents[measure.name]
            ]
            comparison = compare_documents(measure, weakened_documents, plain.documents[measure.name])
            if comparison is not None:
                changes.append(Change({"model": model}, measure, comparison))
    return changes


# --- text and files ---------------------------------------------------------------------------------------------------


def beside_paper(rows: Sequence[SettingNumbers], names: Mapping[str, str]) -> list[SettingNumbers]:
    """Return rows with the paper's numbers of the same model and setting.

    Args:
        names: the paper's model -> text in the name of a user's copy; see `model_of_paper`.
    """
    models = [(row, model_of_paper(row.model, PATTERNS, names)) for row in rows]
    return [replace(row, numbers=with_published(row.numbers, PUBLISHED, model, row.setting)) for row, model in models]


def tables_of(rows: Sequence[SettingNumbers], effects: Sequence[Change], names: Mapping[str, str]) -> list[Table]:
    """Return all tables but that of sentences.

    Args:
        names: short names of models.
    """
    tables = []
    for setting, (where, what) in SETTINGS.items():
        of_setting = [_without(row.numbers, "setting") for row in rows if row.setting == setting]
        beside = published_by_model(p for p in PUBLISHED if p.setting == setting)
        blocks = {f"{where}: {what}": SHORT}
        if setting in ("vqa", "counterfactual", "irg"):
            blocks[f"{where}, in detail"] = LONG
        if of_setting:
            tables += [
                wide_table(of_setting, columns, title=title, names=names, beside=beside)
                for title, columns in blocks.items()
            ]
    tables += [*_reports(rows, names), *_categories(rows, names)]
    if effects:
        title = "With the prefix less without, over the same questions, tested between images"
        tables.append(changes_table(effects, title=title, a="with prefix", b="without", names=names, n="questions"))
    return tables


def paper_tables(runs: Sequence[Run]) -> list[Table]:
    """Return the paper's tables of the runs of Med-HallMark among these, each beside the paper's model of its name."""
    rows = beside_paper(numbers_of(list(filter(is_medhallmark, runs))), {})
    return tables_of(rows, prefix_effects(rows), short_names([row.model for row in rows])) if rows else []


def _without(numbers: ModelNumbers, *keys: str) -> ModelNumbers:
    return replace(numbers, about={key: text for key, text in numbers.about.items() if key not in keys})


def _reports(rows: Sequence[SettingNumbers], names: Mapping[str, str]) -> Iterator[Table]:
    reports = [row.numbers for row in rows if row.setting == "irg"]
    if any(numbers.value("wrong_sentences") is not None for numbers in reports):
        columns = [Column("model"), Column("answers", "reports"), Column("wrong_sentences", stderr=True)]
        columns += [Column("any", "reports with one"), Column("unjudged_sentences", SENTENCES[1].title, stderr=True)]
        lines: list[dict[str, Cell]] = []
        for report in reports:
            accuracy = report.value("accuracy")
            any_wrong = None if accuracy is None else 1 - accuracy
            labels: dict[str, Cell] = {"model": names[report.about["model"]], **report.counts, "any": any_wrong}
            lines.append({**labels, **{m.name: report.numbers[m.name] for m in SENTENCES}})
        yield Table(columns, lines, title="Sentences of reports; shares are means over reports")


def _categories(rows: Sequence[SettingNumbers], names: Mapping[str, str]) -> Iterator[Table]:
    judged = [
        replace(_without(row.numbers, "parts"), counts={})
        for row in rows
        if row.setting in ("vqa", "irg") and row.numbers.value("medihall") is not None
    ]
    if judged:
        headings = {m.name: m.title.removeprefix("share of ") for m in CATEGORIES}
        yield wide_table(
            judged, CATEGORIES, title="Shares of the categories (Figure 15)", names=names, headings=headings
        )


def reasons_of(rows: Sequence[SettingNumbers], names: Mapping[str, str]) -> list[str]:
    """Say which rows have no label, and what is undefined for what reason."""
    lines: dict[str, None] = {}
    for row in rows:
        numbers = row.numbers.numbers
        if left := row.answers - numbers["accuracy"].n:
            wrong = format_number(numbers["accuracy_unread_wrong"], stderr=True)
            where = SETTINGS[row.setting][1].partition(":")[0]
            text = f"{PERCENT(left / row.answers)} of the answers have no label; accuracy {wrong} where these are wrong"
            lines[f"{names[row.model]}, {where}: {text}"] = None
        for m in dict.fromkeys((*SHORT, *LONG)):
            if not numbers[m.name].defined:
                lines[f"{names[row.model]}: {m.title} is undefined: {numbers[m.name].reason}"] = None
    return list(lines)


def answer_rows(rows: Sequence[SettingNumbers]) -> Table:
    """One row an answer with its measures, as in Table 4."""
    lines: list[dict[str, Cell]] = []
    for row in rows:
        if row.setting in ("vqa", "irg", "plain"):
            by_measure = {m.name: {d.id: d.record["value"] for d in row.documents[m.name]} for m in SHORT}
            ids = dict.fromkeys(d.id for m in SHORT for d in row.documents[m.name])
            lines += [
                {"model": row.model, "id": id, **{name: values.get(id) for name, values in by_measure.items()}}
                for id in ids
            ]
    return Table([], lines)
