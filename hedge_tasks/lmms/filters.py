"""The filter of our tasks: answers clustered, then scored. Each in a YAML is one block of rows in the table.

filter_list:
  - name: nli_qa
    filter: [{function: hedge_score, backend: nli, with_question: true}]
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.detectors import registry
from hedge_tasks.detectors.pipeline import Scores
from hedge_tasks.detectors.scorer import Scorer, score_all
from hedge_tasks.errors import ConfigError, HedgeError, check_names
from hedge_tasks.io import options as check
from hedge_tasks.io.sources import model_option
from hedge_tasks.measures.sweep import usual_sizes
from hedge_tasks.runs.processes import gather

DETECTORS_VARIABLE = "HEDGE_DETECTORS"
"""Environment variable: names of detectors, with commas, that score besides those of the task's rows; or `all`."""

FILTERS_VARIABLE = "HEDGE_FILTERS"
"""Environment variable: the names of the filters to run, with commas; all of them where it is empty."""


def chosen_filters(filter_list: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the filters of a task's YAML that `HEDGE_FILTERS` names; all where it is empty.

    Raises:
        ConfigError: it names one that the task has not.
    """
    chosen = [name.strip() for name in os.environ.get(FILTERS_VARIABLE, "").split(",") if name.strip()]
    names = [entry["name"] for entry in filter_list]
    check_names(f"filter in {FILTERS_VARIABLE}", chosen, names)
    return [entry for entry in filter_list if not chosen or entry["name"] in chosen]


def chosen_detectors() -> list[str]:
    """Return the detectors that `HEDGE_DETECTORS` names; `all` are those that are not experimental.

    Raises:
        ConfigError: there is none of that name; names the nearest one.
    """
    names = ",".join(name for name in os.environ.get(DETECTORS_VARIABLE, "").split(",") if name.strip())
    try:
        return list(registry.named(names)) if names else []
    except ConfigError as error:
        raise ConfigError(f"{DETECTORS_VARIABLE}: {error}") from None


@dataclass(frozen=True)
class ScoredAnswers:
    """Output of a filter for one document: its clustered answers and their scores."""

    answers: AnswerSet
    scores: Scores

    def __str__(self) -> str:
        """One line of JSON: lmms-eval writes the text of a filtered response into its sample file."""
        facts = {"weighting": self.scores.weighting, "left_out": dict(self.scores.left_out)}
        return json.dumps({**self.answers.to_dict(), "scores": dict(self.scores), **facts}, ensure_ascii=False)


class HedgeFilter:
    """Answer sets (JSON) in, scored answers out.

    Args:
        backend: "exact", "embed" or "nli".
        with_question: put the question to each answer, for clustering only.
        alpha: weight of the clean-noisy gap in VASE.
        question_position: "before" each answer or "after" it.
        options: of the backend (`model`, `threshold`, `rule`, ...), checked here. `threshold: tuned|cross-fit|oracle`
            with `tuning: {...}` chooses the threshold of embed; see `hedge_tasks.detectors.thresholds.ThresholdChoice`.

    Attributes:
        scorer: clusters and scores; the task replaces it by one that knows more, such as the claims of the answers.
        keeps: whether the run keeps what models say of the answers, so that it can be scored again without them.

    Raises:
        ConfigError, ValueError: an option is unknown (names the nearest valid one) or makes no sense.
    """

    def __init__(
        self,
        backend: str = "",
        with_question: bool = False,
        alpha: float = 1.0,
        question_position: str = "before",
        **options: Any,
    ) -> None:
        check.flag("with_question", with_question)
        scoring: dict[str, Any] = {"with_question": with_question, "question_position": question_position}
        options |= model_option(backend)  # lmms-eval's command line has no options for filters
        self.scorer = Scorer.build(backend, backend, options, alpha=check.finite("alpha", alpha), **scoring)
        self.keeps = False
        # Only known when the answers are there. The very same object sits in every dump of the settings.
        self._chosen: dict[str, Any] = {}

    def settings(self) -> dict[str, Any]:
        """Return what can change a result."""
        return {**self.scorer.settings(), **({"chosen": self._chosen} if self.scorer.choice else {})}

    def apply(self, resps: Sequence[Sequence[str]], docs: object = None) -> list[ScoredAnswers]:
        scorer = self.scorer
        # A response comes as often as lmms-eval's --repeats says; they are all the same.
        answer_sets = [AnswerSet.from_json(resp[0]) for resp in resps]
        # The threshold, where it is chosen, is chosen once, on the documents of all processes.
        clustered, chosen = scorer.cluster_with_outcome(answer_sets, gather=gather)
        if chosen is not None:
            self._chosen.update(chosen.settings())
        if self.keeps:
            scorer.look_ahead(answer_sets, usual_sizes(min((len(a.clean) for a in answer_sets), default=0)))
        known: dict[str, Any] = {"alpha": scorer.alpha, "claims": scorer.claims, "inside": scorer.inside}
        scores = score_all(clustered, scorer.backend, scorer.detectors, **known)
        return [ScoredAnswers(*pair) for pair in zip(clustered, scores, strict=True)]


def filters_of(ensembles: Iterable[Any]) -> dict[str, HedgeFilter]:
    """Return our filters in lmms-eval's pipelines, by the name of the pipeline."""
    return {e.name: step for e in ensembles for step in e.filters if isinstance(step, HedgeFilter)}


def check_models(filters: Mapping[str, HedgeFilter]) -> None:
    """Fail now where the model of a clustering cannot be had, not after hours of sampling.

    Raises:
        HedgeError: one cannot; names the filters that can run without it.
    """
    faults: dict[str, HedgeError] = {}
    for name, step in filters.items():
        try:
            step.scorer.backend.check()
        except HedgeError as error:
            faults[name] = error
    for first in faults.values():
        runnable = ",".join(name for name in filters if name not in faults)
        hint = f" To run only the filters that can run, set {FILTERS_VARIABLE}={runnable}." if runnable else ""
        raise type(first)(f"{first}{hint}") from first
