"""Which pairs NLI clustering asks about, and that it never matters for the clusters."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from hedge_tasks.clustering.base import number_by_first_appearance
from hedge_tasks.clustering.linking import lexical_similarity
from hedge_tasks.clustering.nli import NliClustering
from hedge_tasks.clustering.relations import RULES, Relation

CONTRADICTION, NEUTRAL, ENTAILMENT = Relation.CONTRADICTION, Relation.NEUTRAL, Relation.ENTAILMENT
every_rule = pytest.mark.parametrize("rule", RULES)


class Oracle:
    """Looks up or computes relations, refuses to answer twice, and remembers what it was asked."""

    def __init__(self, relation):
        self.relation, self.asked = relation, set()

    def __call__(self, pairs):
        for pair in pairs:
            assert pair not in self.asked, f"asked twice about {pair}"
            assert pair[0] != pair[1]
            self.asked.add(pair)
        return [self.relation(*pair) for pair in pairs]


def seeded(seed, weights):
    """Labels of their own for each direction, inconsistent with each other, as likely as the weights say."""

    def relation(a, b):
        return random.Random(f"{seed}|{a}|{b}").choices([CONTRADICTION, NEUTRAL, ENTAILMENT], weights)[0]

    return relation


def meaning(text):
    return text.split(" ")[0]


def noisy_meanings(seed):
    """Texts begin with their meaning; the labels mostly follow it."""

    def relation(a, b):
        weights = (1, 5, 14) if meaning(a) == meaning(b) else (14, 5, 1)
        return seeded(seed, weights)(a, b)

    return relation


ORACLES = {
    "uniform": lambda seed: seeded(seed, (1, 1, 1)),
    "mostly contradiction": lambda seed: seeded(seed, (8, 1, 1)),
    "mostly neutral": lambda seed: seeded(seed, (1, 6, 3)),
    "mostly entailment": lambda seed: seeded(seed, (1, 2, 7)),
    "meanings": noisy_meanings,
}
every_oracle = pytest.mark.parametrize("oracle", ORACLES.values(), ids=ORACLES)


def random_texts(rng, most=9):
    pool = [f"{m} w{i}{' and more' * (i % 3)}" for m in ("left", "right", "both") for i in range(6)]
    return rng.sample(pool, rng.randint(1, most))


def equivalent(rule, one, other):
    """The rules as the reference and the paper word them."""
    if rule == "strict":
        return one is other is ENTAILMENT
    return CONTRADICTION not in (one, other) and not (one is NEUTRAL and other is NEUTRAL)


def components(texts, relation, rule):
    """All pairs in both directions; connected components by repeated squaring of the link matrix."""
    reach = np.array([[a == b or equivalent(rule, relation(a, b), relation(b, a)) for b in texts] for a in texts])
    for _ in texts:
        reach = reach @ reach
    return number_by_first_appearance(tuple(row) for row in reach)


def with_veto(texts, relation, rule):
    """All relations known beforehand; sets of texts merged one pair after the other."""
    similarity = lexical_similarity(texts)
    pairs = sorted(
        itertools.combinations(range(len(texts)), 2),
        key=lambda pair: (-similarity(*pair), sorted((texts[pair[0]], texts[pair[1]]))),
    )
    clusters = [{text} for text in texts]
    for i, j in pairs:
        a, b = texts[i], texts[j]
        one, other = (next(c for c in clusters if text in c) for text in (a, b))
        vetoed = any(CONTRADICTION in (relation(x, y), relation(y, x)) for x in one for y in other)
        if one is not other and not vetoed and equivalent(rule, relation(a, b), relation(b, a)):
            clusters.remove(other)
            one |= other
    return number_by_first_appearance(next(i for i, c in enumerate(clusters) if text in c) for text in texts)


# --- the partition ---------------------------------------------------------------------------------------------------


@every_rule
@every_oracle
def test_clusters_are_those_of_all_pairs_in_both_directions(rule, oracle):
    rng = random.Random(1)
    seen = set()
    for seed in range(15):
        sets = [random_texts(rng) for _ in range(3)]
        relation = oracle(seed)
        got = NliClustering(classifier=Oracle(relation), rule=rule).cluster(sets)
        assert got == [components(texts, relation, rule) for texts in sets]
        seen.update(map(tuple, got))
    assert len(seen) > 8


@every_rule
@every_oracle
def test_clusters_with_veto_are_those_of_merging_with_all_relations_known(rule, oracle):
    rng = random.Random(2)
    differ = 0
    for seed in range(15):
        sets = [random_texts(rng) for _ in range(3)]
        relation = oracle(seed)
        got = NliClustering(classifier=Oracle(relation), rule=rule, veto=True).cluster(sets)
        assert got == [with_veto(texts, relation, rule) for texts in sets]
        differ += got != NliClustering(classifier=relation_of(relation), rule=rule).cluster(sets)
    assert differ


def relation_of(relation):
    return lambda pairs: [relation(*pair) for pair in pairs]


# --- what is asked ---------------------------------------------------------------------------------------------------


def asked_about(relation, sets, **options):
    oracle = Oracle(relation)
    NliClustering(classifier=oracle, **options).cluster(sets)
    return oracle


@every_rule
@every_oracle
def test_nothing_is_asked_that_asking_about_all_pairs_one_direction_first_would_not_ask(rule, oracle):
    rng = random.Random(5)
    for seed in range(40):
        relation, texts = oracle(seed), random_texts(rng, most=18)
        of_all_pairs = set()
        for a, b in itertools.combinations(sorted(texts), 2):
            first = relation(a, b)
            still_open = first is ENTAILMENT or (first is NEUTRAL and rule == "relaxed")
            of_all_pairs |= {(a, b), (b, a)} if still_open else {(a, b)}
        asked = asked_about(relation, [texts], rule=rule).asked
        assert asked <= of_all_pairs


def test_lexical_similarity_is_the_dice_coefficient_of_words_and_trigrams():
    same = lexical_similarity(["a lung", "A lung!", "a", "", " ", "lung"])
    assert [same(0, 1), same(3, 4), same(0, 3)] == [1, 1, 0]
    # " a lung " has 6 trigrams and 2 words, " lung " 4 and 1; they share ung, ng_, lun, _lu and "lung".
    assert same(0, 5) == pytest.approx(2 * 5 / (8 + 5))
