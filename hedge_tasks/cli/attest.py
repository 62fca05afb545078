"""`hedge attest`: are an entry's answers its model's? Whoever has the weights or the endpoint finds out."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from hedge_tasks.cli.choices import add_adapter
from hedge_tasks.io.commands import PROBLEMS_FOUND, Parser, add_out, command, show

if TYPE_CHECKING:
    from hedge_tasks.data.answers import AnswerSet
    from hedge_tasks.leaderboard.attestation_records import Attestation

_SHARES = (0.05, 0.1, 0.25, 0.5)


def add(commands: Parser) -> None:
    parser = command(commands, "attest", run, "have the model read a submission's answers again, and state the outcome")
    parser.add_argument("submission", type=Path, metavar="SUBMISSION.json")
    parser.add_argument(
        "--beacon", metavar="ROUND:RANDOMNESS", help="of a drand round after the merge, which picks the documents"
    )
    parser.add_argument("--documents", type=int, default=24, metavar="K", help="documents read again (default: 24)")
    add_adapter(parser, None, "pretrained=... or base_url=...,model=...")
    parser.add_argument("--run", type=Path, metavar="RUN", dest="run_file", help="run file with the answers' texts")
    parser.add_argument(
        "--sign", type=Path, metavar="KEY", help="SSH key that signs the statement (ssh-keygen -Y sign)"
    )
    parser.add_argument(
        "--private",
        type=Path,
        metavar="FILE",
        help="in place of a replay: score the entry's model on a board's private documents (hedge leaderboard split)",
    )
    add_out(parser, "file of the statement (default: beside the submission)")


def run(arguments: argparse.Namespace) -> int:
    from hedge_tasks.errors import ConfigError
    from hedge_tasks.io import options
    from hedge_tasks.io.progress import progress
    from hedge_tasks.io.signatures import sign
    from hedge_tasks.leaderboard import read_submission
    from hedge_tasks.leaderboard.attestation import (
        NAMESPACE,
        beacon_of,
        check_beacon,
        picked,
        place_of_statement,
        statement_of,
    )
    from hedge_tasks.leaderboard.attestation_draws import read_again
    from hedge_tasks.leaderboard.repository import committed_at
    from hedge_tasks.lmms.manifests import load_task
    from hedge_tasks.models import adapter_class

    if arguments.private is not None:
        return _private(arguments)
    if arguments.beacon is None:
        raise ConfigError("--beacon: give ROUND:RANDOMNESS of a drand round after the merge, which picks the documents")
    options.count("documents", arguments.documents, at_least=1)
    beacon = beacon_of(arguments.beacon)
    adapter_class(arguments.model)  # a wrong name is told before anything is read
    submission = _checked(read_submission(arguments.submission), arguments.submission)
    check_beacon(beacon, committed_at(arguments.submission.resolve()))
    ids = picked(beacon, submission["digest"], [d["id"] for d in submission["documents"]], arguments.documents)
    answers = _answers(submission, ids, arguments.run_file)
    task = load_task(submission["entry"]["task"])
    model, engine = _load(arguments)
    steps = read_again(model, task, submission, answers, beacon)
    documents = list(progress(steps, name="Reading again", unit="document", total=len(ids)))
    statement = statement_of(submission, beacon, engine, documents, created=datetime.now(UTC).isoformat())
    out = arguments.out or place_of_statement(arguments.submission)
    statement.write(out)
    signature = None if arguments.sign is None else sign(out, arguments.sign, NAMESPACE)
    facts = {
        "statement": str(out),
        "signature": None if signature is None else str(signature),
        "submission": submission["digest"],
        "documents": ids,
        "engine": statement.engine.model_dump(),
        "entry_model": submission["entry"]["model"],
        "tests": {name: test.model_dump() for name, test in statement.tests.items()},
        "power": _power(statement),
        "verdict": statement.verdict,
    }
    show(arguments, facts, "\n".join(_lines(facts, statement)))
    return 0 if statement.verdict == "replayed" else PROBLEMS_FOUND


def _load(arguments: argparse.Namespace) -> tuple[Any, Any]:
    """Load the model, and say what engine runs it."""
    from hedge_tasks.leaderboard.attestation_draws import engine_of
    from hedge_tasks.lmms.identity import display_name
    from hedge_tasks.models import adapter_class

    name = display_name(SimpleNamespace(model=arguments.model, model_args=arguments.model_args)) or arguments.model
    model = adapter_class(arguments.model).create_from_arg_string(arguments.model_args)
    return model, engine_of(model, arguments.model, name)


def _private(arguments: argparse.Namespace) -> int:
    """Score an entry's model on private documents."""
    from hedge_tasks.data.manifests import read_manifest
    from hedge_tasks.io.signatures import sign
    from hedge_tasks.leaderboard import read_submission
    from hedge_tasks.leaderboard.private_records import NAMESPACE, place_of_scores
    from hedge_tasks.leaderboard.private_split import private_scores
    from hedge_tasks.lmms.manifests import load_task
    from hedge_tasks.models import adapter_class
    from hedge_tasks.numbers import PERCENT, THREE_DIGITS, format_value

    adapter_class(arguments.model)  # a wrong name is told before anything is read
    private = read_manifest(arguments.private)
    submission = _checked(read_submission(arguments.submission), arguments.submission)
    task = load_task(submission["entry"]["task"])
    model, engine = _load(arguments)
    created = datetime.now(UTC).isoformat()
    scores = private_scores(model, task, submission, private, engine, created=created)
    out = arguments.out or place_of_scores(arguments.submission)
    scores.write(out)
    if arguments.sign is not None:
        sign(out, arguments.sign, NAMESPACE)
    rates = [summary["hallucination_rate"] for summary in (submission["summary"], scores.summary.model_dump())]
    public_rate, private_rate = ("none" if rate is None else format_value(rate, PERCENT) for rate in rates)
    lines = [
        f"{out}: {scores.documents} private documents; hallucination rate {private_rate} there, {public_rate} in the "
        "entry"
    ]
    for name, detectors in scores.clusterings.items():
        for detector, score in detectors.items():
            public = submission["clusterings"].get(name, {}).get("aggregates", {}).get(detector, {}).get("auroc")
            both = [format_value(value, THREE_DIGITS) for value in (score.auroc, public) if value is not None]
            lines += [f"  {detector} ({name}): {both[0]} there, {both[1]} in the entry"] if len(both) == 2 else []
    show(arguments, {"scores": str(out), **scores.model_dump()}, "\n".join(lines))
    return 0


def _checked(submission: dict[str, Any], path: Path) -> dict[str, Any]:
    """Return a submission whose form and digest are right: nothing else of it counts here.

    Raises:
        DataError: They are not.
    """
    from hedge_tasks.errors import DataError
    from hedge_tasks.leaderboard.schema import schema_fault
    from hedge_tasks.leaderboard.submission import digest_of

    fault = schema_fault(submission)
    if fault is None and submission["digest"] != digest_of(submission):
        fault = "digest: not the content's, so it was changed after it was written"
    if fault is not None:
        raise DataError(f"{path}: {fault}")
    return submission


def _answers(submission: Mapping[str, Any], ids: list[str], run: Path | None) -> dict[str, AnswerSet]:
    """Return the answers to some documents, with their texts, in this order.

    Raises:
        ConfigError: The texts are nowhere.
        DataError: The run file is another one's.
    """
    from hedge_tasks.errors import ConfigError, DataError
    from hedge_tasks.leaderboard.chain import prove_run
    from hedge_tasks.leaderboard.submission import answer_set_of
    from hedge_tasks.runs.run_files import load_run

    documents = {document["id"]: document for document in submission["documents"]}
    if run is not None:
        finished = load_run(run, submission["entry"]["task"])
        if problems := prove_run(submission, finished).problems:
            raise DataError(f"{run}: the submission is not of this run: {problems[0]}")
        by_id = {answers.id: answers for answers in finished.answer_sets}
        return {id: by_id[id] for id in ids}
    if any("texts" not in documents[id] for id in ids):
        raise ConfigError("the submission has no texts: give the run file that it was made of (--run)")
    return {id: answer_set_of(documents[id]) for id in ids}


def _power(statement: Attestation) -> dict[str, float]:
    """Chance that a forged document is among those that were picked, by the share of forged ones."""
    from hedge_tasks.leaderboard.attestation import detects

    n, k = statement.documents_of_entry, len(statement.documents)
    return {f"{share:g}": detects(n, max(round(share * n), 1), k) for share in _SHARES}


def _lines(facts: Mapping[str, Any], statement: Attestation) -> list[str]:
    from hedge_tasks.numbers import PERCENT, format_value

    engine = statement.engine
    lines = [
        f"{facts['statement']}: {statement.verdict}, {len(statement.documents)} of {statement.documents_of_entry} "
        f"documents read again by {engine.adapter} ({engine.dtype or 'dtype unknown'})",
        f"  entry: {facts['entry_model']}; asked: {engine.model}",
    ]
    lines += [f"  {name}: {test.state} ({_reason(test)})" for name, test in statement.tests.items()]
    power = ", ".join(
        f"{format_value(p, PERCENT)} of {format_value(float(s), PERCENT)}" for s, p in _power(statement).items()
    )
    lines += [f"  chance that a forged document was among them: {power} forged"]
    if statement.beacon.round is None:
        lines += ["  the beacon's round was not told, so nobody can see when it became public"]
    lines += [f"  {'signature: ' + facts['signature'] if facts['signature'] else 'unsigned'}"]
    return lines


def _reason(test: Any) -> str:
    from hedge_tasks.numbers import format_p

    return test.reason if test.p_value is None else f"{test.reason}; p {format_p(test.p_value)}"
