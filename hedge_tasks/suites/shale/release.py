"""`hedge data shale`: SHALE out of its download."""

from functools import partial

from hedge_tasks.suites.importing import add_release

add = partial(
    add_release,
    "shale",
    "check your download of SHALE, and build the data set from it",
    "folder with Query/*.json (or query_json/) and Image/",
    "hedge_tasks.suites.shale.building:released",
)
