"""`hedge make medhallmark`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedge_tasks.errors import ConfigError
from hedge_tasks.making.commands import MakingOptions, check_counts, cost_facts, result_facts

if TYPE_CHECKING:
    from hedge_tasks.data.local_data import ReadImage
    from hedge_tasks.judging.review import ReviewItem
    from hedge_tasks.making.gate.attack import AttackedItem
    from hedge_tasks.making.gate.refuse import Written
    from hedge_tasks.making.medhallmark.construction import MadeItem
    from hedge_tasks.making.medhallmark.sources import ReportRow, VqaRow
    from hedge_tasks.making.stages import Made, Models

_SUMMARY = (
    "Questions about medical images with their true answers, the same behind prefixes that weaken confidence, "
    "counterfactual questions with responses that correct their premise, and cleaned reports, by the construction of "
    "Med-HallMark (section 3.4). Name this folder in HEDGE_DATA_DIR, and the tasks hedge_medhallmark read it. "
    "`category` is what verifiers and a judge say, and not what doctors say. The wording of a counterfactual "
    "question tells that its premise is false: the paper has no true premise in that form. Images have licences of "
    "their own."
)
_CLOSED = re.compile(r"\s*(yes|no)\b", re.IGNORECASE)

_CLAIM = "Does the question, or the answer, say something that is not so?"


def medhallmark(
    vqa: tuple[Path, ...] = (),
    *,
    run: MakingOptions,
    images: Path,
    out: Path,
    reports: tuple[Path, ...] = (),
    writer: str | None = None,
    verifier: tuple[str, ...] = (),
    answerer: str | None = None,
    judge: str | None = None,
    limit: int | None = None,
    concurrency: int = 16,
) -> tuple[dict[str, Any], int]:
    """Make medical questions that induce hallucinations (Med-HallMark, section 3.4).

    Args:
        vqa: Image, question, answer a row, such as VQA-RAD and SLAKE.
        images: Folder of the images, searched with its folders.
        out: Folder that HEDGE_DATA_DIR will name.
        reports: Image and report a row, or findings and impression; may be given again.
        writer: model=NAME,url=...: rewrites questions and makes them counterfactual; without it neither is made.
        verifier: model=NAME,url=...: says with the reference before it what is right, the writer if not given; may be
            given again.
        answerer: model=NAME,url=...: answers first, with the image: what it gets wrong goes no further.
        judge: model=NAME,url=...: says of which level a wrong answer is, with the image.
        limit: Only the first questions.
        concurrency: Rows under way.
    """
    from hedge_tasks.data.local_data import image_reader
    from hedge_tasks.judging.prompt import load_judge_prompt
    from hedge_tasks.making.medhallmark.construction import MedHallMark, models_of, stages_of
    from hedge_tasks.making.stages import make
    from hedge_tasks.models.by_text import model_from

    check_counts(limit=limit, concurrency=concurrency)
    if not vqa and not reports:
        raise ConfigError("hedge make medhallmark needs VQA rows, --reports, or both")
    if answerer is not None and writer is None and not verifier:
        raise ConfigError("--answerer: its answers are to be verified; give --verifier or --writer")
    if judge is not None and answerer is None:
        raise ConfigError("--judge goes with --answerer: there is no answer to judge without it")
    own = [None if spec is None else model_from(spec) for spec in (writer, answerer, judge)]
    models = models_of(own[0], [model_from(spec) for spec in verifier], own[1], own[2])
    judge_prompt = None if judge is None else load_judge_prompt("medhallmark")
    build = MedHallMark(image_reader(images), judge_prompt, run.seed)
    rows, left_out = _rows(vqa, reports, limit, build.read_image, decode=answerer is not None)
    stages = stages_of(models, judge_prompt)
    if run.dry_run:
        return cost_facts(stages, models, [row for row in rows if hasattr(row, "question")])
    result = make(rows, build, stages, models, out, seed=run.seed, concurrency=concurrency)
    sources = [path.name for path in (*vqa, *reports)]
    return _set(run, out, result.with_left_out(left_out), models, build.read_image, sources)


def _rows(
    vqa_files: Sequence[Path],
    report_files: Sequence[Path],
    limit: int | None,
    read_image: ReadImage,
    *,
    decode: bool,
) -> tuple[list[VqaRow | ReportRow], dict[str, int]]:
    """Rows whose image can be shown, and how many were left out, by reason."""
    from hedge_tasks.data.pictures import image_file_fault
    from hedge_tasks.making.medhallmark.sources import read_reports, read_vqa

    def fault(name: str) -> str | None:
        content = read_image(name)
        why = "missing" if content is None else image_file_fault(content, decode=decode)
        return why and f"image {why}"

    vqa, reports = read_vqa(vqa_files), read_reports(report_files)
    rows: list[VqaRow | ReportRow] = [*vqa.rows[:limit], *reports.rows]
    faults = {name: fault(name) for name in dict.fromkeys(row.image for row in rows)}
    left_out = Counter(why for row in rows if (why := faults[row.image]) is not None)
    left_out["an empty cell in the source"] = len(vqa.left_out) + len(reports.left_out)
    return [row for row in rows if faults[row.image] is None], dict(+left_out)


def _set(
    run: MakingOptions, out: Path, result: Made, models: Models, read_image: ReadImage, sources: Sequence[str]
) -> tuple[dict[str, Any], int]:
    from hedge_tasks.making.gate.accept import accept
    from hedge_tasks.making.output import CardText, describe_set, read_labels, write_page
    from hedge_tasks.suites.medhallmark.building import build_items
    from hedge_tasks.suites.medhallmark.released import PARTS

    labels = read_labels(run.labels)
    right = {name for name, label in labels.items() if label == 0}
    result = result.without(
        {at: "not wrong, people say" for at, e in enumerate(result.rows) if re.sub(r"-r\d+\Z", "", e.item.id) in right}
    )
    # Many questions are put in the same form, which tells nothing of their answers; one text for all is another matter.
    accepted = accept(result, written_text, attacked_items, frames=False, bound=run.floor)
    items = accepted.made.rows
    if not labels and (reviewed := _reviewed(items)):
        write_page(out, "Medical questions", reviewed, n=run.review, seed=run.seed)
    by_part = {part: [entry.item for entry in items if entry.part == part] for part in PARTS}
    built = build_items({part: some for part, some in by_part.items() if some}, read_image, out)
    files = {name.partition("/")[0]: file for part in built.values() for name, file in part.files.items()}
    levels = sum(entry.item.answer is not None and entry.item.category is None for entry in items)
    warnings = [f"{levels} wrong answers have no level: give --judge, or let people say it"] if levels else []
    settings, writers = run.settings(models, sources=sources, looked_at=len(labels)), models["writer"]
    names = [model.name for model in writers]
    card = CardText("Med-HallMark, made again", run.licence, _SUMMARY, settings, accepted.attacks, warnings, names)
    describe_set(out, accepted.made, card, files)
    return result_facts(accepted.made, "rows", list(files.values()), warnings)


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
