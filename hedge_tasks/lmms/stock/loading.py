"""From names to tasks: patterns, groups and tags behind `hedge:`.

Three methods of lmms-eval's `TaskManager` come through here (`hedge_tasks.lmms.plugin` wraps them). Its index of names
stays as it is, and every other name goes its own way.
"""

from __future__ import annotations

import fnmatch
import os
from collections import ChainMap, Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from loguru import logger

from hedge_tasks.errors import ConfigError, HedgeError, lookup, unknown
from hedge_tasks.lmms.stock.names import PREFIX, StockName, StockOptions, is_ours

_Tasks = dict[Any, Any]


def match_tasks(original: Any, manager: Any, task_list: str | Sequence[str]) -> list[str]:
    """`TaskManager.match_tasks`: which tasks the command line means.

    A name comes back as it was, or the command line takes it for unknown; a pattern as the tasks that it fits.

    Raises:
        ConfigError: a task behind `hedge:` is unknown (names the nearest one), or a pattern fits none.
    """
    names = [task_list] if isinstance(task_list, str) else list(task_list)
    others = [name for name in names if not is_ours(name)]
    matched = list(original(manager, others)) if others else []
    for stock in (StockName.parse(name) for name in names if is_ours(name)):
        known = stock.task in manager.task_index
        fitting = [stock.task] if known else fnmatch.filter(manager.all_subtasks, stock.task)
        if not fitting:
            raise unknown("task of lmms-eval", stock.task, manager.all_tasks)
        matched += map(stock.for_task, fitting)
    return list(dict.fromkeys(matched))


def load_task_or_group(original: Any, manager: Any, task_list: Any = None, *args: Any, **options: Any) -> _Tasks:
    """`TaskManager.load_task_or_group`: what a command asks for, less what is refused.

    A refused task is left out with an error in the log, and the others of the command run. Where several processes
    evaluate together it ends the command instead: they must agree on the tasks.

    Raises:
        ConfigError: a task is asked for twice.
        HedgeError: nothing is left.
    """
    names = [task_list] if isinstance(task_list, str) else task_list
    titles = Counter(StockName.parse(name).title for name in names if is_ours(name))
    for title, count in titles.items():
        if count > 1:
            raise ConfigError(f"{title} is asked for {count} times; one command has one set of options for it")
    refused: dict[str, HedgeError] = {}
    manager.hedge_refused = refused
    loaded: _Tasks = original(manager, task_list, *args, **options)
    if not refused:
        return loaded
    loaded = _without_empty_groups(loaded)
    if not loaded:
        raise next(iter(refused.values()))
    for name, error in refused.items():
        logger.error("{} is left out of this run. {}", name, error)
    return loaded


def load_individual_task_or_group(
    original: Any,
    manager: Any,
    name_or_config: Any = None,
    task_type: str = "simple",
    parent_name: Any = None,
    update_config: Mapping[str, Any] | None = None,
) -> _Tasks:
    """`TaskManager._load_individual_task_or_group`: the task, or all of a group or tag."""
    own = dict(name_or_config) if isinstance(name_or_config, Mapping) else {"task": name_or_config}
    if not is_ours(name := own.pop("task", None)):
        others: _Tasks = original(manager, name_or_config, task_type, parent_name, update_config)
        return others
    stock, changes = StockName.parse(name), {**own, **(update_config or {})}
    entry = lookup("task of lmms-eval", stock.task, manager.task_index)
    load = partial(manager._load_individual_task_or_group, task_type=task_type)
    if entry["type"] == "tag":
        loaded = [load(stock.for_task(task), update_config=changes or None) for task in entry["task"]]
        return dict(ChainMap(*loaded))
    if entry["type"] == "group":
        config = {**(manager._get_config(stock.task) or {"task": entry["task"]}), **changes}
        # lmms-eval itself fills the rows of a group.
        return load({**config, "group": stock.title, "task": [_prefixed(member, stock) for member in config["task"]]})
    return _built(manager, stock, changes, task_type)


def _prefixed(member: Any, stock: StockName) -> Any:
    """Return a member of a group, be it a name, a name with settings or a group itself, as a stock task."""
    if isinstance(member, str):
        return stock.for_task(member)
    inner = member["task"]
    if isinstance(inner, str):
        return {**member, "task": stock.for_task(inner)}
    return {**member, "group": PREFIX + member["group"], "task": [_prefixed(nested, stock) for nested in inner]}


def _built(manager: Any, stock: StockName, changes: Mapping[str, Any], task_type: str) -> _Tasks:
    """Return the task; nothing where it is refused and the command has somewhere to keep the reason."""
    from hedge_tasks.lmms.stock.task import StockTask

    try:
        config = {**manager._get_config(stock.task), **changes}
        options, chat = StockOptions.of(stock), task_type == "chat"
        return {stock.title: StockTask(stock.title, config, options, chat=chat, model_name=manager.model_name)}
    except Exception as error:  # task code and data sets of all kinds: the other tasks of the command must go on
        # tenacity's `RetryError` says nothing by itself, and holds what went wrong.
        attempt = getattr(error, "last_attempt", None)
        cause = (attempt.exception() if attempt is not None else None) or error
        said = f"{stock.title}: {type(cause).__name__}: {cause}"
        refusal = error if isinstance(error, HedgeError) else ConfigError(said)
        if not hasattr(manager, "hedge_refused") or int(os.environ.get("WORLD_SIZE", "1")) > 1:
            raise refusal from cause
        logger.opt(exception=error).debug("where it came from")
        manager.hedge_refused[stock.title] = refusal
        return {}


def _without_empty_groups(tasks: Mapping[Any, Any]) -> _Tasks:
    pruned = {key: _without_empty_groups(task) if isinstance(task, Mapping) else task for key, task in tasks.items()}
    return {key: task for key, task in pruned.items() if task != {}}
