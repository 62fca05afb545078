"""`hedge paper medhallu`: MedHallu's tables out of finished runs, beside the published values."""

from __future__ import annotations

import argparse
from pathlib import Path

from hedge_tasks.io.commands import Parser, add_out, command, show
from hedge_tasks.replies.parsing import PARSINGS


def add(commands: Parser) -> None:
    parser = command(commands, "medhallu", _paper, "lay out MedHallu's tables from finished runs, beside its values")
    parser.add_argument("runs", nargs="*", type=Path, metavar="RUN", help="output folders of lmms-eval, or run files")
    parser.add_argument("--parsing", choices=PARSINGS, help="take this reading of the stored replies")
    parser.add_argument(
        "--name",
        action="append",
        default=[],
        metavar="MODEL=TEXT",
        help="the runs with TEXT in their model's name are the paper's MODEL, such as Qwen2.5-7B",
    )
    parser.add_argument(
        "--candidates",
        type=Path,
        metavar="FILE",
        help="in place of runs: JSON lines of id, question, truth and candidates (answer, fooled), or a folder of "
        "`hedge make medhallu --candidates`: the semantic analysis of section 4.3",
    )
    parser.add_argument(
        "--threshold", type=float, metavar="P", help="entailment both ways that makes one cluster (default: 0.75)"
    )
    parser.add_argument("--nli-model", metavar="MODEL", help="clusters candidates (default: the paper's)")
    parser.add_argument("--embedding-model", metavar="MODEL", help="measures distances (default: all-MiniLM-L6-v2)")
    add_out(parser, "a line for each number, with its interval (CSV)")


def _paper(arguments: argparse.Namespace) -> int:
    from hedge_tasks.errors import ConfigError

    if (arguments.candidates is None) == (not arguments.runs):
        raise ConfigError("hedge paper medhallu takes either finished runs or --candidates FILE")
    if arguments.candidates is not None:
        return _semantic_analysis(arguments)
    for option in ("threshold", "nli_model", "embedding_model"):
        if getattr(arguments, option) is not None:
            raise ConfigError(f"--{option.replace('_', '-')} goes with --candidates")
    return _tables(arguments)


def _semantic_analysis(arguments: argparse.Namespace) -> int:
    from hedge_tasks.evaluations.medhallu.candidates import (
        NLI_MODEL,
        THRESHOLD,
        analysed,
        clustered,
        nli_backend,
        read_candidates,
        rows_of_analysis,
        tables_of_analysis,
    )
    from hedge_tasks.io import options
    from hedge_tasks.io.files import write_whole
    from hedge_tasks.serving.encoders import DEFAULT_MODEL, load_encoder
    from hedge_tasks.serving.loading import default_device

    threshold = THRESHOLD if arguments.threshold is None else options.share("--threshold", arguments.threshold)
    questions = read_candidates(arguments.candidates)
    embedding = arguments.embedding_model or DEFAULT_MODEL
    backend = nli_backend(arguments.nli_model or NLI_MODEL, threshold)
    found = analysed(clustered(questions, backend, load_encoder(embedding, None, default_device(None))))
    if arguments.out:
        write_whole(arguments.out, rows_of_analysis(found).to_csv())
    settings = {"nli": backend.model, "threshold": threshold, "embedding": embedding, "questions": len(questions)}
    line = ", ".join(f"{name}: {value}" for name, value in settings.items())
    show(arguments, {"settings": settings, **found.to_dict()}, line, *tables_of_analysis(found))
    return 0


def _tables(arguments: argparse.Namespace) -> int:
    from hedge_tasks.errors import DataError
    from hedge_tasks.evaluations.medhallu.abstention import abstention_table, abstentions
    from hedge_tasks.evaluations.medhallu.tables import (
        PATTERNS,
        answered,
        differences,
        is_medhallu,
        rows_of,
        tables_of,
        with_published,
    )
    from hedge_tasks.io.files import write_whole
    from hedge_tasks.measures.published import model_of_paper, names_given, read_published
    from hedge_tasks.runs.run_files import load_runs

    names = names_given(arguments.name, list(PATTERNS))
    runs = [run for path in arguments.runs for run in load_runs(path) if is_medhallu(run)]
    if not runs:
        raise DataError(f"no run of MedHallu in {', '.join(map(str, arguments.runs))}")
    published = read_published("hedge_tasks.evaluations.medhallu")
    read = [
        with_published(one, model_of_paper(one.run.model, PATTERNS, names), published)
        for one in answered(runs, arguments.parsing)
    ]
    changes, without = differences(read), abstentions(read)
    if arguments.out:
        write_whole(arguments.out, rows_of(read).to_csv())
    facts = {
        "runs": [{**one.numbers.to_dict(), **one.variant._asdict()} for one in read],
        "differences": [change.to_dict() for change in changes],
        "abstention": [one.to_dict() for one in without],
        "published": published,
    }
    tables = [*tables_of(read, changes, published), *([abstention_table(without, read)] if without else [])]
    show(arguments, facts, "\n\n".join(table.to_text() for table in tables))
    return 0
