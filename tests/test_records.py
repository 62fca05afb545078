"""The strict base of what comes from outside: what is wrong is one line with its place, whatever was read."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from at_border import at_border
from hostile import attempt
from pydantic import model_validator

from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.io.records import (
    LONGEST_TEXT,
    AtLeastOne,
    Count,
    Items,
    Name,
    Objects,
    OpenRecord,
    Record,
    Settings,
    Share,
)


class Promise(Record):
    risk: Share
    who: Literal["open", "closed"] = "open"


class Plan(Settings):
    n: AtLeastOne
    name: Name = "a"
    noisy: Count | None = None
    promises: Items[Promise] = ()
    by_name: Objects[Promise] = {}  # noqa: RUF012 (pydantic copies it)

    @model_validator(mode="after")
    def _even(self) -> Plan:
        if self.noisy == 13:
            raise ConfigError("noisy: not 13")
        return self


class Verdict(OpenRecord):
    judge: str | None = None
    content: str | Promise | Items[Promise] | None = None


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"n": "1"}, "n: expected an integer, got '1'"),
        ({"n": True}, "n: expected an integer, got True"),
        ({"n": 0}, "n: expected a number of at least 1, got 0"),
        ({}, "n: missing"),
        ({"n": 1, "promisses": []}, "unknown key 'promisses', did you mean 'promises'? Valid: by_name, n, name, noisy"),
        ({"n": 1, "promises": [{"risk": 0.5}, {"risk": 2}]}, "promises[1].risk: expected a number between 0 and 1"),
        ({"n": 1, "promises": [{"rsk": 0.5}]}, "promises[0]: unknown key 'rsk', did you mean 'risk'? Valid: risk, w"),
        ({"n": 1, "by_name": {"a.b": {"risk": float("nan")}}}, "by_name.a.b.risk: expected a finite number, got nan"),
        ({"n": 1, "promises": [{"risk": 1, "who": "opn"}]}, "expected 'open' or 'closed', got 'opn'"),
        ({"n": 1, "promises": {}}, "promises: expected a list, got dict"),
        ({"n": 1, "promises": [3]}, "promises[0]: expected an object, got 3"),
        ({"n": 1, "name": ""}, "name: expected a text of at least 1 character, got ''"),
        ({"n": 1, "noisy": 13}, "noisy: not 13"),
        (None, "expected an object, got None"),
    ],
)
def test_what_is_wrong_is_said_in_one_line_with_its_place(value: Any, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Plan.read(value, "plan.yaml:3")
    assert str(caught.value).startswith("plan.yaml:3: ")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_is_built_in_python_is_checked_alike() -> None:
    with pytest.raises(ConfigError, match=r"^promises\[0\]\.risk: expected a number, got 'x'$"):
        Plan(n=1, promises=({"risk": "x"},))  # type: ignore[arg-type]
    with pytest.raises(DataError, match=r"^risk: expected a number between 0 and 1"):
        Promise(risk=3)
    with pytest.raises(ConfigError, match=r"^n: "):
        Plan(n=1).replaced(n=0)
    assert Plan(n=1, name="b").replaced(n=2) == Plan(n=2, name="b")


def test_texts_are_as_long_as_they_may_be() -> None:
    at_border(lambda n: attempt(lambda: Plan(n=1, name="x" * int(n)))[1] == "", 500, "110")
    at_border(lambda n: attempt(lambda: Verdict(judge="x" * int(n)))[1] == "", LONGEST_TEXT, "110")


def test_records_are_frozen_and_lists_are_tuples() -> None:
    plan = Plan.read({"n": 1, "promises": [{"risk": 0}]})
    assert plan.promises == (Promise(risk=0.0),)
    with pytest.raises(ValueError, match="frozen"):
        plan.n = 2  # type: ignore[misc]


def test_an_open_record_lets_other_keys_pass() -> None:
    assert Verdict.read({"judge": "rule", "anything": [1]}).judge == "rule"
    with pytest.raises(DataError, match=r"f:1: judge: expected a text, got 3"):
        Verdict.read({"judge": 3}, "f:1")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (3, "content: expected a text or an object or a list, got 3"),
        ({"rsk": 1}, "content: unknown key 'rsk', did you mean 'risk'"),
        ([{"risk": 7}], r"content\[0\].risk: expected a number between 0 and 1, got 7"),
        ([{}], r"content\[0\].risk: missing"),
    ],
)
def test_of_alternatives_the_one_that_was_meant_is_named(content: Any, words: str) -> None:
    with pytest.raises(DataError, match=f"^f:1: {words}"):
        Verdict.read({"content": content}, "f:1")
