"""Leaderboard: runs as submissions that anybody can check, and a static site made of them.

from hedge_tasks.leaderboard import build_site, check, make_submission, read_entries

submission = make_submission(run)
findings = check(submission)
assert not findings.problems
build_site(read_entries(Path("submissions")), Path("site"))
"""

from __future__ import annotations

from hedge_tasks.leaderboard.entries import read_entries
from hedge_tasks.leaderboard.schema import submission_schema
from hedge_tasks.leaderboard.site import build_site
from hedge_tasks.leaderboard.submission import make_submission, write_submission
from hedge_tasks.leaderboard.validation import ValidationFindings, check, problems, read_submission

__all__ = [
    "ValidationFindings",
    "build_site",
    "check",
    "make_submission",
    "problems",
    "read_entries",
    "read_submission",
    "submission_schema",
    "write_submission",
]
