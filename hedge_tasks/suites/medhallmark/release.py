"""`hedge data medhallmark`: Med-HallMark out of its JSON files and your copies of the images."""

from functools import partial

from hedge_tasks.suites.importing import add_release

add = partial(
    add_release,
    "medhallmark",
    "build Med-HallMark from its JSON files and your copies of its images",
    "folder with Conventional..json, Counterfactual..json, Confidence_weakening.json and Irg.json",
    "hedge_tasks.suites.medhallmark.building:released",
)
