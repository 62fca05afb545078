"""A repository for a leaderboard, and the commands that bring an entry into one."""

from __future__ import annotations

import shlex
import subprocess
from importlib import resources
from pathlib import Path
from string import Template

from hedge_tasks import __version__
from hedge_tasks.errors import DataError
from hedge_tasks.io.files import write_whole

ENTRIES, REPLAYS = "entries", "replays"
WORKFLOW = ".github/workflows/leaderboard.yml"


def make_repository(folder: Path) -> list[Path]:
    """Write what a leaderboard's repository needs: workflow, README, requirements, folders. Returns the files.

    Raises:
        DataError: there is such a folder already with something in it, or it cannot be written.
    """
    if folder.exists() and (not folder.is_dir() or any(p.name != ".git" for p in folder.iterdir())):
        raise DataError(f"{folder} is there already, and not empty")
    texts = {
        WORKFLOW: _template("workflow.yml.txt"),
        "README.md": Template(_template("README.md.txt")).substitute(version=__version__),
        "requirements.txt": f"hedge-tasks=={__version__}\n",
        ".gitignore": "site/\n.cache/\n",
        f"{ENTRIES}/.gitkeep": "",
        f"{REPLAYS}/.gitkeep": "",
    }
    for name, text in texts.items():
        path = folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(f"cannot write {path.parent}: {error.strerror}") from error
        write_whole(path, text)
    return [folder / name for name in texts]


def commands_for(path: Path, title: str) -> list[str]:
    """The commands that open the pull request of an entry's file, to be run from anywhere."""
    copying = []
    repository = path.resolve().parent.parent
    if path.parent.name != ENTRIES:
        copying = ["git clone YOUR-FORK leaderboard", f"cp {shlex.quote(str(path))} leaderboard/{ENTRIES}/"]
        repository = Path("leaderboard")
    branch = path.stem
    return [
        *copying,
        f"cd {shlex.quote(str(repository))}",
        f"git switch --create {branch}",
        f"git add {ENTRIES}/{shlex.quote(path.name)}",
        f"git commit --message {shlex.quote(title)}",
        f"git push --set-upstream origin {branch}",
        f"gh pr create --title {shlex.quote(title)} --body '' --head {branch}",
    ]


def merged_in(folder: Path) -> dict[str, int]:
    """When each file of a folder came into the main line of its git repository: 0 is the first that did.

    By the place of commits on the line of first parents, not by their dates, which are their authors' to write. A
    folder that is in no repository has none.
    """
    log = ["git", "log", "--first-parent", "-m", "--reverse", "--no-renames", "--diff-filter=A", "--format="]
    try:
        done = subprocess.run(
            [*log, "--name-only", "-z", "--relative", "--", "."],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return {}
    return {name.strip("\n"): i for i, name in enumerate(filter(None, done.stdout.split("\0")))}


def _template(name: str) -> str:
    return (resources.files("hedge_tasks.leaderboard") / "skeleton" / name).read_text("utf-8")
