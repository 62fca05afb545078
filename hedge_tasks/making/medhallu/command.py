"""`hedge make medhallu`."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hedge_tasks.io.commands import PROBLEMS_FOUND, Parser, add_out, command, show
from hedge_tasks.making.commands import (
    MODEL,
    add_floor,
    add_models,
    add_people,
    add_run,
    check_counts,
    estimate_tokens,
    read_labels,
    run_pipeline,
    show_share,
    stage_template,
    summary_text,
    upload_lines,
)

if TYPE_CHECKING:
    from hedge_tasks.making.gate.people import PeopleVerdicts
    from hedge_tasks.making.gate.refuse import Written
    from hedge_tasks.making.medhallu.pipeline import MedHallu
    from hedge_tasks.making.medhallu.questions import SourceQuestion
    from hedge_tasks.making.medhallu.sampling import CandidateSampling
    from hedge_tasks.making.output import CardText
    from hedge_tasks.making.production import Production

_LACKING = "no question or answer in the source"
_ESTIMATE = {
    "fewest": "requests from",
    "most": "to",
    "fewest_tokens": "prompt tokens from",
    "most_tokens": "to",
    "completion": "completion tokens at most",
}


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
    add_people(parser)
    parser.add_argument("--no-fallback", action="store_true", help="leave out answers that deceive no judge")
    add_floor(parser)
    parser.add_argument("--critic", metavar=MODEL, help="says what gives an answer away (default: the generator)")
    parser.add_argument("--refiner", default="critique", help="way to a better answer (default: critique)")
    parser.add_argument("--attempts", type=int, default=5, help="candidates a question at most (default: 5)")
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
    from hedge_tasks.making.gate.passing import passing_rows, without_rows
    from hedge_tasks.making.medhallu.questions import read_questions
    from hedge_tasks.making.output import DATA, write_set
    from hedge_tasks.making.production import worker_of

    check_counts(arguments, "limit", "concurrency", "review", "candidates")
    worker = worker_of(arguments.worker)
    read = read_questions(arguments.source, split=arguments.split, licence=arguments.licence)
    questions = read.questions[: arguments.limit]
    if arguments.candidates is not None:
        return _sample_candidates(arguments, questions, len(read.left_out))
    pipeline = _pipeline(arguments)
    if arguments.dry_run:
        return _estimate(arguments, pipeline, questions, "From: every first candidate passes; to: none ever does.")
    pipeline.load()
    production = run_pipeline(arguments, questions, pipeline).with_left_out(_LACKING, len(read.left_out))
    code = 0 if production.complete else PROBLEMS_FOUND
    if worker is not None:
        show_share(arguments, production.report(), _summary(production))
        return code
    production = passing_rows(production, _written)
    people = read_labels(arguments)
    if people is not None:
        production = without_rows(production, people.not_wrong)
    elif production.rows:
        _write_review(arguments, production)
    card = _card(arguments, pipeline, production, people)
    path = write_set(arguments.out, production, card)
    lines = [_summary(production), *(f"Warning: {warning}" for warning in card.warnings), f"Written: {path}"]
    lines += upload_lines(arguments, [DATA])
    show(arguments, {**production.report(), "warnings": list(card.warnings), "file": str(path)}, "\n".join(lines))
    return code


def _sample_candidates(arguments: argparse.Namespace, questions: list[SourceQuestion], left_out: int) -> int:
    from hedge_tasks.errors import DataError
    from hedge_tasks.making.medhallu.sampling import CandidateSampling, write_candidates
    from hedge_tasks.making.production import share, worker_of
    from hedge_tasks.models.by_text import model_from

    judges = [model_from(judge) for judge in arguments.judge]
    sampling = CandidateSampling(model_from(arguments.generator), judges, arguments.candidates)
    if arguments.dry_run:
        mine = share(questions, worker_of(arguments.worker))
        return _estimate(arguments, sampling, mine, "From: all candidates of a question are the same; to: none are.")
    production = run_pipeline(arguments, questions, sampling).with_left_out(_LACKING, left_out)
    lines, facts = [_summary(production)], production.report()
    if arguments.worker is None:
        if not production.rows:
            raise DataError("no question has a candidate that could be read; nothing is written")
        facts["file"] = str(write_candidates(arguments.out, production.rows))
        lines.append(f"Written: {facts['file']}")
    show(arguments, facts, "\n".join(lines))
    return 0 if production.complete else PROBLEMS_FOUND


def _summary(production: Production) -> str:
    return summary_text(production.report(), production.account, "records")


def _pipeline(arguments: argparse.Namespace) -> MedHallu:
    from hedge_tasks.making.medhallu.checks import NLI_MODEL, EmbeddingSimilarity, NliMutualEntailment
    from hedge_tasks.making.medhallu.pipeline import MedHallu
    from hedge_tasks.models.by_text import model_from

    return MedHallu(
        generator=model_from(arguments.generator),
        judges=[model_from(judge) for judge in arguments.judge],
        critic=model_from(arguments.critic or arguments.generator),
        entailment=NliMutualEntailment(arguments.nli or NLI_MODEL),
        similarity=EmbeddingSimilarity(arguments.embedding),
        refiner=arguments.refiner,
        attempts=arguments.attempts,
        verifiers=[model_from(verifier) for verifier in arguments.verifier],
        fallback=not arguments.no_fallback,
    )


def _written(row: Mapping[str, Any]) -> Written:
    from hedge_tasks.making.gate.refuse import Written

    return Written(row["Hallucinated Answer"], " ".join([row["Question"], row["Ground Truth"], *row["Knowledge"]]))


def _estimate(
    arguments: argparse.Namespace, pipeline: MedHallu | CandidateSampling, questions: list[SourceQuestion], bounds: str
) -> int:
    from hedge_tasks.numbers import Column, Table

    mean = sum(len(q.question) + len(q.answer) for q in questions) / len(questions)
    knowledge = sum(len(passage) for q in questions for passage in q.knowledge) / len(questions)
    checked = 2 * mean + knowledge
    characters = {
        "candidate": mean + knowledge,
        "verify": checked,
        "control": checked,
        "rewrite": mean + knowledge,
        "critique": 2 * mean,
        "judge": 1.5 * mean,
    }
    rows, facts = [], {}
    for stage, requests in pipeline.requests(len(questions)).items():
        template = stage_template("hedge_tasks.making.medhallu", stage)
        tokens, completion = estimate_tokens(template, characters[stage], requests)
        facts[stage] = {"requests": list(requests), "prompt_tokens": tokens, "most_completion_tokens": completion}
        numbers = zip(_ESTIMATE, (*requests, *tokens, completion), strict=True)
        rows.append({"stage": stage, **{key: f"{n:,}" for key, n in numbers}})
    columns = [Column("stage"), *(Column(key, heading) for key, heading in _ESTIMATE.items())]
    notes = [f"Tokens at four characters each; replies are as long as they may be. {bounds}"]
    show(arguments, {"questions": len(questions), "stages": facts}, Table(columns, rows, notes=notes))
    return 0


def _card(
    arguments: argparse.Namespace, pipeline: MedHallu, production: Production, people: PeopleVerdicts | None
) -> CardText:
    from hedge_tasks.making.gate.attack import attack
    from hedge_tasks.making.gate.people import people_tables
    from hedge_tasks.making.gate.sets import answer_pairs
    from hedge_tasks.making.output import CardText
    from hedge_tasks.making.shortcuts import alarms, shortcuts

    true = [row["Ground Truth"] for row in production.rows]
    wrong = [row["Hallucinated Answer"] for row in production.rows]
    leaks = shortcuts(true, wrong, embed=pipeline.similarity.embed) if true else {}
    summary = (
        "Questions with their true answers, and for each a wrong answer that a model wrote so that other models take "
        "it for the true one, by the construction of MedHallu (Pandit et al. 2025, section 3). `Difficulty Level` says "
        "how many judges were deceived in both orders; rows with `Fallback` deceived none. Synthetic medical "
        "misinformation: for evaluating models only."
    )
    measured = {name: e if isinstance(e, str) else [e.value, e.interval] for name, e in leaks.items()}
    settings = {**pipeline.settings(), "seed": arguments.seed, "source": arguments.source, "shortcuts_auroc": measured}
    attacks = attack(answer_pairs(production.rows), bound=arguments.floor)
    writers = list(dict.fromkeys([pipeline.generator.name, pipeline.critic.name]))
    tables, title = people_tables(people), "MedHallu, made again"
    return CardText(title, arguments.licence, summary, settings, attacks, alarms(leaks), tables, writers)


def _write_review(arguments: argparse.Namespace, production: Production) -> None:
    from hedge_tasks.making.gate.people import FOLDER, ReviewedRow, write_queue

    columns = ("Question", "Knowledge", "Hallucinated Answer", "Ground Truth")
    rows = []
    for row in production.rows:
        question, knowledge, wrong, truth = (row[column] for column in columns)
        rows.append(ReviewedRow(str(row["Id"]), question, "\n\n".join(knowledge), wrong, truth))
    write_queue(arguments.out / FOLDER, "Medical answers", rows, n=arguments.review, seed=arguments.seed)
