"""`hedge report`: one self-contained HTML page about finished runs."""

from __future__ import annotations

import argparse
from pathlib import Path

from hedge_tasks.cli.choices import add_contents, add_detectors, add_trust, chosen_detectors
from hedge_tasks.io.commands import Parser, add_out, command, show


def add(commands: Parser) -> None:
    parser = command(commands, "report", run, "write one self-contained HTML page about finished runs")
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="output folders of lmms-eval, or run files")
    add_out(parser, "one HTML page", default=Path("report.html"))
    parser.add_argument(
        "--card", type=Path, metavar="CARD.png", help="write the finding as a picture of 1200 x 630 pixels as well"
    )
    parser.add_argument("--task", help="only runs of this task")
    add_trust(parser)
    add_detectors(parser, "those of each run")
    add_contents(parser)
    parser.add_argument(
        "--questions", type=int, default=5000, help="questions to look at singly (default: %(default)s)"
    )
    noisy = "make the noisy pictures of N questions again, as the model saw them (default: %(default)s; takes seconds)"
    parser.add_argument("--noisy-pictures", type=int, default=0, metavar="N", help=noisy)


def run(arguments: argparse.Namespace) -> int:
    from hedge_tasks.errors import ConfigError
    from hedge_tasks.io.files import write_whole
    from hedge_tasks.io.options import count
    from hedge_tasks.io.progress import progress
    from hedge_tasks.numbers import Format, count_of
    from hedge_tasks.report import ReportOptions, build_report, result_files
    from hedge_tasks.runs.run_files import load_runs

    count("--questions", arguments.questions)
    count("--noisy-pictures", arguments.noisy_pictures)
    runs = [
        finished for path in arguments.runs for finished in load_runs(path, arguments.task, trust=arguments.trust_run)
    ]
    if arguments.card and len(runs) != 1:
        raise ConfigError(
            f"--card shows one run, and there are {len(runs)}; choose one with --task, or by its run file"
        )
    if arguments.card and arguments.card.suffix.lower() != ".png":
        raise ConfigError(f"--card: the name must end with .png, got {arguments.card}")
    detectors = chosen_detectors(arguments, ()) or None
    options = ReportOptions(
        pictures=not arguments.no_pictures,
        curves=not arguments.no_curves,
        noisy_pictures=arguments.noisy_pictures,
        questions=arguments.questions,
        detectors=detectors,
    )
    with progress(name="Report") as bar:

        def step(text: str) -> None:
            bar.set_postfix_str(text, refresh=False)
            bar.update()

        page = build_report(runs, result_files(arguments.runs), options, step)
    write_whole(arguments.out, page)
    lines = [
        f"{arguments.out}: {count_of(len(runs), 'run')}, {Format(digits=1, suffix=' MB')(len(page.encode()) / 1e6)}"
    ]
    facts: dict[str, object] = {
        "report": str(arguments.out),
        "bytes": len(page.encode()),
        "runs": [finished.title for finished in runs],
    }
    if arguments.card:
        from hedge_tasks.report.card import share_card

        picture, alternative = share_card(runs[0], pictures=not arguments.no_pictures)
        write_whole(arguments.card, picture)
        lines += [f"{arguments.card}: the finding as a picture; its alternative text:", alternative]
        facts |= {"card": str(arguments.card), "alternative_text": alternative}
    show(arguments, facts, "\n".join(lines))
    return 0
