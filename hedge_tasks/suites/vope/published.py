"""Tables 1, 3 and 4 to 6 of the VOPE paper (arXiv 2511.13420), transcribed: every printed number is a row.

`published.csv` has Hal-D, Hal-I and Exp of Tables 1 and 3 as shares, and numbers of objects by relevance score. A
setting is the task; in Table 3 (LLaVA1.5 with greedy decoding) the task and the method of mitigation. That Tables 4, 5
and 6 are captioning, reasoning and writing, which the paper leaves open, follows from Table 1: only so do numbers and
shares agree, and they do for all models and tasks.
"""

from __future__ import annotations

from hedge_tasks.errors import unknown
from hedge_tasks.measures.published import read_published

PUBLISHED = read_published(__package__)

MODELS = tuple(dict.fromkeys(entry.model for entry in PUBLISHED))
"""The paper's eight models, in the order of Table 1."""

TASKS = ("captioning", "reasoning", "writing")

KINDS = ("hallucinated", "imagined")


def check_model(model: str) -> str:
    """Return the name itself.

    Raises:
        ConfigError: the paper has no such model; names the nearest one.
    """
    if model not in MODELS:
        raise unknown("model of the VOPE paper", model, MODELS)
    return model


def setting_of(task: str, method: str) -> str:
    """Return the setting of the paper's numbers of a task.

    Args:
        task: name of a task of ours.
        method: of mitigation; "" for none.

    Example:
        >>> setting_of("hedge_vope_official_writing", ""), setting_of("hedge_vope_captioning_relevance", "vcd")
        ('writing', 'captioning, vcd')
        >>> setting_of("mine", "")
        ''
    """
    of_paper = [name for name in TASKS if task.startswith("hedge_vope") and name in task.split("_")]
    return ", ".join(filter(None, (*of_paper[:1], method)))
