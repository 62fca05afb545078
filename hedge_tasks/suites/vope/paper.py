"""VOPE's tables out of finished runs: a row a run, contrasted ones (Tables 2 and 3) among them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hedge_tasks.errors import DataError
from hedge_tasks.runs.health import mitigation_line
from hedge_tasks.runs.run_files import Run
from hedge_tasks.sampling.plan import CONTRAST
from hedge_tasks.suites.papers import Paper, PaperRow, numbers_in
from hedge_tasks.suites.vope import measures, relevance

_CONTRASTED = re.compile(r"\b(?:contrast|decoding)=")
_DECODING = re.compile(r"(?:, |\|)(?:contrast|decoding|alpha|beta|noise_step|layers|first_layer)=[^,|)]*")
"""Arguments of `hedge_hf` that say how logits are contrasted."""

PLAIN = "plain"
"""Decoding that contrasts nothing."""

TASKS = ("captioning", "reasoning", "writing")

MEASURES = (*measures.MEASURES, *relevance.MEASURES)


def rows_of(runs: Sequence[Run]) -> Iterator[PaperRow]:
    """Yield a row for every run of VOPE: by model and task, plain decoding first.

    Raises:
        DataError: a run does not say how its logits were contrasted.
    """
    rows = [_row(run) for run in runs if any("objects" in verdict for verdict in run.verdicts.values())]
    yield from (row for _, row in sorted(rows, key=lambda pair: pair[0]))


def _row(run: Run) -> tuple[tuple[Any, ...], PaperRow]:
    """Return a run's row, and what it is sorted by."""
    method, model = _method(run), plain_model(run.model)
    read = replace(run, columns={answers.id: {"truth": answers.reference or ""} for answers in run.answer_sets})
    between = method.get("name") == CONTRAST
    alpha = float(method["alpha"]) if between else 0.0
    decoding = f"alpha {alpha:g}" if between else mitigation_line({"method": method}) if method else PLAIN
    numbers = numbers_in(read, MEASURES)
    about = {"task": run.task, "decoding": decoding or PLAIN}
    setting = setting_of(run.task, str(method.get("name", "")))
    row = PaperRow(model, setting, numbers, about, {"stories": len(run.answer_sets)})
    return (model, run.task, decoding != PLAIN, alpha, decoding), row


def _method(run: Run) -> Mapping[str, Any]:
    """Return how logits were contrasted, as the run records it; empty where they were not.

    Raises:
        DataError: the model's arguments say that they were, and there is no record.
    """
    sampled = run.settings.get("sampled")
    decoding = sampled.get("decoding") if isinstance(sampled, Mapping) else None
    method = decoding.get("method") if isinstance(decoding, Mapping) else None
    if isinstance(method, Mapping) and isinstance(method.get("name"), str):
        return method
    if plain_model(run.model) != run.model:
        raise DataError(f"{run.title}: the run has no record of how its logits were contrasted; sample it once more")
    return {}


def setting_of(task: str, method: str) -> str:
    """Return the setting of the paper's numbers of a task.

    Args:
        task: name of a task of ours.
        method: of mitigation; "" for none.

    Example:
        >>> setting_of("hedge_vope_official_writing", ""), setting_of("hedge_vope_captioning", "vcd")
        ('writing', 'captioning, vcd')
        >>> setting_of("mine", "")
        ''
    """
    of_paper = [name for name in TASKS if task.startswith("hedge_vope") and name in task.split("_")]
    return ", ".join(filter(None, (*of_paper[:1], method)))


PAPER = Paper("vope", __package__, rows_of, MEASURES)


def plain_model(model: str) -> str:
    """Return the name of a run's model without its arguments about decoding.

    Example:
        >>> plain_model("Q/Q (hedge_hf, alpha=0.5, decoding=vcd, dtype=bfloat16)")
        'Q/Q (hedge_hf, dtype=bfloat16)'
    """
    return _DECODING.sub("", model) if _CONTRASTED.search(model) else model
