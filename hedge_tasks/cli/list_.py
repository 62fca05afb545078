"""`hedge list`: the tasks of this package."""

from __future__ import annotations

from hedge_tasks.numbers import Column, Table


def list_(*, all_: bool = False, folder: bool = False) -> Table | str:
    """List the tasks: size, modality, licence, and what each needs.

    Args:
        all_: Variants as well, with what sets each apart.
        folder: Only the folder of the tasks, for lmms-eval's --include_path.
    """
    from dataclasses import asdict

    from hedge_tasks.lmms.catalogue import PACKAGE, list_tasks, task_folder

    if folder:
        return str(task_folder())
    tasks = list_tasks()
    names = ("task", "documents", "modality", "licence", "data", "about")
    rows = [asdict(task) for task in tasks if all_ or not task.variant]
    notes = [f"data: {PACKAGE} needs no network, hub downloads, hedge data ... builds from your copies."]
    notes += [] if all_ else [f"{len(tasks) - len(rows)} variants are not shown; hedge list --all shows them."]
    return Table([*map(Column, names)], rows, notes=notes)
