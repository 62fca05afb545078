"""Numbers that papers print, in CSV files beside the evaluations, to be shown beside ours.

Columns: `table` (where in the paper), `model` (as the paper calls it), `setting` (which of a model's rows), `measure`,
`value` (on our scale). A file holds what its paper prints, misprints included, and no number of ours.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

from hedge_tasks.errors import ConfigError, unknown
from hedge_tasks.io.tables import parse_csv


@dataclass(frozen=True)
class Published:
    """One printed number.

    Attributes:
        table: where it stands, such as "Table 6" or "section 5.2".
        model: as the paper calls it.
        setting: which of a model's rows, in words of the evaluation; "" where there is one.
        measure: name of our row of the same meaning.
        value: on our scale.
    """

    table: str
    model: str
    setting: str
    measure: str
    value: float


@cache
def read_published(package: str) -> tuple[Published, ...]:
    """Read the numbers of an evaluation's paper, in the order of the file `published.csv` in its package.

    Args:
        package: such as "hedge_tasks.suites.medhallu".
    """
    text = (resources.files(package) / "published.csv").read_text("utf-8")
    rows = [row for _, row in parse_csv(text, f"{package}/published.csv")]
    return tuple(
        Published(row["table"], row["model"], row["setting"], row["measure"], float(row["value"])) for row in rows
    )


def names_given(entries: Sequence[str], models: Sequence[str]) -> dict[str, str]:
    """Read the entries of `--name MODEL=TEXT`: text by the paper's model.

    Raises:
        ConfigError: an entry is of another form, or the paper has no such model; names the nearest one.
    """
    names = {}
    for entry in entries:
        model, separator, text = entry.partition("=")
        if not separator or not text:
            raise ConfigError(
                f"--name: expected MODEL=TEXT, such as {next(iter(models), 'MODEL')}=my-copy, got {entry!r}"
            )
        if model not in models:
            raise unknown("model of the paper", model, models)
        names[model] = text
    return names


def model_of_paper(model: str, patterns: Mapping[str, str], names: Mapping[str, str]) -> str | None:
    """Return the paper's model that a run is of; None where it is none, or may be several.

    Args:
        model: what identifies the run's model.
        patterns: the paper's model -> regular expression of its name on the hub.
        names: the paper's model -> text in the name of the user's copy, which counts before the patterns.
    """
    own = [paper_model for paper_model, text in names.items() if text.lower() in model.lower()]
    others = {paper_model: pattern for paper_model, pattern in patterns.items() if paper_model not in names}
    matches = own or [name for name, pattern in others.items() if re.search(pattern, model, re.IGNORECASE)]
    return matches[0] if len(matches) == 1 else None
