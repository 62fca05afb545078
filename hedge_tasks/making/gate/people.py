"""Review by people: a blinded queue of a made set with hidden controls, and what its labels say of the set.

A page shows question, evidence and one answer, and neither what is true nor what is expected. Half of the answers are
controls: true ones, and true ones made wrong by one word. Two people label everything.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from scipy.stats import betabinom, binom, hypergeom

from hedge_tasks.errors import DataError
from hedge_tasks.judging.designed import MEANINGS, ExpertSaid, PlannedItem, read_experts
from hedge_tasks.making.gate.controls import surely_below
from hedge_tasks.making.gate.queue import LEAST_RIGHT, RATERS, QueueEntry, ReviewQueue, read_queue, write_pages
from hedge_tasks.making.gate.twins import wrong_twin
from hedge_tasks.measures.audit_plan import KEYS
from hedge_tasks.numbers import FOUR_DIGITS, Number, format_number, format_value
from hedge_tasks.statistics.agreement import cohen_kappa

WRONG, RIGHT = MEANINGS[:2]
FOLDER = "review"
CLAIM = "Does the answer say something that is not so? 1: yes, it is wrong. 2: no, it is right. 3: it gives no answer."


class ReviewedRow(NamedTuple):
    """A made row as people see it.

    Attributes:
        id: Of the row.
        question, evidence: As they are shown.
        wrong: The answer that is to be wrong.
        truth: One that is right: a control.
    """

    id: str
    question: str
    evidence: str
    wrong: str
    truth: str


def write_queue(folder: Path, title: str, rows: Sequence[ReviewedRow], *, n: int, seed: int = 0) -> list[Path]:
    """Draw rows at random, and write the queue, and for each of two people a page and a CSV.

    Args:
        n: Rows to look at, at most; as many controls come on top.

    Returns:
        The files, the queue first.

    Raises:
        DataError: A file cannot be written.
    """
    chance = random.Random(f"{seed}/{len(rows)}")
    sampled = chance.sample(list(rows), min(n, len(rows)))
    entries = [_entry(row, row.wrong, row.id, None) for row in sampled]
    for place, row in enumerate(chance.sample(list(rows), len(sampled))):
        twin = wrong_twin(row.truth) if place % 2 else None
        entries.append(_entry(row, row.truth, None, 0) if twin is None else _entry(row, twin, None, 1))
    chance.shuffle(entries)
    columns = ("question", "evidence", "answer")
    return write_pages(folder, title, entries, CLAIM, KEYS, prefix="r", size=len(rows), seed=seed, columns=columns)


def _entry(row: ReviewedRow, answer: str, id_: str | None, label: int | None) -> QueueEntry:
    texts = {"Question": row.question, "Evidence": row.evidence, "Answer to judge": answer}
    return QueueEntry(id_, label, texts)


@dataclass(frozen=True)
class PeopleVerdicts:
    """People's verdicts on a made set.

    Attributes:
        noise: Share of rows whose answer is not wrong, with an exact interval; people who disagree widen it.
        agreement: Cohen's kappa over all items; None where there is none.
        controls: By person: controls got right, and all.
        not_wrong: Ids of rows that all who looked call right, or no answer.
        disputed: Ids of rows about which people disagree.
        looked_at: Rows with a label.
    """

    noise: Number
    agreement: float | None
    controls: Mapping[str, tuple[int, int]]
    not_wrong: frozenset[str]
    disputed: frozenset[str]
    looked_at: int


def read_people(folder: Path, files: Sequence[Path]) -> PeopleVerdicts:
    """Labels that came back, held against the queue of a making.

    Args:
        folder: Of the queue.
        files: As `hedge audit apply` takes them.

    Raises:
        DataError: There is no queue, a code is not in it, or a person fails the controls.
    """
    queue = read_queue(folder, "make the set once without --labels")
    return combine_labels(queue, [label for file in files for label in read_experts(file)])


def combine_labels(queue: ReviewQueue, expert_labels: Sequence[ExpertSaid]) -> PeopleVerdicts:
    """Combine what people said of the items of a queue.

    Raises:
        DataError: A code is not of the queue, somebody labels an item twice, or a person fails the controls.
    """
    by_code = {item.code: item for item in queue.items}
    labels: dict[str, dict[str, str]] = {}
    for label in expert_labels:
        if label.code not in by_code:
            raise DataError(f"{label.where}: {label.code!r} is no item of this queue")
        mine = labels.setdefault(label.rater, {})
        if label.code in mine:
            raise DataError(f"{label.where}: {label.rater} labels {label.code!r} twice")
        mine[label.code] = label.meaning
    controls = _controls(by_code, labels)
    by_row: dict[str, list[str]] = {}
    for mine in labels.values():
        for code, meaning in mine.items():
            if (id_ := by_code[code].id) is not None:
                by_row.setdefault(id_, []).append(meaning)
    not_wrong = frozenset(id_ for id_, meanings in by_row.items() if WRONG not in meanings)
    disputed = frozenset(id_ for id_, meanings in by_row.items() if WRONG in meanings and set(meanings) != {WRONG})
    noise = label_noise(len(not_wrong), len(disputed), len(by_row), queue.size, missed=_missed(by_code, labels))
    return PeopleVerdicts(noise, _kappa(labels), controls, not_wrong, disputed, len(by_row))


def label_noise(
    mislabelled: int,
    disputed: int,
    n: int,
    size: int,
    confidence: float = 0.95,
    missed: tuple[int, int] | None = None,
) -> Number:
    r"""Share of a set that is mislabelled, from a simple random sample of it, by the hypergeometric distribution.

    Disputed rows count by halves; the interval reaches from none of them to all of them. People who dispute a share
    :math:`d` err on :math:`e = (1 - \sqrt{1 - 2d}) / 2` of the rows, so both err on :math:`e^2` of them: as many as
    that may bring are not counted in the lower end. People may also err together, on what is hard for both: as many
    rows as the controls that all of them missed let expect (Jeffreys' prior, beta-binomial) are not counted either.

    Args:
        missed: Controls made wrong that everybody called right, and all that everybody labelled; None: not known.
    """
    if not n:
        return Number(None, n=0, reason="nobody has looked at a row")
    erring = (1 - math.sqrt(max(0.0, 1 - 2 * disputed / n))) / 2
    both = int(binom.ppf(1 - (1 - confidence) / 2, n, erring**2))
    if missed is not None and missed[1]:
        together = betabinom.ppf(1 - (1 - confidence) / 2, n, missed[0] + 0.5, missed[1] - missed[0] + 0.5)
        both = max(both, int(together))
    low = _bound(max(0, mislabelled - both), n, size, (1 - confidence) / 2, upper=False)
    high = _bound(mislabelled + disputed, n, size, (1 - confidence) / 2, upper=True)
    value = (mislabelled + disputed / 2) / n
    return Number(
        value, interval=(low / size, high / size), n=n, n_positive=mislabelled, method="exact, hypergeometric"
    )


def _bound(seen: int, n: int, size: int, tail: float, *, upper: bool) -> int:
    """Most (or fewest) mislabelled rows of the set under which what was seen is no rarer than the tail."""
    first, last = seen, size - (n - seen)
    while first < last:
        middle = (first + last + upper) // 2
        if upper:
            fits = hypergeom.cdf(seen, size, middle, n) >= tail
            first, last = (middle, last) if fits else (first, middle - 1)
        else:
            fits = hypergeom.sf(seen - 1, size, middle, n) >= tail
            first, last = (first, middle) if fits else (middle + 1, last)
    return first


def _controls(items: Mapping[str, PlannedItem], labels: Mapping[str, Mapping[str, str]]) -> dict[str, tuple[int, int]]:
    results = {}
    for rater, mine in labels.items():
        controls = [(items[code].label, meaning) for code, meaning in mine.items() if items[code].label is not None]
        right = sum(meaning == (WRONG if label else RIGHT) for label, meaning in controls)
        if surely_below(right, len(controls), LEAST_RIGHT):
            raise DataError(
                f"{rater} gets {right} of {len(controls)} hidden controls right: these labels cannot be used"
            )
        results[rater] = (right, len(controls))
    return results


def _missed(items: Mapping[str, PlannedItem], labels: Mapping[str, Mapping[str, str]]) -> tuple[int, int]:
    """Controls made wrong that nobody called wrong, and all that every person labelled."""
    by_item = [[mine.get(code) for mine in labels.values()] for code, item in items.items() if item.label == 1]
    complete = [meanings for meanings in by_item if meanings and None not in meanings]
    return sum(WRONG not in meanings for meanings in complete), len(complete)


def _kappa(labels: Mapping[str, Mapping[str, str]]) -> float | None:
    if len(labels) != RATERS:
        return None
    first, second = labels.values()
    both = [code for code in first if code in second]
    if not both or Counter(first[c] for c in both) == {first[both[0]]: len(both)}:
        return None
    return cohen_kappa([first[c] for c in both], [second[c] for c in both]).value


def people_tables(people: PeopleVerdicts | None) -> dict[str, tuple[Sequence[str], list[list[str]]]]:
    """Tables for a card, header and rows by title; none without labels of people."""
    if people is None:
        return {}
    noise = format_number(people.noise, FOUR_DIGITS, interval=True)
    rows = [
        ["rows that people looked at", str(people.looked_at)],
        ["of these not wrong, and left out", str(len(people.not_wrong))],
        ["of these disputed, and kept", str(len(people.disputed))],
        ["share of the set that is not wrong, before these were left out", noise],
        ["Cohen's kappa", format_value(people.agreement, FOUR_DIGITS)],
    ]
    rows += [[f"hidden controls right, {name}", f"{right} of {n}"] for name, (right, n) in people.controls.items()]
    return {"What people say": (("", ""), rows)}
