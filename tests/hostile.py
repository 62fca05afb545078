"""What the tests of hostile input share: calls that end in a value or in an error of ours, and structured damage."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

from hedge_tasks.errors import HedgeError

ODD = (
    *(None, True, False, 0, 1, -1, 1.0, 0.5, 2**63, 10**30, 10**400, -1e308, float("nan"), float("inf"), "-inf"),
    *("", " ", "\x00", "\ud83d", "nan", "1.0", "\u202e", "\x1b[31m", "a" * 5000, "{{7*7}}", "../../x", "custom:x"),
    *([], {}, [[]], [None], {"text": "a"}, [{"text": "a"}] * 3, {"": ""}, [0] * 100),
)
"""Values that somebody may write where something else is expected."""


def attempt(call: Callable[[], Any]) -> tuple[Any, str]:
    """The value of a call and "", or None and the text of the error of ours that it ended in."""
    try:
        return call(), ""
    except HedgeError as error:
        return None, str(error) or type(error).__name__


def mutated(value: Any, dice: random.Random) -> Any:
    """A JSON value with one thing in it that is not as it should be, at a random depth."""
    if isinstance(value, (dict, list)) and value and dice.random() < 0.75:
        inner = dict(value) if isinstance(value, dict) else list(value)
        key = dice.choice(list(value)) if isinstance(value, dict) else dice.randrange(len(value))
        what = dice.random()
        if what < 0.7:
            inner[key] = mutated(value[key], dice)
        elif what < 0.85:
            del inner[key]
        elif isinstance(inner, dict):
            inner[dice.choice(["lable", "id", "text", "", "\ud83d"])] = dice.choice(ODD)
        else:
            inner.append(dice.choice(ODD))
        return inner
    return dice.choice(ODD)


def mangled(data: bytes, dice: random.Random) -> bytes:
    """Bytes with a few of them changed, cut, doubled or put in."""
    changed = bytearray(data)
    for _ in range(dice.choice([1, 1, 2, 5])):
        at = dice.randrange(len(changed) + 1)
        what = dice.random()
        if what < 0.4 and at < len(changed):
            changed[at] ^= 1 << dice.randrange(8)
        elif what < 0.6:
            del changed[at:]
        elif what < 0.8:
            changed[at:at] = dice.choice(
                [b"\x00", b"\xff", b"[" * 500, b'"', b"\n", b"{", b"1" * 400, b"\\ud83d", b"NaN"]
            )
        else:
            changed[at:at] = changed[: dice.randrange(200)]
    return bytes(changed)


def dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True)
