"""The private part of a board: whole groups stay together, and an entry's model is scored there."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from attested import entry_of, plan, sampled, task

from hedge_tasks.cli import main
from hedge_tasks.data.manifests import Data, Digests, Manifest, read_manifest
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.judging import Case, build_judge
from hedge_tasks.leaderboard import write_submission
from hedge_tasks.leaderboard.entries import read_entries
from hedge_tasks.leaderboard.forgeries import honest_board
from hedge_tasks.leaderboard.private_records import (
    ALPHA,
    PrivateScores,
    _is_lower_rate,
    place_of_scores,
    read_scores,
    with_private,
)
from hedge_tasks.leaderboard.private_split import split_manifest
from hedge_tasks.leaderboard.schema import Summary
from hedge_tasks.leaderboard.submission import sha256_of
from hedge_tasks.leaderboard.validation import ValidationFindings
from hedge_tasks.models import adapter_class

IDS = [f"q{i}" for i in range(60)]
MANIFEST = Manifest(("t",), Data("p", None, "test", None), {id: Digests(question=id) for id in IDS})
GROUPS = [f"g{i // 3}" if i < 45 else None for i in range(60)]


def test_groups_stay_together_and_the_secret_decides() -> None:
    public, private = split_manifest(MANIFEST, GROUPS, 0.3, "a")
    assert set(public.documents) | set(private.documents) == set(IDS)
    assert not set(public.documents) & set(private.documents)
    of = dict(zip(IDS, GROUPS, strict=True))
    sides = [{of[id] for id in part.documents if of[id] is not None} for part in (public, private)]
    assert not sides[0] & sides[1]
    assert abs(len(private.documents) - 18) <= 2
    assert split_manifest(MANIFEST, GROUPS, 0.3, "a") == [public, private]
    assert split_manifest(MANIFEST, GROUPS, 0.3, "b")[1] != private


def test_no_part_is_empty() -> None:
    with pytest.raises(ConfigError, match="part empty"):
        split_manifest(MANIFEST, ["one"] * 60, 0.3, "a")


@pytest.mark.slow
def test_an_entrys_model_is_scored_on_documents_it_has_not_seen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hidden = tmp_path / "hidden.json"
    asked = ["leaderboard", "split", "hedge_demo", "--share", "0.06", "--private", str(hidden), "--out", str(tmp_path)]
    assert main(asked) == 0
    private = read_manifest(hidden)
    assert hidden.stat().st_mode & 0o077 == 0
    assert main(asked) == 2  # another split would give the first one away
    capsys.readouterr()
    model = adapter_class("hedge_tiny").create_from_arg_string("")
    drawn = [one for one in sampled(model, plan(n=2), 16) if one[1].id not in private.documents][:8]
    entry = entry_of(drawn, plan(n=2))
    file = tmp_path / "entry.json"
    write_submission(file, entry)
    assert main(["attest", str(file), "--private", str(hidden), "--model", "hedge_tiny", "--json"]) == 0
    scores = read_scores(place_of_scores(file), entry)
    assert scores.documents == scores.summary.documents == len(private.documents)
    again = [one[1] for one in sampled(model, plan(n=2), None) if one[1].id in private.documents]
    cases = [Case(a.id, a.question or "", a.reference or "", a.baseline.text) for a in again]
    assert scores.summary.hallucinated == sum(verdict.label or 0 for verdict in build_judge("rule").judge(cases))
    [shown] = read_entries(tmp_path, cache=tmp_path / "cache").entries
    assert shown.findings.private is not None
    assert shown.findings.private.part.verified
    assert shown.findings.private.better == ()  # the same model, so that nothing is better by more than chance
    assert "private documents" in shown.html
    there = shown.findings.private.aurocs["exact"]["radflag"]
    assert there.n == scores.summary.labelled
    unsigned = with_private(replace(shown.findings, private=None), entry, file, tmp_path / "signers")
    assert unsigned.private is not None
    assert not unsigned.private.part.verified
    changed = json.loads(place_of_scores(file).read_text())
    changed["summary"]["hallucinated"] += 1
    place_of_scores(file).write_text(json.dumps(changed))
    with pytest.raises(DataError, match="changed"):
        read_scores(place_of_scores(file), entry)
    assert task().document_groups


@pytest.mark.slow
def test_an_entry_with_private_documents_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hidden = tmp_path / "hidden.json"
    asked = ["leaderboard", "split", "hedge_demo", "--share", "0.9", "--private", str(hidden), "--out", str(tmp_path)]
    assert main(asked) == 0
    model = adapter_class("hedge_tiny").create_from_arg_string("")
    file = tmp_path / "entry.json"
    write_submission(file, entry_of(sampled(model, plan(n=1), 6), plan(n=1)))
    assert main(["attest", str(file), "--private", str(hidden), "--model", "hedge_tiny"]) == 2
    assert "private documents" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("labelled", "hallucinated", "named"),
    [
        (9, 9, False),  # too few to tell: two small samples differ so now and then
        (60, 60, True),
        (60, 20, False),
    ],
)
def test_a_rate_is_compared_where_there_are_answers_enough(
    tmp_path: Path, labelled: int, hallucinated: int, named: bool
) -> None:
    entry = honest_board().submission()
    file = tmp_path / "entry.json"
    rate = hallucinated / labelled
    told = _scores_on(entry, documents=labelled, labelled=labelled, hallucinated=hallucinated, hallucination_rate=rate)
    told.write(place_of_scores(file))
    private = with_private(ValidationFindings(), entry, file).private
    assert private is not None
    assert private.part.verified
    assert [text.partition(":")[0] for text in private.better] == ["hallucination rate"] * named


def test_few_documents_of_any_split_are_no_remark() -> None:
    """Rates of two samples of one model that are as large as a small board's hardly ever differ by more than chance."""
    dice = random.Random(0)
    entry = honest_board().submission()
    remarks = 0
    for _ in range(300):
        documents = dice.sample(entry["documents"], 17)
        here, there = documents[:8], documents[8:]
        part = {**entry, "documents": here, "summary": _summary(here)}
        remarks += _is_lower_rate(part, Summary.model_validate(_summary(there)), ALPHA)
    assert remarks == 0


def _summary(documents: list[Any]) -> dict[str, Any]:
    labels = [document["label"] for document in documents if document["label"] is not None]
    counts = {"documents": len(documents), "labelled": len(labels), "hallucinated": sum(labels), "declined": 0}
    return {**counts, "hallucination_rate": sum(labels) / len(labels), "n_clean": 6, "n_noisy": 6}


def _scores_on(entry: dict[str, Any], **summary: Any) -> PrivateScores:
    told = {
        "hedge_private": 1,
        "submission": entry["digest"],
        "task": entry["entry"]["task"],
        "created": "2026",
        "version": "1",
        "engine": {"adapter": "hedge_tiny", "model": "m", "identity": "m", "dtype": None, "versions": {}},
        "split": sha256_of([]),
        "documents": 9,
        "summary": {**entry["summary"], **summary},
        "clusterings": {},
    }
    return PrivateScores.read({**told, "digest": sha256_of(told)})


@pytest.mark.slow
def test_numbers_that_are_better_than_on_private_documents_are_named(tmp_path: Path) -> None:
    model = adapter_class("hedge_tiny").create_from_arg_string("")
    entry = entry_of(sampled(model, plan(n=1), 12), plan(n=1))
    file = tmp_path / "entry.json"
    write_submission(file, entry)
    of = entry["clusterings"]["exact"]["aggregates"]
    for clear, named in ((0.52, True), (0.88, False)):
        of["se"] |= {"auroc": 0.9, "stderr": 0.03, "low": 0.83, "high": 0.95, "reason": None}
        there = {**of["se"], "auroc": clear, "stderr": 0.04, "low": clear - 0.08, "high": clear + 0.08}
        summary = {**entry["summary"], "hallucination_rate": entry["summary"]["hallucination_rate"]}
        told = {
            "hedge_private": 1,
            "submission": entry["digest"],
            "task": entry["entry"]["task"],
            "created": "2026",
            "version": "1",
            "engine": {"adapter": "hedge_tiny", "model": "m", "identity": "m", "dtype": None, "versions": {}},
            "split": sha256_of([]),
            "documents": 9,
            "summary": summary,
            "clusterings": {"exact": {"se": there}},
        }
        PrivateScores.read({**told, "digest": sha256_of(told)}).write(place_of_scores(file))
        found = with_private(ValidationFindings(), entry, file).private
        assert found is not None
        assert found.part.verified
        assert found.aurocs["exact"]["se"].value == clear
        assert [text.startswith("ROC-AUC of se (exact): 0.900 in the entry") for text in found.better] == [True] * named
