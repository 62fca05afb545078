"""Every way to tamper that the leaderboard's README names has the outcome that it says there."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

import pytest
from tampered_submissions import (
    ASIDE,
    MISSED,
    REFUSED,
    REPORTED,
    TAMPERS,
    TASK,
    Json,
    Tamper,
    World,
    world,
)

from hedge_tasks.leaderboard import build_site, check, read_entries, write_submission
from hedge_tasks.leaderboard.chain import check_with_texts, prove_run, prove_store
from hedge_tasks.leaderboard.submission import digest_of
from hedge_tasks.leaderboard.validation import Findings


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> World:
    return world(tmp_path_factory.mktemp("world"))


def outcome(findings: Findings, part: str) -> str:
    if findings.problems:
        return REFUSED
    if findings.set_aside:
        return ASIDE
    return MISSED if is_verified(findings, part) else REPORTED


def is_verified(findings: Findings, part: str) -> bool:
    """Whether a reader is told that a part was computed again; of answers nobody is told so."""
    what, *names = part.split() or ("",)
    if what == "labels":
        return findings.labels.verified
    if what == "clusters":
        return findings.clusterings[names[0]].verified
    return findings.detectors[names[0]][names[1]].verified if what == "scores" else False


def of_chain(made: World, tampered: Json, findings: Findings, part: str) -> str:
    if not findings.problems:
        links = [prove_run(tampered, made.run), prove_store(made.run, made.store)]
        if any(link.problems for link in links):
            return REFUSED
        findings = check_with_texts(tampered, made.run, manifests=made.find)
    return outcome(findings, part)


def outcomes(made: World, tamper: Tamper) -> tuple[str, str, str]:
    with_texts, without = tamper.of(made.with_texts), tamper.of(made.without_texts)
    whole, bare = (check(submission, manifests=made.find) for submission in (with_texts, without))
    found = (outcome(whole, tamper.part), outcome(bare, tamper.part), of_chain(made, without, bare, tamper.part))
    return found if tamper.part else tuple(MISSED if of == REPORTED else of for of in found)  # type: ignore[return-value]


def test_what_was_not_tampered_with_is_valid_ranked_and_proved(made: World) -> None:
    for submission in (made.with_texts, made.without_texts):
        findings = check(submission, manifests=made.find)
        assert (findings.problems, findings.set_aside) == ((), ())
        assert findings.coverage is not None
        assert findings.coverage.whole
        assert prove_run(submission, made.run).problems == ()
    assert prove_store(made.run, made.store).problems == ()
    verified = check(made.with_texts, manifests=made.find)
    assert verified.labels.verified
    assert verified.clusterings["exact"].verified
    assert not verified.clusterings["other"].verified
    lent = check_with_texts(made.without_texts, made.run, manifests=made.find)
    assert lent.labels.verified
    assert lent.problems == ()


@pytest.mark.parametrize("tamper", TAMPERS, ids=[tamper.name for tamper in TAMPERS])
def test_a_tamper_has_the_outcome_that_is_told(made: World, tamper: Tamper) -> None:
    assert tamper.of(made.with_texts) != made.with_texts
    assert outcomes(made, tamper) == tamper.outcomes


def test_another_models_answers_under_a_false_name_are_nobodys_to_see(tmp_path: Path) -> None:
    """The one that cannot be caught: everything was made by a model that was not the model."""
    lie = world(tmp_path, model="org/a-model-that-it-was-not")
    assert check(lie.with_texts, manifests=lie.find).ranked
    assert prove_run(lie.with_texts, lie.run).problems == ()
    assert prove_store(lie.run, lie.store).problems == ()


def test_somebody_elses_submission_under_another_name_is_refused(made: World, tmp_path: Path) -> None:
    write_submission(tmp_path / "a.json", made.with_texts)
    copied = {**made.with_texts, "entry": {**made.with_texts["entry"], "name": "mine"}}
    write_submission(tmp_path / "b.json", {**copied, "digest": digest_of(copied)})
    built = read_entries(tmp_path, manifests=made.find)
    assert built.refused[tmp_path / "b.json"] == "the same answers as a.json"
    assert len(built.entries) == 1


def test_the_readme_tells_these_outcomes() -> None:
    text = (resources.files("hedge_tasks.leaderboard") / "README.md").read_text("utf-8")
    rows = re.findall(r"^\| ([^|]+?) \| ([^|]+?) \| ([^|]+?) \| ([^|]+?) \|$", text, re.MULTILINE)
    words = {REFUSED, ASIDE, REPORTED, MISSED}
    told = {name: tuple(of) for name, *of in rows if set(of) <= words}
    assert told.items() >= {tamper.name: tamper.outcomes for tamper in TAMPERS}.items()
    assert len(told) == len(TAMPERS) + 2  # the two that have tests of their own
    count = re.search(r"(\d+) ways", text)
    assert count is not None
    assert int(count[1]) == len(told)


def test_the_site_says_what_is_verified_and_sets_partial_entries_aside(made: World, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    write_submission(folder / "whole.json", made.with_texts)
    dropped = next(tamper for tamper in TAMPERS if tamper.name == "hard documents dropped")
    write_submission(folder / "partial.json", dropped.of(made.without_texts))
    built = read_entries(folder, manifests=made.find)
    build_site(built, tmp_path / "site")
    [page] = (tmp_path / "site").glob("task-1-*.html")
    text = page.read_text("utf-8")
    ranked, _, aside = text.partition("Not ranked")
    assert "labels ✓" in ranked
    assert re.search(r"partial: \d+ of 20 documents", aside)
    assert "labels self-reported" in aside
    assert TASK in text
