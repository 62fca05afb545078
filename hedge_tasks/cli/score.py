"""`hedge score`: a file of sampled answers, without lmms-eval or a model."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from hedge_tasks.cli.choices import add_detectors, chosen_detectors
from hedge_tasks.cli.summary import as_json, as_text
from hedge_tasks.io.commands import command, show

_SHAPES = """\
ANSWERS is one of these, by its ending or --csv; - reads the standard input:
  JSON lines, an answer set each   {"id", "baseline", "clean": [...], "noisy"?: [...], "question"?, "reference"?,
                                   "label"?, "group"?, "question_type"?}
  JSON lines of plain answers      {"id", "answers": [...]}: the first answer is the baseline (the one that is judged),
                                   the others are samples on the clean image; with a "baseline" beside them, all are
  CSV, one answer a row            columns id, text, and any of condition (baseline, clean or noisy; without it as for
                                   plain answers), mean_logprob, n_tokens, question, reference, label, group,
                                   question_type
An answer in JSON is a text, or {"text", "mean_logprob"?, "n_tokens"?}, or {"text", "logprobs": [of each token]}, or
{"text", "tokens": [[text, log-probability], ...]}. "claims" beside the baseline labels parts of it, which hedge claims
scores: [{"text" or "start" and "end", "label": 0 | 1 | "silent", "severity"?: "minor" | "major", "correction"?}, ...].
"""


def add(commands: Any) -> None:
    score = command(commands, "score", run, "score sampled answers from a file, without lmms-eval or a model")
    score.formatter_class, score.epilog = argparse.RawDescriptionHelpFormatter, _SHAPES
    score.add_argument("answers", type=Path, metavar="ANSWERS", help="JSONL or CSV file; - for the standard input")
    score.add_argument("--csv", action="store_true", default=None, help="ANSWERS is CSV, whatever its name")
    score.add_argument("--allow-unknown", action="store_true", help="pass over keys that no accepted shape has")
    score.add_argument("--clustering", default="embed", metavar="exact|embed|nli", help="default: embed")
    score.add_argument(
        "--model", help="model of the clustering (hub id or folder; default: HEDGE_NLI_MODEL or HEDGE_EMBEDDING_MODEL)"
    )
    score.add_argument("--threshold", type=float, help="cosine threshold of embed")
    score.add_argument("--with-question", action="store_true", help="put the question in front of each answer")
    score.add_argument("--alpha", type=float, default=1.0, help="weight of the clean-noisy gap in VASE (default: 1)")
    add_detectors(score, "se, radflag, vase and what they should be compared with")
    score.add_argument("--out", type=Path, metavar="SCORES.jsonl", help="write the scores of every line")


def run(arguments: argparse.Namespace) -> int:
    from hedge_tasks.clustering import build_backend
    from hedge_tasks.data.answer_files import read_answer_sets
    from hedge_tasks.detectors.pipeline import USUAL, cluster_open, summarise
    from hedge_tasks.detectors.score_files import write_scores
    from hedge_tasks.detectors.scorer import score_all
    from hedge_tasks.runs.scorers import chosen_models

    detectors = chosen_detectors(arguments, USUAL)
    named = {key: value for key in ("model", "threshold") if (value := getattr(arguments, key)) is not None}
    options = {**chosen_models(arguments.clustering), **named}
    backend = build_backend(arguments.clustering, **options)
    answer_sets = read_answer_sets(arguments.answers, table=arguments.csv, allow_unknown=arguments.allow_unknown)
    given = [a for a in answer_sets if a.cluster_ids is not None]
    clustered = cluster_open(answer_sets, backend, with_question=arguments.with_question)
    scores = score_all(clustered, backend, detectors, alpha=arguments.alpha)
    if arguments.out:
        write_scores(arguments.out, scores)
    summary = {
        "answers": str(arguments.answers),
        "clustering": {**backend.settings(), "backend": backend.name} if len(given) < len(answer_sets) else "given",
        "with_question": arguments.with_question,
        "alpha": arguments.alpha,
        "clusters_given": len(given),
        **summarise(scores),
    }
    text = as_text(summary)
    if n_claims := sum(len(a.claims) for a in answer_sets):
        summary["claims"] = n_claims
        text += f"\n{n_claims} parts of the answers are marked as claims: hedge claims {arguments.answers} scores them"
    show(arguments, as_json(summary), text)
    return 0
