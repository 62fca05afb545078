"""Policies that somebody has edited, with a digest that fits: each is refused with one line that says why."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from guarded import PICTURE, Model, policy
from hostile import attempt
from test_guard import POLICY
from test_run_settings import places

from hedge_tasks.data.answers import Answer
from hedge_tasks.guard import Guard
from hedge_tasks.guard.policy import Policy, digest_of, load_policy, save_policy
from hedge_tasks.llm.secrets import Redactor
from hedge_tasks.runs.trust import Untrusted
from hedge_tasks.sampling.hook import without_keys

Edit = Callable[[dict[str, Any]], None]


def put(path: str, value: Any) -> Edit:
    """Set what is at a path such as `promise.risk`; a function makes it of what was there."""

    def edit(content: dict[str, Any]) -> None:
        *parents, last = path.split(".")
        for name in parents:
            content = content[name]
        content[last] = value(content.get(last)) if callable(value) else value

    edit.__name__ = path
    return edit


def written(folder: Path, edit: Edit) -> Path:
    """The test run's policy with an edit, and the digest that a forger would put there."""
    path = folder / "policy.json"
    save_policy(POLICY, path)
    content = json.loads(path.read_text())
    content.pop("digest")
    edit(content)
    path.write_text(json.dumps({**content, "digest": digest_of(content)}))
    return path


ODD = (None, True, -1, 0, 1, 2.5, math.nan, "", "os:system", [], [1], {}, {"surprise": 1})
PLACES = [".".join(place) for place in places(POLICY.model_dump(mode="json"))]


@pytest.mark.parametrize("place", PLACES)
def test_an_edited_policy_is_refused_in_one_line_or_is_what_it_was_edited_to(tmp_path: Path, place: str) -> None:
    for value in ODD:
        path = written(tmp_path, put(place, value))
        loaded, error = attempt(lambda path=path: load_policy(path))
        assert error.count(str(path)) == (loaded is None), value
        assert "\n" not in error
        if loaded is not None:
            edited = {name: part for name, part in json.loads(path.read_text()).items() if name in Policy.model_fields}
            assert Policy.read(edited) == loaded
            is_same = [getattr(loaded, name) == getattr(POLICY, name) for name in Policy.model_fields]
            assert is_same.count(False) <= 1


@pytest.mark.parametrize(
    ("edit", "named"),
    [
        (put("clustering", {"backend": "nli", "with_question": False, "model": "evil/model"}), "evil/model"),
        (
            put("clustering", {"backend": "nli", "with_question": False, "model": "package://evil.code/x"}),
            "evil.code",
        ),
        (put("clustering", {"backend": "embed", "with_question": False, "model": "/tmp/model"}), "/tmp/model"),
        (put("circumstances.sampling.perturbation", {"kind": "induction", "pipeline": "os:system"}), "os:system"),
    ],
)
def test_what_a_stranger_names_is_not_loaded(tmp_path: Path, edit: Edit, named: str) -> None:
    path = written(tmp_path, edit)
    with pytest.raises(Untrusted, match="--trust-policy") as refused:
        load_policy(path)
    assert named in str(refused.value)


SECRETS = [
    "sk-" + "a1B2" * 8,
    "hf_" + "aB3" * 12,
    "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
]


@pytest.mark.parametrize("secret", SECRETS, ids=range(len(SECRETS)))
def test_a_key_in_an_answer_is_taken_out(secret: str) -> None:
    tokens = tuple((piece, -0.1) for piece in ("The key is ", *secret))
    told = without_keys(Answer(f"The key is {secret}.", -0.1, len(tokens), tokens=tokens), Redactor())
    assert isinstance(told, Answer)
    assert told.text == "The key is [secret]."
    assert (told.tokens, told.mean_logprob) == (None, -0.1)


def test_a_guard_hands_on_no_key() -> None:
    verdict = Guard(policy(), Model(Answer(f"it is {SECRETS[0]}"))).ask(PICTURE, "0.0")
    assert SECRETS[0] not in json.dumps(verdict.to_dict())
    assert verdict.answer == "it is [secret]"
