"""`hedge view`: the reports of a folder in a browser, and how far an evaluation is that writes into it."""

from __future__ import annotations

import argparse
from pathlib import Path

from hedge_tasks.io.commands import Parser, command, say


def add(commands: Parser) -> None:
    text = "show a folder's runs in a browser, and watch an evaluation in progress"
    parser = command(commands, "view", run, text)
    parser.add_argument(
        "folder", type=Path, metavar="FOLDER", help="output folder of lmms-eval, or one that holds several"
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen at (default: this machine only)")
    parser.add_argument("--port", type=int, default=8765, help="0 takes a free one (default: %(default)s)")
    parser.add_argument("--no-pictures", action="store_true", help="leave the questions' pictures out of the reports")
    parser.add_argument("--no-curves", action="store_true", help="leave out the curves that cluster again")


def run(arguments: argparse.Namespace) -> int:
    from hedge_tasks.report import ReportOptions
    from hedge_tasks.report.live.server import ViewServer
    from hedge_tasks.report.live.site import Site

    site = Site(arguments.folder, ReportOptions(pictures=not arguments.no_pictures, curves=not arguments.no_curves))
    with ViewServer(site, arguments.host, arguments.port) as server:
        key = "" if server.key is None else " (whoever has this address sees the answers)"
        say(f"{server.url}{key}\nCtrl-C ends.")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            say("")
    return 0
