"""The parts of a run file that others lean on, checked as they are read: nobody downstream has to ask again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hedge_tasks.errors import DataError
from hedge_tasks.io import outside

_MAPPINGS = ("filters", "documents", "sampling", "prompt", "outcome", "metadata", "judged_again", "repaired", "claims")
_COLUMNS = ("id", "question", "answer", "revision", "group", "question_type", "description", "context")
_SINGLE = (str, int, float)
_VERDICT_TEXTS = ("judge", "version", "reason", "category", "description", "image_key", "key")


def checked_settings(settings: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """The settings of a run, if what is read of them later has the form that it must have.

    Raises:
        DataError: names the place and the setting.
    """
    at = f"{where}: settings"
    for name in _MAPPINGS:
        _mapping(settings, name, at)
    for name, chosen in (settings.get("filters") or {}).items():
        _check_filter(chosen, f"{at}.filters.{name}")
    rows = settings.get("metrics")
    if rows is not None and not (isinstance(rows, list) and all(isinstance(row, str) for row in rows)):
        raise DataError(f"{at}.metrics: expected a list of names, got {outside.shown(rows)}")
    documents = settings.get("documents") or {}
    _texts(documents, (*_COLUMNS, "evaluation"), f"{at}.documents")
    images = documents.get("images")
    if images is not None and not (isinstance(images, (list, tuple)) and all(isinstance(i, str) for i in images)):
        raise DataError(f"{at}.documents.images: expected a list of columns, got {outside.shown(images)}")
    _mapping(settings.get("claims") or {}, "asked", f"{at}.claims")
    _mapping(settings.get("claims") or {}, "labels", f"{at}.claims")
    judge = documents.get("judge")
    if judge is not None and not isinstance(judge, Mapping):
        raise DataError(f"{at}.documents.judge: expected an object, got {outside.shown(judge)}")
    return settings


def checked_verdict(verdict: object, where: str) -> Mapping[str, Any] | None:
    """The verdict of a document, if its texts are texts.

    Raises:
        DataError: names the place and the field.
    """
    if verdict is None:
        return None
    if not isinstance(verdict, Mapping):
        raise DataError(f"{where}: verdict: expected an object, got {outside.shown(verdict)}")
    _texts(verdict, _VERDICT_TEXTS, f"{where}: verdict")
    _mapping(verdict, "document", f"{where}: verdict")
    objects = verdict.get("objects")
    if objects is not None and not isinstance(objects, list):
        raise DataError(f"{where}: verdict.objects: expected a list, got {outside.shown(objects)}")
    return verdict


def checked_columns(columns: object, where: str) -> Mapping[str, Any]:
    """What the data set says of a document, if it is an object of single values, or of lists of them.

    Raises:
        DataError: names the place and the column.
    """
    if columns is None:
        return {}
    if not isinstance(columns, Mapping):
        raise DataError(f"{where}: columns: expected an object, got {outside.shown(columns)}")
    for name, value in columns.items():
        if not all(v is None or isinstance(v, _SINGLE) for v in (value if isinstance(value, list) else [value])):
            raise DataError(f"{where}: columns.{outside.shown(name)}: expected a text or a number, or a list of them")
    return columns


def _check_filter(chosen: object, at: str) -> None:
    if not isinstance(chosen, Mapping):
        raise DataError(f"{at}: expected an object, got {outside.shown(chosen)}")
    backend, with_question = chosen.get("backend"), chosen.get("with_question", False)
    if backend is not None and not isinstance(backend, str):
        raise DataError(f"{at}.backend: expected a name, got {outside.shown(backend)}")
    if not isinstance(with_question, bool):
        raise DataError(f"{at}.with_question: expected true or false, got {outside.shown(with_question)}")
    if chosen.get("question_position", "before") not in ("before", "after"):
        raise DataError(
            f"{at}.question_position: expected before or after, got {outside.shown(chosen['question_position'])}"
        )
    if "alpha" in chosen:
        outside.number(chosen["alpha"], f"{at}.alpha")


def _mapping(settings: Mapping[str, Any], name: str, at: str) -> None:
    if settings.get(name) is not None and not isinstance(settings[name], Mapping):
        raise DataError(f"{at}.{name}: expected an object, got {outside.shown(settings[name])}")


def _texts(fields: Mapping[str, Any], names: Sequence[str], at: str) -> None:
    for name in names:
        if fields.get(name) is not None and not isinstance(fields[name], str):
            raise DataError(f"{at}.{name}: expected a text, got {outside.shown(fields[name])}")
