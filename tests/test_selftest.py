"""The attack corpus: each forgery gets its mark, honest entries keep their places, and no file ends a build."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest
from conftest import REPOSITORY

from hedge_tasks.cli import main
from hedge_tasks.leaderboard import check
from hedge_tasks.leaderboard.forgeries import FORGERIES, Forgery, Honest, honest_board
from hedge_tasks.leaderboard.selftest import FUZZED, changed_at_random, self_test
from hedge_tasks.leaderboard.validation import findings_of

SOME = (
    "a fixed threshold",
    "the useful half of the draws, twice",
    "answers that a script wrote",
    "an entry under another name",
    "a badge's word in other letters",
)


@pytest.fixture(scope="module")
def board() -> Honest:
    return honest_board()


@pytest.mark.slow
def test_the_honest_board_is_whole(board: Honest) -> None:
    findings = check(board.submission(), **board.rules())
    assert (findings.problems, findings.set_aside) == ((), ())
    assert findings.labels.verified
    assert all(part.verified for part in findings.clusterings.values())


@pytest.mark.slow
def test_some_forgeries_get_their_marks() -> None:
    chosen = [forgery for forgery in FORGERIES if forgery.name in SOME]
    assert len(chosen) == len(SOME)
    found = list(self_test(seconds=0.0, chosen=chosen))
    assert [one.name for one in found if not one.expected] == []
    assert len(found) == len(SOME)


@pytest.mark.slow
def test_every_forgery_gets_its_mark() -> None:
    assert [one for one in self_test(seconds=0.0) if not one.expected] == []


@pytest.mark.slow
def test_an_entry_without_its_mark_is_told(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Forgery(
        "nothing forged at all", next(f for f in FORGERIES if f.name == "a better model's answers").forge, ("refused",)
    )
    monkeypatch.setattr("hedge_tasks.leaderboard.forgeries.FORGERIES", (honest,))
    assert main(["selftest", "--only", "forged"]) == 1
    said = capsys.readouterr().out
    assert "! nothing forged at all  not replayed" in said
    assert main(["selftest", "--only", "no such thing"]) == 2


@pytest.mark.slow
def test_files_changed_at_random_are_read_or_refused(board: Honest) -> None:
    dice, submission = random.Random(1), board.submission()
    places = set()
    for _ in range(12):
        changed, place = changed_at_random(submission, dice)
        places.add(place)
        findings_of(changed, **board.rules())
    assert len(places) > 6


@pytest.mark.slow
def test_a_fault_of_ours_is_an_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*given: Any, **options: Any) -> None:
        raise RuntimeError("a fault")

    monkeypatch.setattr("hedge_tasks.leaderboard.selftest.findings_of", fails)
    clock = iter((0.0, 0.5, 2.0))
    monkeypatch.setattr("hedge_tasks.leaderboard.selftest.time.monotonic", lambda: next(clock))
    [fault, summary] = self_test(seconds=1.0, chosen=())
    assert (fault.name, fault.mark, fault.expected) == (FUZZED, "RuntimeError", False)
    assert summary.expected


def test_the_page_on_red_teaming_has_the_corpus() -> None:
    text = (REPOSITORY / "docs" / "red-team.md").read_text("utf-8").partition("## The corpus")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| ([^|]+?) \| ([^|]+?) \| ([^|]+?) \|$", text, re.MULTILINE)
    told = {name: set(re.split(", | or ", now)) for name, _, now in rows if name != "forgery" and "--" not in name}
    assert told == {forgery.name: set(forgery.marks) for forgery in FORGERIES}
    assert len(told) == len(FORGERIES)
