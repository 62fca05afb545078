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
from vlm_options import questions_of

from hedge_tasks.data.option_files import OptionQuestion
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


def draw(sets: dict[str, dict[str, list[float]]], file: Path) -> None:
    """Means by number of spellings, a panel a set of questions."""
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, len(sets), sharey=True, squeeze=False, figsize=(4 * len(sets) + 1, 3))
    for axes, (name, means) in zip(panels[0], sets.items(), strict=True):
        for detector, colour, areas_of in zip(NAMES, COLOURS, zip(*means.values(), strict=True), strict=True):
            axes.plot(list(means), areas_of, "o-", color=colour, label=detector)
        axes.set(title=name, xlabel="spellings")
    panels[0][0].set_ylabel("AUROC")
    panels[0][-1].legend()
    figure.savefig(file, bbox_inches="tight")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("logits", type=Path, nargs="?")
    parser.add_argument("questions", type=Path, nargs="?")
    parser.add_argument("--n", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="write the means, for --from")
    parser.add_argument("--from", dest="given", type=Path, nargs="+", metavar="FILE")
    parser.add_argument("--figure", type=Path, help="draw them")
    arguments = parser.parse_args()
    sets: dict[str, dict[str, list[float]]] = {}
    for file in arguments.given or ():
        sets |= json.loads(file.read_text())
    if arguments.logits is not None:
        print("| spellings | Dirichlet | " + " | ".join(NAMES) + " | SE wins |\n|---|---|---|---|---|---|---|")
        of = sets.setdefault(arguments.logits.name.partition("_")[0], {})
        for cell, found in measure(questions_of(arguments.logits, arguments.questions), arguments.n, arguments.seed):
            print(row(cell, found), flush=True)
            of[f"{cell[0]}" if cell[1] == 1 else f"{cell[0]}, one preferred"] = found.mean(axis=0).tolist()
    if arguments.json:
        arguments.json.write_text(json.dumps(sets, indent=1))
    if arguments.figure:
        draw(sets, arguments.figure)


if __name__ == "__main__":
    main()
