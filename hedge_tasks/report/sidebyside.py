"""The answers of several models to the same question beside each other, as data for the page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.detectors.pipeline import name_of
from hedge_tasks.report.analysis import Analysis
from hedge_tasks.report.texts import clean, json_number

BUDGET = 3_000_000
"""Characters of all answers and reasons together."""

READ_WITHOUT_SCRIPT = 40
"""Questions that readers without script find, of each task."""

_LONGEST, _SHORTEST = 1000, 60
_QUESTION = 1000
_DIGITS = 4

Asked = tuple[str, str, str]
"""Id, question and reference of an answer: what makes two runs' answers those to the same question."""


def answers_side_by_side(
    analyses: Sequence[Analysis], names: Sequence[str], *, most: int = 2000, budget: int = BUDGET
) -> list[dict[str, Any]]:
    """The baseline answers of all tasks that several runs are of; an entry a task. Texts are raw: cleaned and cut.

    Args:
        names: short names of the models, or of the runs, within their tasks.
        most: questions of a run that are shown, the first ones.
        budget: characters of answers and reasons; the more there are, the shorter each is cut.

    Returns:
        Of each task `{"task", "runs", "clusterings", "scores", "questions"}`. A run has its place on the page, its
        names, and columns with an entry a question (None where it was not asked): `said`, `labels`, `reasons` (places
        in `texts`), and `scores` by clustering and detector. Where runs ask something else under one id, or have
        another reference, each wording is a question; `wording` numbers those after the first.
    """
    tasks = dict.fromkeys(a.run.task for a in analyses)
    of_task = {task: [i for i, a in enumerate(analyses) if a.run.task == task] for task in tasks}
    shared = {task: places for task, places in of_task.items() if len(places) > 1}
    total = sum(min(len(analyses[i].run.answer_sets), most) for places in shared.values() for i in places)
    longest = max(_SHORTEST, min(_LONGEST, budget // max(2 * total, 1)))
    return [_task(task, {i: analyses[i] for i in places}, names, most, longest) for task, places in shared.items()]


def read_without_script(tasks: Sequence[Mapping[str, Any]], most: int = READ_WITHOUT_SCRIPT) -> list[dict[str, Any]]:
    """Of each task the questions for readers without script: those first on which the models disagree.

    Args:
        tasks: what `answers_side_by_side` gives.

    Returns:
        `task`, `models` and `rows`: question, reference, and of each model answer and label; None where not asked.
    """
    return [_without_script(task, most) for task in tasks]


def _without_script(task: Mapping[str, Any], most: int) -> dict[str, Any]:
    runs, questions = task["runs"], task["questions"]

    def agree(i: int) -> bool:
        return len({run["labels"][i] for run in runs} - {None}) < 2

    rows = []
    for i in sorted(range(len(questions)), key=agree)[:most]:
        answers = [None if run["said"][i] is None else (run["said"][i], run["labels"][i]) for run in runs]
        rows.append((questions[i].get("question") or questions[i]["id"], questions[i].get("reference", ""), answers))
    return {"task": task["task"], "models": [run["name"] for run in runs], "rows": rows}


def _task(task: str, analyses: Mapping[int, Analysis], names: Sequence[str], most: int, longest: int) -> dict[str, Any]:
    by_question: dict[Asked, AnswerSet] = {}
    for analysis in analyses.values():
        for answers in analysis.run.answer_sets[:most]:
            by_question.setdefault(_asked(answers), answers)
    # Runs on other editions of a data set ask something else under the same id.
    wordings: dict[str, list[Asked]] = {}
    for key in by_question:
        wordings.setdefault(key[0], []).append(key)
    clusterings = dict.fromkeys(name for a in analyses.values() for name in a.scores)
    detectors = list(dict.fromkeys(n for a in analyses.values() for n in a.detectors))
    return {
        "task": task,
        "clusterings": list(clusterings),
        "scores": {name: name_of(name) for name in detectors},
        "questions": [_question(answers, wordings[key[0]].index(key) + 1) for key, answers in by_question.items()],
        "runs": [_run(i, names[i], analysis, list(by_question), longest) for i, analysis in analyses.items()],
    }


def _asked(answers: AnswerSet) -> Asked:
    return answers.id, answers.question or "", answers.reference or ""


def _question(answers: AnswerSet, wording: int) -> dict[str, str]:
    fields = {
        "id": clean(answers.id, 200),
        "question": clean(answers.question or "", _QUESTION),
        "reference": clean(answers.reference or "", _QUESTION),
        "type": clean(answers.question_type or "", 100),
        "wording": str(wording) if wording > 1 else "",
    }
    return {key: value for key, value in fields.items() if value}


def _run(place: int, name: str, analysis: Analysis, questions: Sequence[Asked], longest: int) -> dict[str, Any]:
    by_key = {_asked(a): a for a in analysis.run.answer_sets}
    sets = [by_key.get(key) for key in questions]
    ids = [None if a is None else a.id for a in sets]
    verdicts = [{} if id is None else analysis.run.verdicts.get(id) or {} for id in ids]
    reasons = [clean(str(verdict.get("reason") or ""), longest) for verdict in verdicts]
    texts = list(dict.fromkeys(reasons))
    number = {text: i for i, text in enumerate(texts)}
    return {
        "run": place,
        "name": name,
        "model": clean(analysis.run.model, 200),
        "said": [None if a is None else clean(a.baseline.text, longest) for a in sets],
        "labels": [None if a is None else a.label for a in sets],
        "texts": texts,
        "reasons": [number[reason] for reason in reasons],
        "scores": {clustering: _scores(analysis, clustering, ids) for clustering in analysis.scores},
    }


def _scores(analysis: Analysis, clustering: str, ids: Iterable[str | None]) -> dict[str, list[float | None]]:
    by_id = {scores.id: scores for scores in analysis.scores[clustering]}
    scored = [None if id is None else by_id.get(id) for id in ids]
    columns = {
        name: [None if scores is None else json_number(scores.get(name), _DIGITS) for scores in scored]
        for name in analysis.detectors
    }
    return {name: column for name, column in columns.items() if any(value is not None for value in column)}
