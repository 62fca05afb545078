"""Draw the README's picture from a finished run: `python docs/picture.py results docs/picture.svg`.

A wrong answer of the run with its image, its samples in clusters, and what the best detector says of it.
"""

from __future__ import annotations

import argparse
from html import escape
from pathlib import Path
from typing import Any

from hedge_tasks.io.files import write_whole
from hedge_tasks.numbers import Format
from hedge_tasks.report.analysis import analyse
from hedge_tasks.report.explorer import explorer_data
from hedge_tasks.report.first_screen import wrong_answers
from hedge_tasks.report.pictures import thumbnails
from hedge_tasks.runs.run_files import load_run

WIDTH, HEIGHT, IMAGE = 760, 236, 196
COLOURS = ("#0072b2", "#d55e00", "#00805c", "#b0588b", "#a87400")
INK, QUIET, BAD, PAPER, LINE = "#1b1f26", "#5b6472", "#b3261e", "#ffffff", "#d9dde3"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    [analysis] = analyse([load_run(arguments.run)])
    wrong = wrong_answers(explorer_data(analysis, thumbnails(analysis.run)), analysis.finding)
    if wrong is None:
        raise SystemExit("no answer of this run is wrong: there is nothing to show")
    write_whole(arguments.out, drawing(wrong))


def drawing(wrong: dict[str, Any]) -> str:
    """Return the picture as SVG."""
    q = wrong["example"]
    left = IMAGE + 48
    parts = [
        text(left, 40, q["question"], 19, weight="600"),
        text(left, 68, "The model answers:", 14, QUIET) + text(left + 146, 68, f"“{q['answer']}”", 16, BAD, "600"),
        text(left, 96, f"Asked {sum(c['size'] for c in q['clusters'])} more times, it says:", 14, QUIET),
    ]
    y = 122
    for i, cluster in enumerate(q["clusters"]):
        colour = COLOURS[i % len(COLOURS)]
        dots = "".join(
            f'<circle cx="{left + 8 + 20 * k}" cy="{y - 5}" r="7" fill="{colour}"/>' for k in range(cluster["size"])
        )
        mark = " (this answer)" if cluster["own"] else ""
        parts.append(
            dots + text(left + 214, y, f"{cluster['text']}{mark}", 15, INK, "600" if cluster["own"] else "400")
        )
        y += 26
    value = "" if q["value"] is None else f"{wrong['detector']} {Format(digits=1)(q['value'])}: "
    parts.append(
        text(left, HEIGHT - 22, f"{value}do not trust it. The reference says “{q['reference']}”.", 15, BAD, "600")
    )
    image = (
        f'<image x="24" y="20" width="{IMAGE}" height="{IMAGE}" href="{escape(q["picture"])}" '
        'preserveAspectRatio="xMidYMid meet"/>'
        if q["picture"]
        else ""
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" role="img">'
        "<title>A wrong answer, its samples in clusters of one meaning, and the verdict</title>"
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="10" fill="{PAPER}" stroke="{LINE}"/>'
        f"{image}{''.join(parts)}</svg>\n"
    )


def text(x: int, y: int, words: str, size: int, colour: str = INK, weight: str = "400") -> str:
    """Return a line of text as SVG."""
    style = f'font-family="system-ui, sans-serif" font-size="{size}" fill="{colour}" font-weight="{weight}"'
    return f'<text x="{x}" y="{y}" {style}>{escape(words)}</text>'


if __name__ == "__main__":
    main()
