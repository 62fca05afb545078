"""MedHallu (Pandit et al. 2025): does a model notice that an answer to a medical question is hallucinated?

    documents   which answer of a row is shown, and what else is known of the row
    mesh        groups of questions by the MeSH terms of their abstracts, made by `hedge data medhallu`
    judge       from a reply to a verdict, and whether it is right: the hallucination label of HEDGE
    measures    the rows of the paper's tables, and what a guess from the length would get
    task        the lmms-eval task
    paper       the rows of the paper's tables out of finished runs, for `hedge paper medhallu`

`hedge make medhallu` is in `hedge_tasks.making.medhallu`, and so is the semantic analysis of candidates (section 4.3).

Importing this package loads none of them.
"""

from hedge_tasks.evaluation import Evaluation, own_folder

EVALUATION = Evaluation(
    "medhallu",
    own_folder("hedge_medhallu"),
    judges={"medhallu": "hedge_tasks.suites.medhallu.judge:MedHalluJudge"},
    measures=("hedge_tasks.suites.medhallu.measures:MEASURES",),
    papers={"medhallu": "hedge_tasks.suites.medhallu.paper:PAPER"},
    commands={
        "data": ("hedge_tasks.suites.medhallu.data_command:medhallu",),
        "make": ("hedge_tasks.making.medhallu.command:medhallu",),
        "paper": ("hedge_tasks.making.medhallu.candidates:candidates",),
    },
)
"""Its contributions to the rooms below."""
