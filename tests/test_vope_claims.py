"""Objects of a story as claims."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hedge_tasks.claims import ENTAILMENT, Passage, SupportQuery, build_decomposition, build_entailment
from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.detectors import get
from hedge_tasks.errors import DataError
from hedge_tasks.io.json_lines import read_objects
from hedge_tasks.runs.claims import inquiry, score_claims
from hedge_tasks.runs.run_files import Run
from hedge_tasks.suites.vope.extraction import objects_in
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


@pytest.mark.slow
def test_every_object_of_the_extraction_is_located_or_counted() -> None:
    dice = random.Random(0)
    bits = ["a dog", "isn't", "cat's", "wine-glass", "people", "İ", "ſofa", "trains", ",", "\n", "not", "ﬁre hydrant"]
    for _ in range(400):
        text = " ".join(dice.choices(bits, k=dice.randint(1, 12)))
        found, unlocated = objects(text)
        assert len(found) + unlocated == len(objects_in(text)), text
        assert {word for word, _ in found} <= {word for word, _ in objects_in(text)}


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


@pytest.mark.slow
def test_real_captions_are_located(shared_data: Path) -> None:
    rows = [row for _, row in read_objects(shared_data / "coco" / "llava_caps_boxes_coco2014_val_80.jsonl")]
    captions = list(dict.fromkeys(text for row in rows for text in _texts(row)))
    assert len(captions) > 50
    found = build_decomposition("object").pieces([Passage(caption) for caption in captions])
    assert [len(one.pieces) for one in found] == [len(objects_in(caption)) for caption in captions]
    assert sum(len(one.pieces) for one in found) > 100


def _texts(value: Any) -> Iterator[str]:
    """Every text of several words, however deep."""
    if isinstance(value, str) and value.count(" ") > 5:
        yield value
    elif isinstance(value, (list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)
