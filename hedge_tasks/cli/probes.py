"""`hedge probes`: what the inside of a model tells, cross-fitted, beside blind baselines and draws."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from hedge_tasks.cli.choices import add_scorer, add_task, add_trust, chosen_scorer
from hedge_tasks.io.commands import Parser, command, show

if TYPE_CHECKING:
    from hedge_tasks.measures.probe_table import ProbeData, ProbeTable
    from hedge_tasks.numbers import Table
    from hedge_tasks.runs.run_files import Run


def add(commands: Parser) -> None:
    parser = command(
        commands, "probes", run, "compare detectors that are fitted on the inside of a model, with their controls"
    )
    parser.add_argument("run", type=Path, metavar="RUN", help="lmms-eval's output folder, or a run file")
    parser.add_argument("--probes", metavar="NAMES", help="fitted detectors, with commas between (default: all)")
    parser.add_argument("--fit-on", type=Path, metavar="RUN", help="fit on another run, and score this one")
    parser.add_argument("--states", type=Path, metavar="FOLDER", help="where the arrays are (default: beside the run)")
    parser.add_argument("--label-prices", action="store_true", help="tell the ROC-AUC for fewer labels, too")
    parser.add_argument("--no-controls", action="store_true", help="leave out shuffled labels and foreign states")
    parser.add_argument("--save", type=Path, metavar="FOLDER", help="write the states fitted on all documents")
    add_trust(parser)
    add_task(parser)
    add_scorer(parser)


def run(arguments: argparse.Namespace) -> int:
    from hedge_tasks.detectors.registry import get
    from hedge_tasks.measures.probe_table import probe_table
    from hedge_tasks.probes.base import save
    from hedge_tasks.probes.registry import fitted, fitted_detectors
    from hedge_tasks.runs.run_files import load_run

    known = fitted_detectors()
    asked = [fitted(name.strip()) for name in arguments.probes.split(",")] if arguments.probes else [*known.values()]
    finished = load_run(arguments.run, arguments.task, trust=arguments.trust_run)
    data = _data(finished, arguments, arguments.states)
    other = load_run(arguments.fit_on, None, trust=arguments.trust_run) if arguments.fit_on else None
    about = transfer(finished, other) if other else ""
    n, m = (min(getattr(s, key) for s in data.scores) for key in ("n_clean", "n_noisy"))
    found = probe_table(
        data,
        asked,
        beside={name: (get(name).title, get(name).draws(n, m), get(name).passes(n)) for name in data.scores[0]},
        controls=not arguments.no_controls,
        prices=arguments.label_prices,
        fit_on=_data(other, arguments, None) if other else None,
        fitted_on=f"{other.title} ({about})" if other else "",
    )
    written = []
    if arguments.save:
        arguments.save.mkdir(parents=True, exist_ok=True)
        for one in asked:
            if one.name in found.left_out:
                continue
            path = arguments.save / f"{one.name}.npz"
            digest = save(one.fit(data.at(one), data.targets(one), data.group_numbers), path)
            written.append(f"{path}: written, sha256 {digest}")
    table = _table(found, finished.title)
    facts = {
        **{"task": finished.task, "model": finished.model, "documents": found.n, "without_states": found.missing},
        **{"detectors": table, "left_out": found.left_out, "fitted_on": found.fitted_on},
        **{"blind": found.blind.sentence if found.blind else "", "bytes_a_document": found.bytes},
        "prices": {row.name: dict(row.prices) for row in found.rows if row.prices},
    }
    show(arguments, facts, table, "\n".join(written))
    return 0


def transfer(finished: Run, other: Run) -> str:
    """Say what differs between the run that is scored and the one that is fitted on: these are different claims.

    Raises:
        ConfigError: documents of the one are in the other, and so are their images.
    """
    from hedge_tasks.errors import ConfigError

    images = [{a.group if a.group is not None else a.id for a in one.answer_sets} for one in (finished, other)]
    if finished.task == other.task and images[0] & images[1]:
        shared = len(images[0] & images[1])
        raise ConfigError(
            f"--fit-on: {shared} of {len(images[0])} images of RUN are in it, so that nothing is held out; without it "
            "every document is scored by what has not seen its image"
        )
    data = "the same data set" if finished.task == other.task else "another data set"
    model = "the same model" if finished.model == other.model else "another model"
    return f"{data}, {model}"


def _data(finished: Run, arguments: argparse.Namespace, states: Path | None) -> ProbeData:
    from hedge_tasks.measures.probe_table import LOOKED_AT, ProbeData
    from hedge_tasks.runs.kept_inside import inside_source

    scores = chosen_scorer(arguments, finished).score(finished.answer_sets)
    return ProbeData.of(finished.answer_sets, scores, inside_source(finished, states)(LOOKED_AT))


def _table(found: ProbeTable, title: str) -> Table:
    from hedge_tasks.measures.blind import LENGTH
    from hedge_tasks.numbers import FOUR_DIGITS, ONE_DIGIT, SIGNED_FOUR, Cell, Column, Table, reason_lines
    from hedge_tasks.probes.registry import fitted_detectors

    known = fitted_detectors()
    differences = found.blind.differences if found.blind else {}
    best = found.blind.rows[0].name if found.blind and found.blind.rows else "blind"
    prices = sorted({n for row in found.rows for n in row.prices})
    rows: list[dict[str, Cell]] = []
    for row in found.rows:
        pair, p = differences.get(row.name, (None, None))
        cells: dict[str, Cell] = {
            "detector": row.name + (" (fitted)" if row.name in known else ""),
            "draws": row.draws,
            "passes": row.passes,
            "labels": row.labels,
            "seconds": row.seconds,
            "estimate": row.estimate,
            "difference": None if pair is None else pair.number,
            "p": p,
            "shuffled": row.shuffled,
            "foreign": row.foreign,
        }
        rows.append(cells | {f"at_{n}": row.prices.get(n) for n in prices})
    for one in found.blind.rows if found.blind else ():
        name = f"{one.name}{'*' if one.reversed else ''} (blind)"
        labels = 0 if one.name == LENGTH else round(found.n * 0.8)
        rows.append({"detector": name, "draws": 0, "passes": 0, "labels": labels, "estimate": one.estimate})
    columns = [
        *(Column("detector"), Column("draws"), Column("passes"), Column("labels")),
        Column("seconds", format=ONE_DIGIT),
        Column("estimate", "ROC-AUC", format=FOUR_DIGITS),
        Column("interval", "95 %", show="interval", of="estimate"),
        Column("difference", f"- {best}", format=SIGNED_FOUR),
        Column("p", "p", show="p"),
        Column("shuffled", "shuffled labels", format=FOUR_DIGITS),
        Column("foreign", "another image's states", format=FOUR_DIGITS),
        *(Column(f"at_{n}", f"{n} labels", format=FOUR_DIGITS) for n in prices),
    ]
    shown = [column for column in columns if any(row.get(column.source) is not None for row in rows)]
    how = f"fitted on {found.fitted_on}" if found.fitted_on else "cross-fitted by image, five partitions"
    notes = [
        f"{found.n} labelled documents with what was kept from inside the model ({found.bytes:,} bytes each); {how}",
        *([f"{found.missing} labelled documents have none and are left out"] if found.missing else []),
        *reason_lines("left out", found.left_out.items()),
        *([found.blind.sentence] if found.blind and found.blind.sentence else []),
    ]
    return Table(shown, rows, title, notes)
