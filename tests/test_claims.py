"""Claims: where they stand in an answer, what is labelled of them, and whether a draw supports them."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hedge_tasks.claims.base import CONTRADICTION, ENTAILMENT, NEUTRAL, Claim, ClaimEvidence
from hedge_tasks.claims.blind import is_negated, other_image, rarity
from hedge_tasks.claims.decomposition import Passage, Piece, Pieces, build_decomposition, decompose
from hedge_tasks.claims.entailment import SupportQuery, build_entailment
from hedge_tasks.claims.entailment.nli import NliEntailment
from hedge_tasks.claims.labels import join, label_of
from hedge_tasks.claims.tokens import claim_logprobs
from hedge_tasks.clustering import nli_model
from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.data.sentences import sentence_spans, split_sentences
from hedge_tasks.data.spans import LabelledSpan, read_spans
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.llm.loading import ModelUnavailableError

# --- spans ------------------------------------------------------------------------------------------------------------

BITS = ["No effusion", " ", "\n", "\n\n", "1. ", "2) ", "# Findings", "> ", "- ", "Findings:", ". ", ", "]
BITS += ["The lung is", "approx. 3 cm", "a.", "B", "?", "\x85", "\x1c", "*x*", "Dr. X", '"', "\u2028", "肺水肿。"]


@given(st.lists(st.sampled_from(BITS), max_size=30))
def test_sentence_spans_are_the_sentences(bits: list[str]) -> None:
    text = "".join(bits)
    spans = sentence_spans(text)
    assert [text[start:end].split() for start, end in spans] == [s.split() for s in split_sentences(text)]
    assert all(start < end for start, end in spans)
    assert all(first[1] <= second[0] for first, second in itertools.pairwise(spans))


def test_a_decomposition_that_makes_up_places_is_refused() -> None:
    class Liar:
        name = "liar"

        def pieces(self, passages: Any) -> list[Pieces]:
            return [Pieces((Piece("x", 0, 99),)) for _ in passages]

        def settings(self) -> dict[str, Any]:
            return {}

    with pytest.raises(ValueError, match="a: liar gave a claim from 0 to 99 of 3"):
        decompose([AnswerSet("a", Answer("abc"), (Answer("x"),))], Liar())
    Liar.pieces = lambda self, passages: [Pieces((Piece(" ", 0, 1),))]  # type: ignore[method-assign]
    with pytest.raises(ValueError, match="from 0 to 1 of 3"):
        decompose([AnswerSet("a", Answer("abc"), (Answer("x"),))], Liar())


def test_claims_cover_so_much_of_an_answer() -> None:
    texts = {"a": "# Head\n\nNo\nmass.", "b": "One."}
    answers = [AnswerSet(id, Answer(text), (Answer("x"),)) for id, text in texts.items()]
    first, second = decompose(answers, build_decomposition("sentence"))
    assert first.claims == (Claim("a#0", "a", "No mass.", 8, 16, "sentence"),)
    assert (first.covered, second.covered) == (7 / 12, 1.0)
    assert (first.unlocated, second.unlocated) == (0, 0)
    spans = (LabelledSpan(3, 7, 0), LabelledSpan(0, 2, 1))
    labelled, bare = build_decomposition("given").pieces([Passage("No mass.", spans), Passage("No mass.")])
    assert [piece.text for piece in (*labelled.pieces, *bare.pieces)] == ["No", "mass", "No mass."]


# --- labels -----------------------------------------------------------------------------------------------------------


def test_spans_are_read_by_place_or_by_text() -> None:
    text = "A cyst. A cyst. No mass."
    said = [
        {"text": "A cyst.", "label": 0},
        {"text": "A cyst.", "label": 1, "severity": "minor", "correction": "Two cysts."},
        {"start": 16, "end": 24, "text": "No mass.", "label": "silent"},
        {"text": "A cyst."},
    ]
    found = read_spans(said, text, "here")
    assert [(span.start, span.end) for span in found] == [(0, 7), (8, 15), (16, 24), (0, 7)]
    assert (found[1].severity, found[1].correction) == ("minor", "Two cysts.")
    assert (found[2].label, found[2].silent) == (None, True)
    assert read_spans([span.to_dict() for span in found], text, "again") == found
    assert read_spans(None, text, "here") == ()


@pytest.mark.parametrize(
    ("span", "message"),
    [
        ({"start": 0, "end": 99}, "0 to 99 is no span of an answer of 8 characters"),
        ({"start": 4, "end": 4}, "4 to 4 is no span"),
        ({"start": 0}, "expected a text, or start and end"),
        ({"text": "A mass."}, "'A mass.' does not stand in the baseline answer"),
        ({"text": "No", "start": 1, "end": 3}, "1 to 3 of the baseline answer is 'o '"),
        ({"text": "No", "label": 2}, "label: expected a number of at most 1 or 'silent', got 2"),
        ({"text": "No", "label": 0, "severity": "major"}, "only what is hallucinated"),
    ],
)
def test_spans_that_are_none_are_refused(span: object, message: str) -> None:
    with pytest.raises(DataError, match=rf"here\[0\].*{message}"):
        read_spans([span], "No mass.", "here")


def claim(start: int, end: int) -> Claim:
    return Claim("a#0", "a", "x", start, end, "sentence")


PLACES = st.tuples(st.integers(0, 12), st.integers(1, 6)).map(lambda place: (place[0], sum(place)))


@given(PLACES, st.lists(st.tuples(PLACES, st.sampled_from([0, 1])), max_size=4))
def test_a_claim_takes_the_worst_label_of_the_spans_that_share_half_of_the_shorter(
    own: tuple[int, int], placed: list[tuple[tuple[int, int], int]]
) -> None:
    spans = [LabelledSpan(*place, label) for place, label in placed]
    shared = [len({*range(*own)} & {*range(*place)}) / min(own[1] - own[0], place[1] - place[0]) for place, _ in placed]
    labels = [label for share, (_, label) in zip(shared, placed, strict=True) if share >= 0.5]
    [found] = join([claim(*own)], spans)
    assert (found and found.label) == max(labels, default=None)


def test_silence_is_a_third_label_and_errors_have_a_severity() -> None:
    silent, right = LabelledSpan(0, 5, None, True), LabelledSpan(5, 10, 0)
    minor, major, unknown = (LabelledSpan(0, 5, 1, severity=s) for s in ("minor", "major", None))
    [both] = join([claim(0, 10)], [silent, right])
    assert both is not None
    assert both.silent
    assert [label_of(both, silent=how) for how in ("unlabelled", "hallucinated")] == [None, 1]
    table = {"all": (1, 1, 1, 0, None), "major": (None, 1, None, 0, None), "minor": (1, None, None, 0, None)}
    for errors, wanted in table.items():
        assert tuple(label_of(one, errors=errors) for one in (minor, major, unknown, right, None)) == wanted
        assert label_of(both, silent="hallucinated", errors=errors) == (1 if errors == "all" else None), errors
    [worst] = join([claim(0, 10)], [minor, LabelledSpan(5, 10, 1, severity="major")])
    assert worst is not None
    assert worst.severity == "major"
    with pytest.raises(ConfigError, match="unknown errors 'mayor'"):
        label_of(right, errors="mayor")
    with pytest.raises(ConfigError, match="unknown silent 'hallucinate'"):
        label_of(right, silent="hallucinate")


# --- support ----------------------------------------------------------------------------------------------------------


def test_words_and_their_share() -> None:
    asked = SupportQuery(("No large mass.", "…"), ("there is no MASS", "", "A mass, no: large"))
    [found] = build_entailment("words").support([asked])
    assert found[..., ENTAILMENT].tolist() == [[pytest.approx(2 / 3), 0.0, 1.0], [0.0, 0.0, 0.0]]
    assert (found.sum(axis=-1) == 1).all()
    assert (found[..., CONTRADICTION] == 0).all()


class Words:
    """A model that takes 20 tokens, a word each: `yes` entails, `not` contradicts, and it notes what it is shown."""

    limit, special = 24, 3

    def __init__(self) -> None:
        self.shown: list[tuple[str, str]] = []

    knows_probabilities = True

    def count(self, texts: Any) -> list[int]:
        return [len(text.split()) for text in texts]

    def probabilities(self, pairs: Any) -> np.ndarray:
        self.shown += pairs
        for premise, hypothesis in pairs:
            assert len(premise.split()) + len(hypothesis.split()) + self.special <= self.limit
        said = [("not" in premise.split(), "yes" in premise.split()) for premise, _ in pairs]
        return np.array([[0.7 * no, 1 - 0.7 * no - 0.2 * yes, 0.2 * yes] for no, yes in said])


def nli(model: Words, **options: Any) -> NliEntailment:
    return NliEntailment(classifier=model, reader=model, **options)  # type: ignore[arg-type]


def test_a_long_draw_is_read_sentence_by_sentence() -> None:
    model = Words()
    long = "It is yes now. " + "It is red. " * 10 + "It is not red."
    query = SupportQuery(("a b c",), (long, "yes", "", "not yes"))
    engine = nli(model)
    price = engine.price([query])
    [found] = engine.support([query])
    wanted = [[0.7, 0.3, 0.2], [0.0, 0.8, 0.2], [0.0, 1.0, 0.0], [0.7, 0.1, 0.2]]
    assert found[0] == pytest.approx(np.array(wanted))
    assert price == len(model.shown) == len(set(model.shown)) == 5
    assert all(hypothesis == "a b c" for _, hypothesis in model.shown)


def test_a_draw_that_just_fits_is_read_as_a_whole() -> None:
    draws = ["It is. " + "x " * (words - 2) for words in (18, 19)]
    assert [nli(Words()).price([SupportQuery(("a b c",), (draw,))]) for draw in draws] == [1, 2]


@pytest.mark.parametrize(("words", "known"), [(18, True), (19, False)])
def test_a_sentence_that_does_not_fit_has_no_support(words: int, known: bool) -> None:
    [found] = nli(Words()).support([SupportQuery(("a b c",), ("x " * (words - 1) + "x",))])
    assert np.isnan(found).any() != known


def test_the_model_of_the_clustering_reads_where_no_other_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[tuple[str, str | None]] = []
    monkeypatch.setattr(nli_model, "load_reader", lambda *of: loaded.append(of) or Words())
    engine = build_entailment("nli", model="org/absent", revision="r1", dtype="float16")
    assert engine.settings() == {"support": "nli", "model": "org/absent", "revision": "r1", "dtype": "float16"}
    assert engine.price([SupportQuery(("a", " "), ("b", "c", ""))]) == 2
    assert loaded == [("org/absent", "r1")]
    with pytest.raises(ModelUnavailableError, match="org/absent"):
        engine.check()
    assert nli(Words()).settings() == {"support": "nli"}
    nli(Words()).check()


def test_a_claim_too_long_for_the_model_has_no_support(said: list[str]) -> None:
    model = Words()
    [found] = nli(model).support([SupportQuery(("x " * 21, "a b"), ("yes", ""))])
    assert np.isnan(found[0, 0]).all()
    assert found[1, 0].tolist() == [0.0, 0.8, 0.2]
    assert found[0, 1].tolist() == [0.0, 1.0, 0.0]  # nothing is said there, whoever asks
    assert any("1 claims by a draw are longer" in line for line in said)


# --- evidence and blind baselines -------------------------------------------------------------------------------------


def test_evidence_says_what_it_offers_and_refuses_other_shapes() -> None:
    one = claim(0, 5)
    clean = np.full((1, 2, 3), 1 / 3)
    evidence = ClaimEvidence((one,), "No mass.", clean, engine="nli")
    assert evidence.offers == {"claims", "clean_support", "contradictions"}
    assert ClaimEvidence((one,), "", clean, clean, False, clean[:, :0], np.zeros(1)).offers == {
        "claims",
        "clean_support",
        "noisy_support",
        "rarity",
    }
    assert evidence.noisy.shape == (1, 0, 3)
    assert ClaimEvidence((one,), "").offers == {"claims", "contradictions"}
    rows = {(0.1, 0.2, 0.7): "supporting", (0.4, 0.2, 0.4): "supporting", (0.4, 0.4, 0.2): "silent"}
    rows |= {(0.5, 0.1, 0.4): "contradicting", (0.2, 0.4, 0.4): "silent", (np.nan,) * 3: "silent"}
    judged = ClaimEvidence((one,), "", np.array([list(rows)]), clean).verdicts(0)
    assert [verdict for _, verdict, _ in judged] == [*rows.values(), "silent", "silent"]
    assert [name for name, *_ in judged][-3:] == ["clean 5", "noisy 0", "noisy 1"]
    assert NEUTRAL == 1
    for need, name in (("clean_support", "clean"), ("noisy_support", "noisy"), ("elsewhere", "elsewhere")):
        offers = [need in ClaimEvidence((one,), "", **{name: clean[:, :n]}).offers for n in (0, 1)]
        assert offers == [False, True], "a single draw is support"
    for wrong in ({"clean": np.zeros((2, 2, 3))}, {"noisy": np.zeros((1, 2))}, {"rarity": np.zeros(2)}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            ClaimEvidence((one,), "", **wrong)


def test_rarity_counts_the_answers_about_other_images_only() -> None:
    answers = ["a cyst", "a cyst", "a mass", "no mass"]
    found = rarity([["a cyst"], ["a mass", "…"], ["a mass"], ["no"]], answers, ["x", "x", "y", "z"])
    # Of "a cyst" in x: of the two answers about y and z one has "a", none "cyst".
    assert [one.tolist() for one in found if one is not None] == [[0.75], [0.25, 1.0], [0.5], [1.0]]
    assert rarity([["a"]], ["a"], ["x"]) == [None]
    assert (other_image(["a", "a", "b"]), other_image(["a"])) == ([2, 2, 0], [None])
    assert [is_negated(text) for text in ("No effusion is seen.", "A notable effusion.")] == [True, False]


# --- tokens -----------------------------------------------------------------------------------------------------------


def spanned(start: int, end: int) -> Claim:
    return Claim("a#0", "a", "x", start, end, "given")


@given(st.lists(st.sampled_from(["No", " ma", "ss", ".", "", " ", "\n", " A "]), max_size=8), st.data())
def test_a_token_belongs_to_the_claims_that_have_one_of_its_characters(texts: list[str], data: st.DataObject) -> None:
    whole = "".join(texts)
    answer = Answer(whole.strip(), tokens=tuple((text, -1.0 - i) for i, text in enumerate(texts)))
    assume(answer.text)
    start = data.draw(st.integers(0, len(answer.text) - 1))
    end = data.draw(st.integers(start + 1, len(answer.text)))
    begins = len(whole) - len(whole.lstrip())
    number = [i for i, text in enumerate(texts) for _ in text]
    own = {number[begins + at] for at in range(start, end) if not answer.text[at].isspace()}
    found = claim_logprobs(answer, [spanned(start, end)])
    assert found is not None
    assert found[0].tolist() == [-1.0 - i for i in sorted(own)]
    assert claim_logprobs(replace(answer, text=f"x{answer.text}"), [spanned(start, end)]) is None
    assert claim_logprobs(replace(answer, tokens=None), [spanned(start, end)]) is None
