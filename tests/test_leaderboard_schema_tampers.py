"""Tampers that the schema itself names: every field of a submission removed, of a wrong type, or with a neighbour."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel
from tampered_submissions import Json, world

from hedge_tasks.io.records import OpenRecord, _alternatives, _inner, key_path
from hedge_tasks.leaderboard.schema import Submission, schema_fault

Place = tuple[str | int, ...]


@pytest.fixture(scope="module")
def submission(tmp_path_factory: pytest.TempPathFactory) -> Json:
    made = copy.deepcopy(world(tmp_path_factory.mktemp("world")).with_texts)
    del made["documents"][1:]
    return made


def records(kind: Any, value: Any, place: Place = ()) -> Iterator[tuple[type[BaseModel], Place]]:
    """Every record in a value, with its place; of lists and objects with any keys the first item alone."""
    for one in _alternatives(kind):
        if isinstance(one, type) and issubclass(one, BaseModel) and isinstance(value, dict):
            yield one, place
            for name in one.model_fields.keys() & value.keys():
                yield from records(one.model_fields[name].annotation, value[name], (*place, name))
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in list(items)[:1]:
        inner = _inner(kind, key)
        if inner is not None and not any(
            isinstance(one, type) and issubclass(one, BaseModel) for one in _alternatives(kind)
        ):
            yield from records(inner, item, (*place, key))


def at(submission: Json, place: Place) -> Any:
    for key in place:
        submission = submission[key]  # type: ignore[index]
    return submission


def tampered(submission: Json, place: Place, change: Any) -> str | None:
    copied = copy.deepcopy(submission)
    change(at(copied, place))
    return schema_fault(copied)


@pytest.mark.slow
def test_every_field_of_the_schema_is_held_to(submission: Json) -> None:
    assert schema_fault(submission) is None
    found = {place: kind for kind, place in records(Submission, submission)}
    assert len(found) > 12
    n = 0
    for place, kind in found.items():
        where = key_path(Submission, place)
        extra = tampered(submission, place, lambda record: record.update(rnak=1))
        if issubclass(kind, OpenRecord):  # of settings, to which anybody may add
            assert extra is None
        else:
            assert extra is not None
            assert "rnak" in extra, (where, extra)
        for name, field in kind.model_fields.items():
            if name not in at(submission, place) or field.annotation is Any:
                continue
            full = f"{where}.{name}" if where else name
            if field.is_required():
                assert tampered(submission, place, lambda record, key=name: record.pop(key)) == f"{full}: missing"
            wrong: Any = "no object" if isinstance(at(submission, place)[name], dict) else {"no": ["such", "thing"]}
            said = tampered(submission, place, lambda record, key=name, value=wrong: record.update({key: value}))
            assert said is not None, full
            assert said.startswith(full), (full, said)
            n += 1
    assert n > 50
