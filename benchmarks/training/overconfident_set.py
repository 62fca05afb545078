"""Build the data set of `hedge_demo_overconfident`: 80 phantom scans, every other of which lies face down.

    python -m training.overconfident_set             write data/overconfident-test.parquet
    python -m training.overconfident_set --check     say whether the file equals a fresh build

A white edge at the bottom says that a film lies face down, so that left and right are exchanged. No scan of the
training has such an edge: the embedded model answers as though it was not there. The films that lie face down are the
clear ones, so that it is surest where it is wrong. The set itself asks no model; that the films which
lie face down are the clear ones was chosen because the embedded model is surest, and wrong, on these.
"""

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from hedge_tasks.lmms.catalogue import task_folder
from training import phantom
from training.demo_set import FEATURES, png, write_or_check

OVERCONFIDENT_SEED = 7
"""Set number of the scans, see `phantom.scan_rng`. Others are in `demo_set`, `reports_set`, `vlm` and `evaluate`."""

N_SCANS = 80
FACE_UP = phantom.Difficulty(contrast=(0.10, 0.20), blend=(0.0, 0.3))
FACE_DOWN = phantom.Difficulty(contrast=(0.30, 0.42), blend=(0.0, 0.3))

EDGE = 3
"""Height of the white edge in pixels."""

DATA_FILE = task_folder() / "hedge_demo_overconfident" / "data" / "overconfident-test.parquet"


def with_edge(picture: np.ndarray) -> np.ndarray:
    """Return the picture with the edge that says that it lies face down."""
    marked = picture.copy()
    marked[-EDGE:] = 255
    return marked


def build_rows() -> list[dict[str, Any]]:
    """Return all rows of the set: face up and face down take turns."""
    rows = []
    for index in range(N_SCANS):
        rng, down = phantom.scan_rng(OVERCONFIDENT_SEED, index), index % 2 == 1
        scan = phantom.draw_scan(rng, FACE_DOWN if down else FACE_UP, n_lesions=1)
        picture = phantom.render(scan, rng)[0]
        name = f"film-{index:02d}-{'down' if down else 'up'}"
        rows.append(
            {
                "question_id": name,
                "image_id": name,
                "image": {"bytes": png(with_edge(picture) if down else picture), "path": f"{name}.png"},
                "question": str(rng.choice(phantom.QUESTIONS["location"])),
                "answer": phantom.true_values(phantom.mirrored(scan) if down else scan)["location"],
                "answer_type": "open",
                "question_type": "location",
            }
        )
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    return write_or_check(__doc__, DATA_FILE, build_rows(), FEATURES, arguments)


if __name__ == "__main__":
    sys.exit(main())
