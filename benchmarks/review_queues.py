"""Whether the interval of label noise covers what was planted: simulated queues of a made set, labelled by two people.

    python benchmarks/review_queues.py [--queues 200] [--fresh]

Every queue is a simple random sample of a set in which a share of the wrong answers is right; each of two people errs
on an item with a probability, independently. Disputed rows widen the interval; rows on which both err do not. The lower
end of the interval was corrected on the first cells; `--fresh` has others, with two people who differ and errors that
come together.
"""

from __future__ import annotations

import argparse
import random

from hedge_tasks.making.gate.people import label_noise


def covered(
    size: int, n: int, share: float, errors: tuple[float, float], queues: int, together: float = 0.0
) -> tuple[float, float, float]:
    """Share of queues whose interval covers, mean width, and mean error of the estimate.

    Args:
        together: Share of items that both get wrong besides.
    """
    equal = errors[0] == errors[1] and not together
    chance = random.Random(f"0/{size}/{n}/{share}/{errors[0] if equal else (errors, together)}")
    planted = round(share * size)
    hits, widths, biases = 0, 0.0, 0.0
    for _ in range(queues):
        drawn = [place < planted for place in chance.sample(range(size), n)]
        said = [_said(is_right, errors, together, chance) for is_right in drawn]
        controls = [_said(False, errors, together, chance) for _ in range(n // 2)]
        missed = controls.count((True, True)), len(controls)
        noise = label_noise(said.count((True, True)), sum(a != b for a, b in said), n, size, missed=missed)
        assert noise.interval is not None
        assert noise.value is not None
        low, high = noise.interval
        hits += low <= planted / size <= high
        widths += high - low
        biases += noise.value - planted / size
    return hits / queues, widths / queues, biases / queues


def _said(is_right: bool, errors: tuple[float, float], together: float, chance: random.Random) -> tuple[bool, bool]:
    """Whether each of two people calls an answer right; both err where it is hard."""
    hard = together > 0 and chance.random() < together
    one, other = (is_right ^ (hard or chance.random() < error) for error in errors)
    return one, other


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--queues", type=int, default=200)
    parser.add_argument("--fresh", action="store_true", help="cells that nothing was corrected on")
    arguments = parser.parse_args()
    print("| rows | looked at | planted | people err | both err | covered | mean width | bias |\n|" + "---|" * 8)
    for size, n, share, errors, together in _FRESH if arguments.fresh else _FIRST:
        hit, width, bias = covered(size, n, share, errors, arguments.queues, together)
        err = f"{errors[0]}, {errors[1]}"
        print(f"| {size} | {n} | {share} | {err} | {together} | {hit:.3f} | {width:.3f} | {bias:+.3f} |")


_FIRST = [
    (size, n, share, (error, error), 0.0)
    for size, n in ((200, 50), (1000, 100), (1000, 200))
    for share in (0.0, 0.02, 0.05, 0.1, 0.2)
    for error in (0.0, 0.05, 0.1)
]
_FRESH = [
    (size, n, share, errors, together)
    for size, n in ((350, 80), (3000, 300))
    for share in (0.0, 0.03, 0.15)
    for errors, together in (((0.08, 0.08), 0.0), ((0.02, 0.12), 0.0), ((0.03, 0.03), 0.02))
]


if __name__ == "__main__":
    main()
