"""Detectors on real noisy draws: FESTA's dumps of five vision-language models on 200 statements about pictures.

    python benchmarks/noisy_draws.py FOLDER ANSWERS [--n 10] [--clean ^bw] [--seed 0]

FOLDER holds `MODEL_vanilla_vsr.txt`, `MODEL_perturb_sampling_vsr.txt` and the same of negated statements (`negated_*`)
as the repository iiscleap/mllm-uncertainty-estimation (Apache-2.0) had them in `lvlm_experiments` (commit b4d9673);
ANSWERS is its `answers_negated_111_220.txt`: 1 where the negated statement is true (A), so that the statement is not.
Each statement has 14 distortions of its picture, 4 rewordings each, 10 draws each; no draw is of the picture as it is,
and none has a log-probability. `--clean` says which distortion stands for none: black and white keeps what is where.
A statement and its negation share a picture, so that intervals are by picture.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.data.foreign.draws import read_draws
from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.statistics import estimate_auroc

NOISY = ("radflag_noisy", "discrete_se_noisy")
BOTH = ("discrete_se", "radflag", "discrete_se_pooled", "radflag_pooled", "clean_noisy_divergence", "vase")
KINDS = (("", {"0": "A", "1": "B"}), ("negated_", {"0": "B", "1": "A"}))
"""Statements and their negations, with what the truth of the negation says of them."""


def answers(folder: Path, model: str, truth: Path, clean: str | None, n: int | None, seed: int) -> list[AnswerSet]:
    """Both kinds of statements; a group is a picture."""
    found = []
    for kind, same in KINDS:
        draws, baseline = (folder / f"{kind}{model}_{of}_vsr.txt" for of in ("perturb_sampling", "vanilla"))
        read = read_draws([draws], baseline, truth, clean=clean, same=same, most=n, seed=seed)
        found += [replace(a, id=f"{kind}{a.id}", group=a.id) for a in read.answer_sets]
    return found


def rows(folder: Path, truth: Path, clean: str, n: int, seed: int) -> Iterator[str]:
    scorer = Scorer.build("exact", "exact", {"closed": True})
    models = sorted(f.name.removesuffix("_vanilla_vsr.txt") for f in folder.glob("*_vanilla_vsr.txt"))
    names = [f"`{name}`, {n}" for name in NOISY] + [f"`{name}`, all" for name in NOISY] + [f"`{name}`" for name in BOTH]
    yield "| model | wrong | " + " | ".join(names) + " |"
    yield "|---" * (2 + len(names)) + "|"
    for model in [name for name in models if not name.startswith("negated_")]:
        cells, wrong = [], 0
        for asked, of, most in ((NOISY, None, n), (NOISY, None, None), (BOTH, clean, n)):
            sets = answers(folder, model, truth, of, most, seed)
            scores = scorer.with_detectors(list(asked)).score(sets)
            labels, groups = [a.label or 0 for a in sets], [a.group for a in sets]
            wrong = sum(labels)
            for name in asked:
                number = estimate_auroc([one[name] for one in scores], labels, groups=groups)
                low, high = number.interval or (float("nan"), float("nan"))
                cells.append(f"{number.value:.3f} [{low:.2f}, {high:.2f}]")
        yield f"| {model} | {wrong} of {len(labels)} | " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("answers", type=Path)
    parser.add_argument("--n", type=int, default=10, help="draws a detector gets (clean, and as many noisy ones)")
    parser.add_argument("--clean", default="^bw", help="distortions that stand for none (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    for line in rows(arguments.folder, arguments.answers, arguments.clean, arguments.n, arguments.seed):
        print(line, flush=True)


if __name__ == "__main__":
    main()
