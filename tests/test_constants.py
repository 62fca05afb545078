"""Numbers that decide results are as they were reviewed: who changes one changes the file that lists them."""

from __future__ import annotations

import json

from golden.make_constants import FILE, constants


def test_named_numbers_and_defaults_are_those_of_the_reviewed_file() -> None:
    now, reviewed = constants(), json.loads(FILE.read_text("utf-8"))
    assert now == reviewed, "write it anew with `python tests/golden/make_constants.py`, and read what changed"
