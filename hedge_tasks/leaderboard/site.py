"""A static site from a folder of submissions: a table for each task, a page for each entry, any two compared."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any

from hedge_tasks import __version__
from hedge_tasks.data.manifests import manifests_of
from hedge_tasks.detectors.pipeline import SCORE_NAMES, Scores, name_of
from hedge_tasks.detectors.registry import names
from hedge_tasks.errors import DataError, HedgeError
from hedge_tasks.io.files import write_whole
from hedge_tasks.leaderboard.claims import shown_claims
from hedge_tasks.leaderboard.comparison import all_differences
from hedge_tasks.leaderboard.recomputation import Part
from hedge_tasks.leaderboard.submission import sha256_of, stored_scores
from hedge_tasks.leaderboard.suite import Columns, documents_in, measured_of, metrics_of
from hedge_tasks.leaderboard.validation import Findings, FindManifests, check, read_submission
from hedge_tasks.plots.figures import risk_coverage_chart, roc_chart
from hedge_tasks.report.page import flat_settings
from hedge_tasks.report.pages import asset, render
from hedge_tasks.report.svg import picture
from hedge_tasks.report.texts import clean, script_json
from hedge_tasks.runs.run_files import now
from hedge_tasks.statistics import Estimate, Measured

_PACKAGE = "hedge_tasks.leaderboard"
_UNSAFE = re.compile(r"[^A-Za-z0-9]+")
_NO_MANIFEST = "no manifest of this task is known, so nobody can tell whether documents are missing"


@dataclass(frozen=True)
class Entry:
    """A valid submission and where its page is.

    Attributes:
        file: it was read from.
        content: the submission.
        page: name of its page.
        scores: of its documents, by clustering.
        findings: what its validation found.
    """

    file: Path
    content: Mapping[str, Any]
    page: str
    scores: Mapping[str, Sequence[Scores]]
    findings: Findings

    @property
    def name(self) -> str:
        return str(self.content["entry"]["name"])

    @property
    def task(self) -> str:
        return str(self.content["entry"]["task"])

    @property
    def judge(self) -> str:
        """Who labelled, for people."""
        settings = self.content["labels"]["judge"]
        named = settings.get("judge") if isinstance(settings, Mapping) else None
        return named if isinstance(named, str) else "unknown"

    def about(self, clustering: str, detector: str) -> Mapping[str, Any] | None:
        """Title and price of a detector; None where the entry does not have it."""
        of = self.content["clusterings"].get(clustering)
        found: Mapping[str, Any] | None = of["detectors"].get(detector) if of else None
        return found

    def checked(self, clustering: str, detector: str) -> list[tuple[str, Part]]:
        """The parts that an AUROC rests on, each with whether it is verified."""
        findings = self.findings
        scores = findings.detectors[clustering][detector]
        parts = {"labels": findings.labels, "clusters": findings.clusterings[clustering], "scores": scores}
        return [("documents", self.documents), *parts.items()]

    def checked_of_suite(self, name: str) -> list[tuple[str, Part]]:
        """The parts that a number of the suite rests on, each with whether it is verified."""
        return [("documents", self.documents), ("labels", self.findings.labels), ("value", self.findings.suite[name])]

    @property
    def documents(self) -> Part:
        """Whether all documents of the task are there."""
        coverage = self.findings.coverage
        if coverage is None or coverage.of is None:
            return Part(False, _NO_MANIFEST)
        return Part(bool(coverage.whole), f"{coverage.matched} of {coverage.of} documents of the task")


@dataclass(frozen=True)
class Built:
    """What became of the files: entries, and what was refused with the reason."""

    entries: Sequence[Entry]
    refused: Mapping[Path, str] = field(default_factory=dict)


def read_entries(folder: Path, *, thorough: bool = False, manifests: FindManifests = manifests_of) -> Built:
    """Read and validate the submissions in a folder (`*.json`); options as for `check`.

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
            findings = check(content, manifests=manifests, thorough=thorough)
        except HedgeError as error:
            refused[file] = str(error)
            continue
        if findings.problems:
            refused[file] = "; ".join(findings.problems)
        elif (answers := _answers_digest(content)) in known:
            refused[file] = f"the same answers as {known[answers].name}"
        else:
            known[answers] = file
            entries.append(_entry(file, content, findings))
    return Built(entries, refused)


def _answers_digest(content: Mapping[str, Any]) -> str:
    """The same for a submission under another name or note."""
    told = [
        [d["id"], d["label"], d["logprobs"], {name: of["clusters"] for name, of in d["clusterings"].items()}]
        for d in content["documents"]
    ]
    return sha256_of([content["entry"]["task"], sorted(told, key=lambda row: row[0])])


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


def _entry(file: Path, content: Mapping[str, Any], findings: Findings) -> Entry:
    page = f"entry-{_slug(content['entry']['name'])}-{content['digest'][7:15]}.html"
    scores = {name: stored_scores(content, name) for name in content["clusterings"]}
    return Entry(file, content, page, scores, findings)


def _slug(text: str) -> str:
    return _UNSAFE.sub("-", text).strip("-").lower()[:60] or "unnamed"


def _pages(entries: Sequence[Entry], progress: Callable[[str], None]) -> Iterator[tuple[str, str]]:
    by_task: dict[str, list[Entry]] = {}
    for entry in sorted(entries, key=lambda entry: (entry.task, not entry.findings.ranked, entry.name)):
        by_task.setdefault(entry.task, []).append(entry)
    pages = {task: f"task-{i + 1}-{_slug(task)}.html" for i, task in enumerate(by_task)}
    common = {"version": __version__, "written": now()[:10], "package": _PACKAGE}
    yield (
        "index.html",
        render(
            "index.html.j2",
            scripts=[asset("page.js")],
            title="HEDGE leaderboard",
            tasks=[
                {"name": task, "page": pages[task], "entries": mine, "ranked": sum(e.findings.ranked for e in mine)}
                for task, mine in by_task.items()
            ],
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

    keys = _columns(entries)
    ranked = [entry for entry in entries if entry.findings.ranked]
    aside = [entry for entry in entries if not entry.findings.ranked]
    suites = _suite_titles(entries)
    tabs = [
        {
            "name": title,
            "about": f"{title}: {'higher' if higher else 'lower'} is better",
            "column": title,
            "priced": False,
            "rows": _suite_rows(ranked, name, higher),
            "aside": _suite_rows(aside, name, higher),
        }
        for name, (title, higher) in suites.items()
    ]
    tabs += [
        {
            "name": f"{clustering}, {_title(entries, clustering, detector)}",
            "about": f"{clustering}, {_title(entries, clustering, detector)}",
            "column": "ROC-AUC",
            "priced": True,
            "rows": _rows(ranked, clustering, detector),
            "aside": _rows(aside, clustering, detector),
        }
        for clustering, detector in keys
    ]
    compared = {
        "entries": [clean(entry.name, 200) for entry in entries],
        "metrics": [
            *_compared_suites(entries),
            *(_compared(entries, clustering, score) for clustering, score in keys if score in SCORE_NAMES),
        ],
    }
    of = max((e.findings.coverage.of or 0 for e in entries if e.findings.coverage), default=0)
    return render(
        "task.html.j2",
        scripts=[asset("page.js"), asset("compare.js", _PACKAGE)],
        title=f"{task}: HEDGE leaderboard",
        task=task,
        documents=of or None,
        tabs=tabs,
        # Safe: nothing in it can end the script element it stands in.
        compared=Markup(script_json(compared)),
        **common,
    )


@dataclass(frozen=True)
class _Row:
    """A line of a table: one entry under one clustering and detector, or with a number of the suite."""

    entry: Entry
    estimate: Estimate | Measured
    draws: int | None
    checked: Sequence[tuple[str, Part]]
    rank: int | None = None


def _columns(entries: Sequence[Entry]) -> list[tuple[str, str]]:
    """Every clustering with every detector that any entry has: of a clustering the paper's first, then the others."""
    clusterings = dict.fromkeys(name for entry in entries for name in entry.scores)
    found = []
    for clustering in clusterings:
        named = (e.content["clusterings"][clustering]["detectors"] for e in entries if clustering in e.scores)
        detectors = dict.fromkeys(name for of in named for name in of)
        found += [(clustering, name) for name in dict.fromkeys((*SCORE_NAMES, *detectors)) if name in detectors]
    return found


def _rows(entries: Sequence[Entry], clustering: str, detector: str) -> list[_Row]:
    found = [
        _Row(entry, _estimate(entry, clustering, detector), about["draws"], entry.checked(clustering, detector))
        for entry in entries
        if (about := entry.about(clustering, detector)) is not None
    ]
    return _ordered(found)


def _ordered(rows: Sequence[_Row], *, higher: bool = True) -> list[_Row]:
    ordered = sorted(rows, key=lambda row: _by_value(row, higher))
    return [replace(row, rank=i + 1 if row.estimate.value is not None else None) for i, row in enumerate(ordered)]


def _suite_titles(entries: Sequence[Entry]) -> dict[str, tuple[str, bool]]:
    """The suite's own numbers that any entry has: title, and whether higher is better, by us where we know it."""
    found: dict[str, tuple[str, bool]] = {}
    for entry in entries:
        ours = {metric.name: metric for metric in metrics_of(entry.content)}
        for name, told in entry.content["suite"].items():
            about = (ours[name].title, ours[name].higher_is_better) if name in ours else _told(told)
            found[name] = about if name in ours else found.get(name, about)
    return found


def _told(stated: Mapping[str, Any]) -> tuple[str, bool]:
    return clean(stated["title"], 100), stated["higher_is_better"]


def _suite_rows(entries: Sequence[Entry], name: str, higher: bool) -> list[_Row]:
    found = [
        _Row(entry, measured_of(entry.content["suite"][name]), None, entry.checked_of_suite(name))
        for entry in entries
        if name in entry.content["suite"]
    ]
    return _ordered(found, higher=higher)


def _compared_suites(entries: Sequence[Entry]) -> Iterator[dict[str, Any]]:
    """Any two entries by every number of the suite that is installed here."""
    known = {metric.name: metric for entry in entries for metric in metrics_of(entry.content)}
    for metric in known.values():
        columns = Columns(metric, [documents_in(entry.content, metric) for entry in entries])
        found = [columns.compare(a, b) for a, b in combinations(range(len(entries)), 2)]
        rows = [(d.a, d.b, _rounded(d.difference), _rounded(d.stderr), d.n) for d in found]
        yield {"name": metric.title, "pairs": rows}


def _title(entries: Sequence[Entry], clustering: str, detector: str) -> str:
    """What a detector is called: by us where we know it, else by the first who submitted it."""
    told = (about["title"] for entry in entries if (about := entry.about(clustering, detector)) is not None)
    return name_of(detector) if detector in names() else clean(next(told), 100)


def _compared(entries: Sequence[Entry], clustering: str, score: str) -> dict[str, Any]:
    mine = [entry.scores[clustering] if entry.about(clustering, score) is not None else () for entry in entries]
    rows = [(d.a, d.b, _rounded(d.difference), _rounded(d.stderr), d.n) for d in all_differences(mine, score)]
    return {"name": f"{clustering}, {_title(entries, clustering, score)}", "pairs": rows}


def _entry_page(entry: Entry, task_page: str, common: Mapping[str, Any]) -> str:
    content = entry.content
    facts = {**content["entry"], **content["summary"], "digest": content["digest"], "file": entry.file.name}
    metrics = [
        (clustering, [_cell(entry, clustering, detector) for detector in of["detectors"]])
        for clustering, of in content["clusterings"].items()
    ]
    charts = [_charts(entry, clustering) for clustering in entry.scores]
    return render(
        "entry.html.j2",
        scripts=[asset("page.js")],
        title=f"{entry.name}, {entry.task}: HEDGE leaderboard",
        entry=content["entry"],
        task_page=task_page,
        facts=flat_settings(facts),
        aside=entry.findings.set_aside,
        remarks=[f["text"] for f in content["health"]["findings"] if not _is_told(f["text"], entry.findings.set_aside)],
        parts=list(_parts(entry)),
        suite=[
            (title, higher, measured_of(content["suite"][name]), entry.findings.suite[name])
            for name, (title, higher) in _suite_titles([entry]).items()
        ],
        claims=shown_claims(content, entry.findings.claims),
        metrics=metrics,
        charts=charts,
        settings=flat_settings(
            {"versions": content["versions"], **content["settings"], "clusterings": _clusterings(content)}
        ),
        **common,
    )


def _charts(entry: Entry, clustering: str) -> list[Any]:
    """Curves of the paper's detectors, or of the first that the entry has."""
    scores, there = entry.scores[clustering], entry.content["clusterings"][clustering]["detectors"]
    shown = [name for name in SCORE_NAMES if name in there] or list(there)[: len(SCORE_NAMES)]
    return [picture(roc_chart(scores, shown)), picture(risk_coverage_chart(scores, shown))]


def _is_told(text: str, reasons: Sequence[str]) -> bool:
    return any(text in reason for reason in reasons)


def _cell(entry: Entry, clustering: str, detector: str) -> dict[str, Any]:
    about = entry.about(clustering, detector)
    assert about is not None
    return {
        "name": _title([entry], clustering, detector),
        "draws": about["draws"],
        "estimate": _estimate(entry, clustering, detector),
        "part": entry.findings.detectors[clustering][detector],
    }


def _parts(entry: Entry) -> Iterator[tuple[str, str, bool | None, str]]:
    """(what, how it stands, whether it is verified, why) of everything that somebody could have made up."""
    findings, coverage = entry.findings, entry.findings.coverage
    state = {None: "unknown", True: "whole", False: "partial"}[coverage.whole if coverage else None]
    yield "documents", state, entry.documents.verified, entry.documents.reason
    parts = {"labels": findings.labels}
    titles = _suite_titles([entry])
    for part in dict.fromkeys(findings.suite.values()):
        parts[", ".join(titles[name][0] for name, its in findings.suite.items() if its == part)] = part
    parts |= {f"clusters of {name}": part for name, part in findings.clusterings.items()}
    for clustering, of in findings.detectors.items():
        for part in sorted(set(of.values()), key=lambda part: not part.verified):
            names = ", ".join(name for name, its in of.items() if its == part)
            parts[f"scores of {clustering}: {names}"] = part
    for what, part in parts.items():
        yield what, "verified" if part.verified else "self-reported", part.verified, part.reason
    told = "that the answers are this model's is nobody's to see in a file; see the threat model in the documentation"
    yield "answers and log-probabilities", "self-reported", False, told


def _clusterings(content: Mapping[str, Any]) -> dict[str, Any]:
    return {name: clustering["settings"] for name, clustering in content["clusterings"].items()}


def _estimate(entry: Entry, clustering: str, score: str) -> Estimate:
    """An aggregate as validated."""
    stated = entry.content["clusterings"][clustering]["aggregates"][score]
    interval = None if stated["low"] is None or stated["high"] is None else (stated["low"], stated["high"])
    counts = (stated["n"], stated["n_positive"])
    return Estimate(stated["auroc"], stated["stderr"], *counts, stated["reason"], interval)


def _by_value(row: _Row, higher: bool) -> tuple[bool, float, str]:
    value = row.estimate.value
    return value is None, (value or 0.0) * (-1 if higher else 1), row.entry.name


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 5)
