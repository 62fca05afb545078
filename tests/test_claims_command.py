"""`hedge claims` as it is typed, its files, and its page."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from openai_server import serve
from printed import json_of

from hedge_tasks.claims.entailment.words import WordsEntailment
from hedge_tasks.cli import main
from hedge_tasks.runs.claim_files import read_labels
from hedge_tasks.runs.run_files import load_run, save_run, write_again

ANSWERS = [
    ("a", "No effusion. A mass is seen.", ["No effusion.", "There is no effusion. A cyst."], [0, 1]),
    ("b", "A <b>rib</b> is broken. No effusion.", ["A rib is broken.", "No effusion. A mass."], ["silent", 1]),
    ("c", "The heart is large. A clip.", ["The heart is large.", "A clip is seen; the heart is large."], [0, 0]),
]


def rows(labels: bool = True) -> list[dict[str, Any]]:
    found = []
    for id, text, clean, said in ANSWERS:
        cut = text.index(". ") + 1
        spans = [{"start": 0, "end": cut}, {"text": text[cut + 1 :]}]
        claims = [{**span, "label": label} for span, label in zip(spans, said, strict=True)]
        found.append(
            {"id": id, "baseline": text, "clean": clean, "noisy": clean[:1], "claims": claims if labels else []}
        )
    return found


def three_times(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same answers under other ids: an AUROC needs five claims of each kind."""
    return [{**line, "id": f"{line['id']}{copy or ''}"} for copy in range(3) for line in lines]


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    return written(tmp_path / "answers.jsonl", rows())


def written(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path


def asked(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> tuple[str, str]:
    assert main(["claims", *map(str, arguments)]) == code, capsys.readouterr().err
    said = capsys.readouterr()
    return said.out, said.err


def test_scores_of_every_claim_are_written(answers: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "scores.jsonl"
    asked(capsys, answers, "--out", path, "--detectors", "claim_luq,claim_length")
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert [line["id"] for line in lines] == ["a#0", "a#1", "b#0", "b#1", "c#0", "c#1"]
    # "A mass is seen.": nothing of it stands in the first draw, "a" in the second.
    assert lines[1] == {
        "id": "a#1",
        "answer": "a",
        "text": "A mass is seen.",
        "start": 13,
        "end": 28,
        "label": 1,
        "scores": {"claim_luq": pytest.approx(1 - (0 + 2 / 4) / 2), "claim_length": 4.0},
    }
    assert lines[2]["label"] == "silent"


def test_without_labels_the_most_suspicious_claims_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = asked(capsys, written(tmp_path / "x.jsonl", rows(labels=False)))
    assert "no claim is labelled" in out
    table = r"by claim_luq .*\nanswer +score +claim\na +0\.750  A mass is seen\.\nb +0\.5\d+  A <b>rib</b>"
    assert re.search(table, out)


@pytest.mark.slow
def test_labels_of_a_file(answers: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # Units of their own: half a sentence.
    lines = [
        {"id": "a", "claims": [{"text": "mass is seen", "label": 0}]},
        {"id": "c", "claims": [{"text": "A clip.", "label": 1}]},
    ]
    labels = written(tmp_path / "labels.jsonl", lines)
    out, _ = asked(capsys, answers, "--labels", labels, "--json")
    facts = json.loads(out)
    assert (facts["labels"], facts["labelled"], facts["hallucinated"]) == ("a file of labels", 2, 1)
    run = load_run(answers)
    assert sorted(read_labels(labels, run.answer_sets)) == ["a", "c"]
    for wrong, message in (
        ([{"id": "z", "claims": []}], "got those of 'z'"),
        ([lines[0], lines[0]], "got those of 'a'"),
        ([{"id": "a"}], "expected claims of an answer not labelled before"),
        ([{"id": "a", "claims": [{"text": "cow"}]}], "'cow' does not stand in the baseline answer"),
        ([], "no labels in it"),
    ):
        _, err = asked(capsys, answers, "--labels", written(tmp_path / "wrong.jsonl", wrong), code=2)
        assert message in err


def test_tokens_give_scores_without_a_draw(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = rows()
    for line, worst in zip(lines, (-3.0, -9.0, -0.5), strict=True):
        words = re.findall(r"\s*\S+", line["baseline"])
        tokens = [[word, -0.25] for word in words[:-1]] + [[words[-1], worst]]
        line["baseline"] = {"text": line["baseline"], "tokens": tokens}
    answers = written(tmp_path / "x.jsonl", three_times(lines))
    facts, other = (
        json.loads(asked(capsys, answers, "--json", *more)[0]) for more in ((), ("--silent", "hallucinated"))
    )
    labelled = [[one[key] for key in ("labelled", "hallucinated", "silent_claims")] for one in (facts, other)]
    assert labelled == [[15, 6, 3], [18, 9, 3]]
    assert (facts["decomposition"], facts["support"], facts["price"]["claims"]) == ("sentence", "words", 18)
    found = {row["detector"]: row for row in facts["detectors"]}
    luq = found["claim_luq"]
    assert luq["estimate"]["interval"][0] < luq["estimate"]["value"] < luq["estimate"]["interval"][1]
    assert luq["flagged"] >= facts["flag"] == 0.2
    assert found["claim_nll_max"]["draws"] == 0
    assert found["claim_nll_max"]["estimate"]["value"] == 1.0  # the second claims of a and b are the wrong ones


@pytest.mark.slow
def test_atomic_claims_and_a_judge_by_one_server(
    answers: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HEDGE_CACHE", str(tmp_path / "cache"))

    def reply(body: dict[str, Any]) -> str:
        shown = json.loads(body["messages"][-1]["content"])
        if "claims" in shown:
            text = shown["text"].lower()
            return json.dumps({n: "yes" if claim.lower() in text else "no" for n, claim in shown["claims"].items()})
        quotes = [one.strip() for one in shown["text"].split(".") if one.strip()]
        return json.dumps({"claims": [{"claim": one + ".", "quote": one} for one in (*quotes, "made up")]})

    with serve(reply) as url:
        server = f"model=m,url={url}"
        arguments = (answers, *("--unit", f"atomic:{server}", "--support", f"judge:{server}", "--json"))
        out, err = asked(capsys, *arguments)
        _, again = asked(capsys, answers, "--unit", f"atomic:{server}")
    assert "price: 6 claims of 3 answers x 3 draws: at most 12 judge calls" in err
    facts = json.loads(out)
    assert (facts["unlocated"], facts["claims"], facts["labelled"]) == (3, 6, 5)
    assert facts["model"] == facts["decomposition_model"] == "m"
    assert "no model" in again  # words


# --- the page ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def many(tmp_path: Path) -> Path:
    return save_run(load_run(written(tmp_path / "many.jsonl", three_times(rows()))), tmp_path / "many")


@pytest.fixture
def page(many: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    path = tmp_path / "page.html"
    asked(capsys, many, "--html", path)
    return path.read_text("utf-8")


def test_the_page_shows_every_claim_with_its_label_and_what_draws_say(page: str) -> None:
    claims = re.findall(r'<a class="claim (l\d) (\w+)" href="#(a\d+-\d+)"', page)
    assert len(claims) == 18
    assert sorted(mark for _, mark, _ in claims) == ["hallucinated"] * 6 + ["silent"] * 3 + ["supported"] * 9
    assert all(f'id="{anchor}"' in page for _, _, anchor in claims)  # works without script
    assert {level for level, _, _ in claims} >= {"l0", "l5"}
    assert page.count("<b>✗</b><sup>") == 6  # not by colour alone
    details = page[page.index('id="' + claims[0][2]) :]
    assert re.search(r"(Supporting|Silent): [12] samples?", details)


def test_claims_that_overlap_keep_every_character_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "One two three. Four."
    places = [(0, 7, 1), (4, 14, 0), (5, 7, 1)]
    spans = [{"start": start, "end": end, "label": label} for start, end, label in places]
    row = {"id": "x", "baseline": text, "clean": ["One two."], "claims": spans}
    path = tmp_path / "page.html"
    asked(capsys, written(tmp_path / "x.jsonl", [row, {**row, "id": "y"}]), "--unit", "given", "--html", path)
    shown = re.search(r'<p class="text-of-answer" dir="auto">(.*?)</p>', path.read_text("utf-8"))
    assert shown is not None
    bare = re.sub(r"<b>.?</b><sup>\d+</sup>|<[^>]+>", "", shown[1])
    assert bare == text


# --- kept with the run ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_kept_support_is_scored_again_without_the_engine(
    answers: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, calls = WordsEntailment.support, list[int]()
    monkeypatch.setattr(WordsEntailment, "support", lambda self, queries: calls.append(1) or engine(self, queries))
    _, err = asked(capsys, answers, "--keep", code=2)
    assert "only a run file keeps what models say" in err
    path = save_run(load_run(answers), tmp_path / "run")
    first, _ = asked(capsys, path, "--keep", "--json")
    second, err = asked(capsys, path, "--json")
    assert "nothing is asked: the support is kept with the run" in err
    assert len(calls) == 1
    assert {**json.loads(first), "notes": []} == json.loads(second)
    # It is of these draws alone.
    run = load_run(path)
    fewer = [replace(a, clean=a.clean[:1]) for a in run.answer_sets]
    assert run.support is not None
    assert (run.support.of(run.answer_sets) is None, run.support.of(fewer)) == (False, None)


# --- other commands ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_detectors_and_rescore_show_what_is_kept_as_a_block_of_its_own(
    many: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in (["detectors"], ["rescore"]):
        arguments = [*command, str(many), "--clustering", "exact"]
        assert main(arguments) == 0
        assert "claim_luq" not in capsys.readouterr().out
        asked(capsys, many, "--keep")
        facts = json_of(capsys, [*arguments, "--json"])
        block = (facts[0] if command == ["detectors"] else facts)["claims"]
        assert {row["detector"]: row["draws"] for row in block["detectors"]}["claim_luq"] == 2
        assert block["price"]["claims"] == 18
        assert main(arguments) == 0
        assert "claim_luq" in capsys.readouterr().out
        write_again(replace(load_run(many), support=None))


@pytest.mark.slow
def test_the_report_has_a_section_on_what_is_kept(
    many: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def page() -> str:
        out = tmp_path / "report.html"
        assert main(["report", str(many), "--out", str(out), "--no-curves", "--no-pictures"]) == 0
        capsys.readouterr()
        return out.read_text("utf-8")

    heading = "Claims: which part of an answer is hallucinated"
    assert heading not in page()
    asked(capsys, many, "--keep")
    shown = page()
    section = shown[shown.index(heading) : shown.index("What it took")]
    out, _ = asked(capsys, many, "--json")
    numbers = {row["detector"]: row for row in json.loads(out)["detectors"]}
    for name in ("claim_luq", "claim_position (blind)"):  # blind baselines stand beside
        assert f"<td>{name}</td>" in section
        assert name in numbers
    assert len(re.findall(r'<a class="claim l\d', section)) == 6  # of the first answers
    assert "A &lt;b&gt;rib&lt;/b&gt; is broken." in section
    assert "<b>rib</b>" not in section
    ids = re.findall(r'id="([^"]+)"', shown)
    assert len(ids) == len(set(ids))
