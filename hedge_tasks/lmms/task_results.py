"""Results of a task: its answers adjudicated, filtered and scored, its rows, and the run file."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from lmms_eval.api.instance import Instance
from lmms_eval.api.task import ConfigurableMessagesTask
from loguru import logger

from hedge_tasks import __version__
from hedge_tasks.clustering.model_outputs import ModelOutputs
from hedge_tasks.data.answers import Answer, AnswerSet, FailedDocument, read_report, read_response
from hedge_tasks.data.placeholders import without_placeholders
from hedge_tasks.data.splits import DATA_FILES, FILE_KINDS
from hedge_tasks.detectors.scorer import InsideSource
from hedge_tasks.detectors.units import UnitsOfAnswer
from hedge_tasks.errors import ConfigError, unknown
from hedge_tasks.judging import (
    Case,
    keep_labels,
)
from hedge_tasks.judging.config import LABELS
from hedge_tasks.judging.reply_judge import ReplyJudge
from hedge_tasks.lmms.documents import Documents
from hedge_tasks.lmms.filters import ClusterFilter, ScoredAnswers, ScoreFilter, settings_of, steps_of
from hedge_tasks.lmms.findings import FINDINGS
from hedge_tasks.lmms.hooks import TaskHooks
from hedge_tasks.lmms.identity import display_name, model_identity, output_folder, store_folder
from hedge_tasks.lmms.reasoning import changed, spoken, without_reasoning
from hedge_tasks.lmms.results import Everything, Results, run_of
from hedge_tasks.lmms.rows import Aggregation
from hedge_tasks.lmms.self_reading import self_read
from hedge_tasks.lmms.settings import DocumentSettings
from hedge_tasks.measures.blind import CLAIM_TEXT
from hedge_tasks.measures.measure import Measure
from hedge_tasks.measures.run_measures import METRICS, answer_columns, sums_of
from hedge_tasks.measures.standard_measures import FAILED_RATE
from hedge_tasks.measures.unit_numbers import units_by_answer
from hedge_tasks.runs.claim_files import SETTING as CLAIMS
from hedge_tasks.runs.claim_labels import CLAIMS as CLAIM_LABELS
from hedge_tasks.runs.evidence import KeptEvidence, join_evidence, pack_outputs
from hedge_tasks.runs.kept_inside import read_inside
from hedge_tasks.runs.processes import gather, is_first
from hedge_tasks.runs.run_files import FOLDER, save_run
from hedge_tasks.runs.support import Support
from hedge_tasks.runs.task_claims import TaskClaims, switched_off
from hedge_tasks.sampling.inside import MODEL, inside_key, model_key
from hedge_tasks.sampling.plan import SamplingPlan, draw_seed
from hedge_tasks.sampling.prompts import Prompt


class TaskResults(TaskHooks, ConfigurableMessagesTask):
    """The part of `HedgeTask` that runs when all answers are there.

    Attributes:
        plan: what was sampled for every document.
    """

    plan: SamplingPlan

    _args: Any
    _data: Documents
    _settings: DocumentSettings
    _prompt: Prompt
    _results: Results
    _measures: dict[str, Measure]
    _draws_are_read: bool = False
    _claims: TaskClaims | None = None
    _support: Support | None = None
    _parts: Mapping[str, UnitsOfAnswer] | None = None

    @property
    def _predict_only(self) -> bool:
        return "bypass" in self._metric_fn_list

    def apply_filters(self) -> None:
        """Adjudicate the baseline answers, then run the filter pipelines."""
        if self._predict_only:
            for instance in self._instances:
                instance.filtered_resps["none"] = instance.resps[0]
            return
        tags = self.reasoning_tags
        responses = [(instance, read_response(instance.resps[0])) for instance in self._instances]
        results, task = self._results, self.config.task
        results.note_sampling([read_report(instance.resps[0]) for instance in self._instances])
        failed = {id(instance): r for instance, r in responses if isinstance(r, FailedDocument)}
        results.note_failures(task, list(failed.values()), len(self._instances), self.plan)
        answered = [(instance, r) for instance, r in responses if isinstance(r, AnswerSet)]
        instances = [instance for instance, _ in answered]
        own = [without_reasoning(answers, tags) for _, answers in answered]
        answer_sets = without_placeholders(own, gather(own))
        labelled = self._read(instances, self._adjudicate(instances, answer_sets))
        self._judge_claims(instances, labelled)
        for instance, answer_set in zip(instances, labelled, strict=True):
            instance.resps = [answer_set.to_json()]
        everything = results.gather(instances, labelled)
        columns: Mapping[str, Any] = {}
        evidence = KeptEvidence()
        try:
            columns = self._kept_columns(instances, labelled)
            outputs = self._keep_outputs()
            self._find_claims(labelled, everything)
            self._look_inside()
            self._run_pipelines(instances, failed)
            evidence = join_evidence(gather([pack_outputs(outputs, labelled)]))
            results.note_entropies(self._filters, instances)
        finally:
            # After the filters, for what they chose is part of the record; and also when one of them fails.
            self._save_run(everything, evidence, columns)

    def _run_pipelines(self, instances: list[Instance], failed: Mapping[int, FailedDocument]) -> None:
        """Cluster and score; a document that failed stands as it is under the name of every pipeline."""
        for ensemble in self._filters:
            ensemble.apply(instances, None)
            for instance in self._instances:
                if id(instance) in failed:
                    instance.filtered_resps[ensemble.name] = failed[id(instance)]

    def _look_inside(self) -> None:
        """Let filters read what was kept from inside the model."""
        folder = store_folder(self._args)
        if not (self.plan.inside and isinstance(folder, Path)):
            return
        task, model, store = self.config.task, model_key(model_identity(self._args)), folder

        def source(answers: Sequence[AnswerSet]) -> InsideSource:
            keys = {a.id: inside_key(task, model, a.id, a.baseline.text) for a in answers}
            return lambda names: read_inside(store, keys, names)

        for _, step in steps_of(self._filters, ScoreFilter):
            step.look_inside(source)

    def _keep_outputs(self) -> ModelOutputs:
        """Let filters keep what models say of the answers, where the run is kept, and return where they keep it."""
        outputs = ModelOutputs()
        if output_folder(self._args, FOLDER) is not None:
            for _, step in steps_of(self._filters, ClusterFilter):
                step.keep(outputs)
            self._configure_filters()
        return outputs

    def _adjudicate(self, instances: list[Instance], answer_sets: list[AnswerSet]) -> list[AnswerSet]:
        keep_labels(self.judge, output_folder(self._args, LABELS))
        cases = [self._case(instance, a) for instance, a in zip(instances, answer_sets, strict=True)]
        judged = self.judge_cases(cases, answer_sets)
        if self.plan.self_reading and isinstance(self.judge, ReplyJudge):
            judged, counts = self_read(self.judge, cases, answer_sets, judged)
            self._results.note_self_readings(counts)
        self._results.note_verdicts(cases, judged)
        return [a.with_label(verdict.label) for a, (verdict, _) in zip(answer_sets, judged, strict=True)]

    def _judge_claims(self, instances: Sequence[Instance], answer_sets: Sequence[AnswerSet]) -> None:
        """Record the labels of claims in the verdicts, where a judge of claims is declared."""
        if self._claims is not None:
            cases = {a.id: self._case(instance, a) for instance, a in zip(instances, answer_sets, strict=True)}
            judged = self._claims.judged(answer_sets, cases, output_folder(self._args, LABELS))
            for id, spans in judged.items():
                self._results.verdicts[id][CLAIM_LABELS] = spans

    def _find_claims(self, answer_sets: Sequence[AnswerSet], everything: Everything) -> None:
        """Find how far the draws support the claims, for rows and filters."""
        if self._claims is None:
            return
        detectors = dict.fromkeys(name for measure in self._measures.values() for name in measure.unit_detectors)
        run = run_of(self.config.task, display_name(self._args) or "", everything, self._hedge_settings())
        own_detectors = [name for name in detectors if name != CLAIM_TEXT]
        self._support, scored = self._claims.score(answer_sets, run, own_detectors)
        labels: dict[str, Any] = {**self._claims.labels, "why_unlabelled": self._claims.why_unlabelled}
        self._parts = units_by_answer(scored, text=CLAIM_TEXT in detectors, **labels)
        for _, step in steps_of(self._filters, ScoreFilter):
            step.use_claims({answer.answers.id: answer.evidence for answer in scored.answers})

    def _read(self, instances: list[Instance], answer_sets: list[AnswerSet]) -> list[AnswerSet]:
        """Return every answer as the evaluation reads it."""
        if self.answers_are_free:
            return [changed(answers, lambda answer, _: spoken(answer)) for answers in answer_sets]
        return [self._read_set(i.metadata["split"], i.doc_id, a) for i, a in zip(instances, answer_sets, strict=True)]

    def _read_set(self, split: str, doc_id: int, answers: AnswerSet) -> AnswerSet:
        document = self.dataset_no_image[split][doc_id]
        wording = replace(self._data.wording(document), answer=self.doc_to_target(document))
        if self._draws_are_read:
            return replace(answers, baseline=self.read_answer(answers.baseline, wording))
        key, plan = self._data.keys[doc_id], self.plan

        def read(answer: Answer, noisy: int | None) -> Answer:
            seed = None if noisy is None else draw_seed(plan.seed, key, "noisy", noisy)
            asked_with = wording if seed is None else plan.noise.perturb_wording(wording, seed=seed)
            return self.read_answer(answer, asked_with)

        return changed(answers, read)

    def _case(self, instance: Instance, answers: AnswerSet) -> Case:
        """Return what the judge sees; the images only where it asks for them."""
        document = self.dataset_no_image[instance.metadata["split"]][instance.doc_id]
        return Case(
            answers.id,
            answers.question or "",
            answers.reference or "",
            answers.baseline.text,
            description=self._data.description(document),
            images=partial(self._data.images, instance.doc_id) if self._settings.images else None,
            image_key=self._data.image_keys[instance.doc_id] or None,
            cut=answers.baseline.finish == "length",
        )

    def _kept_columns(self, instances: Sequence[Instance], answer_sets: Sequence[AnswerSet]) -> dict[str, Any]:
        """Return what the suite's own numbers and tables need to know of each document, of all processes, by id."""
        measures = sums_of({"documents": self._settings.model_dump(), METRICS: list(self._metric_fn_list)})
        names = dict.fromkeys(name for measure in measures for name in measure.columns)
        columns_of_documents = []
        for instance, answers in zip(instances, answer_sets, strict=True):
            document = self.dataset_no_image[instance.metadata["split"]][instance.doc_id]
            columns = dict(self.kept(document))
            if names:
                document = {**document, **self.facts(document, answers)}
                columns |= {name: document[name] for name in names if name in document}
            columns_of_documents.append((answers.id, columns))
        return {id: columns for id, columns in gather(columns_of_documents) if columns}

    def _save_run(self, everything: Everything, evidence: KeptEvidence, columns: Mapping[str, Any]) -> None:
        """Keep answers, labels and what models said of the answers as a run file, and say what they rest on."""
        if not is_first():
            return
        task, outcome, folder = self.config.task, self._results.outcome, output_folder(self._args, FOLDER)
        settings = self._hedge_settings()
        settings |= {key: outcome[key] for key in ("sampled", "failed") if key in outcome}
        run = run_of(task, display_name(self._args) or "", everything, settings)
        if folder is not None:
            kept = replace(run, evidence=evidence, columns=columns, support=self._support)
            kept = replace(kept, path=save_run(kept, folder))
            trust = " --trust-run" if self.config.dataset_path in FILE_KINDS else ""
            logger.info("{}: all is in {}", task, kept.path)
            FINDINGS.note(kept, f"Next: hedge report {shlex.quote(str(folder.parent))}{trust} --out report.html")
        try:
            self._results.report(run)
        except Exception as error:  # whatever it is, the answers are paid for, and the table is to come
            logger.warning("{}: what the run rests on is not told ({!r}); `hedge health` tries again", task, error)

    def process_results(self, doc: Mapping[str, Any], results: list[Any], full_docs: object = None) -> dict[str, Any]:
        """One record a metric: what its aggregation needs, never a bare number (lmms-eval would average that)."""
        if self._predict_only:
            return {"bypass": {"documents": 1}}
        if isinstance(results[0], FailedDocument):
            return {FAILED_RATE.name: {"value": 1, "group": None}}
        scored: ScoredAnswers = results[0]
        verdict = self._results.verdicts[scored.scores.id]
        scores = scored.scores
        if self._parts is not None:
            scores = replace(scores, parts=self._parts[scores.id])
        document = {**answer_columns(scored.answers), **doc, **self.facts(doc, scored.answers)}
        records = {name: measure.record(scores, verdict, document) for name, measure in self._measures.items()}
        # A row of its own only where documents are left out: it would be 0 in every other table.
        return {**records, FAILED_RATE.name: {"value": 0, "group": None}} if self._results.failed else records

    def _prepare_metric_and_aggregation(self) -> None:
        self._metric_fn_list: dict[str, None] = {}
        self._metric_fn_kwargs: dict[str, Any] = {}
        self._measures: dict[str, Measure] = {}
        for entry in self.config.metric_list:
            name, own = entry["metric"], entry.get("aggregation")
            if own is None and name not in self._known:
                raise unknown(f"metric of {self.config.task}", name, self._known)
            measure = self._known[name] if own is None else own() if isinstance(own, type) else own
            if not isinstance(measure, Measure):
                raise ConfigError(
                    f"{self.config.task}: aggregation of {name}: expected a measure (hedge_tasks.measures), got {own!r}"
                )
            if measure.unit_detectors and switched_off(self.config.task, name):
                continue
            self._metric_fn_list[name] = None
            self._measures[name] = measure
        rows = {**self._measures, FAILED_RATE.name: FAILED_RATE}
        self._aggregation_list: dict[str, Any] = {name: Aggregation(measure) for name, measure in rows.items()}
        self._higher_is_better = {name: measure.higher_is_better for name, measure in rows.items()}

    def dump_config(self) -> dict[str, Any]:
        return {**super().dump_config(), "hedge": self._hedge_settings()}

    def _hedge_settings(self) -> dict[str, Any]:
        """Return the settings as runs record them and editions follow from them; the outcome among them."""
        plan = SamplingPlan.from_generation_kwargs(self.config.generation_kwargs)
        data, own, options = self._data, self._settings.model_dump(), self.config.dataset_kwargs or {}
        circumstances = self.circumstances()
        return {
            "version": __version__,
            "metadata": dict(self.config.metadata or {}),
            "documents": {
                **own,
                "judge": self.judge.settings(),
                "revision": data.revision,
                "grouping": data.grouping.settings(),
                "options": {key: value for key, value in options.items() if key != DATA_FILES},
            },
            "prompt": asdict(self._prompt),
            "sampling": plan.settings(),
            "filters": {ensemble.name: settings_of(ensemble.filters) for ensemble in self._filters},
            "outcome": self._results.outcome,
            **({CLAIMS: self._claims.settings()} if self._claims is not None else {}),
            **({"evaluation": dict(circumstances)} if circumstances else {}),
            METRICS: list(self._metric_fn_list),
            **({} if self.answers_are_free else {"read_by": f"{type(self).__module__}:{type(self).__qualname__}"}),
            **({MODEL: model_key(model_identity(self._args))} if plan.inside else {}),
        }
