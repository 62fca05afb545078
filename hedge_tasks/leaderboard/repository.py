"""A repository for a leaderboard, and the commands that bring an entry into one."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

from hedge_tasks import __version__
from hedge_tasks.errors import DataError
from hedge_tasks.io.files import write_whole
from hedge_tasks.leaderboard.board import slug
from hedge_tasks.leaderboard.owners import ANNOUNCEMENT

ENTRIES = "entries"
WORKFLOW = ".github/workflows/leaderboard.yml"

_SIGNERS = (
    "# Keys whose statements (`hedge attest --sign`) and audits count, a line each, as in allowed_signers:\n"
    "# maintainer@example.org ssh-ed25519 AAAA...\n"
)
_IGNORED = "site/\n.cache/\n/changed\n/not-new\n/entries-changed\n"


def make_repository(folder: Path, *, title: str = "HEDGE leaderboard") -> list[Path]:
    """Write what a leaderboard's repository needs: workflow, README, requirements, folders. Returns the files.

    Raises:
        DataError: there is such a folder already with something in it, or it cannot be written.
    """
    if folder.exists() and (not folder.is_dir() or any(p.name != ".git" for p in folder.iterdir())):
        raise DataError(f"{folder} is there already, and not empty")
    texts = {
        WORKFLOW: _template("workflow.yml.txt"),
        "README.md": Template(_template("README.md.txt")).substitute(title=title, version=__version__),
        "requirements.txt": f"hedge-tasks=={__version__}\n",
        ".gitignore": _IGNORED,
        f"{ENTRIES}/.gitkeep": "",
        "manifests/.gitkeep": "",
        "editions/.gitkeep": "",
        "signers": _SIGNERS,
    }
    for name, text in texts.items():
        path = folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(f"cannot write {path.parent}: {error.strerror}") from error
        write_whole(path, text)
    return [folder / name for name in texts]


def place_of(out: Path, submission: Mapping[str, Any]) -> Path:
    """Where an entry is written: the file itself, or in a folder (in its `entries`) under the entry's own name."""
    if not out.is_dir():
        return out
    folder = out / ENTRIES if (out / ENTRIES).is_dir() else out
    return folder / f"{name_of_entry(submission)}.json"


def name_of_entry(submission: Mapping[str, Any]) -> str:
    """Readable, fit for a file and a branch, and another one for another submission."""
    entry = submission["entry"]
    return slug(f"{entry['task']}-{entry['name']}", submission["digest"])


def commands_for(path: Path, submission: Mapping[str, Any]) -> list[str]:
    """The commands that open the pull request, to be run from anywhere."""
    entry = submission["entry"]
    name, announces = name_of_entry(submission), path.suffix == ANNOUNCEMENT
    title = f"{'Announcement' if announces else 'Entry'}: {entry['name'][:60]} on {entry['task'][:60]}"
    branch = f"announce-{name}" if announces else name
    repository = path.resolve().parent.parent
    copying = []
    if not (repository / ENTRIES).is_dir() or path.resolve().parent.name != ENTRIES:
        file = f"{ENTRIES}/{name}{ANNOUNCEMENT if announces else '.json'}"
        copying = ["git clone YOUR-FORK leaderboard", f"cp {shlex.quote(str(path))} leaderboard/{file}"]
        repository = Path("leaderboard")
    else:
        file = f"{ENTRIES}/{path.name}"
    where = shlex.quote(str(repository))
    return [
        *copying,
        f"cd {where}",
        f"git switch --create {branch}",
        f"git add {shlex.quote(file)}",
        f"git commit --message {shlex.quote(title)}",
        f"git push --set-upstream origin {branch}",
        f"gh pr create --title {shlex.quote(title)} --body '' --head {branch}",
    ]


def merged_in(folder: Path) -> dict[str, int]:
    """When each file of a folder came into the main line of its git repository: 0 is the first commit that has any.

    By the place of commits on the line of first parents, not by their dates, which are their authors' to write. A
    folder that is in no repository has none.
    """
    # An empty field stands in front of each commit's paths, and no path is empty.
    log = ["git", "log", "--first-parent", "-m", "--reverse", "--no-renames", "--diff-filter=A", "--format=%x00"]
    log += ["--name-only", "-z", "--relative", "--", "."]
    try:
        done = subprocess.run(log, cwd=folder, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return {}
    order: dict[str, int] = {}
    for number, commit in enumerate(done.stdout.split("\0\0\n")):
        # The last time that it was added counts.
        order |= dict.fromkeys(filter(None, commit.split("\0")), number)
    return order


def committed_at(path: Path) -> int | None:
    """Second since 1970 at which a file last came into the main line of its git repository; None where it did not."""
    log = ["git", "log", "--first-parent", "-m", "--no-renames", "--diff-filter=A", "--format=%ct", "--", path.name]
    try:
        done = subprocess.run(log, cwd=path.parent, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    times = [int(line) for line in done.stdout.split() if line.isdecimal()]
    return times[0] if times else None


def _template(name: str) -> str:
    return (resources.files("hedge_tasks.leaderboard") / "skeleton" / name).read_text("utf-8")
