"""`hedge: {protocol: reference|paper}`, what it sets, and the fidelity of a run to the paper and its code."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from finished_runs import finished_run
from printed import json_of
from test_task_results import demo_task

from hedge_tasks.clustering.base import Behind
from hedge_tasks.clustering.embedding import EmbeddingClustering
from hedge_tasks.clustering.nli import NliClustering
from hedge_tasks.clustering.relations import Relation
from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.errors import ConfigError
from hedge_tasks.lmms.settings import DocumentSettings
from hedge_tasks.runs.protocols import OURS, PROTOCOLS, protocol_of
from hedge_tasks.runs.run_files import save_run
from hedge_tasks.runs.scorers import model_options
from hedge_tasks.runs.trust import Untrusted
from hedge_tasks.sampling.plan import SamplingPlan

TINY = "package://hedge_tasks.models.tiny/nli"


# --- what a protocol sets ---------------------------------------------------------------------------------------------


def test_ours_is_cross_fitted_and_label_free_with_the_question() -> None:
    assert protocol_of(None) is OURS
    assert OURS.clustering({"backend": "embed"}) == {"backend": "embed", "threshold": "cross-fit"}
    assert OURS.clustering({"backend": "embed", "with_question": True})["threshold"] == "label-free"
    assert OURS.clustering({"backend": "nli", "model": "x"}) == {"backend": "nli", "model": "x"}


@pytest.mark.parametrize("name", sorted(PROTOCOLS))
def test_explicit_keys_go_before_the_protocols(name: str) -> None:
    protocol = protocol_of(name)
    nli = protocol.clustering({"backend": "nli", "rule": "mine", "veto": "mine"})
    assert (nli["rule"], nli["veto"]) == ("mine", "mine")
    fixed = protocol.clustering({"backend": "embed", "threshold": 0.85})
    assert fixed == {"backend": "embed", "threshold": 0.85}
    tuning = protocol.clustering({"backend": "embed", "tuning": {"target": "vase"}})["tuning"]
    assert (tuning["target"], tuning["search"], tuning["trials"]) == ("vase", "optuna", 20)
    assert "tuning" in PROTOCOLS[name].embed, "the protocol itself is not changed"
    assert PROTOCOLS[name].embed["tuning"]["target"] == "se"


def test_every_option_of_a_protocol_is_one(tmp_path: Path) -> None:
    for protocol in (OURS, *PROTOCOLS.values()):
        SamplingPlan.from_generation_kwargs(protocol.sampling)
        for backend in ("nli", "embed"):
            for asked in (False, True):
                options = protocol.clustering({"backend": backend, "with_question": asked})
                put = {key: options.pop(key) for key in ("with_question", "question_position") if key in options}
                Scorer.build("x", options.pop("backend"), options, **put)


def test_the_environment_takes_the_place_of_the_yamls_protocol(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEDGE_PROTOCOL", raising=False)
    config = {"task": "t", "hedge": {"prompt": "plain/question", "protocol": "paper"}}
    assert DocumentSettings.of_task(config).protocol == "paper"
    monkeypatch.setenv("HEDGE_PROTOCOL", "reference")
    assert DocumentSettings.of_task(config).protocol == "reference"
    for key, wrong in (("hedge", None), ("hedge_overrides", ["x"])):
        with pytest.raises(ConfigError, match=f"t: expected a mapping under '{key}'"):
            DocumentSettings.of_task({**config, key: wrong})
    with pytest.raises(ConfigError, match=r"HEDGE_PROTOCOL.*did you mean 'reference'"):
        protocol_of("referense")


@pytest.mark.framework
@pytest.mark.parametrize(("name", "gen_kwargs"), [("reference", {}), ("paper", {"perturbation": "mild"})])
def test_a_task_is_built_with_its_protocol(
    name: str, gen_kwargs: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEDGE_PROTOCOL", name)
    task = demo_task()
    task.set_config(key="generation_kwargs", value=gen_kwargs, update=True)  # as lmms-eval does with --gen_kwargs
    settings = task.dump_config()["hedge"]
    protocol = PROTOCOLS[name]
    assert settings["documents"]["protocol"] == name
    assert settings["sampling"]["decoding"] == "model"
    wanted = gen_kwargs.get("perturbation", protocol.sampling["perturbation"])
    assert settings["sampling"]["perturbation"]["name"] == wanted
    assert settings["filters"]["nli"]["rule"] == protocol.nli["rule"]
    assert settings["filters"]["nli"]["model"] == TINY
    assert settings["filters"]["embed_qa"]["threshold"] == protocol.embed["threshold"]
    assert settings["filters"]["embed_qa"]["tuning"]["search"] == "optuna"


# --- the clustering options behind it ---------------------------------------------------------------------------------


def test_the_question_can_stand_behind_the_answer() -> None:
    seen: list[str] = []
    backend = EmbeddingClustering(encoder=lambda texts: seen.extend(texts) or [[1.0]] * len(texts))
    asked = tuple(replace(a, question="which side?") for a in finished_run(3).answer_sets)
    for position, stands in (("before", str.startswith), ("after", str.endswith)):
        seen.clear()
        scorer = Scorer("x", backend, with_question=True, question_position=position)
        scorer.cluster(asked)
        assert seen
        assert all(stands(text, "which side?") for text in seen)
        assert scorer.settings().get("question_position") == (None if position == "before" else "after")
    assert isinstance(scorer.questions(asked)[0], Behind)  # type: ignore[index]
    recorded = {"backend": "exact", "with_question": True, "question_position": "after"}
    assert Scorer.from_settings("x", recorded).question_position == "after"
    with pytest.raises(ConfigError, match="did you mean 'before'"):
        Scorer.build("x", "exact", with_question=True, question_position="befor")


def test_the_nli_model_is_shown_so_many_characters() -> None:
    shown: list[tuple[str, str]] = []

    def classify(pairs: Any) -> list[Relation]:
        shown.extend(pairs)
        return [Relation.ENTAILMENT if a == b else Relation.CONTRADICTION for a, b in pairs]

    answers = [["x" * 5 + "left", "x" * 5 + "right", "other"]]
    assert NliClustering(classifier=classify, max_characters=5).cluster(answers) == [[0, 0, 1]]
    assert {len(text) for pair in shown for text in pair} == {5}
    assert NliClustering(classifier=classify).cluster(answers) == [[0, 1, 2]]
    assert NliClustering(classifier=classify, max_characters=5).settings()["max_characters"] == 5
    with pytest.raises(ConfigError, match="max_characters"):
        NliClustering(classifier=classify, max_characters=0)


# --- models of a run --------------------------------------------------------------------------------------------------


def test_another_clustering_takes_the_models_of_the_environment_or_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEDGE_MODELS", raising=False)
    nli = {"backend": "nli", "model": "a/nli", "revision": "r1", "with_question": False}
    embed = {"backend": "embed", "model": "custom:function", "with_question": False}
    run = finished_run(2, filters={"embed": embed, "nli": nli})
    assert model_options(run, "nli") == {"model": "a/nli", "revision": "r1"}
    assert model_options(run, "embed") == model_options(run, "exact") == {}
    outside = replace(run, path=Path("x"))
    with pytest.raises(Untrusted, match="a/nli"):
        model_options(outside, "nli")
    assert model_options(outside, "nli", {"model": "mine"}) == {}
    monkeypatch.setenv("HEDGE_MODELS", "nli=/my/nli, embed=/my/embed")
    assert model_options(run, "nli") == {"model": "/my/nli"}
    assert model_options(run, "embed") == {"model": "/my/embed"}
    monkeypatch.setenv("HEDGE_MODELS", "nil=/my/nli")
    with pytest.raises(ConfigError, match="HEDGE_MODELS 'nil', did you mean 'nli'"):
        model_options(run, "nli")


def test_rescore_with_another_clustering_needs_no_model_that_the_run_did_not_use(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HEDGE_MODELS", raising=False)
    own = Scorer.build("nli", "nli", {"model": TINY}).settings()
    save_run(finished_run(6, task="hedge_demo", filters={"nli": own}), tmp_path)
    rescored = json_of(capsys, ["rescore", str(tmp_path), "--clustering", "nli:rule=strict", "--json"])
    clustering = rescored["filters"]["nli"]["clustering"]
    assert (clustering["model"], clustering["rule"]) == (TINY, "strict")
