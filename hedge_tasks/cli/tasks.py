"""`hedge list`: the tasks of this package, and the detectors."""

from __future__ import annotations

from hedge_tasks.numbers import Cell, Column, Table


def list_(*, all_: bool = False, folder: bool = False, detectors: bool = False) -> Table | str:
    """List the tasks: size, modality, licence, and what each needs.

    Args:
        all_: Variants as well, with what sets each apart.
        folder: Only the folder of the tasks, for lmms-eval's --include_path.
        detectors: Instead what each detector costs, and how a run keeps what it needs.
    """
    from dataclasses import asdict

    from hedge_tasks.lmms.catalogue import PACKAGE, list_tasks, task_folder

    if detectors:
        return _detectors()
    if folder:
        return str(task_folder())
    tasks = list_tasks()
    names = ("task", "documents", "modality", "licence", "data", "about")
    rows = [asdict(task) for task in tasks if all_ or not task.variant]
    notes = [f"data: {PACKAGE} needs no network, hub downloads, hedge data ... builds from your copies."]
    notes += [] if all_ else [f"{len(tasks) - len(rows)} variants are not shown; hedge list --all shows them."]
    return Table([*map(Column, names)], rows, notes=notes)


def _detectors() -> Table:
    """Return a table with the price of every detector, and the way to have a run keep its evidence."""
    from hedge_tasks.detectors.probes.registry import fitted_detectors
    from hedge_tasks.detectors.registry import get, names

    n = 10
    rows: list[list[Cell]] = [[d.name, d.draws(n, n), d.passes(n), "no", d.kept_by] for d in map(get, names())]
    rows += [
        [f"{d.name} (fitted)", 0, 1, "yes" if d.target == "labels" else "no, draws", f"--gen_kwargs inside={d.part}"]
        for d in (*fitted_detectors().values(), *fitted_detectors("claim").values())
    ]
    notes = [
        f"draws: of {n} clean and {n} noisy ones; passes: prompts that the model reads once more",
        "HEDGE_DETECTORS=NAME of an evaluation keeps the parts of inside, too, that a formula needs",
        "nothing in the last column: every run keeps what it needs; detectors of draws need draws, n=0 has none",
    ]
    return Table.of(("detector", "draws", "passes", "labels", "a run keeps it with"), rows, notes=notes)
