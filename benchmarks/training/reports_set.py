"""Build the data set of `hedge_demo_reports`: 72 phantom scans to be described, with everything that is true of each.

    python -m training.reports_set             write data/reports-test.parquet
    python -m training.reports_set --check     say whether the file equals a fresh build

Like the demo set it looks at no model.
"""

import sys
from collections.abc import Sequence
from typing import Any

from datasets import Features, Value
from datasets import Image as ImageFeature

from hedge_tasks.lmms.catalogue import task_folder
from hedge_tasks.suites.demo_reports.statements import COUNTS, full_report
from training import reports
from training.demo_set import draw_scans, png, write_or_check

REPORTS_SEED = 4
"""Set number of the scans, see `phantom.scan_rng`. Others are in `demo_set`, `vlm` and `evaluate`."""

LESION_COUNTS = (0,) * 14 + (1,) * 28 + (2,) * 16 + (3,) * 14
"""Lesions in each of the scans."""

DATA_FILE = task_folder() / "hedge_demo_reports" / "data" / "reports-test.parquet"

FEATURES = Features(
    {
        "id": Value("string"),
        "image": ImageFeature(),
        "request": Value("string"),
        "reference": Value("string"),
        "lesions": Value("string"),
    }
)


def build_rows() -> list[dict[str, Any]]:
    """Return all rows of the set."""
    rows = []
    for index, (scan, picture) in enumerate(draw_scans(REPORTS_SEED, LESION_COUNTS)):
        name = f"report-{index:02d}"
        rows.append(
            {
                "id": name,
                "image": {"bytes": png(picture), "path": f"{name}.png"},
                "request": reports.REQUESTS[0],
                "reference": full_report(reports.world_of(scan)),
                "lesions": COUNTS[scan.n_lesions],
            }
        )
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    return write_or_check(__doc__, DATA_FILE, build_rows(), FEATURES, arguments)


if __name__ == "__main__":
    sys.exit(main())
