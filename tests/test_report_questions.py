"""What the explorer of single questions is given: pairs, verdicts, budgets, and the questions without script."""

from __future__ import annotations

import base64
import json
from dataclasses import replace

import numpy as np
import pytest
from finished_runs import finished_run

from hedge_tasks.clustering.model_outputs import COSINES, RELATIONS, ModelOutputs, Source
from hedge_tasks.report.analysis import analyse
from hedge_tasks.report.explorer import explorer_data, surprises_first
from hedge_tasks.report.noisy import most_scattered
from hedge_tasks.report.pictures import NONE
from hedge_tasks.report.texts import script_json
from hedge_tasks.runs.evidence import pack_outputs
from hedge_tasks.runs.run_files import Run

NLI = Source(RELATIONS, "some/nli", None, "float32")
EMBEDDINGS = Source(COSINES, "some/embeddings")


def related_run(n: int = 12) -> tuple[Run, dict[tuple[str, str], list[float]]]:
    """A run with kept relations of some of its pairs, and these by premise and hypothesis."""
    run = finished_run(n)
    dice = np.random.default_rng(0)
    table: dict[tuple[str, str], list[float]] = {}
    letters = "abcde"
    for one in letters:
        for other in letters:
            if one != other and (one, other) != ("b", "a"):  # of one pair nothing was said
                table[one, other] = dice.dirichlet([0.4, 0.4, 0.4]).tolist()
    outputs = ModelOutputs()
    outputs.table(NLI).add(list(table), np.array(list(table.values())))
    outputs.table(EMBEDDINGS).add([("a", "b")], np.array([[0.25]]))
    return replace(run, evidence=pack_outputs(outputs, run.answer_sets)), table


def test_pairs_come_back_as_they_were_said() -> None:
    run, table = related_run()
    [analysis] = analyse([run], curves=False)
    data = explorer_data(analysis, NONE)
    assert [(t["kind"], t["form"]) for t in data["sources"]] == [
        (RELATIONS, "the answers alone"),
        (COSINES, "the answers alone"),
    ]
    compared = 0
    for question in data["questions"]:
        for source, places, packed in question.get("pairs", ()):
            u = len(places)
            texts = [question["texts"][place] for place in places]
            cells = np.frombuffer(base64.b64decode(packed), np.uint8).reshape(u, u, -1)
            for i, one in enumerate(texts):
                for k, other in enumerate(texts):
                    if data["sources"][source]["kind"] == COSINES:
                        known = [(1 + 0.25) / 2] if {one, other} == {"a", "b"} else None
                    else:
                        known = table[one, other][::2] if (one, other) in table else None
                    if known is None:
                        assert (cells[i, k] == 255).all()
                    else:
                        assert cells[i, k] / 250 == pytest.approx(known, abs=0.0021)
                        compared += 1
    assert compared > 50


def test_pairs_stay_within_their_budget_and_the_most_scattered_have_them() -> None:
    run, _ = related_run(40)
    [analysis] = analyse([run], curves=False)
    whole, some = explorer_data(analysis, NONE), explorer_data(analysis, NONE, pair_budget=300)
    having = [q["id"] for q in some["questions"] if "pairs" in q]
    assert 0 < len(having) < sum("pairs" in q for q in whole["questions"])
    assert some["without_pairs"] == 40 - len(having) > 0 == whole["without_pairs"]
    assert set(having) == set(most_scattered(analysis)[: len(having)])


def test_the_most_scattered_have_the_most_even_clusters() -> None:
    [analysis] = analyse([finished_run(30)], curves=False)
    order = most_scattered(analysis)
    ids = {s.id: s.cluster_ids[1:] for s in analysis.scores["exact"]}

    def entropy(id: str) -> float:
        shares = np.unique(ids[id], return_counts=True)[1] / len(ids[id])
        return float(-(shares * np.log(shares)).sum())

    values = [entropy(id) for id in order]
    assert values == pytest.approx(sorted(values, reverse=True))


def test_the_votes_behind_a_verdict_and_a_judges_reply_are_there() -> None:
    run = finished_run(3)
    vote = {"judge": "llm", "label": 1, "reason": "says left", "raw": "Verdict: <b>wrong</b>", "category": "place"}
    verdict = {"judge": "panel 1", "reason": "2 of 3", "raw": "1\n0", "votes": [vote, "no vote", {"label": "x"}]}
    [analysis] = analyse([replace(run, verdicts={"q1": verdict})], curves=False)
    _, question, _ = explorer_data(analysis, NONE)["questions"]
    assert (question["judge"], question["raw"]) == ("panel 1", "1\n0")
    assert question["votes"] == [vote, {"label": None}]


def test_weights_without_log_probabilities_are_said_to_be_equal() -> None:
    run = finished_run(2)
    first = replace(run.answer_sets[0], clean=tuple(replace(a, mean_logprob=None) for a in run.answer_sets[0].clean))
    [analysis] = analyse([replace(run, answer_sets=(first, run.answer_sets[1]))], curves=False)
    assert [q["uniform"] for q in explorer_data(analysis, NONE)["questions"]] == [True, False]


@pytest.mark.parametrize("letter", ["x", "图", "\U0001f600"])
def test_answers_stay_within_their_budget_in_bytes_whatever_they_are_written_in(letter: str) -> None:
    sets = tuple(
        replace(a, clean=tuple(replace(c, text=f"{letter * 3000}{i}") for i, c in enumerate(a.clean)))
        for a in finished_run(20).answer_sets
    )
    [analysis] = analyse([replace(finished_run(20), answer_sets=sets)], curves=False)
    questions = explorer_data(analysis, NONE, budget=60_000)["questions"]
    bytes_of_texts = sum(len(script_json(text)) for q in questions for text in q["texts"])
    notes = 40 * sum(len(q["texts"]) for q in questions)
    assert 10_000 < bytes_of_texts < 60_000 + notes


def test_readers_without_script_find_the_surprises_first() -> None:
    [analysis] = analyse([finished_run(80)], curves=False)
    data = explorer_data(analysis, NONE)
    read = surprises_first(data, 20)
    scores = {s.id: (s["se"], s.label) for s in analysis.scores["exact"]}
    shown = [scores[one["id"]] for one in read]
    assert {label for _, label in shown} == {0, 1}
    alarms, missed = ([se for se, label in shown if label == kind] for kind in (0, 1))
    assert alarms == sorted((se for se, label in scores.values() if label == 0), reverse=True)[: len(alarms)]
    assert missed == sorted(se for se, label in scores.values() if label == 1)[: len(missed)]
    assert len(read) == 20
    assert [name for name, _ in read[0]["scores"]] == ["SE", "RadFlag", "VASE"]
    assert sum(n for _, n in read[0]["said"]) == 12
    json.dumps(data, allow_nan=False)
