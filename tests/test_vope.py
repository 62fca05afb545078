"""VOPE: extraction of objects, reading of replies, the four sets, relevance."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reply_corpus import vope_rechecked

from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.judging import Case, Verdict, build_judge
from hedge_tasks.suites.vope.extraction import mentions
from hedge_tasks.suites.vope.judge import SETS, VopeJudge
from hedge_tasks.suites.vope.objects import ObjectRecord, recheck_records, story_verdict
from hedge_tasks.suites.vope.relevance import rate
from hedge_tasks.suites.vope.vocabulary import coco

# --- extraction -------------------------------------------------------------------------------------------------------

SENTENCES = {
    "Two Puppies and three wine glasses on the DINING TABLE.": ["puppy", "wine glass", "dining table"],
    "Wine-glasses, mountain-bikes and a hot-dog; a t-shirt, a tie-dye scarf.": ["wine glass", "bike", "hot dog"],
    "Knives, thieves, gentlemen, buses, benches, mice, geese, oxen and children.": [
        *("knife", "thief", "gentleman", "bus", "bench", "mouse", "goose", "ox", "child")
    ],
    "A man's dog chased the children's kites.": ["man", "dog", "child", "kite"],
    "A man’s hat.": ["man"],
    "A hot dog is no dog, a teddy bear no bear.": ["hot dog", "dog", "teddy bear", "bear"],
    "Baby bears near the train tracks by home plate.": ["bear"],
    "He bears a grudge, she trains all day, they book a flight.": [],
    "She could not bear to book a trip, or to park beside a bench.": ["bench"],
    "A stop next to train and bus; close to cattle.": ["train", "bus", "cattle"],
    "He peels an orange, and oranges are sweet.": ["orange", "orange"],
    "The toilet seat. Sit on the seat of the toilet.": ["toilet", "toilet"],
    "A front seat and a seat.": ["seat", "seat"],
    "A cheesecake and a motor bike on her skis with scissors and an iPhone.": [
        *("cheesecake", "motor bike", "skis", "scissors", "iphone")
    ],
    "Carpet, category, doghouse, caravan, busy, this, his, bowled, scarf.": [],
    "café, 犬, , a1 car2 🚗 car": ["car"],
    "": [],
}


@pytest.mark.parametrize("text", SENTENCES)
def test_objects_are_found_as_a_reader_finds_them(text: str) -> None:
    assert [mention.word for mention in mentions(text)] == SENTENCES[text]


@given(st.sampled_from(sorted(coco().categories)), st.sampled_from(["The {}.", "near the {}, and", "THE {}!"]))
def test_every_word_of_the_vocabulary_is_found(word: str, frame: str) -> None:
    [mention] = mentions(frame.format(word if "THE" not in frame else word.upper()))
    # A few phrases are another word's synonyms in CHAIR's list of double words.
    assert mention.category == coco().categories[word]


# --- the four sets ----------------------------------------------------------------------------------------------------


def test_the_judge_sorts_rechecks_into_the_four_sets() -> None:
    judge = build_judge("vope")
    cases = [Case(f"{ref}-{said}", "a dog", ref, said) for ref in ("yes", "no") for said in ("Yes.", "No.", "Hm")]
    verdicts = judge.judge(cases)
    assert [v.category for v in verdicts] == [
        *("true_description", "hallucinated_imagination", None),
        *("hallucinated_description", "true_imagination", None),
    ]
    assert [v.label for v in verdicts] == [0, 1, None, 1, 0, None]
    # "No." is a yes to the reference code, and "Hm" too.
    theirs = build_judge("vope", parsing="official").judge(cases)
    assert [v.label for v in theirs] == [0, 0, 0, 1, 1, 1]
    assert [vote.judge for vote in verdicts[0].votes] == ["vope:hedge", "vope:official"]
    assert [v.votes[1].category for v in verdicts] == [v.category for v in theirs]


WORDS = ("Yes", "yes.", "No", "No.", "no,", "not", "none", "there", "isn't", "is", "such thing", "sound so", "know")


@given(st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join))
def test_the_official_reading_is_the_reference_codes(reply: str) -> None:
    """Written down once more beside the corpus of replies."""
    [verdict] = VopeJudge(parsing="official").judge([Case("1", "a dog", "yes", reply)])
    said = {None: None, "yes": "true_description", "no": "hallucinated_imagination"}
    assert verdict.category == said[vope_rechecked(reply)]


def story(baseline: str, clean: Iterable[str] = (), noisy: Iterable[str] = (), **replies: tuple[str, str]) -> AnswerSet:
    """Stories, with the reference and the reply of each recheck by its word."""
    answers = AnswerSet("s", Answer(baseline), tuple(map(Answer, clean)), tuple(map(Answer, noisy)))
    rechecks = [AnswerSet(f"s/{w}", Answer(reply), (), reference=truth) for w, (truth, reply) in replies.items()]
    return answers.with_follow_ups(rechecks)


def test_an_object_is_scored_by_the_stories_that_mention_it() -> None:
    clean, noisy = ("A puppy.", "A dog.", "Trees.", "A hound and a taxi"), ("A dog", "Rain")
    answers = story("A dog and a car.", clean, noisy, dog=("yes", "Yes"), car=("no", "No."))
    dog, car = recheck_records(answers, VopeJudge())
    assert (dog.clean, dog.noisy, car.clean, car.noisy) == (0.75, 0.5, 0.25, 0.0)
    assert (dog.scores["radflag"], car.scores["radflag"]) == (0.25, 0.75)
    entropy = -(0.75 * np.log(0.75) + 0.25 * np.log(0.25))
    assert dog.scores["se"] == car.scores["se"] == pytest.approx(entropy)

    def vase(clean: float, noisy: float) -> float:
        p, q = np.array([clean, 1 - clean]), np.array([noisy, 1 - noisy])
        z = np.exp(p + (p - q))
        z /= z.sum()
        return float(-(z * np.log(z)).sum())

    assert dog.scores["vase"] == pytest.approx(vase(0.75, 0.5))
    assert car.scores["vase"] == pytest.approx(vase(0.25, 0.0))
    assert (dog.kind, car.kind) == ("true_description", "true_imagination")
    assert (dog.readings_differ, car.readings_differ) == (False, True)
    [bare] = recheck_records(story("A dog", ["A dog"], dog=("yes", "Yes")), VopeJudge())
    assert (bare.noisy, bare.scores["vase"]) == (None, None)


@pytest.mark.parametrize("truth", ["yes", "no"])
def test_a_forced_pass_says_the_likelier_of_yes_and_no(truth: str) -> None:
    def forced(p: float) -> str | None:
        answers = story("A dog.", dog=(truth, "Hm"))
        passes = {f"option:{word}": Answer(word, np.log(share), 1) for word, share in (("Yes", p), ("No", 1 - p))}
        answers = answers.with_follow_ups([replace(answers.follow_ups[0], forced=passes)])
        [found] = recheck_records(answers, VopeJudge())
        assert found.p_yes == pytest.approx(p)
        return found.kind_forced

    assert [forced(p) for p in (0.3, 0.5, 0.7)] == [SETS[truth == "yes", False], None, SETS[truth == "yes", True]]


def named(word: str, kind: str | None, present: bool = False) -> ObjectRecord:
    return ObjectRecord(word, word, present, kind, False, "")


def test_a_story_is_labelled_by_its_worst_object() -> None:
    def label(*kinds: str | None) -> tuple[int | None, str | None]:
        verdict = story_verdict([named("dog", kind) for kind in kinds], "vope", "1")
        return verdict.label, verdict.category

    assert label("true_description", None, "true_imagination") == (0, "supported")
    assert label("true_description", "hallucinated_imagination") == (1, "hallucinated")
    assert label() == (None, "no_object")
    assert label(None) == (None, None)


# --- relevance --------------------------------------------------------------------------------------------------------


def test_absent_objects_are_rated_by_every_judge() -> None:
    stories = [
        [named("dog", "true_description", True), named("car", "hallucinated_description")],
        [named("cup", "true_imagination"), named("cat", "true_imagination"), named("bed", "hallucinated_description")],
    ]
    said = {"0/car": "32", "1/cup": "11", "1/cat": "33", "1/bed": "?1"}

    def judged(place: int, cases: list[Case]) -> list[Verdict]:
        assert [case.id for case in cases] == list(said)
        scores = [said[case.id][place] for case in cases]
        return [Verdict(None, "", "judge", "1", None if score == "?" else score) for score in scores]

    judges: Any = [SimpleNamespace(judge=partial(judged, place)) for place in range(2)]
    rated = rate(stories, [Case(str(i), "", "", "") for i in range(2)], judges)
    assert [o.relevance for o in rated[1]] == [(1, 1), (3, 3), (None, 1)]
    assert rated[0][0].relevance == ()
