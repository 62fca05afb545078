"""Whether the interval of label noise covers what was planted: simulated queues of a made set, labelled by two people.

    python benchmarks/review_queues.py [--queues 200]

Every queue is a simple random sample of a set in which a share of the wrong answers is right; each of two people errs
on an item with a probability, independently. Disputed rows widen the interval; rows on which both err do not.
"""

from __future__ import annotations

import argparse
import random

from hedge_tasks.making.gate.people import label_noise


def covered(size: int, n: int, share: float, error: float, queues: int, seed: int = 0) -> tuple[float, float, float]:
    """Share of queues whose interval covers, mean width, and mean error of the estimate."""
    chance = random.Random(f"{seed}/{size}/{n}/{share}/{error}")
    planted = round(share * size)
    hits, widths, errors = 0, 0.0, 0.0
    for _ in range(queues):
        drawn = [place < planted for place in chance.sample(range(size), n)]
        said = [tuple(is_right ^ (chance.random() < error) for _ in range(2)) for is_right in drawn]
        noise = label_noise(said.count((True, True)), sum(a != b for a, b in said), n, size)
        assert noise.interval is not None
        assert noise.value is not None
        low, high = noise.interval
        hits += low <= planted / size <= high
        widths += high - low
        errors += noise.value - planted / size
    return hits / queues, widths / queues, errors / queues


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--queues", type=int, default=200)
    queues = parser.parse_args().queues
    print("| rows | looked at | planted | people err | covered | mean width | bias |\n|---|---|---|---|---|---|---|")
    for size, n in ((200, 50), (1000, 100), (1000, 200)):
        for share in (0.0, 0.02, 0.05, 0.1, 0.2):
            for error in (0.0, 0.05, 0.1):
                hit, width, bias = covered(size, n, share, error, queues)
                print(f"| {size} | {n} | {share} | {error} | {hit:.3f} | {width:.3f} | {bias:+.3f} |")


if __name__ == "__main__":
    main()
