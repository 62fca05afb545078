"""`hedge paper`: finished runs of any model laid out as a paper's tables, beside its own values."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

from hedge_tasks.cli.choices import add_trust
from hedge_tasks.evaluation import evaluation_commands, from_evaluations
from hedge_tasks.io.commands import Parser, add_out, command, show
from hedge_tasks.registry import Registration


def add(commands: Parser) -> None:
    papers = commands.add_command("paper", "lay finished runs out as a paper's tables, beside its own values")
    for name, registration in sorted(from_evaluations("papers")()):
        _add_paper(papers, name, registration)
    for add_command in evaluation_commands("paper"):
        add_command(papers)


def _add_paper(papers: Parser, name: str, registration: Registration) -> None:
    text = f"lay runs of any model out as the tables of the {name} paper, beside its values"
    parser = command(papers, name, partial(run, registration), text)
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="output folders of lmms-eval, or run files")
    text = "the runs with TEXT in their model's name are the paper's MODEL"
    parser.add_argument("--name", action="append", default=[], metavar="MODEL=TEXT", help=text)
    parser.add_argument(
        "--scores",
        type=Path,
        metavar="OTHERS.csv",
        help="the same models on other benchmarks (columns: model, one a benchmark), to correlate with",
    )
    add_out(parser, "a line for each number, with its interval (CSV)")
    add_trust(parser)


def run(registration: Registration, arguments: argparse.Namespace) -> int:
    from hedge_tasks.errors import ConfigError
    from hedge_tasks.io.files import write_whole
    from hedge_tasks.runs.run_files import load_runs
    from hedge_tasks.suites.correlation import correlation_table, read_scores

    paper = registration.load()
    if arguments.scores and not paper.leads:
        raise ConfigError(f"--scores: the {paper.name} paper correlates nothing with other benchmarks")
    names = paper.names_given(arguments.name)
    runs = [run for path in arguments.runs for run in load_runs(path, trust=arguments.trust_run)]
    rows = paper.rows_of(runs, names)
    records, tables = paper.records(rows), paper.tables(rows)
    if arguments.scores:
        setting, measure = paper.leads
        numbers = {row.model: row.numbers[measure].value for row, _ in rows if row.setting == setting}
        ours = {model: value for model, value in numbers.items() if value is not None}
        tables.append(correlation_table(paper.name, ours, read_scores(arguments.scores)))
    if arguments.out:
        write_whole(arguments.out, records.to_csv())
    show(arguments, {"numbers": records, "tables": tables}, *tables)
    return 0
