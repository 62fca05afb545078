"""Perturbed wordings for text tasks, and the sentences that they shuffle."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedge_tasks.data.sentences import split_sentences
from hedge_tasks.errors import ConfigError
from hedge_tasks.perturb import Wording, build_noise, image, induction
from hedge_tasks.perturb.text import PRESETS, TextPerturbation, load_templates
from hedge_tasks.sampling.plan import SamplingPlan

ASKED = Wording("Is {question} 5 %?", "Alpha is 3.5 cm. Beta follows. Gamma, approx. 3 cm, is last.", "no")


def test_the_ten_prefixes_are_those_of_the_papers_figure() -> None:
    paper = Path(__file__).resolve().parents[1].parent / "shared" / "papers" / "medhallmark.txt"
    if not paper.is_file():
        pytest.skip("the paper's text is not here")
    printed = re.findall(r"^6\d\d\t(\d+)\. (.*\{question\})$", paper.read_text("utf-8"), re.MULTILINE)
    assert [text for _, text in printed] == list(load_templates("confidence_weakening"))
    assert len(printed) == 10


@pytest.mark.parametrize("preset", sorted({**PRESETS, **induction.PRESETS, **image.PRESETS}))
def test_a_preset_is_built_again_from_its_settings(preset: str) -> None:
    noise = build_noise(preset)
    assert build_noise(json.loads(json.dumps(noise.settings()))) == noise
    assert SamplingPlan(perturbation=preset).noise == noise
    assert noise.name == preset


@given(st.integers(min_value=0, max_value=2**63), st.sampled_from(sorted(PRESETS)))
def test_equal_seeds_give_equal_wordings_and_the_question_is_kept_whole(seed: int, preset: str) -> None:
    noise = build_noise(preset)
    one = noise.perturb_wording(ASKED, seed=seed)
    assert one == noise.perturb_wording(ASKED, seed=seed)
    assert ASKED.question in one.question
    assert sorted(split_sentences(one.context)) == sorted(split_sentences(ASKED.context))
    assert one.distractor == ASKED.distractor


def test_every_template_is_drawn_and_both_sets_as_often() -> None:
    noise = build_noise("instructions")
    drawn = Counter(noise.perturb_wording(Wording("QQ"), seed=seed).question for seed in range(2000))
    expected = {
        template.replace("{question}", "QQ")
        for name in ("confidence_weakening", "neutral")
        for template in load_templates(name)
    }
    assert set(drawn) == expected
    weak = sum(drawn[t.replace("{question}", "QQ")] for t in load_templates("confidence_weakening"))
    assert 900 < weak < 1100
    assert min(drawn.values()) > 50


@given(st.text(alphabet="pA1 .,>-#\n*)", max_size=80), st.integers(0, 9))
def test_shuffling_loses_no_character_but_white_space(context: str, seed: int) -> None:
    shuffled = build_noise("shuffled_context").perturb_wording(Wording("Q", context), seed=seed).context
    assert Counter("".join(shuffled.split())) == Counter("".join(context.split()))


def test_a_wording_has_no_strength() -> None:
    noise = build_noise("neutral_wording")
    assert noise.scaled(1.0) is noise
    with pytest.raises(ConfigError, match="has no strength"):
        SamplingPlan(perturbation="neutral_wording", strength=2.0)


# --- sentences --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("A nodule of approx. 3 cm. It is benign.", ["A nodule of approx. 3 cm.", "It is benign."]),
        ("It measures 2.5 cm. 3 cysts are seen.", ["It measures 2.5 cm.", "3 cysts are seen."]),
        ("See e.g. Fig. 2 of Dr. Smith. Done", ["See e.g. Fig. 2 of Dr. Smith.", "Done"]),
        ("Read by J. Smith. Normal.", ["Read by J. Smith.", "Normal."]),
        ("1. Clear lungs. 2. No effusion. 3. Fine.", ["Clear lungs.", "No effusion.", "Fine."]),
        ("It suggests that 1. Improving opacity, 2. Failure.", ["It suggests that 1. Improving opacity, 2. Failure."]),
        ("There are 2. The liver is fine.", ["There are 2.", "The liver is fine."]),
        ("Findings:\n- Lungs clear\n- No effusion.", ["Lungs clear", "No effusion."]),
        ("## Impression\n\n**Findings:**\n\n1) Normal heart\n2) Clear", ["Normal heart", "Clear"]),
        ("The lungs\nare clear.\nThe heart is big.", ["The lungs are clear.", "The heart is big."]),
        ("FINDINGS: The lungs are clear! Really? Yes.", ["FINDINGS: The lungs are clear!", "Really?", "Yes."]),
        ("Effusion? No. The rest is fine, etc. The end.", ["Effusion?", "No.", "The rest is fine, etc.", "The end."]),
        ('He said "it is clear." Then left.', ['He said "it is clear."', "Then left."]),
        ("", []),
        (" \n...\n - \n", []),
    ],
)
def test_sentences_end_where_a_reader_would_end_them(text: str, sentences: list[str]) -> None:
    assert split_sentences(text) == sentences


@given(st.text(alphabet="ab A1.2!?:\n-*#) (,cm", max_size=200))
def test_no_word_is_lost_or_made_up_by_splitting(text: str) -> None:
    pieces = split_sentences(text)
    assert all(piece == piece.strip() and re.search(r"\w", piece) for piece in pieces)
    letters = Counter(re.findall(r"\w", text))
    assert not Counter(re.findall(r"\w", "".join(pieces))) - letters


@pytest.mark.slow
@pytest.mark.parametrize("text", ["x. " * 30_000, "1. " * 30_000, "a" * 100_000, "(" * 50_000 + ". A", "\n- " * 30_000])
def test_hostile_texts_are_split_in_linear_time(text: str) -> None:
    assert len("".join(split_sentences(text))) <= len(text)


def test_no_prefix_asks_a_judge_of_an_answer_to_answer_the_question() -> None:
    assert not [t for name in PRESETS["checking"].templates for t in load_templates(name) if "answer" in t.lower()]
    assert any("answer" in template for template in load_templates("confidence_weakening"))


def test_a_preset_with_one_setting_changed_keeps_the_others() -> None:
    noise = build_noise({"kind": "text", "name": "instructions", "shuffle_context": False})
    assert noise == TextPerturbation("instructions", ("confidence_weakening", "neutral"), False)
