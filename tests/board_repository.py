"""A board's git repository, into which entries and announcements are merged one after the other."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from hedge_tasks.leaderboard import read_entries, write_submission
from hedge_tasks.leaderboard.forgeries import Honest
from hedge_tasks.leaderboard.owners import announcement_of, write_announcement

Json = dict[str, Any]


class Repository:
    """A board's repository, into which files are merged one after the other."""

    def __init__(self, folder: Path, board: Honest) -> None:
        self.folder, self.board = folder / "entries", board
        self.folder.mkdir(parents=True)
        self._git("init", "-q", "--initial-branch", "main")

    def _git(self, *arguments: str) -> None:
        who = ["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *who, *arguments], cwd=self.folder, check=True, timeout=60)

    def merge(self, name: str, submission: Json) -> None:
        write_submission(self.folder / name, submission)
        self.commit()

    def announce(self, name: str, submission: Json) -> None:
        write_announcement(self.folder / name, announcement_of(submission))
        self.commit()

    def commit(self) -> None:
        self._git("add", ".")
        self._git("commit", "-q", "-m", "merged")

    @property
    def leads(self) -> list[str]:
        """Files of ranked entries."""
        built = read_entries(self.folder, **self.board.rules())
        self.refused = {path.name: reason for path, reason in built.refused.items()}
        self.set_aside = {entry.file: "; ".join(entry.findings.set_aside) for entry in built.entries}
        return sorted(entry.file for entry in built.entries if entry.findings.ranked)
