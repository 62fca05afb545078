"""When does the answer's own log-probability beat semantic entropy? Options of real models with several spellings each.

    python benchmarks/spellings.py LOGITS.npz QUESTIONS.parquet [--n 10] [--seed 0]

Each option of each question gets k spellings, with shares of its probability drawn from a Dirichlet distribution. The
baseline answer is drawn at T = 0.1 and `n` more at T = 1, spelling by spelling; an answer is wrong where its option is.
All AUROCs are means over the models of the file. With one spelling an option is its meaning, and the log-probability
of the answer is that of the meaning; with several it is not, and semantic entropy, which adds them up, is the same.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hedge_tasks.data.option_files import OptionQuestion, read_options
from hedge_tasks.statistics import auroc

Floats = npt.NDArray[np.float64]
CELLS = ((1, 1.0), (2, 1.0), (4, 1.0), (8, 1.0), (8, 0.3))
"""Spellings of a meaning, and the Dirichlet parameter: the smaller, the more one of them is preferred."""


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
    scores = (-np.log(spelled[rows, baseline]).round(10), entropy(weighted), entropy(counted), away)
    return [auroc(score, wrong) for score in scores]


def table(models: dict[str, list[OptionQuestion]], n: int, seed: int) -> Iterator[str]:
    yield "| spellings | Dirichlet | -log p | SE | discrete SE | RadFlag | SE wins |"
    yield "|---|---|---|---|---|---|---|"
    for spellings, alpha in CELLS:
        found = np.array([areas(questions, spellings, alpha, n, seed) for questions in models.values()])
        wins = f"{(found[:, 1] > found[:, 0]).sum()} of {len(found)}"
        means = " | ".join(f"{value:.3f}" for value in found.mean(axis=0))
        yield f"| {spellings} | {alpha:g} | {means} | {wins} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("logits", type=Path)
    parser.add_argument("questions", type=Path)
    parser.add_argument("--n", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    for line in table(read_options(arguments.logits, arguments.questions), arguments.n, arguments.seed):
        print(line, flush=True)


if __name__ == "__main__":
    main()
