"""How often an honest server fails the check with sentinel questions, and how often another one passes it.

    python benchmarks/sentinels.py [--checks N] [--seed S]

Each check has a policy of its own: 12 questions with 5 answers each, chosen as `hedge calibrate` chooses them from 200
documents with 10 clean and 10 noisy draws, and 5 fresh draws a question.
"""

from __future__ import annotations

import argparse

import numpy as np
import numpy.typing as npt

from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.guard.sentinels import DRAWS, LEVEL, choose, counts_of, p_value

_DOCUMENTS, _N, _ANSWERS = 200, 10, 6
Laws = npt.NDArray[np.float64]


def draws(law: Laws, n: int, chance: np.random.Generator) -> tuple[Answer, ...]:
    """Answers of a server with these probabilities."""
    return tuple(Answer(f"answer {i}") for i in chance.choice(len(law), size=n, p=law / law.sum()))


def at(law: Laws, temperature: float) -> Laws:
    """The law at another temperature, as of one token."""
    hot = law ** (1 / temperature)
    return hot / hot.sum()


def fresh(law: Laws, server: str, chance: np.random.Generator) -> tuple[Answer, ...]:
    """Draws of a server that is honest, or not."""
    if server == "greedy":
        return tuple(Answer(f"answer {int(law.argmax())}") for _ in range(DRAWS))
    if server == "cache":
        return draws(law, 1, chance) * DRAWS
    if server == "another model":
        law = chance.permutation(law)
    if server.startswith("temperature"):
        law = at(law, float(server.split()[1]))
    return draws(law, DRAWS, chance)


SERVERS = ("honest", "greedy", "cache", "temperature 0.3", "temperature 0.7", "another model")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--checks", type=int, default=2000, help="of an honest server; others get a tenth")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    chance = np.random.default_rng(arguments.seed)
    found: dict[str, list[float]] = {server: [] for server in SERVERS}
    for check in range(arguments.checks):
        laws = chance.dirichlet(np.full(_ANSWERS, 0.5), size=_DOCUMENTS)
        sets = [
            AnswerSet(str(i), Answer(""), draws(law, _N, chance), draws(law, _N, chance), f"question {i}")
            for i, law in enumerate(laws)
        ]
        sentinels = choose(sets, {one.id: [] for one in sets})
        for server in SERVERS if check % 10 == 0 else SERVERS[:1]:
            of = [fresh(laws[int(s.question.split()[1])], server, chance) for s in sentinels]
            pairs = [(s.answers, counts_of(answers)) for s, answers in zip(sentinels, of, strict=True)]
            found[server].append(p_value(pairs, seed=int(chance.integers(2**31))))
    print("| server | checks | p <= .05 | p <= .01 | p <= .001 | fails (p <= .0001) |\n|---|---|---|---|---|---|")
    for server, values in found.items():
        shares = [float(np.mean(np.array(values) <= level)) for level in (0.05, 0.01, 0.001, LEVEL)]
        print(f"| {server} | {len(values)} | {' | '.join(f'{share:.4f}' for share in shares)} |")


if __name__ == "__main__":
    main()
