"""Claims on the leaderboard: what is submitted, what is verified, and ways to tamper with it."""

from __future__ import annotations

import base64
import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from finished_runs import EXACT
from test_claim_table import scripted

from hedge_tasks.claims import build_decomposition, build_entailment
from hedge_tasks.cli.leaderboard import facts_of
from hedge_tasks.leaderboard import build_site, check, make_submission, read_entries, write_submission
from hedge_tasks.leaderboard.board import BoardNumber, cell_of
from hedge_tasks.leaderboard.chain import prove_run
from hedge_tasks.leaderboard.export import as_model_index
from hedge_tasks.leaderboard.recomputation import PartStatus
from hedge_tasks.leaderboard.submission import digest_of
from hedge_tasks.leaderboard.units import claims_of_run
from hedge_tasks.leaderboard.validation import ValidationFindings
from hedge_tasks.measures.kept_claims import measured_claims, score_kept_claims
from hedge_tasks.measures.unit_table import UnitTable
from hedge_tasks.runs.claim_files import keep_support, unpacked
from hedge_tasks.runs.claims import inquiry
from hedge_tasks.runs.run_files import Run, read_run, save_run

pytestmark = pytest.mark.slow

Json = dict[str, Any]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    sets = tuple(replace(one, label=i % 2) for i, one in enumerate(scripted(2, images=14, k=4, n=4, m=2)))
    filters = {"exact": {**EXACT["exact"], "detectors": ["claims_luq_mean", "claims_radflag_max"]}}
    made = Run("scripted", "m", sets, {}, {"filters": filters}, "2026-01-02T03:04:05.000000+00:00")
    kept = read_run(save_run(made, tmp_path_factory.mktemp("run")))
    engine, unit = build_entailment("words"), build_decomposition("sentence")
    asked = inquiry(kept.answer_sets, unit)
    settings = {**unit.settings(), **engine.settings(), "elsewhere": True, "graph": False}
    keep_support(kept, asked.ask(engine), engine, asked.price(engine), settings)
    return kept


@pytest.fixture(scope="module")
def table(run: Run) -> UnitTable:
    scored = score_kept_claims(run)
    assert scored is not None
    found, why = measured_claims(scored, run)
    assert found is not None, why
    return found


@pytest.fixture(scope="module")
def submissions(run: Run) -> dict[bool, Json]:
    return {texts: make_submission(run, texts=texts) for texts in (True, False)}


def found(submission: Json) -> ValidationFindings:
    return check(submission, manifests=lambda task: [])


def test_a_submission_has_the_numbers_of_the_run_and_no_text_without_leave(
    submissions: dict[bool, Json], table: UnitTable
) -> None:
    for texts, submission in submissions.items():
        aggregates = submission["claims"]["aggregates"]
        shown = {row.detector for row in table.rows}
        assert shown <= aggregates.keys()
        for name in aggregates.keys() - shown:  # baselines that tell nothing here: every claim is one affirmed word
            assert name in ("claim_length", "claim_affirmed")
            assert (aggregates[name]["pooled"]["value"], aggregates[name]["within"]["value"]) == (None, None)
        for row in table.rows:
            numbers = aggregates[row.detector]
            sign = -1 if row.reversed else 1
            assert sign * (numbers["pooled"]["value"] - 0.5) == pytest.approx((row.estimate.value or 0) - 0.5, abs=1e-6)
            assert numbers["pooled"]["stderr"] == pytest.approx(row.estimate.stderr, abs=1e-6)
            assert sign * (numbers["within"]["value"] - 0.5) == pytest.approx((row.within.value or 0) - 0.5, abs=1e-6)
        assert all(("texts" in document["claims"]) is texts for document in submission["documents"])


def test_what_can_be_is_computed_again(submissions: dict[bool, Json]) -> None:
    for texts, submission in submissions.items():
        findings = found(submission)
        assert findings.problems == ()
        assert findings.claims["support"].verified is texts
        verified = {name for name, part in findings.claims.items() if part.verified}
        by_support = {"claim_radflag", "claim_luq", "claim_contrast", "claim_position"}
        assert by_support <= verified
        assert ("claim_elsewhere" in verified) is findings.claims["elsewhere"].verified is texts
        assert not findings.claims["labels"].verified
        assert ("claim_rarity" in verified) is texts
        assert "claim_text" not in verified
        assert findings.detectors["exact"]["claims_luq_mean"].reason == "computed again from the support of claims"


def test_answers_scored_by_claims_need_the_claims(submissions: dict[bool, Json]) -> None:
    lacking = copy.deepcopy(submissions[True])
    del lacking["claims"]
    for document in lacking["documents"]:
        del document["claims"]
    findings = found({**lacking, "digest": digest_of(lacking)})
    assert findings.problems == ()
    assert not findings.detectors["exact"]["claims_luq_mean"].verified


def claims_of(submission: Json, i: int = 0) -> Json:
    mine: Json = submission["documents"][i]["claims"]
    return mine


def raise_aggregate(submission: Json) -> None:
    submission["claims"]["aggregates"]["claim_luq"]["within"]["value"] = 0.999


def better_scores(submission: Json) -> None:
    for document in submission["documents"]:
        mine = document["claims"]
        mine["scores"]["claim_luq"] = [float(label or 0) for label in mine["labels"]]


def other_support(submission: Json) -> None:
    mine = claims_of(submission)
    matrix = unpacked(mine["clean"], "")[..., ::-1]
    mine["clean"] = {**mine["clean"], "type": "<f8", "data": base64.b64encode(np.ascontiguousarray(matrix)).decode()}


def fewer_claims(submission: Json) -> None:
    claims_of(submission)["spans"].pop()


def no_claims(submission: Json) -> None:
    del submission["documents"][0]["claims"]


def without(name: str) -> Callable[[Json], None]:
    def tamper(submission: Json) -> None:
        for of in (submission["claims"]["detectors"], submission["claims"]["aggregates"]):
            del of[name]
        for document in submission["documents"]:
            del document["claims"]["scores"][name]

    tamper.__name__ = f"no_{name}"
    return tamper


def better_elsewhere(submission: Json) -> None:
    for document in submission["documents"]:
        document["claims"]["scores"]["claim_elsewhere"] = [0.5 for _ in document["claims"]["labels"]]


def no_elsewhere(submission: Json) -> None:
    without("claim_elsewhere")(submission)
    for document in submission["documents"]:
        del document["claims"]["elsewhere"]


def cheaper(submission: Json) -> None:
    submission["claims"]["detectors"]["claim_luq"]["draws"] = 1


def blind(submission: Json) -> None:
    submission["claims"]["detectors"]["claim_elsewhere"]["blind"] = False


def no_matrix(submission: Json) -> None:
    claims_of(submission)["clean"]["shape"] = [4, 10**12, 3]


@pytest.mark.parametrize(
    "tamper",
    [
        *(raise_aggregate, better_scores, other_support, fewer_claims, no_claims),
        *(cheaper, blind, no_matrix, better_elsewhere, no_elsewhere),
        *(without(f"claim_{name}") for name in ("position", "length", "affirmed", "rarity", "elsewhere")),
    ],
    ids=lambda tamper: tamper.__name__,
)
def test_tampering_is_refused(tamper: Callable[[Json], None], submissions: dict[bool, Json]) -> None:
    for submission in submissions.values():
        changed = copy.deepcopy(submission)
        tamper(changed)
        problems = found({**changed, "digest": digest_of(changed)}).problems
        assert problems
        assert "claims" in problems[0]


def test_answers_scored_by_a_support_that_is_only_said_are_not_verified(
    submissions: dict[bool, Json], tmp_path: Path
) -> None:
    """Whoever invents what an NLI model says has any ROC-AUC he likes."""
    said = copy.deepcopy(submissions[True])
    said["claims"]["settings"]["support"] = "nli"
    for submission, verified in ((submissions[True], True), ({**said, "digest": digest_of(said)}, False)):
        folder = tmp_path / str(verified)
        folder.mkdir()
        write_submission(folder / "a.json", submission)
        [read] = read_entries(folder).entries
        parts = dict(read.findings.rests_on("exact", "claims_luq_mean"))
        assert list(parts) == ["clusters", "support", "scores"]
        assert (parts["support"].verified, parts["scores"].verified) == (verified, True)
        cell = cell_of(read, BoardNumber("auroc", "", True, "claims_luq_mean", "exact"))
        assert cell is not None
        assert ("support" in dict(cell.reported)) is not verified
        assert facts_of(read.findings)["claims"]["support"].verified is verified
        # With labels that are judged again nothing but the support stands in the way.
        exported = as_model_index(submission, replace(read.findings, labels=PartStatus(True, "")))
        [result] = yaml.safe_load(exported.strip().strip("-"))["model-index"][0]["results"]
        aurocs = [one["args"]["checked"] for one in result["metrics"] if "of claims" in one["name"]]
        assert set(aurocs) == {"recomputed" if verified else "self-reported"}


def test_draws_of_another_image_are_asked_about_again(submissions: dict[bool, Json]) -> None:
    """Support by another image's draws that is made up, with scores that follow from it."""
    changed = copy.deepcopy(submissions[True])
    mine = claims_of(changed)
    matrix = unpacked(mine["elsewhere"], "")[..., ::-1]
    data = base64.b64encode(np.ascontiguousarray(matrix)).decode()
    mine["elsewhere"] = {**mine["elsewhere"], "type": "<f8", "data": data}
    mine["scores"]["claim_elsewhere"] = (1 - matrix[..., 2].mean(axis=1)).round(9).tolist()
    findings = found({**changed, "digest": digest_of(changed)})
    assert findings.problems[0].startswith("documents[0].claims.elsewhere: not the support of 'words'")
    assert findings.claims["support"].verified
    assert not findings.claims["elsewhere"].verified
    assert not findings.claims["claim_elsewhere"].verified


def test_the_run_file_and_what_lies_beside_it_prove_the_claims(run: Run, submissions: dict[bool, Json]) -> None:
    for submission in submissions.values():
        assert prove_run(submission, run).problems == ()
        changed = copy.deepcopy(submission)
        claims_of(changed)["labels"][0] = 1 - claims_of(changed)["labels"][0]
        assert "documents[0].claims" in prove_run(changed, run).problems[0]
    assert claims_of_run(replace(run, path=None), texts=True) is None


def test_the_page_of_an_entry_shows_them(submissions: dict[bool, Json], table: UnitTable, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    write_submission(tmp_path / "in" / "a.json", submissions[True])
    build_site(read_entries(tmp_path / "in"), tmp_path / "site")
    [page] = (tmp_path / "site").glob("entry-*.html")
    text = page.read_text("utf-8")
    assert "Claims: which part of an answer is hallucinated" in text
    best = next(row for row in table.rows if row.detector == "claim_luq")
    assert f"{best.estimate.value:.3f}" in text
    assert best.difference is not None
    assert f"{best.difference.difference:+.3f}" in text
