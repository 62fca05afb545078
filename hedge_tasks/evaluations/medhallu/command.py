"""`hedge paper medhallu`: MedHallu's tables out of finished runs, beside the published values."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from hedge_tasks.io.commands import Parser, add_out, command, show, table
from hedge_tasks.replies.parsing import PARSINGS

if TYPE_CHECKING:
    from hedge_tasks.evaluations.medhallu.abstention import Abstention
    from hedge_tasks.evaluations.medhallu.tables import Cell, Difference, TaskNumbers
    from hedge_tasks.measures.published import Published

_NONE = "-"

_TITLES = {
    "f1": "F1",
    "precision": "precision",
    "recall": "recall",
    "accuracy": "accuracy",
    "f1_easy": "F1 easy",
    "f1_medium": "F1 medium",
    "f1_hard": "F1 hard",
    "response_rate": "answered",
}


def add(commands: Parser) -> None:
    parser = command(commands, "medhallu", _tables, "lay out MedHallu's tables from finished runs, beside its values")
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="output folders of lmms-eval, or run files")
    parser.add_argument("--parsing", choices=PARSINGS, help="take this reading of the stored replies")
    parser.add_argument(
        "--name",
        action="append",
        default=[],
        metavar="MODEL=TEXT",
        help="the runs with TEXT in their model's name are the paper's MODEL, such as Qwen2.5-7B",
    )
    add_out(parser, "a line for each number, with its interval (CSV)")


def _tables(arguments: argparse.Namespace) -> int:
    from hedge_tasks.errors import DataError
    from hedge_tasks.evaluations.medhallu.abstention import abstentions
    from hedge_tasks.evaluations.medhallu.tables import (
        PATTERNS,
        csv_of,
        differences,
        is_medhallu,
        numbers_of,
        published_of,
        rows_of,
    )
    from hedge_tasks.io.files import write_whole
    from hedge_tasks.measures.published import model_of_paper, names_given, read_published
    from hedge_tasks.runs.run_files import load_runs

    names = names_given(arguments.name, list(PATTERNS))
    runs = [run for path in arguments.runs for run in load_runs(path) if is_medhallu(run)]
    if not runs:
        raise DataError(f"no run of MedHallu in {', '.join(map(str, arguments.runs))}")
    found = [numbers_of(run, arguments.parsing) for run in runs]
    found.sort(key=lambda n: (n.model, n.variant, n.task))
    published = read_published("hedge_tasks.evaluations.medhallu")
    beside = [published_of(n, model_of_paper(n.model, PATTERNS, names), published) for n in found]
    changes, left_out = differences(found), abstentions(found)
    rows = rows_of(found, beside)
    if arguments.out:
        write_whole(arguments.out, csv_of(rows))
    facts = {
        "runs": [
            {**n.facts(), "published": {name: asdict(p) for name, p in paper.items()}}
            for n, paper in zip(found, beside, strict=True)
        ],
        "differences": [asdict(change) for change in changes],
        "abstention": [asdict(one) for one in left_out],
        "published": [asdict(p) for p in published],
    }
    show(arguments, facts, _text(found, beside, changes, left_out, published))
    return 0


def _text(
    found: Sequence[TaskNumbers],
    beside: Sequence[Mapping[str, Published]],
    changes: Sequence[Difference],
    left_out: Sequence[Abstention],
    published: Sequence[Published],
) -> str:
    from hedge_tasks.evaluations.medhallu.tables import GROUPS, KINDS

    about = _About(found)
    parts = [
        _main(found, beside, about),
        _means(published),
        _difficulty(found, about),
        _accuracies("Accuracy by category of the row's hallucination", KINDS, "", found, beside, about, published),
        _accuracies("Accuracy by MeSH group", GROUPS, "mesh_", found, beside, about, published),
        _references(found, about),
        _changes(changes, about),
        _abstention(left_out, about),
    ]
    return "\n\n".join(part for part in parts if part)


class _About:
    """The first columns of every table: which run a row is of. What all runs share is said once, above."""

    def __init__(self, found: Sequence[TaskNumbers]) -> None:
        from hedge_tasks.runs.model_names import short_names

        self.short = short_names([n.model for n in found])
        self.shared = found[0].variant.asked if len({n.variant.asked for n in found}) == 1 else ""
        self.header = ["model", "shown, offered"] if self.shared else ["model", "asked", "shown, offered"]

    def of(self, model: str, asked: str, setting: str) -> list[str]:
        return (
            [self.short.get(model, model), setting] if self.shared else [self.short.get(model, model), asked, setting]
        )

    def __call__(self, numbers: TaskNumbers) -> list[str]:
        return self.of(numbers.model, numbers.variant.asked, numbers.variant.setting)


def _main(found: Sequence[TaskNumbers], beside: Sequence[Mapping[str, Published]], about: _About) -> str:
    header = [*about.header, "documents", *_TITLES.values()]
    rows: list[list[str]] = []
    nothing = [""] * len(about.header)
    for numbers, paper in zip(found, beside, strict=True):
        rows.append([*about(numbers), str(numbers.documents), *(_value(numbers.cells[name]) for name in _TITLES)])
        if any(name in paper for name in _TITLES):
            theirs = [f"{paper[name].value:.3f}" if name in paper else _NONE for name in _TITLES]
            rows.append(["  paper", *nothing, *theirs])
            rows.append(["  difference", *nothing, *(_less(numbers.cells[n], paper.get(n)) for n in _TITLES)])
    lines = [
        "Detection; positive: hallucinated; over documents with a verdict 0 or 1; behind +- the standard error"
        + (f"; documents: {about.shared}" if about.shared else ""),
        table(header, rows),
    ]
    for numbers in found:
        names = ["f1"] if numbers.cells["f1"].value is None else list(_TITLES)  # or every row would say the same
        if reasons := {cell.reason for name in names if (cell := numbers.cells[name]).reason}:
            lines.append(f"{numbers.task} of {about.short[numbers.model]}: {'; '.join(sorted(map(str, reasons)))}")
        unread = numbers.cells["unreadable_rate"].value
        if unread:
            wrong = numbers.cells["f1_unread_wrong"].value
            lines.append(
                f"{numbers.task} of {about.short[numbers.model]}: {100 * unread:.1f} % of the replies cannot be read; "
                f"F1 {_number(wrong)} where these count as wrong"
            )
    return "\n".join(lines)


def _means(published: Sequence[Published]) -> str:
    """What the paper says of all its models: it prints few single ones outside figures."""
    from hedge_tasks.evaluations.medhallu.tables import MEANS

    told = [f"{p.model}, {p.setting}: F1 {p.value:.3f}" for p in published if p.model in MEANS]
    return "The paper's averages: " + "; ".join(told)


def _difficulty(found: Sequence[TaskNumbers], about: _About) -> str:
    measures = [f"{of}_{level}" for of in ("precision", "recall") for level in ("easy", "medium", "hard")]
    offered = [n for n in found if n.variant.not_sure]
    header = [*about.header, *(name.replace("_", " ") for name in measures)]
    rows = [[*about(n), *(_value(n.cells[name]) for name in measures)] for n in found]
    parts = ["Precision and recall by difficulty\n" + table(header, rows)]
    if offered:
        rates = ["not_sure_rate", *(f"not_sure_rate_{level}" for level in ("easy", "medium", "hard"))]
        rows = [[*about(n), *(_value(n.cells[name]) for name in rates)] for n in offered]
        parts.append('Share of "not sure"\n' + table([*about.header, "all", "easy", "medium", "hard"], rows))
    return "\n\n".join(parts)


def _accuracies(
    title: str,
    measures: Sequence[str],
    prefix: str,
    found: Sequence[TaskNumbers],
    beside: Sequence[Mapping[str, Published]],
    about: _About,
    published: Sequence[Published],
) -> str:
    known = [
        (n, paper)
        for n, paper in zip(found, beside, strict=True)
        if any(n.cells[m].value is not None for m in measures)
    ]
    if not known:
        return ""
    header = [*about.header, *(name.removeprefix(f"accuracy_{prefix}") for name in measures)]
    rows = [[*about(n), *(_value(n.cells[name]) for name in measures)] for n, _ in known]
    theirs: dict[str, dict[str, float]] = {}
    for p in published:
        if p.measure in measures:
            theirs.setdefault(f"paper: {p.model}", {})[p.measure] = p.value
    rows += [
        [*about.of(name, "", "plain"), *(f"{values[m]:.3f}" if m in values else _NONE for m in measures)]
        for name, values in theirs.items()
    ]
    return f"{title}\n{table(header, rows)}"


def _references(found: Sequence[TaskNumbers], about: _About) -> str:
    header = [*about.header, "F1", "all called hallucinated", "shorter ones called hallucinated"]
    names = ("f1", "f1_constant", "f1_length")
    rows = [[*about(n), *(_value(n.cells[name]) for name in names)] for n in found]
    return "F1 that can be had without medicine\n" + table(header, rows)


def _changes(changes: Sequence[Difference], about: _About) -> str:
    if not changes:
        return ""
    header = [
        *about.header[:-1],
        "difference",
        "of",
        "with",
        "without",
        "difference",
        "95 % interval",
        "p",
        "Holm",
        "n",
    ]
    rows = []
    for change in changes:
        c = change.comparison
        what = change.what + (f" (both {change.given})" if change.given else "")
        row = [*about.of(change.model, change.asked, what), _title(change.measure), _number(c.a), _number(c.b)]
        interval = _NONE if c.interval is None else f"{c.interval[0]:+.3f} .. {c.interval[1]:+.3f}"
        shown = _NONE if c.difference is None else f"{c.difference:+.3f}"
        rows.append([*row, shown, interval, _p(c.p_value), _p(change.p_holm), str(c.n)])
    reasons = sorted(
        {f"{_title(change.measure)}: {change.comparison.reason}" for change in changes if change.comparison.reason}
    )
    lines = [
        "With less without, paired by document; tested between rows of the data set; Holm: adjusted for all rows",
        table(header, rows),
        *reasons,
    ]
    return "\n".join(lines)


def _abstention(left_out: Sequence[Abstention], about: _About) -> str:
    if not left_out:
        return ""
    header = [
        *about.header[:-1],
        "shown",
        "n",
        "answered",
        "wrong",
        "score",
        "wrong by score",
        "difference",
        "95 % interval",
    ]
    rows = []
    for one in left_out:
        first = about.of(one.model, one.asked, one.given or "plain")
        first += [str(one.documents), f"{one.coverage:.3f}", _value(one.risk)]
        for name, (risk, difference) in one.at_coverage.items():
            interval = difference.interval
            shown = _NONE if interval is None else f"{interval[0]:+.3f} .. {interval[1]:+.3f}"
            value = _NONE if difference.value is None else f"{difference.value:+.3f}"
            rows.append([*first, name, _value(risk), value, shown])
        if not one.at_coverage:
            rows.append([*first, *[_NONE] * 4])
    title = (
        'Risk (share of wrong verdicts) where "not sure" is offered, beside the same coverage without the offer: the '
        "documents are left out that a score is least sure of"
    )
    return f"{title}\n{table(header, rows)}"


def _title(measure: str) -> str:
    name, comma, rest = measure.partition(",")
    return _TITLES.get(name, name) + comma + rest


def _value(cell: Cell) -> str:
    if cell.value is None:
        return _NONE
    return f"{cell.value:.3f}" + ("" if cell.stderr is None else f" +-{cell.stderr:.3f}")


def _less(cell: Cell, theirs: Published | None) -> str:
    return _NONE if cell.value is None or theirs is None else f"{cell.value - theirs.value:+.3f}"


def _number(value: float | None) -> str:
    return _NONE if value is None else f"{value:.3f}"


def _p(value: float | None) -> str:
    return _NONE if value is None else "<0.001" if value < 0.001 else f"{value:.3f}"
