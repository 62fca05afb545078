"""Typed words to make pictures of: from WordNet through nltk, from lists of labels such as ImageNet's, or own ones."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.io.outside import read_json, read_text

WORDNET_LICENCE = "WordNet License"
_NO_INSTALLATION = "WordNet is not there: pip install nltk, then python -m nltk.downloader wordnet"
_MOST_LABELS = 50_000
_BROADEST = 30
"""Kinds below a word: with more of them it names a class that no picture shows ("a vertebrate")."""

_COUNTED = 2
"""Occurrences of a word in WordNet's counted texts: of rarer ones few readers, and models, have a picture in mind."""

_NOT_COUNTED = frozenset((
    "architecture", "baggage", "beef", "cattle", "cutlery", "equipment", "furniture", "game", "laundry", "livestock",
    "luggage", "poultry", "produce", "vermin", "wildlife",
))  # fmt: skip
"""Words that end like others and take no article."""

_SOUNDS_LIKE_YOU = re.compile(r"(?:uni(?!n|m)|use|usu|eu|ewe|one\b)", re.IGNORECASE)
_SILENT_H = re.compile(r"(?:hour|honest|heir|honou?r)", re.IGNORECASE)


@dataclass(frozen=True)
class Element:
    """A word for something that a picture can show.

    Attributes:
        text: With its article, such as "a raccoon".
        kind: Its type, such as "animal": what is asked for.
        family: A narrower one; words of one family are siblings.
        broader: Names of what it is a kind of (WordNet's); a word is never a wrong answer to one of these.
        name: Its own name there.
        source: Where it comes from.
        licence: Of the source.
    """

    text: str
    kind: str
    family: str
    broader: frozenset[str] = frozenset()
    name: str = ""
    source: str = "hedge_tasks"
    licence: str = "Apache-2.0"

    def excludes(self, other: Element) -> bool:
        """Whether both can be right of one picture: one is a kind of the other, by WordNet or by its name."""
        first, second = (e.text.casefold().partition(" ")[2] or e.text.casefold() for e in (self, other))
        return (
            first.endswith(second)
            or second.endswith(first)
            or bool(self.name and self.name in other.broader)
            or bool(other.name and other.name in self.broader)
        )


def with_article(word: str) -> str:
    """A noun with its indefinite article.

    Example:
        >>> with_article("owl"), with_article("unicorn"), with_article("hourglass"), with_article("dog")
        ('an owl', 'a unicorn', 'an hourglass', 'a dog')
    """
    vowel = word[:1].lower() in "aeiou"
    an = (vowel and not _SOUNDS_LIKE_YOU.match(word)) or bool(_SILENT_H.match(word))
    return f"{'an' if an else 'a'} {word}"


def merged(*pools: Iterable[Element]) -> list[Element]:
    """All elements; of one text and kind the first counts."""
    elements: dict[tuple[str, str], Element] = {}
    for element in (element for pool in pools for element in pool):
        elements.setdefault((element.kind, element.text.casefold()), element)
    return list(elements.values())


def wordnet_elements(roots: Mapping[str, Sequence[str]], *, wordnet: Any = None) -> list[Element]:
    """Common count nouns of WordNet below some synsets.

    Taken are words in small letters of at most two parts, in the first sense of the word, that occur in WordNet's
    counted texts twice or more, that do not end like a plural, and that are no broad class.

    Args:
        roots: Names of synsets such as "bird.n.01" by the kind that their hyponyms are.
        wordnet: A reader as `nltk.corpus.wordnet`, which is the default.

    Raises:
        ConfigError: nltk or its WordNet is not there, or it knows no such synset.
    """
    reader = _wordnet() if wordnet is None else wordnet
    version = f"WordNet {reader.get_version()}"
    elements = []
    for kind, names in roots.items():
        for name in names:
            for synset in _below(reader, name):
                word = _common_name(reader, synset)
                if word is not None:
                    broader = frozenset(s.name() for s in synset.closure(lambda s: s.hypernyms()))
                    family = min((s.name() for s in synset.hypernyms()), default=name)
                    own = synset.name()
                    source = f"{version} {own}"
                    elements.append(Element(with_article(word), kind, family, broader, own, source, WORDNET_LICENCE))
    return merged(sorted(elements, key=lambda element: (element.kind, element.text)))


def label_elements(
    source: str, roots: Mapping[str, Sequence[str]], *, licence: str | None = None, wordnet: Any = None
) -> list[Element]:
    """Elements of a list of labels: of ImageNet's, for instance, as a classifier has them.

    A label may have synonyms behind commas, of which the first counts. Which kind a label is, WordNet says; a label
    that is of no known kind, or all of them where WordNet is not there, are of the kind "object".

    Args:
        source: A file with one label a line, a JSON file with a list or `{number: label}`, or a model of transformers
            with `id2label` (its folder, its config.json, or its name on the hub).
        roots: As for `wordnet_elements`.
        licence: Of the list.

    Raises:
        DataError: The list cannot be read or has no labels.
    """
    labels = _labels(source)
    try:
        reader = _wordnet() if wordnet is None else wordnet
    except ConfigError:
        reader = None
    elements = []
    for label in labels:
        word = " ".join(label.split(",")[0].replace("_", " ").split())
        if not re.fullmatch(r"[A-Za-z][A-Za-z' -]{1,40}", word):
            continue
        element = Element(
            with_article(word), "object", "object", source=Path(source).name, licence=licence or "unknown"
        )
        elements.append(element if reader is None else _typed(element, word, roots, reader))
    if not elements:
        raise DataError(f"{source}: there are no labels in it")
    return merged(elements)


def with_kin(elements: Iterable[Element], roots: Mapping[str, Sequence[str]], *, wordnet: Any = None) -> list[Element]:
    """Elements with what WordNet knows them to be a kind of, so that "an ape" is no wrong answer to "a gorilla".

    Raises:
        ConfigError: nltk or its WordNet is not there.
    """
    reader = _wordnet() if wordnet is None else wordnet
    extended = []
    for element in elements:
        typed = _typed(element, element.text.partition(" ")[2], {element.kind: roots.get(element.kind, ())}, reader)
        extended.append(replace(element, broader=typed.broader, name=typed.name))
    return extended


def _typed(element: Element, word: str, roots: Mapping[str, Sequence[str]], reader: Any) -> Element:
    for synset in reader.synsets(word.replace(" ", "_"), "n"):
        broader = frozenset(s.name() for s in synset.closure(lambda s: s.hypernyms()))
        kind = next((kind for kind, names in roots.items() if broader & set(names)), None)
        if kind is not None:
            family = min((s.name() for s in synset.hypernyms()), default=kind)
            return replace(element, kind=kind, family=family, broader=broader, name=synset.name())
    return element


def _wordnet() -> Any:
    try:
        from nltk.corpus import wordnet
    except ImportError:
        raise ConfigError(_NO_INSTALLATION) from None
    try:
        wordnet.ensure_loaded()
    except (LookupError, OSError) as error:
        raise ConfigError(f"{_NO_INSTALLATION} ({str(error).strip().splitlines()[0].strip('* ')[:80]})") from None
    return wordnet


def _below(reader: Any, name: str) -> list[Any]:
    try:
        root = reader.synset(name)
    except Exception as error:  # of nltk, without a class of its own for this
        raise ConfigError(f"WordNet has no synset {name!r}: {error}") from None
    return list(root.closure(lambda s: s.hyponyms()))


def _common_name(reader: Any, synset: Any) -> str | None:
    lemma = synset.lemmas()[0]
    word = str(lemma.name())
    fine = re.fullmatch(r"[a-z]+(?:_[a-z]+)?", word) and not re.search(r"[^s]s$", word)
    if (
        not fine
        or word.rpartition("_")[2] in _NOT_COUNTED
        or lemma.count() < _COUNTED
        or reader.synsets(word, "n")[0] != synset
    ):
        return None
    kinds = islice(synset.closure(lambda s: s.hyponyms()), _BROADEST + 1)
    return None if len(list(kinds)) > _BROADEST else word.replace("_", " ")


def _labels(source: str) -> list[str]:
    path = Path(source)
    if path.is_dir():
        path = path / "config.json"
    if path.suffix == ".json" and path.is_file():
        return _checked(_values(read_json(path)), source)
    if path.is_file():
        return _checked([line.strip() for line in read_text(path).splitlines() if line.strip()], source)
    from transformers import AutoConfig

    try:
        config = AutoConfig.from_pretrained(source)
    except Exception as error:  # network, authorisation, missing files: told apart by the text
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        raise DataError(f"{source} is no list of labels, and no model whose labels can be had: {reason}") from error
    return _checked([config.id2label[number] for number in sorted(config.id2label)], source)


def _values(data: Any) -> list[Any]:
    if isinstance(data, Mapping):
        data = data.get("id2label", data)
    if isinstance(data, Mapping):
        return [data[key] for key in sorted(data, key=lambda key: (len(str(key)), str(key)))]
    return list(data) if isinstance(data, list) else []


def _checked(labels: list[Any], source: str) -> list[str]:
    if not labels or not all(isinstance(label, str) for label in labels):
        raise DataError(f"{source}: expected labels, which are texts")
    if len(labels) > _MOST_LABELS:
        raise DataError(f"{source}: {len(labels)} labels; at most {_MOST_LABELS} are taken")
    return labels


def read_own(text: str) -> list[Element]:
    """Elements of a list of our own: `{kind: {family: [texts]}}` as JSON."""
    data: dict[str, dict[str, list[str]]] = json.loads(text)
    return [
        Element(word, kind, f"{kind}/{family}") for kind, families in data.items() for family, words in families.items()
        for word in words
    ]  # fmt: skip
