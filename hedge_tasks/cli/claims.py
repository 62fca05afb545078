"""`hedge claims`: which sentence of a long answer is hallucinated."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hedge_tasks.cli.choices import RunChoice, keeping_judge
from hedge_tasks.cli.claim_text import claim_facts
from hedge_tasks.errors import ConfigError
from hedge_tasks.io.commands import say

if TYPE_CHECKING:
    from hedge_tasks.data.spans import LabelledSpan
    from hedge_tasks.detectors.units import Labelled
    from hedge_tasks.judging import Judge
    from hedge_tasks.runs.claims import ScoredClaims
    from hedge_tasks.runs.run_files import Run
    from hedge_tasks.runs.support import Support


def claims(
    run: RunChoice,
    *,
    unit: str | None = None,
    support: str | None = None,
    keep: bool = False,
    detectors: str | None = None,
    probes: bool = False,
    labels: Path | None = None,
    judge: str | None = None,
    silent: Literal["unlabelled", "hallucinated"] = "unlabelled",
    errors: Literal["all", "major", "minor"] = "all",
    out: Path | None = None,
    html: Path | None = None,
    all_: bool = False,
) -> dict[str, Any]:
    """Find the hallucinated sentences of long answers.

    Args:
        unit: Sentence, object, given, or atomic:model=...,url=...; sentence if nothing is kept.
        support: One of words, nli:model=..., object, judge:model=...,url=...; words if nothing is kept.
        keep: Keep claims and support in the run file: next time free.
        detectors: Which ones; all detectors of claims if not given.
        probes: Detectors fitted on the sentences' states as well.
        labels: A file, {"id", "claims": [...]} a line; the field claims of the answers if not given, else the run's
            verdicts.
        judge: A judge of every claim, such as llm:model=...,prompt=claim.
        silent: What claims are on which the reference is silent.
        errors: What is hallucinated.
        out: The scores of every claim (JSON lines).
        html: Write a page with the answers.
        all_: All tables and columns: within answers, the flagged claims, whole answers, ...
    """
    from hedge_tasks.detectors.registry import named
    from hedge_tasks.io.files import write_whole
    from hedge_tasks.llm import account
    from hedge_tasks.measures.headline import headline
    from hedge_tasks.measures.unit_table import has_labels, unit_table
    from hedge_tasks.report.claim_page import build_claim_page
    from hedge_tasks.runs.claim_files import read_labels, write_claim_scores
    from hedge_tasks.runs.claims import score_claims

    if labels and judge:
        raise ConfigError("choose one of --labels and --judge")
    names = None if detectors in (None, "all") else named(detectors)
    finished = run.load()
    judging = keeping_judge(judge, finished.path) if judge else None
    supported, askers = _support(finished, unit, support, keep=keep)
    spans, by = (read_labels(labels, finished.answer_sets), "a file of labels") if labels else (None, "")
    if judging is not None:
        spans, by = _judged(finished, supported, judging)
    scored = score_claims(finished, supported, names, spans, by)
    options: dict[str, Any] = {"silent": silent, "errors": errors}
    fitted, left_out = _probes(finished, scored, options) if probes else ({}, {})
    measured = unit_table(scored, probes=fitted, **options) if has_labels(scored) else None
    if out:
        write_claim_scores(out, scored)
    if html:
        write_whole(html, build_claim_page(scored, measured, finished, finding=headline(finished)))
    cost, notes = account.asked(*askers, judging)
    return {**claim_facts(scored, measured, left_out=left_out, everything=all_), **cost, "notes": notes}


def _support(finished: Run, unit: str | None, support: str | None, *, keep: bool) -> tuple[Support, tuple[object, ...]]:
    """Return the support kept with the run, if it is of the chosen settings, else what engines say, and these."""
    from hedge_tasks.claims.decomposition import build_decomposition
    from hedge_tasks.claims.entailment import build_entailment
    from hedge_tasks.io.options import named
    from hedge_tasks.runs.claims import inquiry
    from hedge_tasks.runs.run_files import file_of, write_again
    from hedge_tasks.runs.scorers import model_options

    kept, names = finished.support, {"support": support, "decomposition": unit}
    wanted: dict[str, Any] = {key: name for key, name in names.items() if name}
    if kept is None or not wanted.items() <= kept.source.settings.items():
        entailment = named("--support", support or "words")
        entailment = {**model_options(finished, entailment["name"], entailment), **entailment}
        decomposition = build_decomposition(**named("--unit", unit or "sentence"))
        engine = build_entailment(**entailment)
        wanted = {**decomposition.settings(), **engine.settings()}
    if kept is not None and wanted.items() <= kept.source.settings.items():
        say(f"nothing is asked: the support is kept with the run ({kept.source.title})", sys.stderr)
        return kept, ()
    if keep:
        file_of(finished)  # before anything is asked for nothing
    questions = inquiry(finished.answer_sets, decomposition)
    engine.check()
    say(f"price: {questions.source(engine).price}", sys.stderr)
    answers = questions.ask(engine)
    if keep:
        write_again(replace(finished, support=answers))
    return answers, (decomposition, engine)


def _judged(finished: Run, support: Support, judge: Judge) -> tuple[Mapping[str, Sequence[LabelledSpan]], str]:
    """Return the claims as a judge labels them, and who that is."""
    from hedge_tasks.runs.claim_labels import check_references, judged_spans

    decomposed = [support.answers[a.id].decomposed for a in finished.answer_sets]
    say(f"labels: {judge.name} judges {sum(len(d.claims) for d in decomposed)} claims", sys.stderr)
    check_references(bool(a.reference) for a in finished.answer_sets)
    return judged_spans(finished.answer_sets, decomposed, judge), f"judge {judge.name} ({judge.version})"


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
