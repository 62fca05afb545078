"""Questions from Python: by file and by picture, many, awaited, in time or undecided, of servers and in process."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from guarded import PICTURE, SERVED, Model, of_server, policy, reply
from openai_server import Response, Script, completion, error, serve, texts_of

import hedge_tasks.guard
from hedge_tasks.errors import ConfigError, DataError, DrawsFailed
from hedge_tasks.guard import Guard, GuardVerdict
from hedge_tasks.guard.models import served_name
from hedge_tasks.guard.policy import Policy, save_policy


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with serve(reply, models=[SERVED]) as url:
        yield url


def untimed(verdict: Any) -> Any:
    return replace(verdict, seconds=0)


def test_a_policy_s_file_and_an_address_are_enough(server: str, tmp_path: Path) -> None:
    file, scan = tmp_path / "policy.json", tmp_path / "scan.png"
    save_policy(of_server(policy()), file)
    PICTURE.save(scan)
    with Guard.load(str(file), endpoint=server) as guard:
        verdict = guard.ask(scan, "0.9")
        assert untimed(verdict) == untimed(guard.ask(PICTURE, "0.9")) == untimed(guard.ask([str(scan)], "0.9"))
        assert (verdict.answer, verdict.accepted, verdict.promised_risk) == ("a", False, None)
        assert [c.baseline for c in verdict.clusters] == [True, *[False] * (len(verdict.clusters) - 1)]
        assert sum(c.share for c in verdict.clusters) == pytest.approx(1)
        assert verdict.reason == f"radflag is {1 - verdict.clusters[0].share:.4g}, above 0.3"
        fine = guard.ask(scan, "0.0")
        assert (fine.accepted, fine.promised_risk) == (True, guard.policy.promise.risk)
        with pytest.raises(DataError, match=r"nowhere\.png"):
            guard.ask(tmp_path / "nowhere.png", "0.0")
        with pytest.raises(DataError, match="on a picture"):
            guard.ask(None, "0.0")
    assert hedge_tasks.guard.Guard is Guard
    with pytest.raises(AttributeError):
        hedge_tasks.guard.Gard  # noqa: B018


def test_a_question_that_fails_takes_no_other_one_with_it(tmp_path: Path) -> None:
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"no picture")

    def picky(body: dict[str, Any]) -> str | Response:
        return error(400, "no") if "0.4" in texts_of(body)[-1] else reply(body)

    with serve(picky) as url, Guard.load(of_server(policy()), endpoint=url) as guard:
        found = guard.ask_many([(PICTURE, "0.0"), (broken, "0.0"), (PICTURE, "0.4"), (PICTURE, "0.2")])
    assert [type(one) for one in found] == [GuardVerdict, DataError, DrawsFailed, GuardVerdict]


def test_time_that_is_over_is_undecided_with_what_is_known() -> None:
    def slow_draws(body: dict[str, Any]) -> Response:
        return Response(completion("a"), pause=60 if body["temperature"] > 0.5 else 0)

    with serve(slow_draws) as url, Guard.load(of_server(policy()), endpoint=url, within=4) as guard:
        verdict = guard.ask(PICTURE, "0")
        assert (verdict.state, verdict.accepted) == ("undecided", False)
        assert (verdict.promised_risk, verdict.score) == (None, None)
        assert (verdict.answer, verdict.draws, verdict.clusters) == ("a", 0, ())
        assert verdict.words == "undecided, so not safe to use"
    never = Script(Response(completion("a"), pause=20))
    with serve(never) as url, Guard.load(of_server(policy()), endpoint=url, within=0.3) as guard:
        assert guard.ask(PICTURE, "0").answer is None


def test_another_model_is_refused_and_one_by_the_name_it_had_is_not(server: str) -> None:
    with pytest.raises(ConfigError, match=r"the policy is about 'local \(hedge_openai\)', and this is 'other"):
        Guard.load(of_server(policy()), endpoint=server, model_args="model=other")
    with pytest.raises(ConfigError, match="given twice"):
        Guard.load(of_server(policy()), endpoint=server, model_args="base_url=http://localhost/v1")
    with pytest.raises(ConfigError, match="an address is for hedge_openai"):
        Guard.load(of_server(policy()), endpoint=server, model="hedge_tiny")
    with pytest.raises(ConfigError, match="forced passes"):
        Guard(policy(detector="p_true"), Model())
    assert served_name(of_server(policy())) == "local"
    # Some servers answer by a name of their own, and did so when the policy was made.
    with serve(Script(Response({**completion("a"), "model": "/weights/x.gguf"}))) as url:
        known: Policy = of_server(policy()).replaced(calibration=policy().calibration.replaced(answered_as=("x.gguf",)))
        with Guard.load(known, endpoint=url) as guard:
            assert guard.ask(PICTURE, "0.0").accepted
    # An answer counts by the name that it came with, and not by those before it.
    name = {"model": "/weights/x.gguf"}
    with (
        serve(lambda _: Response({**completion("a"), **name})) as url,
        Guard.load(of_server(policy()), endpoint=url) as guard,
    ):
        with pytest.raises(DrawsFailed, match="another model"):
            guard.ask(PICTURE, "0.0")
        name["model"] = "local"
        assert guard.ask(PICTURE, "0.0").accepted
