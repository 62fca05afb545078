"""Content of a folder: evaluations under way, finished runs, and their reports, made on request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from threading import Lock
from typing import Any

from loguru import logger

from hedge_tasks.clustering.model_outputs import ReusesOutputs
from hedge_tasks.detectors.registry import get, names
from hedge_tasks.errors import DataError, HedgeError
from hedge_tasks.measures.detector_table import detector_table, mean_ranks
from hedge_tasks.measures.headline import Headline, headline
from hedge_tasks.measures.unit_table import kept_numbers, measured_claims, score_kept_claims
from hedge_tasks.numbers import PERCENT, Format, format_value
from hedge_tasks.report.claim_page import build_claim_page
from hedge_tasks.report.detector_page import build_detector_page
from hedge_tasks.report.live.watching import COMPLETE, QUIET, STATES, Sampling, Watch
from hedge_tasks.report.page import ReportOptions, build_report
from hedge_tasks.report.pages import View, asset, render
from hedge_tasks.report.results import result_files
from hedge_tasks.runs.health import CUT, EMPTY, FILTERED, LOGPROBS, SAME
from hedge_tasks.runs.run_files import FOLDER, Run, read_run, run_paths
from hedge_tasks.runs.scorers import scorer_of
from hedge_tasks.sampling.archive import FOLDER as ANSWERS

_DEEPEST = 2
_MOST_FOLDERS = 200


@dataclass(frozen=True)
class Finished:
    """A run file, as the first page lists it.

    Attributes:
        key: names it in addresses; a place in the list, never a path.
        run: read once.
        finding: what it found, and how far its numbers can be trusted.
        has_claims: whether claims of its answers are kept with it.
    """

    key: str
    run: Run
    finding: Headline
    has_claims: bool

    @property
    def link(self) -> str:
        return f"/run/{self.key}"

    @property
    def pages(self) -> dict[str, str]:
        """Addresses of the pages about it, with their names."""
        claims = {f"{self.link}/claims": "Claims"} if self.has_claims else {}
        return {self.link: "Report", f"{self.link}/detectors": "Detectors", **claims}


class Site:
    """The pages of a folder. Reports are made on request, and again when a run file is new.

    Args:
        folder: lmms-eval's output folder, or one that holds several.
        options: of the reports.
    """

    def __init__(self, folder: Path, options: ReportOptions | None = None) -> None:
        if not folder.is_dir():
            raise DataError(f"{folder}: no such folder")
        self.folder, self._options = folder, options or ReportOptions()
        self._watches: dict[Path, Watch] = {}
        self._runs: dict[Path, tuple[int, Run]] = {}
        self._pages: dict[str, tuple[object, str]] = {}
        self._findings: dict[tuple[str, str], Headline] = {}
        self._unreadable: dict[Path, tuple[int, str]] = {}
        # One page at a time: two requests for the same report would make it twice.
        self._lock = Lock()

    def page(self, path: str) -> str | None:
        """Return the page at a path; None where there is none.

        Of all runs: "/", "/report" and "/detectors"; of one: "/run/N", "/run/N/detectors" and "/run/N/claims".

        Raises:
            HedgeError: it cannot be made; the message is fit for a reader.
        """
        with self._lock:
            if path == "/":
                return self._first_page()
            finished = self._finished()
            if path in ("/report", "/detectors"):
                return self._cached_page(path, finished) if finished else None
            chosen = [run for run in finished if path in run.pages]
            return self._cached_page(path, chosen) if chosen else None

    def _first_page(self) -> str:
        scripts = [asset("page.js"), asset("live.js")]
        finished = self._finished()
        now = datetime.now(timezone.utc)
        return render(
            "live.html.j2",
            scripts=scripts,
            asks="'self'",
            title=f"hedge report --serve: {self.folder.resolve().name}",
            now=now.strftime("%H:%M:%S UTC"),
            under_way=[_sampling_entry(sampling, self.folder) for sampling in self._samplings()],
            finished=[_run_entry(run) for run in finished],
            unreadable=[text for _, text in self._unreadable.values()],
        )

    def _samplings(self) -> list[Sampling]:
        samplings: list[Sampling] = []
        for folder in output_folders(self.folder):
            for place in (folder, folder / ANSWERS):
                if next(place.glob("answers-*.*"), None) is not None:
                    watch = self._watches.get(place) or self._watches.setdefault(place, Watch(place))
                    samplings += watch.look()
        return sorted(samplings, key=lambda sampling: STATES.index(sampling.state))

    def _finished(self) -> list[Finished]:
        """Return the newest run of each task and model, as `hedge report` takes them; damaged files are passed over."""
        newest: dict[tuple[str, str], Run] = {}
        for file in self._run_files():
            run = self._read_cached(file)
            if run is not None:
                previous = newest.get((run.task, run.model))
                if previous is None or previous.created <= run.created:
                    newest[run.task, run.model] = run
        runs = [newest[key] for key in sorted(newest)]
        return [Finished(str(i), run, self._finding(run), run.support is not None) for i, run in enumerate(runs)]

    def _finding(self, run: Run) -> Headline:
        key = (str(run.path), run.created)
        return self._findings.get(key) or self._findings.setdefault(key, headline(run))

    def _run_files(self) -> list[Path]:
        files: list[Path] = []
        for folder in output_folders(self.folder):
            if next((folder / FOLDER).glob("run-*.jsonl"), None) or next(folder.glob("run-*.jsonl"), None):
                files += run_paths(folder)
        return list(dict.fromkeys(files))

    def _read_cached(self, file: Path) -> Run | None:
        changed = file.stat().st_mtime_ns
        cached = self._runs.get(file)
        if cached is not None and cached[0] == changed:
            return cached[1]
        failed = self._unreadable.get(file)
        if failed is not None and failed[0] == changed:
            return None
        try:
            run = read_run(file)
        except HedgeError as error:
            logger.warning("{}", error)
            self._unreadable[file] = (changed, f"{file.name}: {error}")
            return None
        self._unreadable.pop(file, None)
        self._runs[file] = (changed, run)
        return run

    def _files_beside_runs(self) -> list[tuple[Path, int]]:
        """Return what a report looks at besides the run files: lmms-eval's results, and claims that are kept with a
        run.
        """
        patterns = ("*_results.json", "*/*_results.json", "claims-*.jsonl", f"{FOLDER}/claims-*.jsonl")
        files = {
            file for folder in output_folders(self.folder) for pattern in patterns for file in folder.glob(pattern)
        }
        return [(file, file.stat().st_mtime_ns) for file in sorted(files)]

    def _cached_page(self, path: str, finished: Sequence[Finished]) -> str:
        runs = [entry.run for entry in finished]
        sources = (
            *((run.path, self._runs[run.path][0]) for run in runs if run.path is not None),
            *self._files_beside_runs(),
        )
        cached = self._pages.get(path)
        if cached is None or cached[0] != sources:
            cached = (sources, self._build_page(path, finished))
            self._pages[path] = cached
        return cached[1]

    def _build_page(self, path: str, finished: Sequence[Finished]) -> str:
        views = views_of(path, finished)
        if path.endswith("/detectors"):
            return detectors_of(finished, views)
        if path.endswith("/claims"):
            return claims_of(finished[0], views, pictures=self._options.pictures)
        results = result_files(output_folders(self.folder))
        return build_report([run.run for run in finished], results, self._options, views=views)


def views_of(path: str, finished: Sequence[Finished]) -> list[View]:
    """Return the pages about some runs as they link to each other, the one at `path` among them."""
    pages = {"/report": "Report", "/detectors": "Detectors"}
    if path not in pages:
        pages = finished[0].pages
    return [View("All runs", "/"), *(View(name, "" if at == path else at) for at, name in pages.items())]


def detectors_of(finished: Sequence[Finished], views: Sequence[View]) -> str:
    """Return the page about the detectors of some runs. No model is called.

    Raises:
        DataError: a run does not keep what its clustering needs of a model.
    """
    detectors = [name for name in names() if not get(name).experimental]
    tables = []
    for entry in finished:
        scorer = scorer_of(entry.run, None)
        if not entry.run.evidence and isinstance(scorer.backend, ReusesOutputs) and scorer.backend.sources():
            raise DataError(
                f"{entry.run.title} does not keep what models say of its answers: hedge detectors --keep asks"
            )
        tables.append(detector_table(entry.run, scorer, detectors, only_kept=True))
    ranks = mean_ranks(tables) if len(tables) > 1 else []
    options: dict[str, Any] = {"findings": [entry.finding for entry in finished], "views": views}
    return build_detector_page(tables, ranks, claims=[kept_numbers(entry.run) for entry in finished], **options)


def claims_of(finished: Finished, views: Sequence[View], *, pictures: bool) -> str:
    """Return the page about the claims that are kept with a run.

    Raises:
        DataError: what is kept cannot be used.
    """
    scored = score_kept_claims(finished.run)
    if scored is None:
        raise DataError(f"{finished.run.title}: the claims that are kept with it cannot be used")
    table, _ = measured_claims(scored, finished.run)
    return build_claim_page(scored, table, finished.run, finding=finished.finding, pictures=pictures, views=views)


def output_folders(folder: Path) -> list[Path]:
    """Return the folder and those in it, to a depth of two, that hold answers or runs of evaluations."""
    folders, level = [], [folder]
    for depth in range(_DEEPEST + 1):
        folders += [place for place in level if _is_output(place)]
        if depth < _DEEPEST:
            level = sorted(inner for place in level for inner in _inner(place))
    return folders[:_MOST_FOLDERS]


def _inner(folder: Path) -> list[Path]:
    try:
        return [place for place in folder.iterdir() if place.is_dir() and place.name not in (FOLDER, ANSWERS)]
    except OSError as error:
        logger.warning("{} is left out: {}", folder, error.strerror or error)
        return []


def _is_output(folder: Path) -> bool:
    places = ((folder, "answers-*.*"), (folder / ANSWERS, "answers-*.*"))
    runs = ((folder, "run-*.jsonl"), (folder / FOLDER, "run-*.jsonl"))
    return any(next(place.glob(pattern), None) is not None for place, pattern in (*places, *runs))


def _sampling_entry(sampling: Sampling, folder: Path) -> dict[str, Any]:
    """Return a sampling for the template."""
    share = sampling.done / sampling.planned if sampling.planned else 0.0
    return {
        "task": sampling.task,
        "model": sampling.model,
        "prompt": sampling.prompt,
        "folder": _relative(sampling.folder, folder),
        "state": sampling.state,
        "progress": _progress(sampling),
        "percent": Format(1)(100 * share),
        "done": sampling.done,
        "planned": sampling.planned,
        "documents": sampling.documents,
        "complete": sampling.complete,
        "findings": sampling.health.findings if sampling.health else (),
        "facts": _facts(sampling),
        "dropped": sampling.dropped,
    }


def _progress(sampling: Sampling) -> str:
    if sampling.state == COMPLETE:
        return "All answers are there. Once they are scored, their run is among the finished ones."
    if sampling.state == QUIET:
        return (
            f"No answer for {duration(sampling.quiet_s)}: the evaluation has ended, or waits. What is there is kept; "
            "the same command goes on from it."
        )
    if sampling.rate is None or sampling.left_s is None:
        return "The rate is being measured."
    return f"{_rate(sampling.rate)}, {duration(sampling.left_s)} left at this rate."


def _rate(rate: float) -> str:
    return f"{Format(1)(rate)} draws a second" if rate >= 1 else f"{Format(1)(60 * rate)} draws a minute"


def duration(seconds: float) -> str:
    """Return a time in words, to two units.

    Example:
        >>> duration(42), duration(3 * 3600 + 125), duration(200_000)
        ('42 s', '3 h 2 min', '2 d 7 h')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, hours, days = whole // 60, whole // 3600, whole // 86_400
    if minutes < 60:
        return f"{minutes} min {whole % 60} s"
    return f"{hours} h {minutes % 60} min" if hours < 24 else f"{days} d {hours % 24} h"


def _facts(sampling: Sampling) -> list[tuple[str, str]]:
    """Return what is known of the answers so far, as a name and a number each."""
    health = sampling.health
    if health is None:
        return []
    shares = (
        ("documents with one clean answer only", health.shares.get(SAME)),
        ("draws cut at the token limit", health.shares.get(CUT)),
        ("empty draws", health.shares.get(EMPTY)),
        ("draws stopped by a filter", health.shares.get(FILTERED)),
        ("draws without log-probability", health.shares.get(LOGPROBS)),
    )
    facts = [(name, PERCENT(share)) for name, share in shares if share is not None]
    if health.distinct_clean is not None:
        facts.insert(0, ("different clean answers a document", Format(1)(health.distinct_clean)))
    return facts


def _run_entry(finished: Finished) -> dict[str, Any]:
    run = finished.run
    rate = finished.finding.rate
    return {
        "task": run.task,
        "model": run.model,
        "pages": finished.pages,
        "finding": finished.finding.text,
        "written": run.created[:16].replace("T", " "),
        "documents": len(run.answer_sets),
        "rate": "no labels" if rate is None else format_value(rate.value, PERCENT),
        "trust": finished.finding.trust,
    }


def _relative(path: Path, folder: Path) -> str:
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else path.name
