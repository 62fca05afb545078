"""One self-contained HTML file about finished runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hedge_tasks import __version__
from hedge_tasks.detectors.pipeline import name_of
from hedge_tasks.errors import DataError, HedgeError
from hedge_tasks.measures.audited import people_of
from hedge_tasks.measures.sweep import sweep, usual_sizes
from hedge_tasks.numbers import WHOLE, Cell, Column, Table
from hedge_tasks.report.agreement import agreements, labels_by_judge
from hedge_tasks.report.analysis import Analysis, analyse
from hedge_tasks.report.claim_page import claim_section
from hedge_tasks.report.explorer import QUESTIONS, TEXT_BUDGET, explorer_data
from hedge_tasks.report.first_screen import wrong_answers
from hedge_tasks.report.lead import axis_ticks, detector_rows, metrics_table, setup_of, tiles
from hedge_tasks.report.pages import asset, render
from hedge_tasks.report.paper_section import paper_sections
from hedge_tasks.report.pictures import BUDGET, NONE, thumbnails
from hedge_tasks.report.plots import Chart, categories_chart, risk_coverage_chart, roc_chart, sweep_chart
from hedge_tasks.report.results import ResultFile, results_table
from hedge_tasks.report.run_names import names_of_runs
from hedge_tasks.report.several import side_by_side
from hedge_tasks.report.texts import flat_settings
from hedge_tasks.runs.run_files import Run, now

SCRIPTS = ("page.js", "explorer.js", "question.js", "claims.js", "sidebyside.js")


@dataclass(frozen=True)
class ReportOptions:
    """Content of a report.

    Attributes:
        pictures: whether the pictures of the questions are looked for.
        curves: whether the figures are drawn; the one over the number of answers clusters again.
        questions: questions in the explorer, of all runs together.
        detectors: names of those that score; by default those of each run.
    """

    pictures: bool = True
    curves: bool = True
    questions: int = QUESTIONS
    detectors: Sequence[str] | None = None


def build_report(
    runs: Sequence[Run],
    results: Sequence[ResultFile] = (),
    options: ReportOptions = ReportOptions(),
    progress: Callable[[str], None] = lambda text: None,
) -> str:
    """Return the report as HTML.

    Args:
        runs: as `hedge_tasks.runs.run_files.load_runs` reads them.
        results: lmms-eval's result files beside them.
        progress: called with what is being done, in words.

    Raises:
        DataError: there are no runs.
    """
    if not runs:
        raise DataError("there are no runs to report on")
    analyses = analyse(runs, detectors=options.detectors, progress=progress)
    names = names_of_runs(runs)
    sections = []
    for i, analysis in enumerate(analyses):
        run = analysis.run
        progress(f"{run.task}: pictures and figures")
        configs = [file.configs[run.task] for file in results if isinstance(file.configs.get(run.task), Mapping)]
        newest = configs[-1] if configs else None
        pictures = thumbnails(run, newest, budget=BUDGET // len(runs)) if options.pictures else NONE
        shares = {"most": options.questions // len(runs), "budget": TEXT_BUDGET // len(runs)}
        data = explorer_data(analysis, pictures, name=names[i], **shares)
        sections.append(
            {
                **_section(names[i], analysis, runs, results),
                "charts": list(_charts(analysis)) if options.curves else [],
                "data": data,
                "claims": claim_section(run, f"run-{i}-", pictures),
                "note": pictures.note,
                "wrong": wrong_answers(data, analysis.finding),
            }
        )
    return render(
        "report.html.j2",
        scripts=[*map(asset, SCRIPTS)],
        styles=[asset("explorer.css")],
        title=f"HEDGE report: {_title(runs, names)}",
        version=__version__,
        written=now()[:16].replace("T", " ") + " UTC",
        runs=sections,
        several=side_by_side(analyses, names) if len(runs) > 1 else None,
        papers=list(paper_sections(runs)),
        results=results_table(results),
    )


def _title(runs: Sequence[Run], names: Sequence[str]) -> str:
    tasks, models = len({run.task for run in runs}), len({run.model for run in runs})
    if len(runs) == 1:
        return names[0]
    several = f"{models} model{'s' if models > 1 else ''}"
    return f"{runs[0].task}, {several}" if tasks == 1 else f"{tasks} tasks, {several}"


def _section(name: str, analysis: Analysis, runs: Sequence[Run], results: Sequence[ResultFile]) -> dict[str, Any]:
    run, rows = analysis.run, detector_rows(analysis)
    judges = labels_by_judge(run, [candidate for candidate in runs if candidate is not run])
    if analysis.audit is not None:
        judges = {f"experts, {people_of(analysis.audit)}": analysis.labels, **judges}
    about = {"created": run.created, "file": run.path.name if run.path else None, **run.settings}
    return {
        "name": name,
        "asked": setup_of(analysis),
        "finding": analysis.finding,
        "tiles": list(tiles(analysis)),
        "detectors": rows,
        "ticks": axis_ticks(rows),
        "no_detector": "" if rows else analysis.finding.sentences[-1],
        "clusterings": list(analysis.estimates),
        "leading": analysis.leading,
        "suite": _suite_table(analysis),
        "metrics": metrics_table(analysis),
        "question_types": _types_table(analysis),
        "judges": [f"{judge} ({sum(v is not None for v in labels.values())})" for judge, labels in judges.items()],
        "agreement": agreements(judges),
        "cost": list(_cost(run, results)),
        "settings": flat_settings({"task": run.task, "model": run.model, **about}),
    }


def _charts(analysis: Analysis) -> Iterator[Chart]:
    """Yield the figures of a run under its leading clustering."""
    run, name = analysis.run, analysis.leading
    if (categories := categories_chart([(run.model or run.task, run)])).series:
        yield categories
    if name is None or analysis.audit is not None:
        return
    detectors, scores = analysis.drawn(name), analysis.scores[name]
    yield roc_chart(scores, detectors)
    yield risk_coverage_chart(scores, detectors, declined=analysis.finding.coverage.declined)
    # A run with one draw a document has nothing to cluster.
    if sizes := usual_sizes(analysis.n):
        try:
            yield sweep_chart([*sweep(run.answer_sets, analysis.scorers[name], sizes, detectors, whole=scores)])
        except HedgeError as error:
            # What was kept with the run does for its clustering; of fewer answers a model may have to say more.
            yield Chart("n", "ROC-AUC against the number of answers", "", "", note=str(error))


def _suite_table(analysis: Analysis) -> Table | None:
    columns = [Column("number"), Column("value", interval=True), Column("n", "documents", show="n", of="value")]
    columns += [Column("groups", show="n_groups", of="value"), Column("about", "what it is")]
    rows: list[dict[str, Cell]] = [
        {"number": f"{m.title} {'↑' if m.higher_is_better else '↓'}", "value": number, "about": m.about}
        for m, number in analysis.suite
    ]
    return Table(columns, rows) if rows else None


def _types_table(analysis: Analysis) -> Table | None:
    """Return the ROC-AUC pooled, within question types, and of each type, under the leading clustering."""
    name = str(analysis.leading)
    within = {s: w for s, w in analysis.within.get(name, {}).items() if s in analysis.drawn(name)}
    if not within:
        return None
    first = next(iter(within))
    columns = [
        *(Column("type", "question type"), Column("n", "questions", show="n", of=first)),
        *(Column(detector, name_of(detector), interval=True) for detector in within),
    ]
    pooled = {detector: analysis.estimates[name][detector] for detector in within}
    rows: list[Mapping[str, Cell]] = [
        {"type": "all, pooled", **pooled},
        {"type": "all, within question types", **within},
        *(
            {"type": str(kind), **{detector: w.strata.get(kind) for detector, w in within.items()}}
            for kind in dict.fromkeys(kind for w in within.values() for kind in w.strata)
        ),
    ]
    return Table(columns, rows)


def _cost(run: Run, results: Sequence[ResultFile]) -> Iterable[tuple[str, str]]:
    answers = [answer for a in run.answer_sets for answer in a.answers]
    counted = [answer.n_tokens for answer in answers if answer.n_tokens is not None]
    yield "draws", f"{len(answers):,}"
    partly = f" (in {len(counted):,} draws that tell)" if len(counted) < len(answers) else ""
    yield "tokens generated", f"{sum(counted):,}{partly}" if counted else "not told by the model"
    if passes := sum(answer_set.n_forced for answer_set in run.answer_sets):
        yield "forced passes", f"{passes:,}"
    for file in results:
        if run.task in file.configs and file.seconds is not None:
            yield "time of lmms-eval's whole evaluation", f"{WHOLE(file.seconds)} s ({file.path.name})"
