"""MedHallu's construction on scripted models, against counts made by hand."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset
from making import asked_of, attempt_of, play, question, written
from openai_server import serve
from printed import json_of
from scripted_making import Script, counted, killed_at, models_by

from hedge_tasks.cli import main
from hedge_tasks.errors import DataError, HedgeError
from hedge_tasks.making.gate.verify import check_controls
from hedge_tasks.making.medhallu.construction import (
    OFF_TOPIC,
    MedHallu,
    Vote,
    allowed_length,
    difficulty,
    sampling_stages,
    stages_of,
    without_surplus,
)
from hedge_tasks.making.medhallu.questions import SourceQuestion, read_questions
from hedge_tasks.making.output import DATA
from hedge_tasks.making.stages import Made, make

ROLES = {
    "generator": ["writer"],
    "critic": ["critic"],
    "judge": [f"judge-{number}" for number in range(3)],
    "verifier": [f"judge-{number}" for number in range(3)],
}
STAGES = stages_of(3, 3, 5)


class Comparison:
    """Everything entails everything as strongly as it is told; the more rewritings, the less alike."""

    def __init__(self, forth: float = 0.2, back: float = 0.9) -> None:
        self.said = forth, back

    def entailment(self, first: str, second: str) -> tuple[float, float]:
        return self.said

    def load(self) -> None:
        pass

    def cosine(self, first: str, second: str) -> float:
        return 1.0 - 0.1 * attempt_of(first)


def questions(count: int) -> list[SourceQuestion]:
    rows = (question(number) for number in range(count))
    return [SourceQuestion(r["id"], r["question"], r["answer"], tuple(r["knowledge"])) for r in rows]


def made_by(reply: Any, folder: Path, count: int = 10, **more: Any) -> Made:
    build = MedHallu(more.pop("compares", Comparison()))
    return make(questions(count), build, STAGES, models_by(reply, ROLES), folder, concurrency=4, **more)


def test_every_stage_has_the_counts_of_a_calculation_by_hand(tmp_path: Path) -> None:
    # Ten questions, two of each kind (see making.fooled_judges). Kinds 0, 1, 2 pass at once; kind 3 would pass after
    # two rewritings, but what fails once more is generated anew; 3 and 4 fall back after five generations.
    made = made_by(play, tmp_path)
    assert made.steps == {
        "written": 6 + 4 * 5,
        "rewritten": 4 * 5,
        "deceives nobody": 4 * 10,
        "accepted at attempt 1": 6,
        "fallback": 4,
    }
    verified = {kind: right for (_, kind), right in made.controls.items() if "answer to nothing" not in kind}
    assert set(verified.values()) == {(10, 10)}
    candidates = 6 + 4 * 10
    requests, cached = (Counter(counted(made.account, what)) for what in ("requests", "cached"))
    assert requests + cached == {
        "candidate": 26,
        "verify": candidates * 3,
        "control": candidates * 3 * 2,
        "judge": candidates * 3 * 2,
        "judge_control": 2 * (3 + 2 + 1) * 2,  # of who says that it is deceived, in both orders
        "critique": 20,
        "rewrite": 20,
    }
    assert requests["control"] == 10 * 3 * 2  # each truth twice a verifier
    assert Counter(row["Difficulty Level"] for row in made.rows) == {"hard": 2, "medium": 2, "easy": 2 + 4}
    # The fallback is the candidate most like the true answer: here the one that was never rewritten.
    assert [row["Fallback"] for row in made.rows] == [False] * 3 + [True] * 2 + [False] * 3 + [True] * 2
    assert {(attempt_of(row["Hallucinated Answer"]), row["Similarity"]) for row in made.rows if row["Fallback"]} == {
        (0, 1)
    }
    assert [row["Id"] for row in without_surplus(made).rows] == ["q0", "q1", "q2", "q3", "q5", "q6", "q7"]


def test_killed_anywhere_and_resumed_it_is_the_same(tmp_path: Path) -> None:
    whole = made_by(play, tmp_path / "whole", 2)
    models = models_by(play, ROLES)
    killed = killed_at(2, questions(2), MedHallu(Comparison()), STAGES, models, tmp_path / "killed")  # at every reply
    assert killed.rows == whole.rows
    assert (killed.steps, killed.controls, killed.rejected) == (whole.steps, whole.controls, whole.rejected)


def test_a_paraphrase_of_the_truth_is_never_released_as_wrong(tmp_path: Path) -> None:
    made = made_by(play, tmp_path, 2, compares=Comparison(0.75, 0.9))
    assert made.rejected == {"every candidate fails: same meaning": 2}
    assert "judge" not in counted(made.account, "requests")
    assert len(made_by(play, tmp_path, 2, compares=Comparison(0.7499, 0.9)).rows) == 2


@pytest.mark.parametrize(("length", "step"), [(89, "too short"), (90, ""), (110, ""), (111, "too long")])
def test_the_length_rule_holds(length: int, step: str) -> None:
    fields = {"category": "c", "hallucinated_answer": "z" * length, "error": "e"}
    candidate = STAGES["candidate"].read(fields)
    values = {
        "true_answer": "x" * 100,
        "question": "Q?",
        "length": dict(zip(("least", "most"), allowed_length("x" * 100), strict=True)),
    }
    assert STAGES["candidate"].passes(candidate, values) == step


def test_a_judge_that_goes_by_the_place_is_not_deceived(tmp_path: Path) -> None:
    made = made_by(lambda body: '{"more_accurate": 2}' if "answer_1" in asked_of(body) else play(body), tmp_path, 1)
    assert made.rows[0]["Fallback"]
    assert {vote["fooled"] for vote in made.rows[0]["Votes"]} == {False}


def test_judges_by_looks_are_no_judges(tmp_path: Path) -> None:
    def shorter(body: dict[str, Any]) -> str:
        fields = asked_of(body)
        if "answer_1" not in fields:
            return play(body)
        return json.dumps({"more_accurate": 1 if len(fields["answer_1"]) < len(fields["answer_2"]) else 2})

    made = made_by(shorter, tmp_path, 3)
    with pytest.raises(DataError, match=r"judge-\d takes .* \(truth beside an answer to nothing\)"):
        check_controls(made.controls)
    assert all(row["Fallback"] for row in made.rows)  # nobody is believed to be deceived


def test_difficulty_counts_the_judges_that_were_deceived() -> None:
    def votes(fooled: int, n: int) -> list[Vote]:
        return [Vote(str(k), k < fooled, k < fooled, k < fooled) for k in range(n)]

    assert [difficulty(votes(n, 3)) for n in range(4)] == [None, "easy", "medium", "hard"]
    assert [difficulty(votes(n, 5)) for n in range(6)] == [None, "easy", "medium", "medium", "medium", "hard"]


def test_a_key_more_is_read_and_what_is_garbled_is_asked_again(tmp_path: Path) -> None:
    times = Counter[str]()

    def reply(body: dict[str, Any]) -> str:
        times[body["model"]] += 1
        if times[body["model"]] == 1:
            return {"writer": "<think>hm", "judge-0": "1 or 2"}.get(body["model"], play(body))
        text = play(body)
        return text if "```" in text else json.dumps({**json.loads(text), "confidence": 0.9})

    made = made_by(reply, tmp_path, 1)
    assert counted(made.account, "unreadable") == {"candidate": 1, "verify": 1}
    assert made.rows[0]["Difficulty Level"] == "hard"
    silent = made_by(lambda body: "I cannot help with that.", tmp_path / "silent", 1)
    assert silent.rejected == {"nothing that could be read": 1}
    assert counted(silent.account, "requests") == {"candidate": 15}  # five generations of three tries


def test_a_failed_request_leaves_its_row_for_the_next_time(tmp_path: Path) -> None:
    partial = made_by(lambda body: "<failed>" if body["model"] == "judge-1" else play(body), tmp_path, 3)
    assert len(partial.unfinished) == 3
    assert "overloaded" in partial.unfinished["q0"]
    whole = made_by(play, tmp_path, 3)
    assert counted(whole.account, "cached")["candidate"] == 3
    assert whole.rows == made_by(play, tmp_path / "another", 3).rows
    with pytest.raises(HedgeError, match=r"the server is gone: .*continues from there"):
        made_by(lambda body: "<failed>", tmp_path / "gone", 40)


# --- the command ------------------------------------------------------------------------------------------------------


def command(url: str, source: Path, out: Path, *more: str) -> list[str]:
    judges = [part for n in range(3) for part in ("--judge", f"model=judge-{n},url={url}")]
    models = ["--generator", f"model=writer,url={url}", "--critic", f"model=critic,url={url}", *judges]
    nli = ["--nli", "package://hedge_tasks.models.tiny/nli"]
    return ["make", "medhallu", str(source), "--out", str(out), *models, *nli, *more]


@pytest.mark.slow
def test_the_command_writes_a_set_that_the_tasks_of_medhallu_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from hedge_tasks.making.medhallu import construction
    from hedge_tasks.suites.medhallu.documents import process_docs

    out = tmp_path / "out"
    source = written(tmp_path / "source.jsonl", *map(question, range(10)), {"question": None, "long_answer": None})
    script = Script(play)
    with serve(script) as url:
        arguments = command(url, source, out)
        arguments[arguments.index("--nli") + 1] = "/no/such/model"
        assert main(arguments) in (1, 2)
        assert script.bodies == []  # models are looked for before anybody is paid
        monkeypatch.setattr(construction, "ModelComparison", lambda nli, embedding: Comparison())
        # The scripted writer is always nine characters short and says "raises": no skill is needed.
        assert main(command(url, source, out)) != 0
        assert "right without skill" in capsys.readouterr().err
        whole = [*command(url, source, out, "--licence", "mit"), "--floor", "1"]
        assert main(whole) == 0
        assert "7 of 11 records accepted" in capsys.readouterr().out
        before = len(script.bodies)
        files = {name: (out / name).read_bytes() for name in (DATA, "report.json", "README.md")}
        assert main(whole) == 0
        assert {name: (out / name).read_bytes() for name in files} == files
        assert len(script.bodies) == before
        # What people call right leaves the set.
        labels = tmp_path / "labels.csv"
        labels.write_text("id,label\nq0,0\nq1,1\n")
        assert main([*whole, "--labels", str(labels)]) == 0
    report = json.loads((out / "report.json").read_text())
    assert report["rejected"]["no question or answer in the source"] == 1
    assert report["rejected"]["not wrong, people say"] == 1
    card = files["README.md"].decode()
    assert "license: mit" in card
    assert "written by writer, critic: the terms of use of these models apply" in card
    assert url not in card + json.dumps(report)
    assert (out / "review.html").read_text().count("<article") == 7
    made = Dataset.from_parquet(str(out / DATA), keep_in_memory=True)
    assert made["Id"][:] == ["q1", "q2", "q3", "q5", "q6", "q7"]
    documents = process_docs(made, show="both")
    assert Counter(documents["truth"]) == {"0": 6, "1": 6}
    assert set(documents["kind"]) <= {"misinterpretation", "incomplete", "mechanism", "evidence"}


# --- candidates for the semantic analysis -----------------------------------------------------------------------------


def play_candidates(body: dict[str, Any]) -> str:
    """Candidate k of a question, told by its temperature: one refuses, one equals the truth, odd ones deceive all."""
    fields = asked_of(body)
    if "answer_1" in fields:
        if OFF_TOPIC in fields["answer_1"] + fields["answer_2"]:
            return json.dumps({"more_accurate": 1 if OFF_TOPIC in fields["answer_2"] else 2})
        place = 1 if "candidate" in fields["answer_1"] else 2
        deceives = int(fields[f"answer_{place}"].split()[1].rstrip(".")) % 2 if "candidate" in str(fields) else 0
        return json.dumps({"more_accurate": place if deceives else 3 - place})
    number = round((body["temperature"] - 0.3) / 0.1)
    text = f"candidate {number}. ".ljust(100, "z")
    text = {0: "I'm sorry, but I cannot help with that.", 2: fields["true_answer"]}.get(number, text)
    return json.dumps({"category": "Incomplete Information", "hallucinated_answer": text, "error": "e"})


def test_candidates_are_written_whether_they_pass_or_not(tmp_path: Path) -> None:
    from hedge_tasks.making.medhallu.construction import CandidateSampling

    models = models_by(play_candidates, ROLES)
    made = make(questions(3), CandidateSampling(5), sampling_stages(3, 5), models, tmp_path, concurrency=2)
    assert made.steps == {
        "refusal": 3,
        "same as the truth": 3,
        "passes the checks without a model": 9,
        "deceives": 6,
        "deceives nobody": 9,
    }
    for row in made.rows:
        assert [candidate["fooled"] for candidate in row["candidates"]] == [False, True, False, True, False]
        checks = ["refusal", None, "same as the truth", None, None]
        assert [candidate["check"] for candidate in row["candidates"]] == checks


def test_a_dry_run_asks_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Three judges in two orders; five generations, each of which may be rewritten; two controls a truth."""
    source = written(tmp_path / "source.jsonl", *map(question, range(10)))
    call = [*command("http://localhost:1/v1", source, tmp_path / "out"), "--dry-run", "--json"]
    stages = json_of(capsys, call)["stages"]
    assert {stage["stage"]: (stage["requests from"], stage["to"]) for stage in stages} == {
        **{"candidate": (10, 50), "verify": (30, 300), "control": (60, 60), "judge": (60, 600)},
        **{"judge_control": (0, 60), "critique": (0, 50), "rewrite": (0, 50)},
    }
    stages = json_of(capsys, [*call, "--candidates", "50"])["stages"]
    assert [(stage["requests from"], stage["to"]) for stage in stages] == [(500, 500), (60, 3000), (0, 60)]
    assert not (tmp_path / "out").exists()


def test_pubmedqas_rows_are_understood(tmp_path: Path) -> None:
    row = {
        "pubid": 7,
        "question": "q?",
        "context": {"contexts": ["a", "b", None], "labels": [], "meshes": ["Heart", "Adult"]},
        "long_answer": "yes, it does",
    }
    null = {**row, "pubid": 8, "long_answer": None}
    path = written(tmp_path / "s.jsonl", row, {**row, "pubid": 9}, null)
    read = read_questions(str(path), licence="mit")
    facts = ("q?", "yes, it does", ("a", "b"), "s.jsonl, mit", ("Heart", "Adult"))
    assert read.rows == [SourceQuestion("7", *facts), SourceQuestion("9", *facts)]
    [why] = read.left_out
    assert "no text under long_answer or answer" in why
