"""The detectors: against lm-polygraph and uqlm, their properties, what they need and how they are found."""

from __future__ import annotations

import dataclasses
import json
import math
import random
from pathlib import Path

import numpy as np
import pytest
from finished_runs import cosine_matrices
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon
from scipy.special import expit, softmax
from scipy.stats import entropy

from hedge_tasks.claims.base import Claim, ClaimEvidence
from hedge_tasks.data.inside import HEADS, LOGITS
from hedge_tasks.detectors import (
    NEEDS,
    Evidence,
    get,
    names,
    relation_matrices,
)
from hedge_tasks.detectors.builtin.laplacian import eccentricity, eigenvalue_sum
from hedge_tasks.detectors.builtin.lexical import MOST_PAIRS, lexical_disagreement
from hedge_tasks.detectors.evidence import INSIDE_ARRAYS

GOLDEN = json.loads((Path(__file__).parent / "golden" / "detectors.json").read_text("utf-8"))
# --- lm-polygraph and uqlm -------------------------------------------------------------------------------------------

# What a library reports in place of our number x, where that is not x.
REPORTS = {
    ("lm_polygraph", "lexical"): lambda x: x - 1,
    ("lm_polygraph", "semantic_density"): lambda x: x - 1,
    ("uqlm", "contradiction"): lambda x: 1 - x,
    ("uqlm", "baseline_entailment"): lambda x: 1 - x,
    ("uqlm", "baseline_cosine"): lambda x: 1 - x / 2,
}

# With a single sample there is no pair of samples: lm-polygraph divides by zero.
UNDEFINED_FOR_ONE = {"lexical", "luq"}


def golden_evidence(question):
    contradiction, entailment = np.array(question["contradiction"]), np.array(question["entailment"])
    unit = np.array(question["vectors"]) / np.linalg.norm(question["vectors"], axis=1, keepdims=True)
    return Evidence(
        texts=tuple(question["texts"]),
        n_clean=len(question["texts"]) - 1,
        cluster_ids=tuple(question["cluster_ids"]),
        mean_logprobs=np.array([np.mean(tokens) for tokens in question["token_logprobs"]]),
        n_tokens=np.array([float(len(tokens)) for tokens in question["token_logprobs"]]),
        relations=np.stack([contradiction, 1 - contradiction - entailment, entailment], axis=-1),
        cosines=np.minimum(1.0, unit @ unit.T),
    )


@pytest.mark.parametrize(
    ("library", "name"), [(library, name) for library, values in GOLDEN["values"].items() for name in values]
)
def test_the_number_is_that_of_the_library(library, name):
    compared = 0
    for question, theirs in zip(GOLDEN["questions"], GOLDEN["values"][library][name], strict=True):
        if theirs is None:
            assert name in UNDEFINED_FOR_ONE
            assert len(question["texts"]) == 2
            continue
        evidence = golden_evidence(question)
        ours = REPORTS.get((library, name), float)(get(name).score(evidence))
        if (library, name) == ("uqlm", "baseline_cosine") and evidence.cosines[0].min() < 0:
            assert ours > theirs  # uqlm's cosines keep their sign
            continue
        assert ours == pytest.approx(theirs, abs=1e-6)
        compared += 1
    assert compared >= 40


# --- properties ------------------------------------------------------------------------------------------------------

WORDS = ["left", "right", "lung", "no", "Effusion", "肺水肿", ""]

FORCED = (
    *("blank", "reworded", "true", "false", "option:a", "option:b"),
    *("noisy:0:a", "noisy:0:b", "noisy:1:a", "noisy:1:b"),
)

# Smallest and largest value for n clean and m noisy answers; None where there is no bound.
KINDS = ("nli", "cosine", "jaccard")
BOUNDS = {
    (None, None): ("image_ratio", "free_energy", "semantic_energy"),
    (None, 0): ("self_certainty",),
    (0, None): (
        *("msp", "baseline_nll", "length", "reworded_msp", "clean_nll", "predictive_entropy", "cocoa", "cocoa_nll"),
        *("min_token_probability", "mean_token_entropy", "max_token_entropy", "cocoa_mte", "token_sar", "rauq"),
    ),
    (0, "log(2)"): ("option_entropy", "option_vase", "clean_noisy_divergence"),
    (0, "log(n)"): ("se", "se_sum", "discrete_se", "kle", "kle_cosine"),
    (0, "log(m)"): ("discrete_se_noisy",),
    (0, "log(n + m)"): ("discrete_se_pooled", "vase_linear"),
    (0, "log(1 + n + m)"): ("vase", "vase_no_contrast"),
    (0, "1 + log(n) / 4"): ("radflag_dse",),
    (1, "n"): ("n_clusters", *(f"eigv_{kind}" for kind in KINDS)),
    (0, "sqrt(n - 1)"): tuple(f"eccentricity_{kind}" for kind in KINDS),
    ("-log(n) - 1", "-log(n - 1 + e)"): ("snne", "snne_cosine"),
    ("-log(1 + 1000 * n)", None): ("sar", "sentence_sar", "sentence_sar_nli"),
    ("log(1e-3)", "log(1 + 1e-3)"): ("eigenscore",),
    ("log(1e-3)", None): ("inside",),
}
SHARES = {
    "radflag", "radflag_noisy", "radflag_pooled", "lexical", "luq", "selfcheck_nli", "contradiction",
    "baseline_cosine", "baseline_entailment", "semantic_density", "degree_nli", "degree_cosine", "degree_jaccard",
    "p_true", "mc_probability", "image_attention", "image_attention_entropy", "lookback",
    *(f"claims_{kind}_{how}" for kind in ("radflag", "luq", "contradiction") for how in ("mean", "max")),
}  # fmt: skip
BOUNDS_OF = {name: bounds for bounds, named in {**BOUNDS, (0, 1): SHARES}.items() for name in named}


def random_evidence(dice, n, m):
    """Everything a detector may need; equal texts have equal log-probabilities, relations and vectors."""
    pool = list(dict.fromkeys(" ".join(dice.choices(WORDS, k=dice.randint(0, 3))).strip() for _ in range(6)))
    texts = tuple(dice.choice(pool) for _ in range(1 + n + m))
    meaning = {text: dice.randrange(4) for text in pool}
    logprob = {text: -dice.expovariate(1) for text in pool}
    relevances = {text: tuple((-dice.expovariate(1), dice.random()) for _ in range(3)) for text in pool}
    tokens = {text: float(dice.randint(0, 5)) for text in pool}

    def say(pairs):
        return [[x / sum(row) for x in row] for row in ([dice.random() for _ in range(3)] for _ in pairs)]

    [relations] = relation_matrices([texts], say)
    [cosines] = cosine_matrices([texts], lambda texts: [[dice.gauss(0, 1) for _ in range(3)] for _ in texts])
    return Evidence(
        texts,
        n,
        tuple(meaning[text] for text in texts),
        np.array([logprob[text] for text in texts]),
        np.array([tokens[text] for text in texts]),
        relations,
        cosines,
        "where?",
        {name: -dice.expovariate(1) for name in FORCED},
        random_claims(dice, n, m),
        token_logprobs=tuple(-dice.expovariate(1) for _ in range(3)),
        token_entropies=tuple(dice.expovariate(1) for _ in range(3)),
        relevances=tuple(relevances[text] for text in texts),
        inside=random_inside(dice, texts[1 : 1 + n]),
    )


def random_inside(dice, clean):
    """Arrays from inside a model; equal texts have equal ones."""
    rng = np.random.default_rng(dice.randrange(2**32))
    of = {text: rng.normal(size=(2, len(LOGITS))) for text in clean}
    logits = rng.normal(size=(3, len(LOGITS)))
    logits[:, LOGITS.index("logprob")] = -rng.exponential(size=3)
    logits[:, LOGITS.index("uniform_divergence")] = rng.exponential(size=3)
    return {
        "states": rng.normal(size=(2, 5, 3)),
        "heads": rng.random((4, 2, len(HEADS))),
        "previous": rng.random((9, 3)),
        "logits": logits,
        "draw_states": np.array([of[text][0] for text in clean]),
        "draw_logits": np.array([of[text][1] for text in clean]),
    }


def random_claims(dice, n, m):
    claims = tuple(Claim(f"a#{i}", "a", word, 0, 1, "sentence") for i, word in enumerate(("one", "two", "three")))
    clean, noisy = (np.random.default_rng(dice.randrange(2**32)).dirichlet([1, 1, 1], (3, size)) for size in (n, m))
    return ClaimEvidence(claims, "one two three", clean, noisy)


def claims_in_order(claims, order, n):
    """The support of claims by draws in another order, or by fewer; places as among all answers."""
    if claims is None:
        return None
    clean, noisy = ([i - 1 for i in order if 0 < i <= n], [i - 1 - n for i in order if i > n])
    return dataclasses.replace(claims, clean=claims.clean[:, clean], noisy=claims.noisy[:, noisy])


def reordered(evidence, order):
    """The same answers in another order."""
    order = list(order)
    return dataclasses.replace(evidence, texts=tuple(evidence.texts[i] for i in order), **cut(evidence, order))


def inside_in_order(evidence, order):
    clean = [i - 1 for i in order if 0 < i <= evidence.n_clean]
    return {name: of[clean] if name.startswith("draw_") else of for name, of in evidence.inside.items()}


def test_every_detector_has_bounds_here():
    assert set(BOUNDS_OF) == set(names())


@settings(deadline=None, max_examples=6)
@given(st.integers(0, 2**32), st.integers(1, 9), st.integers(1, 5))
def test_scores_are_finite_and_within_their_bounds(seed, n, m):
    evidence = random_evidence(random.Random(seed), n, m)
    for name in names():
        value = get(name).score(evidence)
        if name == "luq" and n == 1:
            assert value is None
            continue
        low, high = (b if b is None else eval(str(b), vars(math), {"n": n, "m": m}) for b in BOUNDS_OF[name])
        assert math.isfinite(value), name
        assert low is None or value >= low - 1e-9, name
        assert high is None or value <= high + 1e-9, name
        assert math.copysign(1.0, value) == 1.0 or value < 0, name


@settings(deadline=None, max_examples=6)
@given(st.integers(0, 2**32), st.integers(1, 9), st.integers(1, 5))
def test_the_order_of_the_samples_changes_no_digit(seed, n, m):
    dice = random.Random(seed)
    evidence = random_evidence(dice, n, m)
    clean, noisy = list(range(1, 1 + n)), list(range(1 + n, 1 + n + m))
    dice.shuffle(clean)
    dice.shuffle(noisy)
    other = reordered(evidence, [0, *clean, *noisy])
    for name in names():
        one, two = get(name).score(evidence), get(name).score(other)
        # Linear algebra is rounded to 12 digits, so that only numbers on the edge between two of them can differ.
        assert one == two or one == pytest.approx(two, abs=1.5e-12), name


# --- ties ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 5, 10, 20])
def test_agreeing_answers_have_no_eccentricity_and_groups_their_number_of_eigenvalues(n):
    alike = np.ones((n, n))
    assert eccentricity(alike) == 0.0
    two = np.kron(np.eye(2), alike)
    assert eigenvalue_sum(two) == 2.0
    assert eccentricity(two) == 1.0


# --- formulas in another form ----------------------------------------------------------------------------------------


def test_vase_without_softmax_and_contrast_is_semantic_entropy_and_with_softmax_it_is_not():
    evidence = random_evidence(random.Random(3), 8, 8)
    se = get("se").score(evidence)
    assert get("vase_linear", alpha=0.0).score(evidence) == pytest.approx(se, abs=1e-12)
    assert get("vase", alpha=0.0).score(evidence) == get("vase_no_contrast").score(evidence)
    assert get("vase_no_contrast").score(evidence) > se + 0.05


def test_nearest_neighbour_entropy_and_selfcheck_are_their_formulas():
    """In neither library: straight from the formulas, with nothing but `math`."""
    evidence = random_evidence(random.Random(5), 6, 2)
    e, c = evidence.relations[..., 2].tolist(), evidence.relations[..., 0].tolist()
    clean = range(1, 7)
    sums = [sum(math.exp((e[i][j] + e[j][i]) / 2) for j in clean) for i in clean]
    assert get("snne").score(evidence) == pytest.approx(-sum(map(math.log, sums)) / 6, abs=1e-9)
    cosines = evidence.cosines.tolist()
    near = [sum(math.exp(max(0.0, cosines[i][j]) / 0.1) for j in clean) for i in clean]
    assert get("snne_cosine", temperature=0.1).score(evidence) == pytest.approx(-sum(map(math.log, near)) / 6, abs=1e-9)
    told = [c[0][i] / (c[0][i] + e[0][i]) if c[0][i] + e[0][i] else 0.5 for i in clean]
    assert get("selfcheck_nli").score(evidence) == pytest.approx(sum(told) / 6, abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_detectors_that_no_library_has_are_their_formulas(seed):
    evidence = random_evidence(random.Random(seed), 6, 4)
    ids, inside, forced = evidence.cluster_ids, evidence.inside, evidence.forced
    clean, noisy = (np.array([some.count(i) / len(some) for i in sorted(set(ids))]) for some in (ids[1:7], ids[7:]))
    heads = {name: inside["heads"][..., i] for i, name in enumerate(HEADS)}
    options, *on_noise = (
        softmax([forced[f"{begin}{option}"] for option in "ab"]) for begin in ("option:", "noisy:0:", "noisy:1:")
    )
    p, worst = np.exp(inside["logits"][:, LOGITS.index("logprob")]), []
    for layer in inside["previous"][3:8]:  # the middle third of nine, and one more
        sure = [p[0]]
        for t in (1, 2):
            sure.append(0.2 * p[t] + 0.8 * layer[t] * sure[-1])
        worst.append(-np.log(sure).mean())
    tokens = np.array(evidence.relevances[0])
    expected = {
        "clean_noisy_divergence": jensenshannon(clean, noisy) ** 2,
        "radflag_dse": np.mean(np.array(ids[1:7]) != ids[0]) + entropy(clean) / 4,
        "discrete_se_pooled": entropy(np.unique(ids[1:], return_counts=True)[1]),
        "image_ratio": forced["blank"] - evidence.mean_logprobs[0] * evidence.n_tokens[0],
        "p_true": expit(forced["false"] - forced["true"]),
        "option_entropy": entropy(options),
        "option_vase": entropy(softmax(2 * options - np.mean(on_noise, axis=0))),
        "image_attention": 1 - heads["image"].mean(),
        "image_attention_entropy": heads["image_entropy"].mean(),
        "lookback": 1 - heads["lookback"].mean(),
        "rauq": max(worst),
        "token_sar": -np.average(tokens[:, 0], weights=tokens[:, 1]),
    }
    for name, value in expected.items():
        assert get(name).score(evidence) == pytest.approx(value, abs=1e-11), name
    never = dict.fromkeys(forced, -math.inf)
    for name in ("p_true", "option_entropy", "option_vase"):
        assert get(name).score(dataclasses.replace(evidence, forced=never)) is None, name
    unlike = dataclasses.replace(evidence, relevances=(((-1.0, 0.0), (-4.0, 0.0)), *evidence.relevances[1:]))
    assert get("token_sar").score(unlike) == 2.5
    some = {**forced, "option:a": 0.0, "option:b": -math.inf}
    assert get("option_entropy").score(dataclasses.replace(evidence, forced=some)) == 0.0


def test_semantic_density_of_very_unlikely_answers_is_that_of_likely_ones():
    [relations] = relation_matrices([("a", "b", "c")], lambda pairs: [(0.5, 0.3, 0.2)] * len(pairs))
    scores = {
        get("semantic_density").score(Evidence(("a", "b", "c"), 2, mean_logprobs=np.full(3, x), relations=relations))
        for x in (-1.0, -2000.0)
    }
    assert len(scores) == 1
    impossible = Evidence(("a", "b"), 1, mean_logprobs=np.full(2, -np.inf), relations=relations[:2, :2])
    assert get("semantic_density").score(impossible) is None


def test_lexical_disagreement_of_many_answers_is_close_to_that_of_all_pairs():
    dice = random.Random(0)
    few = [" ".join(dice.choices("abcdef", k=4)) for _ in range(90)]
    many = [" ".join([*dice.choices("abcdef", k=4), str(i)]) for i in range(1_000)]
    pairs = math.comb(len(set(few)), 2)
    assert pairs <= MOST_PAIRS < math.comb(len(many), 2)
    backwards = lexical_disagreement(many[::-1])
    assert lexical_disagreement(many) == backwards
    some = dice.sample(many, 90)
    assert backwards == pytest.approx(lexical_disagreement(some), abs=0.05)


# --- needs -----------------------------------------------------------------------------------------------------------


def missing(**fields):
    return lambda e: dataclasses.replace(e, **{k: of(e) if callable(of) else of for k, of in fields.items()})


def unknown_number(name, place):
    return missing(
        **{name: lambda e: np.where(np.arange(len(e.texts)) == place % len(e.texts), np.nan, getattr(e, name))}
    )


def less(field, *prefixes):
    return missing(**{field: lambda e: {k: v for k, v in getattr(e, field).items() if not k.startswith(prefixes)}})


WITHOUT = {
    **{need: missing(**{field: None}) for need, field in {
        "clusters": "cluster_ids", "relations": "relations", "cosines": "cosines", "question": "question",
        "claims": "claims", "baseline_token_logprobs": "token_logprobs", "baseline_token_entropies": "token_entropies",
    }.items()},
    **{f"{whose}_{what}": unknown_number(field, place)
       for what, field in {"logprob": "mean_logprobs", "tokens": "n_tokens"}.items()
       for whose, place in {"baseline": 0}.items()},
    **{f"{whose}_{what}": unknown_number(field, place)
       for what, field in {"logprobs": "mean_logprobs", "tokens": "n_tokens"}.items()
       for whose, place in {"clean": 1, "noisy": -1}.items()},
    "baseline_relevance": missing(relevances=lambda e: (None, *e.relevances[1:])),
    "clean_relevance": missing(relevances=lambda e: (e.relevances[0], None, *e.relevances[2:])),
    "contradictions": missing(claims=lambda e: dataclasses.replace(e.claims, contradicts=False)),
    **{f"forced_{need}": less("forced", prefix) for need, prefix in {
        "reworded": "reworded", "blank": "blank", "truth": "false", "options": "option:a", "noisy": "noisy:",
    }.items()},
    **{need: less("inside", *named) for need, named in INSIDE_ARRAYS.items() if not need.startswith("baseline_")},
    "clean": lambda e: dataclasses.replace(
        e, texts=(e.texts[0], *e.texts[e.noisy]), n_clean=0, **cut(e, [0, *range(1 + e.n_clean, len(e.texts))])
    ),
    "noisy": lambda e: dataclasses.replace(e, texts=e.texts[: 1 + e.n_clean], **cut(e, range(1 + e.n_clean))),
}  # fmt: skip


def cut(evidence, kept):
    kept = list(kept)
    return {
        "cluster_ids": tuple(evidence.cluster_ids[i] for i in kept),
        "mean_logprobs": evidence.mean_logprobs[kept],
        "n_tokens": evidence.n_tokens[kept],
        "relations": evidence.relations[np.ix_(kept, kept)],
        "cosines": evidence.cosines[np.ix_(kept, kept)],
        "claims": claims_in_order(evidence.claims, kept, evidence.n_clean),
        "relevances": tuple(evidence.relevances[i] for i in kept),
        "inside": inside_in_order(evidence, kept),
    }


@pytest.mark.parametrize("need", WITHOUT)
def test_a_missing_need_makes_the_score_none_and_nothing_else_does(need):
    whole = random_evidence(random.Random(1), 4, 3)
    assert whole.offers == set(WITHOUT)
    less = WITHOUT[need](whole)
    assert need not in less.offers
    for name in names():
        detector = get(name)
        assert (detector.score(less) is None) == (not detector.needs <= less.offers), name
        assert bool(detector.missing(less)) == (not detector.needs <= less.offers), name
        if need in detector.needs:
            assert NEEDS[need] in detector.missing(less)


def test_the_price_is_what_a_detector_looks_at():
    for name in names():
        detector = get(name)
        expected = (10 if "clean" in detector.needs else 0) + (7 if "noisy" in detector.needs else 0)
        assert detector.draws(10, 7) == expected, name


# --- evidence --------------------------------------------------------------------------------------------------------
