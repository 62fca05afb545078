"""The claims of a task's answers: the key `claims` of `hedge:`, and their scores once all answers are there.

hedge:
  claims: {unit: sentence, support: nli}

Each process asks about its own answers; blind baselines and numbers are of the answers of all.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from loguru import logger

from hedge_tasks.claims.decomposition import Decomposed, Decomposition, build_decomposition, decompose
from hedge_tasks.claims.entailment import Entailment, build_entailment
from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.errors import ConfigError, HedgeError
from hedge_tasks.io import options
from hedge_tasks.io.records import Settings
from hedge_tasks.io.sources import model_option
from hedge_tasks.judging import Case, Judge, check_judge, keep_labels
from hedge_tasks.judging.config import judge_from
from hedge_tasks.runs.claim_labels import check_references, judged_spans
from hedge_tasks.runs.claims import ScoredClaims, inquiry, score_claims
from hedge_tasks.runs.processes import gather, is_first, together
from hedge_tasks.runs.run_files import Run
from hedge_tasks.runs.support import Support, SupportPrice

VARIABLE = "HEDGE_CLAIMS"
"""Environment variable: the support in place of the YAML's (`words`, `judge:model=...,url=...`), or `off`."""

OFF = "off"


class _Config(Settings):
    """The key `claims` of `hedge:`; see `TaskClaims`."""

    unit: Any = "sentence"
    support: Any = "nli"
    judge: Any = None
    silent: Literal["unlabelled", "hallucinated"] = "unlabelled"
    errors: Literal["all", "major", "minor"] = "all"


@dataclass
class TaskClaims:
    """How the claims of a task's answers are found, supported and labelled.

    Attributes:
        unit, engine: decomposition and entailment.
        judge: of every claim; None where labels come with the verdicts on the answers, or not at all.
        labels: which labels count, `silent` and `errors` of `hedge_tasks.claims.labels.label_of`.
    """

    unit: Decomposition
    engine: Entailment
    judge: Judge | None
    labels: Mapping[str, str]
    _decomposed: Sequence[Decomposed] | None = field(default=None, repr=False)

    @classmethod
    def from_config(cls, config: object, task: str) -> TaskClaims | None:
        """Build from the key `claims` of a task's YAML; None without one, or where the environment says `off`.

        Raises:
            ConfigError: names the task and what is wrong with a key or value.
        """
        named = os.environ.get(VARIABLE, "").strip()
        if config is None or named == OFF:
            return None
        try:
            read = _Config.read(config)
            support = options.named(VARIABLE, named) if named else options.named("support", read.support)
            return cls(
                build_decomposition(**options.named("unit", read.unit)),
                build_entailment(**support | model_option(support["name"])),
                judge_from(read.judge) if read.judge else None,
                read.model_dump(include={"silent", "errors"}),
            )
        except ConfigError as error:
            raise ConfigError(f"{task}: hedge.claims: {error}") from None

    def check(self, have_images: bool) -> None:
        """Fail now where it can be known that a model or judge will not work.

        Raises:
            HedgeError: what is missing.
        """
        try:
            self.engine.check()
        except HedgeError as error:
            raise type(error)(f"{error} To leave claims out, set {VARIABLE}={OFF}.") from error
        if self.judge is not None:
            check_judge(self.judge, have_images)

    def settings(self) -> dict[str, Any]:
        """Return what decides the numbers."""
        judge = None if self.judge is None else self.judge.settings()
        return {"asked": self.unit.settings() | self.engine.settings(), "labels": {"judge": judge, **self.labels}}

    def judged(
        self, answer_sets: Sequence[AnswerSet], cases: Mapping[str, Case], labels: Any
    ) -> dict[str, list[dict[str, Any]]]:
        """Return the judge's labelled spans by the id of each answer of this process; empty without a judge of claims.

        Args:
            cases: by id what a judge sees of an answer.
            labels: folder in which a judge keeps its replies; None for none.

        Raises:
            HedgeError: no answer of any process has a reference, or the judge fails in one of them.
        """
        decomposed = self._decomposed = together(lambda: decompose(answer_sets, self.unit))
        judge = self.judge
        if judge is None:
            return {}
        if has_reference := gather([bool(answers.reference) for answers in answer_sets]):
            check_references(has_reference)
        together(lambda: keep_labels(judge, labels))
        spans = together(lambda: judged_spans(answer_sets, decomposed, judge, cases) if answer_sets else {})
        return {id: [span.to_dict() for span in answer_spans] for id, answer_spans in spans.items()}

    def score(self, own: Sequence[AnswerSet], run: Run, detectors: Sequence[str]) -> tuple[Support, ScoredClaims]:
        """Ask about the claims of this process's answers, join those of all processes, and score them.

        Args:
            own: answers of this process, those that `judged` has seen.
            run: answers and verdicts of all processes.
            detectors: of claims, whose scores the rows need.
        """
        among, known = run.answer_sets, self._decomposed
        queries = together(lambda: inquiry(own, self.unit, among=among, decomposed=known))
        sources = gather([together(lambda: queries.source(self.engine))])
        source = sources[0].replaced(price=SupportPrice.of_all([s.price for s in sources]))
        if is_first():
            logger.info("{}: {}", run.task, source.price)
        supported = gather([*together(lambda: queries.ask(self.engine)).answers.items()])
        support = Support(source=source, answers=dict(supported))
        return support, score_claims(run, support, detectors)

    @property
    def why_unlabelled(self) -> str:
        """Why claims may have no labels."""
        if self.judge is not None:
            return f"the judge of claims, {self.judge.name}, could not tell"
        return "the judge of the answers labels none of their claims; hedge.claims.judge names one, or `hedge claims`"


def switched_off(task: str, row: str) -> bool:
    """Return whether the environment switches claims off, so that a row about them is left out of the table."""
    off = os.environ.get(VARIABLE, "").strip() == OFF
    if off and is_first():
        logger.info("{}: without {}: {}={}", task, row, VARIABLE, OFF)
    return off
