"""Names that strangers give: shown on the board, so they may say nothing that the board says, and hide nothing."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any

from hedge_tasks.leaderboard.stated import recorded_decoding
from hedge_tasks.runs.setting_verdicts import mitigation_line

_BOARD_WORDS = (
    *("verified", "verifiz", "verifié", "verifie", "verificad", "verificat", "official", "recomputed", "replayed"),
    *("certified", "zertifiz", "certificad", "attested", "audited", "endorsed", "reproduced", "validated", "confirmed"),
    *("proofread", "vetted", "accredited", "verifled", "offiziell", "oficial", "gepruft", "authenticated"),
)
"""Words of the board's own, and what others would take for them, refused in whatever disguise."""

_BOARD_WORDS_ALONE = (
    *("proved", "proven", "approved", "authentic", "checked", "trusted", "winner", "sota"),
    *("maintainer", "maintainers", "ranked", "unranked"),
)
"""Words of the board's own that others contain."""

_BOARD_PHRASES = (
    *("private split", "first place", "place 1", "rank 1", "rank one", "no 1", "number one", "chain proved"),
    *("against experts", "expert labelled", "independently computed", "gold standard", "peer reviewed"),
    *("not contradicted", "trust green", "trust yellow"),
)

_CATEGORIES = frozenset({"Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Nd", "Pd", "Pc", "Po", "Ps", "Pe", "Zs"})
_SIGNS = frozenset("+=~<>|^$`")
_MARKS_IN_A_ROW = 3
_SCRIPTS = ("LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC", "GEORGIAN", "LISU", "DESERET")
"""Scripts with letters that look like those of another of them."""

_LOOKS_LIKE = str.maketrans(
    dict(
        zip("аеорсухіјѕԁһӏвкмнтгпиԛԝυνορατικεβγωηζ03457@$", "aeopcyxijsdhlbkmhtrnuqwuvopatikebywnzoeastas", strict=True)
    )
)
_UPRIGHT = "1|!"
"""Read as i, and as l."""

_BLOCKS = (
    (0x0370, 0x03FF), (0x0400, 0x045F), (0x05D0, 0x05EA), (0x0620, 0x064A), (0x0904, 0x0939), (0x093E, 0x094D),
    (0x0985, 0x09B9), (0x0E01, 0x0E4E), (0x3041, 0x3096), (0x30A1, 0x30FA), (0x30FC, 0x30FC), (0x4E00, 0x9FFF),
    (0xAC00, 0xD7A3),
)  # fmt: skip
"""Greek, Cyrillic, Hebrew, Arabic, Devanagari, Bengali, Thai, Japanese, Chinese and Korean letters."""

_OTHERS = re.compile(r"[^a-z]+")


def name_faults(submission: Mapping[str, Any]) -> Iterator[str]:
    """Yield the faults of the names that a submission would have shown."""
    for place, text in _names(submission):
        if (fault := name_fault(text)) is not None:
            yield f"{place}: {fault}"
    for place, text in _other_texts(submission):
        if (claim := _board_word_in(text)) is not None:
            yield f"{place}: {claim!r} is for the board to say"


def name_fault(text: str) -> str | None:
    """The fault of a name; None where nothing is.

    Example:
        >>> name_fault("Mine verified ✓"), name_fault("org/model-7B (bf16)")
        ("the character '\\\\u2713' has no place in a name", None)
    """
    if text != text.strip() or not text:
        return "a name neither begins nor ends with a blank"
    if not any(character.isalnum() for character in text):
        return "a name has a letter or a digit"
    marks = 0
    for character in text:
        category = unicodedata.category(character)
        if (category not in _CATEGORIES and character not in _SIGNS) or (category == "Zs" and character != " "):
            return f"the character {character!a} has no place in a name"
        marks = marks + 1 if category == "Mn" else 0
        if marks > _MARKS_IN_A_ROW:
            return "too many marks on one letter"
    if (strange := next((c for c in text if not _is_plain(c)), None)) is not None:
        return f"the character {strange!a} looks like another one, or like none"
    if unicodedata.normalize("NFKC", text) != unicodedata.normalize("NFC", text):
        return "written in characters that look like others"
    for word in re.findall(r"\w+", text):
        if len(word) > 1 and not word.isascii() and word.casefold().translate(_LOOKS_LIKE).isascii():
            return f"the word {word!a} could be read as one of Latin letters"
        scripts = sorted({script for letter in word if (script := _script(letter)) is not None})
        if len(scripts) > 1:
            return f"a word of {' and '.join(script.capitalize() for script in scripts)} letters looks like another one"
    if (claim := _board_word_in(text)) is not None:
        return f"{claim!r} is for the board to say"
    return None


def _is_plain(character: str) -> bool:
    """Whether a character is itself alone: ASCII, a Latin letter with marks, or of a script unlike Latin.

    Blocks of letters that are drawn as nothing (Hangul fillers) or as Latin ones (phonetic, small capitals) are out.
    """
    if character.isascii():
        return True
    bare = unicodedata.normalize("NFD", character)
    if bare[0].isascii() and bare[0].isalpha() and len(bare) <= _MARKS_IN_A_ROW:
        return True
    return any(first <= ord(character) <= last for first, last in _BLOCKS)


def _script(letter: str) -> str | None:
    name = unicodedata.name(letter, "") if letter.isalpha() else ""
    return next((script for script in _SCRIPTS if name.startswith(script)), None)


def _board_word_in(text: str) -> str | None:
    """The board's own word that a name says, in whatever disguise."""
    parted = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text)
    bare = "".join(c for c in unicodedata.normalize("NFKD", parted.casefold()) if unicodedata.category(c) != "Mn")
    for read_as in "il":
        alike = bare.translate(_LOOKS_LIKE).translate(dict.fromkeys(map(ord, _UPRIGHT), read_as))
        joined = _OTHERS.sub("", alike)
        if (word_found := next((word for word in _BOARD_WORDS if word in joined), None)) is not None:
            return word_found
        words = _OTHERS.sub(" ", alike).split()
        if (alone := next((word for word in words if word in _BOARD_WORDS_ALONE), None)) is not None:
            return alone
    plain = " ".join(re.findall(r"[a-z]+|\d+", bare))
    return next((both for both in _BOARD_PHRASES if f" {both} " in f" {plain} "), None)


def _other_texts(submission: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield texts of a submission that pages show beside their own, and that are no names."""
    yield "entry.url", submission["entry"].get("url") or ""
    refused = (recorded_decoding(submission["settings"]).get("sent") or {}).get("refused")
    for text in refused if isinstance(refused, list) else ():
        yield "settings.sampled.decoding.sent.refused", str(text)
    claims = submission.get("claims") or {"labels": {}, "settings": {}}
    yield "claims.labels.by", claims["labels"].get("by") or ""
    for key in ("support", "decomposition"):
        yield f"claims.settings.{key}", str(claims["settings"].get(key) or "")


def _names(submission: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield every text of a submission that a table shows, with its place."""
    entry = submission["entry"]
    for key in ("name", "model", "task", "note"):
        if key in entry:
            yield f"entry.{key}", entry[key]
    audit = submission.get("audit")
    if audit is not None:
        yield "audit.by", audit["by"] or "nobody"
        for i, stratum in enumerate(audit["strata"]):
            yield f"audit.strata[{i}].title", stratum["title"]
    for name, clustering in submission["clusterings"].items():
        yield "clusterings", name
        for detector, record in clustering["detectors"].items():
            yield f"clusterings.{name}.detectors.{detector}.title", record["title"]
    for name, clustering in submission["suite"].items():
        yield f"suite.{name}.title", clustering["title"]
    for name, clustering in (submission.get("claims") or {}).get("detectors", {}).items():
        yield f"claims.detectors.{name}.title", clustering["title"]
    yield from _settings(submission["settings"])
    judge = submission["labels"]["judge"]
    if isinstance(judge, Mapping) and isinstance(judge.get("judge"), str):
        yield "labels.judge", judge["judge"]


def _settings(settings: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """How the draws were made, as the badge of the protocol tells it."""
    decoding = (settings.get("sampling") or {}).get("decoding")
    if isinstance(decoding, str):
        yield "settings.sampling.decoding", decoding
    if (method := mitigation_line(recorded_decoding(settings))) is not None:
        yield "settings.sampled.decoding.method", method
