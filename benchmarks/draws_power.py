"""The test of draws against their own log-probabilities: false alarms, power, and the power that it states.

    python benchmarks/draws_power.py                    # the embedded model on hedge_demo: 10 minutes on one quiet core
    python benchmarks/draws_power.py --questions 60 --runs 50

The model's distribution of answers is read out as a tree of tokens, for each question, until no branch is likelier than
`--least`. Runs are drawn from it, token by token, as they are and as each deviation has it: exactly what a server would
do that cuts, heats or mixes, whatever the test assumes. Of every run the verdict is that of `hedge health`.
"""

from __future__ import annotations

import argparse
import logging
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from hedge_tasks.data.answers import Answer
from hedge_tasks.statistics.draws import verdict_on, with_power
from hedge_tasks.statistics.draws_power import BASE_10, CHOICES, DEVIATIONS, MIXTURE

PURE = {"asked": "pure", "temperature": 1.0}
SIZES = [(documents, draws) for documents in (30, 60, 120) for draws in (5, 10, 20)]
_ROWS = 64
_LIKELY = 0.02

Floats = npt.NDArray[np.float64]


@dataclass
class Tree:
    """What a model may answer to a prompt.

    Attributes:
        answers: that it may give, each with its own log-probability.
        q: by deviation the probability of each, under "pure" the model's own.
    """

    answers: list[Answer]
    q: dict[str, Floats]


def tree_of(model: Any, messages: list[dict[str, Any]], ends: set[int], least: float, longest: int) -> Tree:
    """Read out the distribution of answers to one prompt, and what becomes of it under each choice."""
    inputs = model._inputs([messages])
    choices: dict[str, Callable[[Floats], Floats]] = {"pure": lambda p: p, **CHOICES}
    open_ones: list[tuple[tuple[int, ...], float, dict[str, float]]] = [((), 0.0, dict.fromkeys(choices, 1.0))]
    answers, q = list[Answer](), {name: list[float]() for name in choices}

    def close(
        tokens: tuple[int, ...], logp: float, end: float | None, masses: dict[str, float], *, once: bool = False
    ) -> None:
        n = len(tokens)
        text = model._tokenizer.decode(tokens, skip_special_tokens=True).strip() or f"<{tokens}>"
        mean = min(logp / n, 0.0) if n else min(end or 0.0, 0.0)
        answers.append(Answer(text, mean, n, None if once else "stop", end_logprob=end))
        for name, mass in masses.items():
            q[name].append(mass)

    for depth in range(longest + 1):
        following = []
        for start in range(0, len(open_ones), _ROWS):
            rows = open_ones[start : start + _ROWS]
            for (tokens, logp, masses), logprobs in zip(rows, next_logprobs(model, inputs, rows), strict=True):
                p = np.exp(logprobs)
                p /= p.sum()
                chosen = {name: choose(p) for name, choose in choices.items()}
                chosen = {name: of / of.sum() for name, of in chosen.items()}
                likely = [int(i) for i in np.flatnonzero(p * math.exp(logp) >= least)]
                for i in likely:
                    further = {name: masses[name] * float(of[i]) for name, of in chosen.items()}
                    if i in ends:
                        close(tokens, logp, min(float(logprobs[i]), 0.0), further)
                    elif depth == longest:
                        close((*tokens, i), logp + float(logprobs[i]), -1e-9, further)
                    else:
                        following.append(((*tokens, i), logp + float(logprobs[i]), further))
                # All that is too unlikely to be looked at: answers that are not drawn twice.
                others = np.delete(np.arange(len(p)), likely)
                for part in np.array_split(others[np.argsort(-p[others])], 8):
                    if len(part) and (told := float(p[part].max()) * math.exp(logp)) > 0:
                        further = {name: masses[name] * float(of[part].sum()) for name, of in chosen.items()}
                        close((*tokens, int(part[0])), math.log(told), None, further, once=True)
        open_ones = following
    whole = {name: np.array(of) for name, of in q.items()}
    return Tree(answers, {name: of / of.sum() for name, of in whole.items()})


@torch.inference_mode()
def next_logprobs(model: Any, inputs: Any, rows: Sequence[tuple[tuple[int, ...], Any, Any]]) -> Floats:
    """Log-probabilities of the next token behind each prefix; all of one length."""
    n = len(rows)
    prefixes = torch.tensor([tokens for tokens, _, _ in rows], dtype=torch.long).reshape(n, -1)
    batch = {name: value.repeat(n, *[1] * (value.ndim - 1)) for name, value in inputs.items()}
    batch["input_ids"] = torch.cat([batch["input_ids"], prefixes], dim=1)
    batch["attention_mask"] = torch.cat([batch["attention_mask"], torch.ones_like(prefixes)], dim=1)
    logits = model._model(**batch, logits_to_keep=1).logits[:, -1].double()
    return np.asarray(logits.log_softmax(-1).cpu().numpy())


def run_of(trees: Sequence[Tree], deviation: str, n: int, chance: np.random.Generator) -> list[list[Answer]]:
    """Clean draws of a run."""
    draws = []
    for tree in trees:
        p = tree.q.get(deviation, tree.q["pure"])
        told = [tree.answers[i] for i in chance.choice(len(p), n, p=p)]
        if deviation == MIXTURE:
            other = _other_model(p)
            foreign = [_told(tree.answers[i], other[i]) for i in chance.choice(len(p), n, p=other)]
            told = [a if own else b for a, b, own in zip(told, foreign, chance.random(n) < 0.5, strict=True)]
        if deviation == BASE_10:
            told = [_in_base_10(answer) for answer in told]
        draws.append([_once(answer, chance) for answer in told])
    return draws


def _other_model(p: Floats) -> Floats:
    """Of the likely answers the likelier one is, the less does the other model find it so."""
    other = p.copy()
    likely = np.flatnonzero(p >= _LIKELY)
    order = likely[np.argsort(-p[likely], kind="stable")]
    other[order] = p[order[::-1]]
    return other


def _once(answer: Answer, chance: np.random.Generator) -> Answer:
    """One of the many answers that were too unlikely to be followed is another one every time."""
    if answer.finish is not None:
        return answer
    text = f"{answer.text} {chance.integers(10**9)}"
    return Answer(text, answer.mean_logprob, answer.n_tokens, "stop", end_logprob=0.0)


def _told(answer: Answer, p: float) -> Answer:
    return Answer(answer.text, math.log(max(p, 1e-300)), 1, answer.finish, end_logprob=0.0)


def _in_base_10(answer: Answer) -> Answer:
    mean, end = answer.mean_logprob or 0.0, answer.end_logprob or 0.0
    return Answer(answer.text, mean / math.log(10), answer.n_tokens, answer.finish, end_logprob=end / math.log(10))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=120)
    parser.add_argument("--runs", type=int, default=200, help="of each deviation and size")
    parser.add_argument("--pure", type=int, default=500, help="pure runs of each size")
    parser.add_argument("--least", type=float, default=3e-4, help="branches that are less likely are not followed")
    parser.add_argument("--longest", type=int, default=6, help="tokens of an answer")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    from datasets import Dataset

    from hedge_tasks.lmms.catalogue import task_folder
    from hedge_tasks.models.hedge_tiny import HedgeTiny

    model: Any = HedgeTiny(batch_size=8)
    rows = Dataset.from_parquet(str(task_folder() / "hedge_demo" / "data" / "demo-test.parquet"))
    ends = set(model._ends) if hasattr(model, "_ends") else {model._tokenizer.eos_token_id}
    trees = []
    for i in range(min(arguments.questions, len(rows))):
        content = [{"type": "image", "url": rows[i]["image"]}, {"type": "text", "text": rows[i]["question"]}]
        messages = [{"role": "user", "content": content}]
        trees.append(tree_of(model, messages, ends, arguments.least, arguments.longest))
    print(f"{len(trees)} questions, {np.mean([len(t.answers) for t in trees]):.0f} answers each in the mean\n")
    print("| documents × draws | false alarms, pure | " + " | ".join(DEVIATIONS) + " |")
    print("|---|---|" + "---|" * len(DEVIATIONS), flush=True)
    for documents, n in SIZES:
        print(line(trees, documents, n, arguments.runs, arguments.pure), flush=True)


def line(trees: Sequence[Tree], documents: int, n: int, runs: int, pure: int) -> str:
    """Of the table: the share of runs that are contradicted, and in brackets the power that pure runs state."""
    chance = np.random.default_rng(documents * 1000 + n)

    def some() -> list[Tree]:
        # Of few questions the same may be in a run twice: its draws are others.
        few = documents <= len(trees)
        return [trees[i] for i in chance.choice(len(trees), documents, replace=not few)]

    def share(deviation: str, k: int) -> float:
        found = [verdict_on(run_of(some(), deviation, n, chance), PURE).state for _ in range(k)]
        return found.count("contradicted") / k

    stated = []
    for _ in range(20):
        draws = run_of(some(), "pure", n, chance)
        stated.append(with_power(verdict_on(draws, PURE), draws).power)
    alarms = share("pure", pure)
    cells = []
    for name in DEVIATIONS:
        told = [of[name] for of in stated if of]
        cells.append(f"{share(name, runs):.2f} ({np.mean(told):.2f})" if told else f"{share(name, runs):.2f} (-)")
    return f"| {documents} × {n} | {alarms:.3f} | " + " | ".join(cells) + " |"


if __name__ == "__main__":
    main()
