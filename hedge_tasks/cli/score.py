"""`hedge score`: a file of sampled answers, without lmms-eval or a model."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedge_tasks.cli.choices import ClusteringChoice, ColumnChoice, ReplyChoice
from hedge_tasks.cli.printing import Details

if TYPE_CHECKING:
    from hedge_tasks.data.answers import AnswerSet
    from hedge_tasks.detectors.pipeline import Scores
    from hedge_tasks.detectors.scorer import Scorer

_AT_ONCE = 10_000

_UNLABELLED = (
    "No answer has a label, and without labels there is no ROC-AUC: give a column label (1: hallucinated, 0: not), "
    "name yours with --label COLUMN, or have answers with right ones beside them judged: hedge import answers FILE."
)


def score(
    answers: Path, clustering: ClusteringChoice, columns: ColumnChoice, replies: ReplyChoice, *, out: Path | None = None
) -> dict[str, Any]:
    """Score sampled answers from a file, without lmms-eval or a model.

    ANSWERS is one of these (JSON lines, JSON, CSV, parquet, Excel); - reads JSON lines from the standard input:
      an answer set a row       {"id", "baseline", "clean": [...], "noisy"?: [...], "question"?, "reference"?, "label"?,
                                "group"?, "question_type"?}
      plain answers             {"id", "answers": [...]}: the first answer is the baseline (the one that is judged), the
                                others are samples on the clean image; with a "baseline" beside them, all are
      columns of replies        named by --reply, the baseline first; question, reference and label by options or names
      files of other tools      those of `hedge import answers`
    An answer in JSON is a text, or {"text", "mean_logprob"?, "n_tokens"?}, or {"text", "logprobs": [of each token]}, or
    {"text", "tokens": [[text, log-probability], ...]}. A label is in a column label or is_hallucination (1:
    hallucinated), or in correct (0: hallucinated). `hedge claims` reads "claims" beside
    the baseline, labels of its parts: [{"text" or "start" and "end", "label": 0 | 1 | "silent",
    "severity"?: "minor" | "major", "correction"?}, ...].

    Args:
        answers: JSONL or CSV file; - for the standard input.
        out: Where the scores of every answer are written (JSON lines).
    """
    from hedge_tasks.data.answer_files import read_answers
    from hedge_tasks.detectors.pipeline import summarise
    from hedge_tasks.detectors.score_files import write_scores
    from hedge_tasks.numbers import Column, Table

    scorer = clustering.scorer()
    read = read_answers([answers], None, columns.settings(**vars(replies)), partial(_scored, scorer))
    scores, n_given, n_silent = read.answer_sets
    if out:
        write_scores(out, scores)
    facts = {
        "answers": answers,
        "clustering": scorer.settings() if n_given < len(scores) else "given",
        "alpha": scorer.alpha,
        "clusters_given": n_given,
        **summarise(scores),
    }
    # Of what is undefined for all detectors alike, without labels or without kinds of questions, JSON alone tells.
    within = "auroc_within_question_types"
    if not any(scores_of.parent for scores_of in scores):
        facts[within] = Details(facts[within])
    silent = f"no label: {n_silent} baselines that are called hallucinated and say nothing (declined, empty, cut off)"
    notes = [*read.notes, *([silent] if n_silent else [])]
    if facts["n_labelled"]:
        return {**facts, "notes": notes}
    facts |= {name: Details(facts[name]) for name in ("auroc", within)}
    table = Table([*map(Column, ("id", *scores[0]))], [{"id": answers.id, **answers} for answers in scores])
    return {**facts, "scores": table, "notes": [*notes, _UNLABELLED]}


def _scored(scorer: Scorer, answer_sets: Iterator[AnswerSet]) -> tuple[list[Scores], int, int]:
    """Return the scores, and how many answer sets came with clusters, and with a label although they say nothing.

    Only a chosen threshold takes all at once.
    """
    from hedge_tasks.detectors.pipeline import cluster_open
    from hedge_tasks.detectors.scorer import score_all
    from hedge_tasks.runs.no_answer import without_false_label

    scores: list[Scores] = []
    n_given = n_silent = 0
    while block := [*islice(answer_sets, None if scorer.choice else _AT_ONCE)]:
        n_given += sum(answers.cluster_ids is not None for answers in block)
        said = [*map(without_false_label, block)]
        n_silent += sum(a is not b for a, b in zip(said, block, strict=True))
        clustered = cluster_open(said, scorer.cluster)
        scores += score_all(clustered, scorer.backend, scorer.detectors, alpha=scorer.alpha)
    return scores, n_given, n_silent
