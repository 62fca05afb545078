"""Runs that are signed at their start: by real keys, on a board with copies, and with statements that do not fit."""

from __future__ import annotations

import copy
import json
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from board_repository import Repository

from hedge_tasks.cli import main
from hedge_tasks.errors import ConfigError
from hedge_tasks.io.signatures import fingerprint_of, is_signed_text, public_key_in, sign_text
from hedge_tasks.leaderboard import check, make_submission, read_entries, read_submission, write_submission
from hedge_tasks.leaderboard.forgeries import Honest, honest_board, sealed
from hedge_tasks.leaderboard.owners import ANNOUNCEMENT, announcement_of, write_announcement
from hedge_tasks.leaderboard.validation import ValidationFindings
from hedge_tasks.runs.run_files import Run, load_run, now, repair_run, save_run
from hedge_tasks.runs.signed_runs import SETTING, VARIABLE, sign_end, sign_start, signed_run_of

pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="needs ssh-keygen (OpenSSH)")

Json = dict[str, Any]


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("keys")
    for name in ("owner", "thief"):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", f"{name}@here", "-f", str(folder / name)]
        subprocess.run(command, check=True, timeout=60)
    return {name: folder / name for name in ("owner", "thief")}


@pytest.fixture(scope="module")
def board() -> Honest:
    return honest_board()


def signed_by(key: Path, run: Run, **changes: Any) -> Run:
    """The run as if it had been made just now, and signed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, str(key))
        started = sign_start(run.task, run.model, run.settings)
        assert started is not None
        if changes:
            start = started.start.model_copy(update=changes)
            signature, _ = sign_text(_canonical(start.model_dump()), key, "hedge-run")
            started = replace(started, start=start, signature=signature)
        return replace(run, settings={**run.settings, **sign_end(started, run.answer_sets)}, created=now())


def _canonical(value: Json) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


@pytest.fixture(scope="module")
def owners(board: Honest, keys: dict[str, Path]) -> Json:
    return make_submission(signed_by(keys["owner"], board.runs["org/honest"]), texts=True)


def checked(board: Honest, submission: Json) -> ValidationFindings:
    return check(submission, **board.rules())


def test_signatures_are_of_a_text_a_key_and_a_purpose(keys: dict[str, Path]) -> None:
    signature, key = sign_text(b"text", keys["owner"], "one")
    assert key == " ".join((keys["owner"].with_suffix(".pub")).read_text().split()[:2])  # without its comment
    listed = subprocess.run(["ssh-keygen", "-lf", str(keys["owner"])], capture_output=True, text=True, check=True)
    assert fingerprint_of(key) in listed.stdout
    assert is_signed_text(b"text", signature, key, "one")
    assert not is_signed_text(b"other", signature, key, "one")
    assert not is_signed_text(b"text", signature, key, "another")
    assert not is_signed_text(b"text", signature, sign_text(b"text", keys["thief"], "one")[1], "one")
    assert public_key_in("no signature") is None


def test_a_key_that_cannot_sign_ends_the_run_before_it_begins(
    board: Honest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = board.runs["org/honest"]
    secret = tmp_path / "secret-place"
    monkeypatch.setenv(VARIABLE, str(secret))
    with pytest.raises(ConfigError, match=f"{VARIABLE}: there is no such key") as failed:
        sign_start(run.task, run.model, run.settings)
    assert "secret-place" not in str(failed.value)
    secret.write_text("no key")
    with pytest.raises(ConfigError, match="did not sign") as failed:
        sign_start(run.task, run.model, run.settings)
    assert "secret-place" not in str(failed.value)
    monkeypatch.delenv(VARIABLE)
    assert sign_start(run.task, run.model, run.settings) is None


def test_a_run_whose_end_cannot_be_signed_is_kept_unsigned(
    board: Honest, keys: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, key = board.runs["org/honest"], tmp_path / "key"
    shutil.copy(keys["owner"], key)
    monkeypatch.setenv(VARIABLE, str(key))
    started = sign_start(run.task, run.model, run.settings)
    shutil.copy(keys["thief"], key)
    assert sign_end(started, run.answer_sets) == {}
    key.unlink()
    assert sign_end(started, run.answer_sets) == {}


@pytest.mark.parametrize("texts", [True, False])
def test_an_entry_says_who_signed_its_run(
    board: Honest, keys: dict[str, Path], tmp_path: Path, texts: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    run = load_run(save_run(signed_by(keys["owner"], board.runs["org/honest"]), tmp_path / "runs"))
    assert run.path is not None
    submission = make_submission(run, texts=texts)
    findings = checked(board, submission)
    assert not findings.problems
    assert findings.owner.verified
    fingerprint = fingerprint_of(sign_text(b"", keys["owner"], "n")[1])
    assert f"signed at its start by {fingerprint} at 20" in findings.owner.reason
    assert not checked(board, make_submission(board.runs["org/honest"], texts=texts)).owner.verified
    (tmp_path / "entries").mkdir()
    file = tmp_path / "entries" / "a.json"
    write_submission(file, submission)
    [entry] = read_entries(tmp_path / "entries", **board.rules()).entries
    assert f"signed at its start by {fingerprint}" in entry.html
    assert "BEGIN SSH" not in entry.html
    assert main(["verify", str(run.path)]) == 0
    assert fingerprint in capsys.readouterr().out
    assert main(["leaderboard", "validate", str(file), "--json"]) == 0
    owner = json.loads(capsys.readouterr().out)[str(file)]["owner"]
    assert owner == {"verified": True, "reason": findings.owner.reason}
    assert main(["verify", str(file), "--run", str(run.path)]) == 0
    assert f"owner: signed at its start by {fingerprint}" in capsys.readouterr().out


def _model(s: Json) -> None:
    s["entry"]["model"] = s["entry"]["name"] = "org/mine"


def _task(s: Json) -> None:
    s["entry"]["task"] = "another_task"


def _seed(s: Json) -> None:
    s["settings"]["sampling"]["seed"] = 1


def _prompt(s: Json) -> None:
    s["settings"]["prompt"]["user"] += " Please."


def _created(s: Json) -> None:
    s["entry"]["created"] = "2026-01-01"


def _logprob(s: Json) -> None:
    s["documents"][0]["logprobs"][1] -= 1e-9


def _draws(s: Json) -> None:
    s["documents"].pop()


def _text(s: Json) -> None:
    s["documents"][0]["texts"]["answers"][-1] += "."


def _start(s: Json) -> None:
    s["settings"][SETTING]["start"]["created"] = "2020-01-01T00:00:00.000000+00:00"


def _run_id(s: Json) -> None:
    s["settings"][SETTING]["start"]["run_id"] = "0" * 32


def _end(s: Json) -> None:
    s["settings"][SETTING]["end_signature"] = s["settings"][SETTING]["signature"]


def _no_key(s: Json) -> None:
    s["settings"][SETTING]["key"] = "ssh-ed25519 AAAA"


def _left_out(s: Json) -> None:
    del s["settings"][SETTING]["end_signature"]


def _no_signature(s: Json) -> None:
    s["settings"][SETTING]["signature"] = "x"


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (_model, "signed.start.model"),
        (_task, "signed.start.task"),
        (_seed, "signed.start.definition"),
        (_prompt, "signed.start.definition"),
        (_created, "signed.start.created"),
        (_logprob, "signed.numbers"),
        (_draws, "signed.numbers"),
        (_text, "signed.texts"),
        (_start, "signed.signature"),
        (_run_id, "signed.signature"),
        (_end, "signed.end_signature"),
        (_no_key, "signed.signature"),
        (_left_out, "settings.signed"),
        (_no_signature, "settings.signed"),
    ],
)
def test_a_statement_that_does_not_fit_is_a_refusal(
    board: Honest, owners: Json, change: Callable[[Json], None], place: str
) -> None:
    submission = copy.deepcopy(owners)
    change(submission)
    findings = checked(board, sealed(submission))
    assert any(place in problem for problem in findings.problems), findings.problems
    assert not findings.owner.verified


def test_a_start_after_the_run_is_a_refusal(board: Honest, keys: dict[str, Path]) -> None:
    late = signed_by(keys["owner"], board.runs["org/honest"], created="2099-01-01T00:00:00.000000+00:00")
    [problem] = checked(board, make_submission(late, texts=True)).problems
    assert "not before the run's end" in problem


def test_the_start_of_another_run_cannot_be_put_on_answers(board: Honest, keys: dict[str, Path]) -> None:
    """A thief has the owner's signed start, and answers of their own with the same settings."""
    owners = signed_by(keys["owner"], board.runs["org/honest"])
    thiefs = signed_by(keys["thief"], board.runs["org/honest"])
    start = {name: owners.settings[SETTING][name] for name in ("start", "signature", "key")}
    mixed = {**thiefs.settings[SETTING], **start}
    findings = checked(
        board, make_submission(replace(owners, settings={**owners.settings, SETTING: mixed}), texts=True)
    )
    assert any("signed.end_signature" in problem for problem in findings.problems)


def test_a_repaired_run_is_unsigned(board: Honest, keys: dict[str, Path], tmp_path: Path) -> None:
    from hedge_tasks.runs.integrity import inspect

    path = save_run(signed_by(keys["owner"], board.runs["org/honest"]), tmp_path)
    lines = path.read_text("utf-8").splitlines(keepends=True)
    path.write_text("".join([*lines[:3], *lines[4:]]), "utf-8")
    repaired = repair_run(inspect(path))
    assert signed_run_of(repaired.run.settings) is None
    assert load_run(path).answer_sets == repaired.run.answer_sets


def test_a_run_file_with_other_answers_is_told(
    board: Honest, keys: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = signed_by(keys["owner"], board.runs["org/honest"])
    path = save_run(replace(run, answer_sets=run.answer_sets[1:]), tmp_path)
    assert main(["verify", str(path)]) == 1
    assert "signed.numbers" in capsys.readouterr().out


# --- copies -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def repository(tmp_path: Path, board: Honest) -> Repository:
    return Repository(tmp_path / "board", board)


def renamed(submission: Json, **about: str) -> Json:
    changed = copy.deepcopy(submission)
    changed["settings"].pop(SETTING, None)
    changed["entry"] |= {"name": "mine", **about}
    return sealed(changed)


@pytest.fixture(scope="module")
def thiefs(board: Honest, keys: dict[str, Path]) -> Json:
    """The owner's answers, signed by another key with a time long before."""
    early = {"created": "2020-01-01T00:00:00.000000+00:00"}
    return make_submission(signed_by(keys["thief"], board.runs["org/honest"], **early), texts=True, name="mine")


def test_a_copy_that_is_merged_later_is_shown_as_one(repository: Repository, owners: Json, thiefs: Json) -> None:
    repository.merge("b.json", owners)
    repository.merge("a.json", thiefs)
    repository.merge("c.json", renamed(owners))
    assert repository.leads == ["b.json"]
    for copied in ("a.json", "c.json"):
        assert "the same answers as b.json" in repository.set_aside[copied]
        assert "which was signed at its start by SHA256:" in repository.set_aside[copied]


def test_a_signature_with_an_earlier_time_displaces_nobody(repository: Repository, board: Honest, thiefs: Json) -> None:
    repository.merge("b.json", board.submission())  # whose owner signs nothing
    repository.merge("a.json", thiefs)
    assert repository.leads == ["b.json"]
    assert "came first and is not signed; this one was signed" in repository.set_aside["a.json"]


def test_an_announced_entry_leads_whatever_is_merged_first(repository: Repository, owners: Json, thiefs: Json) -> None:
    repository.announce("b.signed", owners)
    repository.merge("a.json", thiefs)
    repository.merge("c.json", renamed(owners))
    assert repository.leads == ["a.json"]  # nobody can tell as yet
    repository.merge("z.json", owners)
    assert repository.leads == ["z.json"]
    assert "the same answers as z.json" in repository.set_aside["a.json"]


def test_nobody_can_announce_answers_that_they_have_not_seen(
    repository: Repository, owners: Json, thiefs: Json, keys: dict[str, Path]
) -> None:
    """A thief who has only the owner's announcement signs its digests with another key."""
    seen = announcement_of(owners)
    forged = announcement_of(thiefs).model_copy(update={"numbers": seen.numbers, "texts": seen.texts})
    closing = {"start": forged.start.model_dump(), "key": forged.key, "numbers": seen.numbers, "texts": seen.texts}
    end_signature, _ = sign_text(_canonical(closing), keys["thief"], "hedge-run")
    forged = forged.model_copy(update={"end_signature": end_signature})
    write_announcement(repository.folder / "a.signed", forged)
    repository.commit()
    repository.announce("b.signed", owners)
    repository.merge("z.json", owners)
    stolen = copy.deepcopy(thiefs)
    stolen["settings"][SETTING] = forged.model_dump()
    repository.merge("a.json", sealed(stolen))
    assert repository.leads == ["z.json"]
    assert "signed.numbers" in repository.refused["a.json"]


def test_an_announcement_with_a_broken_signature_holds_no_place(
    repository: Repository, owners: Json, thiefs: Json
) -> None:
    announcement = announcement_of(owners)
    broken = announcement.model_copy(update={"signature": announcement.end_signature})
    write_announcement(repository.folder / "b.signed", broken)
    repository.commit()
    repository.merge("a.json", thiefs)
    repository.merge("z.json", owners)
    assert repository.leads == ["a.json"]
    assert "not a signature" in repository.refused["b.signed"]


def test_another_model_is_refused_as_a_copy(repository: Repository, owners: Json) -> None:
    repository.merge("b.json", owners)
    repository.merge("a.json", renamed(owners, model="org/mine"))
    assert repository.leads == ["b.json"]
    assert "there of org/honest, which was signed" in repository.refused["a.json"]


def test_without_a_history_a_signed_entry_leads(tmp_path: Path, board: Honest, owners: Json) -> None:
    write_submission(tmp_path / "a.json", renamed(owners))
    write_submission(tmp_path / "b.json", owners)
    built = read_entries(tmp_path, **board.rules())
    assert [entry.file for entry in built.entries if entry.findings.ranked] == ["b.json"]


def test_the_commands_announce_and_validate(
    tmp_path: Path, board: Honest, keys: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [signed_by(keys["owner"], board.runs["org/honest"]), board.runs["org/other"]]
    signed, unsigned = (save_run(run, tmp_path / f"runs{i}") for i, run in enumerate(runs))
    entries = tmp_path / "board" / "entries"
    entries.mkdir(parents=True)
    assert main(["leaderboard", "submit", str(signed), "--out", str(tmp_path / "board"), "--announce"]) == 0
    assert "git switch --create announce-" in capsys.readouterr().out
    [file] = entries.iterdir()
    assert file.suffix == ANNOUNCEMENT
    assert "logprobs" not in file.read_text()
    assert main(["leaderboard", "validate", str(file)]) == 0
    assert "announces an entry, signed at its start by SHA256:" in capsys.readouterr().out
    file.write_text(file.read_text().replace('"model": "org/honest"', '"model": "org/mine"'))
    assert main(["leaderboard", "validate", str(file)]) == 1
    assert main(["leaderboard", "submit", str(unsigned), "--out", str(tmp_path / "board"), "--announce"]) == 2
    assert "only a signed one can be announced" in capsys.readouterr().err


def test_a_signature_cannot_be_checked_without_ssh_keygen(
    board: Honest, owners: Json, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    findings = checked(board, owners)
    assert not findings.problems
    assert not findings.owner.verified
    assert "ssh-keygen is missing" in findings.owner.reason


@pytest.mark.slow
def test_a_run_of_lmms_eval_signs(
    keys: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from evaluation import evaluate

    monkeypatch.setenv(VARIABLE, str(keys["owner"]))
    before = now()
    options = ("--limit", "8", "--gen_kwargs", "n=2")
    evaluated = evaluate(tmp_path, "--model", "hedge_tiny", "--tasks", "hedge_demo", *options)
    run = load_run(evaluated.output)
    signed = signed_run_of(run.settings)
    assert signed is not None
    assert (signed.start.task, signed.start.model) == (run.task, run.model)
    assert before < signed.start.created < run.created
    submission = make_submission(run)
    assert check(submission).owner.verified
    file = tmp_path / "entry.json"
    write_submission(file, submission)
    assert signed_run_of(read_submission(file)["settings"]) == signed
    for path in tmp_path.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert str(keys["owner"]).encode() not in content, path
            assert b"PRIVATE KEY" not in content
    assert str(keys["owner"]) not in caplog.text
