"""The judge `labels`: what people, or an earlier judge, said about these very answers."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from loguru import logger

from hedge_tasks.data import cells
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.io import options
from hedge_tasks.io.sources import file_at
from hedge_tasks.judging.base import Case, Verdict
from hedge_tasks.judging.label_files import HumanLabel, by_id, label_rows, listing
from hedge_tasks.judging.prompt import load_judge_prompt

_ANSWER_COLUMNS = ("answer", "baseline")


class LabelsJudge:
    """Labels from a file, joined by the document's id.

    A label belongs to an answer, not to a question. Where the file has a column `answer` (or an answer set's
    `baseline`), it must be the answer that is judged. A column `reason` may hold a remark.

    Args:
        path: JSON lines, or CSV where the name ends in `.csv`; `package://some.package/folder/file` for one that an
            installed package has.
        id_field, label_field: columns. A label is 1 or "hallucinated", 0 or "supported", null or empty for none.
        scheme: name of a judge prompt whose outcomes the label column holds, such as `medhallmark`.
        partial: take it that the file and the run hold different documents (as with `--limit`): an answer without a
            label is unlabelled, a label without an answer is left out. By default both are errors.

    Raises:
        ConfigError: a value makes no sense.
    """

    name = "labels"
    version = "1"

    def __init__(
        self,
        path: str,
        *,
        id_field: str = "id",
        label_field: str = "label",
        scheme: str | None = None,
        partial: bool = False,
    ) -> None:
        self.path = file_at(options.text("path", path))
        self.id_field = options.text("id_field", id_field)
        self.label_field = options.text("label_field", label_field)
        self.scheme = options.optional_text("scheme", scheme)
        if self.scheme is not None:
            load_judge_prompt(self.scheme)
        self.partial = options.flag("partial", partial)

    @property
    def title(self) -> str:
        return f"{self.name}:{self.path.name}"

    def settings(self) -> dict[str, Any]:
        """All that can change a verdict; the file by its name and digest."""
        fields = {"id_field": self.id_field, "label_field": self.label_field, "scheme": self.scheme}
        return {"judge": self.name, "version": self.version, "file": self.path.name, "digest": self._digest, **fields}

    def check(self, cases_have_images: bool = True) -> None:
        """Read the file.

        Raises:
            DataError: it cannot be read, or is malformed.
        """
        _ = self._labels

    def judge(self, cases: Sequence[Case]) -> list[Verdict]:
        """The label of every case.

        Raises:
            DataError: names the ids without a label, the labels without a case, or those for another answer.
        """
        self._match(cases)
        return [self._verdict(case, self._labels.get(case.id)) for case in cases]

    def _match(self, cases: Sequence[Case]) -> None:
        ids = {case.id for case in cases}
        without = [case.id for case in cases if case.id not in self._labels]
        unused = [] if _one_of_several_processes() else [i for i in self._labels if i not in ids]
        if mismatched := [case.id for case in cases if case.id in self._labels and self._is_other_answer(case)]:
            raise DataError(f"{self.path}: labels of other answers than those that are judged: {listing(mismatched)}")
        if cases and len(without) == len(cases):
            raise DataError(f"{self.path}: not one of {len(cases)} documents has a label, such as {listing(without)}")
        problems = {f"no label for {listing(without)}": without, f"no document for {listing(unused)}": unused}
        if not self.partial and (faults := [problem for problem, lacking in problems.items() if lacking]):
            raise DataError(f"{self.path}: {'; '.join(faults)}. If that is meant, set partial=true")
        if unused:
            logger.info("{}: {} labels belong to no document here", self.path, len(unused))

    def _is_other_answer(self, case: Case) -> bool:
        label = self._labels[case.id]
        return any(name in label.row for name in _ANSWER_COLUMNS) and (
            cells.first_of(label.row, _ANSWER_COLUMNS, label.where, "answer").split() != case.answer.split()
        )

    def _verdict(self, case: Case, label: HumanLabel | None) -> Verdict:
        if label is None:
            return Verdict(None, "no label in the file", self.title, self.version)
        reason = label.row.get("reason")
        return Verdict(
            label.label, reason if isinstance(reason, str) else "", self.title, self.version, category=label.category
        )

    @cached_property
    def _labels(self) -> dict[str, HumanLabel]:
        return by_id(label_rows(self.path), self.id_field, self.label_field, self.scheme)

    @cached_property
    def _digest(self) -> str:
        try:
            return hashlib.sha256(self.path.read_bytes()).hexdigest()[:16]
        except OSError as error:
            raise ConfigError(f"judge 'labels': cannot read {self.path} ({error.strerror})") from None


def _one_of_several_processes() -> bool:
    """Whether other processes judge the other documents, so that a label without a document means nothing."""
    import sys

    distributed = sys.modules.get("torch.distributed")
    return bool(
        distributed and distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1
    )
