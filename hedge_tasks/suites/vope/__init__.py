"""VOPE: hallucination where a model may imagine (arXiv 2511.13420).

    vocabulary  COCO's 80 categories with CHAIR's synonyms, as lmms-eval ships them, and the recheck's object phrase
    extraction  the COCO objects that a text mentions
    judge       from the reply to a recheck to yes or no, and to one of the four sets of the paper's section 3.2
    documents   which images are shown, and what is in them
    building    a local data set out of the official JSON file and COCO images, `hedge data vope`
    objects     what is known of every object of a story: sets, shares of samples that mention it, relevance
    claims      objects as claims, for `hedge claims --unit object --support object`
    relevance   how well absent objects fit the scene (section 3.4), and the weighted kappa of two judges
    rechecks    the second stage: a question for every object of a story
    measures    the rows of the paper's tables, with intervals by image
    task        the lmms-eval task
    paper       the rows of the paper's tables, for `hedge paper vope`

Importing this package loads none of them.
"""

from hedge_tasks.evaluation import Evaluation, own_folder

EVALUATION = Evaluation(
    "vope",
    own_folder("hedge_vope"),
    judges={"vope": "hedge_tasks.suites.vope.judge:VopeJudge"},
    measures=("hedge_tasks.suites.vope.measures:MEASURES", "hedge_tasks.suites.vope.relevance:MEASURES"),
    decompositions={"object": "hedge_tasks.suites.vope.claims:ObjectDecomposition"},
    entailments={"object": "hedge_tasks.suites.vope.claims:ObjectEntailment"},
    second_stages={"vope_rechecks": "hedge_tasks.suites.vope.rechecks:rechecks"},
    papers={"vope": "hedge_tasks.suites.vope.paper:PAPER"},
    commands={
        "data": ("hedge_tasks.suites.vope.building:vope",),
    },
)
"""Its contributions to the rooms below."""
