"""Makes a set in children that are killed again and again."""

from __future__ import annotations

import json
from pathlib import Path

from killing import killed
from test_make_medhallu import make


def run_killed(url: str, folder: str, kills: int) -> None:
    """Prints how often it was killed. 10 questions take a second or more in one go; a child lives for less."""

    def work() -> None:
        made = make(url, Path(folder))
        (Path(folder) / "rows.json").write_text(json.dumps([dict(row) for row in made.rows]))

    print(killed(work, kills, 0.02, 0.06))
