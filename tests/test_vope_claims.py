"""Objects of a story as claims."""

from __future__ import annotations

import pytest

from hedge_tasks.claims.base import ENTAILMENT
from hedge_tasks.claims.decomposition import Passage, build_decomposition
from hedge_tasks.claims.entailment import SupportQuery, build_entailment
from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.detectors import get
from hedge_tasks.errors import DataError
from hedge_tasks.runs.claims import inquiry, score_claims
from hedge_tasks.runs.run_files import Run
from hedge_tasks.suites.vope.judge import VopeJudge
from hedge_tasks.suites.vope.objects import recheck_records


def objects(text: str) -> tuple[list[tuple[str, str]], int]:
    [found] = build_decomposition("object").pieces([Passage(text)])
    return [(piece.text, text[piece.start : piece.end]) for piece in found.pieces], found.unlocated


def test_objects_are_found_where_they_stand() -> None:
    text = "Two Puppies aren't near the dog’s wine glasses; not a mountain-bike. A PUPPY and a hot dog."
    assert objects(text) == (
        [
            ("puppy", "Puppies"),
            ("dog", "dog"),
            ("wine glass", "wine glasses"),
            ("bike", "mountain-bike"),
            ("hot dog", "hot dog"),
        ],
        0,
    )
    assert objects("") == ([], 0)


def test_support_is_the_radflag_of_object_records() -> None:
    stories = AnswerSet(
        "a",
        Answer("A puppy sits on a couch beside a bicycle."),
        tuple(map(Answer, ("A dog on a sofa.", "A cat.", "A bike and a dog."))),
        tuple(map(Answer, ("A hot dog.", "A sofa."))),
    )
    engine, unit = build_entailment("object"), build_decomposition("object")
    asked = inquiry([stories], unit)
    run = Run("stories", "m", (stories,))
    [scored] = score_claims(run, asked.ask(engine)).answers
    rechecks = [AnswerSet(f"{stories.id}/{claim.text}", Answer("Yes"), (), reference="yes") for claim in scored.claims]
    records = recheck_records(stories.with_follow_ups(rechecks), VopeJudge())
    assert [claim.text for claim in scored.claims] == ["puppy", "couch", "bicycle"]
    assert scored.scores["claim_radflag"].tolist() == pytest.approx([record.scores["radflag"] for record in records])
    assert scored.scores["claim_luq_noisy"].tolist() == pytest.approx([1 - record.noisy for record in records])
    assert get("claim_radflag").claim_scores(scored.evidence) is not None
    assert scored.evidence.clean[0, :, ENTAILMENT].tolist() == [1.0, 0.0, 1.0]


def test_claims_that_are_no_objects_are_refused() -> None:
    with pytest.raises(DataError, match="COCO object"):
        build_entailment("object").support([SupportQuery(("There is no effusion.",), ("x",))])
