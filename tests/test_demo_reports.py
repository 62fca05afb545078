"""The demo of claims: sentences on drawn scans, what follows from them, their judge, the model and the whole run."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from hedge_tasks.data.sentences import split_sentences
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


@pytest.mark.parametrize(
    ("text", "sentence", "expected"),
    [
        (
            "There is one lesion. There is a lesion in the upper left quadrant.",
            "The lower left quadrant looks normal.",
            2,
        ),
        ("There is a lesion in the upper left quadrant.", "The lower left quadrant looks normal.", 1),
        ("There is a lesion in the upper left quadrant.", "There are no lesions.", 0),
        ("The lesion is round.", "The lesions are small.", 1),
        ("The lesion is round. The scan is CT.", "The lesion is irregular.", 0),
        # It contradicts itself: every sentence counts alone.
        ("There are no lesions. The lesion is round.", "The lesion is round.", 2),
        ("I see nothing.", "The lesion is dark.", 1),
    ],
)
def test_what_follows(text: str, sentence: str, expected: int) -> None:
    said = statement_of(sentence)
    assert said is not None
    assert relation(text, said) == StatementRelation(expected)


def test_relations_are_those_of_all_worlds_gone_through() -> None:
    rng = np.random.default_rng(0)
    everything, statements = list(worlds()), list(SENTENCES)
    for _ in range(60):
        premise = [statements[i] for i in rng.integers(len(statements), size=rng.integers(1, 4))]
        said = statements[rng.integers(len(statements))]
        there = [world for world in everything if all(is_true(one, world) for one in premise)]
        if not there:
            continue
        truths = {is_true(said, world) for world in there}
        expected = (
            StatementRelation.NEUTRAL
            if len(truths) == 2
            else StatementRelation.ENTAILMENT
            if truths == {True}
            else StatementRelation.CONTRADICTION
        )
        assert relation(" ".join(SENTENCES[one][0] for one in premise), said) == expected


def test_a_reference_leaves_nothing_open() -> None:
    for world in itertools.islice(worlds(), 0, None, 23):
        for said in SENTENCES:
            expected = StatementRelation.ENTAILMENT if is_true(said, world) else StatementRelation.CONTRADICTION
            assert relation(full_report(world), said) == expected
