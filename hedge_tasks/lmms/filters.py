"""lmms-eval filters: cluster, then score. One pipeline of the two in the YAML is one block of rows in the table.

filter_list:
  - name: nli_qa
    filter:
      - {function: hedge_cluster, backend: nli, with_question: true}
      - {function: hedge_score, alpha: 1.0}
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from hedge_tasks.clustering import ClusteringBackend
from hedge_tasks.clustering.chosen import chosen_models
from hedge_tasks.clustering.model_outputs import ModelOutputs
from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.detectors import registry
from hedge_tasks.detectors.pipeline import USUAL, Scores
from hedge_tasks.detectors.scorer import InsideSource, Scorer, score_all
from hedge_tasks.detectors.units import UnitEvidence
from hedge_tasks.errors import ConfigError, unknown
from hedge_tasks.io import options as check
from hedge_tasks.measures.sweep import usual_sizes
from hedge_tasks.runs.processes import gather

DETECTORS_VARIABLE = "HEDGE_DETECTORS"
"""Environment variable: names of detectors, with commas, that score besides those of the task's rows; or `all`."""

FILTERS_VARIABLE = "HEDGE_FILTERS"
"""Environment variable: the names of the filter pipelines to run, with commas; all of them where it is empty."""


def chosen_filters(filter_list: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the pipelines of a task's YAML that `HEDGE_FILTERS` names; all where it is empty.

    Raises:
        ConfigError: it names one that the task has not.
    """
    chosen = [name.strip() for name in os.environ.get(FILTERS_VARIABLE, "").split(",") if name.strip()]
    names = [pipeline["name"] for pipeline in filter_list]
    for name in chosen:
        if name not in names:
            raise unknown(f"filter in {FILTERS_VARIABLE}", name, names)
    return [pipeline for pipeline in filter_list if not chosen or pipeline["name"] in chosen]


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


_Step = TypeVar("_Step")


def steps_of(ensembles: Iterable[Any], kind: type[_Step]) -> Iterator[tuple[str, _Step]]:
    """Return the steps of one kind in lmms-eval's filter pipelines, each with the name of its pipeline."""
    for ensemble in ensembles:
        for step in ensemble.filters:
            if isinstance(step, kind):
                yield ensemble.name, step


class ClusterFilter:
    """Answer sets (JSON) in, clustered answer sets out.

    Args:
        backend: "exact", "embed" or "nli".
        with_question: put the question to each answer, for clustering only.
        question_position: "before" each answer or "after" it.
        options: of the backend (`model`, `threshold`, `rule`, ...), checked here. `threshold: tuned|cross-fit|oracle`
            with `tuning: {...}` chooses the threshold of embed; see `hedge_tasks.detectors.thresholds.ThresholdChoice`.

    Raises:
        ConfigError, ValueError: an option is unknown (names the nearest valid one) or makes no sense.
    """

    def __init__(
        self, backend: str = "", with_question: bool = False, question_position: str = "before", **options: Any
    ) -> None:
        check.flag("with_question", with_question)
        options |= chosen_models(backend)  # lmms-eval's command line has no options for filters
        question_options: dict[str, Any] = {"with_question": with_question, "question_position": question_position}
        self.scorer = Scorer.build(backend, backend, options, **question_options)
        # Only known when the answers are there. The very same object sits in every dump of the settings.
        self._chosen: dict[str, Any] = {}
        self._keeps = False

    def keep(self, outputs: ModelOutputs) -> None:
        """Keep what models say of the answers, so that the run can be scored again without them."""
        self.scorer, self._keeps = self.scorer.with_outputs(outputs), True

    def check(self) -> None:
        """Raise now if the backend's model cannot be had, rather than after hours of sampling."""
        self.scorer.backend.check()

    def settings(self) -> dict[str, Any]:
        settings = {key: value for key, value in self.scorer.settings().items() if key != "alpha"}
        return {**settings, "chosen": self._chosen} if self.scorer.choice else settings

    def apply(self, resps: Sequence[Sequence[str]], docs: object = None) -> list[AnswerSet]:
        # A response comes as often as lmms-eval's --repeats says; they are all the same.
        answer_sets = [AnswerSet.from_json(resp[0]) for resp in resps]
        # The threshold, where it is chosen, is chosen once, on the documents of all processes.
        clustered, chosen = self.scorer.cluster_with_outcome(answer_sets, gather=gather)
        if chosen is not None:
            self._chosen.update(chosen.settings())
        if self._keeps:
            fewest = min((len(answers.clean) for answers in answer_sets), default=0)
            self.scorer.look_ahead(answer_sets, usual_sizes(fewest))
        return clustered


@dataclass(frozen=True)
class ScoredAnswers:
    """Output of a pipeline for one document: its clustered answers and their scores."""

    answers: AnswerSet
    scores: Scores

    def __str__(self) -> str:
        """One line of JSON: lmms-eval writes the text of a filtered response into its sample file."""
        score_facts = {
            "scores": dict(self.scores),
            "weighting": self.scores.weighting,
            "left_out": dict(self.scores.left_out),
        }
        return json.dumps({**self.answers.to_dict(), **score_facts}, ensure_ascii=False)


class ScoreFilter:
    """Clustered answer sets in, scored answers out."""

    def __init__(self, alpha: float = 1.0, **options: Any) -> None:
        for key in options:
            raise unknown("option of hedge_score", key, ["alpha"])
        self.alpha = check.finite("alpha", alpha)
        self._backend: ClusteringBackend | None = None
        self._further: tuple[str, ...] = ()
        self._claims: Mapping[str, UnitEvidence] = {}
        self._inside: Callable[[Sequence[AnswerSet]], InsideSource] | None = None

    def use_claims(self, claims: Mapping[str, UnitEvidence]) -> None:
        """Score with the evidence of the answers' claims, by their id."""
        self._claims = claims

    def serve(self, detectors: Sequence[str], backend: ClusteringBackend | None) -> None:
        """Score with further detectors besides the usual ones.

        Args:
            detectors: their names.
            backend: that the answers are clustered with.
        """
        self._further = tuple(name for name in dict.fromkeys(detectors) if name not in USUAL)
        self._backend = backend

    def look_inside(self, source: Callable[[Sequence[AnswerSet]], InsideSource]) -> None:
        """Let detectors see what was kept from inside the model.

        Args:
            source: answers -> where their tensors are read.
        """
        self._inside = source

    def settings(self) -> dict[str, Any]:
        return {"alpha": self.alpha, **({"detectors": list(self._further)} if self._further else {})}

    def apply(self, resps: Sequence[AnswerSet], docs: object = None) -> list[ScoredAnswers]:
        settings: dict[str, Any] = {"alpha": self.alpha, "claims": lambda: self._claims}
        settings["inside"] = self._inside(resps) if self._inside else None
        scores = score_all(resps, self._backend, (*USUAL, *self._further), **settings)
        return [ScoredAnswers(*pair) for pair in zip(resps, scores, strict=True)]


def settings_of(steps: Iterable[Any]) -> dict[str, Any]:
    """Return what of a pipeline's steps can change a result."""
    own = [step.settings() for step in steps if isinstance(step, (ClusterFilter, ScoreFilter))]
    return {key: value for settings in own for key, value in settings.items()}


FILTERS = {"hedge_cluster": ClusterFilter, "hedge_score": ScoreFilter}
"""Names under which the YAML asks for them."""
