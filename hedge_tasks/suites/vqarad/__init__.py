"""VQA-RAD: closed and open questions about radiology images, apart and together; the tables of HEDGE's paper."""

from hedge_tasks.evaluation import Evaluation, own_folder

EVALUATION = Evaluation(
    "vqarad",
    own_folder("hedge_vqarad"),
    measures=("hedge_tasks.suites.vqarad.documents:MEASURES",),
    papers={"hedge": "hedge_tasks.suites.vqarad.paper:PAPER"},
)
"""Its contributions to the rooms below."""
