"""The judge of support, at a scripted server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from openai_server import Script, serve

from hedge_tasks.claims.decomposition import Passage, Pieces, build_decomposition
from hedge_tasks.claims.decomposition.atomic import located
from hedge_tasks.claims.entailment import SupportQuery
from hedge_tasks.claims.entailment.judge import JudgeEntailment, read_verdicts
from hedge_tasks.llm.reading import Unreadable

ASKED = SupportQuery(("A cyst.", "No mass.", "A clip."), ("A cyst; a mass.", "", "A clip."))


def verdicts(body: dict[str, Any]) -> dict[str, str]:
    """Yes where the claim's word stands in the text, contradicts where a mass is denied and there is one."""
    shown = json.loads(body["messages"][-1]["content"].splitlines()[0])

    def one(claim: str) -> str:
        if claim == "No mass.":
            return "contradicts" if "mass" in shown["text"] else "no"
        return "yes" if claim.split()[1][:4] in shown["text"] else "no"

    return {number: one(claim) for number, claim in shown["claims"].items()}


def judge(url: str, **options: Any) -> JudgeEntailment:
    return JudgeEntailment("m", url=url, max_retries=0, **options)


def columns(found: np.ndarray) -> list[list[int]]:
    assert np.nansum(found, axis=-1).max() == 1.0
    return [[int(cell.argmax()) if not np.isnan(cell).any() else -1 for cell in row] for row in found]


WANTED = [[2, 1, 1], [0, 1, 1], [1, 1, 2]]


def test_all_claims_of_a_draw_are_one_call() -> None:
    script = Script(lambda body: json.dumps(verdicts(body)))
    with serve(script) as url:
        engine = judge(url)
        assert engine.price([ASKED, ASKED]) == 2
        [found, again] = engine.support([ASKED, ASKED])
    assert columns(found) == columns(again) == WANTED
    assert len(script.bodies) == 2  # the empty draw is silent, and nothing is asked twice
    assert script.bodies[0]["max_tokens"] == 64 + 12 * 3
    schema = script.bodies[0]["response_format"]["json_schema"]["schema"]
    assert schema["required"] == ["1", "2", "3"]


def test_what_cannot_be_read_is_asked_again_and_then_unknown(said: list[str]) -> None:
    script = Script(lambda body: "I would rather not")
    with serve(script) as url:
        found = judge(url).support([ASKED])[0]
    assert np.isnan(found[:, [0, 2]]).all()
    assert found[:, 1].tolist() == [[0.0, 1.0, 0.0]] * 3
    assert len(script.bodies) == 4
    assert any("6 verdicts of judge m could not be had" in line for line in said)


def test_verdicts_are_kept_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEDGE_CACHE", str(tmp_path))
    script = Script(lambda body: json.dumps(verdicts(body)))
    with serve(script) as url:
        first = judge(url).support([ASKED])[0]
        second = judge(url).support([ASKED])[0]
        assert len(script.bodies) == 2
        assert (first == second).all()
        JudgeEntailment("another", url=url, max_retries=0).support([ASKED])
        assert len(script.bodies) == 4
    kept = "".join(path.read_text("utf-8") for path in (tmp_path / "claims").glob("*.jsonl"))
    assert kept
    assert "cyst" not in kept  # hashes only


def test_a_reply_has_one_verdict_on_each_claim_and_on_no_other() -> None:
    assert read_verdicts('{"1": "yes", "2": "no"}', 2) == (2, 1)
    assert read_verdicts('```json\n{"1": " Contradicts "}\n```', 1) == (0,)
    for reply, n in (('{"1": "yes"}', 2), ('{"1": "yes", "2": "no", "3": "no"}', 2), ('{"1": "maybe"}', 1)):
        with pytest.raises(Unreadable):
            read_verdicts(reply, n)


# --- atomic claims ----------------------------------------------------------------------------------------------------

TEXT = "The heart is large.\nNo mass or\nclip. No mass."


def atomic(reply: Any, **options: Any) -> tuple[Any, list[Pieces]]:
    script = Script(reply)
    with serve(script) as url:
        unit = build_decomposition("atomic", model="m", url=url, max_retries=0, **options)
        found = unit.pieces([Passage(TEXT), Passage(""), Passage(TEXT)])
    return script, found


def test_atomic_claims_quote_their_words(warnings: list[str]) -> None:
    said = [
        {"claim": "There is no  mass.", "quote": "No mass"},
        {"claim": "There is no clip.", "quote": "CLIP"},
        {"claim": "The heart is large.", "quote": "The heart is large"},
        {"claim": "There is still no mass.", "quote": "no mass"},
        {"claim": "There is a rib.", "quote": "a rib"},
        {"claim": "Nothing.", "quote": " "},
        {"claim": "No mass or clip.", "quote": "mass or clip"},
        {"claim": "And no mass.", "quote": "no mass"},
    ]
    script, found = atomic(json.dumps({"claims": said}))
    assert len(script.bodies) == 1
    assert found[0] == found[2]
    assert found[1] == Pieces(())
    assert [(piece.text, TEXT[piece.start : piece.end]) for piece in found[0].pieces] == [
        ("The heart is large.", "The heart is large"),
        ("There is no mass.", "No mass"),
        ("And no mass.", "No mass"),
        ("No mass or clip.", "mass or\nclip"),
        ("There is no clip.", "clip"),
        ("There is still no mass.", "No mass"),
    ]
    assert found[0].pieces[-1].start > 25  # the second place
    assert (found[0].unlocated, warnings) == (2, [])


def test_texts_and_numbers_of_claims_are_bounded() -> None:
    assert len(located("a", [{"claim": "x", "quote": "a"}] * 201).pieces) == 200
    with serve(Script("?")) as url:
        engine = judge(url)
        many = [SupportQuery(tuple(f"c{i}" for i in range(n)), ("x" * 20_000, "x" * 20_001)) for n in (40, 41)]
        assert [engine.price([query]) for query in many] == [1, 2]
        assert (engine._tokens(3), judge(url, thinking=True)._tokens(3)) == (3, 48)
        assert len(engine.settings()["prompt_digest"]) == 16
    script, found = atomic('{"claims": []}')
    assert script.bodies[0]["max_tokens"] == 128 + len(TEXT)
    with serve(Script(json.dumps({"claims": [{"claim": "x", "quote": "x"}]}))) as url:
        unit = build_decomposition("atomic", model="m", url=url)
        found = unit.pieces([Passage("x" * 20_000), Passage("x" * 20_001), Passage(" ")])
    assert [len(pieces.pieces) for pieces in found] == [1, 0, 0]
    with pytest.raises(Unreadable, match=f"^no verdict: {'m' * 80}$"):
        read_verdicts(json.dumps({"1": "m" * 99}), 1)


def test_a_text_that_could_not_be_taken_apart_has_no_claims(said: list[str]) -> None:
    script, found = atomic("?")
    assert (found, len(script.bodies)) == ([Pieces(())] * 3, 2)
    assert any("2 texts could not be taken apart by m" in line for line in said)
