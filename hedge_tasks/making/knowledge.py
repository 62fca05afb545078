"""Facts with their sources, out of a dump of DBpedia or Wikidata that a user has: read as a stream, several times over.

DBpedia's dumps are N-Triples (types, properties and labels may be files of their own: name all of them), Wikidata's is
JSON with one entity a line. Both may be packed with gzip or bzip2. Nothing that is kept grows with the dump: of each
relation a sample of entities, the same whatever the order of the lines. Of DBpedia it is one by digests of names; of
Wikidata those entities that most wikis have an article about, which a picture is more likely to show recognisably.
"""

from __future__ import annotations

import bz2
import gzip
import heapq
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote

from loguru import logger

from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.io import options
from hedge_tasks.io.files import write_whole
from hedge_tasks.io.outside import clean, parse_json, read_json
from hedge_tasks.making.digests import text_digest

LONGEST_LINE = 32 << 20
"""Bytes of a line; a longer one is passed over. Wikidata's longest entities have a few million."""

_SPARE = 20
"""Entities that are followed for each fact that is wanted: many turn out to have no value, or several."""

_MOST_VALUES = 8
_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
_LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
_TRIPLE = re.compile(
    rb"<([^<>\s]{1,2000})>\s+<([^<>\s]{1,2000})>\s+"
    rb'(?:<([^<>\s]{1,2000})>|"((?:[^"\\]|\\.)*)"(?:@([A-Za-z-]{1,20})|\^\^<[^<>\s]{1,2000}>)?)\s*\.\s*'
)
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))")
_CONTROL = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_USABLE = re.compile(r"\d|[^\W_][^\n\r\t{}<>()\[\]\"|\\]{0,58}[^\s{}<>()\[\]\"|\\]")
_LICENCES = {"wikidata.org/": "CC0-1.0", "dbpedia.org/": "CC-BY-SA-3.0"}
_NUMBER = re.compile(rb'\{(?:"type":\s*"item",\s*)?"id":\s*"(Q\d+)"')
"""Beginning of a line in Wikidata's dumps; every line that begins otherwise is parsed."""

_WIKIDATA = "http://www.wikidata.org/entity/"
_PACKED: dict[str, Callable[[Path], IO[bytes]]] = {".gz": gzip.open, ".bz2": bz2.open}  # type: ignore[dict-item]


@dataclass(frozen=True)
class RelationQuery:
    """A relation to look for.

    Attributes:
        name: Of the relation, for the facts that are found.
        properties: IRIs (DBpedia) or numbers such as "P36" (Wikidata) of which any counts.
        classes: The entity is of one of these itself, and not of a subclass; empty: of any.
    """

    name: str
    properties: frozenset[str]
    classes: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Fact:
    """One value of one entity.

    Attributes:
        relation: Name of the `RelationQuery`.
        entity, value: Their labels.
        source: IRI of the entity.
        licence: Of the dump, by its address; "unknown" for others.
    """

    relation: str
    entity: str
    value: str
    source: str
    licence: str


@dataclass
class _Sample:
    """The entities of one relation that come first, with their values; bounded."""

    most: int
    values: dict[str, set[str]] = field(default_factory=dict)
    _order: list[tuple[tuple[Any, ...], str]] = field(default_factory=list)  # a heap, the last one on top

    def take(self, entity: str, rank: tuple[int, str]) -> bool:
        """Whether an entity is in the sample, now that it is known."""
        if entity in self.values:
            return True
        key = (-rank[0], _reversed(rank[1]))
        if len(self.values) >= self.most:
            if key <= self._order[0][0]:
                return False
            _, last = heapq.heappop(self._order)
            del self.values[last]
        heapq.heappush(self._order, (key, entity))
        self.values[entity] = set()
        return True

    def add(self, entity: str, value: str) -> None:
        if entity in self.values and len(self.values[entity]) < _MOST_VALUES:
            self.values[entity].add(value)


def read_facts(
    files: Sequence[Path], relations: Sequence[RelationQuery], *, most: int = 500, language: str = "en"
) -> list[Fact]:
    """Facts of a dump: of each relation at most so many, of entities that have one value each.

    Args:
        files: N-Triples (`.nt`, `.ttl` with a triple a line) or Wikidata's JSON (`.json`, `.jsonl`); `.gz`, `.bz2`.
        language: Of the labels. An entity of DBpedia without one has the end of its IRI; of Wikidata it is left out.

    Raises:
        ConfigError: A file's name says no known format, or files of both kinds are mixed.
        DataError: A file cannot be read.
    """
    options.count("most", most, at_least=1)
    kinds = {_format(path) for path in files}
    if len(kinds) > 1:
        raise ConfigError("knowledge: name files of one dump, N-Triples or Wikidata's JSON, and not of both")
    if not kinds:
        return []
    read = _read_triples if kinds == {"triples"} else _read_entities
    samples = {relation.name: _Sample(_SPARE * most) for relation in relations}
    labels = read(files, relations, samples, language)
    return [fact for relation in relations for fact in _facts(relation.name, samples[relation.name], labels, most)]


def cached_facts(
    files: Sequence[Path], relations: Sequence[RelationQuery], folder: Path, *, most: int = 500, language: str = "en"
) -> list[Fact]:
    """As `read_facts`, with what was found kept in a folder: a dump takes hours, and a making is begun more than once.

    A dump counts as the same by the names and sizes of its files.

    Raises:
        ConfigError, DataError: As `read_facts`; or what is kept is damaged, or the folder cannot be written.
    """
    try:
        sizes = [[path.name, path.stat().st_size] for path in files]
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"cannot read {error.filename}: {error.strerror or error}") from error
    relation_keys = [[r.name, sorted(r.properties), sorted(r.classes)] for r in relations]
    parts = json.dumps({"edition": 1, "files": sizes, "relations": relation_keys, "most": most, "language": language})
    path = folder / f"facts-{text_digest(parts)[:16]}.json"
    if path.is_file():
        try:
            return [Fact(**fields) for fields in read_json(path)]
        except TypeError as error:
            raise DataError(f"{path} is damaged ({error}); remove it, and the dump is read again") from None
    facts = read_facts(files, relations, most=most, language=language)
    write_whole(path, json.dumps([asdict(fact) for fact in facts], ensure_ascii=False, indent=0) + "\n")
    return facts


def usable_label(text: str) -> str | None:
    """A label as a question may quote it, without what tells namesakes apart; None where it is not fit for that.

    Example:
        >>> usable_label("Mercury (planet)"), usable_label("a {b}"), usable_label("São Paulo")
        ('Mercury', None, 'São Paulo')
    """
    short = " ".join(re.sub(r"\s*\([^()]*\)\s*$", "", clean(text)).split())
    return short if _USABLE.fullmatch(short) and short.isprintable() else None


def _facts(name: str, sample: _Sample, labels: Mapping[str, str], most: int) -> Iterator[Fact]:
    count = 0
    for _, entity in sorted(sample._order, reverse=True):
        values = sample.values[entity]
        if len(values) != 1 or count == most:
            continue
        [value] = values
        label, value_label = usable_label(labels.get(entity, "")), usable_label(labels.get(value, ""))
        if label and value_label and label.casefold() != value_label.casefold():
            licence = next((licence for host, licence in _LICENCES.items() if host in entity), "unknown")
            yield Fact(name, label, value_label, entity, licence)
            count += 1


def _reversed(text: str) -> tuple[int, ...]:
    """Sorts the other way round."""
    return tuple(-byte for byte in text.encode())


def _rank(entity: str) -> str:
    return text_digest(entity)[:16]


# --- files ------------------------------------------------------------------------------------------------------------


def _format(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in _PACKED:
        suffixes.pop()
    kind = {".nt": "triples", ".ttl": "triples", ".json": "entities", ".jsonl": "entities"}.get(
        suffixes[-1] if suffixes else ""
    )
    if kind is None:
        raise ConfigError(
            f"knowledge: {path.name}: expected .nt, .ttl, .json or .jsonl, or one of these with .gz or .bz2"
        )
    return kind


def _lines(path: Path) -> Iterator[bytes]:
    """Lines that are not too long, without their ends.

    Raises:
        DataError: The file cannot be read, or ends in the middle of its packing.
    """
    long = 0
    try:
        with _PACKED.get(path.suffix.lower(), lambda p: p.open("rb"))(path) as file:
            whole = True
            while line := file.readline(LONGEST_LINE):
                ends = line.endswith(b"\n")
                if whole and (ends or len(line) < LONGEST_LINE):
                    yield line.strip()
                elif whole:
                    long += 1
                whole = ends
    except (OSError, EOFError, ValueError) as error:
        raise DataError(f"cannot read {path}: {error}") from error
    if long:
        logger.warning("{}: {} lines of more than {} MiB are passed over", path, long, LONGEST_LINE >> 20)


# --- DBpedia ----------------------------------------------------------------------------------------------------------


def _triples(files: Sequence[Path], *, tell: bool = False) -> Iterator[tuple[str, str, str | None, str, str | None]]:
    """Subject, predicate, object (None for a text), text, language."""
    for path in files:
        damaged = 0
        for line in _lines(path):
            if not line or line.startswith(b"#"):
                continue
            match = _TRIPLE.fullmatch(line)
            try:
                parts = None if match is None else [None if p is None else p.decode() for p in match.groups()]
            except UnicodeDecodeError:
                parts = None
            if parts is None:
                damaged += 1
                continue
            subject, predicate, thing, text, language = parts
            assert subject is not None
            assert predicate is not None
            yield subject, predicate, thing, text or "", language
        if damaged and tell:
            logger.warning("{}: {} lines are no triples and are passed over", path, damaged)


def _read_triples(
    files: Sequence[Path], relations: Sequence[RelationQuery], samples: Mapping[str, _Sample], language: str
) -> dict[str, str]:
    by_class: dict[str, list[str]] = {}
    for relation in relations:
        for name in relation.classes:
            by_class.setdefault(name, []).append(relation.name)
    for subject, predicate, thing, _, _ in _triples(files, tell=True):
        if predicate == _TYPE and thing in by_class:
            for name in by_class[thing]:
                samples[name].take(subject, (0, _rank(subject)))
    by_property: dict[str, list[RelationQuery]] = {}
    for relation in relations:
        for name in relation.properties:
            by_property.setdefault(name, []).append(relation)
    for subject, predicate, thing, _, _ in _triples(files):
        for relation in by_property.get(predicate, ()) if thing else ():
            sample = samples[relation.name]
            if relation.classes or sample.take(subject, (0, _rank(subject))):
                sample.add(subject, str(thing))
    iris = {
        iri for sample in samples.values() for subject, values in sample.values.items() for iri in (subject, *values)
    }
    labels = {iri: unquote(re.split(r"[/#]", iri)[-1]).replace("_", " ") for iri in iris}
    for subject, predicate, _, text, spoken in _triples(files):
        if predicate == _LABEL and spoken == language and subject in iris:
            labels[subject] = _unescaped(text)
    return labels


def _unescaped(text: str) -> str:
    def character(match: re.Match[str]) -> str:
        number = match[1] or match[2]
        if number is None:
            return _CONTROL.get(match[3], match[3])
        return chr(int(number, 16)) if int(number, 16) < 0x110000 else "\ufffd"

    return _ESCAPE.sub(character, text)


# --- Wikidata ---------------------------------------------------------------------------------------------------------


def _entities(path: Path, is_wanted: Callable[[bytes], bool]) -> Iterator[Mapping[str, Any]]:
    """Entities whose line is wanted: most need not be parsed."""
    damaged = 0
    for line in _lines(path):
        text = line.rstrip(b",")
        if text in (b"", b"[", b"]") or not is_wanted(text):
            continue
        try:
            entity = parse_json(text, path.name)
        except DataError:
            entity = None
        if isinstance(entity, Mapping) and isinstance(entity.get("id"), str):
            yield entity
        else:
            damaged += 1
    if damaged:
        logger.warning("{}: {} lines are no entities and are passed over", path, damaged)


def _read_entities(
    files: Sequence[Path], relations: Sequence[RelationQuery], samples: Mapping[str, _Sample], language: str
) -> dict[str, str]:
    marks = [f'"{name}"'.encode() for relation in relations for name in relation.properties]
    labels: dict[str, str] = {}
    for path in files:
        for entity in _entities(path, lambda line: any(mark in line for mark in marks)):
            iri, entity_label = f"{_WIKIDATA}{entity['id']}", _label(entity, language)
            if entity_label is None:
                continue
            links = entity.get("sitelinks")
            rank = (-len(links) if isinstance(links, (Mapping, list)) else 0, _rank(iri))
            kinds = set(_values(entity, "P31"))
            for relation in relations:
                values = [value for name in sorted(relation.properties) for value in _values(entity, name)]
                fits = not relation.classes or relation.classes & kinds
                if values and fits and samples[relation.name].take(iri, rank):
                    labels[iri] = entity_label
                    for value in values:
                        samples[relation.name].add(iri, f"{_WIKIDATA}{value}")
    sampled = {iri for sample in samples.values() for iri in sample.values}
    labels = {iri: label for iri, label in labels.items() if iri in sampled}
    value_iris = {value for sample in samples.values() for values in sample.values.values() for value in values}
    numbers = {iri.removeprefix(_WIKIDATA).encode() for iri in value_iris}

    def may_be_wanted(line: bytes) -> bool:
        match = _NUMBER.match(line)
        return match is None or match[1] in numbers

    for path in files:
        for entity in _entities(path, may_be_wanted) if value_iris else ():
            iri = f"{_WIKIDATA}{entity['id']}"
            if iri in value_iris and (label := _label(entity, language)) is not None:
                labels[iri] = label
    return labels


def _label(entity: Mapping[str, Any], language: str) -> str | None:
    labels = entity.get("labels")
    entry = labels.get(language) if isinstance(labels, Mapping) else None
    value = entry.get("value") if isinstance(entry, Mapping) else None
    return value if isinstance(value, str) else None


def _values(entity: Mapping[str, Any], name: str) -> list[str]:
    """Entities that a property has for its value: the preferred ones where there are some, never the deprecated."""
    claims = entity.get("claims")
    claims = claims.get(name) if isinstance(claims, Mapping) else None
    by_rank: dict[str, list[str]] = {"preferred": [], "normal": []}
    for claim in claims if isinstance(claims, list) else ():
        try:
            value = claim["mainsnak"]["datavalue"]["value"]["id"]
            if isinstance(value, str) and "P582" not in claim.get("qualifiers", {}):  # it has not ended
                by_rank[claim.get("rank", "normal")].append(value)
        except (KeyError, TypeError, AttributeError):
            continue
    return list(dict.fromkeys(by_rank["preferred"] or by_rank["normal"]))
