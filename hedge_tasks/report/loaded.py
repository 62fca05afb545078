"""Finished runs for a notebook: what they found, tidy tables, figures and comparisons.

import hedge_tasks

runs = hedge_tasks.load("results")
runs                            # what each run found
runs.to_pandas("draws")         # one row for each sampled answer
runs[0].plot("roc")
runs.compare()                  # paired differences
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from hedge_tasks.errors import ConfigError, DataError, unknown
from hedge_tasks.measures.audited import NOT_SHOWN
from hedge_tasks.measures.headline import Headline
from hedge_tasks.measures.unit_table import score_kept_claims
from hedge_tasks.numbers import Table
from hedge_tasks.report.analysis import Analysis, analyse, compare_between, compare_within, table_of
from hedge_tasks.report.lead import metrics_table
from hedge_tasks.report.plots import Chart, detectors_chart, draw, risk_coverage_chart, roc_chart, svg_of
from hedge_tasks.report.run_names import names_of_runs
from hedge_tasks.runs.claim_files import claim_rows
from hedge_tasks.runs.run_files import Run, load_runs

if TYPE_CHECKING:
    import pandas
    import pyarrow

TABLES = ("answers", "draws", "scores", "claims")
"""Tidy tables: a row for each judged answer, sampled answer, score of an answer, claim of an answer."""

CHARTS: dict[str, Callable[..., Chart]] = {"roc": roc_chart, "risk-coverage": risk_coverage_chart}
"""Figures of one clustering; `detectors` is of all."""


@dataclass(frozen=True)
class RunFigure:
    """A figure of a run, which a notebook shows."""

    chart: Chart

    def save(self, path: str | Path) -> None:
        """Write it to a file; the name's ending .png, .svg, .pdf or .csv says which kind."""
        draw(self.chart, Path(path))

    def _repr_svg_(self) -> str:
        return svg_of(self.chart)


class LoadedRun:
    """One finished run.

    Args:
        run: as it was read.
    """

    def __init__(self, run: Run) -> None:
        self.run = run

    def __repr__(self) -> str:
        return f"<{self.run.title}: {len(self.run.answer_sets)} answers>"

    @cached_property
    def analysis(self) -> Analysis:
        """The scores of every answer under each of the run's clusterings."""
        return analyse([self.run])[0]

    @property
    def finding(self) -> Headline:
        """The finding of the run, in sentences, and how far it can be trusted."""
        return self.analysis.finding

    def rows(self, table: str = "answers") -> list[dict[str, Any]]:
        """Return one of `TABLES` as mappings, one a row."""
        makers = {"answers": self._answers, "draws": self._draws, "scores": self._scores, "claims": self._claims}
        if table not in makers:
            raise unknown("table of a run", table, makers)
        run_columns = {"task": self.run.task, "model": self.run.model, "created": self.run.created}
        return [{**run_columns, **row} for row in makers[table]()]

    def to_arrow(self, table: str = "answers") -> pyarrow.Table:
        """Return one of `TABLES` through Arrow, for polars and whatever else reads it."""
        return _arrow(self.rows(table))

    def to_pandas(self, table: str = "answers") -> pandas.DataFrame:
        """Return one of `TABLES` as a data frame."""
        return self.to_arrow(table).to_pandas()

    def plot(self, kind: str = "detectors", clustering: str | None = None) -> RunFigure:
        """Return a figure.

        Args:
            kind: "detectors", or one of `CHARTS`.
            clustering: one of the run's; the first if not given. Not for "detectors", which has all.
        """
        if kind == "detectors":
            return RunFigure(detectors_chart(self.analysis.estimates))
        if kind not in CHARTS:
            raise unknown("figure", kind, ["detectors", *CHARTS])
        if self.analysis.audit is not None:
            raise DataError(f"{self.run.title}: {NOT_SHOWN}")
        names = list(self.analysis.scores)
        if clustering is not None and clustering not in names:
            raise unknown(f"clustering of {self.run.task}", clustering, names)
        if not names:
            raise DataError(f"{self.run.title}: nothing was scored")
        name = clustering or names[0]
        return RunFigure(CHARTS[kind](self.analysis.scores[name], self.analysis.drawn(name)))

    def compare(self) -> Table:
        """Return paired differences of the detectors under each clustering, and of the clusterings."""
        return table_of(compare_within(self.analysis))

    def _repr_html_(self) -> str:
        return "".join(
            (f"<h4>{escape(self.run.title)}</h4>", _finding_html(self.finding), metrics_table(self.analysis).to_html())
        )

    def _answers(self) -> Iterator[dict[str, Any]]:
        for a in self.run.answer_sets:
            verdict = self.run.verdicts.get(a.id) or {}
            yield {
                "id": a.id,
                "question": a.question,
                "reference": a.reference,
                "answer": a.baseline.text,
                "label": a.label,
                "judge": str(verdict["judge"]) if verdict.get("judge") is not None else None,
                "reason": str(verdict["reason"]) if verdict.get("reason") is not None else None,
                "group": a.group,
                "question_type": a.question_type,
                "mean_logprob": a.baseline.mean_logprob,
                "n_tokens": a.baseline.n_tokens,
            }

    def _draws(self) -> Iterator[dict[str, Any]]:
        ids = {name: {s.id: s.cluster_ids for s in scores} for name, scores in self.analysis.scores.items()}
        for a in self.run.answer_sets:
            conditions = ["baseline"] + ["clean"] * len(a.clean) + ["noisy"] * len(a.noisy)
            for place, (condition, answer) in enumerate(zip(conditions, a.answers, strict=True)):
                yield {
                    "id": a.id,
                    "draw": place,
                    "condition": condition,
                    "text": answer.text,
                    "mean_logprob": answer.mean_logprob,
                    "n_tokens": answer.n_tokens,
                    "finish": answer.finish,
                    **{f"cluster_{name}": by_document[a.id][place] for name, by_document in ids.items()},
                }

    def _scores(self) -> Iterator[dict[str, Any]]:
        for clustering, scores in self.analysis.scores.items():
            for s in scores:
                for detector, value in s.items():
                    columns = {"id": s.id, "clustering": clustering, "detector": detector}
                    yield {**columns, "score": value, "label": s.label, "counted": s.reported_label is not None}

    def _claims(self) -> Iterator[dict[str, Any]]:
        scored = score_kept_claims(self.run)
        for answer in scored.answers if scored is not None else ():
            for row in claim_rows(answer):
                scores = row.pop("scores")
                yield {**row, **{f"score_{name}": None if v is None else float(v) for name, v in scores.items()}}


class LoadedRuns(Sequence[LoadedRun]):
    """Finished runs, in the order of task and model."""

    def __init__(self, runs: Sequence[LoadedRun]) -> None:
        self._runs = tuple(runs)

    def __len__(self) -> int:
        return len(self._runs)

    @overload
    def __getitem__(self, place: int) -> LoadedRun: ...
    @overload
    def __getitem__(self, place: slice) -> LoadedRuns: ...
    def __getitem__(self, place: int | slice) -> LoadedRun | LoadedRuns:
        return LoadedRuns(self._runs[place]) if isinstance(place, slice) else self._runs[place]

    def __repr__(self) -> str:
        return f"[{', '.join(map(repr, self._runs))}]"

    def to_arrow(self, table: str = "answers") -> pyarrow.Table:
        """Return one of `TABLES` of all runs; `task`, `model` and `created` say whose a row is."""
        return _arrow([row for run in self._runs for row in run.rows(table)])

    def to_pandas(self, table: str = "answers") -> pandas.DataFrame:
        """Return one of `TABLES` of all runs as a data frame."""
        return self.to_arrow(table).to_pandas()

    def compare(self) -> Table:
        """Return paired differences: between runs of a task, or between the detectors of a single run."""
        if len(self) == 1:
            return self[0].compare()
        return table_of(compare_between([run.analysis for run in self._runs], dict(enumerate(self._names))))

    def plot(self, kind: str = "detectors", clustering: str | None = None) -> RunFigure:
        """Return a figure of the only run, or the detectors of all runs.

        Args:
            clustering: of several runs the leading one of each if not given.

        Raises:
            ConfigError: there are several runs, and it is a figure of one.
        """
        if len(self) == 1:
            return self[0].plot(kind, clustering)
        if kind != "detectors":
            raise ConfigError(f"{kind!r} is a figure of one run: runs[0].plot({kind!r}); .plot() is of all {len(self)}")
        analyses = {name: run.analysis for name, run in zip(self._names, self._runs, strict=True)}
        series = {name: a.estimates.get(clustering or str(a.leading), {}) for name, a in analyses.items()}
        return RunFigure(detectors_chart(series))

    @property
    def _names(self) -> list[str]:
        return list(names_of_runs([run.run for run in self._runs]))

    def _repr_html_(self) -> str:
        return "".join(run._repr_html_() for run in self._runs)


def load(path: str | Path | Sequence[str | Path], *, task: str | None = None, trust: bool = False) -> LoadedRuns:
    """Return the finished runs at a path, the newest of each task and model.

    Args:
        path: lmms-eval's output folder, a folder of run files, a run file, or a JSONL file of answers; or a list of
            them, whose runs are compared.
        task: only runs of this task.
        trust: whether models that the files name may be loaded.

    Raises:
        DataError: there is no run, or a file is damaged.
        ConfigError: what is given is no path.
    """
    paths = [path] if isinstance(path, (str, Path)) else path
    if not isinstance(paths, Sequence) or not all(isinstance(place, (str, Path)) for place in paths):
        raise ConfigError(f"expected a path or a list of paths, got {path!r}")
    return LoadedRuns([LoadedRun(run) for place in paths for run in load_runs(Path(place), task, trust=trust)])


def _arrow(rows: Sequence[dict[str, Any]]) -> pyarrow.Table:
    import pyarrow

    names = dict.fromkeys(name for row in rows for name in row)
    return pyarrow.table({name: [row.get(name) for row in rows] for name in names})


def _finding_html(finding: Headline) -> str:
    reasons = "".join(f"<li>{escape(text)}</li>" for text in finding.trust.objections)
    details = f"<details>{escape(' '.join(finding.details))}</details>"
    return f"<p>{escape(finding.text)}</p>{details}<p>Trust: {finding.trust.level}</p><ul>{reasons}</ul>"
