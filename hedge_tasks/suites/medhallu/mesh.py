"""MeSH groups of MedHallu's questions, out of NLM's tree numbers and PubMedQA's terms: a user's own copies of both.

A group is the first letter of MeSH tree numbers. Every tree number of every term of an abstract counts once, and a
question belongs to the group that comes most often; of several that come as often, to the one that comes first.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from hedge_tasks.errors import DataError
from hedge_tasks.io.outside import read_text

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

_TREE_LINE = re.compile(r"(?m)^(.+);([A-Z])\d\d(?:\.\d+)*\s*$")


def read_trees(path: Path) -> dict[str, str]:
    """Letters of the tree numbers of every descriptor, by its name in lower case, such as "CC" of asthma.

    Args:
        path: NLM's `mtrees2025.bin` of any year, with lines such as "Asthma;C08.127.108".

    Raises:
        DataError: the file cannot be read, or has no such line.
    """
    trees: dict[str, str] = {}
    for name, letter in _TREE_LINE.findall(read_text(path)):
        trees[name.lower()] = trees.get(name.lower(), "") + letter
    if not trees:
        raise DataError(f"{path}: no MeSH descriptors with tree numbers in it (mtrees2025.bin has them)")
    return trees


def read_terms(path: Path) -> dict[str, list[str]]:
    """MeSH terms of every question of PubMedQA.

    Args:
        path: a parquet file of `qiaojin/PubMedQA`.

    Raises:
        DataError: the file cannot be read, or has other columns.
    """
    from pyarrow import ArrowException
    from pyarrow.parquet import read_table

    try:
        rows = read_table(path, columns=["question", "context"]).to_pylist()
        return {row["question"].strip(): row["context"]["meshes"] for row in rows}
    except (OSError, ArrowException, KeyError, TypeError) as error:
        raise DataError(f"{path}: no parquet file of PubMedQA with question and context.meshes ({error})") from None


def group_questions(terms: Mapping[str, Sequence[str]], trees: Mapping[str, str], among: str) -> dict[str, str]:
    """Return the letter of the group of every question that has one.

    Args:
        terms: question -> MeSH terms of its abstract, in their order.
        trees: descriptor in lower case -> letters of its tree numbers.
        among: letters that count. Most abstracts are about humans of some age, so that with all of them named groups
            and organisms are the most frequent.

    Example:
        >>> trees = {"asthma": "CC", "adult": "M", "drug therapy": "E"}
        >>> group_questions({"Does it help?": ["Adult", "Asthma", "Drug Therapy"]}, trees, "CEM")
        {'Does it help?': 'C'}
    """
    letters = {}
    for question, names in terms.items():
        counts = Counter(x for name in names for x in trees.get(name.strip().lower(), "") if x in among)
        if counts:
            letters[question] = counts.most_common(1)[0][0]
    return letters
