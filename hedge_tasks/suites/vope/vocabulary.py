"""COCO's 80 categories with the synonyms of CHAIR, read from lmms-eval's CHAIR task rather than copied."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

from hedge_tasks.errors import DataError, HedgeError, unknown

_CHAIR = "tasks/coco_cap_chair/utils.py"

_MASS = ("luggage",)
"""Words of the vocabulary that take no article."""

_PAIRS = ("people", "children", "oxen", "cattle", "skis", "scissors")
"""Words of the vocabulary that are plural as they stand."""


@dataclass(frozen=True)
class Vocabulary:
    """The vocabulary of things that count as objects.

    Attributes:
        categories: the category of every word, such as "puppy" -> "dog"; lower case, words of a phrase a space apart.
        phrases: what a phrase of several words stands for, such as "baby bear" -> "bear". The value need not be a word
            of `categories`: a "train track" is no object, and is here so that it is not taken for a train.
    """

    categories: Mapping[str, str]
    phrases: Mapping[str, str]

    def category(self, word: str, where: str = "vocabulary") -> str:
        """Return the category of a word.

        Raises:
            DataError: it is none of the vocabulary; names `where` and the nearest word.
        """
        key = " ".join(word.lower().split())
        if key not in self.categories:
            raise DataError(f"{where}: {unknown('COCO object', word, set(self.categories.values()))}")
        return self.categories[key]


@cache
def coco() -> Vocabulary:
    """Return the vocabulary of lmms-eval's task `coco_cap_chair` (80 categories, some 420 words).

    Some of its entries begin with a space, so that CHAIR there never finds them (" cheesecake"); here they are found.

    Raises:
        HedgeError: the installed lmms-eval has no such task, or its tables are of another form.
    """
    module = _chair()
    try:
        categories = {_key(word): _key(category) for word, category in module.INVERSE_SYNONYM_DICT.items()}
        phrases = {_key(phrase): _key(meaning) for phrase, meaning in module.DOUBLE_WORD_DICT.items()}
    except (AttributeError, TypeError) as error:
        raise HedgeError(f"lmms-eval's {_CHAIR} is of another form than this package knows: {error}") from error
    # The list of double words lacks phrases that are words of their own ("dining table").
    own = {word: word for word in categories if " " in word}
    return Vocabulary(categories, own | phrases)


def object_phrase(word: str) -> tuple[str, bool]:
    """Return a word of the vocabulary as a question names it, and whether the question is in the plural.

    Example:
        >>> object_phrase("umbrella"), object_phrase("unicycle"), object_phrase("skis"), object_phrase("luggage")
        (('an umbrella', False), ('a unicycle', False), ('skis', True), ('luggage', False))
    """
    if word in _PAIRS:
        return word, True
    if word in _MASS:
        return word, False
    return str(engine().a(word)), False


@cache
def engine():  # type: ignore[no-untyped-def]  # inflect types its texts as a class of its own
    """The rules of English plurals and articles (inflect), loaded on first use: it takes a second."""
    import inflect

    return inflect.engine()


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text, for lists of them."""
    return frozenset(text.split())


def _key(text: str) -> str:
    return " ".join(text.lower().split())


def _chair() -> ModuleType:
    # By its file, as lmms-eval itself loads a task's functions: importing lmms_eval.tasks takes ten seconds.
    package = importlib.util.find_spec("lmms_eval")
    folders = list(package.submodule_search_locations or ()) if package is not None else []
    files = [file for folder in folders if (file := Path(folder) / _CHAIR).is_file()]
    spec = importlib.util.spec_from_file_location("hedge_tasks_chair", files[0]) if files else None
    if spec is None or spec.loader is None:
        raise HedgeError(f"lmms-eval is not installed, or without {_CHAIR}: VOPE takes CHAIR's synonyms from there")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
