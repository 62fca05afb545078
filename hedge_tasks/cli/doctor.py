"""`hedge doctor`: what is installed, which models and data are at hand, and whether the package works."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from hedge_tasks.io.commands import PROBLEMS_FOUND

PACKAGES = ("hedge-tasks", "lmms_eval", "torch", "transformers", "datasets", "numpy")
OPTIONAL = ("vllm", "matplotlib", "pandas", "sentence-transformers", "optuna")


_Facts = Iterator[tuple[str, str, bool | None]]
"""Name of a fact, what was read, and whether it is as it should be; None where nothing is required."""


def doctor() -> tuple[dict[str, Any], int]:
    """Look at versions, GPU, models and data, and check that the package works."""
    from hedge_tasks.numbers import Table

    sections = {"Versions": _versions, "Models and data": _models, "Self-check": _checks}
    marks = {True: "ok", False: "PROBLEM", None: ""}
    rows = [(about, name, marks[ok], value) for about, facts in sections.items() for name, value, ok in facts()]
    problems = [name for _, name, state, _ in rows if state == marks[False]]
    end = f"Problems: {', '.join(problems)}" if problems else "No problem found. Next: make demo, or hedge list"
    table = Table.of(("about", "name", "state", "value"), rows)
    return {"facts": table, "problems": problems, "notes": [end]}, PROBLEMS_FOUND if problems else 0


def _versions() -> _Facts:
    import torch

    for name in (*PACKAGES, *OPTIONAL):
        try:
            yield name, version(name), None
        except PackageNotFoundError:
            yield name, "not installed", False if name in PACKAGES else None
    names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    yield "GPU", ", ".join(names) or f"none: models run on {os.cpu_count()} CPU cores", None


def _models() -> _Facts:
    """Yield the models that answers are clustered with, and whether they are here; then the folder of local data."""
    from huggingface_hub import try_to_load_from_cache

    from hedge_tasks.data.splits import DATA_DIR
    from hedge_tasks.io.sources import chosen_models
    from hedge_tasks.llm.encoders import encoder_settings
    from hedge_tasks.runs.trust import default_models

    chosen = [(model, None) for model in chosen_models().values()]
    for model, revision in dict.fromkeys([*chosen, *default_models()]):
        revision = revision if isinstance(revision, str) else None
        if package := encoder_settings(model, revision).get("source"):
            where = f"installed with {package}"
        elif model.startswith("package://") or Path(model).is_dir():
            where = "here"
        else:
            is_here = isinstance(try_to_load_from_cache(model, "config.json", revision=revision), str)
            where = "downloaded" if is_here else "not here: a run downloads it"
        yield model, where, None
    root = os.environ.get(DATA_DIR)
    yield DATA_DIR, root or "not set", Path(root).is_dir() if root else None


def _checks() -> _Facts:
    """Yield small computations whose results are known."""
    from hedge_tasks.clustering import cluster_by_nli
    from hedge_tasks.detectors.pipeline import score_answers
    from hedge_tasks.lmms.plugin import install
    from hedge_tasks.numbers import FOUR_DIGITS, format_value
    from hedge_tasks.sampling import Answer, AnswerSet

    left = AnswerSet("q", baseline=Answer("left"), clean=(Answer("left"), Answer("Left."), Answer("right")))
    value = format_value(score_answers(left, clustering="exact")["se"], FOUR_DIGITS)
    yield "semantic entropy", f"{value} nats", value == "0.6365"  # ln 3 - 2/3 ln 2
    ids = cluster_by_nli(["left", "on the left", "right"], model="package://hedge_tasks.models.tiny/nli")
    yield "clustering by NLI", f"clusters {list(ids)}", ids[0] == ids[1] != ids[2]
    lacking = install()
    yield "plug-in of lmms-eval", ", ".join(lacking) or "all additions made", not lacking
