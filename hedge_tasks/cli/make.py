"""`hedge make`: make a data set by a paper's construction."""

from __future__ import annotations

from typing import Any

COMMANDS: dict[str, Any] = {}
"""Evaluations bring them."""
