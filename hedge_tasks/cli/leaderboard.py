"""`hedge leaderboard`: submissions from runs, their validation, and a static site made of them."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedge_tasks.cli.choices import add_manifests, add_run, add_task, chosen_run
from hedge_tasks.io.commands import PROBLEMS_FOUND, Parser, add_out, command, say, show
from hedge_tasks.numbers import count_of

if TYPE_CHECKING:
    from hedge_tasks.leaderboard.validation import ValidationFindings


def add(commands: Parser) -> None:
    actions = commands.add_command("leaderboard", "make, check and show leaderboard submissions")
    starting = command(actions, "init", init, "make a repository for a leaderboard: entries, workflow, README")
    starting.add_argument("folder", type=Path, metavar="DIR", help="folder to make")
    starting.add_argument("--title", default="HEDGE leaderboard", help="of its README (default: %(default)s)")
    making = command(actions, "submit", submit, "write a run as an entry, and say how to open the pull request")
    add_run(making)
    add_out(making, "file, or a clone of the leaderboard's repository", default=Path("submission.json"))
    making.add_argument("--name", help="of the entry (default: the model)")
    making.add_argument("--url", help="of a page about it, beginning with https://")
    making.add_argument("--note", help="a few words about it")
    making.add_argument("--weights", choices=("open", "closed"), help="whether anybody can have the model's weights")
    making.add_argument("--parameters", type=float, metavar="BILLIONS", help="of the model")
    making.add_argument(
        "--texts",
        action=argparse.BooleanOptionalAction,
        help="put questions, references and answers into it, so that labels and clusters can be computed again "
        "(default: where the task's licence allows it)",
    )
    making.add_argument(
        "--announce",
        action="store_true",
        help="write only what a signed run has signed (HEDGE_SIGN_KEY): merged first, it keeps copies from the place",
    )
    add_task(making)
    checking = command(
        actions, "validate", validate, "compute every number of submissions again; exit code 1 if any is wrong"
    )
    checking.add_argument("submissions", type=Path, nargs="+", metavar="SUBMISSION.json")
    add_checks(checking)
    building = command(actions, "build", build, "make a static site from a folder of submissions")
    building.add_argument("folder", type=Path, metavar="DIR", help="folder with *.json")
    add_out(building, "folder of the site", default=Path("site"))
    add_checks(building)
    building.add_argument(
        "--cache", type=Path, metavar="DIR", help="keep what is found of each file, so that only new ones are looked at"
    )
    building.add_argument(
        "--strict", action="store_true", help="exit code 1 also where a file is a copy of another: for pull requests"
    )
    exporting = command(actions, "export", export, "write an entry in the format of others")
    exporting.add_argument("entry", type=Path, metavar="ENTRY.json")
    exporting.add_argument(
        "--format",
        choices=("model-index", "lmms-eval"),
        required=True,
        help="metadata of a model card on the Hub, or lmms-eval's results file",
    )
    add_out(exporting, "a file (default: printed)")
    add_checks(exporting)
    splitting = command(actions, "split", split, "keep a part of a task's documents with a board's maintainers")
    splitting.add_argument("task", metavar="TASK", help="whose data is here")
    splitting.add_argument("--share", type=float, default=0.3, help="of documents that become private (default: .3)")
    splitting.add_argument("--private", type=Path, required=True, metavar="FILE", help="manifest of the private part")
    add_out(splitting, "folder of the public part's manifest", default=Path("manifests"))
    command(actions, "schema", schema, "print the JSON Schema of submissions")


def add_checks(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--thorough", action="store_true", help="cluster again with NLI models, too, which takes minutes an entry"
    )
    add_manifests(parser)
    parser.add_argument(
        "--editions", type=Path, action="append", metavar="DIR", help="folder of editions, before those installed"
    )
    parser.add_argument(
        "--signers", type=Path, metavar="FILE", help="only statements count that one of these SSH keys has signed"
    )


def options_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the options of `add_checks` as arguments of `check`."""
    from hedge_tasks.data.manifests import manifests_of
    from hedge_tasks.runs.editions import edition_for

    folders, edition_folders = arguments.manifests or [], arguments.editions or []
    return {
        "thorough": arguments.thorough,
        "manifests": lambda task: [*manifests_of(task, folders), *manifests_of(task)],
        "editions": lambda task: edition_for(task, edition_folders) or edition_for(task),
    }


def init(arguments: argparse.Namespace) -> int:
    from hedge_tasks.leaderboard.repository import make_repository

    files = [str(path) for path in make_repository(arguments.folder, title=arguments.title)]
    where = shlex.quote(str(arguments.folder))
    then = f"git -C {where} init --initial-branch main, commit, push it to GitHub, and choose Pages from GitHub Actions"
    show(arguments, {"folder": str(arguments.folder), "files": files}, "\n".join([*files, f"Next: {then}"]))
    return 0


def submit(arguments: argparse.Namespace) -> int:
    from hedge_tasks.leaderboard import make_submission, write_submission
    from hedge_tasks.leaderboard.audits import whose
    from hedge_tasks.leaderboard.owners import ANNOUNCEMENT
    from hedge_tasks.leaderboard.repository import commands_for, place_of

    run = chosen_run(arguments)
    entry = {key: getattr(arguments, key) for key in ("name", "url", "note", "weights", "parameters", "texts")}
    submission = make_submission(run, **entry)
    out = place_of(arguments.out, submission)
    if arguments.announce:
        return _announce(arguments, submission, out.with_suffix(ANNOUNCEMENT))
    write_submission(out, submission)
    texts = "texts" in submission["documents"][0]
    commands = commands_for(out, submission)
    facts = {
        "submission": str(out),
        "commands": commands,
        "digest": submission["digest"],
        "texts": texts,
        **submission["summary"],
    }
    facts["suite"] = {metric: number["value"] for metric, number in submission["suite"].items()}
    facts["audit"] = experts = whose(submission)
    audit_note = "" if experts is None else f", {experts}"
    texts_note = "with its texts" if texts else "without texts, so that labels and clusters cannot be computed again"
    show(
        arguments,
        facts,
        "\n".join(
            [
                f"{out}: {run.title}, {count_of(len(run.answer_sets), 'document')}, {texts_note}{audit_note}, "
                f"{submission['digest']}",
                "The pull request:",
                *(f"  {line}" for line in commands),
            ]
        ),
    )
    return 0


def _announce(arguments: argparse.Namespace, submission: Mapping[str, Any], out: Path) -> int:
    """Write what announces an entry, and nothing of the entry itself."""
    from hedge_tasks.leaderboard.owners import announcement_of, write_announcement
    from hedge_tasks.leaderboard.repository import commands_for

    announcement = announcement_of(submission)
    write_announcement(out, announcement)
    commands = commands_for(out, submission)
    facts = {"announcement": str(out), "key": announcement.fingerprint, "commands": commands}
    lines = [f"{out}: {announcement.in_words}; submit the entry once this is merged", "The pull request:"]
    show(arguments, facts, "\n".join([*lines, *(f"  {line}" for line in commands)]))
    return 0


def validate(arguments: argparse.Namespace) -> int:
    from hedge_tasks.errors import DataError
    from hedge_tasks.io.progress import progress
    from hedge_tasks.leaderboard import ValidationFindings, check, read_submission
    from hedge_tasks.leaderboard.attestation import with_statement
    from hedge_tasks.leaderboard.owners import ANNOUNCEMENT, read_announcement

    options = options_of(arguments)
    findings_by_path: dict[str, ValidationFindings] = {}
    announcements: dict[str, str] = {}
    for path in progress(arguments.submissions, name="Checking", unit="entry"):
        try:
            if path.suffix == ANNOUNCEMENT:
                announcements[str(path)] = read_announcement(path).in_words
                continue
            submission = read_submission(path)
            findings = check(submission, **options)
            findings_by_path[str(path)] = with_statement(findings, submission, path, arguments.signers)
        except DataError as error:
            findings_by_path[str(path)] = ValidationFindings((str(error),))
    lines = [line for path, findings in findings_by_path.items() for line in lines_of(path, findings)]
    lines += [f"{path}: announces an entry, {by}" for path, by in announcements.items()]
    facts = {path: facts_of(findings) for path, findings in findings_by_path.items()}
    show(arguments, {**facts, **{path: {"announces": by} for path, by in announcements.items()}}, "\n".join(lines))
    return PROBLEMS_FOUND if any(findings.problems for findings in findings_by_path.values()) else 0


def facts_of(findings: ValidationFindings) -> dict[str, Any]:
    """Findings as JSON."""
    coverage = findings.coverage
    share = None if coverage is None else {"matched": coverage.matched, "of": coverage.of, "whole": coverage.whole}
    return {
        "valid": not findings.problems,
        "problems": findings.problems,
        "ranked": findings.ranked,
        "set_aside": findings.set_aside,
        "edition": findings.standing,
        "documents": share,
        "labels": findings.labels,
        "suite": findings.suite,
        "clusterings": findings.clusterings,
        "detectors": findings.detectors,
        "claims": findings.claims,
        "audit": findings.audit,
        "answers": findings.answers,
        "owner": findings.owner,
    }


def lines_of(path: str, findings: ValidationFindings) -> list[str]:
    """Findings for people."""
    from hedge_tasks.leaderboard.units import CLAIM_PARTS

    if findings.problems:
        return [f"{path}: {text}" for text in findings.problems]
    coverage = findings.coverage
    whole = "no manifest tells whether documents are missing" if coverage is None or coverage.of is None else None
    lines = [f"{path}: valid", *(f"  not ranked: {reason}" for reason in findings.set_aside)]
    lines += [f"  {whole}"] if whole else []
    parts = {
        "labels": findings.labels,
        **({} if findings.audit is None else {"labels of experts": findings.audit}),
        **findings.suite,
        **{f"clusters of {n}": part for n, part in findings.clusterings.items()},
        **{what: findings.claims[key] for key, what in CLAIM_PARTS.items() if key in findings.claims},
    }
    for what, part in parts.items():
        lines.append(f"  {what}: {'recomputed' if part.verified else 'self-reported'} ({part.reason})")
    lines += [f"  owner: {findings.owner.reason}"]
    lines += [f"  answers: {'replayed' if findings.answers.verified else 'self-reported'} ({findings.answers.reason})"]
    for name, detectors in findings.detectors.items():
        reported = [detector for detector, part in detectors.items() if not part.verified]
        n_recomputed = len(detectors) - len(reported)
        lines += [f"  scores of {name}: {n_recomputed} of {len(detectors)} detectors recomputed"]
        lines += [f"    self-reported: {', '.join(reported)}"] if reported else []
    return lines


def build(arguments: argparse.Namespace) -> int:
    from hedge_tasks.errors import ConfigError
    from hedge_tasks.leaderboard import build_site, read_entries

    entries = arguments.folder / "entries"
    if not any(arguments.folder.glob("*.json")) and entries.is_dir():
        raise ConfigError(f"{arguments.folder}: no entry (*.json) in it; the repository's are in {entries}")
    built = read_entries(arguments.folder, cache=arguments.cache, signers=arguments.signers, **options_of(arguments))
    files = build_site(built, arguments.out)
    for path, reason in built.refused.items():
        say(f"{'a copy' if path in built.copies else 'refused'} {path}: {reason}", sys.stderr)
    refused = {str(path): reason for path, reason in built.refused.items()}
    ranked = sum(entry.findings.ranked for entry in built.entries)
    facts = {"site": str(arguments.out), "pages": len(files), "entries": len(built.entries), "ranked": ranked}
    text = f"{arguments.out}: {len(built.entries)} entries, {ranked} of them ranked, {len(files)} pages, "
    show(arguments, {**facts, "refused": refused}, f"{text}{len(refused)} refused")
    return PROBLEMS_FOUND if (refused if arguments.strict else built.faulty) else 0


def export(arguments: argparse.Namespace) -> int:
    from hedge_tasks.errors import DataError
    from hedge_tasks.io.files import write_whole
    from hedge_tasks.leaderboard import check, read_submission
    from hedge_tasks.leaderboard.export import as_lmms_eval, as_model_index

    submission = read_submission(arguments.entry)
    findings = check(submission, **options_of(arguments))
    if findings.problems:
        raise DataError(f"{arguments.entry}: not valid: {findings.problems[0]}")
    make = as_model_index if arguments.format == "model-index" else as_lmms_eval
    text = make(submission, findings)
    if arguments.out:
        write_whole(arguments.out, text)
        show(arguments, {"file": str(arguments.out), "format": arguments.format}, f"{arguments.out}: written")
    else:
        show(arguments, {"format": arguments.format, "text": text}, text.rstrip("\n"))
    return 0


def split(arguments: argparse.Namespace) -> int:
    import secrets

    from hedge_tasks.data.manifests import write_manifest
    from hedge_tasks.errors import ConfigError
    from hedge_tasks.leaderboard.private_split import split_manifest
    from hedge_tasks.lmms.manifests import load_task

    if not 0 < arguments.share < 1:
        raise ConfigError(f"--share: expected a number in (0, 1), got {arguments.share:g}")
    if arguments.private.exists():
        raise ConfigError(f"{arguments.private} is there already: another split would make private documents public")
    task = load_task(arguments.task)
    parts = split_manifest(task.manifest(), task.document_groups, arguments.share, secrets.token_hex(32))
    arguments.out.mkdir(parents=True, exist_ok=True)
    places = [arguments.out / f"{arguments.task}.json", arguments.private]
    for place, part in zip(places, parts, strict=True):
        write_manifest(place, part)
    places[1].chmod(0o600)
    n_public, n_private = (len(part.documents) for part in parts)
    facts = {"public": str(places[0]), "private": str(places[1]), "n_public": n_public, "n_private": n_private}
    text = [
        f"{places[0]}: {n_public} documents, for the board's repository",
        f"{places[1]}: {n_private} documents; keep it, and their rows, off the board and out of what you publish",
    ]
    show(arguments, facts, "\n".join(text))
    return 0


def schema(arguments: argparse.Namespace) -> int:
    import json

    from hedge_tasks.leaderboard import submission_schema

    say(json.dumps(submission_schema(), indent=2, ensure_ascii=False))
    return 0
