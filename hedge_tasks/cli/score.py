"""`hedge score`: a file of sampled answers, without lmms-eval or a model."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedge_tasks.cli.choices import add_clustering, add_detectors, chosen_detectors, threshold_of
from hedge_tasks.cli.columns import add_columns, chosen_columns
from hedge_tasks.cli.summary import as_text, facts_of
from hedge_tasks.io.commands import Parser, add_out, command, say, show

if TYPE_CHECKING:
    from hedge_tasks.data.answers import AnswerSet
    from hedge_tasks.detectors.pipeline import Scores
    from hedge_tasks.numbers import Table
    from hedge_tasks.runs.claims import ScoredClaims

_SHAPES = """\
ANSWERS is one of these (JSON lines, JSON, CSV, parquet, Excel); - reads JSON lines from the standard input:
  an answer set a row       {"id", "baseline", "clean": [...], "noisy"?: [...], "question"?, "reference"?, "label"?,
                            "group"?, "question_type"?}
  plain answers             {"id", "answers": [...]}: the first answer is the baseline (the one that is judged), the
                            others are samples on the clean image; with a "baseline" beside them, all are
  an answer a row           columns id, text, and any of condition (baseline, clean or noisy; without it as for plain
                            answers), mean_logprob, n_tokens, question, reference, label, group, question_type
  columns of replies        named by --reply, the baseline first; question, reference and label by options or names
  files of other tools      those of `hedge import answers`
An answer in JSON is a text, or {"text", "mean_logprob"?, "n_tokens"?}, or {"text", "logprobs": [of each token]}, or
{"text", "tokens": [[text, log-probability], ...]}. A label is in a column label or is_hallucination (1: hallucinated),
or in correct (0: hallucinated). "claims" beside the baseline labels parts of it, which hedge claims scores:
[{"text" or "start" and "end", "label": 0 | 1 | "silent", "severity"?: "minor" | "major", "correction"?}, ...].
"""


def add(commands: Parser) -> None:
    score = command(commands, "score", run, "score sampled answers from a file, without lmms-eval or a model")
    score.formatter_class, score.epilog = argparse.RawDescriptionHelpFormatter, _SHAPES
    score.add_argument("answers", type=Path, metavar="ANSWERS", help="file of answers; - for the standard input")
    score.add_argument("--csv", action="store_true", default=None, help="ANSWERS is CSV, whatever its name")
    add_columns(score)
    add_clustering(score, "exact, embed or nli (default: embed)", "embed", threshold=" of embed")
    add_detectors(score, "se, radflag, vase and what they should be compared with")
    score.add_argument(
        "--claims",
        metavar="SUPPORT",
        help="score claims as well, those of the field claims, else sentences: words (by default where there is the "
        "field), nli or cosine; hedge claims has more",
    )
    add_out(score, "the scores of every answer (JSON lines)")


def run(arguments: argparse.Namespace) -> int:
    from hedge_tasks.cli.claim_text import block_of
    from hedge_tasks.clustering import build_backend
    from hedge_tasks.data.answer_files import read_answers
    from hedge_tasks.detectors.pipeline import USUAL, cluster_open, summarise
    from hedge_tasks.detectors.score_files import write_scores
    from hedge_tasks.detectors.scorer import score_all
    from hedge_tasks.measures.unit_table import measured_claims
    from hedge_tasks.runs.run_files import Run
    from hedge_tasks.runs.scorers import chosen_models

    detectors, alpha = chosen_detectors(arguments, USUAL), 1.0 if arguments.alpha is None else arguments.alpha
    options: dict[str, Any] = {**chosen_models(arguments.clustering)}
    options |= {} if arguments.model is None else {"model": arguments.model}
    options |= {} if arguments.threshold is None else {"threshold": threshold_of(arguments.threshold)}
    backend = build_backend(arguments.clustering, **options)
    kind = "CSV" if arguments.csv else None
    read = read_answers([arguments.answers], columns=chosen_columns(arguments), kind=kind)
    answer_sets = list(read.answer_sets)
    for note in read.notes:
        say(note, sys.stderr)
    clustered_before = [a for a in answer_sets if a.cluster_ids is not None]
    clustered = cluster_open(answer_sets, backend, with_question=arguments.with_question)
    claims = _claims(answer_sets, arguments, options)
    evidence = {scored.answers.id: scored.evidence for scored in claims.answers} if claims else {}
    scores = score_all(clustered, backend, detectors, alpha=alpha, claims=lambda: evidence)
    if arguments.out:
        write_scores(arguments.out, scores)
    all_clustered = len(clustered_before) == len(answer_sets)
    summary = {
        "answers": str(arguments.answers),
        "notes": list(read.notes),
        "clustering": "given" if all_clustered else {**backend.settings(), "backend": backend.name},
        "with_question": arguments.with_question,
        "alpha": alpha,
        "clusters_given": len(clustered_before),
        **summarise(scores),
    }
    claim_text, claim_facts = "", dict[str, Any]()
    if claims:
        claim_text, claim_facts = block_of(claims, *measured_claims(claims, Run(str(arguments.answers), "", ())))
    file_line = f"the scores of every answer are in {arguments.out}" if arguments.out else ""
    listed = "" if summary["n_labelled"] else str(_scores_table(scores))
    show(arguments, {**facts_of(summary), **claim_facts}, as_text(summary), listed, claim_text, file_line)
    return 0


_MOST_ROWS = 20


def _scores_table(scores: Sequence[Scores]) -> Table:
    """Return the scores themselves: without labels there is nothing else to show."""
    from hedge_tasks.detectors.pipeline import detectors_of
    from hedge_tasks.numbers import Column, Table

    detectors = [name for name in detectors_of(scores) if any(s[name] is not None for s in scores)]
    rows = [{"id": s.id, **{name: s[name] for name in detectors}} for s in scores[:_MOST_ROWS]]
    left = len(scores) - len(rows)
    notes = [f"and {left} more; --out FILE writes all of them"] if left > 0 else []
    return Table([Column("id"), *map(Column, detectors)], rows, notes=notes)


def _claims(answer_sets: list[AnswerSet], arguments: argparse.Namespace, models: dict[str, Any]) -> ScoredClaims | None:
    """Return the claims of the answers and how far their draws support them; None where nobody asks for them."""
    from hedge_tasks.runs.claims import find_claims
    from hedge_tasks.runs.run_files import Run

    marked = any(a.claims for a in answer_sets)
    if not (arguments.claims or marked):
        return None
    support = arguments.claims or "words"
    same_model = {"nli": "nli", "cosine": "embed"}.get(support) == arguments.clustering
    return find_claims(
        Run(str(arguments.answers), "", tuple(answer_sets)),
        support,
        unit="given" if marked else "sentence",
        options={"model": models["model"]} if same_model and "model" in models else {},
        tell_price=lambda price: say(f"price: {price}", sys.stderr),
    )
