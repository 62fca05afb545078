"""MedHallu's construction on scripted models, against counts made by hand."""

from __future__ import annotations

import csv
import json
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from datasets import Dataset
from making import asked_of, attempt_of, play, question
from once import python
from openai_server import Response, Script, serve

from hedge_tasks.cli import main
from hedge_tasks.errors import ConfigError, DataError, HedgeError
from hedge_tasks.llm.log import Kept, Reply, ReplyLog
from hedge_tasks.llm.models import ServedModel
from hedge_tasks.making.medhallu.checks import Vote, allowed_length, difficulty
from hedge_tasks.making.medhallu.pipeline import MedHallu
from hedge_tasks.making.medhallu.questions import SourceQuestion, read_questions
from hedge_tasks.making.output import DATA
from hedge_tasks.making.production import Production, produce
from hedge_tasks.making.shortcuts import alarms, shortcuts


class Meaning:
    """Everything entails everything as strongly as it is told."""

    model = "scripted"

    def __init__(self, forth: float = 0.2, back: float = 0.9) -> None:
        self.said = forth, back

    def both_ways(self, first: str, second: str) -> tuple[float, float]:
        return self.said


class Likeness:
    """The more rewritings, the less alike."""

    model = "scripted"

    def cosine(self, first: str, second: str) -> float:
        return 1.0 - 0.1 * attempt_of(first)

    def embed(self, texts: list[str]) -> Any:
        return np.array([[len(text), text.count("~")] for text in texts], dtype=float)


def questions(count: int) -> list[SourceQuestion]:
    rows = (question(number) for number in range(count))
    return [SourceQuestion(r["id"], r["question"], r["answer"], tuple(r["knowledge"])) for r in rows]


def make(url: str, folder: Path, count: int = 10, **options: Any) -> Production:
    pipeline = MedHallu(
        generator=ServedModel("writer", url, max_retries=0),
        judges=[ServedModel(f"judge-{number}", url, max_retries=0) for number in range(3)],
        critic=ServedModel("critic", url, max_retries=0),
        entailment=options.pop("entailment", Meaning()),
        similarity=Likeness(),
        **options,
    )
    with ReplyLog(folder) as log:
        return produce(questions(count), pipeline, log, concurrency=4)


@pytest.mark.slow
def test_every_stage_has_the_counts_of_a_calculation_by_hand(tmp_path: Path) -> None:
    # Ten questions, two of each kind (see making.fooled_judges). Kinds 0, 1, 2 pass at once; kind 3 is rewritten
    # twice; kind 4 is rewritten four times and falls back.
    with serve(play) as url:
        made = make(url, tmp_path)
    assert made.steps == {
        "written": 10,
        "rewritten": 2 * 2 + 2 * 4,
        "deceives nobody": 2 * 2 + 2 * 5,
        "accepted at attempt 1": 6,
        "accepted at attempt 3": 2,
        "fallback": 2,
        **{f"truth supported by judge-{number}": 10 for number in range(3)},
    }
    candidates = 10 + 12
    assert made.account.of("requests") == {
        "candidate": 10,
        "verify": candidates * 3,
        "control": 10 * 3,  # each truth once a verifier
        "judge": candidates * 3 * 2,
        "critique": 12,
        "rewrite": 12,
    }
    assert made.account.of("cached") == {"control": (candidates - 10) * 3}
    assert not made.rejected
    assert Counter(row["Difficulty Level"] for row in made.rows) == {"hard": 2, "medium": 4, "easy": 2 + 2}
    assert [row["Fallback"] for row in made.rows] == [False] * 4 + [True] + [False] * 4 + [True]
    # The fallback is the candidate most like the true answer: here the one that was never rewritten.
    assert attempt_of(made.rows[4]["Hallucinated Answer"]) == 0
    assert made.rows[4]["Similarity"] == 1.0
    assert attempt_of(made.rows[3]["Hallucinated Answer"]) == 2
    assert [row["Id"] for row in made.rows] == [f"q{number}" for number in range(10)]


@pytest.mark.slow
def test_what_was_said_is_never_asked_again(tmp_path: Path) -> None:
    with serve(play) as url:
        first = make(url, tmp_path)
        asked: list[Any] = []
        again = make(url, tmp_path)
    with serve(lambda body: asked.append(body) or "no") as elsewhere:  # another address is the same model
        moved = make(elsewhere, tmp_path)
    assert not asked
    assert list(again.rows) == list(first.rows) == list(moved.rows)
    replies = first.account.of("requests")
    assert again.account.of("cached") == {
        **replies,
        "control": replies["control"] + first.account.of("cached")["control"],
    }
    assert not again.account.of("requests")


@pytest.mark.slow
def test_another_seed_is_asked_anew(tmp_path: Path) -> None:
    script = Script(play)
    with serve(script) as url:
        make(url, tmp_path, count=1)
        before = len(script.bodies)
        pipeline = MedHallu(
            ServedModel("writer", url),
            [ServedModel(f"judge-{n}", url) for n in range(3)],
            ServedModel("critic", url),
            Meaning(),
            Likeness(),
        )
        with ReplyLog(tmp_path) as log:
            produce(questions(1), pipeline, log, seed=1)
    assert len(script.bodies) == 2 * before


@pytest.mark.slow
def test_the_sampling_is_the_papers(tmp_path: Path) -> None:
    script = Script(play)
    with serve(script) as url:
        make(url, tmp_path, count=5)
    written = [body for body in script.bodies if body["model"] == "writer"]
    # Attempts 1 to 5 of the fifth question, 1 to 3 of the fourth.
    assert Counter(body["temperature"] for body in written) == {0.3: 5, 0.4: 2, 0.5: 2, 0.6: 1, 0.7: 1}
    assert {body["top_p"] for body in written} == {0.95}
    assert {body["max_tokens"] for body in written} == {512}
    assert {body["temperature"] for body in script.bodies if body["model"].startswith("judge")} == {0.0}
    assert len({body["seed"] for body in script.bodies}) == len(script.bodies) - _same_judge_seeds(script.bodies)


def _same_judge_seeds(bodies: Sequence[dict[str, Any]]) -> int:
    """Judges are greedy and share the seed of their record: they are told apart by name and by what they are shown."""
    judged = [body for body in bodies if body["model"].startswith("judge")]
    return len(judged) - len({body["seed"] for body in judged})


@pytest.mark.slow
def test_a_paraphrase_of_the_truth_is_never_released_as_wrong(tmp_path: Path) -> None:
    with serve(play) as url:
        made = make(url, tmp_path, count=2, entailment=Meaning(0.75, 0.9))
        assert not made.rows
        assert made.rejected == {"every candidate fails: same meaning": 2}
        assert "judge" not in made.account.of("requests")
        below = make(url, tmp_path, count=2, entailment=Meaning(0.7499, 0.9))
    assert len(below.rows) == 2


@pytest.mark.parametrize(("length", "step"), [(89, "too short"), (111, "too long")])
def test_the_length_rule_holds(tmp_path: Path, length: int, step: str) -> None:
    def reply(body: dict[str, Any]) -> str:
        said = play(body)
        if '"hallucinated_answer"' not in said:
            return said
        fields = json.loads(said.split("```json\n")[1].split("\n```")[0])
        return json.dumps({**fields, "hallucinated_answer": "z" * length})

    with serve(reply) as url:
        made = make(url, tmp_path, count=1)
    assert made.steps[step] == 5
    assert made.rejected == {f"every candidate fails: {step}": 1}


def test_a_length_at_the_bounds_is_taken() -> None:
    assert allowed_length("x" * 268) == (242, 294)
    assert allowed_length("x" * 10) == (9, 11)
    assert allowed_length("x" * 3) == (3, 3)


def test_a_judge_that_goes_by_the_place_is_not_deceived(tmp_path: Path) -> None:
    def reply(body: dict[str, Any]) -> str:
        return '{"more_accurate": 2}' if "answer_1" in asked_of(body) else play(body)

    with serve(reply) as url:
        made = make(url, tmp_path, count=1)
    assert made.rows[0]["Fallback"]
    assert {vote["fooled"] for vote in made.rows[0]["Votes"]} == {False}
    assert made.steps["by place: judge-0"] == 5


def test_difficulty_counts_the_judges_that_were_deceived() -> None:
    def votes(fooled: int, of: int) -> list[Vote]:
        return [Vote(str(n), (n < fooled, n < fooled)) for n in range(of)]

    assert [difficulty(votes(n, 3)) for n in range(4)] == [None, "easy", "medium", "hard"]
    assert [difficulty(votes(n, 5)) for n in range(6)] == [None, "easy", "medium", "medium", "medium", "hard"]


def test_replies_that_cannot_be_read_are_asked_again_and_counted(tmp_path: Path) -> None:
    garbled = Counter[str]()

    def reply(body: dict[str, Any]) -> str:
        kind = body["model"]
        garbled[kind] += 1
        if garbled[kind] == 1:
            return {"writer": "<think>hm", "judge-0": "1 or 2", "critic": "{}"}.get(kind, play(body))
        return play(body)

    with serve(reply) as url:
        made = make(url, tmp_path, count=1)
    assert made.account.of("unreadable") == {"candidate": 1, "verify": 1}
    assert made.rows[0]["Difficulty Level"] == "hard"


def test_a_writer_that_says_nothing_usable_leaves_a_reason(tmp_path: Path) -> None:
    with serve(lambda body: "I cannot help with that.") as url:
        made = make(url, tmp_path, count=1)
    assert made.rejected == {"nothing that could be read": 1}
    assert made.account.of("requests") == {"candidate": 15}  # five attempts of three tries


@pytest.mark.slow
def test_a_failed_request_leaves_its_record_for_the_next_time(tmp_path: Path) -> None:
    broken = threading.Event()

    def reply(body: dict[str, Any]) -> str | Response:
        if not broken.is_set() and body["model"] == "judge-1":
            return Response({"error": {"message": "overloaded"}}, 503)
        return play(body)

    with serve(reply) as url:
        partial = make(url, tmp_path, count=3)
        assert len(partial.unfinished) == 3
        assert not partial.complete
        assert "overloaded" in partial.unfinished["q0"]
        broken.set()
        whole = make(url, tmp_path, count=3)
    assert whole.complete
    assert whole.account.of("cached")["candidate"] == 3
    with serve(play) as url:
        assert list(make(url, tmp_path / "other", count=3).rows) == list(whole.rows)


def test_a_server_that_is_gone_ends_the_making(tmp_path: Path) -> None:
    with serve(play) as url:
        pass
    with pytest.raises(HedgeError, match=r"nobody answers any more .*goes on from here"):
        make(url, tmp_path, count=40)


def test_judges_must_be_three_different_models() -> None:
    writer = ServedModel("a", "http://localhost:1/v1")
    with pytest.raises(ConfigError, match="at least 3"):
        MedHallu(writer, [writer] * 2, writer, Meaning(), Likeness())
    with pytest.raises(ConfigError, match="same model"):
        MedHallu(writer, [writer, ServedModel("b", "http://localhost:1/v1"), writer], writer, Meaning(), Likeness())
    with pytest.raises(ConfigError, match="did you mean 'critique'"):
        MedHallu(
            writer, [ServedModel(n, "http://localhost:1/v1") for n in "abc"], writer, Meaning(), Likeness(), "critiqe"
        )


@pytest.mark.slow
def test_damaged_replies_are_asked_again(tmp_path: Path) -> None:
    with serve(play) as url:
        whole = make(url, tmp_path, count=2)
        [file] = tmp_path.glob("*.jsonl")
        lines = file.read_bytes().splitlines(keepends=True)
        lines[1] = lines[1].replace(b"e", b"f", 1)
        file.write_bytes(b"".join(lines)[:-20])
        again = make(url, tmp_path, count=2)
    assert again.account.total.requests == 2
    assert list(again.rows) == list(whole.rows)


def test_the_first_reply_under_a_key_stands(tmp_path: Path) -> None:
    with ReplyLog(tmp_path) as log, ReplyLog(tmp_path) as other:
        for text in ("first", "second"):
            log.add([("k", Reply(text), {"record": "r"})])
            assert log.get("k") == Kept(Reply("first"), {"record": "r"})
        other.add([("k", Reply("third"), {})])
    assert ReplyLog(tmp_path).get("k") == Kept(Reply("first"), {"record": "r"})


# --- the command ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_null_row_is_left_out_and_counted_and_models_are_looked_for_before_anybody_is_paid(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "source.jsonl"
    rows = [*(question(number) for number in range(3)), {"question": None, "long_answer": None}]
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    script = Script(play)
    with serve(script) as url:
        asked = command(url, source, tmp_path / "out")
        assert main([*asked, "--nli", "/no/such/model"]) in (1, 2)
        assert "/no/such/model" in capsys.readouterr().err
        assert script.bodies == []
        assert main(asked) == 0
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert (report["records"], report["accepted"]) == (4, 3)
    assert report["rejected"] == {"no question or answer in the source": 1}
    card = (tmp_path / "out" / "README.md").read_text()
    assert "written by writer, critic: the terms of use of these models apply" in card
    candidates = [
        body for body in script.bodies if "earlier_answer" not in json.dumps(body) and body["model"] == "writer"
    ]
    assert f"| candidate | {len(candidates)} | {len(candidates)} | {len(candidates)} |" in card  # a token each way
    again = (tmp_path / "out" / "report.json").read_bytes()
    with serve(script) as url:
        assert main(command(url, source, tmp_path / "out")) == 0  # another process, which asks nothing
    assert (tmp_path / "out" / "report.json").read_bytes() == again


def write_source(path: Path, count: int) -> Path:
    path.write_text("".join(json.dumps(question(number)) + "\n" for number in range(count)))
    return path


def command(url: str, source: Path, out: Path, *more: str) -> list[str]:
    judges = [part for n in range(3) for part in ("--judge", f"model=judge-{n},url={url}")]
    models = ["--generator", f"model=writer,url={url}", "--critic", f"model=critic,url={url}", *judges]
    nli = ["--nli", "package://hedge_tasks.models.tiny/nli"]
    return ["make", "medhallu", str(source), "--out", str(out), *models, *nli, *more]


@pytest.mark.slow
def test_the_command_writes_a_set_that_the_tasks_of_medhallu_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from hedge_tasks.suites.medhallu.documents import process_docs

    source = write_source(tmp_path / "source.jsonl", 10)
    with serve(play) as url:
        assert main(command(url, source, tmp_path / "out", "--licence", "mit")) == 0
        said = capsys.readouterr().out
        assert "10 of 10 records accepted" in said
        # The scripted writer is always nine characters short: an open shortcut, and said to be one.
        assert (
            "Warning: length alone, without the question, tells wrong answers from true ones with an AUROC of 1.000"
            in said
        )
        card = (tmp_path / "out" / "README.md").read_text()
        assert "license: mit" in card
        assert "| accepted | 10 |" in card
        assert url not in card + (tmp_path / "out" / "report.json").read_text()
        # Three workers into another folder, then the whole: the same rows, nothing asked twice.
        for worker in ("1/3", "2/3", "3/3"):
            assert main(command(url, source, tmp_path / "shared", "--licence", "mit", "--worker", worker)) == 0
        capsys.readouterr()
        assert main([*command(url, source, tmp_path / "shared", "--licence", "mit"), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["asked"]["requests"] == 0
    assert report["asked"]["cached"] > 0
    made = Dataset.from_parquet(str(tmp_path / "out" / DATA), keep_in_memory=True)
    assert made.to_list() == Dataset.from_parquet(str(tmp_path / "shared" / DATA), keep_in_memory=True).to_list()
    documents = process_docs(made, show="both")
    assert len(documents) == 20
    assert Counter(documents["truth"]) == {"0": 10, "1": 10}
    assert Counter(documents["difficulty"])["hard"] == 4
    assert set(documents["kind"]) <= {"misinterpretation", "incomplete", "mechanism", "evidence"}
    page = (tmp_path / "out" / "review" / "page-1.html").read_text()
    assert page.count("<article") == 20  # ten rows and as many controls


@pytest.mark.slow
def test_what_people_call_right_leaves_the_set(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = write_source(tmp_path / "source.jsonl", 5)
    with serve(play) as url:
        assert main(command(url, source, tmp_path / "out")) == 0
        labels = []
        for rater in (1, 2):
            path = tmp_path / "out" / "review" / f"labels-{rater}.csv"
            with path.open(newline="") as file:
                rows = list(csv.DictReader(file))
            said = ["1" if "raises" in r["answer"] and "number 2" not in r["answer"] else "0" for r in rows]
            table = "".join(f"{row['code']},{label}\n" for row, label in zip(rows, said, strict=True))
            path.write_text(f"code,label\n{table}")
            labels += ["--labels", str(path)]
        assert main([*command(url, source, tmp_path / "out"), *labels]) == 0
    assert "rejected: not wrong, people say" in capsys.readouterr().out
    made = Dataset.from_parquet(str(tmp_path / "out" / DATA), keep_in_memory=True)
    assert made["Id"][:] == ["q0", "q1", "q3", "q4"]
    assert "| of these not wrong, and left out | 1 |" in (tmp_path / "out" / "README.md").read_text()


# --- candidates for the semantic analysis -----------------------------------------------------------------------------


def play_candidates(body: dict[str, Any]) -> str:
    """Candidate k of a question, told by its temperature: one refuses, one equals the truth, odd ones deceive all."""
    fields = asked_of(body)
    if "answer_1" in fields:
        place = 1 if "candidate" in fields["answer_1"] else 2
        deceives = int(fields[f"answer_{place}"].split()[1].rstrip(".")) % 2 if "candidate" in str(fields) else 0
        return json.dumps({"more_accurate": place if deceives else 3 - place})
    number = round((body["temperature"] - 0.3) / 0.1)
    text = f"candidate {number}. ".ljust(100, "z")
    text = {0: "I'm sorry, but I cannot help with that.", 2: fields["true_answer"]}.get(number, text)
    return json.dumps({"category": "Incomplete Information", "hallucinated_answer": text, "error": "e"})


@pytest.mark.slow
def test_candidates_are_kept_whether_they_pass_or_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from hedge_tasks.making.medhallu.candidates import read_candidates

    source, out = write_source(tmp_path / "source.jsonl", 3), tmp_path / "out"
    broken = threading.Event()

    def sometimes(body: dict[str, Any]) -> str | Response:
        if not broken.is_set() and body["model"] == "judge-2" and "drug 1" in str(body):
            return Response({"error": {"message": "overloaded"}}, 503)
        return play_candidates(body)

    with serve(sometimes) as url:
        # Five temperatures from 0.3 to 0.7, one a candidate.
        assert main([*command(f"{url},max_retries=0", source, out, "--candidates", "5"), "--json"]) == 1
        assert json.loads(capsys.readouterr().out)["unfinished"] == 1
        broken.set()
        assert main([*command(f"{url},max_retries=0", source, out, "--candidates", "5"), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["steps"] == {
        "refusal": 3,
        "same as the truth": 3,
        "passes the checks without a model": 9,
        "deceives": 6,
        "deceives nobody": 9,
    }
    with serve(play_candidates) as url:
        assert main(command(url, source, tmp_path / "whole", "--candidates", "5")) == 0
    written = [(folder / "candidates.jsonl").read_bytes() for folder in (out, tmp_path / "whole")]
    assert written[0] == written[1]
    questions = read_candidates(out)
    assert [one.id for one in questions] == ["q0", "q1", "q2"]
    for one in questions:
        assert [candidate.fooled for candidate in one.candidates] == [False, True, False, True, False]
        assert [candidate.check for candidate in one.candidates] == ["refusal", None, "same as the truth", None, None]


def test_what_candidates_cost_is_said_before(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = write_source(tmp_path / "source.jsonl", 10)
    more = ["--candidates", "50", "--dry-run", "--json"]
    assert main([*command("http://localhost:1/v1", source, tmp_path / "out", *more)]) == 0
    stages = json.loads(capsys.readouterr().out)["stages"]
    assert {name: stage["requests"] for name, stage in stages.items()} == {"candidate": [500, 500], "judge": [60, 3000]}


def test_a_dry_run_asks_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = write_source(tmp_path / "source.jsonl", 10)
    assert main([*command("http://localhost:1/v1", source, tmp_path / "out"), "--dry-run", "--json"]) == 0
    stages = json.loads(capsys.readouterr().out)["stages"]
    # Three judges in two orders; five attempts; one candidate, and four times critique and rewriting.
    assert {name: stage["requests"] for name, stage in stages.items()} == {
        "candidate": [10, 10],
        "verify": [30, 150],
        "control": [30, 30],
        "judge": [60, 300],
        "critique": [0, 40],
        "rewrite": [0, 40],
    }
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        (["--worker", "4/3"], "--worker: expected K/N"),
        (["--judge", "modle=a"], "did you mean 'model'"),
        (["--judge", "model=a,url=ftp://x"], "url: expected"),
        (["--attempts", "0"], "attempts"),
        (["--limit", "0"], "--limit: expected an integer of at least 1"),
        (["--limit", "-1"], "--limit: expected an integer of at least 1"),
        (["--concurrency", "0"], "--concurrency: expected an integer of at least 1"),
    ],
)
def test_a_wrong_option_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str], complaint: str
) -> None:
    source = write_source(tmp_path / "source.jsonl", 1)
    assert main(command("http://localhost:1/v1", source, tmp_path / "out", *more)) == 2
    assert complaint in capsys.readouterr().err


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ({"question": "q?"}, "no text under long_answer or answer"),
        ({"question": " ", "answer": "a"}, "no text under question"),
        ({"question": "q?", "answer": "a", "knowledge": 7}, "knowledge is neither"),
    ],
)
def test_a_source_row_that_lacks_something_is_named(tmp_path: Path, row: dict[str, Any], complaint: str) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(json.dumps(row) + "\n")
    with pytest.raises(DataError, match=complaint):
        read_questions(str(path))


def test_pubmedqas_rows_are_understood(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    row = {
        "pubid": 7,
        "question": "q?",
        "context": {"contexts": ["a", "b", None], "labels": [], "meshes": ["Heart", "Adult"]},
        "long_answer": "yes, it does",
    }
    null = {**row, "pubid": 8, "long_answer": None}
    path.write_text("".join(json.dumps(one) + "\n" for one in (row, {**row, "pubid": 9}, null)))
    read = read_questions(str(path), licence="mit")
    facts = ("q?", "yes, it does", ("a", "b"), "s.jsonl, mit", ("Heart", "Adult"))
    assert read.questions == [SourceQuestion("7", *facts), SourceQuestion("9", *facts)]
    [why] = read.left_out
    assert "no text under long_answer or answer" in why


def test_two_records_of_one_id_are_refused(tmp_path: Path) -> None:
    with ReplyLog(tmp_path) as log, pytest.raises(DataError, match="'q0' more than once"):
        produce([*questions(1), *questions(1)], lambda source, asking: None, log)  # type: ignore[arg-type,return-value]


@pytest.mark.slow
def test_killed_20_times_it_ends_where_it_would_have(tmp_path: Path) -> None:
    script = Script(lambda body: time.sleep(0.03) or play(body))
    program = "import sys, making_process as p; p.run_killed(sys.argv[1], sys.argv[2], 20)"
    with serve(script) as url:
        arguments = [python(), "-c", program, url, str(tmp_path / "killed")]
        ran = subprocess.run(arguments, cwd=Path(__file__).parent, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr
        asked = len(script.bodies)
        whole = make(url, tmp_path / "whole")
    assert int(ran.stdout) == 20
    rows = json.loads((tmp_path / "killed" / "rows.json").read_text())
    assert rows == json.loads(json.dumps([dict(row) for row in whole.rows]))
    # Asked twice is at most what was under way as a kill came: four questions at a time.
    assert asked <= whole.account.total.requests + 4 * 20


@pytest.mark.slow
def test_shortcuts_are_found_where_they_are_and_only_there() -> None:
    rng = np.random.default_rng(0)
    words = ["lowers", "raises", "keeps", "pressure", "rate", "level", "of", "blood", "heart", "lung"]
    texts = [" ".join(rng.choice(words, 12)) for _ in range(400)]
    true, wrong = texts[:200], texts[200:]
    fair = shortcuts(true, wrong)
    assert set(fair) == {"length", "words"}
    assert alarms(fair) == []
    open_ = shortcuts(true, [f"{text} allegedly" for text in wrong])
    assert len(alarms(open_)) == 2
    assert open_["words"].value > 0.99  # type: ignore[union-attr,operator]
    # A length that differs by a constant has the AUROC of a shifted distribution: brute force over all pairs.
    longer = [len(w) + 10 for w in wrong]
    pairs = [(w > len(t)) + 0.5 * (w == len(t)) for w in longer for t in true]
    assert open_["length"].value == pytest.approx(np.mean(pairs))  # type: ignore[union-attr]
    assert isinstance(shortcuts(["a"], ["b"])["words"], str)  # a reason, and no number
