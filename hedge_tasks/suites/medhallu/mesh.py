"""MeSH groups of MedHallu's questions, out of NLM's descriptor file and PubMedQA's terms: a user's own copies of both.

A group is the first letter of MeSH tree numbers. Every tree number of every term of an abstract counts once, and a
question belongs to the group that comes most often; of several that come as often, to the one that comes first.
"""

from __future__ import annotations

import gzip
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from hedge_tasks.errors import DataError, unknown
from hedge_tasks.io.outside import read_json, read_text

TREES: Mapping[str, str] = {
    "A": "Anatomy",
    "B": "Organisms",
    "C": "Diseases",
    "D": "Chemicals and Drugs",
    "E": "Analytical, Diagnostic and Therapeutic Techniques, and Equipment",
    "F": "Psychiatry and Psychology",
    "G": "Phenomena and Processes",
    "H": "Disciplines and Occupations",
    "I": "Anthropology, Education, Sociology, and Social Phenomena",
    "J": "Technology, Industry, and Agriculture",
    "K": "Humanities",
    "L": "Information Science",
    "M": "Named Groups",
    "N": "Health Care",
    "V": "Publication Characteristics",
    "Z": "Geographicals",
}
"""The trees of MeSH, by the letter that their numbers begin with."""

MESH: Mapping[str, str] = {
    "C": "diseases",
    "D": "chemicals",
    "E": "techniques",
    "F": "psychiatry",
    "N": "healthcare",
}
"""The five groups of the paper's figure, as our rows call them."""

PAPER_SHARES: Mapping[str, float] = {"C": 0.259, "E": 0.201, "D": 0.158, "N": 0.097, "F": 0.067}
"""Shares of the samples that the paper names (section 5.5)."""

_TREE_NUMBER = re.compile(r"[A-Z]\d\d(?:\.\d+)*")


def letter_of(group: str) -> str:
    """Return the letter of a group that is named by its letter, a tree number, NLM's name or the name of our row.

    Raises:
        DataError: it is none of these; names the nearest one.

    Example:
        >>> letter_of("c"), letter_of("Health Care"), letter_of("psychiatry"), letter_of("C14.280")
        ('C', 'N', 'F', 'C')
    """
    name = " ".join(group.split())
    if name.upper() in TREES:
        return name.upper()
    if _TREE_NUMBER.fullmatch(name):
        return name[0]
    names = {text.lower(): letter for groups in (TREES, MESH) for letter, text in groups.items()}
    if name.lower() in names:
        return names[name.lower()]
    raise DataError(str(unknown("MeSH group", group[:100], [*TREES, *names])))


def read_trees(path: Path) -> dict[str, tuple[str, ...]]:
    """Tree numbers of every descriptor, by its name in lower case.

    Args:
        path: NLM's `desc2025.xml` (or `.gz`) of any year, or its `mtrees2025.bin`.

    Raises:
        DataError: the file cannot be read, or is neither.
    """
    if path.suffix.lower() == ".bin":
        pairs = [line.rpartition(";")[::2] for line in read_text(path).splitlines() if line.strip()]
        trees: dict[str, list[str]] = {}
        for name, number in pairs:
            trees.setdefault(name.strip().lower(), []).append(number.strip())
    else:
        trees = {name.lower(): numbers for name, numbers in _descriptors(path)}
    valid = {name: tuple(numbers) for name, numbers in trees.items() if all(map(_TREE_NUMBER.fullmatch, numbers))}
    if not any(valid.values()):
        raise DataError(
            f"{path}: no MeSH descriptors with tree numbers in it (desc2025.xml or mtrees2025.bin has them)"
        )
    return valid


def _descriptors(path: Path) -> Iterator[tuple[str, list[str]]]:
    from xml.etree.ElementTree import ParseError, iterparse

    try:
        with _opened(path) as file:
            for _, element in iterparse(file):  # expat bounds what entities may grow to
                if element.tag == "DescriptorRecord":
                    numbers = [number.text or "" for number in element.findall("TreeNumberList/TreeNumber")]
                    yield element.findtext("DescriptorName/String", ""), [number.strip() for number in numbers]
                    element.clear()
    except (OSError, ParseError, EOFError) as error:
        raise DataError(f"{path}: no MeSH descriptor file ({error})") from None


def _opened(path: Path) -> IO[bytes]:
    return gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb")  # type: ignore[return-value]


def read_terms(path: Path) -> dict[str, tuple[str, ...]]:
    """MeSH terms of every question of PubMedQA.

    Args:
        path: its `ori_pqal.json` or `ori_pqaa.json`, or a parquet file of `qiaojin/PubMedQA`.

    Raises:
        DataError: the file cannot be read or has another form.
    """
    try:
        rows = _parquet_rows(path) if path.suffix.lower() == ".parquet" else _json_rows(path)
        by_question = {question.strip(): tuple(map(str, terms)) for question, terms in rows}
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise DataError(f"{path}: no questions with MeSH terms of PubMedQA ({type(error).__name__}: {error})") from None
    if not by_question:
        raise DataError(f"{path}: no question in it")
    return by_question


def _json_rows(path: Path) -> Iterator[tuple[str, Sequence[str]]]:
    entries: Any = read_json(path)
    for entry in entries.values():
        yield entry["QUESTION"], entry["MESHES"]


def _parquet_rows(path: Path) -> Iterator[tuple[str, Sequence[str]]]:
    from datasets import Dataset

    for row in Dataset.from_parquet(str(path)):
        yield row["question"], row["context"]["meshes"]


@dataclass(frozen=True)
class Groups:
    """The result of a mapping.

    Attributes:
        letters: question -> letter of its group.
        without: questions of which no term has a tree number that counts.
        unknown_terms: terms that the descriptor file has not (it is of another year), with how often they come.
    """

    letters: Mapping[str, str]
    without: tuple[str, ...]
    unknown_terms: Mapping[str, int]

    def shares(self) -> dict[str, float]:
        """Share of each group among the questions that have one, the largest first."""
        counts = Counter(self.letters.values())
        return {letter: count / len(self.letters) for letter, count in counts.most_common()}


def group_questions(
    terms: Mapping[str, Sequence[str]], trees: Mapping[str, Sequence[str]], among: Collection[str] = tuple(TREES)
) -> Groups:
    """Return the group of every question.

    Args:
        terms: question -> MeSH terms of its abstract, in their order.
        trees: descriptor in lower case -> tree numbers.
        among: letters that count. Most abstracts are about humans of some age, so that with all of them named groups
            and organisms are the most frequent.

    Example:
        >>> trees = {"asthma": ["C08.127", "C20.543"], "adult": ["M01.060"], "drug therapy": ["E02.319"]}
        >>> group_questions({"Does it help?": ["Adult", "Asthma", "Drug Therapy"]}, trees).letters
        {'Does it help?': 'C'}
    """
    letters: dict[str, str] = {}
    without, unknown = [], Counter[str]()
    for question, names in terms.items():
        counts = Counter[str]()
        for name in names:
            numbers = trees.get(name.strip().lower())
            if numbers is None:
                unknown[name] += 1
            counts.update(number[0] for number in numbers or () if number[0] in among)
        if counts:
            letters[question] = counts.most_common(1)[0][0]
        else:
            without.append(question)
    return Groups(letters, tuple(without), dict(unknown.most_common()))
