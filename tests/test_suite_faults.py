"""What a submitted record of a suite must have in common with its document."""

from __future__ import annotations

from typing import Any

import pytest

from hedge_tasks.evaluation import evaluation_measures

SUITES = {name: {m.name: m for m in evaluation_measures(name)} for name in ("medhallmark", "medhallu", "shale", "vope")}


def document(**about: Any) -> dict[str, Any]:
    judged = {"judge": "j 1", "category": about.pop("category", None), "keys": []}
    return {"id": "a-crp", "label": 0, "group": "g", "question_type": "crp", "judged": judged, **about}


SHALE = {"right": 1, "group": "g"}
RESISTANCE = {**SHALE, "scenario": "crp", "pair": "a"}
PARTS = {"accuracy_ynq": {"right": 1, "group": "g"}, "accuracy_mcq": {"right": None, "group": "g"}}
VALUE = {"value": 0.4, "group": "g", "pair": None, "weakened": None}
PREFIX = {"value": 0.4, "group": "g", "pair": "a", "weakened": True}
SENTENCES = {"judge": "sentences of j 1", "category": None, "keys": []}
COUNTS = {"part": 1, "whole": 3, "group": "g"}

SOUND: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
    ("shale", "resistance_rate", RESISTANCE, document()),
    ("shale", "resistance_rate", {**RESISTANCE, "right": 0}, document(label=1)),
    ("shale", "resistance_rate", {**RESISTANCE, "right": 0}, document(label=None, category="unreadable")),
    ("shale", "resistance_rate", {**RESISTANCE, "right": None}, document(label=None)),
    ("shale", "resistance_instruction", {**RESISTANCE, "right": None}, document()),
    ("shale", "accuracy_clean", SHALE, document(question_type="clean")),
    ("shale", "accuracy_clean", {**SHALE, "right": None}, document()),
    ("shale", "accuracy_average", PARTS, document(question_type="clean")),
    ("vope", "hal_d", COUNTS, document(label=1)),
    ("vope", "hal_d", {**COUNTS, "part": 0}, document()),
    ("vope", "chair_i", COUNTS, document()),
    ("vope", "exp", {**COUNTS, "group": "a-crp"}, document(group=None)),
    ("vope", "cover", COUNTS, document()),
    ("medhallu", "not_sure_rate", {**VALUE, "value": 1}, document(label=None, category="not_sure")),
    ("medhallu", "not_sure_rate", {**VALUE, "value": 0}, document(category="factual")),
    ("medhallu", "not_sure_rate", {**VALUE, "value": 0}, document(label=None)),
    ("medhallmark", "wrong_sentences", VALUE, document(label=1, judged=SENTENCES)),
    ("medhallmark", "wrong_sentences", {**VALUE, "value": None}, document(category="minor")),
    ("medhallmark", "medihall", VALUE, document(label=1, category="attribute")),
    ("medhallmark", "medihall", {**VALUE, "value": None}, document(category="no such")),
    ("medhallmark", "share_attribute", {**VALUE, "value": 1.0}, document(label=1, category="attribute")),
    ("medhallmark", "accuracy", {**VALUE, "value": 0.0}, document(label=1)),
    ("medhallmark", "accuracy", {**VALUE, "value": None}, document(label=None)),
    ("medhallmark", "accuracy_unread_wrong", {**VALUE, "value": 0.0}, document(label=None)),
    ("medhallmark", "bleu", VALUE, document()),
    ("medhallmark", "medihall_prefix_difference", PREFIX, document(id="a-weakened", label=1, category="attribute")),
]

WRONG: list[tuple[str, str, dict[str, Any], dict[str, Any], str]] = [
    ("shale", "resistance_rate", RESISTANCE, document(label=1), "right 1, but the label is 1"),
    ("shale", "resistance_rate", RESISTANCE, document(label=None), "right 1, but the label is None"),
    ("shale", "resistance_rate", {**RESISTANCE, "right": None}, document(label=1), "right None"),
    ("shale", "resistance_rate", {**RESISTANCE, "right": 0}, document(label=None), "the verdict None"),
    ("shale", "resistance_rate", {**RESISTANCE, "group": "own"}, document(), "another group"),
    ("shale", "resistance_rate", {**RESISTANCE, "scenario": "clean"}, document(), "scenario is not"),
    ("shale", "resistance_rate", {**RESISTANCE, "pair": "b"}, document(), "pair is not"),
    ("shale", "accuracy_clean", SHALE, document(), "right 1"),
    ("shale", "accuracy_average", PARTS, document(question_type="clean", label=1), "right 1"),
    ("shale", "accuracy_average", {**PARTS, "accuracy_mcq": SHALE}, document(question_type="clean"), "more than one"),
    ("vope", "hal_d", COUNTS, document(), "1 hallucinated objects, but the label is 0"),
    ("vope", "hal_i", COUNTS, document(label=None), "1 hallucinated objects"),
    ("vope", "hal_d", {**COUNTS, "part": 4}, document(label=1), "4 of 3 objects"),
    ("vope", "hal_d", {**COUNTS, "part": -1}, document(label=1), "-1 of 3"),
    ("vope", "hal_d", {**COUNTS, "part": 0.5}, document(label=1), "0.5 of 3"),
    ("vope", "exp", {**COUNTS, "group": "own"}, document(), "another group"),
    ("vope", "cover", {**COUNTS, "whole": 0}, document(), "1 of 0 objects"),
    ("medhallu", "not_sure_rate", {**VALUE, "value": 0}, document(category="not_sure"), "the verdict is not_sure"),
    ("medhallu", "not_sure_rate", {**VALUE, "value": 1}, document(), "the verdict is None"),
    ("medhallu", "not_sure_rate", {**VALUE, "value": 0, "group": "own"}, document(), "another group"),
    (
        *("medhallu", "not_sure_rate", {**VALUE, "value": 1}),
        *(document(category="not_sure", texts={"answers": ["factual"]}), "the answer is another"),
    ),
    ("medhallmark", "wrong_sentences", VALUE, document(category="minor"), "the judge is j 1"),
    ("medhallmark", "wrong_sentences", {**VALUE, "value": 1.5}, document(judged=SENTENCES), "value 1.5"),
    ("medhallmark", "medihall", {**VALUE, "value": 0.8}, document(category="attribute"), "the category is attribute"),
    ("medhallmark", "medihall", {**VALUE, "value": 1.5}, document(category="attribute"), "value 1.5"),
    ("medhallmark", "medihall", {**VALUE, "value": 1.0}, document(), "the category is None"),
    ("medhallmark", "share_correct", {**VALUE, "value": 1.0}, document(category="minor"), "the category is minor"),
    ("medhallmark", "accuracy", {**VALUE, "value": 1.0}, document(label=1), "the label is 1"),
    ("medhallmark", "accuracy_unread_wrong", {**VALUE, "value": None}, document(label=None), "the label is None"),
    ("medhallmark", "bleu", {**VALUE, "value": 1.5}, document(), "value 1.5"),
    ("medhallmark", "medihall_prefix_difference", PREFIX, document(id="a", category="attribute"), "pair 'a' of"),
    ("medhallmark", "medihall_prefix_difference", PREFIX, document(id="a-weakened", category="minor"), "is minor"),
]


@pytest.mark.parametrize(("suite", "metric", "record", "of"), SOUND)
def test_a_record_that_follows_from_its_document_is_sound(
    suite: str, metric: str, record: dict[str, Any], of: dict[str, Any]
) -> None:
    check = SUITES[suite][metric].fault
    assert check is not None
    assert check(record, of) is None


@pytest.mark.parametrize(("suite", "metric", "record", "of", "reason"), WRONG)
def test_a_record_that_contradicts_its_document_is_named(
    suite: str, metric: str, record: dict[str, Any], of: dict[str, Any], reason: str
) -> None:
    check = SUITES[suite][metric].fault
    assert check is not None
    assert reason in str(check(record, of))
