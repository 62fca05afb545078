"""`hedge claims`: which sentence of a long answer is hallucinated."""

from __future__ import annotations

import argparse
import math
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedge_tasks.cli.choices import add_run, add_task, chosen_run
from hedge_tasks.io.commands import command, number, say, show, table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hedge_tasks.adjudication import Judge
    from hedge_tasks.claims.decomposition import Decomposition
    from hedge_tasks.claims.entailment import Entailment
    from hedge_tasks.claims.label_functions import LabelFunction
    from hedge_tasks.data.spans import LabelledSpan
    from hedge_tasks.runs.claim_agreement import JointAgreement
    from hedge_tasks.runs.claim_table import ClaimRow, ClaimTable
    from hedge_tasks.runs.claims import Price, ScoredClaims, Supported
    from hedge_tasks.runs.run_files import Run
    from hedge_tasks.statistics import Comparison

_LISTED = 10
"""Claims that the text lists where nothing is labelled, the most suspicious first."""


def add(commands: Any) -> None:
    parser = command(commands, "claims", run, "find the hallucinated sentences of long answers")
    add_run(parser)
    add_task(parser)
    group = parser.add_argument_group("claims and their support")
    units = "sentence (default), clause, object, atomic, given"
    group.add_argument("--unit", default="sentence", metavar="NAME", help=units)
    group.add_argument("--support", default="words", metavar="NAME", help="words (default), nli, cosine, judge, object")
    group.add_argument("--model", help="model of nli, cosine or judge: hub id, folder, or its name on the server")
    group.add_argument("--unit-model", metavar="NAME", help="model of the unit atomic (default: that of --model)")
    group.add_argument("--url", help="server of judge and atomic, such as http://localhost:8000/v1")
    group.add_argument("--window", type=int, metavar="TOKENS", help="most tokens of a draw that nli sees at once")
    group.add_argument("--no-elsewhere", action="store_true", help="without the baseline of another image's draws")
    group.add_argument("--graph", action="store_true", help="claims of all draws as well, for degree and closeness")
    group.add_argument("--ccp", action="store_true", help="alternatives of the claims' tokens as well, for claim_ccp")
    group.add_argument("--detectors", metavar="NAMES", help="which detectors of claims (default: all)")
    group.add_argument(
        "--judge-singles",
        type=int,
        metavar="N",
        help="ask about the claims of N calls once more, each claim by itself, and print how far the judge agrees",
    )
    group.add_argument("--price", action="store_true", help="print the price and stop")
    group = parser.add_argument_group("labels (default: the field claims of the answers, else the run's verdicts)")
    labels = 'a file, {"id", "claims": [...]} a line, or a function: python:module:function, or its name'
    group.add_argument("--labels", metavar="LABELS.jsonl", help=labels)
    group.add_argument("--judge", metavar="SPEC", help="a judge of every claim, such as llm:model=...,prompt=claim")
    group.add_argument(
        "--silent",
        default="unlabelled",
        metavar="unlabelled|hallucinated",
        help="what claims count as that the reference is silent on (default: unlabelled)",
    )
    group.add_argument(
        "--errors",
        default="all",
        metavar="all|major|minor|major-against-rest",
        help="which errors count as hallucinated (default: all)",
    )
    group.add_argument(
        "--flag", type=float, default=0.2, metavar="SHARE", help="of the claims, to be flagged (default: 0.2)"
    )
    group = parser.add_argument_group("output")
    group.add_argument("--out", type=Path, metavar="SCORES.jsonl", help="write the scores of every claim")
    group.add_argument("--keep", action="store_true", help="keep claims and support beside the run: next time free")
    group.add_argument("--html", type=Path, metavar="PAGE.html", help="write a page with the answers")


def run(arguments: argparse.Namespace) -> int:
    from hedge_tasks.claims.entailment.judge import JudgeEntailment
    from hedge_tasks.claims.label_functions import function_labels
    from hedge_tasks.detectors.registry import get
    from hedge_tasks.io.files import write_whole
    from hedge_tasks.report.claim_page import build_claim_page
    from hedge_tasks.runs.claim_agreement import joint_agreement
    from hedge_tasks.runs.claim_files import write_claim_scores
    from hedge_tasks.runs.claim_table import claim_table
    from hedge_tasks.runs.claims import judged_spans, score_claims

    _check(arguments)
    detectors = None if arguments.detectors is None else [get(n.strip()).name for n in arguments.detectors.split(",")]
    finished = chosen_run(arguments)
    judge = _judge(arguments.judge, finished) if arguments.judge else None
    function, spans, by = _labels(arguments.labels, finished)
    unit, engine = _chosen(arguments, finished)
    settings = {**unit.settings(), **engine.settings()}
    asked = _supported(arguments, finished, unit, engine, settings)
    if asked is None:
        return 0
    supported, price, kept = asked
    if judge is not None:
        n_claims = sum(len(one.decomposed.claims) for one in supported)
        say(f"labels: {judge.name} judges {n_claims} claims", sys.stderr)
        spans = judged_spans(finished.answer_sets, [one.decomposed for one in supported], judge)
        by = f"judge {judge.name} ({judge.version})"
    if function is not None:
        spans = function_labels(finished.answer_sets, [one.decomposed for one in supported], function)
    scored = score_claims(finished, supported, engine, price, settings, detectors, spans, by)
    told = [found for one in scored.answers for found in one.labels.labels if found is not None]
    labelled = any(found.label is not None or found.silent for found in told)
    options = {"silent": arguments.silent, "errors": arguments.errors, "flag": arguments.flag}
    found = claim_table(scored, **options) if labelled else None
    if arguments.out:
        write_claim_scores(arguments.out, scored)
    if arguments.html:
        write_whole(arguments.html, build_claim_page(scored, found))
    written = [f"{path}: written" for path in (kept, arguments.out, arguments.html) if path]
    text = _text(found) if found else _unlabelled(scored)
    facts = _facts(scored, found)
    if arguments.judge_singles and isinstance(engine, JudgeEntailment):
        agreed = joint_agreement(finished.answer_sets, supported, engine, arguments.judge_singles)
        facts["joint_calls"] = _joint(agreed)
        text = f"{text}\n\n{agreed}"
    show(arguments, facts, "\n".join([text, *written]))
    return 0


def _check(arguments: argparse.Namespace) -> None:
    """Mistakes are told before anything is paid for."""
    from hedge_tasks.claims.labels import ERRORS, SILENT
    from hedge_tasks.errors import ConfigError, unknown
    from hedge_tasks.io import options

    for name, valid in (("silent", SILENT), ("errors", ERRORS)):
        if getattr(arguments, name) not in valid:
            raise unknown(f"--{name}", getattr(arguments, name), valid)
    if not 0 < arguments.flag < 1:
        raise ConfigError(f"--flag: expected a share between 0 and 1, got {arguments.flag}")
    if arguments.judge_singles is not None:
        options.count("--judge-singles", arguments.judge_singles, at_least=1)
        if arguments.support != "judge":
            raise ConfigError("--judge-singles: only of --support judge")
    if arguments.labels and arguments.judge:
        raise ConfigError("choose one of --labels and --judge")


def _supported(
    arguments: argparse.Namespace, finished: Run, unit: Decomposition, engine: Entailment, settings: Mapping[str, Any]
) -> tuple[Sequence[Supported], Price, Path | None] | None:
    """The claims with their support, its price, and where it is kept from now on; None for the price alone."""
    from hedge_tasks.errors import ConfigError
    from hedge_tasks.runs.claim_files import keep_support, kept_support
    from hedge_tasks.runs.claims import inquiry

    asking = {"elsewhere": not arguments.no_elsewhere, "graph": arguments.graph, "ccp": arguments.ccp}
    if not arguments.price and (kept := kept_support(finished, {**settings, **asking})) is not None:
        say(f"price: nothing; the support is kept with the run ({kept[1]})", sys.stderr)
        return (*kept, None)
    if arguments.unit == "atomic":
        draws = sum(len(answers.clean) for answers in finished.answer_sets) if arguments.graph else 0
        texts = {"texts": len(finished.answer_sets) + draws}
        told = f"price: at most {texts['texts']} texts to be taken apart by a model"
        if arguments.price:  # what the claims then cost is only known with the claims
            show(arguments, texts, told)
            return None
        say(told, sys.stderr)
    if arguments.ccp and not engine.contradicts:
        raise ConfigError(f"--ccp: the support {engine.name!r} knows no contradiction; choose --support nli or judge")
    asked = inquiry(finished.answer_sets, unit, **asking)
    engine.check()
    price = asked.price(engine)
    say(f"price: {price}", sys.stderr)
    if arguments.price:
        show(arguments, asdict(price), str(price))
        return None
    supported = asked.ask(engine)
    path = keep_support(finished, supported, price, {**settings, **asking}) if arguments.keep else None
    return supported, price, path


def _judge(spec: str, finished: Run) -> Judge:
    from hedge_tasks.adjudication import check_judge, judge_from, keep_labels
    from hedge_tasks.adjudication.config import LABELS
    from hedge_tasks.runs.run_files import FOLDER

    judge = judge_from(spec)
    check_judge(judge, cases_have_images=False)
    folder = finished.path.parent if finished.path else None
    if folder is not None:
        keep_labels(judge, (folder.parent if folder.name == FOLDER else folder) / LABELS)
    return judge


def _labels(
    given: str | None, finished: Run
) -> tuple[LabelFunction | None, Mapping[str, Sequence[LabelledSpan]] | None, str]:
    """A function that labels, or the labels of a file, and in words where they come from."""
    from hedge_tasks.claims.label_functions import LABEL_FUNCTIONS, PYTHON, label_function
    from hedge_tasks.runs.claim_files import read_labels

    if given is None:
        return None, None, ""
    if given.startswith(PYTHON) or (not Path(given).exists() and given in LABEL_FUNCTIONS.names()):
        return label_function(given), None, f"the function {given}"
    return None, read_labels(Path(given), finished.answer_sets), "a file of labels"


def _chosen(arguments: argparse.Namespace, finished: Run) -> tuple[Decomposition, Entailment]:
    """Decomposition and engine; models of a run that nobody here has chosen are not loaded."""
    from hedge_tasks.claims import build_decomposition, build_entailment
    from hedge_tasks.claims.entailment import ENTAILMENTS
    from hedge_tasks.errors import ConfigError
    from hedge_tasks.runs.scorers import model_options

    ENTAILMENTS.get(arguments.support)
    given = {name: value for name in ("model", "url", "window") if (value := getattr(arguments, name)) is not None}
    unit: dict[str, Any] = {}
    if arguments.unit == "atomic":
        unit = {"model": arguments.unit_model or arguments.model, "url": arguments.url}
        if unit["model"] is None:
            raise ConfigError("--unit atomic: name its model with --unit-model")
        # What is the unit's alone is no option of the support.
        of_unit = {"judge": (), "nli": ("url",), "cosine": ("url",)}.get(arguments.support, ("model", "url"))
        given = {name: value for name, value in given.items() if name not in of_unit}
    if arguments.support in ("words", "object") and given:
        option = next(iter(given))
        raise ConfigError(
            f"--{option}: the support {arguments.support!r} has no such option; choose --support nli, ..."
        )
    backend = {"nli": "nli", "cosine": "embed"}.get(arguments.support)
    options = {**(model_options(finished, backend, given) if backend else {}), **given}
    return build_decomposition(arguments.unit, **unit), build_entailment(arguments.support, **options)


# --- output -----------------------------------------------------------------------------------------------------------


def _facts(scored: ScoredClaims, found: ClaimTable | None) -> dict[str, Any]:
    about = {
        "run": scored.title,
        **scored.settings,
        "price": asdict(scored.price),
        "claims": sum(len(one.claims) for one in scored.answers),
        "covered": sum(one.covered for one in scored.decomposed) / len(scored.decomposed),
        "unlocated": sum(one.unlocated for one in scored.decomposed),
        "left_out": dict(scored.left_out if found is None else found.left_out),
    }
    if found is None:
        return {**about, "labelled": 0}
    data = found.labelled
    facts = {
        **about,
        **found.settings,
        "labels": scored.labelled_by,
        "labelled": len(data.labels),
        "hallucinated": int(data.labels.sum()),
        "silent_claims": data.n_silent,
        "unknown_support": data.n_unknown,
        "unused_labels": data.n_unused,
        "best_blind": dict(zip(("pooled", "within"), found.best_blind, strict=True)),
        "detectors": [{**asdict(row), "within": _within(row.within)} for row in found.rows],
        "answers": {"label": found.answer_label, "detectors": [asdict(row) for row in found.answers]},
        "curve": [{**asdict(point), "within": _within(point.within)} for point in found.curve],
    }
    plain: dict[str, Any] = _plain(facts)
    return plain


def _joint(agreed: JointAgreement) -> dict[str, Any]:
    differ = [{"joint": a, "single": b, "n": n} for (a, b), n in sorted(agreed.differ.items())]
    about = {"calls": agreed.calls, "verdicts": agreed.verdicts, "unknown": agreed.unknown}
    same = {**asdict(agreed.same), "interval": agreed.same.interval()}
    return {**about, "same": same, "kappa": asdict(agreed.kappa), "differ": differ}


def _plain(value: Any) -> Any:
    """Infinite numbers (the threshold of an impossible token) as text, since JSON has none."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, float) and math.isinf(value) else value


def _within(found: Any) -> dict[str, Any]:
    """Without the AUROC of every single answer."""
    return {key: getattr(found, key) for key in ("value", "stderr", "interval", "n_pairs", "reason")}


def _text(found: ClaimTable) -> str:
    scored, data = found.scored, found.labelled
    about = f"{scored.settings.get('decomposition')} by {scored.settings.get('support')}"
    lines = [
        f"{scored.title}; {about}; price: {scored.price}",
        f"{data.n_claims} claims that cover {found.covered:.0%} of the text, {len(data.labels)} of them labelled by "
        f"{scored.labelled_by}, {int(data.labels.sum())} hallucinated ({data.labels.mean():.1%})",
    ]
    counts = {
        "the reference is silent on": data.n_silent,
        "claims of unknown support, left out:": data.n_unknown,
        "labelled spans that lie over no claim:": data.n_unused,
        "claims that could not be located:": found.unlocated,
    }
    lines += [f"{what} {n}" for what, n in counts.items() if n]
    header = [
        "detector",
        "draws",
        "AUROC",
        "95 %",
        "within",
        "95 %",
        "top",
        "(chance)",
        "flagged",
        "precision",
        "recall",
    ]
    header += ["- blind", "p (Holm)", "- blind within", "p (Holm)"]
    lines.append(table(header, [_cells(row) for row in found.rows]))
    blind = [f"{name} ({what})" for name, what in zip(found.best_blind, ("all", "within"), strict=True) if name]
    lines.append(f"best blind baseline: {', '.join(blind)}; * turned round" if blind else "no blind baseline")
    lines += _curve(found)
    lines += _whole_answers(found)
    return "\n".join([*lines, *_left_out(found.left_out)])


def _whole_answers(found: ClaimTable) -> list[str]:
    rows = [
        [row.detector, number(row.estimate.value, 3), _interval(row.estimate.interval), number(row.spearman, 3)]
        for row in found.answers
        if row.estimate.value is not None or row.spearman is not None
    ]
    about = f"whole answers: AUROC against {found.answer_label}"
    if not rows:
        reasons = dict.fromkeys(str(row.estimate.reason) for row in found.answers)
        return ["", f"{about}: undefined: {'; '.join(reasons)}"] if reasons else []
    about += "; rank correlation with the share of wrong claims"
    return ["", about, table(["detector", "AUROC", "95 %", "Spearman"], rows)]


def _left_out(left_out: Mapping[str, str]) -> list[str]:
    reasons: dict[str, list[str]] = {}
    for name, reason in left_out.items():
        reasons.setdefault(reason, []).append(name)
    return [f"{', '.join(names)} left out: {reason}" for reason, names in reasons.items()]


def _cells(row: ClaimRow) -> list[str]:
    flag = row.flagged
    return [
        row.detector + ("*" if row.reversed else "") + (" (blind)" if row.blind else ""),
        str(row.draws),
        number(row.estimate.value, 3),
        _interval(row.estimate.interval),
        number(row.within.value, 3),
        _interval(row.within.interval),
        number(row.top.rate.value, 3) if row.top else "N/A",
        f"({number(row.top.chance.value, 3)})" if row.top else "",
        f"{flag.share:.3f}" if flag else "N/A",
        number(flag.precision.value, 3) if flag else "N/A",
        number(flag.recall.value, 3) if flag else "N/A",
        *_difference(row.against_blind[0], row.p_holm[0]),
        *_difference(row.against_blind[1], row.p_holm[1]),
    ]


def _difference(found: Comparison | None, p: float | None) -> list[str]:
    if found is None or found.difference is None:
        return ["", ""]
    return [f"{found.difference:+.3f}", number(p)]


def _interval(bounds: tuple[float, float] | None) -> str:
    return f"[{bounds[0]:.3f}, {bounds[1]:.3f}]" if bounds else "N/A"


def _curve(found: ClaimTable) -> list[str]:
    sizes = sorted({point.n for point in found.curve})
    names = list(dict.fromkeys(point.detector for point in found.curve))
    if len(sizes) < 2:
        return []
    value = {(point.detector, point.n): point for point in found.curve}
    rows = []
    for name in names:
        for what in ("estimate", "within"):
            cells = [value.get((name, n)) for n in sizes]
            shown = [number(getattr(cell, what).value, 3) if cell else "" for cell in cells]
            rows.append([name + (" within" if what == "within" else ""), *shown])
    return ["", "AUROC by number of draws", table(["detector", *map(str, sizes)], rows)]


def _unlabelled(scored: ScoredClaims) -> str:
    """The most suspicious claims, where nothing is known of any."""
    names = list(dict.fromkeys(name for one in scored.answers for name in one.scores))
    name = next((n for n in ("claim_luq", *names) if n in names), None)
    about = f"{scored.settings.get('decomposition')} by {scored.settings.get('support')}; price: {scored.price}"
    lines = [f"{scored.title}; {about}", "no claim is labelled: give --labels, or answers with a field claims"]
    if name is None:
        return "\n".join([*lines, *_left_out(scored.left_out)])
    ranked = sorted(
        (
            (-score, claim.answer, claim.text)
            for one in scored.answers
            if name in one.scores
            for claim, score in zip(one.claims, one.scores[name].tolist(), strict=True)
            if score == score
        ),
    )[:_LISTED]
    lines.append(f"most suspicious by {name}:")
    return "\n".join([*lines, *(f"  {-score:.3f}  {answer}: {text}" for score, answer, text in ranked)])
