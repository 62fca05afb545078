"""Facts about the objects of a story. Pure functions: answers, truth and verdicts in, records for JSON out."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from hedge_tasks.data.answers import AnswerSet, option_logprobs
from hedge_tasks.detectors import Evidence, get, names
from hedge_tasks.errors import DataError
from hedge_tasks.judging.base import Verdict
from hedge_tasks.measures.forced_options import option_shares
from hedge_tasks.replies import spoken_text
from hedge_tasks.replies.parsing import OFFICIAL
from hedge_tasks.replies.reading import MODEL
from hedge_tasks.runs.relabel import case_of
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
    clean: float | None = None
    noisy: float | None = None
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
    cases = [case_of(recheck) for recheck in answers.follow_ups]
    clean, noisy = ([_categories(answer.text) for answer in draws] for draws in (answers.clean, answers.noisy))
    records = []
    for recheck, case, verdict in zip(answers.follow_ups, cases, judge.judge(cases), strict=True):
        word = word_of(answers, recheck)
        category = coco().category(word, answers.id)
        soft = judge.reading(judge.parsing, case).value
        record = ObjectRecord(
            word=word,
            category=category,
            present=recheck.reference == "yes",
            kind=verdict.category,
            kind_soft=verdict.category or _set(recheck, None if soft is None else soft == "yes"),
            kind_official=next((v.category for v in verdict.votes if v.judge.endswith(f":{OFFICIAL}")), None),
            by_model=verdict.reason.endswith(f"({MODEL})"),
            readings_differ=len({vote.category for vote in verdict.votes}) > 1,
            reply=verdict.raw or "",
        )
        stories = [[category in story for story in draws] for draws in (clean, noisy)]
        records.append(_with_stories(_with_forced(record, recheck), *stories))
    return records


def word_of(answers: AnswerSet, recheck: AnswerSet) -> str:
    """Return the word that a recheck asks about.

    Raises:
        DataError: the follow-up is no recheck of an object; names it.
    """
    start = f"{answers.id}/"
    if not recheck.id.startswith(start):
        raise DataError(f"{answers.id}: the follow-up {recheck.id!r} is no recheck of one of its objects")
    return recheck.id.removeprefix(start)


def _set(recheck: AnswerSet, affirmed: bool | None) -> str | None:
    """Return the set of a rechecked object that the model says is in the image, or is not."""
    return None if affirmed is None else SETS[recheck.reference == "yes", affirmed]


def _with_forced(record: ObjectRecord, recheck: AnswerSet) -> ObjectRecord:
    """Return it with the model's own distribution over Yes and No, where it tells."""
    shares = option_shares(option_logprobs(recheck.forced))
    if shares is None:
        return record
    yes, no = shares["Yes"], shares["No"]
    return replace(record, kind_forced=_set(recheck, None if yes == no else yes > no), p_yes=yes)


def _with_stories(record: ObjectRecord, clean: Sequence[bool], noisy: Sequence[bool]) -> ObjectRecord:
    """Return it with what the sampled stories say: whether each mentions the object, as the baseline does."""
    in_clean, in_noisy = (sum(draws) / len(draws) if draws else None for draws in (clean, noisy))
    scores = _scores("object", [True, *clean, *noisy], len(clean))
    return replace(record, clean=in_clean, noisy=in_noisy, scores=scores)


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
