"""Results of a task after sampling: facts for lmms-eval's results file, and the run file."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from lmms_eval.api.instance import Instance
from loguru import logger

from hedge_tasks.clustering.model_outputs import ModelOutputs
from hedge_tasks.data.answers import AnswerSet, FailedDocument, Unaskable
from hedge_tasks.data.splits import DATA_FILES
from hedge_tasks.errors import DrawsFailed
from hedge_tasks.judging import Case, Judge, Verdict, verdict_record
from hedge_tasks.lmms.filters import ClusterFilter, ScoredAnswers, ScoreFilter, steps_of
from hedge_tasks.lmms.outcome import Everything, report_outcome, run_of
from hedge_tasks.lmms.settings import DocumentSettings
from hedge_tasks.runs.claim_labels import CLAIMS
from hedge_tasks.runs.evidence import KeptEvidence
from hedge_tasks.runs.processes import gather, is_first
from hedge_tasks.runs.run_files import Run, save_run
from hedge_tasks.sampling.plan import SamplingPlan
from hedge_tasks.sampling.prompts import Prompt

_NO_ENTROPY = 1e-9  # nats; but for rounding it is 0


@dataclass
class Results:
    """Findings of a task after sampling.

    Attributes:
        verdicts: by document id, the record of the verdict.
        failed: documents that are left out, each with its reason.
        outcome: facts for the results file. The very same object sits in every dump of the configuration, so that
            lmms-eval writes what comes later into its results file.
        cost: seconds and memory of each stage; like the outcome the very object that is in every dump.
    """

    verdicts: dict[str, dict[str, Any]] = field(default_factory=dict)
    failed: list[dict[str, str]] = field(default_factory=list)
    outcome: dict[str, Any] = field(default_factory=dict)
    cost: dict[str, Any] = field(default_factory=dict)

    def note(self, task: str, name: str, make: Callable[[], Mapping[str, Any]]) -> None:
        """Record facts that the answers do not depend on: one that fails, or that no file can hold, costs no run.

        Args:
            name: of the facts, under which a failure stands among `missing`.
            make: must not gather.
        """
        try:
            facts = make()
            json.dumps(facts)
        except Exception as error:  # whatever it is, the answers are paid for
            facts = {"missing": {**self.outcome.get("missing", {}), name: f"{type(error).__name__}: {error}"}}
            logger.warning("{}: the run is kept without its {} ({!r})", task, name, error)
        self.outcome.update(facts)

    def note_sampling(self, reports: Sequence[Mapping[str, Any] | None]) -> None:
        """Record how the model behaved: decoding sent, findings of the probe, use of the picture."""
        every_report = [report for of_rank in gather([[r for r in reports if r]]) for report in of_rank]
        if every_report:
            self.outcome["sampled"] = every_report[0]

    def note_failures(self, task: str, failed: list[FailedDocument], n_here: int, plan: SamplingPlan) -> None:
        """Record the documents that are left out, of all processes.

        Args:
            n_here: number of documents of this process.

        Raises:
            DrawsFailed: together they are more than the plan allows.
        """
        everywhere = gather(failed)
        self.failed = [{"id": f.id, "reason": str(f.reason)} for f in everywhere]
        n_documents = sum(gather([n_here]))
        n_lost = sum(not isinstance(f.reason, Unaskable) for f in everywhere)
        if n_lost > plan.allowed_failures(n_documents) or 0 < n_documents == len(everywhere):
            raise DrawsFailed(
                f"{task}: draws of {len(self.failed)} of {n_documents} documents failed, more than "
                f"max_failed={plan.max_failed:g} allows. First reason: {self.failed[0]['reason']}"
            )
        if self.failed:
            self.outcome["failed"] = self.failed

    def note_verdicts(self, cases: Sequence[Case], judged: Sequence[tuple[Verdict, Mapping[str, Any]]]) -> None:
        """Record the verdicts, each with what else its record holds."""
        for case, (verdict, facts) in zip(cases, judged, strict=True):
            record = {**verdict_record(case, verdict), **facts}
            self.verdicts[case.id] = {**record, "judge": f"{verdict.judge} {verdict.version}"}

    def note_entropies(self, ensembles: Sequence[Any], instances: Sequence[Instance]) -> None:
        """Record the share of documents without any entropy, by filter: no AUROC can tell anything there."""
        shares = {}
        for ensemble in ensembles:
            scored = [instance.filtered_resps[ensemble.name] for instance in instances]
            values = [s.scores.get("se") for s in scored if isinstance(s, ScoredAnswers)]
            zero = gather([value < _NO_ENTROPY for value in values if value is not None])
            if zero:
                shares[ensemble.name] = sum(zero) / len(zero)
        if shares and is_first():
            self.outcome["zero_entropy"] = shares
            self.outcome["health"] = {**self.outcome.get("health", {}), "zero_entropy": shares}

    def note_claims(self, judged: Mapping[str, Any]) -> None:
        """Keep what was judged of the claims of answers, by document id: part of their verdicts."""
        for id, spans in judged.items():
            self.verdicts[id][CLAIMS] = spans

    def gather(self, task: str, judge: Judge, instances: list[Instance], answer_sets: list[AnswerSet]) -> Everything:
        """Return (document, its answers, its verdict) of all processes; the first process reports the outcome."""
        numbered = [
            (instance.doc_id, answer_set, self.verdicts[answer_set.id])
            for instance, answer_set in zip(instances, answer_sets, strict=True)
        ]
        everything = sorted(gather(numbered), key=lambda row: row[0])
        if is_first():
            sampled = self.outcome.get("sampled") or {}
            self.note(task, "health", lambda: report_outcome(task, judge, everything, sampled, len(self.failed)))
        return everything

    def save(
        self,
        folder: Path | None,
        task: str,
        model: str,
        everything: Everything,
        evidence: KeptEvidence,
        columns: Mapping[str, Any],
        settings: dict[str, Any],
    ) -> Run | None:
        """Keep all answers and labels, and what models said of the answers, as a run file; nothing without a folder."""
        if folder is None or not is_first():
            return None
        settings |= {key: self.outcome[key] for key in ("sampled", "failed") if key in self.outcome}
        if verdicts := self.outcome.get("health", {}).get("setting_verdicts"):
            settings["sampled"] = {**settings["sampled"], "verdicts": verdicts}
        run = replace(run_of(task, model, everything, settings), evidence=evidence, columns=columns)
        path = save_run(run, folder)
        logger.info("{}: answers and labels are in {}", task, path)
        return replace(run, path=path)


def keep_outputs(ensembles: Sequence[Any]) -> ModelOutputs:
    """Let filters keep what models say of the answers, and return where they keep it."""
    outputs = ModelOutputs()
    for _, step in steps_of(ensembles, ClusterFilter):
        step.keep(outputs)
    return outputs


def declared_settings(
    documents: DocumentSettings,
    judge: Judge,
    dataset_kwargs: Mapping[str, Any] | None,
    prompt: Prompt,
    plan: SamplingPlan,
    pipelines: Mapping[str, Sequence[Any]],
    **data: Any,
) -> dict[str, Any]:
    """Return the settings of a task that follow from its YAML, as runs and editions record them.

    Args:
        dataset_kwargs: of the YAML.
        pipelines: steps of the filter pipelines, by name.
        data: what else is known of the documents.
    """
    options = {key: value for key, value in (dataset_kwargs or {}).items() if key != DATA_FILES}
    return {
        "documents": {**documents.model_dump(), "judge": judge.settings(), **data, "options": options},
        "prompt": asdict(prompt),
        "sampling": plan.settings(),
        "filters": {name: _filter_settings(steps) for name, steps in pipelines.items()},
    }


def _filter_settings(steps: Sequence[Any]) -> dict[str, Any]:
    """Return what of a pipeline's steps can change a result."""
    settings: dict[str, Any] = {}
    for step in steps:
        if isinstance(step, (ClusterFilter, ScoreFilter)):
            settings |= step.settings()
    return settings
