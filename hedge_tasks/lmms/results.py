"""Results of a task after sampling: facts for lmms-eval's results file, and the run file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lmms_eval.api.instance import Instance
from loguru import logger

from hedge_tasks.data.answers import AnswerSet, FailedDocument, Unaskable
from hedge_tasks.errors import DrawsFailed
from hedge_tasks.judging import Case, Verdict, verdict_record
from hedge_tasks.judging.outcomes import OUTCOMES, outcome_of
from hedge_tasks.lmms.filters import ScoredAnswers
from hedge_tasks.runs.health import health_of
from hedge_tasks.runs.processes import gather, is_first
from hedge_tasks.runs.run_files import Run, now
from hedge_tasks.sampling.plan import SamplingPlan

Everything = Sequence[tuple[int, AnswerSet, dict[str, Any]]]
"""(number of the document, its answers, the record of its verdict) of all processes, in the order of the documents."""

_NO_ENTROPY = 1e-9  # nats; but for rounding it is 0


@dataclass
class Results:
    """Findings of a task after sampling.

    Attributes:
        verdicts: by document id, the record of the verdict.
        failed: documents that are left out, each with its reason.
        outcome: facts for the results file. The very same object sits in every dump of the configuration, so that
            lmms-eval writes what comes later into its results file.
    """

    verdicts: dict[str, dict[str, Any]] = field(default_factory=dict)
    failed: list[dict[str, str]] = field(default_factory=list)
    outcome: dict[str, Any] = field(default_factory=dict)

    def note_sampling(self, reports: Sequence[Mapping[str, Any] | None]) -> None:
        """Record how the model behaved: decoding sent, findings of the probe, use of the picture."""
        for report in gather([report for report in reports if report][:1])[:1]:
            self.outcome["sampled"] = report

    def note_self_readings(self, counts: Mapping[str, Any]) -> None:
        """Record how the model has read its own replies beside the rules, over all processes; see `self_reading`."""
        ranks = gather([dict(counts)])
        sums = {name: sum((rank[name] for rank in ranks), type(value)()) for name, value in counts.items()}
        self.outcome["self_reading"] = sums

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

    def gather(self, instances: Sequence[Instance], answer_sets: Sequence[AnswerSet]) -> Everything:
        """Return (document, its answers, its verdict) of all processes, and count what their numbers rest on."""
        pairs = zip(instances, answer_sets, strict=True)
        everything = sorted(gather([(i.doc_id, a, self.verdicts[a.id]) for i, a in pairs]), key=lambda row: row[0])
        came = Counter(outcome_of(verdict) for _, _, verdict in everything)
        self.outcome |= {
            "documents": len(everything),
            "unlabelled": sum(answers.label is None for _, answers, _ in everything),
            "without_logprobs": sum(not answers.has_logprobs for _, answers, _ in everything),
            "outcomes": {name: came[name] for name in OUTCOMES if came[name]},
        }
        return everything

    def report(self, run: Run) -> None:
        """Say in the log, and in lmms-eval's results, where the numbers of a run rest on less than they seem to."""
        health = health_of(run)
        if unlabelled := self.outcome["unlabelled"]:
            text = "{}: {} of {} baseline answers have no label; they are left out of every AUROC"
            logger.warning(text, run.task, unlabelled, self.outcome["documents"])
        for finding in health.findings:
            logger.warning("{}: {}{}", run.task, "UNRELIABLE: " if finding.unreliable else "", finding.text)
        self.outcome |= {"health": health.to_dict(), **({"unreliable": health.unreliable} if health.unreliable else {})}


def run_of(task: str, model: str, everything: Everything, settings: Mapping[str, Any]) -> Run:
    """Answers, labels and settings as a run, made now."""
    return Run(
        task=task,
        model=model,
        answer_sets=tuple(answers for _, answers, _ in everything),
        verdicts={answers.id: verdict for _, answers, verdict in everything},
        settings=dict(settings),
        created=now(),
    )
