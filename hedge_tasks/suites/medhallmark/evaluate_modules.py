"""Med-HallMark's measures of wording through the modules of `evaluate`, for comparison.

The task itself calls the libraries (`suites.medhallmark.wording`), so that no run depends on code from the hub.
The modules call the same libraries: ROUGE, BLEU and BERTScore are equal, to the digit. METEOR is nltk's in both; the
module finds sentences first, with nltk's `punkt_tab`, so that a full stop inside of a text is a token there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import evaluate

from hedge_tasks.errors import DataError, HedgeError, unknown
from hedge_tasks.suites.medhallmark import wording

__all__ = ["MODULES", "ModuleMissing", "wording_scores"]


class ModuleMissing(HedgeError):
    """A module of `evaluate` is neither on disk nor to be had from the hub."""


def _rouge(module: Any, answers: list[str], references: list[str], model: str) -> Mapping[str, list[float]]:
    kinds = ["rouge1", "rouge2", "rougeL"]
    scores = module.compute(predictions=answers, references=references, rouge_types=kinds, use_aggregator=False)
    return {f"{kind.lower()}_f1": [float(score) for score in scores[kind]] for kind in kinds}


def _bleu(module: Any, answers: list[str], references: list[str], model: str) -> Mapping[str, list[float]]:
    # One by one: of many answers it is a corpus's BLEU.
    pairs = zip(answers, references, strict=True)
    scores = [module.compute(predictions=[a], references=[[r]], use_effective_order=True)["score"] for a, r in pairs]
    return {"bleu": [float(score) / 100 for score in scores]}


def _meteor(module: Any, answers: list[str], references: list[str], model: str) -> Mapping[str, list[float]]:
    pairs = zip(answers, references, strict=True)
    return {"meteor": [float(module.compute(predictions=[a], references=[r])["meteor"]) for a, r in pairs]}


def _bertscore(module: Any, answers: list[str], references: list[str], model: str) -> Mapping[str, list[float]]:
    folder, layers = wording.bertscore_model(model)
    scores = module.compute(predictions=answers, references=references, model_type=folder, num_layers=layers)
    return {f"bertscore_{part}": scores[part] for part in ("precision", "recall", "f1")}


_Through = Callable[[Any, list[str], list[str], str], Mapping[str, list[float]]]

MODULES: Mapping[str, tuple[str, _Through]] = {
    "rouge": ("rouge", _rouge),
    "bleu": ("sacrebleu", _bleu),
    "meteor": ("meteor", _meteor),
    "bertscore": ("bertscore", _bertscore),
}
"""Measure -> evaluate's module, and how it is asked for what the task's rows are."""


def wording_scores(
    measure: str,
    answers: Sequence[str],
    references: Sequence[str],
    *,
    modules: str | Path | None = None,
    model: str = wording.DEFAULT_BERTSCORE,
) -> Mapping[str, list[float]]:
    """Return what a module of `evaluate` says of each answer, by the names of Med-HallMark's rows, between 0 and 1.

    `evaluate`'s ROUGE gives F1 alone.

    Args:
        measure: `rouge`, `bleu`, `meteor` or `bertscore`.
        answers, references: texts, as many of each.
        modules: folder with the modules' scripts (`rouge/rouge.py`, ...), such as `metrics` of a clone of `evaluate`.
            They are code, and run. None: the hub's, or what is in its cache.
        model: of BERTScore, a folder or a name.

    Raises:
        ConfigError: there is no such measure; names the nearest one.
        DataError: more answers than references, or fewer, or none.
        ModuleMissing: the module, its library or its data cannot be had; says why.
    """
    if measure not in MODULES:
        raise unknown("measure of wording", measure, MODULES)
    if not answers or len(answers) != len(references):
        raise DataError(f"{len(answers)} answers and {len(references)} references")
    name, through = MODULES[measure]
    try:
        module = evaluate.load(name if modules is None else str(Path(modules) / name), module_type="metric")
        return through(module, list(answers), list(references), model)
    except (OSError, ImportError, LookupError, wording.NotHere) as error:
        # ConnectionError and FileNotFoundError of the hub, a library that a script imports, nltk's data.
        reason = " ".join(str(error).split())[:300]
        raise ModuleMissing(f"evaluate's {name} cannot be used here ({type(error).__name__}: {reason})") from error
