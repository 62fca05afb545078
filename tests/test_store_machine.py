"""The answer store as a state machine: whatever writers do and however they end, the first answer to a draw stands."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from hedge_tasks.data.answers import Answer
from hedge_tasks.sampling import store as store_module
from hedge_tasks.sampling.archive import records_of
from hedge_tasks.sampling.segments import SUFFIX, home, write_segment
from hedge_tasks.sampling.store import AnswerStore, FinishedDraw

WRITERS = st.sampled_from("AB")
DOCUMENTS = st.sampled_from(["p", "q"])
INDICES = st.integers(0, 1)
TEXTS = st.sampled_from(["yes", "ja\n\u2028é\x1b"])


class StoreMachine(RuleBasedStateMachine):
    """Two processes write into one folder, and are closed, killed (in the middle of a line) and started again."""

    @initialize(smallest=st.sampled_from([1, 1 << 20]), largest=st.sampled_from([300, 1 << 20]))
    def begin(self, smallest: int, largest: int) -> None:
        self.root = Path(tempfile.mkdtemp())
        self.kept = store_module.SMALLEST_SEGMENT, store_module.LARGEST_LOG
        store_module.SMALLEST_SEGMENT, store_module.LARGEST_LOG = smallest, largest
        self.writers = {name: AnswerStore(self.folder) for name in "AB"}
        self.logs: dict[str, dict[str, Answer]] = {}
        """Name of a log -> what was acknowledged, in the order of the names."""

    def teardown(self) -> None:
        store_module.SMALLEST_SEGMENT, store_module.LARGEST_LOG = self.kept
        shutil.rmtree(self.root)

    @property
    def folder(self) -> Path:
        return self.root / "store"

    def expected(self) -> dict[str, Answer]:
        answers: dict[str, Answer] = {}
        for name in sorted(self.logs):
            answers = {**self.logs[name], **answers}
        return answers

    @rule(writer=WRITERS, document=DOCUMENTS, index=INDICES, text=TEXTS, derived=st.booleans())
    def put(self, writer: str, document: str, index: int, text: str, derived: bool) -> None:
        store = self.writers[writer]
        key = f"{document}{'/blank' if derived else ''} {index}"
        if key in store:
            return  # the hook asks for what is missing alone
        store.put([FinishedDraw(key, Answer(text), document, "clean", index, home(document))])
        self.logs.setdefault(store.stems[-1], {})[key] = Answer(text)

    @rule(writer=WRITERS)
    def close(self, writer: str) -> None:
        self.writers[writer].close()
        self.writers[writer] = AnswerStore(self.folder)

    @rule(writer=WRITERS, torn=st.booleans())
    def kill(self, writer: str, torn: bool) -> None:
        store: Any = self.writers[writer]
        if store._file is not None:
            if torn:
                store._file.write(b'{"key": "p 0", "answer": {"te')
            store._file.close()
        self.writers[writer] = AnswerStore(self.folder)

    @rule(chosen=st.sets(DOCUMENTS))
    def read_a_slice(self, chosen: set[str]) -> None:
        with AnswerStore(self.folder, lazy=True) as store:
            store.load(chosen)
            store.load(chosen)
            wanted = {key: answer for key, answer in self.expected().items() if key[0] in chosen}
            assert {key: store[key] for key in store} == wanted

    @rule()
    def export_and_merge(self) -> None:
        """Through Parquet and out of the folder, into a store that has an answer of its own."""
        if not self.logs:
            return
        file = self.root / f"out{SUFFIX}"
        write_segment(file, records_of(self.folder))
        own = {"p 0": Answer("of the target")}
        for source in (file, self.folder):
            with AnswerStore(None) as target:
                target.put([FinishedDraw("p 0", own["p 0"], "p", "clean", 0, home("p"))])
                added, conflicts = target.add(records_of(source))
                assert {key: target[key] for key in target} == {**self.expected(), **own}
                assert (added, conflicts >= ("p 0" in self.expected())) == (len(target) - 1, True)

    @invariant()
    def reopened_it_is_the_same(self) -> None:
        if hasattr(self, "logs"):
            with AnswerStore(self.folder) as store:
                assert {key: store[key] for key in store} == self.expected()


TestStoreMachine = StoreMachine.TestCase
TestStoreMachine.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
