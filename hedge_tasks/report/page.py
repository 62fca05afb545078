"""One self-contained HTML file about finished runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hedge_tasks import __version__
from hedge_tasks.detectors.pipeline import name_of, prices_of
from hedge_tasks.errors import DataError
from hedge_tasks.numbers import Format, Number
from hedge_tasks.report import noisy
from hedge_tasks.report.agreement import agreements, labels_by_judge
from hedge_tasks.report.analysis import Analysis, analyse, compare_within
from hedge_tasks.report.claim_section import claim_section
from hedge_tasks.report.comparisons import tables_of
from hedge_tasks.report.explorer import PAIR_BUDGET, QUESTIONS, TEXT_BUDGET, explorer_data, surprises_first
from hedge_tasks.report.first_screen import wrong_answers
from hedge_tasks.report.heatmap import names_within_tasks, side_by_side
from hedge_tasks.report.lead import axis_ticks, detector_rows, lead_chart, price_of, setup_of, tiles
from hedge_tasks.report.noisy import PictureAddresses
from hedge_tasks.report.pages import WITH_FIGURES, View, asset, render
from hedge_tasks.report.paper_section import paper_sections
from hedge_tasks.report.pictures import BUDGET, NONE, Thumbnails, stored_documents, thumbnails
from hedge_tasks.report.plots.charts import Chart
from hedge_tasks.report.plots.figures import all_charts, categories_chart, price_chart
from hedge_tasks.report.results import ResultFile, newest_rows
from hedge_tasks.report.risk import risk_panel
from hedge_tasks.report.run_names import names_of_runs
from hedge_tasks.report.sidebyside import answers_side_by_side, read_without_script
from hedge_tasks.report.svg import picture
from hedge_tasks.report.texts import flat_settings, script_json
from hedge_tasks.report.truth import truth_of
from hedge_tasks.runs.run_files import Run, now

SCRIPTS = (*WITH_FIGURES, "explorer.js", "question.js", "risk.js", "claims.js")
STYLES = ("explorer.css", "heatmap.css", "sidebyside.css")


@dataclass(frozen=True)
class ReportOptions:
    """Content of a report.

    Attributes:
        pictures: whether the pictures of the questions are looked for.
        curves: whether the curves over n and the threshold are made; they cluster again.
        questions: questions in the explorer, of all runs together.
        noisy_pictures: questions of all runs together whose noisy pictures are made again, as the model saw them; it
            takes seconds to load what makes them, and some hundredths for each.
        detectors: names of those that score; by default those of each run.
    """

    pictures: bool = True
    curves: bool = True
    questions: int = QUESTIONS
    noisy_pictures: int = 0
    detectors: Sequence[str] | None = None


def build_report(
    runs: Sequence[Run],
    results: Sequence[ResultFile] = (),
    options: ReportOptions = ReportOptions(),
    progress: Callable[[str], None] = lambda text: None,
    views: Sequence[View] = (),
) -> str:
    """Return the report as HTML.

    Args:
        runs: as `hedge_tasks.runs.run_files.load_runs` reads them.
        results: lmms-eval's result files beside them.
        progress: called with what is being done, in words.
        views: other pages about the runs.

    Raises:
        DataError: there are no runs.
    """
    from markupsafe import Markup

    if not runs:
        raise DataError("there are no runs to report on")

    analyses = analyse(runs, curves=options.curves, detectors=options.detectors, progress=progress)
    names = names_of_runs(runs)
    share = max(len(runs), 1)
    sections = []
    for i, analysis in enumerate(analyses):
        progress(f"{analysis.run.task}: pictures")
        small_pictures, seen = _pictures(analysis, results, options, share)
        budgets = {"budget": TEXT_BUDGET // share, "pair_budget": PAIR_BUDGET // share}
        data = explorer_data(analysis, small_pictures, seen, most=options.questions // share, **budgets)
        section = _section(names[i], analysis, runs, results)
        risk = risk_panel(analysis)
        # Safe: nothing in it can end the script element it stands in.
        sections.append(
            {
                **section,
                "data": Markup(script_json(data)),
                "claims": claim_section(analysis.run, f"run-{i}-", small_pictures),
                "notes": [note for note in (small_pictures.note, seen.note) if note],
                "read": surprises_first(data),
                "wrong": wrong_answers(data, analysis.finding),
                "risk": risk,
                "risk_data": Markup(script_json(risk["rules"])) if risk else None,
            }
        )
    answers = answers_side_by_side(analyses, names_within_tasks(analyses, names), most=options.questions // share)
    return render(
        "report.html.j2",
        scripts=[*map(asset, (*SCRIPTS, "sidebyside.js") if answers else SCRIPTS)],
        styles=[*map(asset, STYLES)],
        views=views,
        title=f"HEDGE report: {_title(runs, names)}",
        version=__version__,
        written=now()[:16].replace("T", " ") + " UTC",
        runs=sections,
        matrix=side_by_side(analyses, names) if len(runs) > 1 else None,
        answers=Markup(script_json(answers)) if answers else None,
        answers_read=read_without_script(answers),
        papers=list(paper_sections(runs)),
        rows=newest_rows(results),
    )


def _title(runs: Sequence[Run], names: Sequence[str]) -> str:
    tasks, models = len({run.task for run in runs}), len({run.model for run in runs})
    if len(runs) == 1:
        return names[0]
    several = f"{models} model{'s' if models > 1 else ''}"
    return f"{runs[0].task}, {several}" if tasks == 1 else f"{tasks} tasks, {several}"


def _pictures(
    analysis: Analysis, results: Sequence[ResultFile], options: ReportOptions, share: int
) -> tuple[Thumbnails, PictureAddresses]:
    """Return the pictures of a run's questions, and those that the draws of some of them saw."""
    if not options.pictures:
        return NONE, noisy.NONE
    run = analysis.run
    configs = [file.configs[run.task] for file in results if isinstance(file.configs.get(run.task), Mapping)]
    most = -(-options.noisy_pictures // share)
    stored = stored_documents(run, configs[-1] if configs else None, texts=most > 0)
    small_pictures = thumbnails(run, budget=BUDGET // share, stored=stored)
    if not (most and stored[0]):
        return small_pictures, replace(noisy.NONE, note=noisy.not_asked_for(run) if small_pictures.addresses else "")
    order = noisy.most_scattered(analysis)
    return small_pictures, noisy.noisy_pictures(run, stored[0], order, most, budget=noisy.BUDGET // share)


def _section(name: str, analysis: Analysis, runs: Sequence[Run], results: Sequence[ResultFile]) -> dict[str, Any]:
    scores = [s for s in analysis.detectors if analysis.has_number(s)] or list(analysis.shown)
    categories = categories_chart([(name, analysis.run)])
    rows = detector_rows(analysis)
    pairs = compare_within(analysis)
    weights = {s.weighting for by_document in analysis.scores.values() for s in by_document}
    estimates = analysis.estimates.values()
    return {
        "name": name,
        "asked": [*setup_of(analysis.run, sorted(weights)), *truth_of(analysis)],
        "finding": analysis.finding,
        "tiles": list(tiles(analysis)),
        "detectors": rows,
        "lead": picture(lead_chart(rows)),
        "ticks": axis_ticks(rows),
        "no_detector": "" if rows else analysis.finding.sentences[-1],
        "suite": analysis.suite,
        "trust": analysis.finding.trust,
        "clusterings": list(analysis.estimates),
        "metrics": [(name_of(s), price_of(analysis, s), [e.get(s) for e in estimates]) for s in scores],
        "reasons": analysis.reasons,
        "pictures": [] if categories.empty else [picture(categories)],
        "tabs": [_tab(analysis, clustering) for clustering in analysis.scores],
        "n_pairs": len(pairs),
        "pairs": tables_of(pairs),
        "judges": _judges(analysis.run, runs),
        "cost": list(_cost(analysis.run, results)),
        "settings": flat_settings({"task": analysis.run.task, "model": analysis.run.model, **_about(analysis.run)}),
    }


def _about(run: Run) -> dict[str, Any]:
    return {"created": run.created, "file": run.path.name if run.path else None, **run.settings}


def _tab(analysis: Analysis, clustering: str) -> dict[str, Any]:
    declined = analysis.finding.coverage.declined
    detectors = analysis.drawn(clustering)
    charts: list[Chart] = list(all_charts(analysis.scores[clustering], detectors, declined=declined))
    charts.append(price_chart(_priced(analysis, clustering)))
    charts += [chart for kind in (analysis.sweeps, analysis.thresholds) if (chart := kind.get(clustering)) is not None]
    return {
        "name": clustering,
        "pictures": [picture(chart) for chart in charts if not (chart.name == "question-types" and chart.empty)],
        "question_types": _by_question_type(analysis, clustering),
    }


def _priced(analysis: Analysis, clustering: str) -> list[tuple[str, float, Number]]:
    prices = {name: price.mean for name, price in prices_of(analysis.scores[clustering]).items()}
    return [(name, prices.get(name, 0.0), estimate) for name, estimate in analysis.estimates[clustering].items()]


def _by_question_type(analysis: Analysis, clustering: str) -> dict[str, Any] | None:
    within = {s: w for s, w in analysis.within[clustering].items() if s in analysis.drawn(clustering)}
    if not within:
        return None
    types = list(dict.fromkeys(name for w in within.values() for name in w.strata))
    pooled = {s: analysis.estimates[clustering][s] for s in within}
    first = next(iter(within.values()))
    total = next(iter(pooled.values()))
    inside = [
        Number(w.value, stderr=w.stderr, n=total.n, n_positive=total.n_positive, reason=w.reason, interval=w.interval)
        for w in within.values()
    ]
    rows = [
        {"type": "all, pooled", "n": total.n, "n_positive": total.n_positive, "cells": list(pooled.values())},
        {"type": "all, within question types", "n": total.n, "n_positive": total.n_positive, "cells": inside},
    ]
    for name in types:
        cells, number = [w.strata.get(name) for w in within.values()], first.strata[name]
        rows.append({"type": str(name), "n": number.n, "n_positive": number.n_positive, "cells": cells})
    return {"names": [name_of(s) for s in within], "rows": rows}


def _judges(run: Run, runs: Sequence[Run]) -> dict[str, Any]:
    judges = labels_by_judge(run, [candidate for candidate in runs if candidate is not run])
    names = [f"{name} ({sum(v is not None for v in labels.values())} labels)" for name, labels in judges.items()]
    text = f"The labels are by {names[0]}."
    if len(names) > 1:
        text += f" Also known: {'; '.join(names[1:])}."
    else:
        text += " With a second judge their agreement would stand here."
    return {"text": text, "rows": agreements(judges)}


def _cost(run: Run, results: Sequence[ResultFile]) -> Iterable[tuple[str, str]]:
    answers = [answer for a in run.answer_sets for answer in a.answers]
    counted = [answer.n_tokens for answer in answers if answer.n_tokens is not None]
    yield "draws", f"{len(answers):,}"
    yield (
        "tokens generated",
        f"{sum(counted):,}" + (f" (in {len(counted):,} draws that tell)" if len(counted) < len(answers) else "")
        if counted
        else "not told by the model",
    )
    if passes := sum(answer_set.n_forced for answer_set in run.answer_sets):
        yield "forced passes", f"{passes:,}"
    yield "empty answers", f"{sum(not answer.text for answer in answers):,}"
    for key, value in (run.settings.get("outcome") or {}).items():
        if not isinstance(value, (Mapping, list)):  # health, the probe's findings and failed documents stand above
            yield str(key).replace("_", " "), str(value)
    for file in results:
        if run.task in file.configs and "seconds" in file.facts:
            yield "time of lmms-eval's whole evaluation", f"{Format(0)(file.facts['seconds'])} s ({file.path.name})"
