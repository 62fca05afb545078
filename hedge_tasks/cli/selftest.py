"""`hedge selftest`: does the leaderboard mark every forgery that was ever tried on it?"""

from __future__ import annotations

import argparse

from hedge_tasks.io.commands import PROBLEMS_FOUND, Parser, command, show


def add(commands: Parser) -> None:
    text = "try every known forgery on a board of its own, then files changed at random, and say which gets no mark"
    parser = command(commands, "selftest", run, text)
    parser.add_argument("--seconds", type=float, default=60.0, help="to spend (default: %(default)g)")
    parser.add_argument(
        "--seed", type=int, default=0, help="of the board and the random changes (default: %(default)s)"
    )
    parser.add_argument("--only", metavar="WORDS", help="forgeries whose name has these words, and no random changes")


def run(arguments: argparse.Namespace) -> int:
    from hedge_tasks.errors import ConfigError
    from hedge_tasks.leaderboard.forgeries import FORGERIES
    from hedge_tasks.leaderboard.selftest import self_test

    words = arguments.only
    chosen = [forgery for forgery in FORGERIES if words is None or words.casefold() in forgery.name.casefold()]
    if not chosen:
        raise ConfigError(f"--only: no forgery has {words!r} in its name")
    trials = list(self_test(seconds=0.0 if words else arguments.seconds, seed=arguments.seed, chosen=chosen))
    failed = [trial for trial in trials if not trial.expected]
    width = max(len(trial.name) for trial in trials)
    lines = [f"{'' if t.expected else '! '}{t.name:<{width}}  {t.mark:<13}  {t.why[:160]}" for t in trials]
    lines.append(f"{len(trials)} tried, {len(failed)} without the mark that they must get")
    show(arguments, trials, "\n".join(lines))
    return PROBLEMS_FOUND if failed else 0
