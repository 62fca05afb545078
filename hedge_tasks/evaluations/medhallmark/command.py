"""`hedge paper medhallmark`: Med-HallMark's tables out of finished runs, beside the published values."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from hedge_tasks.io.commands import Parser, add_out, command, show, table

if TYPE_CHECKING:
    from hedge_tasks.evaluations.medhallmark.sentences import Sentences
    from hedge_tasks.evaluations.medhallmark.tables import Cell, Numbers, PrefixEffect
    from hedge_tasks.measures.published import Published

_NONE = "-"

_TITLES = {
    "bertscore_f1": "BERTScore",
    "bertscore_recall": "BS R",
    "bertscore_precision": "BS P",
    "meteor": "METEOR",
    "rouge1_f1": "ROUGE-1",
    "rouge2_f1": "ROUGE-2",
    "rougel_f1": "ROUGE-L",
    "bleu": "BLEU",
    "medihall": "MediHall",
    "accuracy": "accuracy",
}

_OF_ONE = ("medihall", "accuracy")
"""Printed as they are; the others times 100, as the paper does."""


def add(commands: Parser) -> None:
    parser = command(
        commands, "medhallmark", _tables, "lay out Med-HallMark's tables from finished runs, beside its values"
    )
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="output folders of lmms-eval, or run files")
    parser.add_argument(
        "--name",
        action="append",
        default=[],
        metavar="MODEL=TEXT",
        help="the runs with TEXT in their model's name are the paper's MODEL, such as LLaVA1.5-7b",
    )
    add_out(parser, "a line for each number, with its interval (CSV)")
    parser.add_argument(
        "--answers", type=Path, metavar="ANSWERS.csv", help="write one line an answer with its measures, as in Table 4"
    )
    parser.add_argument(
        "--support",
        default="words",
        metavar="NAME",
        help="of a sentence by the draws: words (default), or nli, with the model that the run clustered with",
    )


def _tables(arguments: argparse.Namespace) -> int:
    from hedge_tasks.errors import DataError
    from hedge_tasks.evaluations.medhallmark.sentences import sentences_of
    from hedge_tasks.evaluations.medhallmark.tables import (
        PATTERNS,
        answer_rows,
        csv_of,
        is_medhallmark,
        numbers_of,
        prefix_effects,
        published_of,
        rows_of,
    )
    from hedge_tasks.evaluations.medhallmark.wording import stated
    from hedge_tasks.io.files import write_whole
    from hedge_tasks.measures.published import model_of_paper, names_given, read_published
    from hedge_tasks.runs.run_files import load_runs

    names = names_given(arguments.name, list(PATTERNS))
    runs = [run for path in arguments.runs for run in load_runs(path) if is_medhallmark(run)]
    if not runs:
        raise DataError(f"no run of Med-HallMark in {', '.join(map(str, arguments.runs))}")
    published = read_published("hedge_tasks.evaluations.medhallmark")
    found = numbers_of(runs)
    beside = [published_of(n, model_of_paper(n.model, PATTERNS, names), published) for n in found]
    effects, sentences = prefix_effects(found), sentences_of(runs, arguments.support)
    if arguments.out:
        write_whole(arguments.out, csv_of(rows_of(found, beside)))
    if arguments.answers:
        write_whole(arguments.answers, csv_of(answer_rows(found)))
    facts = {
        "runs": [
            {**n.facts(), "published": {name: asdict(p) for name, p in paper.items()}}
            for n, paper in zip(found, beside, strict=True)
        ],
        "prefix_effects": [asdict(effect) for effect in effects],
        "sentences": [one.facts() for one in sentences],
        "wording": stated(),
        "published": [asdict(p) for p in published],
    }
    show(arguments, facts, _text(found, beside, effects, sentences, published))
    return 0


def _text(
    found: Sequence[Numbers],
    beside: Sequence[Mapping[str, Published]],
    effects: Sequence[PrefixEffect],
    sentences: Sequence[Sentences],
    published: Sequence[Published],
) -> str:
    from hedge_tasks.evaluations.medhallmark.tables import LONG, SETTINGS, SHORT
    from hedge_tasks.evaluations.medhallmark.wording import stated
    from hedge_tasks.runs.model_names import short_names

    short = short_names([n.model for n in found])
    parts = []
    for setting, (where, what) in SETTINGS.items():
        mine = [(n, paper) for n, paper in zip(found, beside, strict=True) if n.setting == setting]
        if mine:
            of_setting = [p for p in published if p.setting == setting]
            parts.append(f"{where}: {what}\n{_block(SHORT, mine, of_setting, short)}")
            if setting in ("vqa", "counterfactual", "irg"):
                parts.append(f"{where}, in detail\n{_block(LONG, mine, of_setting, short)}")
    parts += [_reports(found, short), _sentences(sentences, short), _categories(found, short)]
    parts += [_effects(effects, short), _reasons(found, short)]
    parts.append(
        "Wording times 100, as the paper prints it; behind +- the standard error over images. The paper's rows are of "
        "all 7341 items, of which a part is released.\n" + "\n".join(f"{k}: {v}" for k, v in stated().items())
    )
    return "\n\n".join(part for part in parts if part)


def _block(
    measures: Sequence[str],
    mine: Sequence[tuple[Numbers, Mapping[str, Published]]],
    published: Sequence[Published],
    short: Mapping[str, str],
) -> str:
    """Ours, what the paper says of the same model, and the paper's other models."""
    header = ["model", "parts", "answers", *(_title(name) for name in measures)]
    rows = []
    for numbers, paper in mine:
        cells = [_value(name, numbers.cells[name]) for name in measures]
        rows.append([short[numbers.model], "+".join(numbers.parts), str(numbers.answers), *cells])
        if any(name in paper for name in measures):
            rows.append(["  paper", "", "", *(_scaled(n, paper[n].value) if n in paper else _NONE for n in measures)])
    theirs: dict[str, dict[str, float]] = {}
    for p in published:
        theirs.setdefault(p.model, {}).setdefault(p.measure, p.value)
    for model, values in theirs.items():
        if any(name in values for name in measures):
            cells = [_scaled(name, values[name]) if name in values else _NONE for name in measures]
            rows.append([f"paper: {model}", "", "", *cells])
    return table(header, rows)


def _reports(found: Sequence[Numbers], short: Mapping[str, str]) -> str:
    reports = [n for n in found if n.setting == "irg"]
    if not any(n.cells["wrong_sentences"].value is not None for n in reports):
        return ""
    header = ["model", "reports", "wrong sentences", "reports with one", "sentences without a label"]
    rows = []
    for n in reports:
        accuracy = n.cells["accuracy"].value
        any_wrong = _NONE if accuracy is None else f"{1 - accuracy:.3f}"
        wrong, unjudged = (_value("accuracy", n.cells[name]) for name in ("wrong_sentences", "unjudged_sentences"))
        rows.append([short[n.model], str(n.answers), wrong, any_wrong, unjudged])
    return "Sentences of reports; shares are means over reports\n" + table(header, rows)


def _sentences(found: Sequence[Sentences], short: Mapping[str, str]) -> str:
    if not found:
        return ""
    header = ["model", "support", "sentences", "wrong", "detector", "draws", "AUROC", "95 %", "within", "95 %"]
    rows, reasons = [], []
    for one in found:
        about = [short[one.model], one.support, str(one.sentences), str(one.wrong)]
        for row in one.rows:
            title = row.title + (" (blind)" if row.blind else "")
            numbers = [cell for of in (row.estimate, row.within) for cell in (_auroc(of.value), _between(of.interval))]
            rows.append([*about, title, str(row.draws), *numbers])
            about = [""] * len(about)
        if one.reason:
            reasons.append(f"{short[one.model]}: {one.reason}")
    title = (
        "Which sentence of a report is wrong: ROC-AUC over all sentences, and within the report; blind: the best of "
        "what sees neither image nor draws"
    )
    return "\n".join([title, *([table(header, rows)] if rows else []), *reasons])


def _auroc(value: float | None) -> str:
    return _NONE if value is None else f"{value:.3f}"


def _between(interval: tuple[float, float] | None) -> str:
    return "" if interval is None else f"{interval[0]:.3f}-{interval[1]:.3f}"


def _categories(found: Sequence[Numbers], short: Mapping[str, str]) -> str:
    from hedge_tasks.evaluations.medhallmark.tables import CATEGORIES

    known = [n for n in found if n.setting in ("vqa", "irg") and n.cells["medihall"].value is not None]
    if not known:
        return ""
    header = ["model", "", *(name.removeprefix("share_").replace("_", "-") for name in CATEGORIES)]
    rows = [[short[n.model], n.setting, *(_value("accuracy", n.cells[name]) for name in CATEGORIES)] for n in known]
    return "Shares of the categories (Figure 15)\n" + table(header, rows)


def _effects(effects: Sequence[PrefixEffect], short: Mapping[str, str]) -> str:
    if not effects:
        return ""
    header = ["model", "measure", "with prefix", "without", "difference", "95 % interval", "p", "questions"]
    rows = []
    for effect in effects:
        c, name = effect.comparison, effect.measure
        times = 1 if name in _OF_ONE else 100
        interval = _NONE if c.interval is None else f"{times * c.interval[0]:+.2f} .. {times * c.interval[1]:+.2f}"
        difference = _NONE if c.difference is None else f"{times * c.difference:+.2f}"
        p = _NONE if c.p_value is None else "<0.001" if c.p_value < 0.001 else f"{c.p_value:.3f}"
        values = [_NONE if v is None else _scaled(name, v) for v in (c.a, c.b)]
        rows.append([short[effect.model], _title(name), *values, difference, interval, p, str(c.n)])
    return "With the prefix less without, over the same questions, tested between images\n" + table(header, rows)


def _reasons(found: Sequence[Numbers], short: Mapping[str, str]) -> str:
    from hedge_tasks.evaluations.medhallmark.tables import SETTINGS, UNREAD

    told: dict[str, None] = {}
    for n in found:
        if left := n.answers - n.cells["accuracy"].n:
            share, wrong = 100 * left / n.answers, _value("accuracy", n.cells[UNREAD])
            where = SETTINGS[n.setting][1].partition(":")[0]
            text = f"{share:.1f} % of the answers have no label; accuracy {wrong} where these count as wrong"
            told[f"{short[n.model]}, {where}: {text}"] = None
        for name, cell in n.cells.items():
            if cell.value is None and name in _TITLES:
                told[f"{short[n.model]}: {_title(name)} is undefined: {cell.reason}"] = None
    return "\n".join(told)


def _title(name: str) -> str:
    if name in _TITLES:
        return _TITLES[name]
    kind, _, part = name.partition("_")
    return f"{kind.removeprefix('rouge').upper()} {part[0].upper()}" if kind.startswith("rouge") else name


def _value(name: str, cell: Cell) -> str:
    if cell.value is None:
        return _NONE
    return _scaled(name, cell.value) + ("" if cell.stderr is None else f" +-{_scaled(name, cell.stderr)}")


def _scaled(name: str, value: float) -> str:
    return f"{value:.3f}" if name in _OF_ONE else f"{100 * value:.2f}"
