"""Output of a making: the data set, its distributions as tables, a card, and what people have to look at."""

from __future__ import annotations

import io
import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from hedge_tasks.data.local_data import BuiltSet
from hedge_tasks.errors import DataError
from hedge_tasks.judging.review import two_keys, write_review
from hedge_tasks.making.gate.attack import attack, check_floors
from hedge_tasks.making.gate.sets import shale_items
from hedge_tasks.making.output import REVIEW, CardText, describe_set
from hedge_tasks.making.pictures.inspection import KEYS, review_items
from hedge_tasks.making.pictures.store import StoredPicture
from hedge_tasks.making.shale.items import LETTERS, pictures_by_name
from hedge_tasks.making.shale.making import MadeSet, ShaleMaking
from hedge_tasks.making.shale.pictures import picture_id
from hedge_tasks.making.shale.records import Scene
from hedge_tasks.numbers import FOUR_DIGITS, Table, format_value
from hedge_tasks.suites.shale.building import build
from hedge_tasks.suites.shale.items import ALL_SCENARIOS, ASPECTS, CLEAN, IMAGE_SCENARIOS, TASKS, ShaleItem

_PNG = b"\x89PNG\r\n\x1a\n"

Counts = tuple[Sequence[str], Sequence[Sequence[str]]]
"""Header and rows."""

_SUMMARY = (
    "Pictures with questions about 12 aspects of perception and 6 domains of knowledge, clean and in noisy scenarios "
    "that induce hallucinations, by the construction of SHALE (Yan et al. 2025, section 3.2). Every picture, "
    "noisy ones included, was checked for whether it shows what is asked about. Name this folder in HEDGE_DATA_DIR, "
    "and the tasks hedge_shale read it."
)


def distributions(made_set: MadeSet) -> dict[str, Counts]:
    """Return the composition of the set, as the paper's Figure 1 draws it and what its Figure 4 (the judge's prompt)
    is filled with.
    """
    items = made_set.items
    aspects = [aspect for aspect in ASPECTS if any(item.aspect == aspect for item in items)]
    scenarios = [scenario for scenario in ALL_SCENARIOS if any(item.scenario == scenario for item in items)]
    clean = [item for item in items if item.scenario == CLEAN]
    return {
        "Items by aspect (clean)": _counted("aspect", aspects, [(i.aspect, i.task) for i in clean], TASKS),
        "Items by scenario": _counted("scenario", scenarios, [(i.scenario, i.task) for i in items], TASKS),
        "Pictures by verdict": _verdicts(made_set),
        "Right answers (clean)": _answers(clean),
        "What a judge of open questions is told": _judged(items),
        "Sources": _sources(made_set),
    }


def _counted(name: str, rows: Sequence[str], pairs: Sequence[tuple[str, str]], columns: Sequence[str]) -> Counts:
    counts = Counter(pairs)
    body = [[row, *(str(counts[row, column]) for column in columns)] for row in rows]
    total = ["all", *(str(sum(counts[row, column] for row in rows)) for column in columns)]
    return (name, *columns), [*body, total]


def _verdicts(made_set: MadeSet) -> Counts:
    pairs = [(name, verdict.outcome) for scene in made_set.scenes for name, verdict in scene.verdicts.items()]
    present = [name for name in (CLEAN, *IMAGE_SCENARIOS) if any(name == scenario for scenario, _ in pairs)]
    return _counted("pictures", present, pairs, ("accepted", "review", "rejected"))


def _answers(clean: Sequence[ShaleItem]) -> Counts:
    """Counts of yes and no, and of the letters: they are to be balanced."""
    counts = Counter(
        item.answer if item.task == "ynq" else item.answer[1] for item in clean if item.task in ("ynq", "mcq")
    )
    columns = ("Yes", "No", *LETTERS)
    return columns, [[str(counts[column]) for column in columns]]


def _judged(items: Sequence[ShaleItem]) -> Counts:
    """Counts of open questions that bring what the fields of the paper's judge prompt (Figure 4) are filled with."""
    rows = []
    for task in ("ffq", "ic"):
        mine = [item for item in items if item.task == task]
        filled = [sum(bool(getattr(item, field)) for item in mine) for field in ("answer", "description", "facts")]
        rows.append([task, str(len(mine)), *map(str, filled)])
    return ("question", "items", "ground truth", "image information", "related facts"), rows


def _sources(made_set: MadeSet) -> Counts:
    scenes = [scene_pictures.scene for scene_pictures in made_set.scenes if scene_pictures.accepted]
    counts = Counter((_source(scene.source), scene.licence) for scene in scenes)
    return ("source", "licence", "scenes"), [[*pair, str(count)] for pair, count in sorted(counts.items())]


def _source(name: str) -> str:
    """A dump's address stands for all its entities, a word list for all its words."""
    for address in ("http://www.wikidata.org/", "http://dbpedia.org/"):
        if name.startswith(address):
            return address
    return " ".join(name.split(" ")[:2]) if name.startswith("WordNet") else name


def write(
    folder: Path, making: ShaleMaking, made_set: MadeSet, *, licence: str | None = None, bound: float | None = None
) -> BuiltSet:
    """Write the data set (`FOLDER/BeiiiY__SHALE`), the card, the report and the review queue.

    Args:
        bound: Share of a type and scenario that solvers without skill may get right; as for `attack`.

    Raises:
        DataError: Nothing was accepted, a solver without skill is above its bound, or the folder cannot be written.
    """
    _write_review(folder, made_set)
    if not made_set.items:
        reasons = ", ".join(f"{count} × {name}" for name, count in made_set.report()["rejected"].items())
        raise DataError(f"no scene is accepted ({reasons or 'there is none'}); see {folder / REVIEW}")
    attacks = attack(shale_items(made_set.items), bound=bound)
    check_floors(attacks)
    pictures = pictures_by_name(made_set.scenes)

    def read(name: str) -> bytes | None:
        if name not in pictures:
            return None
        scene_pictures, scenario = pictures[name]
        return png(scene_pictures.pictures[scenario])

    def mean(item: ShaleItem) -> str:
        scene_pictures, scenario = pictures[item.image]
        return format_value(scene_pictures.verdicts[scenario].mean, FOUR_DIGITS, missing="")

    def scene_of(item: ShaleItem) -> Scene:
        return pictures[item.image][0].scene

    def blind(item: ShaleItem) -> str:
        return ", ".join(made_set.blind_answers.get(scene_of(item).id, {}).get(item.task, ()))

    built = build(
        made_set.items,
        read,
        folder,
        {
            "source": lambda item: scene_of(item).source,
            "licence": lambda item: scene_of(item).licence,
            "generator": lambda item: making.generator.name,
            "picture_score": mean,
            "answered_blindly": blind,
        },
    )
    files = {task: str(file.relative_to(folder)) for task, file in built.files.items()}
    settings = making.settings()
    writers = [] if making.writer is None else [making.writer.name]
    warnings, tables = warnings_of(made_set), distributions(made_set)
    card = CardText("SHALE, made again", licence, _SUMMARY, settings, attacks, warnings, tables, writers)
    describe_set(folder, {**made_set.report(), "items": len(made_set.items)}, card, files)
    return built


def png(picture: StoredPicture) -> bytes:
    """A PNG file with the pixels and nothing else: what an image generator was told is not for those who are asked.

    Raises:
        DataError: Its file is gone or damaged.
    """
    if picture.path is None:
        buffer = io.BytesIO()
        picture.open().save(buffer, "PNG")
        return buffer.getvalue()
    try:
        return _without_texts(picture.path.read_bytes())
    except (OSError, struct.error) as error:
        raise DataError(f"cannot read {picture.path}: {error}") from error


def _without_texts(content: bytes) -> bytes:
    """A PNG file without its texts; packing the pixels of a large set anew for every row would take hours."""
    at = len(_PNG)
    chunks = [content[:at]]
    while at < len(content):
        length, kind = struct.unpack_from(">I4s", content, at)
        end = at + 12 + length  # length, kind and checksum
        if kind not in (b"tEXt", b"zTXt", b"iTXt"):
            chunks.append(content[at:end])
        at = end
    return b"".join(chunks)


def warnings_of(made_set: MadeSet) -> list[str]:
    """Return what a user has to know."""
    warnings = [
        f"{aspect}: {count} scenes, fewer than wanted; what can be drawn or filled in there is exhausted"
        for aspect, count in made_set.short.items()
    ]
    waiting = sum(v.outcome == "review" for scene in made_set.scenes for v in scene.verdicts.values())
    if waiting:
        warnings.append(f"{waiting} pictures wait for people ({REVIEW}); they are not in the set")
    return warnings


def _write_review(folder: Path, made_set: MadeSet) -> None:
    rows = [
        (picture_id(scene_pictures.scene, scenario), scene_pictures.pictures[scenario], scene_pictures.scene, verdict)
        for scene_pictures in made_set.scenes
        for scenario, verdict in scene_pictures.verdicts.items()
        if scenario in scene_pictures.pictures
    ]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"cannot write to {folder}: {error.strerror or error}") from error
    statements = [f"{scene.prompt}\n\n{scene.ffq}\nRight answer: {scene.answer}" for _, _, scene, _ in rows]
    queue = review_items([row[0] for row in rows], [row[1] for row in rows], statements, [row[3] for row in rows])
    write_review(folder / REVIEW, "SHALE: pictures in doubt", list(queue), two_keys(*KEYS))


def as_text(tables: Mapping[str, Counts]) -> str:
    """The tables for a terminal."""
    return "\n\n".join(str(Table.of(header, rows, title=title)) for title, (header, rows) in tables.items())
