"""`hedge view`: the reports of a folder in a browser, and how far an evaluation is that writes into it."""

from __future__ import annotations

import argparse
from pathlib import Path

from hedge_tasks.cli.choices import add_contents, add_listener
from hedge_tasks.io.commands import Parser, command, say


def add(commands: Parser) -> None:
    text = "show a folder's runs in a browser, and watch an evaluation in progress"
    parser = command(commands, "view", run, text)
    parser.add_argument(
        "folder", type=Path, metavar="FOLDER", help="output folder of lmms-eval, or one that holds several"
    )
    add_listener(parser, 8765)
    add_contents(parser)


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
