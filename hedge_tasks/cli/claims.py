"""`hedge claims`: which sentence of a long answer is hallucinated."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedge_tasks.cli.choices import add_detectors, add_run, add_task, chosen_run
from hedge_tasks.io.commands import Parser, add_labels, add_out, command, say, show

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hedge_tasks.adjudication import Judge
    from hedge_tasks.claims.decomposition import Decomposition
    from hedge_tasks.claims.entailment import Entailment
    from hedge_tasks.claims.label_functions import LabelFunction
    from hedge_tasks.data.spans import LabelledSpan
    from hedge_tasks.measures.claim_probes import ClaimProbes
    from hedge_tasks.runs.run_files import Run
    from hedge_tasks.scoring.claim_files import KeptSupport
    from hedge_tasks.scoring.claims import ScoredClaims, Supported, SupportPrice, SupportSource


def add(commands: Parser) -> None:
    parser = command(commands, "claims", run, "find the hallucinated sentences of long answers")
    add_run(parser)
    add_task(parser)
    group = parser.add_argument_group("claims and their support")
    units = "sentence, clause, object, given, atomic:model=...,url=... (default: what the run has kept, else sentence)"
    group.add_argument("--unit", metavar="SPEC", help=units)
    supports = "words, nli, cosine, object, judge:model=...,url=... (default: what the run has kept, else words)"
    group.add_argument("--support", metavar="SPEC", help=supports)
    group.add_argument("--model", help="model of nli, cosine or judge: hub id, folder, or its name on the server")
    group.add_argument("--unit-model", metavar="NAME", help="model of the unit atomic (default: that of --model)")
    group.add_argument("--url", help="server of judge and atomic, such as http://localhost:8000/v1")
    group.add_argument("--window", type=int, metavar="TOKENS", help="most tokens of a draw that nli sees at once")
    group.add_argument("--no-elsewhere", action="store_true", help="without the baseline of another image's draws")
    group.add_argument("--graph", action="store_true", help="claims of all draws as well, for degree and closeness")
    group.add_argument("--ccp", action="store_true", help="alternatives of the claims' tokens as well, for claim_ccp")
    add_detectors(group, "all detectors of claims")
    group.add_argument(
        "--probes", action="store_true", help="detectors fitted on the sentences' hidden states as well, with controls"
    )
    group.add_argument("--fit-on", type=Path, metavar="RUN", help="fit --probes on another run's sentences")
    group.add_argument("--label-prices", action="store_true", help="tell the ROC-AUC of --probes for fewer labels, too")
    group.add_argument(
        "--judge-singles",
        type=int,
        metavar="N",
        help="ask about the claims of N calls once more, each claim by itself, and print how far the judge agrees",
    )
    group.add_argument("--price", action="store_true", help="print the price and stop")
    group = parser.add_argument_group("labels (default: the field claims of the answers, else the run's verdicts)")
    labels = 'a file, {"id", "claims": [...]} a line; or a function: python:module:function, or its name'
    add_labels(group, labels)
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
    add_out(group, "the scores of every claim (JSON lines)")
    group.add_argument("--keep", action="store_true", help="keep claims and support beside the run: next time free")
    group.add_argument("--html", type=Path, metavar="PAGE.html", help="write a page with the answers")


def run(arguments: argparse.Namespace) -> int:
    from hedge_tasks.asking.account import asked
    from hedge_tasks.cli.claim_text import claim_facts, claim_text, joint_facts, probe_controls, unlabelled_text
    from hedge_tasks.detectors.registry import get
    from hedge_tasks.io.files import write_whole
    from hedge_tasks.measures.kept_claims import has_labels
    from hedge_tasks.measures.run_finding import finding_of
    from hedge_tasks.measures.unit_table import unit_table
    from hedge_tasks.report.claim_page import build_claim_page
    from hedge_tasks.scoring.claim_agreement import joint_agreement
    from hedge_tasks.scoring.claim_files import write_claim_scores

    _check(arguments)
    everything = arguments.detectors in (None, "all")
    detectors = None if everything else [get(name.strip()).name for name in arguments.detectors.split(",")]
    finished = chosen_run(arguments)
    judge = _judge(arguments.judge, finished) if arguments.judge else None
    function, spans, by = _labels(arguments.labels, finished)
    found = _kept(arguments, finished) or _asked(arguments, finished)
    if found is None:
        return 0
    supported, _, _, _, kept, askers = found
    scored = _scored(finished, found, detectors, judge, function, (spans, by))
    options = {"silent": arguments.silent, "errors": arguments.errors, "flag": arguments.flag}
    probes = _probes(arguments, finished, scored, judge, function) if arguments.probes else None
    scored = probes.scored if probes else scored
    measured = unit_table(scored, **options) if has_labels(scored) else None
    if arguments.out:
        write_claim_scores(arguments.out, scored)
    if arguments.html:
        write_whole(arguments.html, build_claim_page(scored, measured, finished, finding=finding_of(finished)))
    written = [f"{path}: written" for path in (kept, arguments.out, arguments.html) if path]
    text = claim_text(measured) if measured else unlabelled_text(scored)
    facts = claim_facts(scored, measured)
    if probes is not None:
        controls, lines = probe_controls(probes)
        facts, text = {**facts, "controls": controls}, "\n".join([text, *lines])
    if arguments.judge_singles:
        # The judge itself: what is kept knows nothing of its calls.
        judge_of_claims: Any = _chosen(arguments, finished)[1]  # of --support judge, see _check
        agreed = joint_agreement(finished.answer_sets, supported, judge_of_claims, arguments.judge_singles)
        askers = (*askers, judge_of_claims)
        facts["joint_calls"] = joint_facts(agreed)
        text = f"{text}\n\n{agreed}"
    cost, cost_lines = asked(*askers, judge)
    show(arguments, {**facts, **cost}, "\n".join([text, *cost_lines, *written]))
    return 0


def _scored(
    finished: Run,
    found: _Found,
    detectors: Sequence[str] | None,
    judge: Judge | None,
    function: LabelFunction | None,
    of_file: tuple[Mapping[str, Sequence[LabelledSpan]] | None, str] = (None, ""),
) -> ScoredClaims:
    """The claims of a run with the scores of detectors, labelled as the options say."""
    from hedge_tasks.claims.label_functions import function_labels
    from hedge_tasks.scoring.claim_labels import check_references, judged_spans
    from hedge_tasks.scoring.claims import score_claims

    supported, source, price, settings, _, _ = found
    decomposed = [one.decomposed for one in supported]
    spans, by = of_file
    if judge is not None:
        say(f"labels: {judge.name} judges {sum(len(one.claims) for one in decomposed)} claims", sys.stderr)
        check_references(bool(a.reference) for a in finished.answer_sets)
        spans = judged_spans(finished.answer_sets, decomposed, judge)
        by = f"judge {judge.name} ({judge.version})"
    if function is not None:
        spans = function_labels(finished.answer_sets, decomposed, function)
    return score_claims(finished, supported, source, price, settings, detectors, spans, by)


def _probes(
    arguments: argparse.Namespace,
    finished: Run,
    scored: ScoredClaims,
    judge: Judge | None,
    function: LabelFunction | None,
) -> ClaimProbes:
    from hedge_tasks.cli.probes import transfer
    from hedge_tasks.measures.claim_probes import SENTENCES, SentenceData, with_probes
    from hedge_tasks.probes.registry import fitted_detectors
    from hedge_tasks.runs.kept_inside import inside_source
    from hedge_tasks.runs.run_files import load_run

    def data(of: Run, claims: ScoredClaims) -> SentenceData:
        options = {"silent": arguments.silent, "errors": arguments.errors}
        return SentenceData.of(claims, inside_source(of)(SENTENCES), **options)

    options: dict[str, Any] = {"prices": arguments.label_prices}
    if arguments.fit_on:
        other = load_run(arguments.fit_on, None)
        about = transfer(finished, other)
        found = _kept(arguments, other) or _asked(arguments, other)
        assert found is not None  # without --price there is something to score
        options["fit_on"] = data(other, _scored(other, found, (), judge, function))
        options["fitted_on"] = f"{other.title} ({about})"
    return with_probes(scored, data(finished, scored), [*fitted_detectors("claim").values()], **options)


def _check(arguments: argparse.Namespace) -> None:
    """Mistakes are told before anything is paid for."""
    from hedge_tasks.claims.labels import ERRORS, SILENT
    from hedge_tasks.errors import ConfigError, unknown
    from hedge_tasks.io import options

    for name in ("unit", "support"):
        spec = getattr(arguments, name)
        chosen = {"name": None} if spec is None else options.named(f"--{name}", spec)
        setattr(arguments, name, chosen.pop("name"))
        setattr(arguments, f"{name}_options", chosen)
    for name, valid in (("silent", SILENT), ("errors", ERRORS)):
        if getattr(arguments, name) not in valid:
            raise unknown(f"--{name}", getattr(arguments, name), valid)
    if not 0 < arguments.flag < 1:
        raise ConfigError(f"--flag: expected a share between 0 and 1, got {arguments.flag}")
    if arguments.judge_singles is not None:
        options.count("--judge-singles", arguments.judge_singles, at_least=1)
        if arguments.support != "judge":
            raise ConfigError("--judge-singles: only of --support judge")
    for name in ("fit_on", "label_prices"):
        if getattr(arguments, name) and not arguments.probes:
            raise ConfigError(f"--{name.replace('_', '-')}: of detectors that are fitted; add --probes")
    if arguments.labels and arguments.judge:
        raise ConfigError("choose one of --labels and --judge")


_Found = tuple[
    "Sequence[Supported]", "SupportSource", "SupportPrice", "Mapping[str, Any]", "Path | None", "Sequence[object]"
]
"""Support, who gave it, its price, the settings, where it is kept from now on, and what may have asked a model."""


def _kept(arguments: argparse.Namespace, finished: Run) -> _Found | None:
    """Return the support kept with the run, where the options ask for no other; it needs no model."""
    from hedge_tasks.scoring.claim_files import support_of_run

    if (
        arguments.price
        or arguments.judge_singles
        or arguments.unit_options
        or arguments.support_options
        or any(getattr(arguments, name) is not None for name in ("model", "unit_model", "url", "window"))
    ):
        return None
    named = arguments.unit is not None or arguments.support is not None
    wanted = (arguments.unit or "sentence", arguments.support or "words")

    def fits(settings: Mapping[str, Any]) -> bool:
        # Nobody who asks for less is told more: the blind baseline would be there that was not wanted.
        asked = {"graph": arguments.graph, "ccp": arguments.ccp, "elsewhere": not arguments.no_elsewhere}
        same = not named or (settings.get("decomposition"), settings.get("support")) == wanted
        return same and all(settings.get(name, False) == value for name, value in asked.items())

    kept = support_of_run(finished, fits)
    if kept is None:
        return None
    return _of_kept(kept)


def _of_kept(kept: KeptSupport) -> _Found:
    say(f"nothing is asked: the support is kept with the run ({kept.title})", sys.stderr)
    return kept.supported, kept, kept.price, kept.settings, None, ()


def _asked(arguments: argparse.Namespace, finished: Run) -> _Found | None:
    """The claims with their support by the engine that the options name; None for the price alone."""
    from hedge_tasks.errors import ConfigError
    from hedge_tasks.scoring.claim_files import keep_support, kept_support
    from hedge_tasks.scoring.claims import inquiry

    arguments.unit, arguments.support = arguments.unit or "sentence", arguments.support or "words"
    unit, engine = _chosen(arguments, finished)
    asking = {"elsewhere": not arguments.no_elsewhere, "graph": arguments.graph}
    asking |= {"ccp": True} if arguments.ccp else {}
    settings = {**unit.settings(), **engine.settings(), **asking}
    if not arguments.price and (kept := kept_support(finished, settings)) is not None:
        return _of_kept(kept)
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
    if arguments.price:
        show(arguments, price, str(price))
        return None
    say(f"price: {price}", sys.stderr)
    supported = asked.ask(engine)
    path = keep_support(finished, supported, engine, price, settings) if arguments.keep else None
    return supported, engine, price, settings, path, (unit, engine)


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
    from hedge_tasks.scoring.claim_files import read_labels

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
    from hedge_tasks.scoring.scorers import model_options

    ENTAILMENTS.get(arguments.support)
    given = {name: value for name in ("model", "url", "window") if (value := getattr(arguments, name)) is not None}
    unit: dict[str, Any] = {}
    if arguments.unit == "atomic":
        unit = {"model": arguments.unit_model or arguments.model, "url": arguments.url, **arguments.unit_options}
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
    given |= arguments.support_options
    options = {**(model_options(finished, backend, given) if backend else {}), **given}
    return build_decomposition(arguments.unit, **{**unit, **arguments.unit_options}), build_entailment(
        arguments.support, **options
    )
