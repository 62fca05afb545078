"""Choices of a run where the paper, its code and we differ: `hedge: {protocol: reference|paper}` in a task's YAML.

A protocol fills in what a YAML leaves open; a key that stands there is kept. Without one, ours is meant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hedge_tasks.errors import lookup

VARIABLE = "HEDGE_PROTOCOL"
"""Environment variable that takes the place of the YAML's protocol."""

_OPTUNA = {"search": "optuna", "trials": 20, "low": 0.8, "high": 0.99, "target": "se", "per_class": 1}


@dataclass(frozen=True)
class Protocol:
    """Settings of sampling and clustering that belong together.

    Attributes:
        sampling: of `SamplingPlan`.
        nli: options of the clustering `nli`.
        embed: options of the clustering `embed`: `threshold` and `tuning`.
        embed_with_question: what is otherwise where the question is put to the answers.
    """

    sampling: Mapping[str, Any] = field(default_factory=dict)
    nli: Mapping[str, Any] = field(default_factory=dict)
    embed: Mapping[str, Any] = field(default_factory=dict)
    embed_with_question: Mapping[str, Any] = field(default_factory=dict)

    def clustering(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """The options of a clustering with those that this protocol adds.

        Args:
            options: `backend`, `with_question` and whatever options are there; those stay.

        Example:
            >>> PROTOCOLS["paper"].clustering({"backend": "nli", "veto": False})
            {'rule': 'strict', 'veto': False, 'backend': 'nli'}
        """
        embed = {} if "threshold" in options else {**self.embed}
        if embed and options.get("with_question"):
            embed |= self.embed_with_question
        added = {"nli": self.nli, "embed": embed}.get(str(options.get("backend")), {})
        if isinstance(options.get("tuning"), Mapping):
            options = {**options, "tuning": {**added.get("tuning", {}), **options["tuning"]}}
        return {**added, **options}

    def pipelines(self, filter_list: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """A task's `filter_list` with what this protocol adds to its clusterings."""
        return [
            {
                **pipeline,
                "filter": [self.clustering(s) if s.get("function") == "hedge_score" else dict(s) for s in steps],
            }
            for pipeline in filter_list
            for steps in [pipeline["filter"]]
        ]


OURS = Protocol(embed={"threshold": "cross-fit"}, embed_with_question={"threshold": "label-free"})

PROTOCOLS = {
    # hedge-bench 0.1.2: `distort_image`, the server's own sampling defaults, `get_nli_labels`, and a threshold that
    # Optuna tunes on the documents that are reported.
    "reference": Protocol(
        sampling={"perturbation": "hedge", "decoding": "model"},
        nli={"rule": "relaxed", "veto": False, "max_characters": 200},
        embed={"threshold": "oracle", "tuning": _OPTUNA},
    ),
    # The text: perturbations of §4.4 always and in full, each model's default decoding (§4.3), mutual entailment with
    # contradiction filtering (§3.2), the question in front (§3.1.2), a threshold from a validation split (§5.3.2).
    "paper": Protocol(
        sampling={"perturbation": "hedge_paper", "decoding": "model"},
        nli={"rule": "strict", "veto": True},
        embed={"threshold": "tuned", "tuning": _OPTUNA},
    ),
}


def protocol_of(name: str | None) -> Protocol:
    """The protocol of this name; ours for None.

    Raises:
        ConfigError: there is none; names the nearest one.
    """
    return OURS if name is None else lookup(f"protocol ({VARIABLE}, hedge.protocol)", name, PROTOCOLS)
