"""`hedge make medhallmark`."""

from __future__ import annotations

import argparse
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedge_tasks.io.commands import PROBLEMS_FOUND, Parser, add_out, command, show
from hedge_tasks.numbers import Table

if TYPE_CHECKING:
    from hedge_tasks.making.medhallmark.output import PassedSet
    from hedge_tasks.making.medhallmark.pipeline import MedHallMark
    from hedge_tasks.making.medhallmark.sources import ReportRow, VqaRow
    from hedge_tasks.making.production import Production

_MODEL = "model=NAME,url=..."


def add(commands: Parser) -> None:
    text = "make medical questions that induce hallucinations (Med-HallMark, section 3.4)"
    parser = command(commands, "medhallmark", run_medhallmark, text)
    parser.add_argument(
        "vqa", type=Path, nargs="*", metavar="VQA", help="image, question, answer a row, such as VQA-RAD and SLAKE"
    )
    parser.add_argument(
        "--reports",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="image and report a row, or findings and impression; patient and year where known (repeat for several)",
    )
    parser.add_argument("--images", type=Path, required=True, metavar="DIR", help="the images, searched with folders")
    add_out(parser, "folder that HEDGE_DATA_DIR will name", required=True)
    parser.add_argument(
        "--writer", metavar=_MODEL, help="rewrites questions and makes them counterfactual; without it neither is made"
    )
    parser.add_argument(
        "--verifier",
        action="append",
        default=[],
        metavar=_MODEL,
        help="says with the reference before it what is right (repeat for several; default: the writer)",
    )
    parser.add_argument(
        "--answerer", metavar=_MODEL, help="answers first, with the image: what it gets wrong goes no further"
    )
    parser.add_argument("--judge", metavar=_MODEL, help="says of which level a wrong answer is, with the image")
    parser.add_argument("--no-rewrites", action="store_true", help="write no question anew")
    parser.add_argument("--no-counterfactuals", action="store_true", help="make no counterfactual questions")
    parser.add_argument(
        "--twins", action="store_true", help="add to each counterfactual question one of its form with a true premise"
    )
    parser.add_argument("--sample-reports", type=int, metavar="N", help="so many, evenly over years and patients")
    parser.add_argument(
        "--least-side", type=int, default=1, metavar="PIXELS", help="of a picture that is taken (default: any)"
    )
    parser.add_argument(
        "--labels",
        action="append",
        default=[],
        metavar="LABELS",
        help="labels that people gave: on the pages in review/ (repeat for several people)",
    )
    parser.add_argument("--review", type=int, default=100, metavar="N", help="rows that people look at (default: 100)")
    parser.add_argument(
        "--floor", type=float, metavar="SHARE", help="of yes-no questions that solvers without skill may get right"
    )
    parser.add_argument("--licence", help="of the sources, for the card")
    parser.add_argument("--limit", type=int, metavar="N", help="only the first N questions")
    parser.add_argument("--worker", metavar="K/N", help="only every Nth row, from the Kth on: one of several workers")
    parser.add_argument("--seed", type=int, default=0, help="of prefixes, instructions and samples (default: 0)")
    parser.add_argument("--concurrency", type=int, default=16, metavar="N", help="rows under way (default: 16)")
    parser.add_argument("--dry-run", action="store_true", help="say what it will cost and ask nothing")
    parser.add_argument("--push", metavar="OWNER/NAME", help="upload the set to the Hugging Face hub in the end")


def run_medhallmark(arguments: argparse.Namespace) -> int:
    from hedge_tasks.asking.log import ReplyLog
    from hedge_tasks.making.gate.people import FOLDER, read_people
    from hedge_tasks.making.medhallmark.output import (
        passed,
        report_of,
        warnings_of_set,
        write_medhallmark,
        write_review_pages,
    )
    from hedge_tasks.making.output import LEDGER, push_set
    from hedge_tasks.making.production import produce, share, worker_of

    worker = worker_of(arguments.worker)
    making = _making(arguments)
    rows, without = _rows(arguments, making)
    if arguments.dry_run:
        return _estimate(arguments, making, rows)
    with ReplyLog(arguments.out / LEDGER) as log:
        made = produce(share(rows, worker), making, log, seed=arguments.seed, concurrency=arguments.concurrency)
    for why, count in without.items():
        made = made.with_left_out(why, count)
    code = 0 if made.complete and not without else PROBLEMS_FOUND
    if worker is not None:
        last = "Once all workers are done, the same command without --worker writes the set."
        show(arguments, made.report(), f"{_text(made, None)}\n{last}")
        return code
    found = passed(made)
    people = None
    if arguments.labels:
        people = read_people(arguments.out / FOLDER, [Path(file) for file in arguments.labels])
        found = found.without(people.not_wrong)
    else:
        write_review_pages(arguments.out, found, n=arguments.review, seed=arguments.seed)
    built = write_medhallmark(
        arguments.out,
        making,
        made,
        found,
        licence=arguments.licence,
        sources=[path.name for path in (*arguments.vqa, *arguments.reports)],
        bound=arguments.floor,
        people=people,
    )
    warnings = warnings_of_set(found)
    files = [str(file.relative_to(arguments.out)) for file in built.files.values()]
    lines = [_text(made, found), *(f"Warning: {warning}" for warning in warnings)]
    if arguments.push:
        lines.append(f"Uploaded: {push_set(arguments.out, arguments.push, files=files)}")
    lines.append(f"Now set HEDGE_DATA_DIR={arguments.out}")
    facts = {**report_of(made, found), "warnings": warnings, "files": files}
    show(arguments, facts, "\n".join(lines))
    return code


def _making(arguments: argparse.Namespace) -> MedHallMark:
    from hedge_tasks.adjudication.prompt import load_judge_prompt
    from hedge_tasks.asking.models import model_from
    from hedge_tasks.data.local_data import ImageFolder
    from hedge_tasks.errors import ConfigError
    from hedge_tasks.io import options
    from hedge_tasks.making.medhallmark.pipeline import MedHallMark

    for name in ("limit", "sample_reports"):
        if (value := getattr(arguments, name)) is not None:
            options.count(f"--{name.replace('_', '-')}", value, at_least=1)
    for name in ("concurrency", "review", "least_side"):
        options.count(f"--{name.replace('_', '-')}", getattr(arguments, name), at_least=1)
    if not arguments.vqa and not arguments.reports:
        raise ConfigError("hedge make medhallmark needs VQA rows, --reports, or both")
    if arguments.answerer is not None and arguments.writer is None and not arguments.verifier:
        raise ConfigError("--answerer: its answers are to be verified; give --verifier or --writer")
    if arguments.judge is not None and arguments.answerer is None:
        raise ConfigError("--judge goes with --answerer: there is no answer to judge without it")
    writer, answerer, judge = (
        None if spec is None else model_from(spec) for spec in (arguments.writer, arguments.answerer, arguments.judge)
    )
    verifiers = [model_from(verifier) for verifier in arguments.verifier]
    return MedHallMark(
        ImageFolder(arguments.images).read,
        writer=writer,
        verifiers=verifiers,
        answerer=answerer,
        judge=judge,
        judge_prompt=None if judge is None else load_judge_prompt("medhallmark"),
        rewrites=not arguments.no_rewrites,
        counterfactuals=not arguments.no_counterfactuals,
        twins=arguments.twins,
        seed=arguments.seed,
    )


def _rows(arguments: argparse.Namespace, making: MedHallMark) -> tuple[list[VqaRow | ReportRow], dict[str, int]]:
    """Rows whose image can be shown, and how many were left out, by reason."""
    from hedge_tasks.data.pictures import image_file_fault
    from hedge_tasks.making.medhallmark.output import with_images
    from hedge_tasks.making.medhallmark.reports import even_sample
    from hedge_tasks.making.medhallmark.sources import check_ids, read_reports, read_vqa

    def fault(name: str) -> str | None:
        content = making.read_image(name)
        if content is None:
            return "image missing"
        if (why := image_file_fault(content, decode=making.answerer is not None)) is not None:
            return f"image {why}"
        return "image too small" if _least_side(content) < arguments.least_side else None

    vqa, written = [read_vqa(path) for path in arguments.vqa], [read_reports(path) for path in arguments.reports]
    questions = [row for one in vqa for row in one.rows]
    reports = [row for one in written for row in one.rows]
    check_ids([*questions, *reports])
    questions, few = with_images(questions[: arguments.limit], fault)
    reports, fewer = with_images(reports, fault)
    if arguments.sample_reports is not None:
        reports = even_sample(reports, arguments.sample_reports, arguments.seed)
    lacking = sum(len(one.left_out) for one in vqa) + sum(len(one.left_out) for one in written)
    without = {why: few.get(why, 0) + fewer.get(why, 0) for why in sorted({*few, *fewer})}
    return [*questions, *reports], {**without, **({"an empty cell in the source": lacking} if lacking else {})}


def _least_side(content: bytes) -> int:
    from PIL import Image

    with Image.open(io.BytesIO(content)) as opened:
        return min(opened.size)


def _estimate(arguments: argparse.Namespace, making: MedHallMark, rows: list[VqaRow | ReportRow]) -> int:
    counts = making.requests(rows)
    table = Table.of(
        ("stage", "requests from", "to"),
        [[stage, f"{least:,}", f"{most:,}"] for stage, (least, most) in counts.items()],
        notes=["From: nothing that is written is a question; to: everything is, and passes."],
    )
    show(arguments, {"rows": len(rows), "stages": {stage: list(both) for stage, both in counts.items()}}, table)
    return 0


def _text(made: Production, found: PassedSet | None) -> str:
    from hedge_tasks.making.medhallmark.output import report_of
    from hedge_tasks.making.output import asked_lines

    report: dict[str, Any] = made.report() if found is None else report_of(made, found)
    lines = [f"{report['accepted']} of {report['records']} rows accepted"]
    if found is not None:
        lines[0] += ", " + ", ".join(f"{n} {part}" for part, n in report["items"].items())
    if made.unfinished:
        lines[0] += f"; PARTIAL: {report['unfinished']} are unfinished, run again"
    counted = {
        **report["steps"],
        **{f"rejected: {why}": n for why, n in report["rejected"].items()},
        **{f"refused over the set: {why}": n for why, n in report.get("refused over the set", {}).items()},
    }
    steps = Table.of(("step", "times"), [[name, str(n)] for name, n in counted.items()])
    return "\n".join([*lines, "", str(steps), *asked_lines(made.account)])
