"""Facts about the objects of a story. Pure functions: answers, truth and verdicts in, records for JSON out."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from hedge_tasks.data.answers import AnswerSet, option_logprobs
from hedge_tasks.detectors import Evidence, get, names
from hedge_tasks.errors import DataError
from hedge_tasks.judging.base import Case, Verdict
from hedge_tasks.measures.forced_options import option_shares
from hedge_tasks.replies import spoken_text
from hedge_tasks.replies.parsing import OFFICIAL
from hedge_tasks.replies.reading import MODEL
from hedge_tasks.suites.vope.extraction import mentions
from hedge_tasks.suites.vope.judge import SETS, VopeJudge
from hedge_tasks.suites.vope.vocabulary import coco


@dataclass(frozen=True)
class ObjectRecord:
    """One object that the baseline story mentions.

    Attributes:
        word, category: as in `extraction.Mention`.
        present: whether its category is in the image.
        kind: one of `judge.SETS`; None where the reply to the recheck says neither yes nor no.
        by_model: whether a model read the reply because the rules could not (the judge's fallback).
        kind_official: the set that the reference code's reading of the reply gives; likewise.
        kind_soft: the set where readings that are only soft count as well; None where nothing was read.
        readings_differ: whether the ways to read the reply disagree.
        reply: to the recheck.
        clean, noisy: share of the clean and the noisy stories that mention the category; None where there are none.
        scores: by detector that serves objects, with two clusters of stories, those that mention the category and those
            that do not, every story weighing the same; None where it is undefined, as vase without noisy stories.
        kind_forced: the set that the likelier of "Yes" and "No" gives, each as the whole reply to the recheck by forced
            passes; None where the model does not tell, or they are equal.
        p_yes: probability of "Yes" against "No"; likewise.
        relevance: score 1 to 3 by each judge of relevance, None where it gave none; empty where none was asked.
    """

    word: str
    category: str
    present: bool
    kind: str | None
    readings_differ: bool
    reply: str
    clean: float | None
    noisy: float | None
    scores: Mapping[str, float | None] = field(default_factory=dict)
    relevance: tuple[int | None, ...] = ()
    kind_official: str | None = None
    kind_soft: str | None = None
    by_model: bool = False
    kind_forced: str | None = None
    p_yes: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON; scores stand under the names of their detectors."""
        fields = {**asdict(self), "relevance": list(self.relevance)}
        return {**fields, **fields.pop("scores")}


def recheck_records(answers: AnswerSet, judge: VopeJudge) -> list[ObjectRecord]:
    """Records of the objects that were rechecked after a baseline story.

    Args:
        answers: the stories, with the rechecks as their follow-ups: ids `<id of the story>/<word>`, references "yes" or
            "no" (whether the object is in the image).
        judge: reads the replies.

    Raises:
        DataError: a follow-up is no recheck of an object; names it.
    """
    words = [word_of(answers, recheck) for recheck in answers.follow_ups]
    objects = [(word, coco().category(word, answers.id)) for word in words]
    references = [recheck.reference or "" for recheck in answers.follow_ups]
    cases = [_case(recheck) for recheck in answers.follow_ups]
    records = object_records(answers, objects, [reference == "yes" for reference in references], judge.judge(cases))
    softly = [judge.reading(judge.parsing, case).value for case in cases]
    shares = [option_shares(option_logprobs(recheck.forced)) for recheck in answers.follow_ups]
    return [
        replace(
            entry,
            kind_soft=entry.kind or (None if read is None else SETS[entry.present, read == "yes"]),
            kind_forced=None if p is None or p["Yes"] == p["No"] else SETS[entry.present, p["Yes"] > p["No"]],
            p_yes=None if p is None else p["Yes"],
        )
        for entry, read, p in zip(records, softly, shares, strict=True)
    ]


def _case(recheck: AnswerSet) -> Case:
    reply = recheck.baseline
    cut = reply.finish == "length"
    return Case(recheck.id, recheck.question or "", recheck.reference or "", reply.text, cut=cut)


def word_of(answers: AnswerSet, recheck: AnswerSet) -> str:
    """Return the word that a recheck asks about.

    Raises:
        DataError: the follow-up is no recheck of an object; names it.
    """
    start = f"{answers.id}/"
    if not recheck.id.startswith(start):
        raise DataError(f"{answers.id}: the follow-up {recheck.id!r} is no recheck of one of its objects")
    return recheck.id.removeprefix(start)


def object_records(
    answers: AnswerSet,
    objects: Sequence[tuple[str, str]],
    present: Sequence[bool],
    verdicts: Sequence[Verdict],
) -> list[ObjectRecord]:
    """Records of the objects of a baseline story.

    Args:
        answers: the stories.
        objects: (word, category) of the baseline story.
        present: which of them are in the image.
        verdicts: of the rechecks, one an object.
    """
    clean = [_categories(answer.text) for answer in answers.clean]
    noisy = [_categories(answer.text) for answer in answers.noisy]
    return [
        _record(word, category, is_present, verdict, clean, noisy)
        for (word, category), is_present, verdict in zip(objects, present, verdicts, strict=True)
    ]


def _record(
    word: str, category: str, present: bool, verdict: Verdict, clean: list[set[str]], noisy: list[set[str]]
) -> ObjectRecord:
    clean_ids, noisy_ids = [category in story for story in clean], [category in story for story in noisy]
    return ObjectRecord(
        word=word,
        category=category,
        present=present,
        kind=verdict.category,
        by_model=verdict.reason.endswith(f"({MODEL})"),
        kind_official=next((v.category for v in verdict.votes if v.judge.endswith(f":{OFFICIAL}")), None),
        readings_differ=len({vote.category for vote in verdict.votes}) > 1,
        reply=verdict.raw or "",
        clean=sum(clean_ids) / len(clean_ids) if clean_ids else None,
        noisy=sum(noisy_ids) / len(noisy_ids) if noisy_ids else None,
        # The baseline story has the object.
        scores=_scores("object", [True, *clean_ids, *noisy_ids], len(clean_ids)),
    )


def _scores(level: str, meanings: Sequence[Hashable], n_clean: int) -> dict[str, float | None]:
    """Scores of a unit by every detector that serves its level.

    Args:
        meanings: of the baseline, the clean and the noisy draws; equal ones are one cluster.
        n_clean: how many of them are clean.
    """
    numbers: dict[Hashable, int] = {}
    ids = tuple(numbers.setdefault(meaning, len(numbers)) for meaning in meanings)
    evidence = Evidence(tuple(map(str, ids)), n_clean, cluster_ids=ids)
    return {name: get(name).score(evidence) for name in names(level)}


def _categories(text: str) -> set[str]:
    return {mention.category for mention in mentions(spoken_text(text))}


def story_scores(answers: AnswerSet) -> dict[str, float | None]:
    """Scores of a whole story: stories are one meaning where they mention the same categories.

    Every story weighs the same, as for `ObjectRecord.scores`, so that the two can be compared.
    """
    return _scores("story", [frozenset(_categories(answer.text)) for answer in answers.answers], len(answers.clean))


def story_facts(answers: AnswerSet, records: Sequence[ObjectRecord]) -> dict[str, Any]:
    """Return what a story's verdict keeps besides the label, for JSON: its objects, and the scores of the story."""
    return {"objects": [entry.to_dict() for entry in records], "story": story_scores(answers)}


def story_verdict(records: Sequence[ObjectRecord], judge: str, version: str) -> Verdict:
    """The label of a whole story: 1 where the model is wrong about one of its objects, 0 where it is right about all.

    No label where the story mentions no object (category "no_object"), or where no recheck could be read.
    """
    if not records:
        return Verdict(None, "the story mentions no COCO object", judge, version, "no_object")
    read = [record for record in records if record.kind is not None]
    if not read:
        return Verdict(None, "no reply to a recheck says yes or no", judge, version)
    wrong = [record.word for record in read if record.kind is not None and record.kind.startswith("hallucinated")]
    reason = f"wrong about {', '.join(wrong)}" if wrong else f"right about all of {len(read)} objects"
    return Verdict(int(bool(wrong)), reason, judge, version, "hallucinated" if wrong else "supported")
