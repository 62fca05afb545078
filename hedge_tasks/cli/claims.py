"""`hedge claims`: which sentence of a long answer is hallucinated."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedge_tasks.cli.choices import (
    add_csv,
    add_detectors,
    add_run,
    add_task,
    chosen_run,
    label_store_of,
    listed,
    show_table,
)
from hedge_tasks.io.commands import Parser, add_labels, add_out, command, say, show

if TYPE_CHECKING:
    from hedge_tasks.data.spans import LabelledSpan
    from hedge_tasks.detectors.units import Labelled
    from hedge_tasks.judging import Judge
    from hedge_tasks.runs.claim_files import KeptSupport
    from hedge_tasks.runs.claims import ScoredClaims, Supported, SupportPrice, SupportSource
    from hedge_tasks.runs.run_files import Run


def add(commands: Parser) -> None:
    parser = command(commands, "claims", run, "find the hallucinated sentences of long answers")
    add_run(parser)
    add_task(parser)
    group = parser.add_argument_group("claims and their support (default: what the run has kept, else sentence, words)")
    group.add_argument("--unit", metavar="SPEC", help="sentence, clause, object, given, atomic:model=...,url=...")
    supports = "words, nli:model=...,window=..., cosine:model=..., object, judge:model=...,url=..."
    group.add_argument("--support", metavar="SPEC", help=supports)
    group.add_argument("--no-elsewhere", action="store_true", help="without the baseline of another image's draws")
    group.add_argument("--graph", action="store_true", help="claims of all draws as well, for degree and closeness")
    group.add_argument("--ccp", action="store_true", help="alternatives of the claims' tokens as well, for claim_ccp")
    add_detectors(group, "all detectors of claims")
    group.add_argument("--probes", action="store_true", help="detectors fitted on the sentences' states as well")
    group.add_argument("--price", action="store_true", help="print the price and stop")
    group = parser.add_argument_group("labels (default: the field claims of the answers, else the run's verdicts)")
    labels = 'a file, {"id", "claims": [...]} a line; or a function: python:module:function, or its name'
    add_labels(group, labels)
    group.add_argument("--judge", metavar="SPEC", help="a judge of every claim, such as llm:model=...,prompt=claim")
    group.add_argument(
        "--silent", default="unlabelled", help="claims on which the reference is silent: or hallucinated"
    )
    group.add_argument("--errors", default="all", help="what is hallucinated: all, major, minor or major-against-rest")
    group.add_argument("--flag", type=float, default=0.2, metavar="SHARE", help="of the claims, flagged (default: 0.2)")
    group = parser.add_argument_group("output")
    add_out(group, "the scores of every claim (JSON lines)")
    group.add_argument("--keep", action="store_true", help="keep claims and support beside the run: next time free")
    group.add_argument("--html", type=Path, metavar="PAGE.html", help="write a page with the answers")
    parser.add_argument("--all", action="store_true", help="all columns: within answers, the flagged claims, ...")
    add_csv(parser)


def run(arguments: argparse.Namespace) -> int:
    from hedge_tasks.claims.labels import ERRORS, SILENT
    from hedge_tasks.cli.claim_text import claim_facts, claim_table, suspicious_table
    from hedge_tasks.detectors.registry import get
    from hedge_tasks.errors import ConfigError, unknown
    from hedge_tasks.io.files import write_whole
    from hedge_tasks.llm import account
    from hedge_tasks.measures.headline import headline
    from hedge_tasks.measures.unit_table import has_labels, unit_table
    from hedge_tasks.report.claim_page import build_claim_page
    from hedge_tasks.runs.claim_files import write_claim_scores

    for name, valid in (("silent", SILENT), ("errors", ERRORS)):
        if getattr(arguments, name) not in valid:
            raise unknown(f"--{name}", getattr(arguments, name), valid)
    if not 0 < arguments.flag < 1:
        raise ConfigError(f"--flag: expected a share between 0 and 1, got {arguments.flag}")
    if arguments.labels and arguments.judge:
        raise ConfigError("choose one of --labels and --judge")
    everything = arguments.detectors in (None, "all")
    detectors = None if everything else [get(name).name for name in listed(arguments.detectors)]
    finished = chosen_run(arguments)
    judge = _judge(arguments.judge, finished) if arguments.judge else None
    support = _support(arguments, finished)
    if support is None:
        return 0
    scored = _scored(finished, support, detectors, judge, arguments.labels)
    options: dict[str, Any] = {"silent": arguments.silent, "errors": arguments.errors}
    probes, left_out = _probes(finished, scored, options) if arguments.probes else ({}, {})
    measured = unit_table(scored, probes=probes, flag=arguments.flag, **options) if has_labels(scored) else None
    if arguments.out:
        write_claim_scores(arguments.out, scored)
    if arguments.html:
        write_whole(arguments.html, build_claim_page(scored, measured, finished, finding=headline(finished)))
    file_lines = [f"{path}: written" for path in (support.path, arguments.out, arguments.html) if path]
    brief = not arguments.all
    table = claim_table(measured, left_out=left_out, brief=brief) if measured else suspicious_table(scored)
    cost, cost_lines = account.asked(*support.askers, judge)
    facts = {**claim_facts(scored, measured), **cost}
    show_table(arguments, table, facts, "\n".join([*cost_lines, *file_lines]))
    return 0


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


def _kept(kept: KeptSupport) -> _Support:
    say(f"nothing is asked: the support is kept with the run ({kept.title})", sys.stderr)
    return _Support(kept.supported, kept, kept.price, kept.settings)


def _support(arguments: argparse.Namespace, finished: Run) -> _Support | None:
    """Return the support kept with the run, or compute what the options name; None where only a price is wanted."""
    from hedge_tasks.claims import build_decomposition, build_entailment
    from hedge_tasks.errors import ConfigError
    from hedge_tasks.io import options as specs
    from hedge_tasks.runs.claim_files import keep_support, kept_support, support_of_run
    from hedge_tasks.runs.claims import inquiry
    from hedge_tasks.runs.scorers import model_options

    wanted = {"graph": arguments.graph, "ccp": arguments.ccp, "elsewhere": not arguments.no_elsewhere}
    unit = specs.named("--unit", arguments.unit or "sentence")
    spec = specs.named("--support", arguments.support or "words")
    name, unit_name = spec.pop("name"), unit.pop("name")
    if not (unit or spec or arguments.price):  # names alone say which of those that are kept
        chosen = {"support": name} if arguments.support else {}
        chosen |= {"decomposition": unit_name} if arguments.unit else {}
        # Who asks for less gets no more: the blind baseline would be there that was not wanted.
        same = support_of_run(
            finished, lambda kept: all(kept.get(key, False) == v for key, v in (wanted | chosen).items())
        )
        if same is not None:
            return _kept(same)
    if unit_name == "atomic" and "model" not in unit:
        raise ConfigError("--unit atomic: name its model, as in --unit atomic:model=...,url=...")
    backend = {"nli": "nli", "cosine": "embed"}.get(name)
    decomposition = build_decomposition(unit_name, **unit)
    engine = build_entailment(name, **({**model_options(finished, backend, spec), **spec} if backend else spec))
    options = {name: value for name, value in wanted.items() if value or name != "ccp"}
    settings = {**decomposition.settings(), **engine.settings(), **options}
    if not arguments.price and (kept := kept_support(finished, settings)) is not None:
        return _kept(kept)
    if unit_name == "atomic":
        draws = sum(len(answers.clean) for answers in finished.answer_sets) if arguments.graph else 0
        texts = {"texts": len(finished.answer_sets) + draws}
        line = f"price: at most {texts['texts']} texts to be taken apart by a model"
        if arguments.price:  # what the claims then cost is only known with the claims
            show(arguments, texts, line)
            return None
        say(line, sys.stderr)
    if arguments.ccp and not engine.contradicts:
        raise ConfigError(f"--ccp: the support {engine.name!r} knows no contradiction; choose --support nli or judge")
    questions = inquiry(finished.answer_sets, decomposition, **options)
    engine.check()
    price = questions.price(engine)
    if arguments.price:
        show(arguments, price, str(price))
        return None
    say(f"price: {price}", sys.stderr)
    answers = questions.ask(engine)
    path = keep_support(finished, answers, engine, price, settings) if arguments.keep else None
    return _Support(answers, engine, price, settings, path, (decomposition, engine))


def _scored(
    finished: Run, support: _Support, detectors: Sequence[str] | None, judge: Judge | None, source: str | None
) -> ScoredClaims:
    """Return the claims of a run with the scores of detectors, labelled by a judge, a file or a function.

    Args:
        detectors: Names; None for all.
        source: `--labels`: a file, or a function.
    """
    from hedge_tasks.claims.label_functions import LABEL_FUNCTIONS, PYTHON, function_labels, label_function
    from hedge_tasks.runs.claim_files import read_labels
    from hedge_tasks.runs.claim_labels import check_references, judged_spans
    from hedge_tasks.runs.claims import score_claims

    decomposed, by = [answer.decomposed for answer in support.answers], ""
    spans: Mapping[str, Sequence[LabelledSpan]] | None = None
    if judge is not None:
        n_claims = sum(len(answer.claims) for answer in decomposed)
        say(f"labels: {judge.name} judges {n_claims} claims", sys.stderr)
        check_references(bool(a.reference) for a in finished.answer_sets)
        spans = judged_spans(finished.answer_sets, decomposed, judge)
        by = f"judge {judge.name} ({judge.version})"
    elif source and (source.startswith(PYTHON) or (not Path(source).exists() and source in LABEL_FUNCTIONS.names())):
        spans = function_labels(finished.answer_sets, decomposed, label_function(source))
        by = f"the function {source}"
    elif source:
        spans, by = read_labels(Path(source), finished.answer_sets), "a file of labels"
    about = (support.answers, support.source, support.price, support.settings)
    return score_claims(finished, *about, detectors, spans, by)


def _probes(
    finished: Run, scored: ScoredClaims, options: Mapping[str, str]
) -> tuple[Mapping[str, Labelled], Mapping[str, str]]:
    """Return the columns of fitted detectors, and why others have none."""
    from hedge_tasks.detectors.probes.registry import fitted_detectors
    from hedge_tasks.measures.fitted import SENTENCES, ProbeData, inside_of_claims
    from hedge_tasks.runs.claims import claim_units
    from hedge_tasks.runs.kept_inside import inside_source

    inside = inside_of_claims(scored.answers, inside_source(finished)(SENTENCES))
    data = ProbeData.of(claim_units(scored, **options).units, inside, frozenset({"sentence_states"}))
    return data.columns([*fitted_detectors("claim").values()])


def _judge(spec: str, finished: Run) -> Judge:
    from hedge_tasks.judging import check_judge, judge_from, keep_labels

    judge = judge_from(spec)
    check_judge(judge, cases_have_images=False)
    if (folder := label_store_of(finished)) is not None:
        keep_labels(judge, folder)
    return judge
