"""`hedge make shale`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedge_tasks.making.commands import MakingOptions, result_facts

if TYPE_CHECKING:
    from hedge_tasks.judging.review import ReviewItem
    from hedge_tasks.making.shale.construction import MadeScenes, ShaleMaking
    from hedge_tasks.making.shale.pictures import ScenePictures

_SUMMARY = (
    "Pictures with questions about 12 aspects of perception and 6 domains of knowledge, clean and in noisy scenarios "
    "that induce hallucinations, by the construction of SHALE (Yan et al. 2025, section 3.2). Every picture, "
    "noisy ones included, was checked for whether it shows what is asked about. Name this folder in HEDGE_DATA_DIR, "
    "and the tasks hedge_shale read it."
)
_CLAIM = "Does the picture show this, and mislead nobody?"


def shale(
    run: MakingOptions,
    *,
    out: Path,
    per_aspect: int = 1,
    aspect: tuple[str, ...] = (),
    scenario: tuple[str, ...] = (),
    generator: str = "drawn",
    checker: tuple[str, ...] = (),
    alpha: float = 0.85,
    beta: float = 0.5,
    encoder: tuple[str, ...] = (),
) -> tuple[dict[str, Any], int]:
    """Make pictures and questions that induce hallucinations (SHALE, section 3.2).

    Args:
        out: Folder that HEDGE_DATA_DIR will name.
        per_aspect: Scenes of each of the 18 aspects.
        aspect: Only this aspect; may be given again.
        scenario: Only this and clean; may be given again.
        generator: diffusers:MODEL,steps=28, or drawn: flat drawings of 9 aspects; drawn:size=256.
        checker: vqascore:adapter=...,pretrained=..., or ocr; may be given again.
        alpha: Least mean of the scores.
        beta: Largest variance of the scores.
        encoder: Vision encoder that ADV attacks, several at once if given again; the embedded model's if not given.
    """
    from hedge_tasks.making.output import read_labels
    from hedge_tasks.making.pictures.base import CHECKERS, GENERATORS, built
    from hedge_tasks.making.shale.construction import ShaleMaking
    from hedge_tasks.making.shale.pictures import TINY_ENCODER, PictureMaking
    from hedge_tasks.suites.shale.items import ASPECTS, SCENARIOS

    checkers = [built(CHECKERS, spec) for spec in checker]
    pictures = PictureMaking(built(GENERATORS, generator), checkers, alpha, beta, read_labels(run.labels), run.seed)
    encoders = tuple(encoder) or (TINY_ENCODER,)
    making = ShaleMaking(pictures, per_aspect, aspect or ASPECTS, scenario or SCENARIOS, encoders)
    if run.dry_run:
        return {"pictures": making.picture_counts()}, 0
    return _set(run, out, making, making.run(out))


def _set(run: MakingOptions, out: Path, making: ShaleMaking, result: MadeScenes) -> tuple[dict[str, Any], int]:
    from hedge_tasks.making.gate.accept import accept
    from hedge_tasks.making.output import CardText, describe_set, write_page
    from hedge_tasks.making.shale.items import attacked_items, pictures_by_name
    from hedge_tasks.suites.shale.building import build

    doubtful = list(reviewed(result.scenes, "review"))
    sample = list(reviewed(result.scenes, "accepted"))
    if doubtful or sample:
        write_page(out, "SHALE: pictures", [*doubtful, *sample][: len(doubtful) + run.review], seed=run.seed)
    accepted = accept(result.made, lambda item: None, attacked_items, bound=run.floor)
    pictures = pictures_by_name(result.scenes)

    def read(name: str) -> bytes | None:
        return pictures[name][0].pictures[pictures[name][1]].path.read_bytes() if name in pictures else None

    built = build(accepted.made.rows, read, out, {"generator": lambda item: making.pictures.generator.name})
    warnings = [
        f"{aspect}: {count} scenes, fewer than wanted; what can be drawn or filled in there is exhausted"
        for aspect, count in making.short(result.scenes).items()
    ]
    if doubtful:
        warnings.append(f"{len(doubtful)} pictures wait for people (review.html); they are not in the set")
    licence = run.licence or ("apache-2.0" if making.draws else None)  # drawings and pools are ours
    settings = run.settings({}, **making.settings())
    card = CardText("SHALE, made again", licence, _SUMMARY, settings, accepted.attacks, warnings)
    describe_set(out, accepted.made, card, built.files)
    return result_facts(accepted.made, "scenes", list(built.files.values()), warnings)


def reviewed(scenes: Iterable[ScenePictures], outcome: str) -> Iterable[ReviewItem]:
    """The pictures with an outcome, as people look at them."""
    from hedge_tasks.judging.review import ReviewItem
    from hedge_tasks.making.shale.pictures import picture_id

    for result in scenes:
        scene = result.scene
        statement = f"{scene.prompt}\n\n{scene.ffq}\nRight answer: {scene.answer}"
        for scenario, verdict in result.verdicts.items():
            if verdict.outcome == outcome:
                texts = {"Has to show": statement, **({"In doubt because": verdict.reason} if verdict.reason else {})}
                picture = result.pictures[scenario].open()
                yield ReviewItem(picture_id(scene, scenario), texts, _CLAIM, [picture])
