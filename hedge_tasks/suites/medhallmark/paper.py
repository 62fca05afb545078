"""Med-HallMark's tables out of finished runs: a row a model and kind of questions, with and without prefixes.

Categories come from the verdicts in the run files. Common wording is measured anew from the stored answers, with the
libraries and models of whoever asks (`wording.settings_by_measure`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.errors import DataError
from hedge_tasks.measures.measure import Measure
from hedge_tasks.measures.run_measures import documents_of, estimate_of, evaluation_of
from hedge_tasks.numbers import Number
from hedge_tasks.runs.run_files import Run
from hedge_tasks.statistics import estimate_mean
from hedge_tasks.suites.medhallmark import measures, wording
from hedge_tasks.suites.medhallmark.released import PARTS
from hedge_tasks.suites.medhallmark.wording import InCommon, settings_by_measure
from hedge_tasks.suites.papers import Paper, PaperRow

OTHER = "other"
"""Questions whose id names none of the data set's parts, as in a set of one's own: beside none of the paper's rows."""

_MEASURES = (*measures.MEASURES, *wording.MEASURES)


def rows_of(runs: Sequence[Run]) -> Iterator[PaperRow]:
    """Yield the rows of every model in every setting that its runs have answers for.

    Raises:
        DataError: two runs of a model have the same questions.
    """
    notes = [f"{measure}: {settings}" for measure, settings in settings_by_measure().items()]
    by_model: dict[str, list[Run]] = {}
    for run in runs:
        if evaluation_of(run.settings) == "medhallmark":
            by_model.setdefault(run.model, []).append(run)
    for model, of_model in sorted(by_model.items()):
        merged = _merged(of_model)
        for setting, sets in _by_setting(merged.answer_sets).items():
            if sets:
                about = {"parts": "+".join(part for part in (*PARTS, OTHER) if any(_part(a) == part for a in sets))}
                of_setting = replace(merged, answer_sets=tuple(sets))
                numbers = {measure.name: _number(of_setting, measure) for measure in _MEASURES}
                yield PaperRow(model, setting, numbers, about, {"answers": len(sets)}, notes)


def _merged(runs: Sequence[Run]) -> Run:
    """Return all answers of a model as one run."""
    sets = {answers.id: answers for run in runs for answers in run.answer_sets}
    if len(sets) < sum(len(run.answer_sets) for run in runs):
        raise DataError(f"{runs[0].title}: another run of this model has the same questions; give one of them")
    verdicts = {id: verdict for run in runs for id, verdict in run.verdicts.items()}
    return replace(runs[0], answer_sets=tuple(sets.values()), verdicts=verdicts)


def _part(answers: AnswerSet) -> str:
    part = answers.id.partition("-")[0]
    return part if part in PARTS else OTHER


def _by_setting(sets: Sequence[AnswerSet]) -> dict[str, list[AnswerSet]]:
    prefixed = {a.id.removesuffix("-weakened") for a in sets if _weakened(a)}
    return {
        "vqa": [a for a in sets if _part(a) in ("conventional", "counterfactual") or _weakened(a)],
        "counterfactual": [a for a in sets if _part(a) == "counterfactual"],
        "irg": [a for a in sets if _part(a) == "irg"],
        "plain": [a for a in sets if _part(a) == "confidence" and a.id in prefixed],
        "weakened": [a for a in sets if _weakened(a)],
        OTHER: [a for a in sets if _part(a) == OTHER],
    }


def _weakened(answers: AnswerSet) -> bool:
    return answers.id.endswith("-weakened") and _part(answers) != OTHER


def _number(run: Run, measure: Measure) -> Number:
    """Return the number: of verdicts in [0, 1], with the interval that reports have; of wording, with Student's."""
    documents = documents_of(run, measure)
    number = estimate_of(measure, documents)
    if not isinstance(measure, InCommon) or not number.defined:
        return number
    records = measure.scored([document.record for document in documents])
    valued = [(r["value"], d.group) for r, d in zip(records, documents, strict=True) if r["value"] is not None]
    return estimate_mean([float(value) for value, _ in valued], [group for _, group in valued])


PAPER = Paper("medhallmark", __package__, rows_of, _MEASURES)
