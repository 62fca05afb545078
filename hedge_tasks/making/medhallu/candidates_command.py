"""`hedge paper medhallu candidates`: MedHallu's semantic analysis of many wrong answers to each question."""

from __future__ import annotations

import argparse
from pathlib import Path

from hedge_tasks.io.commands import Parser, add_out, as_json, command, show


def add(commands: Parser) -> None:
    """Add the command beside the arguments of `hedge paper medhallu`."""
    text = "cluster candidates of wrong answers with the true one: the semantic analysis of section 4.3"
    parser = command(commands.commands["medhallu"], "candidates", _semantic_analysis, text)
    parser.add_argument(
        "candidates",
        type=Path,
        metavar="FILE",
        help="JSON lines of id, question, truth and candidates (answer, fooled), or a folder of "
        "`hedge make medhallu --candidates`",
    )
    parser.add_argument(
        "--threshold", type=float, metavar="P", help="entailment both ways that makes one cluster (default: 0.75)"
    )
    parser.add_argument("--nli-model", metavar="MODEL", help="clusters candidates (default: the paper's)")
    parser.add_argument("--embedding-model", metavar="MODEL", help="measures distances (default: all-MiniLM-L6-v2)")
    add_out(parser, "a line for each number, with its interval (CSV)")


def _semantic_analysis(arguments: argparse.Namespace) -> int:
    from hedge_tasks.io import options
    from hedge_tasks.io.files import write_whole
    from hedge_tasks.llm.encoders import DEFAULT_MODEL, load_encoder
    from hedge_tasks.llm.loading import default_device
    from hedge_tasks.making.medhallu import candidates
    from hedge_tasks.making.medhallu.checks import NLI_MODEL, SAME_MEANING

    threshold = SAME_MEANING
    if arguments.threshold is not None:
        threshold = options.share("--threshold", arguments.threshold)
    questions = candidates.read_candidates(arguments.candidates)
    embedding = arguments.embedding_model or DEFAULT_MODEL
    backend = candidates.nli_backend(arguments.nli_model or NLI_MODEL, threshold)
    clustered = candidates.cluster_candidates(questions, backend, load_encoder(embedding, None, default_device(None)))
    analysis = candidates.analyse(clustered)
    if arguments.out:
        write_whole(arguments.out, candidates.rows_of_analysis(analysis).to_csv())
    settings = {"nli": backend.model, "threshold": threshold, "embedding": embedding, "questions": len(questions)}
    line = ", ".join(f"{name}: {value}" for name, value in settings.items())
    show(arguments, {"settings": settings, **as_json(analysis)}, line, *candidates.tables_of_analysis(analysis))
    return 0
