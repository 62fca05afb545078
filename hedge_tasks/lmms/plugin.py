"""The plug-in that lmms-eval loads: the entry point of group `lmms_eval.models`.

It names our model adapters and, as it runs, adds to lmms-eval what a task of this package needs: the task folder, the
request type `generate_samples`, a filter, standard errors that an aggregation brings itself, and `hedge:TASK`. Every
evaluation loads it, also those that use nothing of ours, so it imports no model library and never raises.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

from loguru import logger

from hedge_tasks.evaluation import included_file, task_folders
from hedge_tasks.lmms.findings import FINDINGS
from hedge_tasks.models import MODELS

TESTED = "0.7."
"""Releases of lmms-eval whose internals the tests have seen."""


def entry_point() -> list[Any]:
    """Install the additions and return the model manifests."""
    install()
    from lmms_eval.models.registry_v2 import ModelManifest

    return [ModelManifest(model_id=name, chat_class_path=path) for name, path in MODELS.items()]


def install() -> list[str]:
    """Add to lmms-eval what tasks of this package need. Calling it again changes nothing.

    Returns:
        Names of the additions that could not be made, each warned about.
    """
    installed = version("lmms_eval")
    if not installed.startswith(TESTED):
        logger.warning("hedge_tasks is tested with lmms-eval {}x; this is {}", TESTED, installed)
    return [addition.__name__ for addition in _ADDITIONS if not _try(addition, installed)]


def _try(addition: Callable[[], None], installed: str) -> bool:
    try:
        addition()
    except Exception as error:  # whatever a future release does, somebody else's evaluation must go on
        logger.warning("hedge_tasks: {} does not work with lmms-eval {}: {}", addition.__name__, installed, error)
        return False
    return True


def _wrap(owner: Any, name: str, addition: Callable[..., Any]) -> None:
    """Let an addition stand in for a function of lmms-eval; done once.

    Args:
        owner: class or module that has the function.
        name: of the function.
        addition: called with the original function in front of its arguments.
    """
    original = getattr(owner, name)
    if hasattr(original, "hedge_tasks"):
        return

    @functools.wraps(original)
    def wrapped(*args: Any, **options: Any) -> Any:
        return addition(original, *args, **options)

    wrapped.hedge_tasks = True  # type: ignore[attr-defined]
    setattr(owner, name, wrapped)


def add_task_folder() -> None:
    """Every TaskManager also looks for tasks in ours, and in those of packages that bring evaluations.

    Built-in names and the user's own folders win.
    """
    from lmms_eval.tasks import TaskManager

    def initialize_tasks(original: Any, self: Any, include_path: Any = None, include_defaults: bool = True) -> Any:
        paths = [include_path] if isinstance(include_path, str) else list(include_path or [])
        paths += map(str, task_folders())
        return original(self, include_path=paths, include_defaults=include_defaults)

    _wrap(TaskManager, "initialize_tasks", initialize_tasks)


def add_includes() -> None:
    """`include: hedge_tasks` and `include: package://...` in the YAML of any task; see `evaluation.included_file`."""
    from lmms_eval import utils

    def load_yaml_config(original: Any, yaml_path: Any = None, *args: Any, **options: Any) -> Any:
        # lmms-eval calls it anew for every include, with the YAML's folder in front.
        return original(yaml_path if yaml_path is None else included_file(str(yaml_path)), *args, **options)

    _wrap(utils, "load_yaml_config", load_yaml_config)


def add_short_table() -> None:
    """Print the main rows of our tasks alone, and the findings below; see `rows.printed`."""
    from lmms_eval import utils

    def make_table(original: Any, result_dict: Any, column: str = "results", *args: Any, **options: Any) -> Any:
        from hedge_tasks.lmms.rows import printed  # on first use: it loads detectors

        table = original(printed(result_dict, column), column, *args, **options)
        return FINDINGS.under(table, result_dict, column)

    _wrap(utils, "make_table", make_table)


def add_findings_to_results() -> None:
    """The findings of the runs in lmms-eval's result file, before it is written and sent."""
    from lmms_eval.loggers.evaluation_tracker import EvaluationTracker

    def save_results_aggregated(original: Any, self: Any, results: Any, *args: Any, **options: Any) -> None:
        FINDINGS.add_to(results)
        original(self, results, *args, **options)

    _wrap(EvaluationTracker, "save_results_aggregated", save_results_aggregated)


def add_request_type() -> None:
    """`generate_samples` on every model: evaluate() calls the method that a request's type names."""
    from lmms_eval.api.model import lmms

    def generate_samples(self: Any, requests: Any) -> list[str]:
        from hedge_tasks.sampling.hook import generate_samples as sample

        return sample(self, requests)

    if not hasattr(lmms, "generate_samples"):
        lmms.generate_samples = generate_samples


def add_filter() -> None:
    """The filter of our YAMLs under its name, imported on first use: clustering libraries are heavy."""
    from lmms_eval.filters import FILTER_REGISTRY

    FILTER_REGISTRY.setdefault("hedge_score", _hedge_score)


def _hedge_score(**options: Any) -> Any:
    from hedge_tasks.lmms.filters import HedgeFilter

    return HedgeFilter(**options)


def add_standard_errors() -> None:
    """An aggregation with a method `stderr` fills the Stderr column itself; lmms-eval knows a fixed list."""
    from lmms_eval import evaluator_utils

    def stderr_for_metric(original: Any, metric: Any, bootstrap_iters: int) -> Any:
        own = getattr(metric, "stderr", None)
        stock = getattr(metric, "hedge_stock", metric)  # behind `hedge:TASK`; see `stock.aggregations.guarded`
        return own if own is not None and bootstrap_iters > 0 else original(stock, bootstrap_iters)

    _wrap(evaluator_utils, "stderr_for_metric", stderr_for_metric)


def add_stock_tasks() -> None:
    """`hedge:TASK` wherever lmms-eval takes a task's name, and YAMLs with `hedge_ize`; its index stays as it is."""
    from lmms_eval.tasks import TaskManager

    for name in ("match_tasks", "load_task_or_group", "_load_individual_task_or_group"):
        _wrap(TaskManager, name, functools.partial(_load_stock, name.removeprefix("_")))


def _load_stock(function: str, *args: Any, **options: Any) -> Any:
    from hedge_tasks.lmms.stock import loading

    return getattr(loading, function)(*args, **options)


_ADDITIONS = (
    add_task_folder,
    add_includes,
    add_short_table,
    add_findings_to_results,
    add_request_type,
    add_filter,
    add_standard_errors,
    add_stock_tasks,
)
