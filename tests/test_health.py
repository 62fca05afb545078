"""Health of finished runs: counted by hand, and on runs that a broken server would leave."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from finished_runs import finished_run

from hedge_tasks.cli import main
from hedge_tasks.data.answers import Answer, AnswerSet, Served
from hedge_tasks.errors import DataError
from hedge_tasks.measures.headline import headline
from hedge_tasks.runs.health import Finding, Health, decoding_line, health_of, measure_health
from hedge_tasks.runs.run_files import Run, read_run, save_run


def run_of(*answer_sets: AnswerSet, **settings: Any) -> Run:
    verdicts = {a.id: {"label": a.label, "judge": "rule 1", "reason": ""} for a in answer_sets}
    return Run("task", "model", answer_sets, verdicts, settings, "2026-01-02T03:04:05+00:00")


def asked(id_: str, *clean: Answer | str, label: int | None = 0) -> AnswerSet:
    answers = tuple(a if isinstance(a, Answer) else Answer(a, -0.5, 1, "stop") for a in clean)
    return AnswerSet(id_, Answer("a", -0.1, 1, "stop"), answers, label=label)


def remarks(health: Health) -> list[str]:
    """What is found besides how few labels of one kind these small runs have."""
    return [f.text for f in health.findings if not f.text.startswith("only ")]


def test_few_labels_of_one_kind_are_said() -> None:
    sets = [asked(str(i), "a", "b", label=i > 0) for i in range(4)]
    assert [f.text for f in measure_health(sets, {}, verdicts=[{"label": int(i > 0)} for i in range(4)]).findings] == [
        "only 1 of 4 labelled answers are supported: AUROCs tell next to nothing"
    ]
    none = health_of(run_of(*(asked(str(i), "a", "b") for i in range(30))))
    assert "only 0 of 30 labelled answers are hallucinated: every AUROC is undefined" in [f.text for f in none.findings]


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
    assert health.same_clean == 1 / 4
    assert health.distinct_clean == (1 + 3 + 3 + 2) / 4
    assert health.cut == 2 / 16
    assert health.empty == health.filtered == 1 / 16
    assert health.without_logprob == 2 / 16
    assert health.unlabelled == 1 / 4


def test_a_thought_without_an_end_is_a_cut_answer() -> None:
    texts = ["<think>a</think> b", "<THINKING>a", "<think>a</think> <think>b", "a", "<reasoning>"]
    sets = [asked(str(i), text, "b", "c") for i, text in enumerate(texts)]
    assert measure_health(sets, {}).cut == 3 / 20


def test_seeds_that_do_not_repeat_and_missing_log_probabilities_are_notes() -> None:
    bare = [Answer(text, finish="stop") for text in "abc"]
    health = measure_health([AnswerSet("1", bare[0], tuple(bare))], {"probe": {"seeds_repeat": False, "varied": True}})
    texts = [finding.text for finding in health.findings]
    assert "the same seed gives other answers: a draw that is made again may differ" in texts
    assert "there are no log-probabilities at all: all samples weigh the same (discrete entropy)" in texts
    assert health.unreliable is None
    sound = measure_health([asked("1", "a", "b")], {"probe": {"seeds_repeat": True, "varied": True}})
    assert not any("seed" in finding.text or "log-prob" in finding.text for finding in sound.findings)


def test_draws_that_contradict_their_log_probabilities_make_a_run_unreliable() -> None:
    decoding = {"asked": "pure", "temperature": 1.0}
    words = [Answer(text, -4.0, 1, "stop", end_logprob=-0.1) for text in "abc"]
    sets = [AnswerSet(str(i), words[0], (*words[:2], *words[:2])) for i in range(40)]
    found = health_of(run_of(*sets, sampled={"decoding": decoding}))
    assert found.unreliable is not None
    assert found.unreliable.startswith(
        "draws against their own log-probabilities: contradicted: a draw comes again 1.0"
    )
    assert measure_health(sets, {"decoding": decoding | {"temperature": 0.5}}).unreliable is None


def test_answers_of_more_than_one_model_are_said() -> None:
    def by(*served: Served) -> tuple[Answer, ...]:
        return tuple(Answer(text, -0.5, 1, served=who) for text, who in zip("ab", served, strict=True))

    one, moved, other = Served("m", None, "fp_1"), Served("m", None, "fp_2"), Served("n", None, "fp_1")
    said = "answers come from more than one model behind one name: "
    same = measure_health([AnswerSet("1", Answer("a", -0.5, 1), by(one, one))], {})
    assert not any(f.text.startswith(said) for f in same.findings)
    changed = measure_health([AnswerSet("1", Answer("a", -0.5, 1), by(one, moved))], {})
    assert said + "system_fingerprint fp_1 (1 answers), fp_2 (1 answers)" in [f.text for f in changed.findings]
    assert changed.unreliable is None
    mixed = measure_health([AnswerSet("1", Answer("a", -0.5, 1), by(one, other))], {})
    assert mixed.unreliable == said + "model m (1 answers), n (1 answers)"


def test_replies_that_nobody_could_read_are_counted() -> None:
    verdicts = [
        {"label": 1, "raw": "hallucinated"},
        {"label": None, "raw": "well"},
        {"label": None, "category": "unclear", "raw": "unclear"},
        {"label": None, "category": "unreadable"},
        {"label": None, "reason": "unreadable: the reply states no verdict"},
        {"label": None, "reason": "open question"},
    ]
    sets = [asked(str(i), "a", "b", label=1 if i == 0 else None) for i in range(len(verdicts))]
    health = measure_health(sets, {}, verdicts=verdicts)
    assert health.unreadable == 3 / 6
    assert "in 50.0 % of the documents a reply was unreadable, so that there is no label" in [
        f.text for f in health.findings
    ]
    assert measure_health(sets, {}).unreadable is None


def test_entropies_of_zero_are_said_by_clustering() -> None:
    outcome = {"zero_entropy": {"nli": 0.9, "embed": 0.5, "exact": None}}
    health = health_of(run_of(asked("1", "a", "b"), outcome=outcome))
    assert health.zero_entropy == {"nli": 0.9, "embed": 0.5}
    assert remarks(health) == ["under nli 90 % of the documents have a semantic entropy of 0"]


def test_what_was_found_out_about_the_server_is_said() -> None:
    sent = {"top_p": 1.0, "refused": ["min_p", "top_k"], "rest": "the server's defaults"}
    decoding = {"asked": "pure", "temperature": 1.0, "sent": sent}
    server = {"refused": {"top_k": "422"}, "other_models": ["gpt-3"], "answers_with_tokens": 9}
    found = health_of(run_of(asked("1", "a", "b"), sampled={"decoding": decoding, "server": server}))
    assert remarks(found) == [
        "the server answers as another model than the one asked for: gpt-3",
        "the server refuses min_p, top_k: what it has in place of min_p, top_k is not known",
    ]
    line = decoding_line(health_of(run_of(asked("1", "a", "b"), sampled={"decoding": decoding, "server": server})))
    assert line is not None
    assert line.startswith("pure, T 1.0; contradicted: one model; not verifiable: temperature, top_k, top_p, min_p")
    assert decoding_line(health_of(run_of(asked("1", "a", "b")))) is None
    decoding |= {"restricted": True, "method": {"name": "dola", "layers": [0, 2], "beta": 0.1}}
    line = decoding_line(health_of(run_of(asked("1", "a", "b"), sampled={"decoding": decoding, "server": server})))
    assert line is not None
    assert line.startswith("pure, T 1.0, dola (layers 0/2, beta 0.1); contradicted: one model")


def test_a_sound_run_has_nothing_to_remark() -> None:
    run = finished_run()
    sound = replace(run, verdicts={a.id: {"label": a.label} for a in run.answer_sets})
    assert health_of(sound).findings == ()


def test_a_greedy_server_makes_a_run_unreliable() -> None:
    health = health_of(run_of(*(asked(str(i), "a", "a") for i in range(50))))
    assert health.unreliable is not None
    assert health.unreliable.startswith("100 % of the documents have one and the same clean answer; the model or its")


def test_a_run_at_temperature_0_is_meant_to_repeat_itself() -> None:
    sets = [asked(str(i), "a", "a") for i in range(50)]
    assert measure_health(sets, {"decoding": {"temperature": 0}}).unreliable is None


def test_failed_documents_are_said_and_many_make_a_run_unreliable() -> None:
    sets = [asked(str(i), "a", "b") for i in range(50)]
    few = health_of(run_of(*sets, failed=[{"id": "x", "reason": "400"}]))
    many = health_of(run_of(*sets, failed=[{"id": str(i), "reason": "400"} for i in range(10)]))
    assert (few.failed, few.unreliable) == (1, None)
    assert remarks(few) == ["1 of 51 documents failed and are left out"]
    assert many.unreliable == "10 of 60 documents failed and are left out"


def test_answers_that_do_not_depend_on_the_picture_are_said() -> None:
    use = {"blank": 20, "blank_same": 18, "other": 20, "other_same": 15}
    [remark] = remarks(health_of(run_of(asked("1", "a", "b"), sampled={"image_use": use})))
    assert remark.startswith("18 of 20 baseline answers stay the same on a blank picture")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"sampled": [1]}, "settings.sampled: expected an object"),
        ({"sampled": {"image_use": {"blank": "x"}}}, "settings.sampled.image_use.blank: expected an integer, got 'x'"),
        ({"sampled": {"probe": 3}}, "settings.sampled.probe: expected an object, got 3"),
        ({"sampled": {"decoding": {"sent": 3}}}, "settings.sampled.decoding.sent: expected an object"),
        ({"failed": "x"}, "settings.failed: expected a list, got 'x'"),
        ({"outcome": {"zero_entropy": {"nli": 7}}}, "settings.outcome.zero_entropy.nli: expected a number of at most"),
    ],
)
def test_settings_that_nobody_wrote_are_refused_at_the_door(settings: Any, words: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=words):
        read_run(save_run(run_of(asked("1", "a", "b"), **settings), tmp_path))


def test_the_command_prints_and_tells_by_its_exit_code(tmp_path: Path, capsys: Any) -> None:
    good, bad = tmp_path / "good", tmp_path / "bad"
    run = finished_run()
    save_run(replace(run, verdicts={a.id: {"label": a.label} for a in run.answer_sets}), good)
    save_run(run_of(*(asked(str(i), "a", "a") for i in range(50))), bad)
    assert main(["health", str(good)]) == 0
    shown = capsys.readouterr().out
    assert "Trust: not checked" in shown
    assert "draws against their log-probabilities" in shown
    assert main(["health", str(bad)]) == 1
    assert "red: The numbers of this run are unreliable. 100 % of the documents" in capsys.readouterr().out
    assert main(["health", str(bad), "--json"]) == 1
    [row] = json.loads(capsys.readouterr().out)
    assert row["same_clean"] == 1.0
    assert row["unreliable"]


def test_draws_that_were_asked_to_differ_contradict_nothing() -> None:
    """The model would say one of a hundred texts; only one of them was allowed."""
    clean = tuple(Answer("yes", -4.6, 1, end_logprob=-0.01) for _ in range(10))
    sets = [AnswerSet(f"q{i}", Answer("yes", -4.6, 1), clean) for i in range(20)]
    decoding = {"asked": "pure", "temperature": 1.0}
    for more, state in (({}, "contradicted"), ({"restricted": True}, "not verifiable")):
        verdict = measure_health(sets, {"decoding": decoding | more}).draws_verdict
        assert verdict is not None
        assert verdict.state == state


def test_readings_are_counted_by_firmness_and_refusals_are_a_finding() -> None:
    bases = ["json", "line", "leading", *["refusal"] * 15, "cut off", "judge unread"]
    verdicts = [{"label": 0 if b in ("json", "line") else None, "reason": "r", "basis": b} for b in bases]
    sets = [AnswerSet(str(i), Answer("a"), (), label=v["label"]) for i, v in enumerate(verdicts)]
    found = measure_health(sets, {}, 0, verdicts)
    assert found.readings == {
        "firm": {"json": 1, "line": 1},
        "soft": {"leading": 1},
        "unread": {"refusal": 15, "cut off": 1},
        "judge unread": {"judge unread": 1},
    }
    parts = "15 declined, 1 unconfirmed, 1 judge unread, 1 cut off"
    text = f"90.0 % of the answers have no label ({parts}) and are in no AUROC"
    assert Finding(text, unreliable=True) in found.findings


@pytest.mark.parametrize(("unread", "is_told"), [(5, False), (6, True)])
@pytest.mark.parametrize("kind", ["objects", "sampled"])
def test_unread_rechecks_and_draws_are_counted(unread: int, is_told: bool, kind: str) -> None:
    def entry(i: int) -> Any:
        if kind == "sampled":
            return "unreadable" if i < unread else "yes"
        return {"kind": None if i < unread else "described"}

    verdicts = [{"label": i % 2, kind: [entry(2 * i), entry(2 * i + 1)]} for i in range(50)]
    found = measure_health([asked(str(i), "a", "b", label=i % 2) for i in range(50)], {}, 0, verdicts)
    assert found.unread_replies == unread / 100
    told = [f for f in found.findings if "rechecks and sampled replies" in f.text]
    assert bool(told) is is_told
    assert not any(f.unreliable for f in told)


@pytest.mark.parametrize("options", [[], ["--trust-run"]])
def test_trust_in_the_run_reaches_its_state_of_trust(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    trusted = []

    def state(run: Run) -> Any:
        trusted.append(run.trusted)
        return headline(run)

    monkeypatch.setattr("hedge_tasks.measures.headline.headline", state)
    main(["health", str(save_run(finished_run(), tmp_path)), *options])
    assert trusted == [bool(options)]
