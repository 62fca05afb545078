"""`hedge make medhallmark`."""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

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
    from hedge_tasks.data.local_data import ReadImage
    from hedge_tasks.judging.review import ReviewItem
    from hedge_tasks.making.gate.accept import AcceptedSet
    from hedge_tasks.making.gate.attack import AttackedItem
    from hedge_tasks.making.gate.refuse import Written
    from hedge_tasks.making.medhallmark.construction import MadeItem
    from hedge_tasks.making.medhallmark.sources import ReportRow, VqaRow
    from hedge_tasks.making.stages import Made, Models

_SUMMARY = (
    "Questions about medical images with their true answers, the same behind prefixes that weaken confidence, "
    "counterfactual questions with responses that correct their premise, and cleaned reports, by the construction of "
    "Med-HallMark (section 3.4). Name this folder in HEDGE_DATA_DIR, and the tasks hedge_medhallmark read it. "
    "`judged_category` is what verifiers and a judge say, and not what doctors say. Images have licences of their own."
)
_CLOSED = re.compile(r"\s*(yes|no)\b", re.IGNORECASE)
_PUBLISHED = {"conventional": 2871, "confidence": 1350, "counterfactual": 1320, "irg": 1800}
"""Items of the paper's set (section 3.4)."""

_CLAIM = "Does the question, or the answer, say something that is not so?"


def add(commands: Parser) -> None:
    """Add the command to `hedge make`."""
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
        help="image and report a row, or findings and impression (repeat for several)",
    )
    parser.add_argument("--images", type=Path, required=True, metavar="DIR", help="the images, searched with folders")
    add_out(parser, "folder that HEDGE_DATA_DIR will name", required=True)
    parser.add_argument(
        "--writer", metavar=MODEL, help="rewrites questions and makes them counterfactual; without it neither is made"
    )
    text = "says with the reference before it what is right (repeat for several; default: the writer)"
    add_models(parser, "--verifier", text)
    parser.add_argument(
        "--answerer", metavar=MODEL, help="answers first, with the image: what it gets wrong goes no further"
    )
    parser.add_argument("--judge", metavar=MODEL, help="says of which level a wrong answer is, with the image")
    add_floor(parser, "yes-no questions")
    parser.add_argument("--limit", type=int, metavar="N", help="only the first N questions")
    add_run(parser, "row", seed="of prefixes, instructions and samples", licence="of the sources, for the card")


def run_medhallmark(arguments: argparse.Namespace) -> int:
    from hedge_tasks.data.local_data import ImageFolder
    from hedge_tasks.errors import ConfigError
    from hedge_tasks.judging.prompt import load_judge_prompt
    from hedge_tasks.making.medhallmark.construction import MedHallMark, models_of, stages_of
    from hedge_tasks.making.stages import make
    from hedge_tasks.models.by_text import model_from

    check_counts(arguments, "limit")
    if not arguments.vqa and not arguments.reports:
        raise ConfigError("hedge make medhallmark needs VQA rows, --reports, or both")
    if arguments.answerer is not None and arguments.writer is None and not arguments.verifier:
        raise ConfigError("--answerer: its answers are to be verified; give --verifier or --writer")
    if arguments.judge is not None and arguments.answerer is None:
        raise ConfigError("--judge goes with --answerer: there is no answer to judge without it")
    specs = (arguments.writer, arguments.answerer, arguments.judge)
    writer, answerer, judge = (None if spec is None else model_from(spec) for spec in specs)
    models = models_of(writer, [model_from(verifier) for verifier in arguments.verifier], answerer, judge)
    judge_prompt = None if judge is None else load_judge_prompt("medhallmark")
    build = MedHallMark(ImageFolder(arguments.images).read, judge_prompt, arguments.seed)
    rows, left_out = _rows(arguments, build.read_image, decode=answerer is not None)
    stages = stages_of(models, judge_prompt)
    if arguments.dry_run:
        return show_cost(arguments, stages, models, [row for row in rows if hasattr(row, "question")])
    out, jobs = arguments.out, arguments.concurrency
    result = make(rows, build, stages, models, out, seed=arguments.seed, concurrency=jobs)
    result = result.with_left_out(left_out)
    return _set(arguments, result, models, build.read_image)


def _rows(
    arguments: argparse.Namespace, read_image: ReadImage, *, decode: bool
) -> tuple[list[VqaRow | ReportRow], dict[str, int]]:
    """Rows whose image can be shown, and how many were left out, by reason."""
    from hedge_tasks.data.pictures import image_file_fault
    from hedge_tasks.making.medhallmark.sources import check_ids, read_reports, read_vqa

    def fault(name: str) -> str | None:
        content = read_image(name)
        why = "missing" if content is None else image_file_fault(content, decode=decode)
        return why and f"image {why}"

    vqa, reports = read_vqa(arguments.vqa), read_reports(arguments.reports)
    rows: list[VqaRow | ReportRow] = [*vqa.rows[: arguments.limit], *reports.rows]
    check_ids(rows)
    faults = {name: fault(name) for name in dict.fromkeys(row.image for row in rows)}
    left_out = Counter(why for row in rows if (why := faults[row.image]) is not None)
    left_out["an empty cell in the source"] = len(vqa.left_out) + len(reports.left_out)
    return [row for row in rows if faults[row.image] is None], dict(+left_out)


def _set(arguments: argparse.Namespace, result: Made, models: Models, read_image: ReadImage) -> int:
    from hedge_tasks.making.gate.accept import accept
    from hedge_tasks.making.output import CardText, describe_set, read_labels, write_page
    from hedge_tasks.suites.medhallmark.building import build_items
    from hedge_tasks.suites.medhallmark.released import PARTS

    labels = read_labels(arguments.labels)
    right = {name for name, label in labels.items() if label == 0}
    result = result.without(
        {at: "not wrong, people say" for at, e in enumerate(result.rows) if re.sub(r"-r\d+\Z", "", e.item.id) in right}
    )
    # Many questions are put in the same form, which tells nothing of their answers; one text for all is another matter.
    accepted = accept(result, written_text, attacked_items, frames=False, bound=arguments.floor)
    items = accepted.made.rows
    if not labels and (reviewed := _reviewed(items)):
        write_page(arguments.out, "Medical questions", reviewed, n=arguments.review, seed=arguments.seed)
    by_part = {part: [entry.item for entry in items if entry.part == part] for part in PARTS}
    built = build_items({part: some for part, some in by_part.items() if some}, read_image, arguments.out)
    files = {name.partition("/")[0]: file for part in built.values() for name, file in part.files.items()}
    sources = [path.name for path in (*arguments.vqa, *arguments.reports)]
    settings = settings_of(arguments, models, sources=sources, looked_at=len(labels))
    warnings = _warnings(items)
    writers = [model.name for model in models["writer"]]
    title, tables = "Med-HallMark, made again", _tables(accepted)
    card = CardText(title, arguments.licence, _SUMMARY, settings, accepted.attacks, warnings, tables, writers)
    describe_set(arguments.out, accepted.made, card, files)
    return show_result(arguments, accepted.made, "rows", list(files.values()), warnings)


def written_text(entry: MadeItem) -> Written | None:
    """The written question of an item beside what it was made from; the same about another picture counts once."""
    from hedge_tasks.making.gate.refuse import Written

    return Written(entry.item.question, f"{entry.origin} {entry.truth}") if entry.written else None


def attacked_items(items: Sequence[MadeItem]) -> list[AttackedItem]:
    """Questions that are answered with yes or no, part by part."""
    from hedge_tasks.making.gate.attack import AttackedItem
    from hedge_tasks.perturb.text import QUESTION

    return [
        AttackedItem(
            match[1].capitalize(),
            item.prefix.replace(QUESTION, item.question) if item.prefix else item.question,
            group=item.image,
            stratum=f"yes/no, {entry.part}",
        )
        for entry in items
        for item in [entry.item]
        if entry.part in ("conventional", "confidence") and (match := _CLOSED.match(item.reference))
    ]


def _reviewed(items: Sequence[MadeItem]) -> list[ReviewItem]:
    """Texts for people to look at: premises that are to be false, and answers that are to be wrong."""
    from hedge_tasks.judging.review import ReviewItem

    reviewed = []
    for entry in items:
        item = entry.item
        false_premise = entry.part == "counterfactual" and not re.search(r"-r\d+\Z", item.id)
        if false_premise or (item.answer is not None and item.category != "correct"):
            text = item.question if false_premise else item.answer
            texts = {"Question": entry.origin, "Evidence": entry.truth, "To judge": str(text)}
            reviewed.append(ReviewItem(item.id, texts, _CLAIM))
    return reviewed


def _tables(accepted: AcceptedSet) -> dict[str, tuple[Sequence[str], list[list[str]]]]:
    """The contents of the set: header and rows by title."""
    items: Sequence[MadeItem] = accepted.made.rows
    parts = Counter((entry.part, entry.dimension) for entry in items)
    levels = Counter(entry.item.category or "left to people" for entry in items if entry.item.answer is not None)

    rows = [
        [part, dimension or "not told", str(n), f"{_PUBLISHED[part]:,}"]
        for (part, dimension), n in sorted(parts.items())
    ]
    return {
        "Items by part and dimension": (("part", "dimension", "items", "part in the paper"), rows),
        "Answers of the model by level": (("level", "answers"), [[name, str(n)] for name, n in sorted(levels.items())]),
    }


def _warnings(items: Sequence[MadeItem]) -> list[str]:
    """A warning for users: the paper has no true premise in the form of a false one, so that the wording tells."""
    from hedge_tasks.making.gate.attack import AttackedItem, attack

    asked_about = [entry for entry in items if entry.part in ("conventional", "counterfactual")]
    premises = [AttackedItem(entry.part, entry.item.question, group=entry.item.image) for entry in asked_about]
    warnings = [
        f"the wording alone ({result.floor[0]}) tells counterfactual questions from others: a model that corrects "
        "whatever is worded like one needs no picture there"
        for result in attack(premises)
        if result.open and result.floor is not None
    ]
    levels = sum(entry.item.answer is not None and entry.item.category is None for entry in items)
    return [
        *warnings,
        *([f"{levels} wrong answers have no level: give --judge, or let people say it"] if levels else []),
    ]
