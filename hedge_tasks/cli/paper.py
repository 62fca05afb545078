"""`hedge paper hedge`: finished runs laid out as Tables 2 and 3 of the HEDGE paper, beside the published values."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from hedge_tasks.cli.choices import add_trust, key_and_value, printable
from hedge_tasks.evaluation import evaluation_commands
from hedge_tasks.io.commands import PROBLEMS_FOUND, Parser, add_out, command, show
from hedge_tasks.numbers import MISSING, THREE_DIGITS, Format, Table, format_value

if TYPE_CHECKING:
    from hedge_tasks.detectors.scorer import Scorer
    from hedge_tasks.measures.fidelity import ProtocolSetting
    from hedge_tasks.measures.hedge_paper.cells import CellResult, Placed
    from hedge_tasks.measures.hedge_paper.layout import PaperRow
    from hedge_tasks.measures.hedge_paper.published import Key, PublishedNumber
    from hedge_tasks.runs.run_files import Run

_DIGITS = {2: 3, 3: 2}
_SIGNED = Format(2, signed=True)


def add(commands: Parser) -> None:
    papers = commands.add_command("paper", "lay finished runs out as a paper's tables, beside its own values")
    parser = command(papers, "hedge", run, "lay runs out as Tables 2 and 3 of the HEDGE paper, beside its values")
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="output folders of lmms-eval, or run files")
    parser.add_argument("--table", type=int, choices=(2, 3), help="only this table")
    parser.add_argument(
        "--name",
        action="append",
        default=[],
        metavar="MODEL=TEXT",
        help="the runs with TEXT in their model's name are the paper's MODEL (LLaVA-Med, Med-Gemma or Qwen2.5-VL)",
    )
    parser.add_argument("--nli-model", metavar="MODEL", help="cluster nli and nli_qa with this model")
    parser.add_argument("--embedding-model", metavar="MODEL", help="cluster embed and embed_qa with this model")
    parser.add_argument("--threshold", help="cosine threshold of embed and embed_qa (default: the runs' own)")
    parser.add_argument(
        "--as",
        dest="protocol",
        choices=("reference", "paper"),
        help="cluster and choose thresholds as the paper's code does, or as its text says (default: as the runs did)",
    )
    add_out(parser, "a line for each cell (CSV)")
    parser.add_argument(
        "--figure",
        type=Path,
        metavar="FIGURE2.pdf",
        help="draw Figure 2 from our cells of Table 3: a panel a score, prompts in colours, NLI dashed (png, svg, pdf "
        "or csv)",
    )
    add_trust(parser)
    for add_command in evaluation_commands("paper"):
        add_command(papers)


def run(arguments: argparse.Namespace) -> int:
    from hedge_tasks.io.files import write_whole
    from hedge_tasks.io.progress import progress
    from hedge_tasks.measures.fidelity import fidelity, merged
    from hedge_tasks.measures.hedge_paper import at_equal_draws, place_runs, published_cells, score_cells
    from hedge_tasks.measures.hedge_paper.layout import as_csv, as_rows, describe
    from hedge_tasks.report.plots import check_format
    from hedge_tasks.runs.run_files import load_runs

    if arguments.figure:
        check_format(arguments.figure, table=True)
    names = _names(arguments.name)
    finished = [run for path in arguments.runs for run in load_runs(path, trust=arguments.trust_run)]
    placed = place_runs(finished, names)
    tables = [arguments.table] if arguments.table else [2, 3]
    cells = [cell for number in tables for cell in published_cells(number)]
    columns = _scorers(arguments)
    scored = score_cells(cells, placed.runs, columns)
    by_cell = {r.cell: r for r in progress(scored, total=len(cells), name="Scoring", unit="cell")}
    results = [by_cell[cell] for cell in cells]
    if arguments.out:
        write_whole(arguments.out, as_csv(results))
    if arguments.figure:
        _draw_figure_2(results, arguments.figure)
    # The tables rest on the placed runs; where there are none, what was given is described.
    described = list(placed.runs.values()) or finished
    settings = [None if columns is None else {n: s.settings() for n, s in columns(run_).items()} for run_ in described]
    block = merged([fidelity(run_, filters) for run_, filters in zip(described, settings, strict=True)])
    facts = {
        "runs": [describe(key, run_) for key, run_ in placed.runs.items()],
        "left_out": list(placed.left_out),
        "cells": as_rows(results),
        "equal_draws": at_equal_draws(results),
        "protocol": arguments.protocol,
        "fidelity": block,
    }
    show(arguments, facts, _text(placed, results), fidelity_text(block, len(described)))
    return 0 if placed.runs else PROBLEMS_FOUND


def _draw_figure_2(results: Sequence[CellResult], path: Path) -> None:
    from hedge_tasks.errors import ConfigError
    from hedge_tasks.measures.hedge_paper.published import SCORES
    from hedge_tasks.report.plots import draw_panels, family_charts

    curves: dict[str, dict[tuple[str, str], list[tuple[int, float]]]] = {score: {} for score in SCORES.values()}
    for result in results:
        if result.cell.table == 3 and result.ours is not None:
            by_prompt = curves[SCORES[result.cell.score]]
            key = (result.cell.prompt, "NLI" if result.cell.clustering == "NLI" else "embedding")
            by_prompt.setdefault(key, []).append((result.cell.n, result.ours))
    if not any(curves.values()):
        raise ConfigError("--figure: no cell of Table 3 is here; it needs a run of Qwen2.5-VL on a hedge_vqarad task")
    draw_panels(family_charts(curves), path)


def _names(entries: Sequence[str]) -> dict[str, str]:
    return dict(key_and_value("--name", entry, "MODEL=TEXT such as Qwen2.5-VL=my-copy") for entry in entries)


def _scorers(arguments: argparse.Namespace) -> Callable[[Run], Mapping[str, Scorer]] | None:
    """The four columns of a run as a protocol or options have them; None where nothing but the runs' own is asked."""
    from hedge_tasks.cli.choices import threshold_of
    from hedge_tasks.runs.protocols import OURS, protocol_of
    from hedge_tasks.runs.scorers import protocol_scorers, scorers_of

    changes: dict[str, dict[str, Any]] = {"nli": {}, "embed": {}}
    if arguments.nli_model:
        changes["nli"] = {"model": arguments.nli_model, "revision": None}
    if arguments.embedding_model:
        changes["embed"] = {"model": arguments.embedding_model, "revision": None}
    if arguments.threshold is not None:
        changes["embed"]["threshold"] = threshold_of(arguments.threshold)
    if arguments.protocol is None and not any(changes.values()):
        return None
    if arguments.protocol is not None:
        protocol = protocol_of(arguments.protocol)
        return lambda run: protocol_scorers(run, protocol, changes)
    changed = tuple(backend for backend, options in changes.items() if options)

    def columns(run: Run) -> dict[str, Scorer]:
        ours = protocol_scorers(run, OURS, changes)
        own = scorers_of(run) if run.settings.get("filters") else {}
        return {name: scorer if name.startswith(changed) else own.get(name, scorer) for name, scorer in ours.items()}

    return columns


def fidelity_text(facts: Sequence[ProtocolSetting], n_runs: int) -> str:
    """The fidelity block: what each setting is in the run, the paper and its code, with a mark at what differs."""
    counts = " and ".join(
        f"{sum(name in fact.differs for fact in facts)} from the {what}"
        for name, what in (("paper", "paper"), ("reference", "reference code (hedge-bench 0.1.2)"))
    )
    which = "the run" if n_runs == 1 else f"{n_runs} runs"
    lines = [f"Fidelity of {which}: * marks what differs; of {len(facts)} settings {counts}"]
    lines += _columns(("setting", "run", "  paper", "  reference code"))
    for fact in facts:
        marks = ("* " if name in fact.differs else "  " for name in ("paper", "reference"))
        theirs = (mark + text for mark, text in zip(marks, (fact.paper, fact.reference), strict=True))
        lines += _columns((fact.setting, printable(fact.run), *theirs))
    return "\n".join(lines)


def _columns(cells: Sequence[str]) -> list[str]:
    """Return a row of left-aligned columns, whose texts run on over several lines."""
    widths = (30, 38, 38, 38)
    parts = [
        wrap(cell.lstrip(), width, initial_indent=cell[: len(cell) - len(cell.lstrip())], subsequent_indent="  ")
        for cell, width in zip(cells, widths, strict=True)
    ]
    rows = zip_longest(*parts, fillvalue="")
    return ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _text(placed: Placed, results: Sequence[CellResult]) -> str:
    """The runs, a block for each data set and model that has one, how far ours is from theirs, and what is missing."""
    by_cell = {result.cell: result for result in results}
    parts = [
        _runs(placed),
        *_table_2(placed, by_cell),
        *_table_3(placed, by_cell),
        _equal_draws(results),
        _summary(results),
        _missing(results),
    ]
    return "\n\n".join(part for part in parts if part)


def _runs(placed: Placed) -> str:
    from hedge_tasks.measures.hedge_paper.layout import describe

    facts = [describe(key, placed.runs[key]) for key in sorted(placed.runs, key=_in_paper_order)]
    columns = (
        "dataset",
        "model",
        "prompt",
        "judge",
        "n",
        "hallucinated",
        "labelled",
        "questions",
        "paper_questions",
        "answered_by",
    )
    rows = [[printable(str(fact[column])) for column in columns] for fact in facts]
    notes = [f"left out: {printable(reason)}" for reason in placed.left_out]
    return str(Table.of([column.replace("_", " ") for column in columns], rows, notes=notes))


def _in_paper_order(key: Key) -> tuple[int, ...]:
    from hedge_tasks.measures.hedge_paper.published import DATASETS, MODELS, PROMPTS

    return list(DATASETS).index(key.dataset), MODELS.index(key.model), PROMPTS.index(key.prompt)


def _table_2(placed: Placed, results: Mapping[PublishedNumber, CellResult]) -> list[str]:
    if not placed.runs or not any(cell.table == 2 for cell in results):
        return []
    title = "Table 2: ROC-AUC with 10 clean and 10 noisy answers; ours, the paper's, difference"
    blocks = dict.fromkeys((key.dataset, key.model) for key in sorted(placed.runs, key=_in_paper_order))
    parts = [title, *(f"{dataset}, {model}\n{_block(dataset, model, results)}" for dataset, model in blocks)]
    ours = {cell: result.ours for cell, result in results.items()}
    parts += [_laid_out_2(dataset, ours) for dataset in dict.fromkeys(dataset for dataset, _ in blocks)]
    return parts


def _laid_out_2(dataset: str, ours: Mapping[PublishedNumber, float | None]) -> str:
    """Our numbers as the paper prints its own, and its means below ours."""
    from hedge_tasks.measures.hedge_paper.layout import MEAN, columns_of_table_2, rows_of_table_2
    from hedge_tasks.measures.hedge_paper.published import published

    header = ["", *(f"{inputs} {model} {clustering}" for inputs, model, clustering in columns_of_table_2())]
    rows = [[f"{row.prompt} {row.score}", *_marked(row, 3)] for row in rows_of_table_2(ours, dataset)]
    means = [row for row in rows_of_table_2(published(2), dataset) if row.prompt == MEAN]
    rows += [[f"{MEAN} {row.score}, paper", *_marked(row, 3)] for row in means]
    legend = "* the better clustering, ** the best of the row; means over models and prompts where all are there"
    return str(Table.of(header, rows, title=f"Table 2 as the paper lays it out, {dataset}: {legend}"))


def _marked(row: PaperRow, digits: int) -> list[str]:
    marks = ["**" if i in row.top else "*" if i in row.best else "" for i in range(len(row.values))]
    values = zip(row.values, marks, strict=True)
    return [MISSING if value is None else Format(digits, suffix=mark)(value) for value, mark in values]


def _block(dataset: str, model: str, results: Mapping[PublishedNumber, CellResult]) -> str:
    from hedge_tasks.measures.hedge_paper.published import FILTERS, PROMPTS, SCORES, TABLE_2_N, PublishedNumber

    header = ["", *(name for filter_ in FILTERS.values() for name in (filter_, "paper", "diff"))]
    rows: list[list[str]] = []
    for prompt in PROMPTS:
        for score in SCORES:
            row = [f"{prompt} {score}"]
            for inputs, clustering in FILTERS:
                row += _three(results[PublishedNumber(2, dataset, prompt, model, score, inputs, clustering, TABLE_2_N)])
            rows.append(row)
    return str(Table.of(header, rows))


def _table_3(placed: Placed, results: Mapping[PublishedNumber, CellResult]) -> list[str]:
    from hedge_tasks.measures.hedge_paper.published import PROMPTS, SCORES, PublishedNumber

    cells = [cell for cell in results if cell.table == 3]
    if not any(cell.key in placed.runs for cell in cells):
        return []
    sizes = sorted({cell.n for cell in cells})
    parts = ["Table 3: ROC-AUC of Qwen2.5-VL on VQA-RAD against the number of answers (answer only)"]
    for clustering in ("Embed", "NLI"):
        rows: list[list[str]] = []
        for prompt in PROMPTS:
            for score in SCORES:
                places = [
                    PublishedNumber(3, "VQA-RAD", prompt, "Qwen2.5-VL", score, "AO", clustering, n) for n in sizes
                ]
                threes = [_three(results[place]) for place in places]
                for i, name in enumerate((f"{prompt} {score}", "  paper", "  diff")):
                    rows.append([name, *(three[i] for three in threes)])
        parts.append(str(Table.of(["n", *map(str, sizes)], rows, title=clustering)))
    parts += [_laid_out_3(clustering, results, sizes) for clustering in ("Embed", "NLI")]
    return parts


def _laid_out_3(clustering: str, results: Mapping[PublishedNumber, CellResult], sizes: Sequence[int]) -> str:
    from hedge_tasks.measures.hedge_paper.layout import MEAN, rows_of_table_3
    from hedge_tasks.measures.hedge_paper.published import published

    ours = {cell: result.ours for cell, result in results.items()}
    rows = [[f"{row.prompt} {row.score}", *_marked(row, 2)] for row in rows_of_table_3(ours, clustering, sizes)]
    means = [row for row in rows_of_table_3(published(3), clustering, sizes) if row.prompt == MEAN]
    rows += [[f"{MEAN} {row.score}, paper", *_marked(row, 2)] for row in means]
    title = f"Table 3 as the paper lays it out, {clustering}: ** the best of the row; means over prompts"
    return str(Table.of(["n", *map(str, sizes)], rows, title=title))


def _equal_draws(results: Sequence[CellResult]) -> str:
    """Table 3 at one price: VASE at n beside the others at 2n, a row for each of them."""
    from hedge_tasks.measures.hedge_paper import at_equal_draws

    pairs = at_equal_draws(results)
    if not pairs:
        return ""
    cells = {(pair.clustering, pair.prompt, pair.score, pair.draws): pair for pair in pairs}
    draws = sorted({pair.draws for pair in pairs})
    rows: list[list[str]] = []
    for score in dict.fromkeys(pair.score for pair in pairs):
        for clustering, prompt in dict.fromkeys((pair.clustering, pair.prompt) for pair in pairs):
            row_pairs = [cells[clustering, prompt, score, d] for d in draws]
            rows.append(
                [f"{clustering} {prompt}, VASE - {score}, paper", *(_SIGNED(pair.published) for pair in row_pairs)]
            )
            if any(pair.ours is not None for pair in row_pairs):
                rows.append(["  ours", *(format_value(pair.ours, _SIGNED) for pair in row_pairs)])
        below = [sum(pair.published < 0 for pair in pairs if (pair.score, pair.draws) == (score, d)) for d in draws]
        rows.append([f"rows with VASE below {score}, paper", *map(str, below)])
    title = "Table 3 at equal draws: difference in ROC-AUC where VASE at n and the other score at 2n cost the same"
    return str(Table.of(["draws", *map(str, draws)], rows, title=title))


def _three(result: CellResult) -> list[str]:
    digits = _DIGITS[result.cell.table]
    signed = Format(digits, signed=True)
    values = (format_value(value, Format(digits)) for value in (result.ours, result.published))
    return [*values, format_value(result.difference, signed)]


def _summary(results: Sequence[CellResult]) -> str:
    from hedge_tasks.measures.hedge_paper.layout import SMALL

    differences = [abs(result.difference) for result in results if result.difference is not None]
    if not differences:
        return ""
    near = sum(difference <= SMALL for difference in differences)
    mean = sum(differences) / len(differences)
    return (
        f"{len(differences)} of {len(results)} cells are here: mean absolute difference {THREE_DIGITS(mean)}, largest "
        f"{THREE_DIGITS(max(differences))}; {near} of them within {SMALL}, which the paper calls small"
    )


def _missing(results: Sequence[CellResult]) -> str:
    """Return a line for each table, data set, model and prompt with missing cells, and the reason."""
    lacking: dict[str, int] = {}
    for result in results:
        if result.ours is None:
            cell = result.cell
            place = f"Table {cell.table}, {cell.dataset}, {cell.model}, {cell.prompt}: {result.reason}"
            lacking[place] = lacking.get(place, 0) + 1
    lines = [f"  {count:>3} of {place}" for place, count in lacking.items()]
    return "\n".join([f"missing: {sum(lacking.values())} of {len(results)} cells", *lines]) if lines else ""
