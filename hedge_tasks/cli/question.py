"""`hedge show`: the clusters of one question, as in Appendix A of the HEDGE paper."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from hedge_tasks.cli.choices import add_run, add_scorer, add_task, chosen_run, chosen_scorer
from hedge_tasks.io.commands import command, number, show

if TYPE_CHECKING:
    from hedge_tasks.data.answers import AnswerSet
    from hedge_tasks.detectors.pipeline import Scores

# The paper's colours: blue for the baseline answer, cyan for clean ones, orange for noisy ones.
_COLOURS = {"baseline": "\x1b[34m", "clean": "\x1b[36m", "noisy": "\x1b[38;5;208m"}
_MARKS = {"baseline": "A0", "clean": "clean", "noisy": "noisy"}
_ENDS = {"length": "  [cut at the token limit]", "filtered": "  [stopped by a content filter]"}


def add(commands: Any) -> None:
    parser = command(commands, "show", run, "show the clusters of one question")
    add_run(parser)
    parser.add_argument("--id", required=True, help="the question's id")
    add_task(parser)
    add_scorer(parser)


def run(arguments: argparse.Namespace) -> int:
    from hedge_tasks.detectors.pipeline import score_clustered
    from hedge_tasks.errors import unknown
    from hedge_tasks.runs.health import decoding_line, health_of

    finished = chosen_run(arguments)
    scorer = chosen_scorer(arguments, finished)
    by_id = {answer_set.id: answer_set for answer_set in finished.answer_sets}
    if arguments.id not in by_id:
        raise unknown(f"question of {finished.task}", arguments.id, by_id)
    # A threshold is chosen on all questions, a fixed one needs this question only.
    wanted = list(by_id.values()) if scorer.choice else [by_id[arguments.id]]
    [clustered] = (answers for answers in scorer.cluster(wanted) if answers.id == arguments.id)
    scores = score_clustered(clustered, alpha=scorer.alpha)
    verdict = finished.verdicts.get(arguments.id) or {}
    decoding = health_of(finished).decoding
    facts = {
        "task": finished.task,
        "decoding": decoding,
        "clustering": scorer.settings(),
        **clustered.to_dict(),
        "verdict": verdict,
        "scores": dict(scores),
        "weighting": scores.weighting,
        "left_out": dict(scores.left_out),
    }
    title = f"{finished.title}; filter {scorer.name}"
    text = _text(title, clustered, scores, verdict, decoding_line(decoding), coloured=sys.stdout.isatty())
    show(arguments, facts, text)
    return 0


def _text(title: str, answers: AnswerSet, scores: Scores, verdict: Any, decoding: str | None, *, coloured: bool) -> str:
    label = {1: "hallucinated", 0: "supported", None: "not labelled"}[answers.label]
    reason = f" ({verdict['reason']})" if verdict.get("reason") else ""
    lines = [
        printable(title),
        f"question   {printable(answers.question or 'N/A')}",
        f"reference  {printable(answers.reference or 'N/A')}",
        f"baseline   {printable(answers.baseline.text)}",
        f"verdict    {label}{printable(reason)}",
        *([f"decoding   {printable(decoding)}"] if decoding else []),
        f"scores     SE {number(scores['se'])}, RadFlag {number(scores['radflag'])}, VASE {number(scores['vase'])}",
    ]
    conditions = ["baseline", *["clean"] * len(answers.clean), *["noisy"] * len(answers.noisy)]
    members: dict[int, list[str]] = {}
    for cluster, condition, answer in zip(answers.cluster_ids or (), conditions, answers.answers, strict=True):
        end = _ENDS.get(answer.finish or "", "")
        entry = f"  {_MARKS[condition]:<5} {printable(answer.text) or '(empty)'}{end}"
        members.setdefault(cluster, []).append(f"{_COLOURS[condition]}{entry}\x1b[0m" if coloured else entry)
    for cluster, entries in sorted(members.items()):
        lines += ["", f"C-{cluster} ({len(entries)})", *entries]
    return "\n".join(lines)


def printable(text: str) -> str:
    """A model's text on one line, with everything escaped that a terminal might obey (control and bidi characters)."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
