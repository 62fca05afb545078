"""Tables of synonyms from a user's own copy of an open vocabulary: MeSH, RadLex, UMLS. Nothing is downloaded."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hedge_tasks.errors import DataError
from hedge_tasks.io import outside
from hedge_tasks.io.files import write_whole
from hedge_tasks.io.tables import parse_csv
from hedge_tasks.judging.rule.synonyms import COLUMNS, LONGEST, NamedThing

MESH, RADLEX, UMLS = "mesh", "radlex", "umls"

LICENCES = {
    MESH: "MeSH: courtesy of the U.S. National Library of Medicine; free with attribution, year and changes said",
    RADLEX: "RadLex: Radiological Society of North America, RadLex licence 2.0: attribution, and the licence passed on",
    UMLS: "UMLS Metathesaurus: licence of the U.S. National Library of Medicine; sources may forbid passing on",
}
"""Who owns a vocabulary and what that asks for; it is printed, and stands in the table."""

_BRACKETS = re.compile(r"\s*[(\[][^)\]]*[)\]]")
_FIELD = re.compile(r"([A-Z ]+?) = (.*)")


@dataclass(frozen=True)
class Built:
    """A table that was written: the vocabulary it is from, the licence, and how many things and names it has."""

    vocabulary: str
    licence: str
    things: int
    names: int


def build_table(source: Path, out: Path, vocabulary: str | None = None) -> Built:
    """Write a table of synonyms from a user's copy of a vocabulary.

    Args:
        source: MeSH's descriptors in ASCII (`d2026.bin`), RadLex as CSV (BioPortal's), or UMLS's `MRCONSO.RRF`.
        vocabulary: One of `LICENCES`; found by the file's first line where it is not given.

    Raises:
        DataError: the file is none of these, or has no names in it.
    """
    text = outside.read_text(source)
    kind = vocabulary or _kind(text, source)
    entries = [entry for entry in map(_tidy, _READERS[kind](text, source.name)) if entry.synonyms or entry.broader]
    if not entries:
        raise DataError(f"{source}: no names of {kind} in it")
    head = (f"# {kind}, from {source.name}", f"# Licence: {LICENCES[kind]}", "\t".join(COLUMNS))
    rows = ("\t".join((thing.preferred, "|".join(thing.synonyms), "|".join(thing.broader))) for thing in entries)
    write_whole(out, "\n".join((*head, *rows)) + "\n")
    return Built(kind, LICENCES[kind], len(entries), sum(len(entry.synonyms) for entry in entries))


def _kind(text: str, source: Path) -> str:
    first = text.lstrip("\ufeff\n").partition("\n")[0]
    if first.startswith("*NEWRECORD"):
        return MESH
    if first.count("|") >= 17:
        return UMLS
    if "Preferred Label" in first and "Synonyms" in first:
        return RADLEX
    raise DataError(
        f"{source}: expected MeSH in ASCII (*NEWRECORD), RadLex as CSV (Preferred Label, Synonyms) or UMLS's MRCONSO"
    )


def _mesh(text: str, name: str) -> Iterator[NamedThing]:
    """Descriptors; a tree number without its last part is the number of a broader one."""
    records = [_mesh_record(record) for record in text.split("*NEWRECORD")[1:]]
    at = {number: heading for heading, _, numbers in records for number in numbers}
    for heading, entries, numbers in records:
        broader = dict.fromkeys(at[above] for number in numbers if (above := number.rpartition(".")[0]) in at)
        yield NamedThing(heading, tuple(entries), tuple(broader))


def _mesh_record(record: str) -> tuple[str, list[str], list[str]]:
    heading, entries, numbers = "", [], []
    for line in record.splitlines():
        if not (field := _FIELD.fullmatch(line.strip())):
            continue
        key, value = field.groups()
        if key == "MH":
            heading = value
        elif key in ("ENTRY", "PRINT ENTRY"):
            entries.append(value.partition("|")[0])
        elif key == "MN":
            numbers.append(value)
    return heading, entries, numbers


def _radlex(text: str, name: str) -> Iterator[NamedThing]:
    rows = [row for _, row in parse_csv(text, name)]
    label = {row.get("Class ID", ""): row["Preferred Label"] for row in rows}
    for row in rows:
        parents = [label[parent] for parent in row.get("Parents", "").split("|") if parent in label]
        yield NamedThing(row["Preferred Label"], tuple(row["Synonyms"].split("|")), tuple(parents))


def _umls(text: str, name: str) -> Iterator[NamedThing]:
    """English names that are not suppressed, by concept; the preferred name of a concept is its own."""
    concepts: dict[str, tuple[str, list[str]]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        cells = line.split("|")
        if len(cells) < 18:
            raise DataError(f"{name}:{number}: expected the 18 columns of MRCONSO.RRF")
        if cells[1] != "ENG" or cells[16] != "N":
            continue
        preferred, names = concepts.setdefault(cells[0], (cells[14], []))
        if cells[2] == "P" and cells[4] == "PF" and cells[6] == "Y":
            concepts[cells[0]] = (cells[14], names)
        names.append(cells[14])
    for preferred, names in concepts.values():
        yield NamedThing(preferred, tuple(names))


_READERS: dict[str, Callable[[str, str], Iterator[NamedThing]]] = {MESH: _mesh, RADLEX: _radlex, UMLS: _umls}


def _tidy(entry: NamedThing) -> NamedThing:
    """Names without what stands in brackets; 'Calculi, Kidney' the right way round, and none of too many words."""
    preferred, *others = (_name(name) for name in (entry.preferred, *entry.synonyms))
    names = dict.fromkeys(name for name in others if name and name != preferred and len(name.split()) <= LONGEST)
    return NamedThing(preferred, tuple(names), tuple(_name(name) for name in entry.broader))


def _name(text: str) -> str:
    parts: Sequence[str] = [part.strip() for part in _BRACKETS.sub("", text).replace("|", " ").split(",")]
    return " ".join(" ".join(parts[::-1] if len(parts) == 2 else parts).split()).casefold()
