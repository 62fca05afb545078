"""Blind baselines of answers: what sees neither picture nor draws, and what it does to the praise of detectors."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
from finished_runs import finished_run

from hedge_tasks.measures.blind import BLIND_QUESTION, text_scores
from hedge_tasks.measures.detector_table import detector_table
from hedge_tasks.runs.scorers import scorer_of
from hedge_tasks.statistics import auroc


def test_texts_are_judged_by_other_images() -> None:
    """Each image has a word of its own and one label: inside the folds that would give all away."""
    chance = random.Random(1)
    label_of = [chance.randrange(2) for _ in range(60)]
    groups = [str(i // 4) for i in range(240)]
    labels = np.array([label_of[i // 4] for i in range(240)])
    scores = text_scores([f"image{i // 4} thing" for i in range(240)], labels, groups)
    assert auroc(scores, labels) < 0.65
    # A word that goes with the label everywhere is found.
    said = text_scores([f"image{i // 4} {'bad' if label_of[i // 4] else 'good'}" for i in range(240)], labels, groups)
    assert auroc(said, labels) > 0.95


def test_without_questions_or_labels_it_says_why() -> None:
    run = finished_run(40)
    bare = replace(run, answer_sets=tuple(replace(a, question=None) for a in run.answer_sets))
    table = detector_table(bare, scorer_of(bare, None), ["se"])
    assert "no question" in table.left_out[BLIND_QUESTION]
