"""Detectors on real noisy draws: FESTA's dumps of five vision-language models on 200 statements about pictures.

    python benchmarks/noisy_draws.py FOLDER ANSWERS [--n 10]

FOLDER holds `MODEL_vanilla_vsr.txt`, `MODEL_perturb_sampling_vsr.txt` and the same of negated statements (`negated_*`)
as the repository iiscleap/mllm-uncertainty-estimation (Apache-2.0) had them in `lvlm_experiments` (commit b4d9673);
ANSWERS is its `answers_negated_111_220.txt`: 1 where the negated statement is true (A), so that the statement is not.
Each statement has 14 distortions of its picture, 4 rewordings each, 10 draws each; no draw is of the picture as it is,
and none has a log-probability. Black and white stands for no distortion: it keeps what is where.
A statement and its negation share a picture, so that intervals are by picture.
"""

from __future__ import annotations

import argparse
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.statistics import estimate_auroc

NOISY = ("radflag_noisy", "discrete_se_noisy")
BOTH = ("discrete_se", "radflag", "discrete_se_pooled", "radflag_pooled", "clean_noisy_divergence", "vase")
KINDS = (("", {"0": "A", "1": "B"}), ("negated_", {"0": "B", "1": "A"}))
"""Statements and their negations, with what the truth of the negation says of them."""


_ID = re.compile(r"^(\w+?_\d+)(\w*?)(?:_sample\d+)?\s+\(?(\w+)", re.MULTILINE)
"""Of a line: the question's id, what was done to it, and the answer."""


def answers(folder: Path, model: str, truth: Path, clean: str, n: int) -> list[AnswerSet]:
    """Both kinds of statements, at most n clean and n noisy draws of each; a group is a picture."""
    found = []
    for kind, same in KINDS:
        dice, draws = np.random.default_rng(0), defaultdict(lambda: ([], []))
        files = [truth, *(folder / f"{kind}{model}_{of}_vsr.txt" for of in ("perturb_sampling", "vanilla"))]
        right, drawn, judged = (_ID.findall(file.read_text("utf-8")) for file in files)
        labels = {id: same[told] for id, _, told in right}
        for id, variant, text in drawn:
            draws[id][not variant.startswith(clean)].append(Answer(text))
        for id, _, text in judged:
            few = [[own[i] for i in sorted(dice.permutation(len(own))[:n])] if own[n:] else own for own in draws[id]]
            found.append(AnswerSet(f"{kind}{id}", Answer(text), *few, label=int(text != labels[id]), group=id))
    return found


def rows(folder: Path, truth: Path, n: int) -> Iterator[str]:
    scorer = Scorer.build("exact", "exact", {"closed": True})
    columns = [(name, "-", most) for most in (n, 999) for name in NOISY] + [(name, "_bw", n) for name in BOTH]
    yield "| model | wrong | " + " | ".join(f"`{name}`, at most {most}" for name, _, most in columns) + " |"
    yield "|---" * (2 + len(columns)) + "|"
    for file in folder.glob("[!n]*_vanilla_vsr.txt"):
        model, cells = file.name.removesuffix("_vanilla_vsr.txt"), []
        for name, clean, most in columns:
            sets = answers(folder, model, truth, clean, most)
            scores, labels = scorer.with_detectors([name]).score(sets), [a.label for a in sets]
            number = estimate_auroc([one[name] for one in scores], labels, groups=[a.group for a in sets])
            cells.append("{:.3f} [{:.2f}, {:.2f}]".format(number.value, *number.interval))
        yield f"| {model} | {sum(labels)} of {len(labels)} | " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("truth", type=Path)
    parser.add_argument("--n", type=int, default=10)
    print("\n".join(rows(**vars(parser.parse_args()))))


if __name__ == "__main__":
    main()
