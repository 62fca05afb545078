"""`hedge paper medhallmark`: Med-HallMark's tables out of finished runs, beside the published values."""

from __future__ import annotations

import argparse
from pathlib import Path

from hedge_tasks.io.commands import Parser, add_out, command, show


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
    from hedge_tasks.evaluations.medhallmark.sentences import sentences_of, sentences_table
    from hedge_tasks.evaluations.medhallmark.tables import (
        PATTERNS,
        answer_rows,
        is_medhallmark,
        numbers_of,
        prefix_effects,
        reasons_of,
        tables_of,
        with_published,
    )
    from hedge_tasks.evaluations.medhallmark.wording import stated
    from hedge_tasks.io.files import write_whole
    from hedge_tasks.measures.paper_tables import number_rows
    from hedge_tasks.measures.published import model_of_paper, names_given, read_published
    from hedge_tasks.runs.model_names import short_names
    from hedge_tasks.runs.run_files import load_runs

    names = names_given(arguments.name, list(PATTERNS))
    runs = [run for path in arguments.runs for run in load_runs(path) if is_medhallmark(run)]
    if not runs:
        raise DataError(f"no run of Med-HallMark in {', '.join(map(str, arguments.runs))}")
    published = read_published("hedge_tasks.evaluations.medhallmark")
    found = [with_published(n, model_of_paper(n.model, PATTERNS, names), published) for n in numbers_of(runs)]
    effects, sentences = prefix_effects(found), sentences_of(runs, arguments.support)
    if arguments.out:
        write_whole(arguments.out, number_rows([one.numbers for one in found]).to_csv())
    if arguments.answers:
        write_whole(arguments.answers, answer_rows(found).to_csv())
    facts = {
        "runs": [one.numbers.to_dict() for one in found],
        "prefix_effects": [effect.to_dict() for effect in effects],
        "sentences": [one.facts() for one in sentences],
        "wording": stated(),
        "published": published,
    }
    short = short_names([one.model for one in found])
    tables = [*tables_of(found, effects, published, short), *([sentences_table(sentences, short)] if sentences else [])]
    last = [
        "Wording in %, as the paper prints it; behind ± the standard error over images. The paper's rows are of all "
        "7341 items, of which a part is released.",
        *(f"{measure}: {settings}" for measure, settings in stated().items()),
    ]
    texts = [*(table.to_text() for table in tables), "\n".join(reasons_of(found, short)), "\n".join(last)]
    show(arguments, facts, "\n\n".join(text for text in texts if text))
    return 0
