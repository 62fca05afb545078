"""`hedge run`: lmms-eval with what it lacks around it.

All options are lmms-eval's. Names are checked before its libraries are loaded, what it will cost is said first, and in
the end what was found, where the report is, and an exit code that says whether it worked. lmms-eval itself is a process
of its own: it ends with 0 whatever failed.
"""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import entry_points
from itertools import pairwise
from pathlib import Path
from typing import Any

from hedge_tasks.cli.choices import RunsChoice
from hedge_tasks.cli.printing import typed
from hedge_tasks.cli.report import report
from hedge_tasks.cli.signatures import Words
from hedge_tasks.errors import ConfigError, HedgeError, check_names
from hedge_tasks.io.commands import PROBLEMS_FOUND, say


def run(words: Words, *, price: float | None = None) -> tuple[str, int]:
    """Run lmms-eval: checked before, with the price, the finding, and a true exit code.

    All other options are lmms-eval's: --model, --model_args, --tasks, --output_path, --limit, ...
    The exit code is 0 where it has written results, 130 where Ctrl-C ended it, else 1.

    Args:
        price: Of a million tokens that are generated.
    """
    from loguru import logger

    options = _checked(words)
    folder = Path(options.get("output_path", "results"))
    command = [*words, *([] if "output_path" in options else ["--output_path", str(folder)])]
    for line in _costs(options, price):
        say(line, sys.stderr)
    start = time.time() - 1
    with subprocess.Popen([sys.executable, "-m", "lmms_eval", *command], start_new_session=True) as process:
        try:
            code = process.wait()
        except KeyboardInterrupt:
            process.terminate()
            process.wait()
            again = typed("run", *command)
            raise KeyboardInterrupt(f"{_kept(folder)}, and this goes on from there: {again}") from None
    results, runs = (
        sorted(file for file in folder.rglob(pattern) if file.stat().st_mtime >= start)
        for pattern in ("*_results.json", "run-*.jsonl")
    )
    if code or not results:
        say(f"hedge: lmms-eval wrote no results into {folder} (what failed stands above); {_kept(folder)}", sys.stderr)
        return "", PROBLEMS_FOUND
    if runs:
        logger.disable("hedge_tasks.detectors")  # what the evaluation has said already
        report(RunsChoice(runs, trust_run=True), out=folder / "report.html")
    return f"report: {folder / 'report.html'}" if runs else "", 0


def _checked(words: Sequence[str]) -> dict[str, str]:
    """Return the options of a command line of lmms-eval by their names, after looking at all names in them."""
    texts = (str(node.value) for node in _constants("__main__.py", ast.Constant))
    valid = {text for text in texts if re.fullmatch(r"--[a-z_-]+", text)}
    options: dict[str, str] = {}
    for word, following in pairwise([*words, "--"]):
        if word.startswith("--"):
            option, equals, value = word.partition("=")
            check_names("option", [option], valid)
            options[option.removeprefix("--")] = value if equals else "" if following.startswith("--") else following
    if "config" not in options:
        _check_names(options)
    return options


def _check_names(options: Mapping[str, str]) -> None:
    from hedge_tasks.lmms.catalogue import list_tasks
    from hedge_tasks.lmms.own_task.names import task_names
    from hedge_tasks.lmms.stock.names import PREFIX
    from hedge_tasks.models import MODELS

    if not options.get("tasks"):
        raise ConfigError("--tasks: say which, such as --tasks hedge_demo (`hedge list` has ours)")
    if "model" in options and len(entry_points(group="lmms_eval.models")) == 1:  # what others bring only loading tells
        tables = _constants("models/__init__.py", ast.Dict)
        own: list[Any] = [key.value for table in tables for key in table.keys if isinstance(key, ast.Constant)]
        check_names("model", [options["model"]], {*MODELS, *own})
    names = [task.removeprefix(PREFIX) for task in options["tasks"].split(",") if not Path(task).exists()]
    if names:
        included = map(Path, filter(None, [options.get("include_path")]))
        check_names("task", names, {*task_names(*included), *(task.task for task in list_tasks())})


def _constants(path: str, kind: type[ast.AST]) -> Iterator[Any]:
    """Yield the nodes of a kind in a file of lmms-eval, which is not imported for it."""
    spec: Any = importlib.util.find_spec("lmms_eval")
    text = Path(spec.submodule_search_locations[0], path).read_text("utf-8")
    return (node for node in ast.walk(ast.parse(text)) if isinstance(node, kind))


def _costs(options: Mapping[str, str], price: float | None) -> Iterator[str]:
    """Yield a line for each of our tasks: requests and tokens at most, and what they cost."""
    from hedge_tasks.io.options import finite, pairs, scalar
    from hedge_tasks.lmms.catalogue import list_tasks
    from hedge_tasks.numbers import Format
    from hedge_tasks.runs.trust import read_task
    from hedge_tasks.sampling.plan import SamplingPlan

    settings = pairs("--gen_kwargs", options.get("gen_kwargs", ""))
    limit = finite("--limit", scalar(options.get("limit") or "-1"))
    for task in list_tasks():
        if task.task not in options.get("tasks", "").split(",") or task.group or task.documents is None:
            continue
        own = read_task(Path(task.yaml)).get("generation_kwargs") or {}
        try:
            plan = SamplingPlan.from_generation_kwargs({**own, **settings})
        except HedgeError as error:
            raise ConfigError(f"--gen_kwargs: {error}") from None
        limited = int(limit * task.documents if limit < 1 else limit)
        documents = task.documents if limit < 0 else min(task.documents, limited)
        requests = documents * (1 + plan.n + plan.noisy_count)
        tokens = requests * plan.max_new_tokens
        money = "" if price is None else f", at most {Format(digits=2)(tokens * price / 1e6)} to pay for them"
        yield f"{task.task}: {documents} documents, {requests} requests, at most {tokens} tokens to generate{money}"


def _kept(folder: Path) -> str:
    from hedge_tasks.sampling import archive

    try:
        return f"{len(archive.open_store(folder))} answers are kept in {folder}"
    except (HedgeError, OSError):
        return "no answer was kept yet"
