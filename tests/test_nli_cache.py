"""What NLI models have said, kept on disk: asked once, never wrong, never in the way."""

from __future__ import annotations

import os
import sqlite3
import struct

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hedge_tasks.clustering import nli_model
from hedge_tasks.clustering.nli import NliClustering
from hedge_tasks.clustering.nli_cache import RelationCache, cache_file, cache_folder, pair_key
from hedge_tasks.clustering.relations import LIKELIEST

pytest.importorskip("torch")
pytest.importorskip("transformers")

from nli_models import LABELS, save, texts

SETS = [texts(5, "a"), texts(3, "b")]
CONTRADICTED = (0.75, 0.125, 0.125)
ENTAILED = (0.0, 0.25, 0.75)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """A cache of its own for each test, and no memory of earlier ones."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("HEDGE_CACHE", str(folder))
    forget()
    yield folder
    forget()


def forget():
    nli_model.load_nli_model.cache_clear()


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    return save(tmp_path_factory.mktemp("nli-model"))


@pytest.fixture
def forward(monkeypatch):
    """All pairs that a model is shown."""
    shown = []
    original = nli_model.NliModel._begun
    monkeypatch.setattr(
        nli_model.NliModel, "_begun", lambda self, pairs, encoded: shown.extend(pairs) or original(self, pairs, encoded)
    )
    return shown


def cluster(model, sets=SETS, **options):
    return NliClustering(model=str(model), device="cpu", **options).cluster(sets)


def never(*_, **__):
    raise AssertionError("no model may be loaded for this")


# --- reuse -----------------------------------------------------------------------------------------------------------


def test_a_second_run_asks_nothing_and_loads_no_model(model, forward, monkeypatch):
    first = cluster(model)
    assert len(forward) == len(set(forward)) > 10
    forget()
    monkeypatch.setattr(nli_model, "_load", never)
    assert cluster(model) == first
    assert cluster(model, sets=[answers[::-1] for answers in SETS[::-1]], rule="relaxed", batch_size=1) is not None


# --- broken caches ---------------------------------------------------------------------------------------------------


def the_file(cache):
    (file,) = cache.glob("nli-*.sqlite3")
    return file


def garbage(file):
    file.write_bytes(b"no database " * 1000)


def cut(file):
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2 - 100])


def overwritten_in_the_middle(file):
    content = bytearray(file.read_bytes())
    content[len(content) // 3 : 2 * len(content) // 3] = os.urandom(2 * len(content) // 3 - len(content) // 3)
    file.write_bytes(content)


def of_other_tables(file):
    file.unlink()
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE relations (something TEXT)")
    connection.close()


def a_folder(file):
    file.unlink()
    file.mkdir()


@pytest.mark.parametrize("damage", [garbage, cut, overwritten_in_the_middle, of_other_tables, a_folder])
def test_a_damaged_cache_is_reported_and_changes_no_result(damage, model, cache, forward, warnings):
    first = cluster(model)
    pairs = len(forward)
    damage(the_file(cache))
    forward.clear()
    forget()
    assert cluster(model) == first
    assert 0 < len(forward) <= pairs
    assert len(warnings) == 1
    assert "cache" in warnings[0]


def test_what_was_classified_before_an_interruption_is_kept(model, forward, monkeypatch):
    original = nli_model.NliModel._begun

    def interrupted(self, pairs, encoded):
        if len(forward) >= 6:
            raise KeyboardInterrupt
        return original(self, pairs, encoded)

    monkeypatch.setattr(nli_model.NliModel, "_begun", interrupted)
    with pytest.raises(KeyboardInterrupt):
        cluster(model, batch_size=2)
    done = list(forward)
    assert len(done) >= 6
    monkeypatch.setattr(nli_model.NliModel, "_begun", original)
    forget()
    cluster(model, batch_size=2)
    assert len(forward) <= len(set(forward)) + 4  # the passes that were under way
    assert forward[: len(done)] == done


# --- the cache by itself ---------------------------------------------------------------------------------------------


@pytest.fixture
def disk(tmp_path):
    opened = RelationCache(tmp_path / "cache.sqlite3")
    yield opened
    opened.close()


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.tuples(st.text(), st.text()), st.sampled_from([ENTAILED, CONTRADICTED]), max_size=8))
def test_what_is_written_is_read_back_and_nothing_else(disk, rows):
    disk.write(rows)
    assert disk.read(list(rows)) == rows
    assert disk.read([(f"{a}?", f"{b}!?") for a, b in rows]) == {}


@pytest.mark.parametrize(
    ("stored", "is_read"),
    [(b"", False), (None, False), ("text", False), (3, False)]
    + [
        (struct.pack("<3f", *row), is_read)
        for row, is_read in (
            ((0, 1, 0), True),
            ((0, 0.9991, 0), True),
            ((0, 0.9989, 0), False),
            ((0, 1.0011, 0), False),
            ((-0.5, 1, 0.5), False),
            ((float("nan"), 1, 0), False),
        )
    ],
)
def test_an_entry_that_is_no_three_probabilities_is_damaged(stored, is_read, disk, warnings):
    disk._connection.execute("INSERT INTO relations VALUES (?, ?)", (pair_key(("a", "b")), stored))
    assert (("a", "b") in disk.read([("a", "b")])) == is_read
    assert ("1 damaged" in "".join(warnings)) != is_read


def test_a_file_is_of_one_model_and_identity(tmp_path, monkeypatch):
    files = [cache_file(tmp_path, m, i) for m, i in (("a/b c", "1"), ("a/b c", "2"), ("b c", "1"), ("/", "1"))]
    assert len(set(files)) == 3
    assert files[0] == files[2]
    assert files[0].name.startswith("nli-b_c-")
    assert files[3].name.startswith("nli-model-")
    assert len(cache_file(tmp_path, "x" * 61, "1").name) == len(cache_file(tmp_path, "x" * 60, "1").name)
    assert len(cache_file(tmp_path, "x" * 59, "1").name) < len(cache_file(tmp_path, "x" * 60, "1").name)
    monkeypatch.setenv("HOME", str(tmp_path))
    absolute, relative = (cache_folder({"XDG_CACHE_HOME": folder}) for folder in (str(tmp_path / "c"), "c"))
    assert (absolute, relative) == (tmp_path / "c" / "hedge_tasks", tmp_path / ".cache" / "hedge_tasks")
    assert cache_folder({"HEDGE_CACHE": "~/mine", "XDG_CACHE_HOME": "/c"}) == tmp_path / "mine"
    assert [cache_folder({"HEDGE_CACHE": word}) for word in ("off", " OFF ")] == [None, None]


@pytest.mark.parametrize("labels", [LABELS, (*LABELS[1:], LABELS[0])])
def test_probabilities_are_those_of_the_model_whatever_the_order_of_its_labels(labels, tmp_path):
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    model = save(tmp_path, labels=labels)
    loaded = nli_model.load_nli_model(nli_model.find_origin(str(model), None), "cpu", "float32")
    pairs = [(SETS[0][0], text) for text in SETS[1]]
    predictions = {}
    for batch in loaded.predict(pairs, batch_size=2):
        predictions.update(batch)
    original, tokenizer = (
        AutoModelForSequenceClassification.from_pretrained(model),
        AutoTokenizer.from_pretrained(model),
    )
    for pair in pairs:
        with torch.no_grad():
            expected = original.eval()(**tokenizer(*pair, return_tensors="pt")).logits[0].softmax(0).tolist()
        by_relation = {relation: expected[labels.index(relation.name)] for relation in LIKELIEST}
        assert predictions[pair] == pytest.approx(tuple(by_relation.values()), abs=1e-5)
