"""The share card of a run: its finding as one picture of 1200 × 630 pixels, with a text for who cannot see it."""

from __future__ import annotations

import base64
import io
import textwrap
from typing import TYPE_CHECKING, Any

from hedge_tasks import __version__
from hedge_tasks.measures.headline import Headline
from hedge_tasks.numbers import THREE_DIGITS
from hedge_tasks.report.analysis import Analysis, analyse
from hedge_tasks.report.explorer import explorer_data
from hedge_tasks.report.first_screen import wrong_answers
from hedge_tasks.report.lead import DetectorRow, axis_ticks, detector_rows
from hedge_tasks.report.pictures import NONE, thumbnails
from hedge_tasks.report.plots.drawing import COLOURS, TONES
from hedge_tasks.report.run_names import names_of_runs
from hedge_tasks.report.texts import clean, shortened
from hedge_tasks.runs.run_files import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH, HEIGHT = 1200, 630
_DPI = 100
_INK, _QUIET, _LINE, _PAPER = "#1b1f26", "#5b6472", "#d9dde3", "#ffffff"
_TRUST = {"green": TONES["supported"], "not checked": _QUIET, "yellow": "#d99a00", "red": TONES["hallucinated"]}
_LONGEST = 90
"""Characters of a line of the finding."""

_ROWS = 7
"""Detectors and baselines in the figure."""


def share_card(run: Run, *, pictures: bool = True) -> tuple[bytes, str]:
    """Return the card as PNG, and its alternative text.

    Args:
        pictures: whether the picture of a wrong answer is looked for.
    """
    [analysis] = analyse([run], curves=False)
    small_pictures = thumbnails(run) if pictures else NONE
    wrong = wrong_answers(explorer_data(analysis, small_pictures), analysis.finding)
    text = alternative_text(analysis.finding)
    png = io.BytesIO()
    _figure(analysis, wrong).savefig(png, format="png", dpi=_DPI, metadata={"Description": text})
    return png.getvalue(), text


def alternative_text(finding: Headline) -> str:
    """Return what the card shows, in words."""
    return f"{names_of_runs([finding.run])[0]}. {finding.text} Trust: {finding.trust.short}."


def _figure(analysis: Analysis, wrong: dict[str, Any] | None) -> Figure:
    # Without pyplot there is no state to leak from one figure to the next, and no display is looked for.
    from matplotlib.figure import Figure

    finding = analysis.finding
    figure = Figure(figsize=(WIDTH / _DPI, HEIGHT / _DPI), facecolor=_PAPER)
    figure.text(0.035, 0.925, _plain(names_of_runs([finding.run])[0], 70), size=15, color=_QUIET)
    sentences = finding.text
    # No line ends between a number and its unit.
    lines = textwrap.wrap(_plain(sentences, 600).replace(" %", "\N{NO-BREAK SPACE}%"), _LONGEST)
    figure.text(0.035, 0.885, "\n".join(lines), size=17, color=_INK, va="top", linespacing=1.35)
    colour = _TRUST[finding.trust.level]
    figure.text(0.035, 0.045, "●", size=15, color=colour)
    figure.text(0.058, 0.047, _plain(_trust(finding), 100), size=12, color=_INK)
    figure.text(0.965, 0.047, f"hedge-tasks {__version__}", size=12, color=_QUIET, ha="right")
    top = 0.83 - 0.058 * len(lines)
    rows = _rows_shown(detector_rows(analysis))
    if rows:
        _forest(figure, rows, (0.235, 0.17, 0.33 if wrong else 0.6, max(top - 0.17, 0.2)))
    if wrong:
        _example(figure, wrong, top)
    return figure


def _trust(finding: Headline) -> str:
    grave = finding.trust.grave
    return f"Trust: {finding.trust.level}{f'. {grave[0].head}.' if grave else ''}"


def _rows_shown(rows: list[DetectorRow]) -> list[DetectorRow]:
    """Return the best detectors, and all baselines."""
    baselines = [row for row in rows if row.note]
    return [*[row for row in rows if not row.note][: _ROWS - len(baselines)], *baselines]


def _forest(figure: Figure, rows: list[DetectorRow], place: tuple[float, float, float, float]) -> None:
    axes = figure.add_axes(place)
    ticks = axis_ticks(rows)
    for i, row in enumerate(rows):
        best = max(row.bars, key=lambda bar: bar.estimate.value or 0.0)
        colour = _QUIET if row.note else COLOURS[0]
        if best.low is not None and best.high is not None:
            axes.plot([best.low, best.high], [i, i], color=colour, linewidth=3, solid_capstyle="round")
        axes.plot([best.at], [i], "o", color=colour, markersize=10)
        axes.annotate(
            THREE_DIGITS(best.estimate.value or 0.0),
            (1.02, i),
            xycoords=("axes fraction", "data"),
            va="center",
            size=12,
        )
    chance = {text: at for at, text in ticks}.get("chance")
    if chance is not None:
        axes.axvline(chance, color=_QUIET, linestyle=":", linewidth=1.5, zorder=0)
    names = [f"{_plain(row.name, 26)}{f' ({row.note})' if row.note else ''}" for row in rows]
    axes.set_yticks(range(len(rows)), names, size=12)
    axes.set_xticks([at for at, _ in ticks], [text for _, text in ticks], size=11, color=_QUIET)
    axes.set_xlim(0, 100)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_title("ROC-AUC of finding wrong answers, 95 % intervals", size=12, color=_QUIET, loc="left")
    axes.tick_params(length=0)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(_LINE)


def _example(figure: Figure, wrong: dict[str, Any], top: float) -> None:
    q, left = wrong["example"], 0.68
    if q["picture"]:
        from PIL import Image

        with Image.open(io.BytesIO(base64.b64decode(q["picture"].partition(",")[2]))) as picture:
            axes = figure.add_axes((left, top - 0.30, 0.14, 0.30), anchor="NW")
            axes.imshow(picture.convert("RGB"))
            axes.axis("off")
        below = top - 0.33
    else:
        below = top
    question = textwrap.wrap(_plain(q["question"], 80), 40)[:2]
    figure.text(left, below, "\n".join(question), size=13, color=_INK, va="top", weight="bold")
    below -= 0.045 * len(question) + 0.01
    figure.text(left, below, _plain(f"“{q['answer']}”", 38), size=13, color=TONES["hallucinated"], va="top")
    if q["reference"]:
        figure.text(left, below - 0.045, _plain(f"Reference: {q['reference']}", 40), size=12, color=_QUIET, va="top")
    x = 0.84 if q["picture"] else left
    y = top - 0.02 if q["picture"] else below - 0.11
    for cluster in q["clusters"]:
        colour = TONES["hallucinated"] if cluster["own"] else _QUIET
        figure.text(x, y, f"{cluster['size']} × {_plain(cluster['text'], 15)}", size=12, color=colour, va="top")
        y -= 0.045


def _plain(text: str, most: int) -> str:
    """Return a text as matplotlib may draw it: one line, cut, and no formula begins in it."""
    return shortened(" ".join(clean(text).split()).replace("$", r"\$"), most)
