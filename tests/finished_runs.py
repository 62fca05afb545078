"""Finished runs made of seeded noise: harder questions have more diverse answers and more hallucinations."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hedge_tasks.detectors.evidence import placed_cosines
from hedge_tasks.runs.health import Health, health_of
from hedge_tasks.runs.run_files import Run, run_lines
from hedge_tasks.sampling import Answer, AnswerSet
from hedge_tasks.suites.medhallu.judge import MedHalluJudge

EXACT = {"exact": {"with_question": False, "backend": "exact", "alpha": 1.0}}

HOSTILE = {
    "script": "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>",
    "link": '[see](javascript:window.hacked=1) <a href="javascript:window.hacked=1">x</a>',
    "template": "{{ 271 * 271 }} {% raw %} ${271*271}",
    "formula": '=HYPERLINK("http://example.com","x")',
    "null": "a\x00b\x1b[31mred\ud800",
    "separators": "line\u2028paragraph\u2029end",
    "right to left": "\u202egnihtyna\u2067 شيء ما",
    "stacked": "Z" + "\u0335\u0321\u0334" * 400,
    "long": "palaver " * 131_072,
}
"""What a model may say."""


def measure_health(
    answer_sets: Sequence[AnswerSet],
    sampled: Mapping[str, Any],
    verdicts: Sequence[Mapping[str, Any]] = (),
    **settings: Any,
) -> Health:
    """Health of a run of these answers."""
    by_id = {a.id: verdict for a, verdict in zip(answer_sets, verdicts, strict=False)}
    return health_of(Run("task", "model", tuple(answer_sets), by_id, {"sampled": sampled, **settings}))


def finished_run(
    n: int = 60, *, seed: int = 0, task: str = "hedge_x", model: str = "model", samples: int = 6, **settings: Any
) -> Run:
    """A run of `n` questions, two an image, of kinds open and closed, scored by exact matching."""
    sets = tuple(_answer_set(i, random.Random(seed * 100_003 + i), samples) for i in range(n))
    verdicts = {a.id: {"judge": "rule 1", "reason": "equal: the same words"} for a in sets}
    return Run(task, model, sets, verdicts, {"filters": EXACT, **settings}, f"2026-01-02T03:04:05.{seed:06d}+00:00")


def suite_run(
    n: int = 40,
    *,
    seed: int = 0,
    wrong: float = 0.3,
    mute: float = 0.0,
    model: str = "model",
    task: str = "own_medhallu",
    metrics: tuple[str, ...] = ("f1", "accuracy", "precision", "recall", "f1_unread_wrong", "f1_easy"),
) -> Run:
    """A run of MedHallu: both answers of a row in turn, and a model that calls a share of them what they are not."""
    names = ("factual", "hallucinated")
    sets, verdicts, columns = [], {}, {}
    for i in range(n):
        chance, truth = random.Random(seed * 100_003 + i), i % 2
        said = truth ^ (chance.random() < wrong)
        silent = chance.random() < mute
        sampled = [Answer(names[said ^ (chance.random() < 0.3)], -0.7, 1, "stop") for _ in range(6)]
        baseline = Answer("unreadable" if silent else names[said], -0.7, 1, "stop")
        label = None if silent else int(said != truth)
        level = ("easy", "medium", "hard")[i // 2 % 3]
        about = (f"Question {i // 2}", str(truth), label, str(i // 2), level)
        sets.append(AnswerSet(f"{i // 2}-{'th'[truth]}", baseline, tuple(sampled[:3]), tuple(sampled[3:]), *about))
        category, raw = (None, "I cannot say.") if silent else (names[said], f"So the answer is {said}.")
        verdicts[sets[-1].id] = {
            "judge": f"medhallu {MedHalluJudge.version}",
            "reason": "read",
            "category": category,
            "raw": raw,
        }
        columns[sets[-1].id] = {"truth": str(truth), "row": str(i // 2), "difficulty": level}
    judge = {"judge": "medhallu", "version": MedHalluJudge.version, "parsing": "hedge", "not_sure": False}
    documents = {"evaluation": "medhallu", "judge": judge}
    settings = {"filters": {"verdict": EXACT["exact"]}, "documents": documents, "metrics": list(metrics)}
    created = f"2026-01-02T03:04:05.{seed:06d}+00:00"
    return Run(task, model, tuple(sets), verdicts, settings, created, columns=columns)


def hostile_run() -> Run:
    """A run where every text that a model or data set has a say in is hostile."""
    run = finished_run(len(HOSTILE) * 2)
    texts = list(HOSTILE.values())
    sets, verdicts = [], {}
    for i, answer_set in enumerate(run.answer_sets):
        text = texts[i % len(texts)]
        changed = replace(
            answer_set,
            id=f"{i} {text[:300]}",
            question=text[:2000],
            reference=text[:2000],
            question_type=text[:50],
            baseline=replace(answer_set.baseline, text=text),
            # Equal where it is long: lexical disagreement takes time quadratic in the words of different answers.
            clean=tuple(
                replace(a, text=text if len(text) > 10_000 else f"{text} {k % 2}")
                for k, a in enumerate(answer_set.clean)
            ),
        )
        sets.append(changed)
        verdicts[changed.id] = {"judge": text[:100], "reason": text[:3000], "category": text[:60]}
    settings = {**run.settings, "sampling": {text[:40]: text[:5000] for text in texts}}
    return Run(texts[0], f"{texts[0]} {texts[6]}", tuple(sets), verdicts, settings, run.created)


def _answer_set(i: int, chance: random.Random, samples: int) -> AnswerSet:
    hard = chance.random()

    def answer() -> Answer:
        return Answer(chance.choice("bcde") if chance.random() < hard else "a", -1 - chance.random(), 3)

    return AnswerSet(
        f"q{i}",
        answer(),
        tuple(answer() for _ in range(samples)),
        tuple(answer() for _ in range(samples)),
        f"question {i}?",
        "a",
        int(chance.random() < 0.1 + 0.6 * hard),
        f"image {i // 2}",
        ("open", "closed")[i % 2],
    )


def cosine_matrices(sets: Sequence[Sequence[str]], embed: Callable[[list[str]], Any]) -> list[Any]:
    """Cosines of all pairs of answers, from vectors of any norm."""

    def cosines(texts: Sequence[Sequence[str]]) -> list[Any]:
        vectors = [np.asarray(embed(list(own)), dtype=np.float64) if own else np.empty((0, 1)) for own in texts]
        units = [v / np.maximum(np.linalg.norm(v, axis=1, keepdims=True), np.finfo(float).tiny) for v in vectors]
        return [v @ v.T for v in units]

    return placed_cosines(sets, cosines)


def run_text(header: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> str:
    """A run file of these lines."""
    return b"".join(run_lines(header, rows)).decode()
