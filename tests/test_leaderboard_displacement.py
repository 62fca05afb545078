"""Honest entries keep what is theirs: unranked ones take no place, name or column, and nothing honest is refused."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from board_repository import Repository

from hedge_tasks.detectors.registry import get
from hedge_tasks.judging import build_judge
from hedge_tasks.leaderboard import check, make_submission
from hedge_tasks.leaderboard.board import auroc_measures
from hedge_tasks.leaderboard.detector_ranks import MOST_JACKKNIFED, priced
from hedge_tasks.leaderboard.entries import read_entries
from hedge_tasks.leaderboard.forgeries import Honest, honest_board, matched, sealed
from hedge_tasks.leaderboard.names import name_faults
from hedge_tasks.runs.relabel import relabel

Json = dict[str, Any]


@pytest.fixture(scope="module")
def board() -> Honest:
    return honest_board()


@pytest.fixture
def repository(tmp_path: Path, board: Honest) -> Repository:
    return Repository(tmp_path / "board", board)


def part_of(board: Honest, n: int, *, start: int = 0, of: str = "org/honest", **about: str) -> Json:
    """An entry of a few of somebody's answers."""
    run = board.runs[of]
    few = replace(run, answer_sets=run.answer_sets[start : start + n])
    submission = copy.deepcopy(make_submission(few, texts=True))
    submission["entry"] |= about
    return sealed(submission)


def test_a_few_documents_that_come_first_displace_no_entry(repository: Repository, board: Honest) -> None:
    repository.merge("a.json", part_of(board, 14, name="mine", model="org/mine"))
    repository.merge("b.json", board.submission())
    assert repository.leads == ["b.json"]
    assert repository.refused == {}
    repository.merge("c.json", part_of(board, 20, name="another", model="org/another"))
    assert repository.leads == ["b.json"]
    assert "the same answers as b.json" in repository.refused["c.json"]  # which came before it, and is ranked
    assert repository.refused.keys() == {"c.json"}


def test_an_unranked_entry_takes_no_name(repository: Repository, board: Honest) -> None:
    repository.merge("a.json", make_submission(board.runs["org/honest"], texts=True, name="Our System 7B"))
    repository.merge("b.json", part_of(board, 12, name="another", model="our-system-7b"))
    assert repository.leads == ["a.json"]


def test_unranked_entries_move_no_columns(tmp_path: Path, board: Honest) -> None:
    repository = Repository(tmp_path / "board", board)
    repository.merge("a.json", board.submission())
    for start, name in enumerate("bc"):
        junk = part_of(board, 12, start=12 * start, of="org/other", name=name, model=f"org/{name}")
        record = junk["clusterings"]["embed"]
        for i in range(62):
            record["detectors"][f"a{i}"] = {"title": f"A {i}", "draws": 0}
            record["aggregates"][f"a{i}"] = dict.fromkeys(record["aggregates"]["se"], None) | {
                "n": 12,
                "n_positive": sum(d["label"] for d in junk["documents"]),
                "reason": "12 of 12 documents have no such score",
            }
            for document in junk["documents"]:
                document["clusterings"]["embed"]["scores"][f"a{i}"] = None
        repository.merge(f"{name}.json", sealed(junk))
    built = read_entries(repository.folder, **board.rules())
    assert len(built.entries) == 3
    assert [entry.file for entry in built.entries if entry.findings.ranked] == ["a.json"]
    assert not any(measure.name.startswith("a") for measure in auroc_measures(built.entries)[:5])


def test_draws_are_left_out_one_by_one_up_to_a_number(board: Honest) -> None:
    submission = board.submission()
    assert priced(submission)["all"]["embed"]["se"].by_draws is not None
    many = copy.deepcopy(submission)
    for document in many["documents"]:
        n, clean = document["n_clean"], MOST_JACKKNIFED + 1
        order = [0, *(1 + i % n for i in range(clean)), *(1 + n + i % n for i in range(clean))]
        for key in ("logprobs", "n_tokens", "end_logprobs"):
            document[key] = [document[key][i] for i in order]
        document["n_clean"] = clean
        clusters = document["clusterings"]["embed"]["clusters"]
        document["clusterings"]["embed"]["clusters"] = [clusters[i] for i in order]
        del document["texts"]
    assert priced(many)["all"]["embed"]["se"].by_draws is None


def test_texts_of_claims_say_nothing_for_the_board(board: Honest) -> None:
    submission = board.submission()
    claims = {"labels": {"by": "the maintainers: verified"}, "settings": {"support": "replayed"}, "detectors": {}}
    faults = list(name_faults({**submission, "claims": claims}))
    assert [fault.split(":")[0] for fault in faults] == ["claims.labels.by", "claims.settings.support"]


def test_a_run_judged_again_keeps_the_digests_of_its_pictures(board: Honest) -> None:
    """Without them an honest entry would be set aside."""
    judged, _ = relabel(board.runs["org/honest"], build_judge("rule"))
    findings = check(make_submission(judged, texts=True), **board.rules())
    assert findings.ranked, findings.set_aside


def test_scores_of_evidence_that_no_submission_has_are_self_reported(board: Honest) -> None:
    """They cannot be computed here, whatever texts are there, and are no reason to refuse an entry."""
    submission = copy.deepcopy(board.submission())
    record = submission["clusterings"]["embed"]
    record["detectors"]["p_true"] = {"title": get("p_true").title, "draws": 0}
    for i, document in enumerate(submission["documents"]):
        document["clusterings"]["embed"]["scores"]["p_true"] = i / 100
    findings = check(matched(submission), **board.rules())
    assert not findings.problems
    assert not findings.detectors["embed"]["p_true"].verified
    assert findings.detectors["embed"]["se"].verified
