"""`hedge make medhallmark`."""

from __future__ import annotations

import argparse
import io
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedge_tasks.io.commands import PROBLEMS_FOUND, Parser, add_out, command, show
from hedge_tasks.making.commands import (
    MODEL,
    add_floor,
    add_models,
    add_people,
    add_run,
    check_counts,
    read_labels,
    run_pipeline,
    show_share,
    summary_text,
    upload_lines,
)
from hedge_tasks.numbers import Table

if TYPE_CHECKING:
    from hedge_tasks.llm.account import Account
    from hedge_tasks.making.medhallmark.pipeline import MedHallMark
    from hedge_tasks.making.medhallmark.sources import ReportRow, VqaRow


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
        "--writer", metavar=MODEL, help="rewrites questions and makes them counterfactual; without it neither is made"
    )
    add_models(
        parser,
        "--verifier",
        "says with the reference before it what is right (repeat for several; default: the writer)",
    )
    parser.add_argument(
        "--answerer", metavar=MODEL, help="answers first, with the image: what it gets wrong goes no further"
    )
    parser.add_argument("--judge", metavar=MODEL, help="says of which level a wrong answer is, with the image")
    parser.add_argument("--no-rewrites", action="store_true", help="write no question anew")
    parser.add_argument("--no-counterfactuals", action="store_true", help="make no counterfactual questions")
    parser.add_argument(
        "--twins", action="store_true", help="add to each counterfactual question one of its form with a true premise"
    )
    parser.add_argument("--sample-reports", type=int, metavar="N", help="so many, evenly over years and patients")
    parser.add_argument(
        "--least-side", type=int, default=1, metavar="PIXELS", help="of a picture that is taken (default: any)"
    )
    add_people(parser)
    add_floor(parser, "yes-no questions")
    parser.add_argument("--limit", type=int, metavar="N", help="only the first N questions")
    add_run(parser, "row", seed="of prefixes, instructions and samples", licence="of the sources, for the card")


def run_medhallmark(arguments: argparse.Namespace) -> int:
    from hedge_tasks.making.medhallmark.output import (
        passing_items,
        report_of,
        warnings_of_set,
        write_medhallmark,
        write_review_pages,
    )
    from hedge_tasks.making.production import worker_of

    worker = worker_of(arguments.worker)
    making = _making(arguments)
    rows, left_out = _rows(arguments, making)
    if arguments.dry_run:
        return _estimate(arguments, making, rows)
    production = run_pipeline(arguments, rows, making)
    for why, count in left_out.items():
        production = production.with_left_out(why, count)
    code = 0 if production.complete and not left_out else PROBLEMS_FOUND
    if worker is not None:
        show_share(arguments, production.report(), summary_text(production.report(), production.account, "rows"))
        return code
    passed_set = passing_items(production)
    people = read_labels(arguments)
    if people is not None:
        passed_set = passed_set.without(people.not_wrong)
    else:
        write_review_pages(arguments.out, passed_set, n=arguments.review, seed=arguments.seed)
    built = write_medhallmark(
        arguments.out,
        making,
        production,
        passed_set,
        licence=arguments.licence,
        sources=[path.name for path in (*arguments.vqa, *arguments.reports)],
        bound=arguments.floor,
        people=people,
    )
    warnings = warnings_of_set(passed_set)
    files = [str(file.relative_to(arguments.out)) for file in built.files.values()]
    report = report_of(production, passed_set)
    lines = [_summary(report, production.account), *(f"Warning: {warning}" for warning in warnings)]
    lines += [*upload_lines(arguments, files), f"Now set HEDGE_DATA_DIR={arguments.out}"]
    facts = {**report, "warnings": warnings, "files": files}
    show(arguments, facts, "\n".join(lines))
    return code


def _making(arguments: argparse.Namespace) -> MedHallMark:
    from hedge_tasks.data.local_data import ImageFolder
    from hedge_tasks.errors import ConfigError
    from hedge_tasks.judging.prompt import load_judge_prompt
    from hedge_tasks.making.medhallmark.pipeline import MedHallMark
    from hedge_tasks.models.by_text import model_from

    check_counts(arguments, "limit", "sample_reports", "concurrency", "review", "least_side")
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

    vqa_read, reports_read = (
        [read_vqa(path) for path in arguments.vqa],
        [read_reports(path) for path in arguments.reports],
    )
    questions = [row for source in vqa_read for row in source.rows]
    reports = [row for source in reports_read for row in source.rows]
    check_ids([*questions, *reports])
    questions, few = with_images(questions[: arguments.limit], fault)
    reports, fewer = with_images(reports, fault)
    if arguments.sample_reports is not None:
        reports = even_sample(reports, arguments.sample_reports, arguments.seed)
    lacking = sum(len(source.left_out) for source in vqa_read) + sum(len(source.left_out) for source in reports_read)
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


def _summary(report: Mapping[str, Any], account: Account) -> str:
    steps = {
        **report["steps"],
        **{f"rejected: {reason}": n for reason, n in report["rejected"].items()},
        **{f"refused over the set: {reason}": n for reason, n in report["refused over the set"].items()},
    }
    contents = ", ".join(f"{n} {part}" for part, n in report["items"].items())
    return summary_text(report, account, "rows", contents=contents, steps=steps)
