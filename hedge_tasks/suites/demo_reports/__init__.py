"""The demo of claims: reports on drawn scans, in which it is known of every sentence whether it is true.

    statements  what sentences say, and what follows from them
    judge       labels the sentences of a report by what the reference says

Importing this package loads none of them.
"""

from hedge_tasks.evaluation import Evaluation, own_folder

EVALUATION = Evaluation(
    "demo_reports",
    own_folder("hedge_demo_reports"),
    judges={"drawn_report": "hedge_tasks.suites.demo_reports.judge:drawn_report"},
)
"""Its contributions to the rooms below."""
