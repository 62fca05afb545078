"""Tables of answers, this package's own and those of other tools: which column is what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from string import ascii_uppercase
from typing import Any

from hedge_tasks.data import cells
from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.data.roles import NAMES, ColumnSettings, check_columns, columns_for, not_told, obvious
from hedge_tasks.data.tables import StoredTable

LISTS = ("answers", "clean", "noisy")
"""Keys of this package's lines with lists of answers."""

_WRITTEN = ("verdict", "scores", "sampled", "store", "crc32")
"""Keys that lines of this package have besides; nobody has to be told that they are not used."""


@dataclass(frozen=True)
class Form:
    """The table of a tool.

    Attributes:
        reply: columns with the model's answers, which `needs` are a part of; the first has the baseline, or all.
        needs: columns by which the table is known; those of replies if not given.
        logprobs: of each of `reply` the column with the log-probabilities of their tokens.
        fails: whether a text, or none, may stand for a request that failed.
        roles: the tool's columns of other roles, which go before any with an obvious name.
    """

    name: str
    reply: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    logprobs: tuple[str, ...] = ()
    fails: bool = True
    roles: Mapping[str, str] = field(default_factory=dict)


OWN = Form("answer sets", needs=("baseline", "clean"), roles={"answers": "reference"})
_NAMED = Form("columns of replies")
_INSPECT = Form("inspect_ai", ("output.choices",), fails=False)
_FORMS = (
    _INSPECT,
    Form(
        "lm-polygraph",
        ("greedy_texts", "sample_texts"),
        ("greedy_texts",),
        ("greedy_log_likelihoods", "sample_log_likelihoods"),
        fails=False,
        roles={"question": "input_texts", "answers": "target_texts"},
    ),
    # The id beside it is of the reply: no request has it, and no other file.
    Form("OpenAI batch", ("response",), ("custom_id", "response"), fails=False, roles={"id": "custom_id"}),
    Form("lmms-eval", ("resps",), roles={"id": "doc_id", "question": "input", "answers": "target"}),
    Form(
        "uqlm",
        ("response", "sampled_responses"),
        logprobs=("logprob", "multiple_logprob"),
        roles={"question": "prompt"},
    ),
    Form("VLMEvalKit", ("prediction",), ("index", "prediction"), roles={"id": "index", "label": "hit"}),
)


def form_of(table: StoredTable, chosen: ColumnSettings) -> Form:
    """The form of a table by the columns that it has; where the user names the replies, none."""
    columns = {*table.columns}
    if chosen.reply:
        return _NAMED
    if (columns >= {*OWN.needs} or columns >= {"id", "answers"}) and not obvious(table, "reply"):
        return OWN
    return next((form for form in _FORMS if {*(form.needs or form.reply)} <= columns), _NAMED)


def columns_of(table: StoredTable, form: Form, chosen: ColumnSettings) -> ColumnSettings:
    """Which column is what: as the user says, as its tool has it, or by an obvious name; None for none.

    Raises:
        ConfigError: a column that the user names is not there, none or several may hold the replies, or several the
            labels, which need not agree.
    """
    check_columns(table, chosen)
    reply = tuple(filter(table.columns.__contains__, form.reply)) or columns_for(table, chosen, "reply")
    if form is _NAMED and not chosen.reply and len(reply) != 1:
        raise not_told(table, ["reply"])
    roles = ("answers", "question", "group", "id", "question_type", "label")
    names = {role: columns_for(table, chosen, role, (*reply, *LISTS), form.roles.get(role)) for role in roles}
    if form is _INSPECT and not chosen.label:
        names["label"] = tuple(name for name in table.columns if name.startswith(cells.SCORES))
    if len(names["label"]) > 1:
        raise not_told(table, ["label"])
    answers = names.pop("answers")[: None if chosen.answers else 1]
    single: dict[str, Any] = {role: next(iter(columns), None) for role, columns in names.items()}
    return ColumnSettings(reply=reply, answers=answers, **single)


def notes_of(table: StoredTable, form: Form, columns: ColumnSettings) -> list[str]:
    """Notes on where right answers, groups, kinds of questions and labels come from, and on columns that are unused."""
    used = {*columns.named(), *form.logprobs, *(ascii_uppercase if {"A", "B"} <= {*table.columns} else ())}
    used |= {"model", *((*AnswerSet.__dataclass_fields__, *LISTS, *_WRITTEN) if form is OWN else ())}
    unused = ", ".join(repr(column) for column in table.columns if column not in used)
    notes = [*table.notes, *(f"right answers come from column {column!r}" for column in columns.answers)]
    kinds = {"groups": columns.group, "kinds of questions": columns.question_type}
    notes += [f"{what} come from column {column!r}" for what, column in kinds.items() if column]
    if columns.label:
        right = cells.says_right(columns.label)
        way_out = "" if right or columns.label in NAMES["label"] else f" ({cells.WHERE_RIGHT})"
        notes.append(f"labels come from column {columns.label!r}: {int(not right)} = hallucinated{way_out}")
    return [*notes, *([f"not used: {unused}"] if unused else [])]
