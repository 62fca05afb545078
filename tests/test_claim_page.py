"""The page of claims: shades, marks, draws and pieces of text against what was scored."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_claim_table import scored_run, scripted

from hedge_tasks.data.sentences import split_sentences
from hedge_tasks.errors import DataError
from hedge_tasks.measures.unit_table import UnitTable, unit_table
from hedge_tasks.report.claim_page import (
    LEVELS,
    build_claim_page,
    claim_section,
    default_detector,
    ranked_answers,
    worst_answers,
)
from hedge_tasks.report.pictures import Thumbnails
from hedge_tasks.runs.claims import ScoredAnswer, ScoredClaims
from hedge_tasks.runs.run_files import Run

NAME = "claim_radflag"


WHOLE = scored_run(scripted(0, images=12, n=4, m=2, k=4), elsewhere=False)


@cache
def table() -> UnitTable:
    return unit_table(WHOLE)


def with_gaps() -> ScoredClaims:
    """Of the first answer a claim is silent, one unlabelled and one without a score, the second has no score at all."""
    first, second, *others = WHOLE.answers
    spans: Any = (replace(first.labels[0], label=None, silent=True), None, *first.labels[2:])  # type: ignore[type-var]
    partly = {name: np.append(np.nan, values[1:]) for name, values in first.scores.items()}
    nothing = {name: np.full(4, np.nan) for name in second.scores}
    return replace(
        WHOLE, answers=(replace(first, labels=spans, scores=partly), replace(second, scores=nothing), *others)
    )


SCORED = with_gaps()


def test_the_best_detector_that_sees_something_ranks_the_answers() -> None:
    seeing = {row.detector: row.estimate.value or 0.0 for row in table().rows if not row.blind}
    assert seeing[default_detector(WHOLE, table())] == max(seeing.values())
    assert default_detector(SCORED, None) == "claim_luq"
    ranked = ranked_answers(SCORED, NAME)
    assert len(ranked) == 11
    assert [mean for mean, _ in ranked] == sorted((np.nanmean(a.scores[NAME]) for _, a in ranked), reverse=True)
    assert all(mean == np.nanmean(answer.scores[NAME]) for mean, answer in ranked)
    with pytest.raises(DataError, match="no claim has a score of x"):
        ranked_answers(SCORED, "x")


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def nearness(claim: str, sentence: str) -> float:
    return len(words(claim) & words(sentence)) / len(words(claim) | words(sentence))


def check_shade(entry: Any, answer: ScoredAnswer, k: int, low: float, high: float) -> None:
    value, span = answer.scores[NAME][k], answer.labels[k]
    above = [low + (high - low) * i / LEVELS for i in range(LEVELS)]
    marks = {None: "unlabelled", 0: "supported", 1: "hallucinated"}
    mark = "silent" if span is not None and span.silent else marks[span.label if span else None]
    score = None if np.isnan(value) else value
    assert (entry["level"], entry["score"], entry["mark"]) == (sum(value > at + 1e-9 for at in above), score, mark)


def check_draws(entry: Any, answer: ScoredAnswer, k: int) -> None:
    """By verdict, and of each its sentence that is nearest to the claim."""
    verdicts = {name: verdict for name, verdict, _ in answer.evidence.verdicts(k)}
    texts = dict(zip(verdicts, [*answer.answers.clean, *answer.answers.noisy], strict=True))
    order = [said for said in ("contradicting", "silent", "supporting") if said in verdicts.values()]
    counts = [(said.capitalize(), [*verdicts.values()].count(said)) for said in order]
    assert [(group["said"], group["n"]) for group in entry["groups"]] == counts
    for group in entry["groups"]:
        near = [nearness(entry["text"], sentence) for _, sentence in group["rows"]]
        assert near == sorted(near, reverse=True)
        for (draw, _), share in zip(group["rows"], near, strict=True):
            assert verdicts[draw].capitalize() == group["said"]
            assert share == max(nearness(entry["text"], s) for s in split_sentences(texts[draw].text))


def test_every_claim_is_shaded_marked_and_shown_with_its_draws() -> None:
    ranked = ranked_answers(SCORED, NAME)
    values = np.concatenate([answer.scores[NAME] for _, answer in ranked])
    first = ranked[0][1].answers
    pictures = Thumbnails(("one", "two"), {first.id: (1, 0)})
    verdicts = {first.id: {"judge": "llm", "reason": "so"}}
    entries = worst_answers(ranked, NAME, table(), "run-", pictures=pictures, verdicts=verdicts)
    for place, ((mean, answer), entry) in enumerate(zip(ranked, entries, strict=True)):
        assert (entry["mean"], entry["id"], entry["anchor"]) == (mean, answer.answers.id, f"run-a{place}")
        assert [claim["number"] for claim in entry["claims"]] == [1, 2, 3, 4]
        for k, claim in enumerate(entry["claims"]):
            check_shade(claim, answer, k, np.nanmin(values), np.nanmax(values))
            check_draws(claim, answer, k)
    assert (entries[0]["pictures"], entries[1]["pictures"]) == (["two", "one"], [])
    assert (entries[0]["verdict"]["reason"], entries[1]["verdict"]) == ("so", None)


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 9)), min_size=4, max_size=4))
def test_pieces_are_the_text_and_where_claims_overlap_one_of_them_has_it(places: list[tuple[int, int]]) -> None:
    answer = SCORED.answers[-1]
    text = answer.answers.baseline.text[:25]
    claims = [
        replace(claim, start=at, end=min(at + n, len(text)))
        for claim, (at, n) in zip(answer.claims, places, strict=True)
    ]
    sets = replace(answer.answers, baseline=replace(answer.answers.baseline, text=text))
    cut = replace(answer, answers=sets, evidence=replace(answer.evidence, claims=tuple(claims)))
    [entry] = worst_answers([(0.0, cut)], NAME, None)
    assert "".join(piece for piece, _ in entry["segments"]) == text
    assert "" not in [piece for piece, _ in entry["segments"]]
    owners = [claim and claim["number"] - 1 for piece, claim in entry["segments"] for _ in piece]
    for at, owner in enumerate(owners):
        covering = [k for k, claim in enumerate(claims) if claim.start <= at < claim.end]
        assert owner in (covering or [None])


def test_a_page_shows_so_many_answers_and_a_report_what_is_kept() -> None:
    sets = tuple(answer.answers for answer in SCORED.answers)
    run = Run("task", "m", sets)
    for most in (2, 99):
        page = build_claim_page(SCORED, table(), run, answers=most, pictures=False)
        assert page.count('<article class="answer"') == min(most, 11)
    assert "nobody knows" in build_claim_page(SCORED, None, run, pictures=False)
    assert claim_section(run, "x") is None
