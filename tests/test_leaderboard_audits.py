"""Audits in submissions: valid as written, refused when a label or number is changed; the board ranks by them."""

from __future__ import annotations

import copy
import random
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from finished_runs import board_rules, finished_run, on_board

from hedge_tasks.cli import main
from hedge_tasks.io.signatures import sign
from hedge_tasks.judging.designed import MEANINGS, ExpertSaid
from hedge_tasks.leaderboard import build_site, check, make_submission, read_entries, write_submission
from hedge_tasks.leaderboard.attestation import AUDIT
from hedge_tasks.leaderboard.audited_pairs import with_audits
from hedge_tasks.leaderboard.audits import audit_of, audited_number
from hedge_tasks.leaderboard.board import auroc_measures, board_of, cell_of, pairs_of
from hedge_tasks.leaderboard.columns import number_of
from hedge_tasks.leaderboard.submission import digest_of, stored_scores
from hedge_tasks.measures.audit_plan import make_plan
from hedge_tasks.measures.audited import auroc_by_experts, compare_runs_by_experts
from hedge_tasks.runs.audit_files import audit_of as audit_beside
from hedge_tasks.runs.audit_files import keep_audit
from hedge_tasks.runs.run_files import Run, load_run, save_run
from hedge_tasks.runs.scorers import scorer_of


def audited_run(folder: Path, *, seed: int, labels: int = 60, model: str = "m") -> Run:
    """A run of 120 documents whose judge errs, with an audit beside it."""
    chance = random.Random(seed)
    run = on_board(finished_run(120, seed=seed))
    truth = {a.id: int(a.label or 0) for a in run.answer_sets}
    judged = tuple(a.with_label(truth[a.id] ^ (chance.random() < 0.2)) for a in run.answer_sets)
    run = load_run(save_run(replace(run, answer_sets=judged, model=model), folder / model))
    if labels:
        scores = scorer_of(run, None).score(run.answer_sets)
        plan = make_plan(run, scores, detector="se", filter_name="exact", n=labels, seed=seed).plan
        said = [
            ExpertSaid("here", i.code, "ann", MEANINGS[0 if (i.label if i.id is None else truth[i.id]) else 1])
            for i in plan.items
        ]
        keep_audit(run, plan, said, "2 radiologists")
    return run


def changed(submission: dict[str, Any], **changes: Any) -> dict[str, Any]:
    content = {**submission, **changes}
    return {**content, "digest": digest_of(content)}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return audited_run(tmp_path_factory.mktemp("run"), seed=1)


@pytest.fixture(scope="module")
def submission(run: Run) -> dict[str, Any]:
    return make_submission(run)


@pytest.mark.slow
def test_a_submission_carries_its_audit_and_no_names(run: Run, submission: dict[str, Any]) -> None:
    findings = check(submission)
    assert not findings.problems
    assert findings.audit is not None
    assert not findings.audit.verified
    audit = audit_beside(run)
    assert audit is not None
    stated = submission["audit"]
    assert (stated["by"], stated["people"]) == ("2 radiologists", 1)
    assert sum(one["labelled"] for one in stated["strata"]) == audit.n_labels == 60
    assert sum(one["documents"] for one in stated["strata"]) == 120
    assert "ann" not in str(stated)
    clustering = next(iter(submission["clusterings"]))
    scores = stored_scores(submission, clustering)
    number = audited_number(submission, clustering, "se")
    ours = auroc_by_experts(scores, "se", audit)
    assert number is not None
    assert number.value == pytest.approx(ours.value, abs=1e-6)
    assert number.interval == pytest.approx(ours.interval, abs=1e-6)
    assert audit_of(submission).of == audit.of
    assert audit_of(submission).said == audit.said


@pytest.mark.slow
def test_a_changed_audit_is_refused(submission: dict[str, Any]) -> None:
    def problems(change: Any) -> str:
        other = copy.deepcopy(submission)
        change(other)
        return "; ".join(check({**other, "digest": digest_of(other)}).problems)

    def drawn(content: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = next(d["audit"] for d in content["documents"] if d["audit"]["said"])
        return found

    clustering = next(iter(submission["clusterings"]))
    value = submission["audit"]["aggregates"][clustering]["se"]["value"]
    assert f"{clustering}.se.value" in problems(
        lambda c: c["audit"]["aggregates"][clustering]["se"].update(value=round(value + 0.001, 6))
    )
    turned = {"hallucinated": "supported", "supported": "hallucinated"}
    assert "audit.aggregates" in problems(lambda c: drawn(c).update(said=[turned[drawn(c)["said"][0]]]))
    assert "audit.strata" in problems(lambda c: drawn(c).update(said=[]))
    assert "no such stratum" in problems(lambda c: drawn(c).update(stratum=99))
    assert "there is no audit" in problems(lambda c: c.pop("audit"))
    assert "say their stratum" in problems(lambda c: c["documents"][0].pop("audit"))
    assert "no such number" in problems(
        lambda c: c["audit"]["aggregates"][clustering].update(mine=c["audit"]["aggregates"][clustering]["se"])
    )
    assert "expected" in problems(lambda c: drawn(c).update(said=["maybe"]))
    assert "audit.people: stated 0, but 1 labelled" in problems(lambda c: c["audit"].update(people=0))

    def two_who_disagree(content: dict[str, Any]) -> None:
        content["audit"] |= {"kappa": 1.0, "people": 2}
        for document in content["documents"]:
            if document["audit"]["said"]:
                document["audit"]["said"] = ["hallucinated", "supported"][:: (-1) ** len(document["id"])]

    assert "audit.kappa: stated 1.0, of what is in it" in problems(two_who_disagree)


def signed(folder: Path, keys: Path, *files: str) -> Path:
    """Sign entries' audits with a new key; returns the list of known keys."""
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "me", "-f", str(keys / "key")]
    subprocess.run(command, check=True, timeout=60)
    for file in files:
        sign(folder / file, keys / "key", AUDIT)
    signers = keys / "signers"
    signers.write_text(f"maintainer@example.org {(keys / 'key.pub').read_text()}")
    return signers


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="needs ssh-keygen")
def test_the_board_ranks_audited_entries_by_experts(run: Run, submission: dict[str, Any], tmp_path: Path) -> None:
    other = audited_run(tmp_path, seed=2, model="other")
    plain = audited_run(tmp_path, seed=3, model="plain", labels=0)
    folder = tmp_path / "entries"
    folder.mkdir()
    for name, content in (("a", submission), ("b", make_submission(other)), ("c", make_submission(plain))):
        write_submission(folder / f"{name}.json", content)
    unsigned = read_entries(folder, **board_rules(submission))
    signers = signed(folder, tmp_path, "a.json", "b.json")
    built = read_entries(folder, cache=tmp_path / "cache", signers=signers, **board_rules(submission))
    again = read_entries(folder, cache=tmp_path / "cache", signers=signers, **board_rules(submission))
    assert not built.refused
    (folder / "b.json.sig").unlink()  # a signature that is withdrawn counts no more, whatever is kept
    withdrawn = read_entries(folder, cache=tmp_path / "cache", signers=signers, **board_rules(submission))
    assert [e.findings.audit and e.findings.audit.verified for e in withdrawn.entries] == [True, False, None]
    assert [e.columns.experts for e in built.entries] == [e.columns.experts for e in again.entries]
    a, b, c = built.entries
    assert (a.experts, c.experts) == ("60 labels by 2 radiologists", None)
    measure = next(m for m in auroc_measures([a, b, c]) if m.name == "se")
    cells = {cell.entry.file: cell for cell in board_of([a, b, c], measure).cells}
    assert cells["a.json"].audited
    assert cells["a.json"].value != cells["a.json"].estimate.value
    # Experts that nobody known vouches for are shown, and rank nobody.
    said = {cell.entry.file: cell for cell in board_of(unsigned.entries, measure).cells}
    assert said["a.json"].audited
    assert said["a.json"].value == said["a.json"].estimate.value
    as_judged = pairs_of(unsigned.entries, measure)
    assert as_judged is not None
    unsigned_pairs = board_of(unsigned.entries, measure).pairs
    assert unsigned_pairs is not None
    assert sorted(unsigned_pairs.difference.ravel()) == pytest.approx(sorted(as_judged.difference.ravel()))
    assert cells["c.json"].value == cells["c.json"].estimate.value
    judged = pairs_of([a, b, c], measure)
    assert judged is not None
    pairs = with_audits(judged, [a.columns, b.columns, c.columns], measure.key)
    first, second = audit_beside(run), audit_beside(other)
    assert first is not None
    assert second is not None
    # Folds go by the order of the documents, which is that of their numbers here.
    scores = [
        sorted(scorer_of(one, measure.clustering).score(one.answer_sets), key=lambda s: number_of(s.id))
        for one in (run, other)
    ]
    expected = compare_runs_by_experts(scores[0], first, scores[1], second, "se")
    assert expected is not None
    assert pairs.difference[0, 1] == pytest.approx(expected.difference)
    assert pairs.p_values[0, 1] == pytest.approx(expected.p_value)
    assert np.array_equal(pairs.difference[2], judged.difference[2])
    assert (cell_of(c, measure) or cells["a.json"]).experts is None
    files = {path.name: path.read_text("utf-8") for path in build_site(built, tmp_path / "site")}
    task = next(text for name, text in files.items() if name.startswith("task-") and "against experts" in text)
    assert "60 labels by 2 radiologists" in task
    assert "judge's" in task
    assert "against experts" in files["index.html"]


@pytest.mark.slow
def test_the_command_says_who_labelled(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run.path is not None
    out = tmp_path / "mine.json"
    assert main(["leaderboard", "submit", str(run.path), "--out", str(out)]) == 0
    assert "60 labels by 2 radiologists" in capsys.readouterr().out
    assert main(["leaderboard", "validate", str(out)]) == 0
    assert "labels of experts: self-reported" in capsys.readouterr().out


# --- blind baselines --------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_blind_baselines_stand_beside_detectors(tmp_path: Path) -> None:
    run = on_board(finished_run(60))
    sets = tuple(
        replace(a, baseline=replace(a.baseline, text="no " * (9 if a.label else 3), n_tokens=9 if a.label else 3))
        for a in run.answer_sets
    )
    submission = make_submission(replace(run, answer_sets=sets))
    clustering = next(iter(submission["clusterings"]))
    first = submission["blind"][clustering]["rows"][0]
    assert first["auroc"] == 1.0
    assert "se" in submission["blind"][clustering]["not_better"]
    findings = check(submission)
    assert not findings.problems
    assert findings.blind["length"].verified
    assert not findings.blind["blind_text"].verified

    def problems(change: Any) -> str:
        other = copy.deepcopy(submission)
        change(other)
        return "; ".join(check({**other, "digest": digest_of(other)}).problems)

    assert "blind.exact" in problems(lambda c: c["blind"]["exact"].update(not_better=[]))
    assert "blind.exact" in problems(lambda c: c["blind"]["exact"]["rows"].pop())
    assert "is missing" in problems(lambda c: c["blind"].pop("exact"))
    assert "not the lengths" in problems(lambda c: c["documents"][0]["blind"].update(length=4.0))
    assert "not the same baselines" in problems(lambda c: c["documents"][0]["blind"].pop("length"))
    folder = tmp_path / "entries"
    folder.mkdir()
    write_submission(folder / "a.json", submission)
    files = {
        path.name: path.read_text("utf-8")
        for path in build_site(read_entries(folder, **board_rules(submission)), tmp_path / "site")
    }
    entry = next(text for name, text in files.items() if name.startswith("entry-"))
    assert "blind: length: length of the answer" in entry
    assert "not better than blind" in entry
    assert "not better than blind" in next(t for n, t in files.items() if n.startswith("task-") and "auroc" in n)
    assert "blind: length" in files["detectors.html"]
