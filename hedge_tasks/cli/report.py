"""`hedge report`: one self-contained HTML page about finished runs, their figures, or the pages of a whole folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedge_tasks.cli.choices import RunsChoice

if TYPE_CHECKING:
    from hedge_tasks.report.plots import Chart
    from hedge_tasks.runs.run_files import Run


def report(
    choice: RunsChoice,
    *,
    out: Path = Path("report.html"),
    figures: Path | None = None,
    serve: bool = False,
    port: int = 8765,
    detectors: str | None = None,
    questions: int = 5000,
    no_pictures: bool = False,
    no_curves: bool = False,
) -> dict[str, Any]:
    """Write one self-contained HTML page about finished runs, or serve a folder's.

    Args:
        out: The page.
        figures: Folder for the runs' figures as well (ROC, risk-coverage, detectors, categories,
            relevance, number of answers, threshold), each as .pdf and its numbers as .csv.
        serve: Show the page to this machine instead, made again when a run file is new.
        port: Port to listen at with --serve; 0 takes a free one.
        detectors: Which ones, such as se,kle,msp, in place of those of each run.
        questions: Questions to look at singly.
        no_pictures: Leave the questions' pictures out.
        no_curves: Leave out the curves that cluster again (draws, threshold).
    """
    from loguru import logger

    from hedge_tasks.detectors.registry import named
    from hedge_tasks.io.files import write_whole
    from hedge_tasks.io.options import count
    from hedge_tasks.report import ReportOptions, build_report, result_files

    options = ReportOptions(
        pictures=not no_pictures,
        curves=not no_curves,
        questions=count("--questions", questions),
        detectors=None if detectors is None else named(detectors),
    )

    if serve:
        return _serve(choice.runs, lambda: build_report(choice.load(), result_files(choice.runs), options), port)
    finished = choice.load()
    page = build_report(finished, result_files(choice.runs), options, logger.trace)
    write_whole(out, page)
    facts: dict[str, Any] = {"report": out, "bytes": len(page.encode()), "runs": [run.title for run in finished]}
    if figures:
        facts["figures"] = [file for run in finished for file in _figures(run, figures, curves=options.curves)]
    return facts


def _figures(run: Run, folder: Path, *, curves: bool) -> Iterator[Path]:
    """Draw the figures that a run has something for, and yield the files."""
    from hedge_tasks.report.plots import draw

    folder.mkdir(parents=True, exist_ok=True)
    for kind, chart in _charts(run, curves=curves):
        for ending in () if chart.empty else ("pdf", "csv"):
            file = folder / f"{run.task}-{run.model}-{kind}.{ending}".replace("/", "_")
            draw(chart, file)
            yield file


def _charts(run: Run, *, curves: bool) -> Iterator[tuple[str, Chart]]:
    from hedge_tasks.detectors.pipeline import main_detectors
    from hedge_tasks.measures.sweep import sweep, usual_sizes
    from hedge_tasks.report import plots
    from hedge_tasks.report.loaded import CHARTS, LoadedRun

    loaded = LoadedRun(run)
    analysis = loaded.analysis
    for kind in ("detectors", *([] if analysis.audit else CHARTS)):
        yield kind, loaded.plot(kind).chart
    yield "categories", plots.categories_chart([(run.model or run.task, run)])
    yield "relevance", plots.relevance_chart(run)
    for name, scorer in analysis.scorers.items() if curves and analysis.n and not analysis.audit else ():
        detectors = main_detectors(scorer.detectors)
        yield f"n-{name}", plots.sweep_chart([*sweep(run.answer_sets, scorer, usual_sizes(analysis.n), detectors)])
        if scorer.backend.name == "embed":
            yield f"threshold-{name}", plots.threshold_chart(run, scorer)


def _serve(runs: list[Path], build: Callable[[], str], port: int) -> dict[str, Any]:
    from loguru import logger

    from hedge_tasks.errors import ConfigError
    from hedge_tasks.io.commands import say
    from hedge_tasks.report.serve import ReportServer

    if len(runs) != 1:
        raise ConfigError(f"--serve shows one folder, which may hold several runs, and there are {len(runs)}")
    with ReportServer(runs[0], build, port) as server:
        server.page()
        say(f"{server.url}\nCtrl-C ends.")
        logger.trace("")
        server.serve_forever()
    return {}
