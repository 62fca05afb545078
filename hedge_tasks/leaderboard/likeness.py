"""Whose answers are an entry's? What is the same in two entries, whatever each is called, says who copied, and which
model answered."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from hedge_tasks.leaderboard.entry import Entry
from hedge_tasks.leaderboard.submission import sha256_of
from hedge_tasks.report.texts import clean

_TELLING = 3
"""Different texts, or log-probabilities, with which answers to a question say whose they are."""

_FEWEST_SHARED = 5
_FEWEST_UNORDERED = 20
"""Documents with telling answers that two entries have to have for one to be called the other's copy: in the order of
the draws, and in any order, where a few may be equal by chance."""

_LIKELIEST_FIRST = "d:"
_KINDS_OF_MARKS: Mapping[str, tuple[int, float]] = {
    "w:": (1, 0.5),
    "n:": (_FEWEST_SHARED, 0.5),
    "t:": (_FEWEST_SHARED, 0.5),
    "s:": (_FEWEST_UNORDERED, 0.5),
    "z:": (_FEWEST_UNORDERED, 0.5),
    "b:": (_FEWEST_UNORDERED, 0.8),
    _LIKELIEST_FIRST: (_FEWEST_UNORDERED, 0.5),
}
"""Marks of answers, how many of a kind have to be there, and which share of them makes a copy.

All of a file; by document the log-probabilities, and the texts; and in any order, as that of draws says nothing, words
of the clean answers, of the noisy ones, of clean answers of few kinds (which other draws of the model repeat more
often), and how often the likeliest clean answer is drawn, the next one, and so on, which no shift of log-probabilities
changes. Of two runs of one model with other seeds hardly any are equal.
"""

_FEW_KINDS = 2
_LIKELIEST = 4
"""Different answers with which texts of closed questions, and log-probabilities alone, tell."""

_FEWEST_LOGPROBS = 20
_SAME_MODEL = 0.2
"""Share of an entry's log-probabilities, to three decimals, that another one has of the same questions, from which on
one model wrote both: of different ones some hundredths are equal by chance."""

_SAME_TEXTS = 0.6
_CLOSE = 0.02
"""Nats a token by which log-probabilities of one text differ in two runs of one model, and seldom in two models."""
_FEWEST_PAIRS = 10
_NOISY, _SAME_WITH_NOISE = 0.06, 0.8
"""The same where somebody has added noise, or an engine rounds: more of the texts have to be as close as that."""
_TOLD_APART = -0.2
"""Above it, texts are about as likely whoever answers."""

_WORDS = re.compile(r"\w+")
_OF_FEW_ANSWERS = 200
_CERTAIN = -0.02
"""Above it, log-probabilities are near 0 whoever answers."""


def answer_digests(content: Mapping[str, Any]) -> tuple[str, ...]:
    """Digests of each document's answers that survive another name, another order and noise in the last digits.

    Of log-probabilities, and of texts where they are there and not nearly all the same: two models may well say "yes"
    eleven times.
    """
    whole = sorted(
        [d["id"], d["label"], d["logprobs"], d.get("texts", {}).get("answers")] for d in content["documents"]
    )
    marks = {f"w:{sha256_of(whole)[7:23]}"}
    for d in content["documents"]:
        marks |= {f"{kind}:{sha256_of([d['id'], value])[7:23]}" for kind, value in _telling_answers(d)}
    return tuple(sorted({*marks, *_fingerprint(content)}))


def _telling_answers(d: Mapping[str, Any]) -> Iterator[tuple[str, Sequence[Any]]]:
    """Yield what tells a document's answers, by kind of mark."""
    n = 1 + d["n_clean"]
    logprobs = [round(value, 3) if isinstance(value, (int, float)) else None for value in d["logprobs"]]
    known = sorted(value for value in logprobs if value is not None)
    if len(set(known)) >= _TELLING:
        yield "n", known
    clean_logprobs = [value for value in logprobs[:n] if value is not None]
    likeliest = sorted(set(clean_logprobs), reverse=True)
    if len(likeliest) >= _LIKELIEST and len(clean_logprobs) == n:
        yield "d", [likeliest.index(clean_logprobs[0]), *(clean_logprobs[1:].count(value) for value in likeliest)]
    answers = (d.get("texts") or {}).get("answers") or ()
    texts = [" ".join(text.casefold().split()) for text in answers]
    words = [" ".join(_WORDS.findall(text)) for text in texts]
    baseline, clean_words, noisy_words = words[:1], sorted(words[1:n]), sorted(words[n:])
    if len(set(texts)) >= _TELLING:
        yield "t", texts
    if len(set(words[:n])) >= _TELLING:
        yield "s", [*baseline, *clean_words]
    if len(set(noisy_words)) >= _TELLING:
        yield "z", noisy_words
    if len(set(words[:n])) >= _FEW_KINDS:
        yield "b", [*baseline, *clean_words]


def _fingerprint(content: Mapping[str, Any]) -> Iterator[str]:
    """Yield marks of the model: log-probabilities of answers on the clean picture, which are the same wherever it is
    asked."""
    documents = {sha256_of(d["id"]): d for d in content["documents"]}
    for key in sorted(documents)[:_OF_FEW_ANSWERS]:
        d = documents[key]
        clean = d["logprobs"][: 1 + d["n_clean"]]
        logprobs = {round(v, 3) for v in clean if isinstance(v, (int, float)) and v < _CERTAIN}
        if len(logprobs) >= _TELLING:
            yield from (f"l:{sha256_of([d['id'], value])[7:23]}" for value in logprobs)
        texts = (d.get("texts") or {}).get("answers") or ()
        by_text: dict[str, float] = {}
        for text, value in zip(texts, d["logprobs"][: 1 + d["n_clean"]], strict=False):
            words = " ".join(_WORDS.findall(text.casefold()))
            if isinstance(value, (int, float)) and value < _TOLD_APART and words:
                by_text.setdefault(sha256_of([d["id"], words])[7:23], value)
        yield from (f"p:{key}:{round(value, 4)}" for key, value in by_text.items())


def twin_of(entry: Entry, entries: Sequence[Entry]) -> tuple[Entry, str] | None:
    """The first entry of the same task that half of an entry's answers are of, and how many in words."""
    for first in entries:
        if first.task != entry.task:
            continue
        for kind, (least, share) in _KINDS_OF_MARKS.items():
            if kind == _LIKELIEST_FIRST and entry.recomputed and not first.recomputed:
                continue  # numbers that anybody can have moved take no place from what is computed again
            fewer, own, shared = _shared(entry, first, kind)
            if fewer >= least and shared >= share * own:
                return first, "" if kind == "w:" else f" in {shared} of the {own} documents whose answers tell"
    return None


def _shared(entry: Entry, second: Entry, kind: str) -> tuple[int, int, int]:
    """Return how many marks of a kind the entry with fewer has, how many the first one has, and how many both have."""
    mine, theirs = ({mark for mark in side.answers if mark.startswith(kind)} for side in (entry, second))
    return min(len(mine), len(theirs)), len(mine), len(mine & theirs)


def namesake(entry: Entry, leads: Iterable[Entry]) -> str | None:
    """Why an entry is of a model that has a place under another name: log-probabilities are a model's fingerprint."""
    for lead in leads:
        if lead.task != entry.task or place_key(lead) == place_key(entry):
            continue
        fewer, _, shared = _shared(entry, lead, "l:")
        pairs = _close_pairs(entry, lead), _close_pairs(entry, lead, _NOISY)
        tests = ((_SAME_MODEL, (fewer, shared)), (_SAME_TEXTS, pairs[0]), (_SAME_WITH_NOISE, pairs[1]))
        for least, (fewer, shared) in tests:
            if fewer >= _FEWEST_LOGPROBS and shared >= least * fewer:
                return (
                    f"{shared} of {fewer} log-probabilities are those of {lead.file}, there of "
                    f"{clean(lead.model)[:100]}: one model has one place, whatever it is called"
                )
    return None


def another_model(entry: Entry, lead: Entry) -> str | None:
    """Why a run with another seed is not one of the model that has the place: it would speak for that."""
    n, close = _close_pairs(entry, lead)
    if not n and not any(_logprobs(candidate) for candidate in (entry, lead)):
        return None
    if n >= _FEWEST_PAIRS and close >= _SAME_TEXTS * n:
        return None
    return (
        f"seed {entry.seed} of a model that has its place by {lead.file}, but {close} of {n} answers that both gave "
        "are about as likely in both: no run of that model, or too few answers to tell"
    )


def _logprobs(entry: Entry) -> bool:
    return any(mark.startswith("p:") for mark in entry.answers)


def _close_pairs(entry: Entry, second: Entry, within: float = _CLOSE) -> tuple[int, int]:
    """Return how many texts on the same picture both have, and how many of these are about as likely in both, but for
    one number that all are moved by. Neither that, nor noise on log-probabilities, nor a full stop more hides a model.
    """
    mine, theirs = (dict(mark[2:].split(":") for mark in e.answers if mark.startswith("p:")) for e in (entry, second))
    differences = sorted(float(mine[key]) - float(theirs[key]) for key in mine.keys() & theirs.keys())
    moved = differences[len(differences) // 2] if differences else 0.0
    close = max(sum(abs(value - by) <= within for value in differences) for by in (0.0, moved))
    return len(differences), close


def place_key(entry: Entry) -> tuple[str, str]:
    return entry.task, model_key(entry.model)


def model_key(model: str) -> str:
    """A declared model, however its name is written."""
    bare = "".join(c for c in unicodedata.normalize("NFKD", model).casefold() if unicodedata.category(c) != "Mn")
    return "".join(c for c in bare if c.isalnum())
