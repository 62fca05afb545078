"""A store in blocks of documents, one after the other in memory: of a million questions the answers do not fit there.

A block is some thousand documents by the order of their homes, in which segments are sorted, so that each row group of
a segment is read for one block or two. Logs are read anew for every block.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedge_tasks.io.places import Place, size_of
from hedge_tasks.sampling.archive import matching_definition, store_place
from hedge_tasks.sampling.definition import Definition
from hedge_tasks.sampling.segments import home
from hedge_tasks.sampling.store import AnswerStore, StoredDocument

BLOCK = 20_000
"""Documents of a block; some 17 kB of memory each at n = 10."""

LARGEST_LOGS = 256 << 20
"""Bytes of logs in a store that is read in blocks."""


@dataclass(frozen=True)
class Contents:
    """The documents of one definition in a store, without their answers.

    Attributes:
        definition: their definition.
        n, n_noisy: the largest numbers of clean and noisy answers asked for.
        homes: of the documents, sorted, shape `(documents,)`.
    """

    folder: Place
    definition: Definition
    n: int
    n_noisy: int
    homes: NDArray[np.uint64]

    def blocks(self) -> list[NDArray[np.uint64]]:
        """The homes in blocks."""
        return [self.homes[begin : begin + BLOCK] for begin in range(0, len(self.homes), BLOCK)]


def contents_of(folder: Place, chosen: str | None) -> Contents:
    """Read which documents a store has, and nothing of their answers.

    Args:
        folder: the store, or lmms-eval's output folder.
        chosen: first digits of a definition's id; None takes the only one.

    Raises:
        DataError: there is no store, it is damaged, or several definitions are there to choose from.
        ConfigError: there is no such definition.
    """
    place = store_place(folder)
    store = AnswerStore(place, lazy=True)
    definitions: dict[str, Definition] = {}
    homes_of: dict[str, set[int]] = {}
    numbers: dict[str, tuple[int, int]] = {}
    for record in store.records():
        if "document" in record:
            document = StoredDocument.read(record["document"], "document")
            n, n_noisy = numbers.get(document.definition, (0, 0))
            numbers[document.definition] = max(n, document.n), max(n_noisy, document.n_noisy)
            homes_of.setdefault(document.definition, set()).add(int(home(document.key), 16))
        elif "definition" in record and "report" not in record:
            definition = Definition.read(record["definition"], "definition")
            definitions.setdefault(definition.id, definition)
    definition = matching_definition(place, definitions, chosen)
    homes = np.array(sorted(homes_of.get(definition.id, ())), dtype=np.uint64)
    return Contents(place, definition, *numbers.get(definition.id, (0, 0)), homes)


def is_large(folder: Place) -> bool:
    """Whether a store has more documents than a block, and can be read in blocks."""
    store = AnswerStore(store_place(folder), lazy=True)
    return store.homes().size > BLOCK and sum(map(size_of, store.files())) <= LARGEST_LOGS


def read_block(contents: Contents, homes: NDArray[np.uint64]) -> AnswerStore:
    """Read the documents with these homes, and their answers.

    Raises:
        DataError: a file cannot be read.
    """
    store = AnswerStore(contents.folder, lazy=True)
    store.load_homes(f"{number:016x}" for number in homes.tolist())
    return store
