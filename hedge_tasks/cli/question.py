"""`hedge show`: the clusters of one question, under one clustering or two, as in Appendix A of the HEDGE paper."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from hedge_tasks.cli.choices import add_scored_run, chosen_run, chosen_scorer
from hedge_tasks.io.commands import Parser, command, show

if TYPE_CHECKING:
    from hedge_tasks.data.answers import AnswerSet
    from hedge_tasks.detectors.pipeline import Scores
    from hedge_tasks.detectors.scorer import Scorer

# The paper's colours: blue for the baseline answer, cyan for clean ones, orange for noisy ones.
_COLOURS = {"baseline": "\x1b[34m", "clean": "\x1b[36m", "noisy": "\x1b[38;5;208m"}
_MARKS = {"baseline": "A0", "clean": "clean", "noisy": "noisy"}
_ENDS = {"length": "  [cut at the token limit]", "filtered": "  [stopped by a content filter]"}


def add(commands: Parser) -> None:
    parser = command(commands, "show", run, "show the clusters of one question")
    add_scored_run(parser)
    parser.add_argument("--id", required=True, help="the question's id")
    parser.add_argument(
        "--against-filter", metavar="NAME", help="another of the run's filters, to be shown beside the first"
    )


def run(arguments: argparse.Namespace) -> int:
    from hedge_tasks.errors import ConfigError, unknown
    from hedge_tasks.runs.health import decoding_line, health_of
    from hedge_tasks.runs.scorers import scorer_of

    finished = chosen_run(arguments)
    scorers = [chosen_scorer(arguments, finished)]
    if arguments.against_filter is not None:
        scorers.append(scorer_of(finished, arguments.against_filter))
        if scorers[0].name == scorers[1].name:
            raise ConfigError(f"{scorers[0].name} beside itself; choose another with --filter or --against-filter")
    by_id = {answer_set.id: answer_set for answer_set in finished.answer_sets}
    if arguments.id not in by_id:
        raise unknown(f"question of {finished.task}", arguments.id, by_id)
    views = [_view(scorer, by_id, arguments.id) for scorer in scorers]
    verdict = finished.verdicts.get(arguments.id) or {}
    health = health_of(finished)
    facts = {"task": finished.task, "decoding": health.decoding, **_facts(views[0]), "verdict": verdict}
    if len(views) > 1:
        facts["against"] = _facts(views[1])
    names = " and ".join(view.scorer.name for view in views)
    lines = [f"{printable(finished.title)}; filter {printable(names)}", *_head(views, verdict, decoding_line(health))]
    show(arguments, facts, "\n".join([*lines, *_body(views, coloured=sys.stdout.isatty())]))
    return 0


@dataclass(frozen=True)
class _View:
    """A question as one clustering sees it."""

    scorer: Scorer
    answers: AnswerSet
    scores: Scores


def _view(scorer: Scorer, by_id: Mapping[str, AnswerSet], name: str) -> _View:
    from hedge_tasks.detectors.scorer import score_all

    # A threshold is chosen on all questions, a fixed one needs this question only.
    needed = list(by_id.values()) if scorer.choice else [by_id[name]]
    [clustered] = (answers for answers in scorer.cluster(needed) if answers.id == name)
    [scores] = score_all([clustered], scorer.backend, scorer.detectors, alpha=scorer.alpha)
    return _View(scorer, clustered, scores)


def _facts(view: _View) -> dict[str, Any]:
    return {
        "clustering": view.scorer.settings(),
        **view.answers.to_dict(),
        "scores": dict(view.scores),
        "weighting": view.scores.weighting,
        "left_out": dict(view.scores.left_out),
    }


def _head(views: Sequence[_View], verdict: Any, decoding: str | None) -> list[str]:
    from hedge_tasks.detectors.pipeline import main_detectors, name_of
    from hedge_tasks.numbers import FOUR_DIGITS, format_value

    answers = views[0].answers
    label = {1: "hallucinated", 0: "supported", None: "not labelled"}[answers.label]
    reason = f" ({verdict['reason']})" if verdict.get("reason") else ""
    lines = [
        f"question   {printable(answers.question or 'N/A')}",
        f"reference  {printable(answers.reference or 'N/A')}",
        f"baseline   {printable(answers.baseline.text)}",
        f"verdict    {label}{printable(reason)}",
        *([f"decoding   {printable(decoding)}"] if decoding else []),
    ]
    for view in views:
        scores = {name_of(name): view.scores[name] for name in main_detectors(view.scores)}
        values = [f"{name} {format_value(score, FOUR_DIGITS)}" for name, score in scores.items()]
        under = f" under {printable(view.scorer.name)}" if len(views) > 1 else ""
        lines.append(f"scores     {', '.join(values)}{under}")
    return lines


def _body(views: Sequence[_View], *, coloured: bool) -> list[str]:
    """Return the clusters, those of two clusterings in two columns."""
    columns = [_clusters(view.answers) for view in views]
    if len(columns) == 1:
        return [_painted(text, condition, coloured) for text, condition in columns[0]]
    width = max(20, (shutil.get_terminal_size((160, 24)).columns - 3) // 2)
    titles: list[_Line] = [("", None), (printable(views[0].scorer.name), None)]
    left = _wrapped([*titles, *columns[0]], width)
    right = _wrapped([("", None), (printable(views[1].scorer.name), None), *columns[1]], width)
    lines = []
    for (left_line, first), (beside, second) in zip_longest(left, right, fillvalue=("", None)):
        space = " " * (width - len(left_line))
        lines.append(f"{_painted(left_line, first, coloured)}{space} | {_painted(beside, second, coloured)}".rstrip())
    return lines


_Line = tuple[str, "str | None"]


def _clusters(answers: AnswerSet) -> list[_Line]:
    """Lines of text, each with the condition of its answer; None for headings."""
    conditions = ["baseline", *["clean"] * len(answers.clean), *["noisy"] * len(answers.noisy)]
    members: dict[int, list[_Line]] = {}
    for cluster, condition, answer in zip(answers.cluster_ids or (), conditions, answers.answers, strict=True):
        end = _ENDS.get(answer.finish or "", "")
        line = f"  {_MARKS[condition]:<5} {printable(answer.text) or '(empty)'}{end}"
        members.setdefault(cluster, []).append((line, condition))
    lines: list[_Line] = []
    for cluster, entries in sorted(members.items()):
        lines += [("", None), (f"C-{cluster} ({len(entries)})", None), *entries]
    return lines


def _wrapped(lines: Sequence[_Line], width: int) -> list[_Line]:
    return [
        (part, condition)
        for text, condition in lines
        for part in wrap(text, width, subsequent_indent=" " * 8, drop_whitespace=False) or [""]
    ]


def _painted(text: str, condition: str | None, coloured: bool) -> str:
    return f"{_COLOURS[condition]}{text}\x1b[0m" if coloured and condition else text


def printable(text: str) -> str:
    """A model's text on one line, with everything escaped that a terminal might obey (control and bidi characters)."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
