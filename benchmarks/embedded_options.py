"""The embedded model's yes-or-no questions: p(yes) in three ways, and its readings of its own replies.

    python benchmarks/embedded_options.py [--documents 200]

- p(yes) against p(no), each as the whole reply: by forced passes (exact), as the share of ten guided draws, and by the
  estimate of `digit_mass.py` that this package used before; AUROC against the truth, bias and error against the exact.
- A reply drawn at temperature 1, read by the rules, and by the model itself: forced passes over the options behind the
  reply and "Final answer, one of: yes, no.".

The model has 0.9 million parameters and was never trained on a second turn: this shows that the mechanism works and
what it costs, and nothing of how well a large model reads itself.
"""

from __future__ import annotations

import argparse
import math
import time
from collections import Counter
from collections.abc import Sequence

import numpy as np
from datasets import Dataset
from digit_mass import ESTIMATES, estimates

from hedge_tasks.lmms.catalogue import task_folder
from hedge_tasks.measures.forced_options import option_shares
from hedge_tasks.models.hedge_tiny import HedgeTiny
from hedge_tasks.replies import read_yes_no
from hedge_tasks.statistics import auroc

_OPTIONS = ("yes", "no")
_N_DRAWS = 10


def main(arguments: Sequence[str] | None = None) -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, default=200)
    given = parser.parse_args(arguments)
    rows = Dataset.from_parquet(str(task_folder() / "hedge_demo" / "data" / "demo-test.parquet"))
    rows = [row for row in rows if str(row["answer"]).lower() in _OPTIONS][: given.documents]
    model, dice = HedgeTiny(batch_size=8), np.random.default_rng(0)
    asked = [
        [{"role": "user", "content": [{"type": "image", "url": r["image"]}, {"type": "text", "text": r["question"]}]}]
        for r in rows
    ]
    began = time.process_time()
    replies = model.answer_conversations(asked, temperature=1.0, max_new_tokens=24)
    drawing = time.process_time() - began
    direct, forcing = _forced(model, asked)
    then = [{"type": "text", "text": f"Final answer, one of: {', '.join(_OPTIONS)}."}]
    said = [[{"type": "text", "text": reply.text}] for reply in replies]
    further = [({"role": "assistant", "content": text}, {"role": "user", "content": then}) for text in said]
    read, reading = _forced(model, [[*turns, *more] for turns, more in zip(asked, further, strict=True)])
    truth = np.array([str(row["answer"]).lower() == "yes" for row in rows], dtype=int)
    p = np.array([(option_shares(of) or {})["yes"] for of in direct])
    mass = np.array([sum(map(math.exp, of.values())) for of in direct])
    print(f"{len(rows)} questions, {truth.mean():.2f} yes; both options hold {mass.mean():.3f} of the mass\n")
    print("| p(yes) | AUROC | bias | error |\n|---|---|---|---|")
    for name, of in zip(ESTIMATES, estimates(p, mass, _N_DRAWS, dice).values(), strict=True):
        print(f"| {name} | {auroc(of, truth):.3f} | {(of - p).mean():+.4f} | {np.abs(of - p).mean():.4f} |")
    found = Counter[tuple[str, str]]()
    for row, reply, of in zip(rows, replies, read, strict=True):
        rules = read_yes_no(reply.text, row["question"]).value or "nothing"
        found[rules, max(of, key=lambda option: of[option])] += 1
    print("\n| the rules read | the model itself reads | replies |\n|---|---|---|")
    for (rules, itself), count in found.most_common():
        print(f"| {rules} | {itself} | {count} |")
    n = len(rows)
    print(f"\nCPU ms a question: a draw {1e3 * drawing / n:.1f}, two forced options {1e3 * forcing / n:.1f}, ", end="")
    print(f"behind the model's own reply {1e3 * reading / n:.1f}")


def _forced(model: HedgeTiny, asked: Sequence[list[dict[str, object]]]) -> tuple[list[dict[str, float]], float]:
    """Log-probability of each option as the whole reply to every conversation, and the CPU seconds of it."""
    began = time.process_time()
    found = model.reply_logprobs([turns for turns in asked for _ in _OPTIONS], _OPTIONS * len(asked))
    values = [of.mean_logprob * of.n_tokens for of in found]
    pairs = [dict(zip(_OPTIONS, values[i : i + 2], strict=True)) for i in range(0, len(values), 2)]
    return pairs, time.process_time() - began


if __name__ == "__main__":
    main()
