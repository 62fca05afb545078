"""From a row of a COCO data set to what a model is shown and what is in the image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hedge_tasks.errors import DataError
from hedge_tasks.suites.documents import check_columns, check_options
from hedge_tasks.suites.vope.vocabulary import coco

if TYPE_CHECKING:
    from datasets import Dataset

_ID, _IMAGE, _TRUTH = "question_id", "image", "gt_object"

SHOWN = "this image"
"""The prompts' name for the image: "Describe {question}."."""


def process_docs(dataset: Dataset, **options: Any) -> Dataset:
    """Return the images that are shown.

    Args:
        dataset: with the columns of `tsunghanwu/mscoco_chair`: question_id, image, gt_object (list of COCO objects).
        options: none so far.

    Returns:
        Columns: id, image, objects (COCO categories in the image, sorted), truth (the same as text), asked.

    Raises:
        ConfigError: an option is unknown.
        DataError: a column is missing, or an object is none of COCO's; names the row.
    """
    check_options("VOPE", options, ())
    check_columns("VOPE", dataset, (_ID, _IMAGE, _TRUTH))
    ids = [str(value) for value in dataset[_ID]]
    objects = [truth_of(names, f"VOPE, image {where}") for where, names in zip(ids, dataset[_TRUTH], strict=True)]
    documents = dataset.select_columns([_IMAGE])
    documents = documents.add_column("id", ids).add_column("asked", [SHOWN] * len(ids))
    return documents.add_column("truth", [", ".join(names) for names in objects])


def truth_of(names: object, where: str) -> list[str]:
    """COCO categories of a list of objects, sorted, each once; synonyms are taken for their category.

    Raises:
        DataError: it is no list, or an object is none of COCO's; names `where` and the nearest one.
    """
    if not isinstance(names, Sequence) or isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise DataError(f"{where}: expected a list of objects, got {names!r}")
    vocabulary = coco()
    return sorted({vocabulary.category(name, where) for name in names})


def objects_of(truth: str) -> frozenset[str]:
    """Return the categories in the column `truth`.

    Example:
        >>> sorted(objects_of("dog, wine glass")), objects_of("")
        (['dog', 'wine glass'], frozenset())
    """
    return frozenset(filter(None, truth.split(", ")))
