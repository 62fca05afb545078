"""Results of a task: its answers adjudicated, filtered and scored, its rows, and the run file."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from lmms_eval.api.instance import Instance
from lmms_eval.api.reasoning import parse_reasoning_tags_config
from lmms_eval.api.task import ConfigurableMessagesTask
from loguru import logger

from hedge_tasks import __version__
from hedge_tasks.data.answers import Answer, AnswerSet, FailedDocument, Unaskable, read_report, read_response
from hedge_tasks.data.groups import count_groups
from hedge_tasks.data.placeholders import known_by
from hedge_tasks.data.splits import DATA_FILES, FILE_KINDS
from hedge_tasks.detectors.units import UnitEvidence, UnitsOfAnswer
from hedge_tasks.errors import ConfigError, DrawsFailed, lookup
from hedge_tasks.judging import Case, keep_labels, verdict_record
from hedge_tasks.judging.config import LABELS
from hedge_tasks.lmms.documents import Documents
from hedge_tasks.lmms.filters import filters_of
from hedge_tasks.lmms.findings import FINDINGS
from hedge_tasks.lmms.hooks import TaskHooks
from hedge_tasks.lmms.identity import display_name, model_identity, output_folder, store_folder
from hedge_tasks.lmms.reasoning import Tags, changed, spoken, without_reasoning
from hedge_tasks.lmms.rows import Aggregation
from hedge_tasks.lmms.self_reading import self_readings
from hedge_tasks.lmms.settings import DocumentSettings
from hedge_tasks.measures.blind import CLAIM_TEXT
from hedge_tasks.measures.measure import Measure
from hedge_tasks.measures.run_measures import METRICS, answer_columns, sums_of
from hedge_tasks.measures.standard_measures import FAILED_RATE
from hedge_tasks.measures.unit_numbers import units_by_answer
from hedge_tasks.runs.claim_files import SETTING as CLAIMS
from hedge_tasks.runs.claim_labels import CLAIMS as CLAIM_LABELS
from hedge_tasks.runs.evidence import join_evidence, pack_outputs
from hedge_tasks.runs.health import health_of
from hedge_tasks.runs.kept_inside import read_inside
from hedge_tasks.runs.processes import gather, is_first
from hedge_tasks.runs.relabel import case_of
from hedge_tasks.runs.run_files import FOLDER, Run, now, save_run
from hedge_tasks.runs.task_claims import TaskClaims, switched_off
from hedge_tasks.sampling.inside import MODEL, inside_key, model_key
from hedge_tasks.sampling.plan import SamplingPlan, draw_seed
from hedge_tasks.sampling.prompts import Prompt

_NO_ENTROPY = 1e-9  # nats; but for rounding it is 0


class TaskResults(TaskHooks, ConfigurableMessagesTask):
    """The part of `HedgeTask` that runs when all answers are there.

    Attributes:
        plan: what was sampled for every document.
    """

    plan: SamplingPlan

    _data: Documents
    _settings: DocumentSettings
    _prompt: Prompt
    _measures: dict[str, Measure]
    _draws_are_read: bool = False
    _claims: TaskClaims | None = None
    _parts: Mapping[str, UnitsOfAnswer] | None = None
    # By document id, the record of the verdict.
    _verdicts: dict[str, dict[str, Any]]
    # Facts for the results file. The very same object sits in every dump of the configuration, so that lmms-eval writes
    # what comes later.
    _outcome: dict[str, Any]

    @property
    def _args(self) -> Any:
        return getattr(self, "args", None)  # set by lmms-eval when the task is built; a notebook has none

    @property
    def reasoning_tags(self) -> Tags:
        """Tags around thoughts, which are taken out of every answer before it is judged; mostly none."""
        named = getattr(self._args, "reasoning_tags", None)
        return parse_reasoning_tags_config(named, self.config.reasoning_tags) or ()

    @property
    def _predict_only(self) -> bool:
        return "bypass" in self._metric_fn_list

    def apply_filters(self) -> None:
        """Adjudicate the baseline answers, then run the filters."""
        if self._predict_only:
            for instance in self._instances:
                instance.filtered_resps["none"] = instance.resps[0]
            return
        responses = [(instance, read_response(instance.resps[0])) for instance in self._instances]
        failed = [(instance, r) for instance, r in responses if isinstance(r, FailedDocument)]
        self._note_sampling([r for _, r in failed])
        answered = [(instance, r) for instance, r in responses if isinstance(r, AnswerSet)]
        instances = [instance for instance, _ in answered]
        own = [without_reasoning(answers, self.reasoning_tags) for _, answers in answered]
        labelled = self._read(instances, self._adjudicate(instances, [*map(known_by(gather(own)), own)]))
        self._judge_claims(instances, labelled)
        for instance, answers in zip(instances, labelled, strict=True):
            instance.resps = [answers.to_json()]
        run = self._run_of(instances, labelled)
        try:
            run = replace(run, columns=self._kept_columns(instances, labelled))
            run, claims = self._with_claims(labelled, run)
            self._inform_filters(labelled, claims, run)
            for ensemble in self._filters:
                ensemble.apply(instances, None)
                for instance, failure in failed:
                    instance.filtered_resps[ensemble.name] = failure
            run = replace(run, evidence=join_evidence(gather([pack_outputs(run.outputs, labelled)])))
            self._note_entropies(instances)
        finally:
            # After the filters, for what they chose is part of the record; and also when one of them fails.
            self._save(run)

    def _run_of(self, instances: Sequence[Instance], answer_sets: Sequence[AnswerSet]) -> Run:
        """Return answers and verdicts of all processes, in the order of the documents."""
        pairs = zip(instances, answer_sets, strict=True)
        rows = sorted(gather([(i.doc_id, a, self._verdicts[a.id]) for i, a in pairs]), key=lambda row: row[0])
        return Run(
            task=self.config.task,
            model=display_name(self._args) or "",
            answer_sets=tuple(answers for _, answers, _ in rows),
            verdicts={answers.id: verdict for _, answers, verdict in rows},
            settings={},
            created=now(),
        )

    def _note_sampling(self, failed_here: list[FailedDocument]) -> None:
        """Record how the model behaved (decoding sent, probe, use of the picture), and the documents left out.

        Raises:
            DrawsFailed: they are more than the plan allows, in all processes together.
        """
        reports = filter(None, (read_report(instance.resps[0]) for instance in self._instances))
        for report in gather(list(reports)[:1])[:1]:
            self._outcome["sampled"] = report
        failed, n_documents = gather(failed_here), sum(gather([len(self._instances)]))
        n_lost = sum(not isinstance(f.reason, Unaskable) for f in failed)
        if n_lost > self.plan.allowed_failures(n_documents) or 0 < n_documents == len(failed):
            raise DrawsFailed(
                f"{self.config.task}: draws of {len(failed)} of {n_documents} documents failed, more than "
                f"max_failed={self.plan.max_failed:g} allows. First reason: {failed[0].reason}"
            )
        if failed:
            self._outcome["failed"] = [{"id": f.id, "reason": str(f.reason)} for f in failed]

    def _adjudicate(self, instances: Sequence[Instance], answer_sets: list[AnswerSet]) -> list[AnswerSet]:
        """Record the verdicts, and return the answers with their labels."""
        keep_labels(self.judge, output_folder(self._args, LABELS))
        cases = [self._case(instance, a) for instance, a in zip(instances, answer_sets, strict=True)]
        judged = self.judge_cases(cases, answer_sets)
        if by_itself := self_readings(answer_sets, [verdict for verdict, _ in judged]):
            self._outcome["self_reading"] = by_itself
            what = "words left open {asked} replies, the model itself was sure of {decided}; changed labels: {changed}"
            logger.info("{}: {}", self.config.task, what.format(**by_itself))
        for case, (verdict, facts) in zip(cases, judged, strict=True):
            record = {**verdict_record(case, verdict), **facts}
            self._verdicts[case.id] = {**record, "judge": f"{verdict.judge} {verdict.version}"}
        return [a.with_label(verdict.label) for a, (verdict, _) in zip(answer_sets, judged, strict=True)]

    def _judge_claims(self, instances: Sequence[Instance], answer_sets: Sequence[AnswerSet]) -> None:
        """Record the labels of claims in the verdicts, where a judge of claims is declared."""
        if self._claims is not None:
            cases = {a.id: self._case(instance, a) for instance, a in zip(instances, answer_sets, strict=True)}
            judged = self._claims.judged(answer_sets, cases, output_folder(self._args, LABELS))
            for id, spans in judged.items():
                self._verdicts[id][CLAIM_LABELS] = spans

    def _case(self, instance: Instance, answers: AnswerSet) -> Case:
        """Return what the judge sees; the images only where it asks for them."""
        settings, document = self._settings, self._document(instance)
        column = settings.description
        return replace(
            case_of(answers),
            description=(str(document[column] or "") or None) if column else None,
            images=partial(self._images, instance.doc_id) if settings.images else None,
            image_key=self._data.image_keys[instance.doc_id] or None,
        )

    def _images(self, doc_id: int) -> list[Any]:
        return self._settings.load_images(self._data.rows[doc_id])

    def _document(self, instance: Instance) -> Any:
        return self.dataset_no_image[instance.metadata["split"]][instance.doc_id]

    def _read(self, instances: Sequence[Instance], answer_sets: Sequence[AnswerSet]) -> list[AnswerSet]:
        """Return every answer as the evaluation reads it."""
        if self.answers_are_free:
            return [changed(answers, lambda answer, _: spoken(answer)) for answers in answer_sets]
        return [self._read_set(instance, a) for instance, a in zip(instances, answer_sets, strict=True)]

    def _read_set(self, instance: Instance, answers: AnswerSet) -> AnswerSet:
        request = instance.args[2]
        wording, noise = request.wording, self.plan.noise
        if self._draws_are_read:
            return replace(answers, baseline=self.read_answer(answers.baseline, wording))

        def read(answer: Answer, noisy: int | None) -> Answer:
            if noisy is None:
                return self.read_answer(answer, wording)
            seed = draw_seed(self.plan.seed, request.key, "noisy", noisy)
            return self.read_answer(answer, noise.perturb_wording(wording, seed=seed))

        return changed(answers, read)

    def _kept_columns(self, instances: Sequence[Instance], answer_sets: Sequence[AnswerSet]) -> dict[str, Any]:
        """Return what the suite's own numbers and tables need to know of each document, of all processes, by id."""
        measures = sums_of({"documents": self._settings.model_dump(), METRICS: list(self._metric_fn_list)})
        names = dict.fromkeys([*self.kept, *(name for measure in measures for name in measure.columns)])
        columns_of_documents = []
        for instance, answers in zip(instances, answer_sets, strict=True):
            document = self._document(instance)
            if names:
                document = {**document, **self.facts(document, answers)}
            columns_of_documents.append((answers.id, {name: document[name] for name in names if name in document}))
        return {id: columns for id, columns in gather(columns_of_documents) if columns}

    def _with_claims(self, answer_sets: Sequence[AnswerSet], run: Run) -> tuple[Run, Mapping[str, UnitEvidence]]:
        """Find how far the draws support the claims: the run with it, and what detectors see, by the answer's id."""
        if self._claims is None:
            return run, {}
        detectors = dict.fromkeys(name for measure in self._measures.values() for name in measure.unit_detectors)
        own = [name for name in detectors if name != CLAIM_TEXT]
        support, scored = self._claims.score(answer_sets, replace(run, settings=self._hedge_settings()), own)
        labels: dict[str, Any] = {**self._claims.labels, "why_unlabelled": self._claims.why_unlabelled}
        self._parts = units_by_answer(scored, text=CLAIM_TEXT in detectors, **labels)
        return replace(run, support=support), {a.answers.id: a.evidence for a in scored.answers}

    def _inform_filters(self, answer_sets: Sequence[AnswerSet], claims: Mapping[str, UnitEvidence], run: Run) -> None:
        """Tell filters what is known of claims and from inside the model, and where to keep what models say."""
        known: dict[str, Any] = {"claims": lambda: claims}
        store = store_folder(self._args)
        if self.plan.inside and isinstance(store, Path):
            model = model_key(model_identity(self._args))
            keys = {a.id: inside_key(self.config.task, model, a.id, a.baseline.text) for a in answer_sets}
            known["inside"] = partial(read_inside, store, keys)
        keeps = output_folder(self._args, FOLDER) is not None
        for step in filters_of(self._filters).values():
            step.scorer = replace(step.scorer.with_outputs(run.outputs) if keeps else step.scorer, **known)
            step.keeps = keeps

    def _note_entropies(self, instances: Sequence[Instance]) -> None:
        """Record the share of documents without any entropy, by filter: no AUROC can tell anything there."""
        for name in filters_of(self._filters):
            values = [instance.filtered_resps[name].scores.get("se") for instance in instances]
            if zero := gather([value < _NO_ENTROPY for value in values if value is not None]):
                self._outcome.setdefault("zero_entropy", {})[name] = sum(zero) / len(zero)

    def _save(self, run: Run) -> None:
        """Keep answers, labels and what models said of the answers as a run file, and say what they rest on."""
        if not is_first():
            return
        task, folder = run.task, output_folder(self._args, FOLDER)
        run = replace(run, settings=self._hedge_settings())
        if folder is not None:
            kept = replace(run, path=save_run(run, folder))
            trust = " --trust-run" if self.config.dataset_path in FILE_KINDS else ""
            logger.info("{}: all is in {}", task, kept.path)
            FINDINGS.note(kept, f"Next: hedge report {shlex.quote(str(folder.parent))}{trust} --out report.html")
        try:
            health = health_of(run)
            for finding in health.findings:
                logger.warning("{}: {}{}", task, "UNRELIABLE: " if finding.unreliable else "", finding.text)
            self._outcome["health"] = health.to_dict()
        except Exception as error:  # whatever it is, the answers are paid for, and the table is to come
            logger.warning("{}: what the run rests on is not told ({!r}); `hedge health` tries again", task, error)

    def process_results(self, doc: Mapping[str, Any], results: list[Any], full_docs: object = None) -> dict[str, Any]:
        """One record a metric: what its aggregation needs, never a bare number (lmms-eval would average that)."""
        if self._predict_only:
            return {"bypass": {"documents": 1}}
        if isinstance(results[0], FailedDocument):
            return {FAILED_RATE.name: {"value": 1, "group": None}}
        answers, scores = results[0].answers, results[0].scores
        verdict = self._verdicts[scores.id]
        if self._parts is not None:
            scores = replace(scores, parts=self._parts[scores.id])
        document = {**answer_columns(answers), **doc, **self.facts(doc, answers)}
        records = {name: measure.record(scores, verdict, document) for name, measure in self._measures.items()}
        # A row of its own only where documents are left out: it would be 0 in every other table.
        return {**records, FAILED_RATE.name: {"value": 0, "group": None}} if "failed" in self._outcome else records

    def _prepare_metric_and_aggregation(self) -> None:
        self._metric_fn_list: dict[str, None] = {}
        self._metric_fn_kwargs: dict[str, Any] = {}
        self._measures = {}
        for entry in self.config.metric_list:
            name = entry["metric"]
            measure = entry.get("aggregation") or lookup(f"metric of {self.config.task}", name, self._known)
            if not isinstance(measure, Measure):
                expected = f"aggregation of {name}: expected a measure (hedge_tasks.measures), got {measure!r}"
                raise ConfigError(f"{self.config.task}: {expected}")
            if not (measure.unit_detectors and switched_off(self.config.task, name)):
                self._metric_fn_list[name], self._measures[name] = None, measure
        rows = {**self._measures, FAILED_RATE.name: FAILED_RATE}
        self._aggregation_list: dict[str, Any] = {name: Aggregation(measure) for name, measure in rows.items()}
        self._higher_is_better = {name: measure.higher_is_better for name, measure in rows.items()}

    def dump_config(self) -> dict[str, Any]:
        return {**super().dump_config(), "hedge": self._hedge_settings()}

    def _hedge_settings(self) -> dict[str, Any]:
        """Return the settings as runs record them and editions follow from them; the outcome among them."""
        plan = SamplingPlan.from_generation_kwargs(self.config.generation_kwargs)
        data, options, circumstances = self._data, self.config.dataset_kwargs or {}, self.circumstances()
        optional = {
            **{key: self._outcome.get(key) for key in ("sampled", "failed")},
            CLAIMS: self._claims.settings() if self._claims is not None else None,
            "evaluation": dict(circumstances),
            "read_by": None if self.answers_are_free else f"{type(self).__module__}:{type(self).__qualname__}",
            MODEL: model_key(model_identity(self._args)) if plan.inside else None,
        }
        return {
            "version": __version__,
            "metadata": dict(self.config.metadata or {}),
            "documents": {
                **self._settings.model_dump(),
                "judge": self.judge.settings(),
                "revision": data.source.revision or self._settings.revision,
                "grouping": {"found": count_groups(data.groups)},
                "options": {key: value for key, value in options.items() if key != DATA_FILES},
            },
            "prompt": asdict(self._prompt),
            "sampling": plan.settings(),
            "filters": {name: step.settings() for name, step in filters_of(self._filters).items()},
            "outcome": self._outcome,
            METRICS: list(self._metric_fn_list),
            **{key: value for key, value in optional.items() if value},
        }
