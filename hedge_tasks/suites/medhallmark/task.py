"""Med-HallMark as lmms-eval tasks: which items are asked, and reports that are judged by the sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from loguru import logger

from hedge_tasks.errors import DataError, unknown
from hedge_tasks.judging.by_sentence import SentenceJudge
from hedge_tasks.lmms.settings import DocumentSettings
from hedge_tasks.lmms.task import HedgeTask
from hedge_tasks.perturb.text import QUESTION
from hedge_tasks.suites.documents import check_options
from hedge_tasks.suites.medhallmark.wording import settings_by_measure

if TYPE_CHECKING:
    from datasets import Dataset

_PREFIXES = ("none", "both")


def process_docs(dataset: Dataset, **options: Any) -> Dataset:
    """Return the questions that are asked.

    Args:
        dataset: as `building.build` makes it.
        options: `prefixes` ("none"): "both" asks each question twice, without and with its confidence-weakening prefix.

    Returns:
        The data set with the columns asked, pair (id of the item) and weakened (whether with the prefix).

    Raises:
        ConfigError: an option is unknown or makes no sense.
        DataError: no item is left.
    """
    from datasets import concatenate_datasets

    check_options("Med-HallMark", options, ("prefixes",))
    prefixes = options.get("prefixes", "none")
    if prefixes not in _PREFIXES:
        raise unknown("value of 'prefixes'", str(prefixes), _PREFIXES)
    dataset = _with_reference(dataset)
    plain = _with_questions(dataset, dataset["question"][:], weakened=False)
    if prefixes == "none":
        return plain
    prefixed = dataset.select([number for number, prefix in enumerate(dataset["prefix"]) if prefix])
    pairs = zip(prefixed["prefix"], prefixed["question"], strict=True)
    questions = [prefix.replace(QUESTION, question) for prefix, question in pairs]
    documents = concatenate_datasets([plain, _with_questions(prefixed, questions, weakened=True)])
    # Side by side, so that --limit keeps whole pairs.
    place = {pair: number for number, pair in enumerate(plain["pair"])}
    pairs = documents["pair"][:]
    return documents.select(sorted(range(len(documents)), key=lambda row: (place[pairs[row]], row)))


def _with_reference(dataset: Dataset) -> Dataset:
    rows = [number for number, reference in enumerate(dataset["reference"]) if reference.strip()]
    if not rows:
        raise DataError("Med-HallMark: no item has a reference")
    if len(rows) < len(dataset):
        left_out = len(dataset) - len(rows)
        logger.warning("Med-HallMark: {} of {} items have no reference and are left out", left_out, len(dataset))
    return dataset.select(rows)


def _with_questions(dataset: Dataset, questions: list[str], *, weakened: bool) -> Dataset:
    ids = dataset["id"][:]
    dataset = dataset.remove_columns("id").add_column("id", [f"{i}-weakened" if weakened else i for i in ids])
    dataset = dataset.add_column("asked", list(questions)).add_column("pair", ids)
    return dataset.add_column("weakened", [weakened] * len(ids))


class MedHallMarkTask(HedgeTask):
    """A question task."""

    def circumstances(self) -> Mapping[str, Any]:
        return {"wording": settings_by_measure()}


class MedHallMarkReportTask(MedHallMarkTask):
    """A report task: whoever judges is asked about each sentence."""

    def judge_of(self, settings: DocumentSettings, task: str) -> SentenceJudge:
        return SentenceJudge(super().judge_of(settings, task))
