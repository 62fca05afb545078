"""When does the answer's own log-probability beat semantic entropy? Options of real models with several spellings each.

    python benchmarks/spellings.py LOGITS.npz QUESTIONS.parquet [--n 10] [--seed 0] [--json FILE]
    python benchmarks/spellings.py --from FILE... --figure docs/spellings.svg

Each option of each question gets k spellings, with shares of its probability drawn from a Dirichlet distribution. The
baseline answer is drawn at T = 0.1 and `n` more at T = 1, spelling by spelling; an answer is wrong where its option is.
Who takes the fifth or sixth option ("I don't know", "None of the above") declines and is left out. All AUROCs are means
over the models of the file. With one spelling an option is its meaning, and the log-probability
of the answer is that of the meaning; with several it is not, and semantic entropy, which adds them up, is the same.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hedge_tasks.data.option_files import OptionQuestion, read_options
from hedge_tasks.statistics import auroc

Floats = npt.NDArray[np.float64]
CELLS = ((1, 1.0), (2, 1.0), (4, 1.0), (8, 1.0), (8, 0.3))
"""Spellings of a meaning, and the Dirichlet parameter: the smaller, the more one of them is preferred."""


NAMES, COLOURS = ("-log p", "SE", "discrete SE", "RadFlag"), ("#d55e00", "#0072b2", "#56b4e9", "#00805c")
Cell = tuple[int, float]
ANSWERS = 4
"""Options that say something."""


def draws(p: Floats, size: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Positions drawn from each row, shape `(rows, size)`."""
    cumulative = p.cumsum(axis=1) / p.sum(axis=1, keepdims=True)
    return np.stack([(cumulative < rng.random((len(p), 1))).sum(axis=1) for _ in range(size)], axis=1)


def entropy(shares: Floats) -> Floats:
    p = shares / shares.sum(axis=1, keepdims=True)
    return np.asarray(-np.where(p > 0, p * np.log(np.where(p > 0, p, 1.0)), 0.0).sum(axis=1).round(10))


def areas(questions: list[OptionQuestion], spellings: int, alpha: float, n: int, seed: int) -> list[float]:
    """AUROC of the negative log-probability, of SE, of discrete SE and of RadFlag."""
    logits = np.array([list(q.logits.values()) for q in questions])
    right = np.array([list(q.logits).index(q.answer) for q in questions])
    rng = np.random.default_rng(seed)
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    options = p.shape[1]
    shares = rng.dirichlet([alpha] * spellings, size=p.shape)
    spelled = (p[:, :, None] * shares).reshape(len(p), -1) + 1e-300
    baseline, sampled = draws(spelled**10, 1, rng)[:, 0], draws(spelled, n, rng)
    meaning, meanings = baseline // spellings, sampled // spellings
    rows = np.arange(len(p))
    weights = spelled[rows[:, None], sampled]
    weighted = np.stack([(weights * (meanings == o)).sum(axis=1) for o in range(options)], axis=1)
    counted = np.stack([(meanings == o).mean(axis=1) for o in range(options)], axis=1)
    away = (meanings != meaning[:, None]).mean(axis=1)
    wrong = (meaning != right).astype(int)
    said = meaning < ANSWERS
    scores = (-np.log(spelled[rows, baseline]).round(10), entropy(weighted), entropy(counted), away)
    return [auroc(score[said], wrong[said]) for score in scores]


def measure(models: dict[str, list[OptionQuestion]], n: int, seed: int) -> Iterator[tuple[Cell, Floats]]:
    """For each cell the AUROCs, shape `(models, detectors)`."""
    for spellings, alpha in CELLS:
        found = [areas(questions, spellings, alpha, n, seed) for questions in models.values()]
        yield (spellings, alpha), np.array(found)


def row(cell: Cell, found: Floats) -> str:
    wins = f"{(found[:, 1] > found[:, 0]).sum()} of {len(found)}"
    means = " | ".join(f"{value:.3f}" for value in found.mean(axis=0))
    return f"| {cell[0]} | {cell[1]:g} | {means} | {wins} |"


def figure(sets: dict[str, dict[str, list[float]]]) -> str:
    """Means by number of spellings as SVG, a panel a set of questions."""
    panels = "".join(_panel(40 + 350 * i, name, means) for i, (name, means) in enumerate(sets.items()))
    width = 350 * len(sets) + 130
    keys = "".join(
        f'<g fill="{colour}"><circle cx="{width - 118}" cy="{40 + 22 * i}" r="5"/>'
        f'<text x="{width - 106}" y="{44 + 22 * i}">{name}</text></g>'
        for i, (name, colour) in enumerate(zip(NAMES, COLOURS, strict=True))
    )
    title = "AUROC of detectors by the number of spellings of a meaning"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} 250" role="img" font-family="sans-serif" '
        f'font-size="12"><title>{title}</title><rect width="{width}" height="250" fill="#ffffff"/>'
        f"{panels}{keys}</svg>\n"
    )


def _panel(left: float, name: str, means: dict[str, list[float]]) -> str:
    """A line a detector over the cells, from .6 to .86."""
    across = [left + 20 + 70 * i for i in range(len(means))]

    def height(value: float) -> float:
        return 200 - (value - 0.6) / 0.26 * 160

    parts = [f'<text x="{left}" y="20" font-weight="bold" fill="#1b1f26">{name}</text>']
    for tick in (0.6, 0.7, 0.8):
        y = height(tick)
        parts.append(f'<path d="M{left} {y:.1f}H{across[-1] + 20}" stroke="#d9dde3"/>')
        parts.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end" fill="#5b6472">{tick:g}</text>')
    for x, label in zip(across, means, strict=True):
        parts.append(f'<text x="{x}" y="220" text-anchor="middle" fill="#5b6472">{label}</text>')
    parts.append(
        f'<text x="{(across[0] + across[-1]) / 2}" y="240" text-anchor="middle" fill="#5b6472">spellings</text>'
    )
    for k, colour in enumerate(COLOURS):
        points = [f"{x},{height(values[k]):.1f}" for x, values in zip(across, means.values(), strict=True)]
        parts.append(f'<polyline points="{" ".join(points)}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{p.split(",")[0]}" cy="{p.split(",")[1]}" r="4" fill="{colour}"/>' for p in points]
    return "".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("logits", type=Path, nargs="?")
    parser.add_argument("questions", type=Path, nargs="?")
    parser.add_argument("--n", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="write the means, for --from")
    parser.add_argument("--from", dest="given", type=Path, nargs="+", metavar="FILE")
    parser.add_argument("--figure", type=Path, help="write them as SVG")
    arguments = parser.parse_args()
    sets: dict[str, dict[str, list[float]]] = {}
    for file in arguments.given or ():
        sets |= json.loads(file.read_text())
    if arguments.logits is not None:
        print("| spellings | Dirichlet | " + " | ".join(NAMES) + " | SE wins |\n|---|---|---|---|---|---|---|")
        of = sets.setdefault(arguments.logits.name.partition("_")[0], {})
        for cell, found in measure(read_options(arguments.logits, arguments.questions), arguments.n, arguments.seed):
            print(row(cell, found), flush=True)
            of[f"{cell[0]}" if cell[1] == 1 else f"{cell[0]}, one preferred"] = found.mean(axis=0).tolist()
    if arguments.json:
        arguments.json.write_text(json.dumps(sets, indent=1))
    if arguments.figure:
        arguments.figure.write_text(figure(sets))


if __name__ == "__main__":
    main()
