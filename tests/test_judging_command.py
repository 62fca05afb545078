"""`hedge judge`: finished runs labelled anew, judges compared with each other and with people."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from finished_runs import EXACT
from openai_server import serve, texts_of
from sklearn.metrics import (
    accuracy_score,
    cohen_kappa_score,
    confusion_matrix,
    precision_score,
    recall_score,
    roc_auc_score,
)

from hedge_tasks.cli import main
from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.detectors.pipeline import score_answers
from hedge_tasks.judging import Case, Verdict
from hedge_tasks.judging.baselines import majority, stand_beside
from hedge_tasks.judging.check import check, check_categories, facets
from hedge_tasks.judging.label_files import HumanLabel
from hedge_tasks.judging.prompt import load_judge_prompt
from hedge_tasks.judging.rule import RuleJudge
from hedge_tasks.runs.judge_comparison import agreement, disagreements
from hedge_tasks.runs.run_files import FOLDER, Run, load_run, now, save_run

WORDS = ("liver", "spleen", "kidney", "heart")


def answer_set(number: int, label: int | None = None) -> AnswerSet:
    draw = random.Random(number)
    reference, baseline = draw.choice(WORDS), draw.choice(WORDS)
    clean = tuple(Answer(draw.choice([baseline, draw.choice(WORDS)])) for _ in range(4))
    noisy = tuple(Answer(draw.choice(WORDS)) for _ in range(4))
    return AnswerSet(
        str(number), Answer(baseline), clean, noisy, "which organ?", reference, label, group=f"image {number // 2}"
    )


def finished(folder: Path, count: int = 30, label: int | None = None) -> Run:
    sets = tuple(answer_set(i, label) for i in range(count))
    verdicts = {a.id: {"label": label, "reason": "", "description": f"image {a.id}"} for a in sets}
    settings = {"documents": {"question": "question", "judge": {"judge": "old"}}, "filters": EXACT}
    run = Run("hedge_sides", "a model", sets, verdicts, settings, now())
    return replace(run, path=save_run(run, folder / FOLDER))


def hedge(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main(["judge", *map(str, arguments)])
    out = capsys.readouterr()
    return code, out.out, out.err


def as_json(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    code, out, err = hedge(capsys, *arguments, "--json")
    assert code == 0, err
    return json.loads(out)


def shown(body: dict[str, Any]) -> dict[str, Any]:
    """The case in a request; behind it may stand that the first reply could not be read."""
    return json.JSONDecoder().raw_decode(texts_of(body)[-1])[0]


def strict(body: dict[str, Any]) -> str:
    """A model that goes by the words."""
    case = shown(body)
    wrong = case["reference_answer"] != case["answer_to_judge"]
    return json.dumps({"reason": case.get("description", ""), "verdict": "hallucinated" if wrong else "supported"})


# --- a run ------------------------------------------------------------------------------------------------------------


def test_a_run_is_labelled_anew_and_becomes_the_newest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = finished(tmp_path, label=0)
    facts = as_json(capsys, tmp_path, "--judge", "rule")
    after = load_run(tmp_path)
    assert str(after.path) == facts["run"] != str(before.path)
    right = {a.id: int(a.baseline.text != a.reference) for a in before.answer_sets}
    assert {a.id: a.label for a in after.answer_sets} == right
    assert facts["hallucinated"] == sum(right.values())
    assert facts["changed"] == [{"from": 0, "to": 1, "ids": [i for i, label in right.items() if label]}]
    assert facts["unreliable"] is None
    assert after.settings["documents"]["judge"]["judge"] == "rule"
    assert after.settings["documents"]["question"] == "question"
    assert after.settings["filters"] == before.settings["filters"]
    assert after.settings["judged_again"] == {"created": before.created, "judge": {"judge": "old"}}
    assert [replace(a, label=0) for a in after.answer_sets] == list(before.answer_sets)
    found = after.verdicts["3"]
    assert (found["judge"], found["version"]) == (f"rule {RuleJudge.version}", RuleJudge.version)


def test_a_server_under_three_names_is_one_judge(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = finished(tmp_path)
    with serve(strict) as url:
        names = [f"llm:{name}" for name in "abc"]
        judges = [part for name in "abc" for part in ("--judge", f"llm:model={name},url={url}")]
        alone = as_json(capsys, tmp_path, *judges)
        facts = as_json(capsys, tmp_path, *judges, "--judge", "rule")
    assert [row["judge"] for row in alone["labels"]] == [" = ".join(names), "majority"]
    assert alone["agreement"] == {}
    assert [row["judge"] for row in facts["labels"]] == [" = ".join(names), "rule", "majority"]
    by_words = {a.id: int(a.baseline.text != a.reference) for a in run.answer_sets}
    record = load_run(tmp_path).verdicts["3"]
    assert (record["label"], len(record["votes"])) == (by_words["3"], 2)
    assert (facts["agreement"]["Cohen's kappa: llm:a = llm:b = llm:c, rule"]["value"], facts["disagreements"]) == (
        1,
        [],
    )
    scores = [score_answers(a, clustering="exact")["se"] for a in run.answer_sets]
    expected = roc_auc_score(list(by_words.values()), scores)
    assert [facts["auroc"][name]["se"]["value"] for name in ("rule", "majority")] == pytest.approx([expected] * 2)


# --- several judges ---------------------------------------------------------------------------------------------------


def panel(*columns: Sequence[int | None], names: str = "abc") -> list[Verdict]:
    rows = zip(*columns, strict=True)
    votes = [[Verdict(label, "", name, "1") for name, label in zip(names, row, strict=False)] for row in rows]
    return [Verdict(None, "", "panel", "1", votes=tuple(v)) for v in votes]


def test_only_opposite_labels_are_a_disagreement() -> None:
    verdicts = panel([1, 1, None, 0, 1], [1, 0, 1, None, None], [1, 1, None, 0, 0])
    cases = [Case(str(i), "q", "r", "a") for i in range(5)]
    assert [d["id"] for d in disagreements(cases, verdicts)] == ["1", "4"]


def test_agreement_is_that_of_the_labels_and_takes_the_groups() -> None:
    draw = random.Random(3)
    truth = [draw.choice([0, 1]) for _ in range(60)]
    columns = [[draw.choice([t, t, 1 - t, None]) for t in truth] for _ in range(3)]
    found = agreement(panel(*columns))
    both = [(x, y) for x, y in zip(columns[0], columns[2], strict=True) if x is not None and y is not None]
    kappa = found["Cohen's kappa: a, c"]
    assert kappa.value == pytest.approx(cohen_kappa_score(*zip(*both, strict=True)))
    assert kappa.n == len(both)
    # Of documents in groups the errors are between these.
    groups = [f"image {i // 6}" for i in range(60)]
    assert agreement(panel(*columns), groups)["percent agreement"].n_groups == 10


# --- against people ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", [None, "medhallmark"])
def test_the_numbers_are_those_of_scikit_learn(scheme: str | None) -> None:
    """Of labels, and of the categories of a scheme."""
    classes = ["hallucinated", "supported"] if scheme is None else [o.key for o in load_judge_prompt(scheme).outcomes]
    draw = random.Random(2)
    people = [draw.choice([*classes, classes[0]]) for _ in range(200)]
    judged = [draw.choice([p, p, draw.choice(classes), None]) for p in people]
    cases = [Case(str(i), f"q{i}", "r", "a") for i in range(200)]
    label = {"hallucinated": 1, "supported": 0}
    human = [HumanLabel(str(i), label.get(one), scheme and one, {}) for i, one in enumerate(people)]
    verdicts = [Verdict(label.get(str(one)), "", "j", "1", category=scheme and one) for one in judged]
    given = (cases, human, verdicts)
    of = facets(cases, human)
    found = check(*given, of) if scheme is None else check_categories(*given, scheme, of)
    both = [(p, j) for p, j in zip(people, judged, strict=True) if j is not None]
    true, said = zip(*both, strict=True)
    assert (found.n, found.judged, found.classes) == (200, len(both), tuple(classes))
    assert found.accuracy == pytest.approx(accuracy_score(true, said))
    assert found.kappa.value == pytest.approx(cohen_kappa_score(true, said))
    low, high = found.kappa.interval
    assert low < found.kappa.value < high
    recall, precision = (score(true, said, labels=classes, average=None) for score in (recall_score, precision_score))
    assert [found.recall[one].recall for one in classes] == pytest.approx(recall.tolist())
    assert [found.recall[one].precision for one in classes] == pytest.approx(precision.tolist())
    for one in classes:
        right = sum(p == j == one for p, j in zip(people, judged, strict=True))
        assert found.recall[one].recall_of_all == pytest.approx(right / people.count(one))
    assert [list(row[:-1]) for row in found.confusion] == confusion_matrix(true, said, labels=classes).tolist()
    assert sum(row[-1] for row in found.confusion) == judged.count(None)
    assert {int(c.id) for c, _, _ in found.wrong} == {i for i, j in enumerate(judged) if j not in (None, people[i])}


@pytest.fixture
def people(tmp_path: Path) -> Callable[..., Path]:
    def write(*rows: dict[str, Any]) -> Path:
        path = tmp_path / "people.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path

    return write


def row(answer: str, label: object, **more: Any) -> dict[str, Any]:
    return {"id": 1, "question": "which side?", "ground_truth": "left", "answer": answer, "label": label, **more}


def test_a_judge_is_measured_against_people(people: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    # The rule judge takes "left" for right, "right" for wrong, and does not judge an empty answer.
    path = people(row("left", 0), row("right", 1), row("right", 0), row("", 1), row("x", None))
    facts = as_json(capsys, "--check", path, "--judge", "rule")
    assert facts["labels"]["confusion"] == {
        "hallucinated": {"hallucinated": 1, "supported": 0, "not judged": 1},
        "supported": {"hallucinated": 1, "supported": 1, "not judged": 0},
    }
    found = facts["labels"]["classes"]["hallucinated"]
    assert [found[key] for key in ("recall", "recall_of_all", "precision")] == [1, 0.5, 0.5]
    assert [case["line"] for case in facts["wrong"]] == ["3"]


# --- beside what it has to beat ---------------------------------------------------------------------------------------


def test_guesses_and_their_agreement_by_hand() -> None:
    people = ["h", "h", "h", "s", "s", "s", "s", "h"]
    assert majority(people) == ["h"] * 8  # of equally common ones the first in the alphabet
    groups = ["1", "1", "2", "2", "3", "3", "4", "4"]
    said = ["h", "h", "h", "s", "s", None, "s", "s"]  # right, right, right, right, right, none, right, wrong
    judge, guess = stand_beside(people, {"judge": said, "guess": majority(people)}, groups)
    assert (judge.judged, judge.agreement.value, judge.ahead) == (7, 6 / 8, None)
    assert guess.agreement.value == 4 / 8
    # Paired: 0 0 0 1 1 0 1 -1, by image 0, 1, 1, 0; mean 1/4; deviations of the sums -1/2, 1/2, 1/2, -1/2.
    assert guess.ahead is not None
    assert guess.ahead.value == 0.25
    error = math.sqrt(4 / 3 * 4 * 0.25) / 8
    assert guess.ahead.stderr == pytest.approx(error)
    assert judge.agreement.interval is not None
    assert judge.agreement.interval[1] == 1.0  # no share is larger
