"""People at the gate: a blinded queue of a made set with hidden controls, and what its labels say of the set.

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
from typing import Any, Literal, NamedTuple

from scipy.stats import betabinom, binom, hypergeom

from hedge_tasks.adjudication.designed import MEANINGS, ExpertSaid, PlannedItem, read_experts
from hedge_tasks.audit.plan import KEYS
from hedge_tasks.audit.review import ReviewItem, write_review
from hedge_tasks.errors import DataError
from hedge_tasks.io import outside
from hedge_tasks.io.files import write_whole
from hedge_tasks.io.records import Count, Items, Record
from hedge_tasks.io.tables import as_csv
from hedge_tasks.making.gate.twins import wrong_twin
from hedge_tasks.numbers import FOUR_DIGITS, Number, format_number, format_value
from hedge_tasks.statistics.agreement import cohen_kappa
from hedge_tasks.statistics.base import wilson

WRONG, RIGHT = MEANINGS[:2]
RATERS = 2
LEAST_RIGHT = 0.8
"""Share of controls that a person has to get right to be heard."""

FOLDER, QUEUE = "review", "queue.json"
CLAIM = "Does the answer say something that is not so? 1: yes, it is wrong. 2: no, it is right. 3: it gives no answer."


class ReviewedRow(NamedTuple):
    """A made row as people see it.

    Attributes:
        id: Of the row.
        question, evidence: As they are shown.
        made: The answer that is to be wrong.
        truth: One that is right: a control.
    """

    id: str
    question: str
    evidence: str
    made: str
    truth: str


class ReviewQueue(Record):
    """The queue as it is kept, away from the people.

    Attributes:
        size: Rows of the set.
        items: In the order of the first page; a control has a label and no row.
    """

    hedge_review: Literal[1]
    size: Count
    items: Items[PlannedItem]


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
    drawn = chance.sample(list(rows), min(n, len(rows)))
    shown: list[tuple[ReviewedRow, str, str | None, int | None]] = [(row, row.made, row.id, None) for row in drawn]
    for place, row in enumerate(chance.sample(list(rows), len(drawn))):
        twin = wrong_twin(row.truth) if place % 2 else None
        shown.append((row, row.truth, None, 0) if twin is None else (row, twin, None, 1))
    chance.shuffle(shown)
    width = len(str(len(shown)))
    items, seen = [], {}
    for number, (row, answer, id_, label) in enumerate(shown, start=1):
        code = f"r{number:0{width}d}"
        items.append(PlannedItem(code=code, id=id_, label=label, raters=tuple(range(RATERS))))
        seen[code] = (row, answer)
    files = [folder / QUEUE]
    queue = ReviewQueue(hedge_review=1, size=len(rows), items=tuple(items))
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(files[0], queue.model_dump_json(indent=1) + "\n")
    for rater in range(RATERS):
        codes = [item.code for item in items]
        random.Random(f"{seed}/{rater}").shuffle(codes)
        name = f"labels-{rater + 1}"
        asked = [
            ReviewItem(code, {"Question": row.question, "Evidence": row.evidence, "Answer to judge": answer}, CLAIM)
            for code, (row, answer) in ((code, seen[code]) for code in codes)
        ]
        page, table = folder / f"page-{rater + 1}.html", folder / f"{name}.csv"
        write_review(page, f"{title}, {rater + 1}", asked, KEYS, labels=f"{name}.csv", code="code")
        header = ["code", "question", "evidence", "answer", "label"]
        body = ([code, seen[code][0].question, seen[code][0].evidence, seen[code][1], ""] for code in codes)
        write_whole(table, as_csv([header, *body]))
        files += [page, table]
    return files


@dataclass(frozen=True)
class PeopleSaid:
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

    def to_dict(self) -> dict[str, Any]:
        return {
            "noise": [self.noise.value, self.noise.interval],
            "kappa": self.agreement,
            "controls": {name: list(counts) for name, counts in self.controls.items()},
            "not_wrong": sorted(self.not_wrong),
            "disputed": sorted(self.disputed),
            "looked_at": self.looked_at,
        }


def read_people(folder: Path, files: Sequence[Path]) -> PeopleSaid:
    """Labels that came back, held against the queue of a making.

    Args:
        folder: Of the queue.
        files: As `hedge audit apply` takes them.

    Raises:
        DataError: There is no queue, a code is not in it, or a person fails the controls.
    """
    path = folder / QUEUE
    if not path.is_file():
        raise DataError(f"there is no queue {path}: make the set once without --labels")
    queue = ReviewQueue.read(outside.parse_json(outside.read_text(path), str(path)), str(path))
    return put_together(queue, [each for file in files for each in read_experts(file)])


def put_together(queue: ReviewQueue, said: Sequence[ExpertSaid]) -> PeopleSaid:
    """Combine what people said of the items of a queue.

    Raises:
        DataError: A code is not of the queue, somebody labels an item twice, or a person fails the controls.
    """
    by_code = {item.code: item for item in queue.items}
    labels: dict[str, dict[str, str]] = {}
    for each in said:
        if each.code not in by_code:
            raise DataError(f"{each.where}: {each.code!r} is no item of this queue")
        mine = labels.setdefault(each.rater, {})
        if each.code in mine:
            raise DataError(f"{each.where}: {each.rater} labels {each.code!r} twice")
        mine[each.code] = each.meaning
    controls = _controls(by_code, labels)
    of_row: dict[str, list[str]] = {}
    for mine in labels.values():
        for code, meaning in mine.items():
            if (id_ := by_code[code].id) is not None:
                of_row.setdefault(id_, []).append(meaning)
    not_wrong = frozenset(id_ for id_, meanings in of_row.items() if WRONG not in meanings)
    disputed = frozenset(id_ for id_, meanings in of_row.items() if WRONG in meanings and set(meanings) != {WRONG})
    noise = label_noise(len(not_wrong), len(disputed), len(of_row), queue.size, missed=_missed(by_code, labels))
    return PeopleSaid(noise, _kappa(labels), controls, not_wrong, disputed, len(of_row))


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
    found = {}
    for rater, mine in labels.items():
        known = [(items[code].label, meaning) for code, meaning in mine.items() if items[code].label is not None]
        right = sum(meaning == (WRONG if label else RIGHT) for label, meaning in known)
        if known and wilson(right / len(known), len(known), 0.95)[1] < LEAST_RIGHT:
            raise DataError(f"{rater} gets {right} of {len(known)} hidden controls right: these labels cannot be used")
        found[rater] = (right, len(known))
    return found


def _missed(items: Mapping[str, PlannedItem], labels: Mapping[str, Mapping[str, str]]) -> tuple[int, int]:
    """Controls made wrong that nobody called wrong, and all that every person labelled."""
    said = [[mine.get(code) for mine in labels.values()] for code, item in items.items() if item.label == 1]
    whole = [meanings for meanings in said if meanings and None not in meanings]
    return sum(WRONG not in meanings for meanings in whole), len(whole)


def _kappa(labels: Mapping[str, Mapping[str, str]]) -> float | None:
    if len(labels) != RATERS:
        return None
    one, other = labels.values()
    both = [code for code in one if code in other]
    if not both or Counter(one[c] for c in both) == {one[both[0]]: len(both)}:
        return None
    return cohen_kappa([one[c] for c in both], [other[c] for c in both], n_resamples=2).value


def people_rows(said: PeopleSaid) -> tuple[Sequence[str], list[list[str]]]:
    """Header and rows of a card's table."""
    noise = format_number(said.noise, FOUR_DIGITS, interval=True)
    rows = [
        ["rows that people looked at", str(said.looked_at)],
        ["of these not wrong, and left out", str(len(said.not_wrong))],
        ["of these disputed, and kept", str(len(said.disputed))],
        ["share of the set that is not wrong, before these were left out", noise],
        ["Cohen's kappa", format_value(said.agreement, FOUR_DIGITS)],
    ]
    rows += [[f"hidden controls right, {name}", f"{right} of {n}"] for name, (right, n) in said.controls.items()]
    return ("", ""), rows
