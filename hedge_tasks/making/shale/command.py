"""`hedge make shale`."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Sequence
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


def add(commands: Parser) -> None:
    """Add the command to `hedge make`."""
    text = "make pictures and questions that induce hallucinations (SHALE, section 3.2)"
    parser = command(commands, "shale", run_shale, text)
    add_out(parser, "folder that HEDGE_DATA_DIR will name", required=True)
    parser.add_argument(
        "--per-aspect", type=int, default=1, metavar="N", help="scenes of each of the 18 aspects (default: 1)"
    )
    parser.add_argument("--aspect", action="append", metavar="NAME", help="only this aspect (repeat for several)")
    parser.add_argument("--scenario", action="append", metavar="NAME", help="only this and clean (repeat for several)")
    parser.add_argument(
        "--generator",
        default="drawn",
        metavar="NAME",
        help="diffusers:MODEL,steps=28, or drawn: flat drawings of 9 aspects (default; drawn:size=256)",
    )
    parser.add_argument(
        "--checker",
        action="append",
        default=[],
        metavar="NAME",
        help="vqascore:adapter=...,pretrained=...; ocr (repeat for several)",
    )
    parser.add_argument("--alpha", type=float, default=0.85, help="least mean of the scores (default: 0.85)")
    parser.add_argument("--beta", type=float, default=0.5, help="largest variance of the scores (default: 0.5)")
    parser.add_argument("--writer", metavar=MODEL, help="proposes the scenes, in place of the element pools")
    text = "says whether the writer's wrong answers contradict its records (repeat for several)"
    add_models(parser, "--verifier", text)
    parser.add_argument(
        "--encoder",
        action="append",
        metavar="MODEL",
        help="vision encoder that ADV attacks; repeat to attack several at once (default: the embedded model's)",
    )
    add_floor(parser, "a scenario")
    licence = "of the set, for its card (drawn: apache-2.0)"
    add_run(parser, "scene", seed="another seed is another set", licence=licence)


def run_shale(arguments: argparse.Namespace) -> int:
    from hedge_tasks.numbers import Table

    check_counts(arguments)
    making = _making(arguments)
    if arguments.dry_run:
        counts = Table.of(["pictures", "to"], [[name, f"{n:,}"] for name, n in making.picture_counts().items()])
        return show_cost(arguments, making.stages, making.models, making.proposals(), counts)
    result = making.run(arguments.out, concurrency=arguments.concurrency)
    return _set(arguments, making, result)


def _making(arguments: argparse.Namespace) -> ShaleMaking:
    from hedge_tasks.making.output import read_labels
    from hedge_tasks.making.pictures.base import CHECKERS, GENERATORS, built
    from hedge_tasks.making.shale.construction import ShaleMaking
    from hedge_tasks.making.shale.pictures import TINY_ENCODER, PictureMaking
    from hedge_tasks.models.by_text import model_from
    from hedge_tasks.suites.shale.items import ASPECTS, SCENARIOS

    checkers = [built(CHECKERS, spec) for spec in arguments.checker]
    labels, generator = read_labels(arguments.labels), built(GENERATORS, arguments.generator)
    return ShaleMaking(
        PictureMaking(generator, checkers, arguments.alpha, arguments.beta, labels, arguments.seed),
        per_aspect=arguments.per_aspect,
        aspects=arguments.aspect or ASPECTS,
        scenarios=arguments.scenario or SCENARIOS,
        writer=model_from(arguments.writer) if arguments.writer else None,
        verifiers=[model_from(spec) for spec in arguments.verifier],
        encoders=arguments.encoder or (TINY_ENCODER,),
    )


def _set(arguments: argparse.Namespace, making: ShaleMaking, result: MadeScenes) -> int:
    from hedge_tasks.making.gate.accept import accept
    from hedge_tasks.making.output import CardText, describe_set, write_page
    from hedge_tasks.making.shale.items import attacked_items, pictures_by_name
    from hedge_tasks.suites.shale.building import build

    doubtful = list(reviewed(result.scenes, "review"))
    sample = list(reviewed(result.scenes, "accepted"))
    if doubtful or sample:
        n = len(doubtful) + arguments.review
        write_page(arguments.out, "SHALE: pictures", [*doubtful, *sample][:n], seed=arguments.seed)
    accepted = accept(result.made, lambda item: None, attacked_items, bound=arguments.floor)
    pictures = pictures_by_name(result.scenes)

    def read(name: str) -> bytes | None:
        return pictures[name][0].pictures[pictures[name][1]].path.read_bytes() if name in pictures else None

    columns = {
        "source": lambda item: pictures[item.image][0].scene.source,
        "licence": lambda item: pictures[item.image][0].scene.licence,
        "generator": lambda item: making.pictures.generator.name,
    }
    built = build(accepted.made.rows, read, arguments.out, columns)
    settings = settings_of(arguments, making.models, **making.settings())
    warnings = [
        f"{aspect}: {count} scenes, fewer than wanted; what can be drawn or filled in there is exhausted"
        for aspect, count in making.short(result.scenes).items()
    ]
    if doubtful:
        warnings.append(f"{len(doubtful)} pictures wait for people (review.html); they are not in the set")
    licence = arguments.licence or ("apache-2.0" if making.draws else None)  # drawings and pools are ours
    writers = [making.writer.name] if making.writer else []
    title, tables = "SHALE, made again", distributions(result)
    card = CardText(title, licence, _SUMMARY, settings, accepted.attacks, warnings, tables, writers)
    describe_set(arguments.out, accepted.made, card, built.files)
    return show_result(arguments, accepted.made, "scenes", list(built.files.values()), warnings)


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


def distributions(result: MadeScenes) -> dict[str, tuple[Sequence[str], Sequence[Sequence[str]]]]:
    """The contents of the set, as the paper's Figure 1 draws it: header and rows by title."""
    from hedge_tasks.suites.shale.items import CLEAN, TASKS

    clean = [item for item in result.items if item.scenario == CLEAN]
    verdicts = [(name, verdict.outcome) for scene in result.scenes for name, verdict in scene.verdicts.items()]
    sources = Counter((r.scene.source, r.scene.licence) for r in result.scenes if r.accepted)
    return {
        "Items by aspect (clean)": _counted("aspect", [(item.aspect, item.task) for item in clean], TASKS),
        "Items by scenario": _counted("scenario", [(item.scenario, item.task) for item in result.items], TASKS),
        "Pictures by verdict": _counted("pictures", verdicts, ("accepted", "review", "rejected")),
        "Sources": (("source", "licence", "scenes"), [[*pair, str(n)] for pair, n in sorted(sources.items())]),
    }


def _counted(
    name: str, pairs: Sequence[tuple[str, str]], columns: Sequence[str]
) -> tuple[Sequence[str], list[list[str]]]:
    counts = Counter(pairs)
    rows = dict.fromkeys(row for row, _ in pairs)
    return (name, *columns), [[row, *(str(counts[row, column]) for column in columns)] for row in rows]
