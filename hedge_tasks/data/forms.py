"""Tables of answers, this package's own and those of other tools: which column is what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from string import ascii_uppercase
from typing import Any

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.data.inspect_logs import SCORES
from hedge_tasks.data.roles import NAMES, NONE, ColumnSettings, check_columns, not_told, obvious
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


OWN = Form("answer sets", needs=("baseline", "clean"), roles={"answer": "reference"})
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
        roles={"question": "input_texts", "answer": "target_texts"},
    ),
    # The id beside it is of the reply: no request has it, and no other file.
    Form("OpenAI batch", ("response",), ("custom_id", "response"), roles={"id": "custom_id"}),
    Form("lmms-eval", ("resps",), roles={"id": "doc_id", "question": "input", "answer": "target"}),
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
    reply = chosen.reply or tuple(filter(table.columns.__contains__, form.reply)) or tuple(obvious(table, "reply"))
    if form is _NAMED and not chosen.reply and len(reply) != 1:
        raise not_told(table, ["reply"])
    names = {role: _named(table, form, role, reply) for role in NAMES}
    if len(names["label"]) > 1 and not chosen.label:
        raise not_told(table, ["label"])
    roles = ("question", "group", "id", "question_type", "label")
    first = {role: getattr(chosen, role) or next(iter(names[role]), NONE) for role in roles}
    single: dict[str, Any] = {role: None if column == NONE else column for role, column in first.items()}
    answers = chosen.answers or names["answer"][:1]
    return ColumnSettings(reply=reply, answers=tuple(name for name in answers if name != NONE), **single)


def _named(table: StoredTable, form: Form, role: str, reply: Sequence[str]) -> list[str]:
    """The columns of a role by its tool's name, else by an obvious one."""
    if form is _INSPECT and role == "label":
        return [name for name in table.columns if name.startswith(SCORES)]
    own = form.roles.get(role)
    return [own] if own in table.columns else obvious(table, role, (*reply, *LISTS))


def notes_of(table: StoredTable, form: Form, columns: ColumnSettings) -> list[str]:
    """Notes on where right answers, groups and kinds of questions come from, and on every column that is not used."""
    used = {*columns.named(), *form.logprobs, *(ascii_uppercase if {"A", "B"} <= {*table.columns} else ())}
    used |= {"model", *((*AnswerSet.__dataclass_fields__, *LISTS, *_WRITTEN) if form is OWN else ())}
    unused = ", ".join(repr(column) for column in table.columns if column not in used)
    notes = [*table.notes, *(f"right answers come from column {column!r}" for column in columns.answers)]
    kinds = {"groups": columns.group, "kinds of questions": columns.question_type}
    notes += [f"{what} come from column {column!r}" for what, column in kinds.items() if column]
    return [*notes, *([f"not used: {unused}"] if unused else [])]
