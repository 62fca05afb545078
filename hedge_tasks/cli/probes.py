"""`hedge probes`: what the inside of a model tells, cross-fitted, beside blind baselines and draws."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from hedge_tasks.cli.choices import add_scorer, add_task, add_trust, chosen_run, chosen_scorer, listed
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
    from hedge_tasks.detectors.probes.base import save
    from hedge_tasks.detectors.probes.registry import fitted, fitted_detectors
    from hedge_tasks.detectors.registry import get
    from hedge_tasks.measures.probe_table import probe_table
    from hedge_tasks.runs.run_files import load_run

    named = [fitted(name) for name in listed(arguments.probes)] if arguments.probes else []
    detectors = named or [*fitted_detectors().values()]
    finished = chosen_run(arguments)
    data = _data(finished, arguments, arguments.states)
    training = load_run(arguments.fit_on, None, trust=arguments.trust_run) if arguments.fit_on else None
    difference = transfer(finished, training) if training else ""
    n, m = (min(getattr(s, key) for s in data.scores) for key in ("n_clean", "n_noisy"))
    probes = probe_table(
        data,
        detectors,
        beside={name: (get(name).title, get(name).draws(n, m), get(name).passes(n)) for name in data.scores[0]},
        controls=not arguments.no_controls,
        prices=arguments.label_prices,
        fit_on=_data(training, arguments, None) if training else None,
        fitted_on=f"{training.title} ({difference})" if training else "",
    )
    lines = []
    if arguments.save:
        arguments.save.mkdir(parents=True, exist_ok=True)
        for detector in detectors:
            if detector.name in probes.left_out:
                continue
            path = arguments.save / f"{detector.name}.npz"
            digest = save(detector.fit(data.at(detector), data.targets(detector), data.group_numbers), path)
            lines.append(f"{path}: written, sha256 {digest}")
    table = _table(probes, finished.title)
    facts = {
        **{"task": finished.task, "model": finished.model, "documents": probes.n, "without_states": probes.missing},
        **{"detectors": table, "left_out": probes.left_out, "fitted_on": probes.fitted_on},
        **{"blind": probes.blind.sentence if probes.blind else "", "bytes_a_document": probes.bytes},
        "prices": {row.name: dict(row.prices) for row in probes.rows if row.prices},
    }
    show(arguments, facts, table, "\n".join(lines))
    return 0


def transfer(finished: Run, training: Run) -> str:
    """Return what differs between the run that is scored and the one that is fitted on: these are different claims.

    Raises:
        ConfigError: Documents of the one are in the other, and so are their images.
    """
    from hedge_tasks.errors import ConfigError

    images = [{a.group if a.group is not None else a.id for a in run.answer_sets} for run in (finished, training)]
    if finished.task == training.task and images[0] & images[1]:
        shared = len(images[0] & images[1])
        raise ConfigError(
            f"--fit-on: {shared} of {len(images[0])} images of RUN are in it, so that nothing is held out; without it "
            "every document is scored by what has not seen its image"
        )
    data = "the same data set" if finished.task == training.task else "another data set"
    model = "the same model" if finished.model == training.model else "another model"
    return f"{data}, {model}"


def _data(finished: Run, arguments: argparse.Namespace, states: Path | None) -> ProbeData:
    from hedge_tasks.measures.probe_table import LOOKED_AT, ProbeData
    from hedge_tasks.runs.kept_inside import inside_source

    scores = chosen_scorer(arguments, finished).score(finished.answer_sets)
    return ProbeData.of(finished.answer_sets, scores, inside_source(finished, states)(LOOKED_AT))


def _table(probes: ProbeTable, title: str) -> Table:
    from hedge_tasks.detectors.probes.registry import fitted_detectors
    from hedge_tasks.measures.blind import LENGTH
    from hedge_tasks.numbers import FOUR_DIGITS, ONE_DIGIT, SIGNED_FOUR, Cell, Column, Table, reason_lines

    fitted_names = fitted_detectors()
    differences = probes.blind.differences if probes.blind else {}
    best = probes.blind.rows[0].name if probes.blind and probes.blind.rows else "blind"
    prices = sorted({n for row in probes.rows for n in row.prices})
    rows: list[dict[str, Cell]] = []
    for row in probes.rows:
        pair, p = differences.get(row.name, (None, None))
        cells: dict[str, Cell] = {
            "detector": row.name + (" (fitted)" if row.name in fitted_names else ""),
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
    for baseline in probes.blind.rows if probes.blind else ():
        name = f"{baseline.name}{'*' if baseline.reversed else ''} (blind)"
        labels = 0 if baseline.name == LENGTH else round(probes.n * 0.8)
        rows.append({"detector": name, "draws": 0, "passes": 0, "labels": labels, "estimate": baseline.estimate})
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
    filled = [column for column in columns if any(row.get(column.source) is not None for row in rows)]
    how = f"fitted on {probes.fitted_on}" if probes.fitted_on else "cross-fitted by image, five partitions"
    notes = [
        f"{probes.n} labelled documents with what was kept from inside the model ({probes.bytes:,} bytes each); {how}",
        *([f"{probes.missing} labelled documents have none and are left out"] if probes.missing else []),
        *reason_lines("left out", probes.left_out.items()),
        *([probes.blind.sentence] if probes.blind and probes.blind.sentence else []),
    ]
    return Table(filled, rows, title, notes)
