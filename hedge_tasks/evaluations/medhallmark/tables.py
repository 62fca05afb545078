"""Med-HallMark's tables out of finished runs: VQA, counterfactual questions and reports, with and without prefixes.

Categories come from the verdicts in the run files. Common wording is measured anew from the stored answers, with the
libraries and models of whoever asks (`wording.stated`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.errors import DataError
from hedge_tasks.evaluations.medhallmark.mediscore import MEDIHALL, MeanMetric
from hedge_tasks.evaluations.medhallmark.mediscore import METRICS as FROM_VERDICTS
from hedge_tasks.evaluations.medhallmark.wording import METRICS as FROM_WORDING
from hedge_tasks.evaluations.medhallmark.wording import BertScoreMetric, NotHere
from hedge_tasks.io.tables import as_csv
from hedge_tasks.measures.published import Published
from hedge_tasks.runs.run_files import Run
from hedge_tasks.statistics import Comparison, compare_sums, estimate_mean, estimate_of_sums, ratio
from hedge_tasks.statistics.sums import of_values

PARTS = ("conventional", "confidence", "counterfactual", "irg")

SETTINGS: Mapping[str, tuple[str, str]] = {
    "vqa": ("Tables 1 and 6", "VQA: conventional, confidence-weakening (with prefix) and counterfactual questions"),
    "counterfactual": ("Table 7", "counterfactual questions"),
    "irg": ("Tables 2 and 8", "reports"),
    "plain": ("Table 3", "questions without prefix"),
    "weakened": ("Table 3", "the same questions with a confidence-weakening prefix"),
}
"""Which of the paper's rows a number is of: its tables, and what is in it."""

SHORT = ("bertscore_f1", "meteor", "rouge1_f1", "rouge2_f1", "rougel_f1", "bleu", "medihall", "accuracy")
"""Columns of Tables 1 to 4."""

LONG = (
    *("bertscore_recall", "bertscore_precision", "bertscore_f1", "meteor"),
    *(f"rouge{kind}_{part}" for kind in ("1", "2", "l") for part in ("recall", "precision", "f1")),
)
"""Columns of Tables 6 to 8."""

UNREAD = "accuracy_unread_wrong"

SENTENCES = ("wrong_sentences", "unjudged_sentences")

CATEGORIES = tuple(f"share_{name}" for name in MEDIHALL)
"""Bars of Figure 15."""

MEASURES = (*dict.fromkeys((*SHORT, *LONG)), UNREAD, *SENTENCES, *CATEGORIES)

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


class Value(NamedTuple):
    """A number of one answer, and the image that it is about."""

    id: str
    value: float
    group: str | None


@dataclass(frozen=True)
class Cell:
    """A mean over answers with standard error and 95 % interval between images, or why there is none.

    Of what comes from verdicts, the interval is that of reports; of wording, Student's.
    """

    value: float | None
    stderr: float | None = None
    interval: tuple[float, float] | None = None
    n: int = 0
    reason: str | None = None


@dataclass(frozen=True)
class Numbers:
    """The numbers of one model in one of `SETTINGS`.

    Attributes:
        model: of the runs.
        setting: key of `SETTINGS`.
        parts: of the data set that it is over; the paper's is over all of a setting's.
        answers: number of answers.
        cells: by measure.
        values: measure -> what each answer has.
    """

    model: str
    setting: str
    parts: tuple[str, ...]
    answers: int
    cells: Mapping[str, Cell]
    values: Mapping[str, Sequence[Value]]

    def facts(self) -> dict[str, Any]:
        """For JSON."""
        about = {"model": self.model, "setting": self.setting, "parts": list(self.parts), "answers": self.answers}
        return {**about, "cells": {name: vars(cell) for name, cell in self.cells.items()}}


@dataclass(frozen=True)
class _Item:
    """One answered question."""

    part: str
    weakened: bool
    answers: AnswerSet
    verdict: Mapping[str, Any]


def is_medhallmark(run: Run) -> bool:
    """Whether a run is of Med-HallMark."""
    documents = run.settings.get("documents")
    return isinstance(documents, Mapping) and documents.get("evaluation") == "medhallmark"


def numbers_of(runs: Sequence[Run]) -> list[Numbers]:
    """The numbers of every model in every setting that its runs have answers for.

    Raises:
        DataError: an answer's id is none of the data set's, or two runs of a model have the same questions.
    """
    by_model: dict[str, list[Run]] = {}
    for run in runs:
        by_model.setdefault(run.model, []).append(run)
    return [made for model, of in sorted(by_model.items()) for made in _of_model(model, of)]


def _of_model(model: str, runs: Sequence[Run]) -> Iterator[Numbers]:
    items: dict[str, _Item] = {}
    for run in runs:
        for answers in run.answer_sets:
            if answers.id in items:
                raise DataError(f"{run.title}: {answers.id} is in another run of this model, too; give one of them")
            items[answers.id] = _item(run, answers)
    for setting, of in _settings(list(items.values())).items():
        if of:
            values = {name: _values(name, of) for name in MEASURES}
            cells = {name: _cell(name, found) for name, found in values.items()}
            known = {name: [] if isinstance(found, str) else found for name, found in values.items()}
            parts = tuple(part for part in PARTS if any(item.part == part for item in of))
            yield Numbers(model, setting, parts, len(of), cells, known)


def _item(run: Run, answers: AnswerSet) -> _Item:
    part = answers.id.partition("-")[0]
    if part not in PARTS:
        raise DataError(f"{run.title}: {answers.id!r} is no id of Med-HallMark")
    # The judge's votes and category count together with the label, which people may have given since.
    verdict = {**(run.verdicts.get(answers.id) or {}), "label": answers.label}
    return _Item(part, answers.id.endswith("-weakened"), answers, verdict)


def _settings(items: Sequence[_Item]) -> dict[str, list[_Item]]:
    prefixed = {item.answers.id.removesuffix("-weakened") for item in items if item.weakened}
    return {
        "vqa": [i for i in items if i.part != "irg" and (i.part != "confidence" or i.weakened)],
        "counterfactual": [i for i in items if i.part == "counterfactual"],
        "irg": [i for i in items if i.part == "irg"],
        "plain": [i for i in items if i.part == "confidence" and i.answers.id in prefixed],
        "weakened": [i for i in items if i.weakened],
    }


def _values(name: str, items: Sequence[_Item]) -> list[Value] | str:
    """What each answer has, or why none has anything."""
    metric = {**FROM_VERDICTS, **FROM_WORDING}[name]
    assert isinstance(metric, MeanMetric)
    records = []
    for item in items:
        document = {"baseline_answer": item.answers.baseline.text, "reference": item.answers.reference or ""}
        records.append({**metric.record(_Scores(item.answers), item.verdict, document), "id": item.answers.id})  # type: ignore[arg-type]
    if isinstance(metric, BertScoreMetric):
        try:
            records = metric.scored(records)
        except NotHere as error:
            return str(error)
    missing = next((record["missing"] for record in records if "missing" in record), None)
    if missing is not None:
        return str(missing)
    found = [Value(r["id"], float(r["value"]), r["group"]) for r in records if r["value"] is not None]
    return found or metric.why(records)


class _Scores:
    """What a metric wants to know of an answer besides its verdict."""

    def __init__(self, answers: AnswerSet) -> None:
        self.label, self.group = answers.label, answers.group


def _cell(name: str, found: Sequence[Value] | str) -> Cell:
    if isinstance(found, str):
        return Cell(None, reason=found)
    if name in FROM_VERDICTS:  # in [0, 1], with the interval that reports and comparisons have
        share = estimate_of_sums(of_values([v.value for v in found]), [_group(v) for v in found], ratio)
        return Cell(share.value, share.stderr, share.interval, share.n, share.reason)
    mean = estimate_mean([v.value for v in found], [v.group for v in found])
    return Cell(mean.value, mean.stderr, mean.interval, mean.n, mean.reason)


# --- with and without prefix ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PrefixEffect:
    """A measure with the prefix less without, over the questions that have both (Table 3)."""

    model: str
    measure: str
    comparison: Comparison


def prefix_effects(found: Sequence[Numbers]) -> list[PrefixEffect]:
    """Of every model with both; tested between images."""
    by_place = {(n.model, n.setting): n for n in found}
    made = []
    for (model, setting), weakened in by_place.items():
        plain = by_place.get((model, "plain"))
        if setting != "weakened" or plain is None:
            continue
        for name in SHORT:
            without = {v.id: v for v in plain.values[name]}
            pairs = [(v, w) for v in weakened.values[name] if (w := without.get(v.id.removesuffix("-weakened")))]
            if pairs:
                made.append(PrefixEffect(model, name, _compared(pairs)))
    return made


def _compared(pairs: Sequence[tuple[Value, Value]]) -> Comparison:
    a, b = (of_values([pair[side].value for pair in pairs]) for side in (0, 1))
    return compare_sums(a, b, [_group(v) for v, _ in pairs], ratio)


def _group(value: Value) -> tuple[str, str]:
    return ("image", value.group) if value.group else ("question", value.id)


# --- files ------------------------------------------------------------------------------------------------------------


def published_of(numbers: Numbers, model: str | None, published: Sequence[Published]) -> dict[str, Published]:
    """The paper's numbers for a model in a setting, by measure. Where two of its tables have one, the first counts."""
    found: dict[str, Published] = {}
    for p in published:
        if p.model == model and p.setting == numbers.setting:
            found.setdefault(p.measure, p)
    return found


def rows_of(found: Sequence[Numbers], beside: Sequence[Mapping[str, Published]]) -> list[list[object]]:
    """One row a number, with a header: what `--out` writes."""
    header = ["model", "setting", "parts", "measure", "value", "stderr", "low", "high", "answers", "reason"]
    rows: list[list[object]] = [[*header, "paper", "difference", "source"]]
    for numbers, paper in zip(found, beside, strict=True):
        for name, cell in numbers.cells.items():
            low, high = cell.interval or (None, None)
            theirs = paper.get(name)
            less = None if theirs is None or cell.value is None else cell.value - theirs.value
            about = [numbers.model, numbers.setting, "+".join(numbers.parts), name]
            ours = [cell.value, cell.stderr, low, high, cell.n, cell.reason]
            rows.append([*about, *ours, theirs and theirs.value, less, theirs and theirs.table])
    return rows


def answer_rows(found: Sequence[Numbers]) -> list[list[object]]:
    """One row an answer with its measures, as in Table 4."""
    rows: list[list[object]] = [["model", "id", *SHORT]]
    for numbers in found:
        if numbers.setting in ("vqa", "irg", "plain"):
            of = {name: {v.id: v.value for v in numbers.values[name]} for name in SHORT}
            ids = dict.fromkeys(v.id for name in SHORT for v in numbers.values[name])
            rows += [[numbers.model, id, *(of[name].get(id) for name in SHORT)] for id in ids]
    return rows


csv_of = as_csv
