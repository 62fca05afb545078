"""`hedge paper medhallmark`: Med-HallMark's tables out of finished runs, beside the published values."""

from __future__ import annotations

import argparse
from pathlib import Path

from hedge_tasks.io.commands import Parser, add_out, command, show
from hedge_tasks.suites.paper_command import add_names, add_runs, load_runs_of


def add(commands: Parser) -> None:
    parser = command(
        commands, "medhallmark", _tables, "lay out Med-HallMark's tables from finished runs, beside its values"
    )
    add_runs(parser)
    add_names(parser, "LLaVA1.5-7b")
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
    from hedge_tasks.io.files import write_whole
    from hedge_tasks.measures.paper_tables import number_rows
    from hedge_tasks.measures.published import names_given
    from hedge_tasks.runs.model_names import short_names
    from hedge_tasks.suites.medhallmark import tables
    from hedge_tasks.suites.medhallmark.sentences import sentences_of, sentences_table
    from hedge_tasks.suites.medhallmark.wording import settings_by_measure

    names = names_given(arguments.name, list(tables.PATTERNS))
    runs = load_runs_of(arguments.runs, "Med-HallMark", tables.is_medhallmark)
    rows = tables.beside_paper(tables.numbers_of(runs), names)
    effects, sentences = tables.prefix_effects(rows), sentences_of(runs, arguments.support)
    if arguments.out:
        write_whole(arguments.out, number_rows([row.numbers for row in rows]).to_csv())
    if arguments.answers:
        write_whole(arguments.answers, tables.answer_rows(rows).to_csv())
    facts = {
        "runs": [row.numbers.to_dict() for row in rows],
        "prefix_effects": [effect.to_dict() for effect in effects],
        "sentences": [of_run.facts() for of_run in sentences],
        "wording": settings_by_measure(),
        "published": tables.PUBLISHED,
    }
    short = short_names([row.model for row in rows])
    laid_out = [*tables.tables_of(rows, effects, short), *([sentences_table(sentences, short)] if sentences else [])]
    notes = [
        "Wording in %, as the paper prints it; behind ± the standard error over images. The paper's rows are of all "
        "7341 items, of which a part is released.",
        *(f"{measure}: {settings}" for measure, settings in settings_by_measure().items()),
    ]
    show(arguments, facts, *laid_out, "\n".join(tables.reasons_of(rows, short)), "\n".join(notes))
    return 0
