"""The private part of a board: whole groups stay together, and an entry's model is scored there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from attested import entry_of, plan, sampled, task

from hedge_tasks.adjudication import Case, build_judge
from hedge_tasks.cli import main
from hedge_tasks.data.manifests import Data, Digests, Manifest, read_manifest
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.leaderboard import write_submission
from hedge_tasks.leaderboard.private_split import place_of_scores, read_scores, split_manifest
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
    changed = json.loads(place_of_scores(file).read_text())
    changed["summary"]["hallucinated"] = 0
    place_of_scores(file).write_text(json.dumps(changed))
    with pytest.raises(DataError, match="changed"):
        read_scores(place_of_scores(file), entry)
    assert task().document_groups


def test_an_entry_with_private_documents_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hidden = tmp_path / "hidden.json"
    asked = ["leaderboard", "split", "hedge_demo", "--share", "0.9", "--private", str(hidden), "--out", str(tmp_path)]
    assert main(asked) == 0
    model = adapter_class("hedge_tiny").create_from_arg_string("")
    file = tmp_path / "entry.json"
    write_submission(file, entry_of(sampled(model, plan(n=1), 6), plan(n=1)))
    assert main(["attest", str(file), "--private", str(hidden), "--model", "hedge_tiny"]) == 2
    assert "private documents" in capsys.readouterr().err
