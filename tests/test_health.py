"""Health of finished runs: counted by hand, and on runs that a broken server would leave."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from at_border import at_border
from finished_runs import finished_run, measure_health

from hedge_tasks.cli import main
from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.runs.health import (
    CUT,
    EMPTY,
    FILTERED,
    LOGPROBS,
    SAME,
    TOKENS,
    Health,
    decoding_line,
    health_of,
)
from hedge_tasks.runs.run_files import Run, save_run

PURE = {"asked": "pure", "temperature": 1.0}


def run_of(*answer_sets: AnswerSet, **settings: Any) -> Run:
    verdicts = {a.id: {"label": a.label, "judge": "rule 1", "reason": ""} for a in answer_sets}
    return Run("task", "model", answer_sets, verdicts, settings, "2026-01-02T03:04:05+00:00")


def asked(id_: str, *clean: Answer | str, label: int | None = 0) -> AnswerSet:
    answers = tuple(a if isinstance(a, Answer) else Answer(a, -0.5, 1, "stop") for a in clean)
    return AnswerSet(id_, Answer("a", -0.1, 1, "stop"), answers, label=label)


def remarks(health: Health) -> list[str]:
    return [f.text for f in health.findings]


def test_counts_by_hand() -> None:
    health = health_of(
        run_of(
            asked("1", "a", "a", "a"),
            asked("2", "a", "b", Answer("c", -1.0, 9, "length")),
            asked("3", "a", Answer("", None, 0, "stop"), Answer("no", None, None, "filtered"), label=None),
            asked("4", Answer("<think>well", -2.0, 3), "b", "b"),
        )
    )
    assert (health.documents, health.draws, health.failed) == (4, 16, 0)
    counted = {SAME: 1 / 4, CUT: 2 / 16, EMPTY: 1 / 16, FILTERED: 1 / 16, LOGPROBS: 2 / 16}
    assert {test.name: test.share for test in health.tests}.items() >= counted.items()


def test_draws_that_contradict_their_log_probabilities_make_a_run_unreliable() -> None:
    words = [Answer(text, -4.0, 1, "stop", end_logprob=-0.1) for text in "abc"]
    sets = [AnswerSet(str(i), words[0], (*words[:2], *words[:2])) for i in range(40)]
    found = health_of(run_of(*sets, sampled={"decoding": PURE}))
    assert found.unreliable is not None
    assert "a draw comes again 1.0" in found.unreliable
    assert {t.name for t in found.settings if t.state == "contradicted"} >= {"temperature", "top_p"}
    for asked_for in ({"temperature": 0.5}, {"restricted": True}):
        assert "a draw comes" not in str(measure_health(sets, {"decoding": PURE | asked_for}).unreliable)


def test_what_was_found_out_about_the_server_is_said() -> None:
    sent = {"top_p": 1.0, "refused": ["min_p", "top_k"], "rest": "the server's defaults"}
    decoding = PURE | {"sent": sent, "restricted": True, "method": {"name": "dola", "layers": [0, 2], "beta": 0.1}}
    server = {"refused": {"top_k": "422"}, "other_models": ["gpt-3"], "answers_with_tokens": 9}
    found = health_of(run_of(asked("1", "a", "b"), sampled={"decoding": decoding, "server": server}))
    assert "answers as gpt-3, which was not asked for" in remarks(found)
    assert "the server refuses top_k" in remarks(found)
    line = decoding_line(found)
    assert line is not None
    assert line.startswith("pure, T 1.0, dola (layers [0, 2], beta 0.1); contradicted: one model; not verifiable: ")
    assert decoding_line(health_of(run_of(asked("1", "a", "b")))) is None


def test_the_command_prints_and_tells_by_its_exit_code(tmp_path: Path, capsys: Any) -> None:
    good, bad = tmp_path / "good", tmp_path / "bad"
    run = finished_run()
    save_run(replace(run, verdicts={a.id: {"label": a.label} for a in run.answer_sets}), good)
    save_run(run_of(*(asked(str(i), "a", "a") for i in range(50))), bad)
    assert main(["health", str(good)]) == 0
    assert "Trust: not checked" in capsys.readouterr().out
    assert main(["health", str(bad)]) == 1
    assert "red: The numbers of this run are unreliable. 100.0 % of the documents" in capsys.readouterr().out
    assert main(["health", str(bad), "--json"]) == 1
    [row] = json.loads(capsys.readouterr().out)
    assert [test["share"] for test in row["tests"] if test["name"] == SAME] == [1.0]
    assert row["unreliable"]
    assert main(["health", str(save_run(run_of(), tmp_path / "empty"))]) == 1
    assert "Trust: red" in (told := capsys.readouterr().out)
    assert "There are no documents: nothing was measured." in told


def test_readings_are_counted_by_firmness_and_refusals_are_a_finding() -> None:
    bases = ["json", "line", "leading", *["refusal"] * 15, "cut off", "judge unread"]
    verdicts = [{"label": 0 if b in ("json", "line") else None, "reason": "r", "basis": b} for b in bases]
    sets = [AnswerSet(str(i), Answer("a"), (), label=v["label"]) for i, v in enumerate(verdicts)]
    found = measure_health(sets, {}, verdicts)
    assert found.readings["unread"] == {"refusal": 15, "cut off": 1}
    parts = "15 declined, 1 unconfirmed, 1 judge unread, 1 cut off"
    [told] = [f for f in found.findings if f.name == "labelled answers"]
    assert told.text == f"90.0 % of the answers have no label ({parts}) and are in no AUROC"
    assert told.unreliable


def named(sets: Any, name: str, sampled: Any = None, **settings: Any) -> Any:
    tests = [t for t in measure_health(sets, sampled or {}, **settings).tests if t.name == name]
    return (tests[0].state == "contradicted", tests[0].unreliable) if tests else (False, False)


ODD = {
    CUT: Answer("b", -0.5, 1, "length"),
    EMPTY: Answer(" ", -0.5, 1, "stop"),
    FILTERED: Answer("b", -0.5, 1, "filtered"),
    LOGPROBS: Answer("b", None, 1, "stop"),
    TOKENS: Answer("b<|im_end|>", -0.5, 1, "stop"),
}


@pytest.mark.parametrize("name", ODD)
def test_shares_of_odd_draws_at_their_borders(name: str) -> None:
    def found(n: int) -> Any:
        return named([asked(str(i), ODD[name] if i < n else "b") for i in range(200)], name)

    some, many = (4, 100) if name in (CUT, EMPTY, FILTERED) else (0, 400)  # of 400 draws
    at_border(lambda n: found(int(n))[0], some, "001")
    if many < 200:
        at_border(lambda n: found(int(n))[1], many, "001")


def test_borders_of_labels_groups_pictures_and_entropies() -> None:
    def unlabelled(n: int) -> Any:
        verdicts = [{"reason": "r", "basis": "refusal" if i < n else "json"} for i in range(40)]
        sets = [asked(str(i), "a", "b", label=None if i < n else i % 2) for i in range(40)]
        tests = [t for t in measure_health(sets, {}, verdicts).tests if t.name == "labelled answers"]
        return tests[0].state == "contradicted", tests[0].unreliable

    at_border(lambda n: unlabelled(int(n))[0], 2, "001")
    at_border(lambda n: unlabelled(int(n))[1], 20, "001")

    def grouped(n: int) -> bool:
        return named([replace(asked(str(i), "a"), group=str(i % n)) for i in range(20 * n)], "number of groups")[0]

    at_border(lambda n: grouped(int(n)), 20, "100")

    def same(n: float) -> tuple[bool, bool]:
        return named([asked(str(i), "a", "a" if i < n else "b", label=i % 2) for i in range(50)], SAME)

    at_border(lambda n: same(n)[1], 49, "001")  # .98
    assert [same(n)[0] for n in (40, 45)] == [False, True]
    assert not named([asked(str(i), "a", "a") for i in range(50)], SAME, {"decoding": {"temperature": 0}})[1]

    def failed(n: float) -> bool:
        sets, lost = [asked(str(i), "a", "b") for i in range(40 - int(n))], [{"id": "x", "reason": "400"}] * int(n)
        return health_of(run_of(*sets, failed=lost)).unreliable is not None

    at_border(failed, 2, "001")  # .05

    def unread(kind: str, of: Any, n: float) -> bool:
        verdicts = [{"label": i % 2, kind: [of(2 * i < n), of(2 * i + 1 < n)]} for i in range(50)]
        found = measure_health([asked(str(i), "a", "b", label=i % 2) for i in range(50)], {}, verdicts)
        return any("rechecks and sampled replies" in text for text in remarks(found))

    at_border(lambda n: unread("objects", lambda lost: {"kind": None if lost else "described"}, n), 5, "001")
    at_border(lambda n: unread("sampled", lambda lost: "unreadable" if lost else "yes", n), 5, "001")
    assert not named([replace(asked(str(i), "a"), group=str(i)) for i in range(5)], "number of groups")[0]
    for kind, what in (("blank", "a blank picture"), ("other", "another document's picture")):
        assert named([asked("1", "a")], f"answers on {what}", {"image_use": {kind: 20, f"{kind}_same": 17}})[0]
        assert not named([asked("1", "a")], f"answers on {what}", {"image_use": {kind: 20, f"{kind}_same": 16}})[0]
        use = [{"image_use": {kind: n, f"{kind}_same": n}} for n in (4, 5, 6)]
        assert [named([asked("1", "a")], f"answers on {what}", u)[0] for u in use] == [False, True, True]
    at_border(lambda s: named([asked("1", "a")], "entropies of x", outcome={"zero_entropy": {"x": s}})[0], 0.8, "001")
    assert not named([asked(str(i), "a") for i in range(9)], SAME)[0], "one draw differs from none"
    cold = {"decoding": {"temperature": 0}}
    assert not named([asked("1", "a")], "entropies of x", cold, outcome={"zero_entropy": {"x": 1.0}})[0]
    long = {"decoding": {"asked": "pure", "method": {"name": "x" * 100}}}
    assert "x" * 80 in (line := decoding_line(measure_health([asked("1", "a")], long)) or "")
    assert "x" * 81 not in line
