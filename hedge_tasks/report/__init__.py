"""One self-contained HTML page about finished runs.

from hedge_tasks.report import build_report, result_files
from hedge_tasks.runs.run_files import load_runs

page = build_report(load_runs(Path("results")), result_files([Path("results")]))
"""

from __future__ import annotations

from hedge_tasks.report.page import ReportOptions, build_report
from hedge_tasks.report.results import result_files

__all__ = ["ReportOptions", "build_report", "result_files"]
