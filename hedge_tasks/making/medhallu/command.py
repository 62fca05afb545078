"""`hedge make medhallu`."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hedge_tasks.io.commands import Parser, add_out, command
from hedge_tasks.making.commands import (
    MODEL,
    add_floor,
    add_models,
    add_run,
    check_counts,
    settings_of,
    show_cost,
    show_result,
)

if TYPE_CHECKING:
    from hedge_tasks.making.gate.accept import AcceptedSet
    from hedge_tasks.making.output import CardText
    from hedge_tasks.making.stages import Made, Models

_SUMMARY = (
    "Questions with their true answers, and for each a wrong answer that a model wrote so that other models take "
    "it for the true one, by the construction of MedHallu (Pandit et al. 2025, section 3). `Difficulty Level` says "
    "how many judges were deceived in both orders; rows with `Fallback` deceived none. Synthetic "
    "medical misinformation: for evaluating models only."
)
_CLAIM = "Does the answer say something that is not so?"


def add(commands: Parser) -> None:
    """Add the command to `hedge make`."""
    text = "write wrong answers that models take for the true ones (MedHallu, section 3)"
    parser = command(commands, "medhallu", run_medhallu, text)
    parser.add_argument(
        "source",
        metavar="SOURCE",
        help="JSONL or Parquet of question, answer, knowledge; or qiaojin/PubMedQA:pqa_labeled",
    )
    add_out(parser, "folder of the set, its card and every reply", required=True)
    parser.add_argument("--generator", required=True, metavar=MODEL, help="writes the wrong answers")
    add_models(parser, "--judge", "is to be deceived; at least three times")
    add_models(
        parser,
        "--verifier",
        "says with the knowledge before it whether an answer is wrong (repeat for several; default: the judges)",
    )
    parser.add_argument("--critic", metavar=MODEL, help="says what gives an answer away (default: the generator)")
    parser.add_argument("--no-fallback", action="store_true", help="leave out answers that deceive no judge")
    add_floor(parser)
    parser.add_argument("--attempts", type=int, default=5, help="generations a question at most (default: 5)")
    parser.add_argument(
        "--candidates",
        type=int,
        metavar="N",
        help="in place of a set, write N candidates a question, those that fail as well (the paper: 50), for "
        "`hedge paper medhallu candidates`",
    )
    parser.add_argument("--nli", metavar="MODEL", help="compares meanings (default: microsoft/deberta-large-mnli)")
    parser.add_argument("--embedding", metavar="MODEL", help="finds the most similar (default: all-MiniLM-L6-v2)")
    parser.add_argument("--split", default="train", help="of a data set on the hub (default: train)")
    parser.add_argument("--limit", type=int, metavar="N", help="only the first N questions")
    licence = "of the source, recorded with every record and on the card"
    add_run(parser, "question", seed="of the rewriting and the choice of rows", licence=licence)


def run_medhallu(arguments: argparse.Namespace) -> int:
    from hedge_tasks.making.medhallu import construction
    from hedge_tasks.making.medhallu.questions import read_questions
    from hedge_tasks.making.stages import make
    from hedge_tasks.models.by_text import model_from

    check_counts(arguments, "limit", "candidates", "attempts")
    critic = model_from(arguments.critic) if arguments.critic else None
    judges, verifiers = ([model_from(spec) for spec in specs] for specs in (arguments.judge, arguments.verifier))
    models = construction.models_of(model_from(arguments.generator), judges, critic, verifiers)
    read = read_questions(arguments.source, split=arguments.split, licence=arguments.licence)
    questions = read.questions[: arguments.limit]
    n = arguments.candidates
    if n is None:
        stages = construction.stages_of(len(judges), len(models["verifier"]), arguments.attempts)
    else:
        stages = construction.sampling_stages(len(judges), n)
    if arguments.dry_run:
        return show_cost(arguments, stages, models, questions)
    build: Any = construction.CandidateSampling(n) if n is not None else None
    if build is None:
        compares = construction.ModelComparison(arguments.nli, arguments.embedding)
        compares.load()
        build = construction.MedHallu(compares, arguments.attempts, not arguments.no_fallback)
    out, seed, jobs = arguments.out, arguments.seed, arguments.concurrency
    result = make(questions, build, stages, models, out, seed=seed, concurrency=jobs)
    result = result.with_left_out({"no question or answer in the source": len(read.left_out)} if read.left_out else {})
    return _candidates(arguments, result) if n is not None else _set(arguments, result, models)


def _candidates(arguments: argparse.Namespace, result: Made) -> int:
    import json

    from hedge_tasks.errors import DataError
    from hedge_tasks.io.files import write_whole
    from hedge_tasks.making.gate.accept import reasons_of
    from hedge_tasks.making.medhallu.candidates import FILE

    if not result.rows:
        raise DataError(f"nothing is accepted ({reasons_of(result)}); nothing is written")
    write_whole(arguments.out / FILE, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in result.rows))
    return show_result(arguments, result, "records", [arguments.out / FILE])


def _set(arguments: argparse.Namespace, result: Made, models: Models) -> int:
    from hedge_tasks.judging.review import ReviewItem
    from hedge_tasks.making.gate.accept import accept
    from hedge_tasks.making.gate.sets import answer_pairs
    from hedge_tasks.making.medhallu.construction import without_surplus, written_text
    from hedge_tasks.making.output import describe_set, read_labels, write_page, write_rows

    labels = read_labels(arguments.labels)
    right = {at: "not wrong, people say" for at, row in enumerate(result.rows) if labels.get(row["Id"]) == 0}
    result = without_surplus(result.without(right, alone=True))
    accepted = accept(result, written_text, answer_pairs, alone=True, bound=arguments.floor)
    if not labels:
        items = [
            ReviewItem(
                row["Id"],
                {
                    "Question": row["Question"],
                    "Evidence": "\n\n".join([row["Ground Truth"], *row["Knowledge"]]),
                    "Answer to judge": row["Hallucinated Answer"],
                },
                _CLAIM,
            )
            for row in accepted.made.rows
        ]
        write_page(arguments.out, "Medical answers", items, n=arguments.review, seed=arguments.seed)
    path = write_rows(arguments.out, accepted.made.rows)
    describe_set(arguments.out, accepted.made, _card(arguments, accepted, models, labels), {"train": path})
    return show_result(arguments, accepted.made, "records", [path])


def _card(arguments: argparse.Namespace, accepted: AcceptedSet, models: Models, labels: Mapping[str, int]) -> CardText:
    from hedge_tasks.making.medhallu.construction import NLI_MODEL
    from hedge_tasks.making.output import CardText

    settings = settings_of(
        arguments,
        models,
        source=arguments.source,
        attempts=arguments.attempts,
        nli=arguments.nli or NLI_MODEL,
        embedding=arguments.embedding,
        looked_at=len(labels),
    )
    writers = list(dict.fromkeys(model.name for role in ("generator", "critic") for model in models[role]))
    return CardText("MedHallu, made again", arguments.licence, _SUMMARY, settings, accepted.attacks, writers=writers)
