"""`hedge claims`: which sentence of a long answer is hallucinated."""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedge_tasks.cli.choices import add_detectors, add_run, add_task, chosen_run, label_store_of, listed
from hedge_tasks.io.commands import Parser, add_labels, add_out, command, say, show

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hedge_tasks.claims.decomposition import Decomposition
    from hedge_tasks.claims.entailment import Entailment
    from hedge_tasks.claims.label_functions import LabelFunction
    from hedge_tasks.data.spans import LabelledSpan
    from hedge_tasks.judging import Judge
    from hedge_tasks.measures.claim_probes import ClaimProbes
    from hedge_tasks.runs.claim_files import KeptSupport
    from hedge_tasks.runs.claims import ScoredClaims, Supported, SupportPrice, SupportSource
    from hedge_tasks.runs.run_files import Run


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
    from hedge_tasks.cli.claim_text import claim_facts, claim_text, joint_facts, probe_controls, unlabelled_text
    from hedge_tasks.detectors.registry import get
    from hedge_tasks.io.files import write_whole
    from hedge_tasks.llm import account
    from hedge_tasks.measures.headline import headline
    from hedge_tasks.measures.kept_claims import has_labels
    from hedge_tasks.measures.unit_table import unit_table
    from hedge_tasks.report.claim_page import build_claim_page
    from hedge_tasks.runs.claim_agreement import joint_agreement
    from hedge_tasks.runs.claim_files import write_claim_scores

    _check(arguments)
    everything = arguments.detectors in (None, "all")
    detectors = None if everything else [get(name).name for name in listed(arguments.detectors)]
    finished = chosen_run(arguments)
    judge = _judge(arguments.judge, finished) if arguments.judge else None
    function, spans, by = _labels(arguments.labels, finished)
    support = _kept_support(arguments, finished) or _computed_support(arguments, finished)
    if support is None:
        return 0
    askers = support.askers
    scored = _scored(finished, support, detectors, judge, function, (spans, by))
    options = {"silent": arguments.silent, "errors": arguments.errors, "flag": arguments.flag}
    probes = _probes(arguments, finished, scored, judge, function) if arguments.probes else None
    scored = probes.scored if probes else scored
    measured = unit_table(scored, **options) if has_labels(scored) else None
    if arguments.out:
        write_claim_scores(arguments.out, scored)
    if arguments.html:
        write_whole(arguments.html, build_claim_page(scored, measured, finished, finding=headline(finished)))
    file_lines = [f"{path}: written" for path in (support.path, arguments.out, arguments.html) if path]
    text = claim_text(measured) if measured else unlabelled_text(scored)
    facts = claim_facts(scored, measured)
    if probes is not None:
        controls, lines = probe_controls(probes)
        facts, text = {**facts, "controls": controls}, "\n".join([text, *lines])
    if arguments.judge_singles:
        # The judge itself: what is kept knows nothing of its calls.
        judge_of_claims: Any = _unit_and_engine(arguments, finished)[1]  # of --support judge, see _check
        agreed = joint_agreement(finished.answer_sets, support.answers, judge_of_claims, arguments.judge_singles)
        askers = (*askers, judge_of_claims)
        facts["joint_calls"] = joint_facts(agreed)
        text = f"{text}\n\n{agreed}"
    cost, cost_lines = account.asked(*askers, judge)
    show(arguments, {**facts, **cost}, "\n".join([text, *cost_lines, *file_lines]))
    return 0


def _scored(
    finished: Run,
    support: _Support,
    detectors: Sequence[str] | None,
    judge: Judge | None,
    function: LabelFunction | None,
    file_labels: tuple[Mapping[str, Sequence[LabelledSpan]] | None, str] = (None, ""),
) -> ScoredClaims:
    """Return the claims of a run with the scores of detectors, labelled as the options say.

    Args:
        detectors: Names; None for all.
        file_labels: Labels by document, and in words where they come from.
    """
    from hedge_tasks.claims.label_functions import function_labels
    from hedge_tasks.runs.claim_labels import check_references, judged_spans
    from hedge_tasks.runs.claims import score_claims

    decomposed = [answer.decomposed for answer in support.answers]
    spans, by = file_labels
    if judge is not None:
        n_claims = sum(len(answer.claims) for answer in decomposed)
        say(f"labels: {judge.name} judges {n_claims} claims", sys.stderr)
        check_references(bool(a.reference) for a in finished.answer_sets)
        spans = judged_spans(finished.answer_sets, decomposed, judge)
        by = f"judge {judge.name} ({judge.version})"
    if function is not None:
        spans = function_labels(finished.answer_sets, decomposed, function)
    return score_claims(
        finished, support.answers, support.source, support.price, support.settings, detectors, spans, by
    )


def _probes(
    arguments: argparse.Namespace,
    finished: Run,
    scored: ScoredClaims,
    judge: Judge | None,
    function: LabelFunction | None,
) -> ClaimProbes:
    from hedge_tasks.cli.probes import transfer
    from hedge_tasks.detectors.probes.registry import fitted_detectors
    from hedge_tasks.measures.claim_probes import SENTENCES, SentenceData, with_probes
    from hedge_tasks.runs.kept_inside import inside_source
    from hedge_tasks.runs.run_files import load_run

    def data(run: Run, claims: ScoredClaims) -> SentenceData:
        options = {"silent": arguments.silent, "errors": arguments.errors}
        return SentenceData.of(claims, inside_source(run)(SENTENCES), **options)

    options: dict[str, Any] = {"prices": arguments.label_prices}
    if arguments.fit_on:
        training = load_run(arguments.fit_on, None, trust=arguments.trust_run)
        difference = transfer(finished, training)
        support = _kept_support(arguments, training) or _computed_support(arguments, training)
        assert support is not None  # without --price there is something to score
        options["fit_on"] = data(training, _scored(training, support, (), judge, function))
        options["fitted_on"] = f"{training.title} ({difference})"
    return with_probes(scored, data(finished, scored), [*fitted_detectors("claim").values()], **options)


def _check(arguments: argparse.Namespace) -> None:
    """Raise ConfigError for options that make no sense, before anything is paid for."""
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


@dataclass(frozen=True)
class _Support:
    """How far the draws of a run support its claims.

    Attributes:
        answers: The claims of each answer with their support.
        source: What computed the support, or keeps it.
        price: Of all of it.
        settings: Of the decomposition and the support.
        path: File that it is kept in from now on.
        askers: What may have asked a model.
    """

    answers: Sequence[Supported]
    source: SupportSource
    price: SupportPrice
    settings: Mapping[str, Any]
    path: Path | None = None
    askers: tuple[object, ...] = ()

    @classmethod
    def of_kept(cls, kept: KeptSupport) -> _Support:
        say(f"nothing is asked: the support is kept with the run ({kept.title})", sys.stderr)
        return cls(kept.supported, kept, kept.price, kept.settings)


def _kept_support(arguments: argparse.Namespace, finished: Run) -> _Support | None:
    """Return the support kept with the run, where the options ask for no other; it needs no model."""
    from hedge_tasks.runs.claim_files import support_of_run

    if (
        arguments.price
        or arguments.judge_singles
        or arguments.unit_options
        or arguments.support_options
        or any(getattr(arguments, name) is not None for name in ("model", "unit_model", "url", "window"))
    ):
        return None
    named = arguments.unit is not None or arguments.support is not None
    method = (arguments.unit or "sentence", arguments.support or "words")

    def fits(settings: Mapping[str, Any]) -> bool:
        # Who asks for less gets no more: the blind baseline would be there that was not wanted.
        options = {"graph": arguments.graph, "ccp": arguments.ccp, "elsewhere": not arguments.no_elsewhere}
        same_method = not named or (settings.get("decomposition"), settings.get("support")) == method
        return same_method and all(settings.get(name, False) == value for name, value in options.items())

    kept = support_of_run(finished, fits)
    return None if kept is None else _Support.of_kept(kept)


def _computed_support(arguments: argparse.Namespace, finished: Run) -> _Support | None:
    """Compute the support with the engine that the options name; None where only the price is asked for."""
    from hedge_tasks.errors import ConfigError
    from hedge_tasks.runs.claim_files import keep_support, kept_support
    from hedge_tasks.runs.claims import inquiry

    arguments.unit, arguments.support = arguments.unit or "sentence", arguments.support or "words"
    unit, engine = _unit_and_engine(arguments, finished)
    options = {"elsewhere": not arguments.no_elsewhere, "graph": arguments.graph}
    options |= {"ccp": True} if arguments.ccp else {}
    settings = {**unit.settings(), **engine.settings(), **options}
    if not arguments.price and (kept := kept_support(finished, settings)) is not None:
        return _Support.of_kept(kept)
    if arguments.unit == "atomic":
        draws = sum(len(answers.clean) for answers in finished.answer_sets) if arguments.graph else 0
        texts = {"texts": len(finished.answer_sets) + draws}
        line = f"price: at most {texts['texts']} texts to be taken apart by a model"
        if arguments.price:  # what the claims then cost is only known with the claims
            show(arguments, texts, line)
            return None
        say(line, sys.stderr)
    if arguments.ccp and not engine.contradicts:
        raise ConfigError(f"--ccp: the support {engine.name!r} knows no contradiction; choose --support nli or judge")
    questions = inquiry(finished.answer_sets, unit, **options)
    engine.check()
    price = questions.price(engine)
    if arguments.price:
        show(arguments, price, str(price))
        return None
    say(f"price: {price}", sys.stderr)
    answers = questions.ask(engine)
    path = keep_support(finished, answers, engine, price, settings) if arguments.keep else None
    return _Support(answers, engine, price, settings, path, (unit, engine))


def _judge(spec: str, finished: Run) -> Judge:
    from hedge_tasks.judging import check_judge, judge_from, keep_labels

    judge = judge_from(spec)
    check_judge(judge, cases_have_images=False)
    if (folder := label_store_of(finished)) is not None:
        keep_labels(judge, folder)
    return judge


def _labels(
    source: str | None, finished: Run
) -> tuple[LabelFunction | None, Mapping[str, Sequence[LabelledSpan]] | None, str]:
    """Return a function that labels, or the labels of a file, and in words where they come from."""
    from hedge_tasks.claims.label_functions import LABEL_FUNCTIONS, PYTHON, label_function
    from hedge_tasks.runs.claim_files import read_labels

    if source is None:
        return None, None, ""
    if source.startswith(PYTHON) or (not Path(source).exists() and source in LABEL_FUNCTIONS.names()):
        return label_function(source), None, f"the function {source}"
    return None, read_labels(Path(source), finished.answer_sets), "a file of labels"


def _unit_and_engine(arguments: argparse.Namespace, finished: Run) -> tuple[Decomposition, Entailment]:
    """Return decomposition and engine. A model that only the run names is not loaded."""
    from hedge_tasks.claims import build_decomposition, build_entailment
    from hedge_tasks.claims.entailment import ENTAILMENTS
    from hedge_tasks.errors import ConfigError
    from hedge_tasks.runs.scorers import model_options

    ENTAILMENTS.get(arguments.support)
    support = {name: value for name in ("model", "url", "window") if (value := getattr(arguments, name)) is not None}
    unit: dict[str, Any] = arguments.unit_options
    if arguments.unit == "atomic":
        unit = {"model": arguments.unit_model or arguments.model, "url": arguments.url, **unit}
        if unit["model"] is None:
            raise ConfigError("--unit atomic: name its model with --unit-model")
        # What is the unit's alone is no option of the support.
        unit_only = {"judge": (), "nli": ("url",), "cosine": ("url",)}.get(arguments.support, ("model", "url"))
        support = {name: value for name, value in support.items() if name not in unit_only}
    if arguments.support in ("words", "object") and support:
        option = next(iter(support))
        raise ConfigError(
            f"--{option}: the support {arguments.support!r} has no such option; choose --support nli, ..."
        )
    backend = {"nli": "nli", "cosine": "embed"}.get(arguments.support)
    support |= arguments.support_options
    options = {**(model_options(finished, backend, support) if backend else {}), **support}
    return build_decomposition(arguments.unit, **unit), build_entailment(arguments.support, **options)
