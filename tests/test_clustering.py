from __future__ import annotations

import numpy as np
import pytest
from nli_models import save
from test_nli_linking import Oracle, relation_of

from hedge_tasks.clustering import build_backend, cluster_by_embedding, cluster_by_nli, nli_model
from hedge_tasks.clustering.dendrogram import COSINE_TOLERANCE
from hedge_tasks.clustering.embedding import EmbeddingCache, EmbeddingClustering
from hedge_tasks.clustering.exact import normalise
from hedge_tasks.clustering.nli import NliClustering
from hedge_tasks.clustering.relations import Relation
from hedge_tasks.llm.encoders import unit_vectors

CONTRADICTION, NEUTRAL, ENTAILMENT = Relation.CONTRADICTION, Relation.NEUTRAL, Relation.ENTAILMENT


def bag_of_letters(texts):
    """An encoder: how often each letter occurs."""
    return [[1e-3 + text.lower().count(chr(97 + i)) for i in range(26)] for text in texts]


def same_first_word(a, b):
    return ENTAILMENT if a.split()[0] == b.split()[0] else CONTRADICTION


BACKENDS = {
    "exact": {},
    "embed": {"encoder": bag_of_letters, "threshold": 0.8},
    "nli": {"classifier": relation_of(same_first_word)},
}
every_backend = pytest.mark.parametrize("backend", [build_backend(n, **o) for n, o in BACKENDS.items()], ids=BACKENDS)


# --- what holds for every backend ------------------------------------------------------------------------------------


@every_backend
def test_ids_are_numbered_by_first_appearance(backend):
    assert backend.cluster([["left x", "right", "left x", "up", "right"], ["up", "up"], []]) == [
        [0, 1, 0, 2, 1],
        [0, 0],
        [],
    ]
    assert backend.cluster([]) == []


@every_backend
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("yes no",), "answer_sets must be a sequence of answer sets"),
        ((["yes", "no"],), r"answer_sets\[0\] must be a sequence of answers, got one string: 'yes'"),
        (([["yes"], ["no", None]],), r"answer_sets\[1\] has an answer that is not a string: None"),
        (([["yes"], ["no"]], ["why?"]), "1 questions for 2 answer sets"),
        (([["yes"]], "?"), "questions must be a sequence"),
    ],
)
def test_bad_input_is_named(backend, arguments, message):
    with pytest.raises(ValueError, match=message):
        backend.cluster(*arguments)


# --- exact -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(“Left\n\t lung”)!", "left lung"),
        ("straße", "strasse"),
        ("ｆｕｌｌ　ｗｉｄｔｈ", "full width"),
        ("cafe\u0301", "café"),
        ("5%", "5%"),
        ("- 5", "5"),
        ("...", "..."),
    ],
)
def test_normalisation(text, expected):
    assert normalise(text) == expected
    assert normalise(expected) == expected


# --- embedding -------------------------------------------------------------------------------------------------------


def link_by_cosine(vectors, threshold):
    backend = EmbeddingClustering(encoder=lambda texts: vectors[[int(text) for text in texts]], threshold=threshold)
    return backend.cluster([[str(i) for i in range(len(vectors))]])[0]


def test_ties_within_the_tolerance_are_linked_and_nothing_beyond():
    def pair_with(cosine):
        return unit_vectors([[1.0, 0.0], [cosine, np.sqrt(1 - cosine**2)]])

    assert link_by_cosine(pair_with(0.9), 0.9) == [0, 0]
    assert link_by_cosine(pair_with(0.9 - 0.5 * COSINE_TOLERANCE), 0.9) == [0, 0]
    assert link_by_cosine(pair_with(0.9 - 2 * COSINE_TOLERANCE), 0.9) == [0, 1]


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_embeddings_that_are_not_finite_are_refused(bad):
    with pytest.raises(ValueError, match="NaN or infinity"):
        cluster_by_embedding(["a", "b"], encoder=lambda texts: [[1.0, bad]] * len(texts))


@pytest.mark.parametrize("batch_size", [1, 2, 64])
def test_each_text_is_embedded_once_and_only_where_there_is_something_to_compare(batch_size):
    seen = []

    def encoder(texts):
        assert len(texts) <= batch_size
        seen.extend(texts)
        return bag_of_letters(texts)

    backend = EmbeddingClustering(encoder=encoder, batch_size=batch_size)
    assert backend.cluster([["ab", "cd", "ab", ""], ["alone", "alone"], ["cd", "dc", "xyz"], [""]])[2] == [0, 0, 1]
    assert sorted(seen) == ["ab", "cd", "dc", "xyz"]


def test_so_many_embeddings_are_kept_and_the_oldest_go():
    cache, asked = EmbeddingCache(), []

    def rows(*texts, source="x"):
        before = len(asked)
        cache.rows(source, texts, lambda missing: asked.extend(missing) or [np.full(1, len(t)) for t in missing])
        return asked[before:]

    assert rows("old", "older") == ["old", "older"]
    assert rows("older", "old", "new") == ["new"]
    assert rows("old", source="y") == ["old"], "vectors of different sources never mix"
    rows(*map(str, range(100_000 - 4)))
    assert rows("older", "new") == []
    rows("one too many")
    assert rows("older", "new") == []
    assert rows("old") == ["old"]


@pytest.mark.parametrize("rows", [[[1.0]], [1.0, 0.0], [[[1.0]], [[0.0]]]])
def test_an_encoder_returns_a_row_for_each_text(rows):
    with pytest.raises(ValueError, match="for 2 texts"):
        cluster_by_embedding(["a", "b"], encoder=lambda texts: rows)


# --- NLI: the logic, with oracles ------------------------------------------------------------------------------------


def test_nli_sees_the_question_in_front_of_the_answer():
    oracle = Oracle(lambda a, b: ENTAILMENT)
    assert cluster_by_nli(["yes", "no", ""], "Is it?", classifier=oracle) == [0, 0, 1]
    assert oracle.asked == {("Is it? no", "Is it? yes"), ("Is it? yes", "Is it? no")}


@pytest.mark.parametrize(
    ("classifier", "message"),
    [
        (lambda pairs: [], "0 relations for 1 pairs"),
        (lambda pairs: ["ENTAILMENT"] * len(pairs), "'ENTAILMENT', which is no Relation"),
    ],
)
def test_a_classifier_that_breaks_its_contract_is_refused(classifier, message):
    with pytest.raises(ValueError, match=message):
        cluster_by_nli(["a", "b"], classifier=classifier)


# --- NLI: the model --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tokenizer_limit", "positions", "expected"),
    [
        *((512, 514, 512), (10**30, 512, 512), (10**30, None, None), (64, -1, 64), (0, 0, None), (1, None, 1)),
        *((10**9 - 1, None, 10**9 - 1), (10**9, None, None)),
    ],
)
def test_the_token_limit_is_the_smaller_one_of_model_and_tokenizer(tokenizer_limit, positions, expected):
    class Settings:
        model_max_length = tokenizer_limit
        max_position_embeddings = positions

    assert nli_model.token_limit(Settings, Settings) == expected


MAX_TOKENS = 64


@pytest.fixture(scope="session")
def nli_folder(tmp_path_factory):
    """A small DeBERTa-v2 with random weights and its tokenizer, saved as a hub model would be."""
    return save(tmp_path_factory.mktemp("nli"))


def load(folder, dtype="float32"):
    return nli_model.load_nli_model(nli_model.find_origin(str(folder), None), "cpu", dtype)


@pytest.fixture(scope="session")
def tiny_nli(nli_folder):
    yield NliClustering(model=str(nli_folder), device="cpu")
    nli_model.load_nli_model.cache_clear()


def test_texts_are_truncated_at_the_models_limit_longest_first(tiny_nli, nli_folder):
    loaded = load(nli_folder)
    shapes, forward = [], loaded._model.forward
    loaded._model.forward = lambda **inputs: shapes.append(inputs["input_ids"]) or forward(**inputs)
    try:
        long = " ".join(["lung"] * 500)
        list(loaded.predict([(long, "left heart"), (long, long)], batch_size=1))
    finally:
        loaded._model.forward = forward
    assert [tuple(ids.shape) for ids in shapes] == [(1, MAX_TOKENS)] * 2
    vocabulary = loaded._tokenizer.get_vocab()
    # The short hypothesis survives whole; of the two long texts about half each.
    assert shapes[1][0, -4:].tolist() == [vocabulary[t] for t in ("[SEP]", "left", "heart", "[SEP]")]
    assert abs(shapes[0][0].tolist().index(vocabulary["[SEP]"]) - MAX_TOKENS // 2) <= 1


def test_checking_finds_a_model_that_is_no_nli_model(tmp_path):
    folder = save(tmp_path, labels=["LABEL_0", "LABEL_1", "LABEL_2"])
    with pytest.raises(ValueError, match="no usable NLI model"):
        NliClustering(model=str(folder)).check()


def test_partitions_at_many_thresholds_are_those_at_each():
    rng = np.random.default_rng(0)
    for u in (1, 2, 5, 9):
        vectors = rng.normal(size=(u, 3))
        backend = EmbeddingClustering(encoder=lambda texts, of=vectors: [of[int(text)] for text in texts])
        [tree] = backend.dendrograms([[*map(str, range(u)), "0", ""]])
        heights = tree.heights.tolist()
        near = [h + d for h in heights for d in (-1e-9, 0, COSINE_TOLERANCE, COSINE_TOLERANCE + 1e-9)]
        thresholds = [*near, -0.99, 0.5, 0.9, 1.0, *tree.thresholds.tolist()]
        assert tree.partitions(thresholds) == [tuple(tree.cluster_ids(t)) for t in thresholds]
        assert len({*tree.partitions(thresholds)}) == len(heights) + 1
