"""Questions from Python: by file and by picture, many, awaited, in time or undecided, of servers and in process."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from guarded import PICTURE, SERVED, of_server, policy, reply
from openai_server import Response, Script, completion, error, serve, texts_of
from PIL import Image
from test_guard_ask import Model

import hedge_tasks.guard
from hedge_tasks.cli import main
from hedge_tasks.data.answers import Answer
from hedge_tasks.errors import ConfigError, DataError, DrawsFailed, HedgeError
from hedge_tasks.guard import Guard, GuardVerdict
from hedge_tasks.guard.models import served_name
from hedge_tasks.guard.policy import Policy, save_policy
from hedge_tasks.sampling.requests import DrawRequest

QUESTIONS = ["0.0", "0.9", "0.2", "0.4", "0.0", "0.7"]


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
        assert (verdict.answer, verdict.accepted, verdict.risk) == ("a", False, None)
        assert [c.baseline for c in verdict.clusters] == [True, *[False] * (len(verdict.clusters) - 1)]
        assert sum(c.share for c in verdict.clusters) == pytest.approx(1)
        assert verdict.reason == f"radflag is {1 - verdict.clusters[0].share:.4g}, above 0.3"
        fine = guard.ask(None, "0.0")
        assert (fine.accepted, fine.risk) == (True, guard.policy.promise.risk)
        with pytest.raises(DataError, match=r"nowhere\.png"):
            guard.ask(tmp_path / "nowhere.png", "0.0")
    assert hedge_tasks.guard.Guard is Guard
    with pytest.raises(AttributeError):
        hedge_tasks.guard.Gard  # noqa: B018


@pytest.mark.slow
def test_many_awaited_and_single_questions_get_the_same_verdicts(server: str) -> None:
    with Guard.load(of_server(policy()), endpoint=server) as guard:
        single = [untimed(guard.ask(PICTURE, question)) for question in QUESTIONS]
        many = guard.ask_many([(PICTURE, question) for question in QUESTIONS])
        assert [untimed(verdict) for verdict in many] == single

        async def together() -> list[GuardVerdict]:
            return await asyncio.gather(*(guard.ask_async(PICTURE, question) for question in QUESTIONS))

        assert [untimed(verdict) for verdict in asyncio.run(together())] == single
        assert len({verdict.accepted for verdict in single}) == 2


def test_a_question_that_fails_takes_no_other_one_with_it(tmp_path: Path) -> None:
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"no picture")

    def picky(body: dict[str, Any]) -> str | Response:
        return error(400, "no") if "0.4" in texts_of(body)[-1] else reply(body)

    with serve(picky) as url, Guard.load(of_server(policy()), endpoint=url) as guard:
        found = guard.ask_many([(PICTURE, "0.0"), (broken, "0.0"), (PICTURE, "0.4"), (PICTURE, "0.2")])
    assert [type(one) for one in found] == [GuardVerdict, DataError, DrawsFailed, GuardVerdict]


class InProcess(Model):
    """Counts how often it is asked, and whether by two threads at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[int] = []
        self.inside = self.most = 0

    def generate_draws(self, draws: Sequence[DrawRequest]) -> Iterator[list[tuple[int, Any]]]:
        self.calls.append(len(draws))
        self.inside += 1
        self.most = max(self.most, self.inside)
        try:
            time.sleep(0.01)
            yield from super().generate_draws(draws)
        finally:
            self.inside -= 1


def test_a_model_of_this_process_is_asked_by_one_thread_at_a_time() -> None:
    single = [untimed(Guard(policy(), Model()).ask(PICTURE, question)) for question in QUESTIONS]
    model = InProcess()
    with Guard(policy(), model) as guard:
        assert [untimed(v) for v in guard.ask_many([(PICTURE, q) for q in QUESTIONS])] == single
        assert model.calls[0] == 11  # baseline and draws, together
        threads = [threading.Thread(target=guard.ask, args=(PICTURE, q)) for q in QUESTIONS]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        assert model.most == 1


def test_time_that_is_over_is_undecided_with_what_is_known() -> None:
    def slow_draws(body: dict[str, Any]) -> Response:
        return Response(completion("a"), pause=60 if body["temperature"] > 0.5 else 0)

    with serve(slow_draws) as url, Guard.load(of_server(policy()), endpoint=url, within=4) as guard:
        for verdict in (guard.ask(PICTURE, "0"), asyncio.run(guard.ask_async(PICTURE, "0"))):
            assert (verdict.state, verdict.accepted, verdict.risk, verdict.score) == ("undecided", False, None, None)
            assert (verdict.answer, verdict.draws, verdict.clusters) == ("a", 0, ())
            assert verdict.words == "undecided, so not safe to use"
    never = Script(Response(completion("a"), pause=20))
    with serve(never) as url, Guard.load(of_server(policy()), endpoint=url, within=0.3) as guard:
        assert guard.ask(PICTURE, "0").answer is None


def test_time_is_over_between_two_waves_too() -> None:
    class Slow(Model):
        def generate_draws(self, draws: Sequence[DrawRequest]) -> Iterator[list[tuple[int, Any]]]:
            time.sleep(0.2)
            yield from super().generate_draws(draws)

    model = Slow()
    with Guard(policy(0.9, "n_clusters"), model, within=0.1) as guard:
        [verdict] = guard.ask_many([(PICTURE, "0.0")])
    assert isinstance(verdict, GuardVerdict)
    assert verdict.state == "undecided"


def test_a_detector_that_needs_no_draws_makes_none() -> None:
    model = Model()
    verdict = Guard(policy(0.2, "baseline_nll"), model).ask(PICTURE, "0.5")
    assert (verdict.accepted, verdict.draws, len(model.asked)) == (True, 0, 1)
    assert verdict.reason == "baseline_nll is 0.1, at most 0.2"
    assert not Guard(policy(0.05, "baseline_nll"), Model()).ask(PICTURE, "0.5").accepted


def test_another_model_is_refused_and_one_by_the_name_it_had_is_not(server: str) -> None:
    with pytest.raises(ConfigError, match=r"the policy is about 'local \(hedge_openai\)', and this is 'other"):
        Guard.load(of_server(policy()), endpoint=server, model_args="model=other")
    with pytest.raises(ConfigError, match="given twice"):
        Guard.load(of_server(policy()), endpoint=server, model_args="base_url=http://localhost/v1")
    with pytest.raises(ConfigError, match="an address is for hedge_openai"):
        Guard.load(of_server(policy()), endpoint=server, model="hedge_tiny")
    with pytest.raises(ConfigError, match="forced passes"):
        Guard(policy(detector="p_true"), Model())
    for options in ({"within": 0}, {"concurrency": 0}):
        with pytest.raises(ConfigError, match=next(iter(options))):
            Guard(policy(), Model(), **options)

    about = policy().circumstances
    sized = policy().replaced(circumstances=about.replaced(model="local (hedge_openai, max_image_side=8)"))
    assert served_name(sized) == "local"
    with Guard.load(sized, endpoint=server) as guard:
        assert (guard.model.max_image_side, guard.model.model) == (8, "local")
        assert guard.ask(PICTURE, "0.0").accepted
    # Some servers answer by a name of their own, and did so when the policy was made.
    with serve(Script(Response({**completion("a"), "model": "/weights/x.gguf"}))) as url:
        known: Policy = of_server(policy()).replaced(calibration=policy().calibration.replaced(answered_as=("x.gguf",)))
        with Guard.load(known, endpoint=url) as guard:
            assert guard.ask(PICTURE, "0.0").accepted
        with Guard.load(of_server(policy()), endpoint=url) as guard, pytest.raises(DrawsFailed, match="another model"):
            guard.ask(PICTURE, "0.0")


def test_a_context_cannot_be_given() -> None:
    about = policy().circumstances.replaced(prompt={"name": "x", "user": "{context} {question}"})
    with pytest.raises(ConfigError, match="with a context"):
        Guard(policy().replaced(circumstances=about), Model())


@pytest.mark.slow
def test_the_embedded_model_answers_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An adapter of this process, with NLI clustering, whose model is loaded once."""
    nli = {"backend": "nli", "model": "package://hedge_tasks.models.tiny/nli", "rule": "relaxed", "veto": False}
    found = policy(0.99, n=4, max_new_tokens=8).replaced(clustering={**nli, "with_question": False, "alpha": 1.0})
    found = found.replaced(circumstances=found.circumstances.replaced(model="hedge_tiny"))
    file, scan = tmp_path / "policy.json", tmp_path / "scan.png"
    save_policy(found, file)
    Image.new("RGB", (64, 64), "red").save(scan)
    arguments = ["ask", "What colour is it?", "--policy", str(file), "--image", str(scan), "--model", "hedge_tiny"]
    assert main(arguments) in (0, 1)
    text = capsys.readouterr().out
    with Guard.load(file, model="hedge_tiny") as guard:
        guard.warm()
        verdicts = guard.ask_many([(scan, "What colour is it?"), (scan, "How many circles are there?")])
        assert all(isinstance(one, GuardVerdict) for one in verdicts)
        assert verdicts[0].answer in text  # type: ignore[union-attr]


def test_the_command_says_why_and_what_else_was_said(
    server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "policy.json"
    save_policy(of_server(policy()), file)
    arguments = ["--policy", str(file), "--model_args", f"base_url={server}"]
    assert main(["ask", "0.9", *arguments]) == 1
    text = capsys.readouterr().out
    assert "rejected" in text
    assert "above 0.3" in text
    assert main(["ask", "0.0", *arguments]) == 0
    assert "accepted" in capsys.readouterr().out


def test_an_error_of_the_model_is_one_of_the_question() -> None:
    with serve(Script(error(401, "wrong key"))) as url, Guard.load(of_server(policy()), endpoint=url) as guard:
        with pytest.raises(HedgeError, match="refuses the API key"):
            guard.ask(PICTURE, "0.0")
        assert isinstance(guard.ask_many([(PICTURE, "0.0")])[0], HedgeError)


def test_answers_are_told_apart_from_no_answers() -> None:
    """A draw that failed is no draw that disagrees."""

    class Gaps(Model):
        def generate_draws(self, draws: Sequence[DrawRequest]) -> Iterator[list[tuple[int, Any]]]:
            yield [(i, Answer("a") if i != 3 else "the adapter lost it") for i in range(len(draws))]

    with pytest.raises(DrawsFailed, match="the adapter lost it"):
        Guard(policy(), Gaps()).ask(PICTURE, "0.0")
