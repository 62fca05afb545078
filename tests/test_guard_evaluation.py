"""lmms-eval through the proxy: the same answers as without it, and a run that a policy can be checked on."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from evaluation import evaluate
from guarded import get, policy, proxied
from openai_server import Response, completion, serve, texts_of

from hedge_tasks.cli import main
from hedge_tasks.guard import Guard
from hedge_tasks.guard.calibrate import check
from hedge_tasks.guard.policy import circumstances_of, save_policy
from hedge_tasks.guard.proxy.settings import ProxySettings
from hedge_tasks.runs.run_files import Run, load_run
from hedge_tasks.sampling.behaviour import NARROWEST, REPEATS

pytestmark = [pytest.mark.framework, pytest.mark.slow]

N, DOCUMENTS = 2, 12


def upstream(body: dict[str, Any]) -> Response:
    """Surer of some questions than of others, and true to its seed."""
    question, sure = texts_of(body)[-1], random.Random(texts_of(body)[-1]).random()
    # Probes ask without a seed, too: each of these is drawn anew.
    chance = random.Random(f"{question} {body['seed']} {body['temperature']}" if "seed" in body else None)
    text = "yes" if chance.random() < sure else chance.choice(["no", "red", "two"])
    return Response({**completion(text, [(text, -0.5)]), "model": "scripted"})


def run_of(url: str, folder: Path) -> Run:
    arguments = ("--model", "hedge_openai", "--model_args", f"base_url={url},model=scripted", "--tasks", "hedge_demo")
    settings = ("--limit", str(DOCUMENTS), "--gen_kwargs", f"n={N}")
    evaluate(folder, *arguments, *settings)
    return load_run(folder)


def test_an_evaluation_through_the_proxy_is_that_of_the_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serve(upstream, models=["scripted"]) as url:
        direct = run_of(url, tmp_path / "direct")
        made = policy(0.4, n=N).replaced(circumstances=circumstances_of(direct))
        settings = ProxySettings(on_unjudged="flag", most_requests=64)
        with proxied(Guard.load(made, endpoint=url), settings) as proxy:
            through = run_of(f"{proxy}/v1", tmp_path / "through")
            metrics = get(f"{proxy}/metrics")[1]
    texts = [[a.texts for a in run.answer_sets] for run in (direct, through)]
    assert len(texts[0]) == DOCUMENTS
    assert texts[0] == texts[1]

    def outcome(name: str) -> int:
        [line] = [
            line for line in metrics.splitlines() if line.startswith(f'hedge_guard_requests_total{{outcome="{name}"')
        ]
        return int(float(line.split()[-1]))

    assert outcome("accepted") + outcome("rejected") == DOCUMENTS
    assert outcome("unjudged") >= 2 * N * DOCUMENTS
    assert [outcome(name) for name in ("overloaded", "failed", "undecided")] == [0, 0, 0]
    assert outcome("refused") == REPEATS * len(NARROWEST)  # the probe's other settings, which the policy is not about
    assert outcome("accepted") not in (0, DOCUMENTS)

    assert circumstances_of(through) == circumstances_of(direct)
    found = check(made, through)
    assert found.accepted.n == DOCUMENTS
    assert found.risk.n_positive == sum(
        a.label or 0 for a in direct.answer_sets if sum(c.text != a.baseline.text for c in a.clean) <= 0.4 * N
    )
    save_policy(made, tmp_path / "policy.json")
    main(["calibrate", str(tmp_path / "through"), "--check", str(tmp_path / "policy.json")])
    assert "The promise " in capsys.readouterr().out
    assert main(["health", str(tmp_path / "through")]) in (0, 1)
