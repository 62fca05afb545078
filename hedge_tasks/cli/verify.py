"""`hedge verify`: is a run file as it was written, and a submission of that run, and the run of that store?"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedge_tasks.cli.leaderboard import add_checks, facts_of, lines_of, options_of
from hedge_tasks.io.commands import PROBLEMS_FOUND, Parser, add_label_store, command, show

if TYPE_CHECKING:
    from hedge_tasks.runs.integrity import Inspection

_LISTED = 20


def add(commands: Parser) -> None:
    text = "check that run files are unchanged, or that a submission is of its run and store"
    parser = command(commands, "verify", run, text)
    parser.add_argument(
        "files", type=Path, nargs="+", metavar="FILE", help="run files, output folders of lmms-eval, or one submission"
    )
    parser.add_argument(
        "--repair",
        action="store_true",
        help="keep what is sound of a damaged file (the damaged one stays beside it as RUN.damaged)",
    )
    chain = parser.add_argument_group("of a submission")
    chain.add_argument("--run", type=Path, metavar="RUN", help="prove that the submission is of this run file")
    chain.add_argument("--store", type=Path, metavar="DIR", help="and that the run's answers are those of this store")
    add_label_store(chain, "prove that the submission's labels are those of this one")
    add_checks(parser)


def run(arguments: argparse.Namespace) -> int:
    from hedge_tasks.io.progress import progress
    from hedge_tasks.runs.run_files import run_paths

    if arguments.run or arguments.store or arguments.label_store:
        return _prove(arguments)
    files = [file for path in arguments.files for file in run_paths(path)]
    facts = {str(file): _facts(file, arguments.repair) for file in progress(files, name="Checking", unit="file")}
    show(arguments, facts, "\n".join(_text(file, file_facts) for file, file_facts in facts.items()))
    unrepaired = any(fact["problems"] and "original" not in fact for fact in facts.values())
    return PROBLEMS_FOUND if unrepaired else 0


def _prove(arguments: argparse.Namespace) -> int:
    """Check the chain of one submission, link by link."""
    from hedge_tasks.errors import ConfigError
    from hedge_tasks.leaderboard import check, read_submission
    from hedge_tasks.leaderboard.chain import check_with_texts, prove_labels, prove_run, prove_store
    from hedge_tasks.llm.log import ReplyLog
    from hedge_tasks.runs.run_files import load_run
    from hedge_tasks.sampling.archive import open_store

    if len(arguments.files) > 1 or arguments.repair:
        raise ConfigError("--run, --store and --label-store are about one submission, and repair nothing")
    if arguments.store and not arguments.run:
        raise ConfigError("--store: give the run file, too (--run), which names the draws of the store")
    [path] = arguments.files
    submission, options = read_submission(path), options_of(arguments)
    findings = check(submission, **options)
    links = []
    if arguments.run and not findings.problems:
        run = load_run(arguments.run, submission["entry"]["task"])
        links.append(prove_run(submission, run))
        if not any("texts" in document for document in submission["documents"]):
            findings = check_with_texts(submission, run, **options)
        if arguments.store:
            links.append(prove_store(run, open_store(arguments.store)))
    if arguments.label_store and not findings.problems:
        with ReplyLog(arguments.label_store) as labels:
            links.append(prove_labels(submission, labels))
    lines = lines_of(str(path), findings)
    for link in links:
        lines.append(f"{link.name}: {'DIFFERS' if link.problems else 'proved'}")
        lines += [f"  {text}" for text in link.problems or (f"{k}: {v}" for k, v in link.facts.items() if v)]
    show(arguments, {**facts_of(findings), "chain": links}, "\n".join(lines))
    return PROBLEMS_FOUND if findings.problems or any(link.problems for link in links) else 0


def _facts(file: Path, repair: bool) -> dict[str, Any]:
    from hedge_tasks.errors import DataError
    from hedge_tasks.io.signatures import can_check
    from hedge_tasks.runs.integrity import inspect, is_run_file
    from hedge_tasks.runs.run_files import read_run
    from hedge_tasks.runs.signed_runs import signature_faults, signed_run_of, statement_faults

    try:
        if not is_run_file(file):
            return {"problems": [f"{file}: this is no run file, so there is nothing to check it against"]}
        inspection = inspect(file)
        if inspection.problems:
            return _damaged(inspection, repair)
        read = read_run(file)
        signed = signed_run_of(read.settings)
    except DataError as error:
        return {"problems": [str(error)]}
    facts = {"documents": len(read.answer_sets), "sha256": inspection.digest}
    if signed is None:
        return {**facts, "signed": None, "problems": []}
    of_run = (read.task, read.model, read.created, read.settings, read.answer_sets)
    problems = [f"{file}: {fault}" for fault in (*statement_faults(signed, *of_run), *signature_faults(signed))]
    checked = "" if can_check() else ", which ssh-keygen is missing to check"
    return {**facts, "signed": f"{signed.in_words}{checked}", "problems": problems}


def _damaged(inspection: Inspection, repair: bool) -> dict[str, Any]:
    from hedge_tasks.runs.run_files import repair_run

    facts = {"documents": len(inspection.rows), "problems": list(inspection.problems)}
    if not repair:
        return facts
    repaired = repair_run(inspection)
    lost = {"lost": repaired.n_lost, "lost_ids": list(repaired.lost), "original": str(repaired.original)}
    return {**facts, "documents": len(repaired.run.answer_sets), **lost}


def _text(file: str, about: dict[str, Any]) -> str:
    from hedge_tasks.runs.signed_runs import UNSIGNED

    if not about["problems"]:
        owner = about["signed"] or UNSIGNED
        return f"{file}: sound, {about['documents']} documents, sha256:{about['sha256']}; {owner}"
    problems = about["problems"]
    more = [f"  and {len(problems) - _LISTED} more"] if len(problems) > _LISTED else []
    lines = [f"{file}: damaged", *(f"  {problem}" for problem in problems[:_LISTED]), *more]
    if "original" in about:
        lost = "an unknown number of" if about["lost"] is None else about["lost"]
        ids = about["lost_ids"][:_LISTED]
        named = f": {', '.join(ids)}" + (", ..." if len(about["lost_ids"]) > _LISTED else "") if ids else ""
        lines.append(f"  repaired: {about['documents']} documents are kept, {lost} are gone{named}")
        lines.append(f"  the damaged file is {about['original']}")
    elif "documents" in about and "sha256" not in about:  # damaged, and not only signed for another run
        lines.append(f"  {about['documents']} documents are sound; --repair keeps them")
    return "\n".join(lines)
