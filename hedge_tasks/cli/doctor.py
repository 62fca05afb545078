"""`hedge doctor`: what is installed, which devices, models and data are at hand, and whether the package works."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

from hedge_tasks.io.commands import PROBLEMS_FOUND, say

PACKAGES = ("hedge-tasks", "lmms_eval", "torch", "transformers", "datasets", "numpy")
OPTIONAL = ("vllm", "matplotlib", "pandas", "sentence-transformers", "optuna")


class DoctorFact(NamedTuple):
    """A fact about this installation.

    Attributes:
        about: Its section.
        name: Of the fact.
        value: As it was read.
        ok: Whether it is as it should be; None where nothing is required.
    """

    about: str
    name: str
    value: str
    ok: bool | None = None


def doctor() -> tuple[dict[str, Any], int]:
    """Look at versions, GPU, models and data, and check that the package works."""
    import sys

    from hedge_tasks.numbers import Column, Table

    say("torch and lmms-eval are loaded, which takes some seconds", sys.stderr)
    facts = [*_versions(), *_devices(), *_models(), *_data(), *_checks()]
    marks = {True: "ok", False: "PROBLEM", None: ""}
    problems = [fact.name for fact in facts if fact.ok is False]
    rows = [{**fact._asdict(), "state": marks[fact.ok]} for fact in facts]
    end = f"Problems: {', '.join(problems)}" if problems else "No problem found. Next: make demo, or hedge list"
    table = Table([*map(Column, ("about", "name", "state", "value"))], rows)
    return {"facts": table, "problems": problems, "notes": [end]}, PROBLEMS_FOUND if problems else 0


def _versions() -> Iterator[DoctorFact]:
    import platform

    yield DoctorFact("Versions", "Python", platform.python_version())
    for name in (*PACKAGES, *OPTIONAL):
        try:
            yield DoctorFact("Versions", name, version(name))
        except PackageNotFoundError:
            yield DoctorFact("Versions", name, "not installed", False if name in PACKAGES else None)


def _devices() -> Iterator[DoctorFact]:
    import torch

    yield DoctorFact("Devices", "CPU cores", str(os.cpu_count()))
    names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    yield DoctorFact("Devices", "GPU", ", ".join(names) or "none: models run on the CPU")


def _models() -> Iterator[DoctorFact]:
    """Yield the models that answers are clustered with, and whether a run would have to download them."""
    from hedge_tasks.runs.trust import default_models

    chosen = [(os.environ.get(variable), None) for variable in ("HEDGE_NLI_MODEL", "HEDGE_EMBEDDING_MODEL")]
    for model, revision in dict.fromkeys([*chosen, *default_models()]):
        if model:
            yield DoctorFact("Models", model, _where(model, revision if isinstance(revision, str) else None))


def _where(model: str, revision: str | None) -> str:
    from huggingface_hub import try_to_load_from_cache

    from hedge_tasks.llm.encoders import encoder_settings

    if model.startswith("package://") or Path(model).is_dir():
        return "here"
    if package := encoder_settings(model, revision).get("source"):
        return f"installed with {package}"
    file = try_to_load_from_cache(model, "config.json", revision=revision)
    return "downloaded" if isinstance(file, str) else "not here: a run downloads it"


def _data() -> Iterator[DoctorFact]:
    """Yield where the data sets of our tasks come from."""
    from hedge_tasks.data.splits import DATA_DIR, local_files
    from hedge_tasks.errors import DataError
    from hedge_tasks.lmms.catalogue import PACKAGE, list_tasks
    from hedge_tasks.runs.trust import DocumentSource, installed_tasks

    inside = [task.task for task in list_tasks() if task.data == PACKAGE and not task.variant]
    yield DoctorFact("Data", "without network", ", ".join(dict.fromkeys(inside)))
    root = os.environ.get(DATA_DIR)
    yield DoctorFact("Data", DATA_DIR, root or "not set", None if root is None else Path(root).is_dir())
    sources = dict.fromkeys(filter(None, map(DocumentSource.of, installed_tasks()))) if root else ()
    for source in sources:
        try:
            local_files(source.path, source.name, source.split)
        except DataError as error:
            yield DoctorFact("Data", source.path, str(error), False)


def _checks() -> Iterator[DoctorFact]:
    """Yield small computations whose results are known."""
    import math

    from hedge_tasks.clustering import cluster_by_nli
    from hedge_tasks.detectors.pipeline import score_answers
    from hedge_tasks.errors import HedgeError
    from hedge_tasks.lmms.plugin import install
    from hedge_tasks.sampling import Answer, AnswerSet

    left = AnswerSet("q", baseline=Answer("left"), clean=(Answer("left"), Answer("Left."), Answer("right")))
    value = score_answers(left, clustering="exact")["se"] or 0.0
    is_right = math.isclose(value, math.log(3) - 2 / 3 * math.log(2), abs_tol=5e-5)
    yield DoctorFact("Self-check", "semantic entropy", f"{value:.4g} nats", is_right)
    try:
        ids = cluster_by_nli(["left", "on the left", "right"], model="package://hedge_tasks.models.tiny/nli")
        yield DoctorFact("Self-check", "clustering by NLI", f"clusters {list(ids)}", ids[0] == ids[1] != ids[2])
    except HedgeError as error:
        yield DoctorFact("Self-check", "clustering by NLI", str(error), False)
    lacking = install()
    yield DoctorFact("Self-check", "plug-in of lmms-eval", ", ".join(lacking) or "all additions made", not lacking)
