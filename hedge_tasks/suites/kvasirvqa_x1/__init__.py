"""KvasirVQA-x1: a representative choice of its questions about endoscopy images."""

from hedge_tasks.evaluation import Evaluation, own_folder

EVALUATION = Evaluation("kvasirvqa_x1", own_folder("hedge_kvasirvqa_x1"))
"""Its contributions to the rooms below."""
