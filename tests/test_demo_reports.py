"""The demo of claims: sentences on drawn scans, what follows from them, their judge, the model and the whole run."""

from __future__ import annotations

import itertools

import numpy as np

from hedge_tasks.data.sentences import split_sentences
from hedge_tasks.judging import Case, build_judge
from hedge_tasks.suites.demo_reports.statements import (
    SENTENCES,
    StatementRelation,
    full_report,
    is_true,
    relation,
    statement_of,
    worlds,
)

# --- what sentences say -----------------------------------------------------------------------------------------------


def test_every_wording_is_one_sentence_with_one_meaning() -> None:
    wordings = [sentence for sentences in SENTENCES.values() for sentence in sentences]
    assert len({w.casefold() for w in wordings}) == len(wordings)
    assert split_sentences(" ".join(wordings)) == wordings
    for said, sentences in SENTENCES.items():
        assert {statement_of(sentence.upper().removesuffix(".")) for sentence in sentences} == {said}
    assert statement_of("The lesion is purple.") is None
    assert len(list(worlds())) == 3 * (1 + (2**4 - 1) * 3 * 2 * 2)


def test_relations_are_those_of_all_worlds_gone_through() -> None:
    rng = np.random.default_rng(0)
    everything, statements = list(worlds()), list(SENTENCES)
    for _ in range(60):
        premise = [statements[i] for i in rng.integers(len(statements), size=rng.integers(1, 4))]
        said = statements[rng.integers(len(statements))]
        there = [world for world in everything if all(is_true(one, world) for one in premise)]
        # A text that contradicts itself: every sentence counts alone.
        apart = [there] if there else [[world for world in everything if is_true(one, world)] for one in premise]
        truths = [{is_true(said, world) for world in some} for some in apart]
        expected = StatementRelation.NEUTRAL
        if {True} in truths or {False} in truths:
            expected = StatementRelation.ENTAILMENT if {True} in truths else StatementRelation.CONTRADICTION
        text = " ".join(["I see nothing.", *(SENTENCES[one][0] for one in premise)])
        assert relation(text, said) == expected


def test_a_reference_leaves_nothing_open() -> None:
    for world in itertools.islice(worlds(), 0, None, 23):
        for said in SENTENCES:
            expected = StatementRelation.ENTAILMENT if is_true(said, world) else StatementRelation.CONTRADICTION
            assert relation(full_report(world), said) == expected


def test_a_report_is_judged_by_the_sentence() -> None:
    rng, statements, judge = np.random.default_rng(1), list(SENTENCES), build_judge("drawn_report")
    for world in itertools.islice(worlds(), 0, None, 40):
        picked = [statements[i] for i in rng.integers(len(statements), size=3)]
        texts = [*(SENTENCES[said][0] for said in picked), *["The lesion is purple."] * rng.integers(2)]
        labels = [*(int(not is_true(said, world)) for said in picked), *[None] * (len(texts) - 3)]
        [verdict] = judge.judge([Case("1", "q", full_report(world), "\n".join(f"- {text}" for text in texts))])
        assert [vote.label for vote in verdict.votes] == labels
        assert verdict.label == max(labels, key=[0, None, 1].index)
        assert verdict.raw == "\n".join(f"[{label}] {text}" for label, text in zip(labels, texts, strict=True))
    nothing, refusal = judge.judge([Case(str(i), "q", "r", text) for i, text in enumerate(("...", "I cannot help."))])
    assert (nothing.label, nothing.votes, refusal.label, refusal.votes) == (None, (), None, ())
    assert judge.settings()["unit"] == "sentence"
