"""`hedge data vope`: VOPE's 5000 images out of its JSON file and your copies of the COCO images."""

from functools import partial

from hedge_tasks.suites.importing import add_release

add = partial(
    add_release,
    "vope",
    "build VOPE from its JSON file and your copies of COCO's images",
    "coco_captioning.json (all three have the same items)",
    "hedge_tasks.suites.vope.building:released",
)
