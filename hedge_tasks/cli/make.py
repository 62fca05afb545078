"""`hedge make`: data sets by the papers' constructions."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedge_tasks.evaluation import evaluation_commands
from hedge_tasks.io.commands import PROBLEMS_FOUND, Parser, add_out, command, show

if TYPE_CHECKING:
    from hedge_tasks.asking.template import Template
    from hedge_tasks.making.gate.people import PeopleSaid
    from hedge_tasks.making.gate.refuse import Written
    from hedge_tasks.making.medhallu.pipeline import MedHallu
    from hedge_tasks.making.medhallu.questions import SourceQuestion
    from hedge_tasks.making.medhallu.sampling import CandidateSampling
    from hedge_tasks.making.output import CardText
    from hedge_tasks.making.production import Production

_MODEL = "model=NAME,url=..."
_CHARACTERS_A_TOKEN = 4
_LACKING = "no question or answer in the source"
_ESTIMATE = {
    "fewest": "requests from",
    "most": "to",
    "fewest_tokens": "prompt tokens from",
    "most_tokens": "to",
    "completion": "completion tokens at most",
}


def add(commands: Parser) -> None:
    parts = commands.add_command("make", "make a data set by a paper's construction")
    _add_medhallu(parts)
    for add_command in evaluation_commands("make"):
        add_command(parts)


def _add_medhallu(commands: Parser) -> None:
    text = "write wrong answers that models take for the true ones (MedHallu, section 3)"
    parser = command(commands, "medhallu", run_medhallu, text)
    parser.add_argument(
        "source",
        metavar="SOURCE",
        help="JSONL or Parquet of question, answer, knowledge; or qiaojin/PubMedQA:pqa_labeled",
    )
    add_out(parser, "folder of the set, its card and every reply", required=True)
    parser.add_argument("--generator", required=True, metavar=_MODEL, help="writes the wrong answers")
    parser.add_argument(
        "--judge", action="append", default=[], metavar=_MODEL, help="is to be deceived; at least three times"
    )
    parser.add_argument(
        "--verifier",
        action="append",
        default=[],
        metavar=_MODEL,
        help="says with the knowledge before it whether an answer is wrong (repeat for several; default: the judges)",
    )
    parser.add_argument(
        "--labels",
        action="append",
        default=[],
        metavar="LABELS",
        help="labels that people gave: on the pages in review/ (repeat for several people)",
    )
    parser.add_argument("--review", type=int, default=100, metavar="N", help="rows that people look at (default: 100)")
    parser.add_argument("--no-fallback", action="store_true", help="leave out answers that deceive no judge")
    parser.add_argument(
        "--floor",
        type=float,
        metavar="SHARE",
        help="of the set that solvers without skill may get right (default: 0.75)",
    )
    parser.add_argument("--critic", metavar=_MODEL, help="says what gives an answer away (default: the generator)")
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
    parser.add_argument("--licence", help="of the source, recorded with every record and on the card")
    parser.add_argument("--limit", type=int, metavar="N", help="only the first N questions")
    parser.add_argument(
        "--worker", metavar="K/N", help="only every Nth question, from the Kth on: one of several workers"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the rewriting and the choice of rows (default: 0)")
    parser.add_argument("--concurrency", type=int, default=16, metavar="N", help="questions under way (default: 16)")
    parser.add_argument("--dry-run", action="store_true", help="say what it will cost and ask nothing")
    parser.add_argument("--push", metavar="OWNER/NAME", help="upload the set to the Hugging Face hub in the end")


def run_medhallu(arguments: argparse.Namespace) -> int:
    from hedge_tasks.asking.log import ReplyLog
    from hedge_tasks.io import options
    from hedge_tasks.making.gate.passing import kept_rows, without
    from hedge_tasks.making.gate.people import FOLDER, read_people
    from hedge_tasks.making.medhallu.questions import read_questions
    from hedge_tasks.making.output import LEDGER, push_set, write_set
    from hedge_tasks.making.production import produce, share, worker_of

    if arguments.limit is not None:
        options.count("--limit", arguments.limit, at_least=1)
    options.count("--concurrency", arguments.concurrency, at_least=1)
    options.count("--review", arguments.review, at_least=1)
    worker = worker_of(arguments.worker)
    read = read_questions(arguments.source, split=arguments.split, licence=arguments.licence)
    questions = read.questions[: arguments.limit]
    if arguments.candidates is not None:
        return _candidates(arguments, share(questions, worker), len(read.left_out))
    pipeline = _pipeline(arguments)
    if arguments.dry_run:
        return _estimate(arguments, pipeline, questions, "From: every first candidate passes; to: none ever does.")
    pipeline.load()
    with ReplyLog(arguments.out / LEDGER) as log:
        mine = share(questions, worker)
        production = produce(mine, pipeline, log, seed=arguments.seed, concurrency=arguments.concurrency)
    production = production.with_left_out(_LACKING, len(read.left_out))
    if worker is not None:
        show(
            arguments,
            production.report(),
            _text(production) + "\nOnce all workers are done, the same command without --worker writes the set.",
        )
        return 0 if production.complete else PROBLEMS_FOUND
    production = kept_rows(production, _written)
    people = (
        read_people(arguments.out / FOLDER, [Path(file) for file in arguments.labels]) if arguments.labels else None
    )
    if people is None and production.rows:
        _write_review(arguments, production)
    elif people is not None:
        production = without(production, people.not_wrong)
    card = _card(arguments, pipeline, production, people)
    path = write_set(arguments.out, production, card)
    lines = [_text(production), *(f"Warning: {warning}" for warning in card.warnings), f"Written: {path}"]
    if arguments.push:
        lines.append(f"Uploaded: {push_set(arguments.out, arguments.push)}")
    show(arguments, {**production.report(), "warnings": list(card.warnings), "file": str(path)}, "\n".join(lines))
    return 0 if production.complete else PROBLEMS_FOUND


def _candidates(arguments: argparse.Namespace, questions: list[SourceQuestion], left_out: int) -> int:
    from hedge_tasks.asking.log import ReplyLog
    from hedge_tasks.asking.models import model_from
    from hedge_tasks.errors import DataError
    from hedge_tasks.io import options
    from hedge_tasks.making.medhallu.sampling import CandidateSampling, write_candidates
    from hedge_tasks.making.output import LEDGER
    from hedge_tasks.making.production import produce

    count = options.count("--candidates", arguments.candidates, at_least=1)
    judges = [model_from(judge) for judge in arguments.judge]
    sampling = CandidateSampling(model_from(arguments.generator), judges, count)
    if arguments.dry_run:
        return _estimate(
            arguments, sampling, questions, "From: all candidates of a question are the same; to: none are."
        )
    with ReplyLog(arguments.out / LEDGER) as log:
        production = produce(questions, sampling, log, seed=arguments.seed, concurrency=arguments.concurrency)
    production = production.with_left_out(_LACKING, left_out)
    lines, facts = [_text(production)], production.report()
    if arguments.worker is None:
        if not production.rows:
            raise DataError("no question has a candidate that could be read; nothing is written")
        facts["file"] = str(write_candidates(arguments.out, production.rows))
        lines.append(f"Written: {facts['file']}")
    show(arguments, facts, "\n".join(lines))
    return 0 if production.complete else PROBLEMS_FOUND


def _pipeline(arguments: argparse.Namespace) -> MedHallu:
    from hedge_tasks.asking.models import model_from
    from hedge_tasks.making.medhallu.checks import NLI_MODEL, EmbeddingSimilarity, NliMutualEntailment
    from hedge_tasks.making.medhallu.pipeline import MedHallu

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

    counts = pipeline.requests(len(questions))
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
    for stage, (fewest, most) in counts.items():
        template = _prompt(stage)
        prompt = (len(template.system) + characters[stage]) / _CHARACTERS_A_TOKEN
        tokens = [round(fewest * prompt), round(most * prompt)]
        completion = round(most * template.decoding["max_tokens"])
        facts[stage] = {"requests": [fewest, most], "prompt_tokens": tokens, "most_completion_tokens": completion}
        numbers = zip(_ESTIMATE, (fewest, most, *tokens, completion), strict=True)
        rows.append({"stage": stage, **{key: f"{n:,}" for key, n in numbers}})
    columns = [Column("stage"), *(Column(key, heading) for key, heading in _ESTIMATE.items())]
    notes = [f"Tokens at four characters each; replies are as long as they may be. {bounds}"]
    show(arguments, {"questions": len(questions), "stages": facts}, Table(columns, rows, notes=notes))
    return 0


def _prompt(stage: str) -> Template:
    from hedge_tasks.asking.template import load_template

    if stage in ("verify", "control"):
        return load_template("hedge_tasks.making.gate", "verify")
    return load_template("hedge_tasks.making.medhallu", stage)


def _card(
    arguments: argparse.Namespace, pipeline: MedHallu, production: Production, people: PeopleSaid | None
) -> CardText:
    from hedge_tasks.making.gate.attack import attack
    from hedge_tasks.making.gate.people import people_rows
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
    tables = {} if people is None else {"What people say": people_rows(people)}
    writers = list(dict.fromkeys([pipeline.generator.name, pipeline.critic.name]))
    return CardText(
        "MedHallu, made again", arguments.licence, summary, settings, attacks, alarms(leaks), tables, writers
    )


def _write_review(arguments: argparse.Namespace, production: Production) -> None:
    from hedge_tasks.making.gate.people import FOLDER, ReviewedRow, write_queue

    rows = [
        ReviewedRow(
            str(row["Id"]),
            row["Question"],
            "\n\n".join(row["Knowledge"]),
            row["Hallucinated Answer"],
            row["Ground Truth"],
        )
        for row in production.rows
    ]
    write_queue(arguments.out / FOLDER, "Medical answers", rows, n=arguments.review, seed=arguments.seed)


def _text(production: Production) -> str:
    from hedge_tasks.making.output import asked_lines
    from hedge_tasks.numbers import Column, Table

    report = production.report()
    lines = [f"{report['accepted']} of {report['records']} records accepted"]
    if production.unfinished:
        lines[0] += f"; PARTIAL: {report['unfinished']} are unfinished, run again"
    steps = {**report["steps"], **{f"rejected: {reason}": count for reason, count in report["rejected"].items()}}
    rows = [{"step": name, "times": count} for name, count in steps.items()]
    table = Table([Column("step"), Column("times")], rows)
    return "\n\n".join(["\n".join(lines), str(table), *asked_lines(production.account)])
