"""A small set of SHALE's shape: prompts from element pools, pictures, four types of questions, all scenarios.

The way of paper section 3.2 and appendix A.2: elements fill the templates of an aspect (`pools.json`), the prompt
becomes a picture, and prompt and facts become questions with their answers. The noisy scenarios are those of
`hedge_tasks.perturb.induction`. What is left out is the paper's filtering of pictures by VQAScore and OCR: pictures
that are drawn by code show what they should, and those of a text-to-image model have to be looked at.
"""

from __future__ import annotations

import hashlib
import io
import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

from PIL import Image

from hedge_tasks.errors import ConfigError, DataError, unknown
from hedge_tasks.evaluations.shale.drawing import SIZE, draw
from hedge_tasks.evaluations.shale.items import (
    ASPECTS,
    CLEAN,
    DISCRIMINATIVE,
    IMAGE_SCENARIOS,
    NOISY_SCENARIOS,
    SCENARIOS,
    TASKS,
    Item,
    options_of,
)
from hedge_tasks.evaluations.shale.released import QUERIES
from hedge_tasks.io.files import write_whole
from hedge_tasks.perturb import Noise, Wording, build_noise

TINY_ENCODER = "package://hedge_tasks.models.tiny/vlm"
"""What ADV attacks by default: the vision encoder that lies in the package, so that nothing is downloaded."""

DRAWN = "drawn"
_DIFFUSERS = "diffusers:"
_WRONG_OPTIONS = 3
_LETTERS = "ABCD"
_TASK_NAMES = {"mcq": "MCQ", "ffq": "OpenVQA", "ic": "Caption"}


@dataclass(frozen=True)
class Scene:
    """What one clean picture shows, and what is asked about it.

    Attributes:
        number: of the scene in the set, from 0.
        aspect: one of `ASPECTS`.
        values: what fills the templates: `subject` and the slots.
        answer: the right element.
        wrong: wrong elements, the first of which misleads (NegYNQ, TXT, PFX).
        near: further wrong elements, which SYN takes its options from.
        positive: whether the yes-or-no question is answered by yes.
    """

    number: int
    aspect: str
    values: Mapping[str, str]
    answer: str
    wrong: tuple[str, ...]
    near: tuple[str, ...]
    positive: bool

    @property
    def pool(self) -> Mapping[str, Any]:
        pool: Mapping[str, Any] = load_pools()["aspects"][self.aspect]
        return pool

    def filled(self, template: str, answer: str | None = None) -> str:
        """A template of the aspect's pool with the right element, or with another one."""
        return str(self.pool[template]).format(**self.values, answer=self.answer if answer is None else answer)

    @property
    def prompt(self) -> str:
        return self.filled("prompt")


Painter = Callable[[Scene, int, "str | None"], Image.Image]
"""(scene, seed, style or None) -> its picture, 8-bit RGB."""


@dataclass(frozen=True)
class Synthesised:
    """A whole set.

    Attributes:
        items: clean ones first, then by scenario.
        images: name -> PNG file.
    """

    items: tuple[Item, ...]
    images: Mapping[str, bytes]


@lru_cache(maxsize=1)
def load_pools() -> dict[str, Any]:
    """Element pools and templates, as `pools.json` has them."""
    pools: dict[str, Any] = json.loads((resources.files(__package__) / "pools.json").read_text("utf-8"))
    return pools


def scenes(per_aspect: int, *, seed: int = 0, aspects: Sequence[str] = ASPECTS) -> list[Scene]:
    """So many scenes an aspect, drawn from the pools; half of the yes-or-no questions are answered by yes.

    Raises:
        ConfigError: an aspect is unknown, or the number is not positive.
    """
    if isinstance(per_aspect, bool) or per_aspect < 1:
        raise ConfigError(f"SHALE: the number of images an aspect must be at least 1, got {per_aspect}")
    for aspect in aspects:
        if aspect not in ASPECTS:
            raise unknown("aspect of SHALE", aspect, ASPECTS)
    rows = [(aspect, i) for aspect in aspects for i in range(per_aspect)]
    return [
        # Even and odd places of an aspect differ, and so do the first of two aspects that follow each other.
        _scene(number, aspect, (i + ASPECTS.index(aspect)) % 2 == 0, i, seed)
        for number, (aspect, i) in enumerate(rows)
    ]


def _scene(number: int, aspect: str, positive: bool, place: int, seed: int) -> Scene:
    pool = load_pools()["aspects"][aspect]
    subjects = pool.get("subjects", {})
    shown = list(subjects or pool["answers"])
    # All before any comes again, so that a small set has many different ones.
    turn, place = divmod(place, len(shown))
    random.Random(f"{seed}/{aspect}/turn {turn}").shuffle(shown)
    chosen = shown[place]
    rng = random.Random(f"{seed}/{aspect}/{number}")
    answer = subjects.get(chosen, chosen)
    values = {"subject": chosen} if subjects else {}
    slots = load_pools()["slots"]
    for slot in pool["slots"]:
        taken = {answer, *values.values()}
        values[slot] = rng.choice([element for element in slots[slot.removesuffix("_2")] if element not in taken])
    values |= {f"the_{slot}": _definite(value) for slot, value in values.items()}
    possible = [e for e in dict.fromkeys([*(subjects.values() or pool["answers"]), *pool["others"]]) if e != answer]
    rng.shuffle(possible)
    return Scene(
        number,
        aspect,
        values,
        answer,
        tuple(possible[:_WRONG_OPTIONS]),
        tuple(possible[_WRONG_OPTIONS:]),
        positive,
    )


def _definite(element: str) -> str:
    """ "a house" -> "the house"."""
    article, _, rest = element.partition(" ")
    return f"the {rest}" if article in ("a", "an") else f"the {element}"


def questions(scene: Scene, *, seed: int = 0) -> list[Item]:
    """The four clean items of a scene, in the order of `TASKS`."""
    asked = scene.answer if scene.positive else scene.wrong[0]
    options = [scene.answer, *scene.wrong]
    random.Random(f"{seed}/{scene.number}/options").shuffle(options)
    listed = " ".join(f"({letter}) {option}" for letter, option in zip(_LETTERS, options, strict=True))
    right = _LETTERS[options.index(scene.answer)]
    texts = {
        "ynq": (scene.filled("ynq", asked), "Yes" if scene.positive else "No"),
        "mcq": (f"{scene.filled('ffq')} {listed}", f"({right}) {scene.answer}"),
        "ffq": (scene.filled("ffq"), scene.answer),
        "ic": (load_pools()["caption"], scene.prompt),
    }
    facts = scene.filled("facts") if "facts" in scene.pool else ""
    return [
        Item(
            id=str(scene.number * len(TASKS) + place),
            scenario=CLEAN,
            task=task,
            kind=scene.pool["kind"],
            aspect=scene.aspect,
            entity=scene.pool["entity"],
            image=_image_name(scene, CLEAN),
            question=texts[task][0],
            answer=texts[task][1],
            description=scene.prompt,
            facts=facts[:1].upper() + facts[1:],
            distractor=scene.wrong[0],
        )
        for place, task in enumerate(TASKS, start=1)
    ]


def synthesise(
    per_aspect: int = 1,
    *,
    seed: int = 0,
    scenarios: Sequence[str] = SCENARIOS,
    aspects: Sequence[str] = ASPECTS,
    backend: str = DRAWN,
    encoder: str = TINY_ENCODER,
    style_pipeline: str | None = None,
    size: int = SIZE,
) -> Synthesised:
    """Make a whole set. The same arguments give the same set.

    In the scenario SYN are multiple-choice questions, and yes-or-no questions that are answered by no: others have no
    wrong element that could be replaced. The other scenarios have all questions (the paper asks its open ones in the
    clean and the four image scenarios only). A scenario that ends in `_p` has the pictures of the one without.

    Args:
        per_aspect: number of clean pictures an aspect.
        scenarios: clean is always among them.
        backend: "drawn", or `diffusers:<model>`, a text-to-image model that is given the prompt.
        encoder: what ADV attacks; see `Induction.encoder`.
        style_pipeline: what makes STY of a clean picture, see `Induction.pipeline`. None: filters for drawn pictures; a
            text-to-image model is given the prompt with the style, as in the paper.
        size: side of a drawn picture in pixels.

    Raises:
        ConfigError: an argument makes no sense, or a model cannot be had.
    """
    for scenario in scenarios:
        if scenario not in SCENARIOS:
            raise unknown("scenario of SHALE", scenario, SCENARIOS)
    if not 32 <= size <= 4096:
        raise ConfigError(f"SHALE: the size of a picture must lie between 32 and 4096 pixels, got {size}")
    paint = _painter(backend, size)
    wanted = [scenario for scenario in NOISY_SCENARIOS if scenario in scenarios]
    noises = _noises(wanted, encoder, style_pipeline)
    restyle = paint if backend != DRAWN and style_pipeline is None else None
    items: list[Item] = []
    images: dict[str, bytes] = {}
    for scene in scenes(per_aspect, seed=seed, aspects=aspects):
        clean = paint(scene, _seed(seed, scene, CLEAN), None)
        images[_image_name(scene, CLEAN)] = _png(clean)
        for scenario in dict.fromkeys(name.removesuffix("_p") for name in wanted):
            if scenario in IMAGE_SCENARIOS:
                drawn_anew = restyle if scenario == "sty" else None
                picture = _perturbed(scene, clean, scenario, noises[scenario], _seed(seed, scene, scenario), drawn_anew)
                images[_image_name(scene, scenario)] = _png(picture)
        asked = questions(scene, seed=seed)
        items += asked
        for scenario in wanted:
            items += _induced(scene, asked, scenario, noises, _seed(seed, scene, scenario))
    return Synthesised(tuple(sorted(items, key=lambda item: SCENARIOS.index(item.scenario))), images)


def write_released(made: Synthesised, folder: Path) -> list[Path]:
    """Write a set the way SHALE is handed out: `query_json/<Scenario>.json` and `Image/<name>.png`.

    Returns:
        The query files.

    Raises:
        DataError: the folder cannot be written.
    """
    try:
        (folder / QUERIES).mkdir(parents=True, exist_ok=True)
        for name, content in made.images.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
    except OSError as error:
        raise DataError(f"cannot write to {folder}: {error.strerror or error}") from error
    files = []
    for scenario in SCENARIOS:
        rows = [_released_row(item) for item in made.items if item.scenario == scenario]
        if rows:
            files.append(folder / QUERIES / f"{FILE_NAMES[scenario]}.json")
            write_whole(files[-1], json.dumps(rows, ensure_ascii=False, indent=1) + "\n")
    return files


_WORDS = {"clean": "Clean", "sty": "Style", "crp": "Corruption", "adv": "Adversarial", "txt": "SceneText"}
_WORDS |= {"syn": "Synonyms", "pfx": "Prefix"}
FILE_NAMES = {name: _WORDS[name.removesuffix("_p")] + ("-P" if name.endswith("_p") else "") for name in SCENARIOS}
"""Names of query files by scenario: those of SHALE's code, and our guess for the others."""


def _released_row(item: Item) -> dict[str, Any]:
    task = ("PosYNQ" if item.answer == "Yes" else "NegYNQ") if item.task == "ynq" else _TASK_NAMES[item.task]
    row: dict[str, Any] = {
        "id": int(item.id),
        "task": task,
        "hallucination_type": item.kind,
        "evaluation_dimension": item.aspect,
        "entity_type": item.entity,
        "images": [f"./{item.image}"],
        "instruction": item.question,
        "ground_truth": item.answer,
        "image_prompt": item.description,
        "distractor": item.distractor,
    }
    row |= {"Ground Truth Option": item.answer[:3]} if item.task == "mcq" else {}
    return row | ({"Facts": item.facts} if item.facts else {})


def _image_name(scene: Scene, scenario: str) -> str:
    ending = "" if scenario == CLEAN else f"-{scenario}"
    return f"Image/{scene.number + 1}{ending}.png"


def _seed(seed: int, scene: Scene, scenario: str) -> int:
    text = f"shale\0{seed}\0{scene.number}\0{scene.aspect}\0{scenario.removesuffix('_p')}"
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") >> 1


def _noises(wanted: Sequence[str], encoder: str, style_pipeline: str | None) -> dict[str, Noise]:
    """By scenario without prefix; the prefix itself is `pfx`."""
    names = {part for name in wanted for part in (name.removesuffix("_p"), *(("pfx",) if name.endswith("_p") else ()))}
    own: dict[str, dict[str, Any]] = {"adv": {"encoder": encoder}}
    own["sty"] = {"pipeline": style_pipeline} if style_pipeline else {}
    return {name: build_noise({"kind": "induction", "name": f"shale_{name}", **own.get(name, {})}) for name in names}


def _perturbed(
    scene: Scene, clean: Image.Image, scenario: str, noise: Noise, seed: int, restyle: Painter | None
) -> Image.Image:
    if restyle is not None:
        style = random.Random(seed).choice(noise.settings()["styles"])
        return restyle(scene, seed, style)
    [picture] = noise.perturb_images([clean], Wording("", distractor=scene.wrong[0]), seed=seed)
    return picture


def _induced(
    scene: Scene, asked: Sequence[Item], scenario: str, noises: Mapping[str, Noise], seed: int
) -> Iterator[Item]:
    """The items of one scene in one noisy scenario."""
    base = scenario.removesuffix("_p")
    image = _image_name(scene, base if base in IMAGE_SCENARIOS else CLEAN)
    for item in asked:
        question, distractor = item.question, item.distractor
        if scenario == "syn":
            if item.task not in DISCRIMINATIVE or (item.task == "ynq" and scene.positive):
                continue
            question, distractor = _with_synonyms(scene, item, noises["syn"], seed)
            if question == item.question:
                continue  # nothing in the pool is nearer, so there is no harder form of it
        elif scenario != base or scenario == "pfx":
            statement = Wording(question, distractor=scene.filled("statement", scene.wrong[0]))
            question = noises["pfx"].perturb_wording(statement, seed=seed).question
        yield replace(item, scenario=scenario, image=image, question=question, distractor=distractor)


def _with_synonyms(scene: Scene, item: Item, noise: Noise, seed: int) -> tuple[str, str]:
    """Question and distractor of SYN: wrong elements give way to some that are nearer in meaning to the right one."""
    settings = {**noise.settings(), "candidates": [*scene.wrong, *scene.near]}
    if item.task == "mcq":
        near = build_noise(settings).perturb_wording(Wording(item.question, answer=item.answer), seed=seed)
        options = options_of(near.question)
        wrong = next(text for letter, text in options.items() if not item.answer.startswith(f"({letter})"))
        return near.question, wrong
    pair = Wording(f"(A) {scene.answer} (B) {item.distractor}", answer=f"(A) {scene.answer}")
    changed = build_noise(settings).perturb_wording(pair, seed=seed).question
    wrong = changed.partition("(B) ")[2]
    return scene.filled("ynq", wrong), wrong


def _painter(backend: str, size: int) -> Painter:
    if backend == DRAWN:
        return lambda scene, seed, style: draw(
            scene.pool["figure"], {**scene.values, "answer": scene.answer}, ground=seed, size=size
        )
    model = backend.removeprefix(_DIFFUSERS)
    if model == backend or not model:
        raise ConfigError(f"SHALE: the backend must be {DRAWN!r} or 'diffusers:<model>', got {backend!r}")
    return _diffusers_painter(model)


def _diffusers_painter(model: str) -> Painter:
    """A painter made of a text-to-image model of diffusers.

    Raises:
        ConfigError: diffusers is not installed, or the model cannot be loaded.
    """
    import torch

    from hedge_tasks.perturb.induction_image import load_diffusers

    pipe = load_diffusers("AutoPipelineForText2Image", model)

    def paint(scene: Scene, seed: int, style: str | None) -> Image.Image:
        prompt = f"{scene.prompt}, in the style of a {style}" if style else scene.prompt
        picture: Image.Image = pipe(prompt=prompt, generator=torch.Generator("cpu").manual_seed(seed)).images[0]
        return picture.convert("RGB")

    return paint


def _png(image: Image.Image) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()
