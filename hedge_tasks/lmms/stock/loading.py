"""From names to tasks: wildcards, groups and tags behind `hedge:`, and the key `hedge_ize` of a YAML.

Three methods of lmms-eval's `TaskManager` come through here (`hedge_tasks.lmms.plugin` wraps them). Its index of names
stays as it is, and every other name goes its own way.
"""

from __future__ import annotations

import fnmatch
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from loguru import logger

from hedge_tasks.errors import ConfigError, HedgeError, unknown
from hedge_tasks.lmms.stock.faults import cause_of
from hedge_tasks.lmms.stock.names import MAPPING, PREFIX, StockName, is_ours
from hedge_tasks.lmms.stock.options import StockOptions

_CHANGES = ("metric_list", "filter_list", "metadata", "task_alias")
"""Keys that a YAML with `hedge_ize` may have besides; the rest is the stock task's."""

_LABELS = ("task", MAPPING, "tag")

_Tasks = dict[Any, Any]


def match(manager: Any, task_list: str | Sequence[str], original: Callable[[Any, Any], list[str]]) -> list[str]:
    """`TaskManager.match_tasks`: which tasks the command line means.

    A name comes back as it was given, or the command line takes it for unknown; a pattern as the tasks that it fits.

    Raises:
        ConfigError: a task behind `hedge:` is unknown (names the nearest one), or a pattern fits none.
    """
    names = [task_list] if isinstance(task_list, str) else list(task_list)
    others = [name for name in names if not is_ours(name)]
    matched = list(original(manager, others)) if others else []
    parsed = {name: StockName.parse(name) for name in names if is_ours(name)}
    for name, stock in parsed.items():
        if not stock.is_pattern:
            _index_entry(manager, stock.task)
            matched.append(name)
    singly = {stock.task for stock in parsed.values()}
    for stock in parsed.values():
        if stock.is_pattern:
            fitting = fnmatch.filter(manager.all_subtasks, stock.task)
            if not fitting:
                raise ConfigError(f"{stock.title}: no task of lmms-eval has such a name")
            matched += [
                name for task in fitting if task not in singly and (name := stock.for_task(task)) not in matched
            ]
    return matched


def load_all(manager: Any, names: Any, load: Callable[[], _Tasks]) -> _Tasks:
    """`TaskManager.load_task_or_group`: what a command asks for, less what is refused.

    A refused task is left out with an error in the log, and the others of the command run. Where several processes
    evaluate together it ends the command instead: they must agree on the tasks.

    Raises:
        ConfigError: nothing is left, or a task is asked for twice.
    """
    stock_names = [
        StockName.parse(name).title for name in ([names] if isinstance(names, str) else names) if is_ours(name)
    ]
    for name, count in Counter(stock_names).items():
        if count > 1:
            raise ConfigError(f"{name} is asked for {count} times; {MAPPING} in a YAML gives it another name as well")
    refused: dict[str, Exception] = {}
    manager.hedge_refused = refused
    try:
        loaded = load()
    finally:
        del manager.hedge_refused
    if not refused:
        return loaded
    loaded = _without_empty_groups(loaded)
    if not _count(loaded):
        first = next(iter(refused.values()))
        if len(refused) == 1:
            raise first
        raise ConfigError("no task is left:\n" + "\n".join(str(error) for error in refused.values())) from first
    for name, error in refused.items():
        logger.error("{} is left out of this run. {}", name, error)
    return loaded


def load_one(
    manager: Any, name_or_config: Any, task_type: str, parent: Any, update: Mapping[str, Any] | None
) -> _Tasks | None:
    """`TaskManager._load_individual_task_or_group`: the task, or all of a group or tag; None for what is not ours."""
    name = name_or_config.get("task") if isinstance(name_or_config, Mapping) else name_or_config
    if not isinstance(name, str):
        return None
    own = (
        {key: value for key, value in name_or_config.items() if key != "task"}
        if isinstance(name_or_config, Mapping)
        else {}
    )
    changes = {**own, **(update or {})}
    if is_ours(name):
        return _load_named(manager, StockName.parse(name), task_type, parent, changes)
    config = {**_read_plainly(manager, name), **changes}
    if MAPPING not in config:
        return None
    return _guarded(manager, name, lambda: {name: _of_mapping(manager, name, changes, task_type)})


def _load_named(manager: Any, stock: StockName, task_type: str, parent: Any, changes: Mapping[str, Any]) -> _Tasks:
    entry = _index_entry(manager, stock.task)
    if entry["type"] == "tag":
        return _load_members(manager, [stock.for_task(task) for task in entry["task"]], task_type, changes)
    if entry["type"] == "group":
        return _load_group(manager, stock, entry, task_type, changes)
    key = _numbered(manager, stock.title, parent)
    return _guarded(
        manager,
        key,
        lambda: {
            key: _build(
                manager,
                key,
                {**manager._get_config(stock.task), **changes},
                StockOptions.from_mapping(stock.options, stock.title),
                task_type,
                {},
            )
        },
    )


def _load_group(
    manager: Any, stock: StockName, entry: Mapping[str, Any], task_type: str, changes: Mapping[str, Any]
) -> _Tasks:
    """Return the group under its name with `hedge:` in front, its members likewise; lmms-eval itself fills its rows."""
    config = {**(manager._get_config(stock.task) or {"task": entry["task"]}), **changes}
    group = {**config, "group": stock.title, "task": [_prefixed(member, stock) for member in config["task"]]}
    return manager._load_individual_task_or_group(group, task_type=task_type)


def _prefixed(member: Any, stock: StockName) -> Any:
    if isinstance(member, str):
        return stock.for_task(member)
    inner = member["task"]
    if isinstance(inner, str):
        return {**member, "task": stock.for_task(inner)}
    return {**member, "group": PREFIX + member["group"], "task": [_prefixed(nested, stock) for nested in inner]}


def _load_members(manager: Any, names: Sequence[str], task_type: str, changes: Mapping[str, Any]) -> _Tasks:
    loaded: _Tasks = {}
    for name in names:
        loaded |= manager._load_individual_task_or_group(name, task_type=task_type, update_config=dict(changes) or None)
    return loaded


def _of_mapping(manager: Any, name: str, changes: Mapping[str, Any], task_type: str) -> Any:
    """Return the task of a YAML with `hedge_ize`."""
    config = {**(manager._get_config(name) if name in manager.task_index else {}), **changes}
    mapping = config[MAPPING]
    if not isinstance(mapping, Mapping) or not isinstance(mapping.get("task"), str):
        raise ConfigError(f"{name}: {MAPPING} is a mapping with 'task', the name of a task of lmms-eval")
    for key in config:
        if key not in (*_CHANGES, *_LABELS):
            raise unknown(f"key beside {MAPPING} in {name}", key, (*_CHANGES, *_LABELS))
    stock = mapping["task"]
    if _index_entry(manager, stock)["type"] in ("group", "tag"):
        raise ConfigError(f"{name}: {stock} is a group; {MAPPING} takes one task")
    if MAPPING in _read_plainly(manager, stock):
        raise ConfigError(f"{name}: {stock} is itself made with {MAPPING}; name the task of lmms-eval")
    options = StockOptions.from_mapping({key: value for key, value in mapping.items() if key != "task"}, name)
    own = {key: config[key] for key in _CHANGES if key in config}
    return _build(manager, name, manager._get_config(stock), options, task_type, own)


def _build(
    manager: Any,
    name: str,
    config: Mapping[str, Any],
    options: StockOptions,
    task_type: str,
    changes: Mapping[str, Any],
) -> Any:
    from hedge_tasks.lmms.stock.task import StockTask

    return StockTask(name, config, options, chat=task_type == "chat", model_name=manager.model_name, changes=changes)


def _guarded(manager: Any, name: str, build: Callable[[], _Tasks]) -> _Tasks:
    """Return what is built, or nothing where it is refused and the command has somewhere to keep the reason."""
    refused = getattr(manager, "hedge_refused", None)
    if refused is None or int(os.environ.get("WORLD_SIZE", "1")) > 1:
        return build()
    try:
        return build()
    except HedgeError as error:
        refused[name] = error
    except Exception as error:  # task code and data sets of all kinds: the other tasks of the command must go on
        cause = cause_of(error)
        logger.opt(exception=error).debug("where it came from")
        refused[name] = ConfigError(f"{name}: {type(cause).__name__}: {cause}")
        refused[name].__cause__ = cause
    return {}


def _index_entry(manager: Any, task: str) -> Mapping[str, Any]:
    if task not in manager.task_index:
        raise unknown("task of lmms-eval", task, manager.all_tasks)
    entry: Mapping[str, Any] = manager.task_index[task]
    return entry


def _read_plainly(manager: Any, name: str) -> Mapping[str, Any]:
    """Return the YAML of an indexed task without its functions; {} for what is none."""
    entry = manager.task_index.get(name)
    if entry is None or entry["type"] != "task" or entry["yaml_path"] == -1:
        return {}
    from lmms_eval.utils import load_yaml_config

    config: Mapping[str, Any] = load_yaml_config(entry["yaml_path"], mode="simple")
    return config


def _numbered(manager: Any, name: str, parent: Any) -> str:
    """Return the name, with a number where a group has the same task twice, as lmms-eval counts them."""
    if parent is None:
        return name
    siblings = manager.task_group_map[parent]
    count = siblings.count(name)
    siblings.append(name)
    return f"{name}-{count}" if count else name


def _count(tasks: Mapping[Any, Any]) -> int:
    return sum(_count(task) if isinstance(task, Mapping) else 1 for task in tasks.values())


def _without_empty_groups(tasks: Mapping[Any, Any]) -> _Tasks:
    pruned = {key: _without_empty_groups(task) if isinstance(task, Mapping) else task for key, task in tasks.items()}
    return {key: task for key, task in pruned.items() if not (isinstance(task, Mapping) and not task)}
