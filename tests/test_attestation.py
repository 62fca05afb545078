"""`hedge attest`: honest entries are replayed, forged ones are not, and a statement says only what follows from it."""

from __future__ import annotations

import json
import math
import random
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attested import (
    BEACON,
    Drawn,
    Remembering,
    copied_noisy,
    entry_of,
    kept_best,
    plan,
    sampled,
    scripted,
    statement_on,
    told_by,
)
from openai_server import serve

from hedge_tasks.cli import main
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.io.signatures import sign, signature_of, signer_of
from hedge_tasks.leaderboard import attestation, check, read_entries, write_submission
from hedge_tasks.leaderboard.attestation import (
    NAMESPACE,
    beacon_of,
    check_beacon,
    detects,
    picked,
    place_of_statement,
    read_statement,
    statement_faults,
    with_statement,
)
from hedge_tasks.leaderboard.attestation_records import Attestation
from hedge_tasks.leaderboard.attestation_tests import (
    AGAIN,
    BASELINE,
    CLEAN,
    COPIES,
    LIKELY,
    LOGPROBS,
    NOISY,
    SEEDS,
    _permuted,
    _random_place,
    _Share,
    _swapped,
    _two_samples,
)
from hedge_tasks.leaderboard.submission import sha256_of
from hedge_tasks.models import adapter_class

IDS = [f"q{i}" for i in range(40)]
K = 8
"""Documents that are read again."""

DIGEST = f"sha256:{'0' * 64}"


# --- which documents --------------------------------------------------------------------------------------------------


def test_a_beacon_is_a_round_of_drand() -> None:
    told = beacon_of(f"7:{'0f' * 32}")
    assert (told.round, told.value) == (7, "0f" * 32)
    assert told.time == 1_692_803_367 + 18
    assert beacon_of("AB" * 32).time is None


@pytest.mark.parametrize(
    ("value", "why"), [("1f2e3d4", "commit"), ("a" * 40, "commit"), ("x", "ROUND:"), ("0:1", "ROUND:")]
)
def test_what_can_be_ground_is_no_beacon(value: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        beacon_of(value)


def test_a_round_before_the_entry_is_refused() -> None:
    told = beacon_of(f"7:{'0f' * 32}")
    assert told.time is not None
    check_beacon(told, told.time - 1)
    check_beacon(told, None)
    with pytest.raises(ConfigError, match="public 5 s before"):
        check_beacon(told, told.time + 5)


def test_the_documents_follow_from_beacon_submission_and_ids_whatever_their_order() -> None:
    chosen = picked(BEACON, DIGEST, IDS, 10)
    assert picked(BEACON, DIGEST, IDS[::-1], 10) == chosen
    assert picked(BEACON, DIGEST, IDS, 5) == chosen[:5]
    assert picked(BEACON, DIGEST.replace("0", "1"), IDS, 10) != chosen
    assert picked(beacon_of("cd" * 32), DIGEST, IDS, 10) != chosen
    assert sorted(picked(BEACON, DIGEST, IDS, 99)) == sorted(IDS)


def test_every_document_is_as_likely_as_another() -> None:
    rounds = [beacon_of(f"{i:064x}") for i in range(1000)]
    times = Counter(id for beacon in rounds for id in picked(beacon, DIGEST, IDS, 10))
    expected = 1000 * 10 / len(IDS)
    chi_square = sum((times[id] - expected) ** 2 / (expected * 0.75) for id in IDS)
    assert chi_square < 80  # 40 documents: above 80 with probability 1e-4


def test_the_chance_to_meet_a_forged_document_is_that_of_all_choices() -> None:
    forged = {0, 1, 2}
    chosen = list(combinations(range(9), 4))
    met = sum(bool(forged & set(one)) for one in chosen) / len(chosen)
    assert detects(9, 3, 4) == pytest.approx(met)


# --- tests beside answers drawn anew ----------------------------------------------------------------------------------


def _p_values(make: Callable[[np.random.Generator], Any], times: int = 150) -> np.ndarray:
    chance = np.random.default_rng(0)
    return np.array([_permuted([_Share(make(chance)) for _ in range(6)], chance, "").p_value for _ in range(times)])


def _alike(values: np.ndarray) -> np.ndarray:
    return -np.abs(values[:, None] - values[None, :])


@pytest.mark.parametrize(
    "make",
    [
        lambda chance: _two_samples(4, _alike(chance.normal(size=8))),
        lambda chance: _swapped(4, _alike(chance.normal(size=8))),
        lambda chance: _random_place(chance.normal(size=6)),
    ],
)
def test_p_values_of_the_like_are_uniform(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hedge_tasks.leaderboard.attestation_tests.PERMUTATIONS", 199)
    found = _p_values(make)
    assert abs(found.mean() - 0.5) < 0.1
    assert np.mean(found < 0.1) < 0.2


def test_p_values_of_others_are_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hedge_tasks.leaderboard.attestation_tests.PERMUTATIONS", 199)
    other = np.array([0.0] * 4 + [2.0] * 4)
    found = _p_values(lambda chance: _two_samples(4, _alike(chance.normal(size=8) + other)), 20)
    assert np.median(found) < 0.01


def test_answers_that_never_repeat_say_nothing_and_equal_ones_hold() -> None:
    chance = np.random.default_rng(0)
    assert _permuted([_Share(_random_place(np.zeros(4)), 0)], chance, "").state == "not verifiable"
    assert _permuted([_Share(_random_place(np.zeros(4)), 12)], chance, "").state == "holds"


# --- honest and forged entries of the embedded model ------------------------------------------------------------------


@pytest.fixture(scope="module", params=["float32", pytest.param("bfloat16", marks=pytest.mark.slow)])
def model(request: pytest.FixtureRequest) -> Any:
    return Remembering(adapter_class("hedge_tiny").create_from_arg_string(f"dtype={request.param}"))


@pytest.fixture(scope="module")
def honest(model: Any) -> Drawn:
    return sampled(model, plan(), K)


@pytest.fixture(scope="module")
def statement(model: Any, honest: Drawn) -> Attestation:
    return statement_on(model, entry_of(honest, plan()), K)


@pytest.mark.slow
def test_an_honest_run_is_replayed(statement: Attestation, honest: Drawn) -> None:
    assert statement.verdict == "replayed", statement.tests
    assert {statement.tests[name].state for name in (LOGPROBS, SEEDS)} == {"holds"}
    assert statement_faults(statement, entry_of(honest, plan())) == []


@pytest.mark.slow
def test_an_honest_run_in_half_precision_is_replayed() -> None:
    half = adapter_class("hedge_tiny").create_from_arg_string("dtype=bfloat16")
    found = statement_on(half, entry_of(sampled(half, plan(n=3), 3), plan(n=3)), 3)
    assert found.verdict == "replayed", found.tests
    assert found.engine.dtype == "bfloat16"


@pytest.mark.slow
def test_a_reading_is_what_was_told_as_it_was_drawn(statement: Attestation, honest: Drawn) -> None:
    answers = {of.id: of.answers for _, of in honest}
    off = [
        abs(found - said.mean_logprob)
        for document in statement.documents
        for found, said in zip(document.logprobs, answers[document.id], strict=True)
        if isinstance(found, float) and said.mean_logprob is not None
    ]
    assert len(off) == K * 11
    assert max(off) < {"float32": 1.5e-5, "bfloat16": 0.2}[str(statement.engine.dtype)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("forge", "by"),
    [
        (scripted, LOGPROBS),
        (lambda drawn: scripted(drawn, 0.25), LOGPROBS),
        (copied_noisy, LOGPROBS),
    ],
)
def test_forged_answers_with_made_up_log_probabilities_fail(
    model: Any, honest: Drawn, forge: Callable[[Drawn], Drawn], by: str
) -> None:
    found = statement_on(model, entry_of(forge(honest), plan()), K)
    assert found.verdict == "contradicted"
    assert found.tests[by].state == "contradicted"


@pytest.mark.slow
@pytest.mark.parametrize("forge", [lambda drawn: scripted(drawn, 0.25), copied_noisy])
def test_forged_answers_with_the_models_own_log_probabilities_fail_by_their_seeds(
    model: Any, honest: Drawn, forge: Callable[[Drawn], Drawn]
) -> None:
    found = statement_on(model, entry_of(told_by(model, forge(honest)), plan()), K)
    assert found.tests[LOGPROBS].state == "holds"
    assert found.tests[SEEDS].state == "contradicted"
    assert found.verdict == "contradicted"


@pytest.mark.slow
def test_another_temperature_and_chosen_draws_fail(model: Any) -> None:
    cool = sampled(model, plan(temperature=0.7), 4)
    assert statement_on(model, entry_of(cool, plan()), 4).tests[SEEDS].state == "contradicted"
    chosen = kept_best(sampled(model, plan(n=10), 4), 5)
    found = statement_on(model, entry_of(chosen, plan()), 4)
    assert found.tests[LOGPROBS].state == "holds"
    assert found.tests[SEEDS].state == "contradicted"


@pytest.mark.slow
def test_another_models_answers_fail(model: Any) -> None:
    dtype = model.dtype
    other = adapter_class("hedge_tiny").create_from_arg_string(f"dtype={dtype},writes=reports")
    # In half precision a model of the same training is told apart by one answer of 66, and by none of 33.
    theirs = sampled(other, plan(), K)
    assert statement_on(model, entry_of(theirs, plan()), K).tests[LOGPROBS].state == "contradicted"
    assert statement_on(model, entry_of(told_by(model, theirs), plan()), K).tests[SEEDS].state == "contradicted"


@pytest.mark.slow
def test_without_seeds_answers_drawn_anew_tell(honest: Drawn, model: Any) -> None:
    """As of an engine whose tokens somebody else chooses. To say so is no way around the seeds."""
    forged = told_by(model, scripted(honest))
    found = statement_on(model, entry_of(forged, plan(), sampled_here=False), K)
    assert found.tests[SEEDS].state == "not met"
    assert found.tests[CLEAN].state == "contradicted"
    assert found.verdict == "contradicted"
    cool = sampled(model, plan(temperature=0.7), 4)
    assert statement_on(model, entry_of(cool, plan(), sampled_here=False), 4).verdict == "not verifiable"
    honestly = statement_on(model, entry_of(honest, plan(), sampled_here=False), K)
    assert honestly.verdict == "replayed"
    assert {honestly.tests[name].state for name in (BASELINE, CLEAN, NOISY, COPIES, LIKELY)} <= {
        "holds",
        "not verifiable",
    }


def _says(body: dict[str, Any]) -> str:
    """A server without log-probabilities, which draws by its seed and its temperature."""
    asked = json.dumps([part.get("text") for turn in body["messages"] for part in turn["content"]])
    likely = random.Random(asked).sample(["yes", "no", "left", "upper right"], 4)
    weights = (6, 2, 1, 1) if body["temperature"] > 0.5 else (50, 1, 0, 0)
    return random.Random(f"{asked} {body.get('seed')}").choices(likely, weights)[0]


@pytest.mark.slow
def test_an_api_without_log_probabilities_is_asked_again() -> None:
    n = 24
    with serve(_says) as url:
        api = adapter_class("hedge_openai").create_from_arg_string(f"model=m,base_url={url},max_retries=0")
        honest = sampled(api, plan(n=4, n_noisy=2), n)
        asked = plan(n=4, n_noisy=2)
        found = statement_on(api, entry_of(honest, asked, sampled_here=False), n, adapter="hedge_openai")
        assert found.tests[LOGPROBS].state == "not verifiable"
        assert (found.tests[CLEAN].state, found.tests[BASELINE].state) == ("holds", "holds")
        assert found.tests[AGAIN].state == "holds"
        assert found.verdict == "replayed"
        forged = entry_of(scripted(honest), asked, sampled_here=False)
        assert statement_on(api, forged, n, adapter="hedge_openai").verdict == "contradicted"
        # Draws of the model, but not those of the seeds that are stated.
        chosen = entry_of(sampled(api, plan(n=4, n_noisy=2, seed=5), n), asked, sampled_here=False)
        told = statement_on(api, chosen, n, adapter="hedge_openai")
        assert (told.tests[AGAIN].state, told.verdict) == ("not met", "not verifiable")


# --- a statement on the leaderboard -----------------------------------------------------------------------------------


def _with_digest(content: dict[str, Any]) -> Attestation:
    rest = {key: value for key, value in content.items() if key != "digest"}
    return Attestation.read({**rest, "digest": sha256_of(rest)})


def _edited(statement: Attestation, edit: Callable[[dict[str, Any]], None]) -> Attestation:
    content = statement.model_dump(mode="json")
    edit(content)
    return _with_digest(content)


def _other_document(content: dict[str, Any]) -> None:
    content["documents"][0]["id"] = "demo-119"


def _less(content: dict[str, Any]) -> None:
    content["documents"] = content["documents"][1:]


EDITS: dict[str, Callable[[dict[str, Any]], None]] = {
    "verdict": lambda content: content.update(verdict="not verifiable"),
    "a test": lambda content: content["tests"][LOGPROBS].update(statistic=3.0),
    "a p-value": lambda content: content["tests"][CLEAN].update(p_value=0.123456),
    "a test left out": lambda content: content["tests"].pop(SEEDS),
    "another submission": lambda content: content.update(submission=DIGEST),
    "another beacon": lambda content: content["beacon"].update(value="cd" * 32),
    "fewer documents": _less,
    "another document": _other_document,
    "more documents in the entry": lambda content: content.update(documents_of_entry=999),
    "another text": lambda content: content["documents"][0]["texts"].__setitem__(0, "0" * 16),
    "a number that is found": lambda content: content["documents"][0]["logprobs"].__setitem__(0, -9.0),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_a_statement_whose_numbers_do_not_follow_is_refused(
    statement: Attestation, honest: Drawn, edit: Callable[[dict[str, Any]], None]
) -> None:
    assert statement_faults(_edited(statement, edit), entry_of(honest, plan()))


@pytest.mark.slow
def test_the_board_shows_what_a_statement_says(statement: Attestation, honest: Drawn, tmp_path: Path) -> None:
    entry, file = entry_of(honest, plan()), tmp_path / "entry.json"
    write_submission(file, entry)
    cache = tmp_path / "cache"
    [before] = read_entries(tmp_path, cache=cache).entries
    assert not before.findings.answers.verified
    statement.write(place_of_statement(file))
    [after] = read_entries(tmp_path, cache=cache).entries
    assert after.findings.answers.verified
    assert "unsigned" in after.findings.answers.reason
    assert "replayed" in after.html
    assert read_statement(place_of_statement(file)) == statement
    _edited(statement, EDITS["another submission"]).write(place_of_statement(file))
    [forged] = read_entries(tmp_path, cache=cache).entries
    assert not forged.findings.answers.verified
    assert "refused" in forged.findings.answers.reason


@pytest.mark.slow
def test_a_contradicted_entry_is_set_aside(model: Any, honest: Drawn, tmp_path: Path) -> None:
    entry, file = entry_of(scripted(honest), plan()), tmp_path / "entry.json"
    write_submission(file, entry)
    statement_on(model, entry, 4).write(place_of_statement(file))
    findings = with_statement(check(entry), entry, file)
    assert not findings.ranked
    assert any("not its model's" in reason for reason in findings.set_aside)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="needs ssh-keygen")
def test_only_statements_of_known_keys_count_where_keys_are_given(
    statement: Attestation, honest: Drawn, tmp_path: Path
) -> None:
    entry, file = entry_of(honest, plan()), tmp_path / "entry.json"
    write_submission(file, entry)
    path = place_of_statement(file)
    statement.write(path)
    for name in ("mine", "other"):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(tmp_path / name)]
        subprocess.run(command, check=True, timeout=60)
    signers = tmp_path / "signers"
    signers.write_text(f"maintainer@example.org {(tmp_path / 'mine.pub').read_text()}")
    assert not with_statement(check(entry), entry, file, signers).answers.verified
    sign(path, tmp_path / "other", NAMESPACE)
    assert signer_of(path, NAMESPACE, signers) is None
    sign(path, tmp_path / "mine", NAMESPACE)
    assert signer_of(path, NAMESPACE, signers) == "maintainer@example.org"
    assert signer_of(path, "another", signers) is None
    found = with_statement(check(entry), entry, file, signers)
    assert found.answers.verified
    assert "maintainer@example.org" in found.answers.reason
    path.write_text(path.read_text().replace("replayed", "replayed "))
    assert signer_of(path, NAMESPACE, signers) is None
    signature_of(path).unlink()
    with pytest.raises(ConfigError, match="no such key"):
        sign(path, tmp_path / "nowhere", NAMESPACE)


@pytest.mark.slow
def test_the_command_writes_a_statement(
    honest: Drawn, model: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "entry.json"
    write_submission(file, entry_of(honest[:4], plan()))
    asked = ["attest", str(file), "--beacon", f"9:{'ab' * 32}", "--model", "hedge_tiny"]
    asked += ["--model_args", f"dtype={str(model.dtype).removeprefix('torch.')}", "--documents", "3", "--json"]
    assert main(asked) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["verdict"] == "replayed"
    assert facts["power"]["0.5"] == pytest.approx(1 - math.comb(2, 3) / math.comb(4, 3))
    assert len(read_statement(place_of_statement(file)).documents) == 3


def test_an_entry_committed_after_the_beacon_is_not_read(
    honest: Drawn, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "entry.json"
    write_submission(file, entry_of(honest[:2], plan()))
    who = ["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false"]
    for command in (["init", "-q"], ["add", "entry.json"], [*who, "commit", "-q", "-m", "entry"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True, timeout=60)
    assert main(["attest", str(file), "--beacon", f"9:{'ab' * 32}", "--model", "hedge_tiny"]) == 2
    assert "before the entry was committed" in capsys.readouterr().err


def test_few_documents_or_another_model_are_no_replay(
    honest: Drawn, statement: Attestation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry, file = entry_of(honest, plan()), tmp_path / "entry.json"
    write_submission(file, entry)
    statement.write(place_of_statement(file))
    assert with_statement(check(entry), entry, file).answers.verified
    monkeypatch.setattr(attestation, "FEWEST_READ", K + 1)
    if len(honest) > K:
        assert "have to be" in with_statement(check(entry), entry, file).answers.reason
    monkeypatch.setattr(attestation, "FEWEST_READ", K)
    alone = tuple(document.model_copy(update={"fresh": {}}) for document in statement.documents)
    [doubt] = attestation._doubts(statement.model_copy(update={"documents": alone}), entry, file)
    assert "no answer was drawn beside those that were read again" in doubt
    other = entry_of(honest, plan(), model="org/best-70b")
    told = replace_submission(statement, other)
    assert attestation._doubts(told, other, file) == [f"another model read the answers: {statement.engine.model}"]


def replace_submission(statement: Attestation, submission: dict[str, Any]) -> Attestation:
    return statement.model_copy(update={"submission": submission["digest"]})


def test_another_prompt_or_document_is_no_replay(honest: Drawn, model: Any) -> None:
    entry = entry_of(honest[:2], plan())
    entry["settings"]["prompt"] = {"name": "other", "user": "<image>Say: {question}", "system": None}
    with pytest.raises(ConfigError, match="prompt"):
        statement_on(model, entry, 1)
    other = entry_of([(draws, replace(of, question="another?")) for draws, of in honest[:2]], plan())
    with pytest.raises(DataError, match="another one"):
        statement_on(model, other, 1)
