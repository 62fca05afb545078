"""`hedge doctor`: what is installed, which devices, models and data are at hand, and whether the package works."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from hedge_tasks.io.commands import PROBLEMS_FOUND

PACKAGES = ("hedge-tasks", "lmms_eval", "torch", "transformers", "datasets", "numpy")
OPTIONAL = ("vllm", "matplotlib", "pandas", "sentence-transformers", "optuna")

_TOLERANCE = 5e-5


@dataclass(frozen=True)
class DoctorFact:
    """A fact about this installation.

    Attributes:
        about: Its section.
        name: Of the fact.
        value: What was found.
        ok: Whether it is as it should be; None where nothing is required.
    """

    about: str
    name: str
    value: str
    ok: bool | None = None


def doctor() -> tuple[dict[str, Any], int]:
    """Look at versions, GPU, models and data, and check that the package works."""
    from hedge_tasks.numbers import Column, Table

    facts = [*_versions(), *_devices(), *_models(), *_data(), *_checks()]
    marks = {True: "ok", False: "PROBLEM", None: ""}
    problems = [fact.name for fact in facts if fact.ok is False]
    rows = [{**asdict(fact), "state": marks[fact.ok]} for fact in facts]
    end = f"Problems: {', '.join(problems)}" if problems else "No problem found. Next: make demo, or hedge list"
    table = Table([*map(Column, ("about", "name", "state", "value"))], rows)
    return {"facts": table, "problems": problems, "notes": [end]}, PROBLEMS_FOUND if problems else 0


def _versions() -> Iterator[DoctorFact]:
    import platform

    yield DoctorFact("Versions", "Python", platform.python_version())
    for names, needed in ((PACKAGES, False), (OPTIONAL, None)):
        for name in names:
            try:
                yield DoctorFact("Versions", name, version(name))
            except PackageNotFoundError:
                yield DoctorFact("Versions", name, "not installed", needed)


def _devices() -> Iterator[DoctorFact]:
    import torch

    yield DoctorFact("Devices", "CPU cores", str(os.cpu_count()))
    n = torch.cuda.device_count() if torch.cuda.is_available() else 0
    for i in range(n):
        gpu = torch.cuda.get_device_properties(i)
        yield DoctorFact("Devices", f"GPU {i}", f"{gpu.name}, {gpu.total_memory // 2**30} GiB")
    if not n:
        yield DoctorFact("Devices", "GPU", "none: models run on the CPU")


def _models() -> Iterator[DoctorFact]:
    """Yield the models that answers are clustered with, and whether a run would have to download them."""
    from hedge_tasks.runs.trust import default_models

    chosen = {variable: os.environ.get(variable) for variable in ("HEDGE_NLI_MODEL", "HEDGE_EMBEDDING_MODEL")}
    for variable, model in chosen.items():
        if model:
            yield DoctorFact("Models", variable, f"{model}, {_where(model, None)}")
    for model, revision in dict.fromkeys(default_models()):
        yield DoctorFact("Models", model, _where(model, revision if isinstance(revision, str) else None))


def _where(model: str, revision: str | None) -> str:
    from huggingface_hub import try_to_load_from_cache

    from hedge_tasks.llm.encoders import encoder_settings

    if model.startswith("package://"):
        return "embedded"
    if Path(model).is_dir():
        return "a folder here"
    if package := encoder_settings(model, revision).get("source"):
        return f"installed with {package}"
    file = try_to_load_from_cache(model, "config.json", revision=revision)
    return "downloaded" if isinstance(file, str) else "not here: a run downloads it"


def _data() -> Iterator[DoctorFact]:
    """Yield where the data sets of our tasks come from."""
    from hedge_tasks.data.splits import DATA_DIR, local_files
    from hedge_tasks.errors import DataError
    from hedge_tasks.io.sources import PACKAGE_SCHEME
    from hedge_tasks.lmms.catalogue import PACKAGE, list_tasks
    from hedge_tasks.runs.trust import DocumentSource, installed_tasks

    root = os.environ.get(DATA_DIR)
    yield DoctorFact("Data", DATA_DIR, root or "not set", None if root is None else Path(root).is_dir())
    yield DoctorFact(
        "Data", "without network", _names([t.task for t in list_tasks() if t.data == PACKAGE and not t.variant])
    )
    if root is not None and Path(root).is_dir():
        local = []
        for source in dict.fromkeys(filter(None, map(DocumentSource.of, installed_tasks()))):
            try:
                if not source.path.startswith(PACKAGE_SCHEME) and local_files(source.path, source.name, source.split):
                    local.append(source.path)
            except DataError as error:
                yield DoctorFact("Data", source.path, str(error), False)
        yield DoctorFact("Data", f"in {DATA_DIR}", _names(local))


def _names(names: Sequence[str], most: int = 6) -> str:
    unique = list(dict.fromkeys(names))
    end = f" and {len(unique) - most} more" if len(unique) > most else ""
    return ", ".join(unique[:most]) + end or "none"


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
    expected = math.log(3) - 2 / 3 * math.log(2)
    yield DoctorFact("Self-check", "semantic entropy", f"{value:.4g} nats", abs(value - expected) < _TOLERANCE)
    try:
        ids = cluster_by_nli(["left", "on the left", "right"], model="package://hedge_tasks.models.tiny/nli")
        yield DoctorFact("Self-check", "clustering by NLI", f"clusters {list(ids)}", ids[0] == ids[1] != ids[2])
    except HedgeError as error:
        yield DoctorFact("Self-check", "clustering by NLI", str(error), False)
    lacking = install()
    yield DoctorFact("Self-check", "plug-in of lmms-eval", ", ".join(lacking) or "all additions made", not lacking)
