"""All detectors over real vision-language models: draws simulated exactly from their own distributions over options.

    python benchmarks/vlm_options.py --data FOLDER [--sets mmbench oodcv] [--sizes 1 2 3 ... 30] [--json FILE]
    python benchmarks/vlm_options.py --data FOLDER --check   # the main numbers without this package's code
    python benchmarks/vlm_options.py --from FILE...          # the tables of such JSON files, of other sets each

FOLDER holds `NAME_logits.npz` (for each model an array of questions x options) and `NAME_questions.parquet` for each
set of questions (VLM-Uncertainty-Bench). Every detector that can work without noisy answers and without
embeddings is scored at every number of draws; draws are nested, so that one at 10 sees the first 10 of 30. Different
options contradict each other, which gives the relations that detectors over NLI need. Detectors that have the same
ROC-AUC for every model, set and number of draws are one row. E ("I don't know") and F ("None of the above") are never
right and say nothing false: who takes them declines, and the question is left out for that model.

Intervals resample models (with both their sets), not questions: how far other models like these would have another
order. Whether a detector beats the sequence probability of the same answer is tested for every model and set by
DeLong's paired test (clustered by image where questions share one), corrected for all detectors by `max_t`.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from scipy.stats import rankdata

from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.data.option_files import LABELS, OptionQuestion
from hedge_tasks.detectors import get, names
from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.detectors.units import shared_groups
from hedge_tasks.sampling.option_draws import OptionSampling, draw_options, option_logprobs
from hedge_tasks.statistics import auroc, compare_scores, max_t

FREE = "msp"
"""The detector that all are compared with: it costs no draw."""

LIMIT = "entropy of all options"
"""What semantic entropy becomes with ever more draws. No detector of a run: it needs the whole distribution."""

WEIGHTED = (
    *("baseline_nll", "msp", "se", "se_sum", "clean_nll", "predictive_entropy", "semantic_density"),
    "sentence_sar_nli",
)
"""Detectors that look at log-probabilities."""

DECLINING = frozenset("EF")
"""Options that VLM-Uncertainty-Bench added to those of each question: "I don't know" and "None of the above"."""

TESTED = (10, 30)
"""Numbers of draws at which every detector is tested against the free one."""

CHECKED = 10
RESAMPLES = 10_000
LEVEL = 0.05


def questions_of(logits: Path, questions: Path) -> dict[str, list[OptionQuestion]]:
    """By model the questions with its weights; rotations of an item (CircularEval: i + k 10^6) are a group."""
    rows = pq.read_table(questions).to_pylist()
    items = [re.sub(r"\d{7,}(?=\.\w+$)", lambda number: str(int(number[0]) % 10**6), row["image"]) for row in rows]
    return {
        model: [
            OptionQuestion(row["id"], row["answer"], dict(zip(LABELS, weights, strict=False)), group=item)
            for row, item, weights in zip(rows, items, array.astype(float).tolist(), strict=True)
        ]
        for model, array in np.load(logits).items()
    }


def candidates() -> list[str]:
    """Detectors that can work here: no noise, no embeddings, nothing experimental; length is always one token."""
    never = {"cosines", "noisy", "noisy_logprobs", "noisy_tokens", "forced_blank", "forced_truth"}
    found = [name for name in names() if not get(name).experimental and not get(name).needs & never]
    return [name for name in found if name != "length"]


EXACT = Scorer.build("exact", "exact", {"closed": True})
COUNTING = tuple(name for name in candidates() if name not in WEIGHTED)
KNOWN: dict[tuple[str, ...], Any] = {}
"""What the detectors that count say of each pattern, the same for all models."""


def entropy(question: OptionQuestion) -> float:
    logprobs = option_logprobs(question.logits).values()
    return -math.fsum(math.exp(p) * p for p in logprobs if p > -math.inf)


def measure(questions: Sequence[OptionQuestion], model: str, sizes: Sequence[int], seed: int) -> dict[str, Any]:
    """ROC-AUC of every detector at every number of draws, and how it compares with the free one."""
    sampled = [draw_options(question, OptionSampling(max(sizes), seed=seed), model) for question in questions]
    answered = [i for i, a in enumerate(sampled) if a.baseline.text not in DECLINING]
    declined = 1 - len(answered) / len(sampled)
    sampled, questions = [sampled[i] for i in answered], [questions[i] for i in answered]
    labels = [a.label or 0 for a in sampled]
    groups = shared_groups([a.group for a in sampled])
    found: dict[str, Any] = {
        "questions": len(labels),
        "wrong": sum(labels) / len(labels),
        "declined": declined,
        LIMIT: auroc([entropy(question) for question in questions], labels),
        "at": {},
    }
    free: list[float] = []
    for n in sizes:
        values = columns([replace(a, clean=a.clean[:n]) for a in sampled], questions)
        free = free or values[FREE]
        found["at"][str(n)] = compared(values, free, labels, groups, tested=n in TESTED)
    return found


def columns(sampled: Sequence[AnswerSet], questions: Sequence[OptionQuestion]) -> dict[str, list[float]]:
    """What each detector says of every question; those that are undefined for some are left out.

    What looks at no log-probability sees only how often each option was said, so it is asked once for all questions
    where these counts are the same; the others are computed for all questions at once. The first questions are scored
    as a run is, to be sure of both.
    """
    patterns = [pattern(answers) for answers in sampled]
    new = {
        key: AnswerSet(str(key), Answer(key[0]), tuple(map(Answer, key[1:]))) for key in set(patterns) - KNOWN.keys()
    }
    KNOWN.update(zip(new, replace(EXACT, detectors=COUNTING).score([*new.values()]), strict=True))
    found = {name: [KNOWN[key][name] for key in patterns] for name in COUNTING} | weighted(sampled, questions)
    for i, scores in enumerate(replace(EXACT, detectors=tuple(candidates())).score(sampled[:CHECKED])):
        # Not to the last digit: linear algebra on another order of the answers has others, seldom even once rounded.
        if wrong := [n for n, value in scores.numbers.items() if abs((value or 0) - (found[n][i] or 0)) > 1e-9]:
            raise AssertionError(f"{sampled[i].id}: {wrong} are not what they are in a run")
    return {name: values for name, values in found.items() if None not in values}


def weighted(sampled: Sequence[AnswerSet], questions: Sequence[OptionQuestion]) -> dict[str, list[float | None]]:
    """The detectors that look at log-probabilities, by arrays of shape (questions, options)."""
    labels = list(questions[0].logits)
    logprobs = np.array([list(option_logprobs(question.logits).values()) for question in questions])
    said = [Counter(answer.text for answer in answers.clean) for answers in sampled]
    counts = np.array([[of[label] for label in labels] for of in said], dtype=np.float64)
    baseline = np.array([[label == a.baseline.text for label in labels] for a in sampled])
    n, own = counts.sum(axis=1), logprobs[baseline]
    p = np.exp(logprobs)
    shares = counts * p / (counts * p).sum(axis=1, keepdims=True)
    entropies = -np.where(shares > 0, shares * np.log(np.where(shares > 0, shares, 1.0)), 0.0).sum(axis=1)
    nll = -(counts * logprobs).sum(axis=1) / n
    others = (p * ((counts > 0) & ~baseline)).sum(axis=1)
    spread = others / ((p * (counts > 0)).sum(axis=1) + np.exp(own))
    raised = np.where(counts > 0, logprobs + np.log1p(np.maximum(counts - 1, 0) / 0.001), 0.0)
    sar = -(counts * raised).sum(axis=1) / n
    found = {
        **dict.fromkeys(("msp", "baseline_nll"), -own),
        **dict.fromkeys(("se", "se_sum"), np.maximum(entropies, 0.0)),
        **dict.fromkeys(("clean_nll", "predictive_entropy"), nll),
        "semantic_density": spread,
        "sentence_sar_nli": sar,
    }
    # Eleven digits, so that ties stay ties: sums of floats in another order differ in the last ones.
    return {name: [float(f"{value:.11g}") + 0.0 for value in values] for name, values in found.items()}


def pattern(answers: AnswerSet) -> tuple[str, ...]:
    """The answers with other names: the baseline's is A, then the most frequent one is B, and so on, in this order."""
    counts = Counter(answer.text for answer in answers.clean)
    agreeing = counts.pop(answers.baseline.text, 0)
    others = sorted(counts.values(), reverse=True)
    clean = [("A", agreeing), *zip(LABELS[1:], others, strict=False)]
    return ("A", *(label for label, count in clean for _ in range(count)))


def compared(
    values: Mapping[str, list[float]], free: list[float], labels: list[int], groups: Any, *, tested: bool
) -> dict[str, Any]:
    drawing = [name for name in values if get(name).draws(1, 1) > 0] if tested else []
    rows = range(len(labels))
    found = {name: compare_scores(values[name], free, labels, groups=groups).of(rows) for name in drawing}
    adjusted = dict(zip(found, max_t([*found.values()]), strict=True))
    return {
        name: {
            "auroc": auroc(of, labels),
            "difference": found[name].difference if name in found else None,
            "p_adjusted": adjusted.get(name),
        }
        for name, of in values.items()
    }


class Results:
    """What `measure` found, by set and model."""

    def __init__(self, found: Mapping[str, Any]) -> None:
        self.sets: Mapping[str, Mapping[str, Any]] = found["sets"]
        self.sizes: list[str] = [str(n) for n in found["sizes"]]
        self.models = sorted(set.intersection(*(set(models) for models in self.sets.values())))
        self.runs = [models[model] for models in self.sets.values() for model in self.models]
        last = self.runs[0]["at"][self.sizes[-1]]
        all_there = [n for n in self.sizes if all(of["at"][n].keys() == last.keys() for of in self.runs)]
        alike: dict[tuple[float, ...], list[str]] = {}
        for name in last:
            # Rounding in the ninth digit is no other order of the questions.
            key = tuple(round(of["at"][n][name]["auroc"], 9) for of in self.runs for n in all_there)
            alike.setdefault(key, []).append(name)
        self.families = [sorted(family, key=lambda name: (len(name), name)) for family in alike.values()]

    def of(self, detector: str, n: str, of_set: str) -> np.ndarray:
        """ROC-AUC of each model, shape (models,); nan where there is none."""
        found = [self.sets[of_set][model]["at"][n].get(detector) for model in self.models]
        return np.array([np.nan if one is None else one["auroc"] for one in found])

    def ranks(self, n: str) -> dict[str, np.ndarray]:
        """Rank of each family's first detector for each set and model, shape (sets, models); 1 is the best."""
        shown = [family[0] for family in self.families if family[0] in self.runs[0]["at"][n]]
        table = np.array([[self.of(name, n, of_set) for name in shown] for of_set in self.sets])
        places = np.apply_along_axis(lambda values: rankdata(-values), 1, table)
        return {name: places[:, i] for i, name in enumerate(shown)}


def interval(values: np.ndarray, digits: int = 3, seed: int = 0) -> str:
    """95 % by resampling models, the last axis; means over all axes."""
    drawn = np.random.default_rng(seed).integers(values.shape[-1], size=(RESAMPLES, values.shape[-1]))
    means = values[..., drawn].mean(axis=-1).reshape(-1, RESAMPLES).mean(axis=0)
    low, high = np.quantile(means, [0.025, 0.975])
    return f"[{low:.{digits}f}, {high:.{digits}f}]"


def called(family: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in family)


def by_draws(results: Results, of_set: str) -> str:
    """Mean ROC-AUC over models at every number of draws."""
    head = ["detectors", "0", *results.sizes]
    rows = []
    for family in results.families:
        name, most = family[0], results.sizes[-1]
        free = get(name).draws(1, 1) == 0
        means = [f"{results.of(name, n, of_set).mean():.3f}" for n in results.sizes]
        cells = [f"{results.of(name, most, of_set).mean():.3f}", *([""] * len(means))] if free else ["", *means]
        cells = ["–" if cell == "nan" else cell for cell in cells]
        rows.append((results.of(name, most, of_set).mean(), [called(family), *cells]))
    limit = np.array([results.sets[of_set][model][LIMIT] for model in results.models])
    rows.append((limit.mean(), [LIMIT, f"{limit.mean():.3f}", *([""] * len(results.sizes))]))
    wrong = np.mean([results.sets[of_set][model]["wrong"] for model in results.models])
    declined = np.mean([results.sets[of_set][model]["declined"] for model in results.models])
    least, most = (of(results.sets[of_set][model]["questions"] for model in results.models) for of in (min, max))
    title = (
        f"**{of_set}**: {least} to {most} questions that {len(results.models)} models did not decline "
        f"({declined:.3f} declined in the mean), {wrong:.3f} of the answers wrong in the mean"
    )
    return f"{title}\n\n{markdown(head, [row for _, row in sorted(rows, key=lambda row: -row[0])])}"


def leaderboard(results: Results, n: str) -> str:
    """Mean rank, ROC-AUC with intervals, and how often a detector is better or worse than the free one."""
    head = ["rank", "95 %", "detectors", "draws"]
    for of_set in results.sets:
        head += [of_set, "95 %"]
    head += [f"better than {FREE}", f"worse than {FREE}"]
    ranks = results.ranks(n)
    rows = []
    for family in results.families:
        name = family[0]
        if name not in ranks:
            continue
        mean, price = f"{ranks[name].mean():.1f}", str(get(name).draws(int(n), 0))
        cells = [mean, interval(ranks[name], 1), called(family), price]
        for of_set in results.sets:
            values = results.of(name, n, of_set)
            cells += [f"{values.mean():.3f}", interval(values)]
        tested = [of["at"][n][name] for of in results.runs]
        if tested[0]["difference"] is None:
            cells += ["", ""]
        else:
            for sign in (1, -1):
                cells.append(str(sum(t["p_adjusted"] < LEVEL and t["difference"] * sign > 0 for t in tested)))
        rows.append((ranks[name].mean(), cells))
    return markdown(head, [row for _, row in sorted(rows, key=lambda row: row[0])])


def by_model(results: Results, n: str) -> str:
    """The free detector and three that draw, for every model."""
    shown = ("msp", "se", "discrete_se", "radflag")
    head = ["model"] + [cell for of_set in results.sets for cell in (f"{of_set}: declined", "wrong", *shown)]
    rows = []
    for model in results.models:
        cells = [model]
        for models in results.sets.values():
            of = models[model]
            cells += [
                f"{of['declined']:.3f}",
                f"{of['wrong']:.3f}",
                *(f"{of['at'][n][name]['auroc']:.3f}" for name in shown),
            ]
        rows.append(cells)
    return markdown(head, rows)


def check(folder: Path, n: int = 10, seed: int = 123) -> str:
    """The same from the arrays alone: other draws, numpy's sampling, scipy's ranks, and nothing of this package."""
    head, rows = ["", "wrong", "msp", LIMIT, "se", "discrete_se", "radflag"], []
    noise = np.random.default_rng(seed)

    def area(scores: np.ndarray, wrong: np.ndarray) -> float:
        ranks, k = rankdata(np.round(scores, 12)), wrong.sum()
        return float((ranks[wrong].sum() - k * (k + 1) / 2) / (k * (len(wrong) - k)))

    def entropies(shares: np.ndarray) -> np.ndarray:
        return -np.where(shares > 0, shares * np.log(np.where(shares > 0, shares, 1.0)), 0.0).sum(axis=1)

    for file in sorted(folder.glob("*_logits.npz")):
        of_set = file.name.removesuffix("_logits.npz")
        answers = pq.read_table(folder / f"{of_set}_questions.parquet")["answer"].to_pylist()
        right = np.array(["ABCDEF".index(answer) for answer in answers])
        arrays, found = np.load(file), []
        for logits in (arrays[model].astype(np.float64) for model in arrays.files):
            shifted = logits - logits.max(axis=1, keepdims=True)
            logprobs = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
            baseline = (logits / 0.1 + noise.gumbel(size=logits.shape)).argmax(axis=1)
            draws = (logits + noise.gumbel(size=(n, *logits.shape))).argmax(axis=2)
            counts = np.stack([(draws == k).sum(axis=0) for k in range(logits.shape[1])], axis=1)
            weights = counts * np.exp(logprobs)
            wrong = baseline != right
            scores = (
                -logprobs[np.arange(len(logits)), baseline],
                entropies(np.exp(logprobs)),
                entropies(weights / weights.sum(axis=1, keepdims=True)),
                entropies(counts / n),
                (draws != baseline).mean(axis=0),
            )
            answered = baseline < len("ABCD")
            found.append([wrong[answered].mean(), *(area(of[answered], wrong[answered]) for of in scores)])
        rows.append([of_set, *(f"{value:.3f}" for value in np.mean(found, axis=0))])
    return markdown(head, rows)


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--data", type=Path)
    source.add_argument("--from", dest="files", type=Path, nargs="+")
    parser.add_argument("--sets", nargs="+", help="only these (default: all in the folder)")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 2, 3, 5, 10, 15, 20, 30])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--check", action="store_true", help="only the independent computation, see RESULTS.md")
    parser.add_argument("--json", type=Path, help="write all numbers")
    arguments = parser.parse_args()
    if arguments.check:
        print(check(arguments.data))
        return
    found: dict[str, Any]
    if arguments.files is not None:
        parts = [json.loads(file.read_text("utf-8")) for file in arguments.files]
        found = {**parts[0], "sets": {name: of for part in parts for name, of in part["sets"].items()}}
        found["seconds"] = sum(part["seconds"] for part in parts)
    else:
        found = {"sizes": sorted(arguments.sizes), "seed": arguments.seed, "sets": {}, "seconds": 0.0}
        for file in sorted(arguments.data.glob("*_logits.npz")):
            of_set = file.name.removesuffix("_logits.npz")
            if of_set not in (arguments.sets or [of_set]):
                continue
            models = questions_of(file, file.with_name(f"{of_set}_questions.parquet"))
            measured = found["sets"].setdefault(of_set, {})
            for model in models:
                start = time.process_time()
                measured[model] = measure(models[model], model, found["sizes"], arguments.seed)
                found["seconds"] += time.process_time() - start
                if arguments.json:
                    arguments.json.write_text(json.dumps(found), "utf-8")
    results = Results(found)
    print(f"{len(results.models)} models, seed {found['seed']}, {found['seconds']:.0f} s of CPU time\n")
    for of_set in results.sets:
        print(by_draws(results, of_set), end="\n\n")
    middle = "10" if "10" in results.sizes else results.sizes[-1]
    for n in dict.fromkeys((middle, results.sizes[-1])):
        print(f"**At {n} draws**: mean rank over {len(results.runs)} runs\n\n{leaderboard(results, n)}\n")
    print(by_model(results, middle))


if __name__ == "__main__":
    main()
