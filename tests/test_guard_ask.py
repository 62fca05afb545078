"""Asking one question under a policy: the verdict of all draws, with as few of them as that takes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from at_border import at_border
from guarded import PICTURE, PROMPT, Model, policy

from hedge_tasks.cli import main
from hedge_tasks.data.answers import Answer, AnswerSet, Refused
from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.errors import ConfigError, DrawsFailed
from hedge_tasks.guard.ask import Guard
from hedge_tasks.guard.policy import Circumstances, save_policy
from hedge_tasks.guard.seen import columns
from hedge_tasks.guard.verdict import Cluster, clusters_of
from hedge_tasks.sampling.plan import SamplingPlan


@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.99])
def test_the_verdict_is_the_share_of_other_draws_against_the_threshold(threshold: float) -> None:
    for chance in np.linspace(0, 1, 11):
        model = Model()
        verdict = Guard(policy(threshold), model).ask(PICTURE, f"{chance:.3f}")
        agree = [cluster.share for cluster in verdict.clusters if cluster.text == "a"]
        assert verdict.accepted == (1 - sum(agree) <= threshold + 1e-9)
        assert {d.draw.condition for d in model.asked} == {"baseline", "clean"}  # RadFlag looks at no noisy answer
        assert verdict.draws == len(model.asked) - 1 == 10


def test_a_score_at_the_threshold_is_accepted() -> None:
    for question in ("0.1", "0.5"):
        score = Guard(policy(9.0, "n_clusters"), Model()).ask(PICTURE, question).score or 0.0
        at_border(lambda t, q=question: Guard(policy(t, "n_clusters"), Model()).ask(PICTURE, q).accepted, score, "011")
    for wrong in ({"within": 0}, {"within": -1.0}, {"concurrency": 0}):
        with pytest.raises(ConfigError, match=next(iter(wrong))):
            Guard(policy(), Model(), **wrong)


def test_clusters_are_the_meanings_of_the_clean_draws() -> None:
    answers = AnswerSet("q", Answer("a"), tuple(map(Answer, "bcCb")), (Answer("d"),), cluster_ids=(0, 2, 1, 1, 2, 3))
    assert clusters_of(answers) == (Cluster("a", 0.0, True), Cluster("b", 0.5, False), Cluster("c", 0.5, False))
    mostly = replace(answers, cluster_ids=(2, 2, 1, 1, 1, 3))
    assert clusters_of(mostly) == (Cluster("a", 0.25, True), Cluster("c", 0.75, False))
    assert clusters_of(AnswerSet("q", Answer("a"), (), cluster_ids=(0,))) == (Cluster("a", 0.0, True),)


def test_nothing_unjudged_is_let_through() -> None:
    with pytest.raises(DrawsFailed, match="msp has no score"):
        Guard(policy(0.5, "msp"), Model(Answer("a"))).ask(PICTURE, "0.5")
    with pytest.raises(DrawsFailed):
        Guard(policy(), Model(Refused("no"))).ask(PICTURE, "0.5")
    with pytest.raises(ConfigError, match="no sampling settings"):
        Guard(policy().replaced(circumstances=Circumstances(model="m", pictured=True, prompt=PROMPT)), Model())
    with pytest.raises(ConfigError, match="no prompt"):
        Guard(
            policy().replaced(
                circumstances=Circumstances(model="m", pictured=True, sampling=SamplingPlan().settings())
            ),
            Model(),
        )


def test_the_command_refuses_another_model_and_a_broken_picture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, picture = tmp_path / "policy.json", tmp_path / "scan.png"
    save_policy(policy(), file)
    arguments = ["ask", "is it?", "--policy", str(file), "--model_args", "model=x,base_url=http://127.0.0.1:9/v1"]
    assert main(arguments) == 2
    assert "the policy is about questions on a picture" in capsys.readouterr().err
    PICTURE.save(picture)
    arguments += ["--image", str(picture)]
    save_policy(policy().replaced(circumstances=policy().circumstances.replaced(pictured=False)), file)
    assert main(arguments) == 2
    assert "the policy is about questions without a picture" in capsys.readouterr().err
    save_policy(policy(), file)
    assert main(arguments) == 2
    assert "the policy is about 'm', and this is 'x (hedge_openai)'" in capsys.readouterr().err
    picture.write_bytes(b"\x89PNG no picture")
    assert main([*arguments, "--image", str(picture)]) == 2
    assert "scan.png: an unreadable image" in capsys.readouterr().err


REFUSAL = "I'm sorry, but I cannot help with medical images."


@pytest.mark.parametrize("detector", ["radflag", "n_clusters"])
def test_an_answer_that_declines_is_never_let_through(detector: str) -> None:
    lenient = policy(0.99 if detector == "radflag" else 5.0, detector)
    verdict = Guard(lenient, Model(Answer(REFUSAL, -0.1, 1))).ask(PICTURE, "0")
    assert (verdict.state, verdict.promised_risk) == ("rejected", None)
    assert "no answer (refusal)" in verdict.reason
    assert Guard(lenient, Model()).ask(PICTURE, "0").accepted
    same = AnswerSet("q", Answer(REFUSAL), (Answer(REFUSAL),) * 4)
    [value] = columns([same], Scorer.build("exact", "exact", {}), [detector])[detector].values
    assert np.isnan(value), "no threshold accepts it in calibration"


def test_another_picture_of_the_same_size_is_another_question() -> None:
    keys = []
    for picture in (PICTURE, PICTURE.point(lambda value: 255 - value)):
        model = Model()
        Guard(policy(), model).ask(picture, "0.5")
        keys.append({draw.request.key for draw in model.asked})
    assert keys[0].isdisjoint(keys[1])


def test_what_is_asked_is_what_the_detector_pays_for_and_the_seed_says() -> None:
    about = policy().circumstances
    in_context = about.replaced(prompt={**PROMPT, "user": "{context} {question}"})
    with pytest.raises(ConfigError, match="asked with a context"):
        Guard(policy().replaced(circumstances=in_context), Model())
    model = Model()
    guard = Guard(policy(0.9, "msp"), model)
    assert (guard.ask(PICTURE, "0.0").draws, [d.draw.condition for d in model.asked]) == (0, ["baseline"])
    model = Model()
    guard = Guard(policy(), model)
    by_default = [guard.ask(PICTURE, "0.0"), [d.draw.seed for d in model.asked]][1]
    model.asked.clear()
    guard.ask(PICTURE, "0.0", seed=77)
    assert model.asked[0].draw.seed == 77
    assert len({d.draw.seed for d in model.asked} | {*by_default}) == 22
    guard.monitor.shifted = True
    model.asked.clear()
    stopped = guard.ask(PICTURE, "0.0")
    assert (stopped.state, stopped.draws, len(model.asked), stopped.answer) == ("rejected", 0, 1, "a")
    assert "another share" in stopped.reason
    assert guard.ask_many([]) == []
    late = Guard(policy(), Model(), within=1e-9).ask(PICTURE, "0.0")
    assert (late.state, late.answer, late.finish, late.draws) == ("undecided", None, None, 0)
