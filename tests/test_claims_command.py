"""`hedge claims` as it is typed, its files, and its page."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from openai_server import serve

from hedge_tasks.claims.entailment import ENTAILMENTS
from hedge_tasks.cli import main
from hedge_tasks.registry import Registration
from hedge_tasks.runs.run_files import load_run

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


@pytest.mark.slow
def test_json_has_every_number_with_its_interval(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answers = written(tmp_path / "answers.jsonl", three_times(rows()))
    out, _ = asked(capsys, answers)
    assert re.search(r"^claim_luq +2 +0\.\d{3}", out, re.MULTILINE)
    out, _ = asked(capsys, answers, "--json", "--silent", "hallucinated")
    facts = json.loads(out)
    assert (facts["labelled"], facts["hallucinated"], facts["silent_claims"]) == (18, 9, 3)
    assert facts["price"]["claims"] == 18
    assert (facts["decomposition"], facts["support"], facts["flag"]) == ("sentence", "words", 0.2)
    found = {row["detector"]: row for row in facts["detectors"]}
    # 0.417 and 0.583 of A mass is seen, ...: by hand, all wrong claims but one are less supported than all right ones.
    assert 0.5 < found["claim_luq"]["estimate"]["value"] < 1
    assert found["claim_luq"]["estimate"]["interval"]
    assert found["claim_luq"]["flagged"] >= 0.2
    assert found["claim_luq"]["within"]["n_pairs"] == 3 * (1 + 0 + 0)


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
    assert "price: at most 3 texts to be taken apart by a model" in err
    assert "price: 6 claims of 3 answers x 3 draws: at most 12 judge calls" in err
    facts = json.loads(out)
    assert (facts["unlocated"], facts["claims"], facts["labelled"]) == (3, 6, 5)
    assert facts["model"] == facts["decomposition_model"] == "m"
    assert "no model" in again  # words
    _, err = asked(capsys, answers, "--unit", "atomic", code=2)
    assert "--unit atomic:model=" in err


# --- the page ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def many(tmp_path: Path) -> Path:
    return written(tmp_path / "many.jsonl", three_times(rows()))


@pytest.fixture
def page(many: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    path = tmp_path / "page.html"
    asked(capsys, many, "--html", path)
    return path.read_text("utf-8")


def test_the_page_shows_every_claim_with_its_label_and_what_draws_say(page: str) -> None:
    claims = re.findall(r'<a class="claim (l\d) (\w+)( flagged)?" href="#(a\d+-\d+)"', page)
    assert len(claims) == 18
    assert sorted(mark for _, mark, _, _ in claims) == ["hallucinated"] * 6 + ["silent"] * 3 + ["supported"] * 9
    assert all(f'id="{anchor}"' in page for _, _, _, anchor in claims)  # works without script
    assert {level for level, _, _, _ in claims} >= {"l0", "l5"}
    assert page.count("<b>✗</b><sup>") == 6  # not by colour alone
    assert page.count(" flagged") - page.count("at least the threshold") >= 2
    details = page[page.index('id="' + claims[0][3]) :]
    assert re.search(r"(Supporting|Silent): [12] samples?", details)


# --- kept with the run ------------------------------------------------------------------------------------------------


class NeverAgain:
    """An engine whose model is gone after the first time."""

    name, contradicts, priced = "rare", True, "calls"
    asked = 0

    def support(self, asked: Any) -> list[np.ndarray]:
        type(self).asked += 1
        rng = np.random.default_rng(1)
        return [rng.dirichlet([1, 1, 1], (len(one.claims), len(one.draws))) for one in asked]

    def price(self, asked: Any) -> int:
        return sum(len(one.claims) * len(one.draws) for one in asked)

    def check(self) -> None: ...

    def settings(self) -> dict[str, Any]:
        return {"support": self.name}


@pytest.mark.slow
def test_kept_support_is_scored_again_without_the_engine(
    answers: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ENTAILMENTS._all(), "rare", Registration(NeverAgain, "test"))
    monkeypatch.setattr(NeverAgain, "asked", 0)
    arguments = (answers, "--support", "rare", "--graph")
    first, err = asked(capsys, *arguments, "--keep", "--json")
    assert "at most 63 calls" in err
    second, err = asked(capsys, *arguments, "--json")
    assert "nothing is asked: the support is kept with the run" in err
    assert NeverAgain.asked == 1
    assert {**json.loads(first), "notes": []} == json.loads(second)
    asked(capsys, *arguments, "--no-elsewhere")  # not what was kept
    assert NeverAgain.asked == 2
    assert [run.answer_sets for run in [load_run(answers)]]  # what is kept is no run


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda text: text.replace("mass is seen", "mass is sean"), "checksum does not match"),
        (lambda text: text[: len(text) // 2], ""),
        (lambda text: "", ""),
    ],
)
def test_damaged_support_is_asked_for_again(
    answers: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    damage: Callable[[str], str],
    reason: str,
) -> None:
    monkeypatch.setitem(ENTAILMENTS._all(), "rare", Registration(NeverAgain, "test"))
    monkeypatch.setattr(NeverAgain, "asked", 0)
    asked(capsys, answers, "--support", "rare", "--keep")
    [path] = answers.parent.glob("claims-*.jsonl")
    path.write_text(damage(path.read_text("utf-8")), "utf-8")
    _, err = asked(capsys, answers, "--support", "rare")
    assert "is not used" in err
    assert reason in err
    assert NeverAgain.asked == 2
