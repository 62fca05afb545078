"""Med-HallMark (ICLR 2025 submission): medical hallucinations by clinical weight.

    released    the released JSON files: questions, references, human labels
    building    a local data set out of them and of a user's images, `hedge data medhallmark`
    measures    MediHall Score and the distribution of categories
    wording     BLEU, ROUGE, METEOR and BERTScore through the field's own libraries
    task        the lmms-eval tasks
    paper       the rows of the paper's tables out of finished runs, for `hedge paper medhallmark`

Importing this package loads none of them.
"""

from hedge_tasks.evaluation import Evaluation, own_folder

EVALUATION = Evaluation(
    "medhallmark",
    own_folder("hedge_medhallmark"),
    measures=(
        "hedge_tasks.suites.medhallmark.measures:MEASURES",
        "hedge_tasks.suites.medhallmark.wording:MEASURES",
    ),
    papers={"medhallmark": "hedge_tasks.suites.medhallmark.paper:PAPER"},
    commands={
        "data": ("hedge_tasks.suites.medhallmark.building:medhallmark",),
        "make": ("hedge_tasks.making.medhallmark.command:medhallmark",),
    },
)
"""Its contributions to the rooms below."""
