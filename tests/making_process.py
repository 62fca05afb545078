"""Makes a set in a process of its own, to be killed."""

from __future__ import annotations

import json
from pathlib import Path


def run(url: str, source: str, folder: str) -> None:
    from test_make_medhallu import make

    made = make(url, Path(folder))
    print(json.dumps([dict(row) for row in made.rows]))
