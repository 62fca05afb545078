"""Metadata that pyproject.toml cannot compute: the README as a package page can show it.

A link to a file of the repository leads nowhere from a package page. Where `[project.urls]` has a `Repository`, such
links are made absolute; without one only their text stays. Everything else is in pyproject.toml and setup.cfg.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from setuptools import setup

_HERE = Path(__file__).parent
_LINK = re.compile(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?!https?:|#)([^()\s]+)\)")


def page(readme: str, repository: str | None) -> str:
    """The README with no link that is relative to the repository."""
    if repository is None:
        return _LINK.sub(r"\1", readme)
    return _LINK.sub(rf"[\1]({repository.rstrip('/')}/blob/HEAD/\2)", readme)


if __name__ == "__main__":
    project = tomllib.loads((_HERE / "pyproject.toml").read_text("utf-8"))["project"]
    setup(
        long_description=page((_HERE / "README.md").read_text("utf-8"), project.get("urls", {}).get("Repository")),
        long_description_content_type="text/markdown",
    )
