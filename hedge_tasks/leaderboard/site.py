"""A static site from a folder of submissions: a table for each task, a page for each entry, any two compared."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hedge_tasks import __version__
from hedge_tasks.detectors.pipeline import SCORE_NAMES, Scores, name_of
from hedge_tasks.errors import DataError, HedgeError
from hedge_tasks.io.files import write_whole
from hedge_tasks.leaderboard.comparison import all_differences
from hedge_tasks.leaderboard.submission import SUBMITTED, stored_scores
from hedge_tasks.leaderboard.validation import problems, read_submission
from hedge_tasks.plots.figures import risk_coverage_chart, roc_chart
from hedge_tasks.report.page import flat_settings
from hedge_tasks.report.pages import asset, render
from hedge_tasks.report.svg import picture
from hedge_tasks.report.texts import clean, script_json
from hedge_tasks.runs.run_files import now
from hedge_tasks.statistics import Estimate

_PACKAGE = "hedge_tasks.leaderboard"
_UNSAFE = re.compile(r"[^A-Za-z0-9]+")


@dataclass(frozen=True)
class Entry:
    """A valid submission and where its page is.

    Attributes:
        file: it was read from.
        content: the submission.
        page: name of its page.
        scores: of its documents, by clustering.
    """

    file: Path
    content: Mapping[str, Any]
    page: str
    scores: Mapping[str, Sequence[Scores]]

    @property
    def name(self) -> str:
        return str(self.content["entry"]["name"])

    @property
    def task(self) -> str:
        return str(self.content["entry"]["task"])


@dataclass(frozen=True)
class Built:
    """What became of the files: entries, and what was refused with the reason."""

    entries: Sequence[Entry]
    refused: Mapping[Path, str] = field(default_factory=dict)


def read_entries(folder: Path, *, recompute_scores: bool = False) -> Built:
    """Read and validate the submissions in a folder (`*.json`).

    Args:
        recompute_scores: whether scores are computed again from cluster ids; aggregates always are.

    Raises:
        DataError: there is no such folder, or no submission in it.
    """
    files = sorted(folder.glob("*.json"))
    if not files:
        raise DataError(f"{folder}: no submission (*.json) in it" if folder.is_dir() else f"{folder}: no such folder")
    entries: list[Entry] = []
    refused: dict[Path, str] = {}
    known: dict[str, Path] = {}
    for file in files:
        try:
            content = read_submission(file)
        except HedgeError as error:
            refused[file] = str(error)
            continue
        if found := problems(content, recompute_scores=recompute_scores):
            refused[file] = "; ".join(found)
        elif content["digest"] in known:
            refused[file] = f"the same submission as {known[content['digest']].name}"
        else:
            known[content["digest"]] = file
            entries.append(_entry(file, content))
    return Built(entries, refused)


def build_site(built: Built, out: Path, progress: Callable[[str], None] = lambda text: None) -> list[Path]:
    """Write the site into a folder, which is made if missing. Returns the files written.

    Raises:
        DataError: the folder cannot be written.
    """
    pages = dict(_pages(built.entries, progress))
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"cannot write {out}: {error.strerror}") from error
    for name, text in pages.items():
        write_whole(out / name, text)
    return [out / name for name in pages]


def _entry(file: Path, content: Mapping[str, Any]) -> Entry:
    page = f"entry-{_slug(content['entry']['name'])}-{content['digest'][7:15]}.html"
    return Entry(file, content, page, {name: stored_scores(content, name) for name in content["clusterings"]})


def _slug(text: str) -> str:
    return _UNSAFE.sub("-", text).strip("-").lower()[:60] or "unnamed"


def _pages(entries: Sequence[Entry], progress: Callable[[str], None]) -> Iterator[tuple[str, str]]:
    by_task: dict[str, list[Entry]] = {}
    for entry in sorted(entries, key=lambda entry: (entry.task, entry.name)):
        by_task.setdefault(entry.task, []).append(entry)
    pages = {task: f"task-{i + 1}-{_slug(task)}.html" for i, task in enumerate(by_task)}
    common = {"version": __version__, "written": now()[:10], "package": _PACKAGE}
    yield (
        "index.html",
        render(
            "index.html.j2",
            scripts=[asset("page.js")],
            title="HEDGE leaderboard",
            tasks=[{"name": task, "page": pages[task], "entries": mine} for task, mine in by_task.items()],
            **common,
        ),
    )
    for task, mine in by_task.items():
        progress(task)
        yield pages[task], _task_page(task, mine, common)
        for entry in mine:
            yield entry.page, _entry_page(entry, pages[task], common)


def _task_page(task: str, entries: Sequence[Entry], common: Mapping[str, Any]) -> str:
    from markupsafe import Markup

    keys = [(m, s) for m in dict.fromkeys(m for e in entries for m in e.scores) for s in SCORE_NAMES]
    tabs: list[dict[str, Any]] = []
    for clustering, score in keys:
        rows: list[tuple[Entry, Estimate]] = [
            (entry, _estimate(entry, clustering, score)) for entry in entries if clustering in entry.scores
        ]
        tabs.append({"name": f"{clustering}, {name_of(score)}", "rows": sorted(rows, key=_by_value)})
    compared = {
        "entries": [clean(entry.name, 200) for entry in entries],
        "metrics": [_compared(entries, clustering, score) for clustering, score in keys],
    }
    return render(
        "task.html.j2",
        scripts=[asset("page.js"), asset("compare.js", _PACKAGE)],
        title=f"{task}: HEDGE leaderboard",
        task=task,
        tabs=tabs,
        # Safe: nothing in it can end the script element it stands in.
        compared=Markup(script_json(compared)),
        **common,
    )


def _compared(entries: Sequence[Entry], clustering: str, score: str) -> dict[str, Any]:
    mine = [entry.scores.get(clustering, ()) for entry in entries]
    rows = [(d.a, d.b, _rounded(d.difference), _rounded(d.stderr), d.n) for d in all_differences(mine, score)]
    return {"name": f"{clustering}, {name_of(score)}", "pairs": rows}


def _entry_page(entry: Entry, task_page: str, common: Mapping[str, Any]) -> str:
    content = entry.content
    facts = {**content["entry"], **content["summary"], "digest": content["digest"], "file": entry.file.name}
    metrics = [
        (clustering, [_estimate(entry, clustering, score) for score in SUBMITTED])
        for clustering in content["clusterings"]
    ]
    charts = [
        {"name": clustering, "pictures": [picture(roc_chart(scores)), picture(risk_coverage_chart(scores))]}
        for clustering, scores in entry.scores.items()
    ]
    return render(
        "entry.html.j2",
        scripts=[asset("page.js")],
        title=f"{entry.name}, {entry.task}: HEDGE leaderboard",
        entry=content["entry"],
        task_page=task_page,
        facts=flat_settings(facts),
        score_names=[name_of(score) for score in SUBMITTED],
        metrics=metrics,
        charts=charts,
        settings=flat_settings(
            {"versions": content["versions"], **content["settings"], "clusterings": _clusterings(content)}
        ),
        **common,
    )


def _clusterings(content: Mapping[str, Any]) -> dict[str, Any]:
    return {name: clustering["settings"] for name, clustering in content["clusterings"].items()}


def _estimate(entry: Entry, clustering: str, score: str) -> Estimate:
    """An aggregate as validated."""
    stated = entry.content["clusterings"][clustering]["aggregates"][score]
    interval = None if stated["low"] is None or stated["high"] is None else (stated["low"], stated["high"])
    counts = (stated["n"], stated["n_positive"])
    return Estimate(stated["auroc"], stated["stderr"], *counts, stated["reason"], interval)


def _by_value(row: tuple[Entry, Estimate]) -> tuple[bool, float, str]:
    value = row[1].value
    return value is None, -(value or 0.0), row[0].name


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 5)
