"""SHALE: hallucination of faithfulness and of facts, in twelve scenarios (arXiv 2508.09584).

    items         its items: an image and an instruction, in one of the scenarios
    released      the authors' query files, read into items
    building      a local data set out of items and images, `hedge data shale`
    judge         reads the reply to a closed question and compares it with the right answer
    blind         the second stage of the multimodal gain: the question without its image
    measures      the rows of the paper's tables
    task          the lmms-eval tasks
    paper         the rows of the paper's tables out of finished runs, for `hedge paper shale`

`hedge make shale` is in `hedge_tasks.making.shale`.

Importing this package loads none of them.
"""

from hedge_tasks.evaluation import Evaluation, own_folder

EVALUATION = Evaluation(
    "shale",
    own_folder("hedge_shale"),
    judges={"shale": "hedge_tasks.suites.shale.judge:ShaleJudge"},
    measures=("hedge_tasks.suites.shale.measures:MEASURES",),
    second_stages={"shale_blind": "hedge_tasks.suites.shale.blind:without_image"},
    papers={"shale": "hedge_tasks.suites.shale.paper:PAPER"},
    commands={
        "data": ("hedge_tasks.suites.shale.building:shale",),
        "make": ("hedge_tasks.making.shale.command:shale",),
    },
)
"""Its contributions to the rooms below."""
