"""HedgeTask: a document becomes one request that carries a sampling plan, and its answers become scores.

This room is the only one that knows lmms-eval's internals. Each assumption about them has a test in
`tests/test_framework_assumptions.py`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any, ClassVar

from lmms_eval.api.instance import Instance
from lmms_eval.api.task import ConfigurableMessagesTask
from loguru import logger

from hedge_tasks import __version__
from hedge_tasks.adjudication import (
    Case,
    Judge,
    Verdict,
    check_judge,
    configured_judge,
    keep_labels,
    verdict_record,
)
from hedge_tasks.adjudication.config import LABELS
from hedge_tasks.clustering.said import Said
from hedge_tasks.data import splits
from hedge_tasks.data.answers import Answer, AnswerSet, FailedDocument, read_report, read_response
from hedge_tasks.data.manifests import Data, Digests, Manifest, grouping_digest, text_digest
from hedge_tasks.detectors.registry import get, names
from hedge_tasks.errors import ConfigError, DataError, DrawsFailed, HedgeError, unknown
from hedge_tasks.lmms.filters import (
    FILTERS_VARIABLE,
    ClusterFilter,
    ScoredAnswers,
    ScoreFilter,
    asked_detectors,
    asked_filters,
)
from hedge_tasks.lmms.identity import display_name, model_identity, output_folder, store_folder
from hedge_tasks.lmms.metrics import FAILED_RATE, FailedRate, known_metrics, own_metrics
from hedge_tasks.lmms.outcome import Everything, report_outcome, run_of
from hedge_tasks.lmms.processes import gather, is_first
from hedge_tasks.lmms.reasoning import Tags, reasoning_tags, without_reasoning
from hedge_tasks.lmms.settings import DocumentSettings, refuse_stock_keys
from hedge_tasks.perturb import Wording
from hedge_tasks.replies import spoken_text
from hedge_tasks.runs.cost import measured
from hedge_tasks.runs.evidence import KeptEvidence, joined, keep
from hedge_tasks.runs.protocols import protocol_of
from hedge_tasks.runs.run_files import FOLDER, save_run
from hedge_tasks.sampling.forced import passes_needed
from hedge_tasks.sampling.plan import SamplingPlan, draw_seed
from hedge_tasks.sampling.prompts import Prompt, load_prompt
from hedge_tasks.sampling.requests import SampleRequest
from hedge_tasks.sampling.second_stage import SecondStage

_NO_ENTROPY = 1e-9  # nats; but for rounding it is 0


class HedgeTask(ConfigurableMessagesTask):
    """An lmms-eval task whose documents are answered many times and scored for hallucination.

    Built from a YAML with `class: !function hedge_tasks.lmms.task.HedgeTask`; see tasks/README.md for its keys.

    An evaluation that needs more than the YAML can say derives a class and overrides hooks, in the order in which they
    are called: `judge_of`, `second_stage`, `choices`, `judge_cases`, `kept`, `read_answer`, `facts`. EXTENDING.md shows
    each. Nothing else of this class is meant to be overridden, and nothing with an underscore to be used.

    Attributes:
        judge: says which baseline answers are hallucinated.
        plan: what is sampled for every document; known when the requests are built.
        not_on_hub: data set that lmms-eval cannot load from the hub -> how a user gets it, for the error.
    """

    judge: Judge
    plan: SamplingPlan
    not_on_hub: ClassVar[Mapping[str, str]] = {}

    # --- hooks of evaluations -----------------------------------------------------------------------------------------

    def judge_of(self, settings: DocumentSettings, task: str) -> Judge:
        """The judge of the task; called first of all, before data is loaded. Default: as YAML and environment say.

        Args:
            settings: the key `hedge` of the YAML.
            task: its name, for errors.
        """
        return configured_judge(settings.judge)

    def second_stage(self) -> SecondStage | None:
        """What every document is asked in the light of its answers; called when the plan is known. Default: nothing."""
        return None

    def judge_cases(
        self, cases: Sequence[Case], answer_sets: Sequence[AnswerSet]
    ) -> list[tuple[Verdict, Mapping[str, Any]]]:
        """The verdict on each document, and what else its record should hold. Default: the judge is asked.

        Args:
            cases: what a judge sees of every document, in the order of the answer sets.
            answer_sets: all answers, with those of the second stage as `follow_ups`.
        """
        if self._answers_are_free():  # else the judge reads the reply, as the model wrote it
            cases = [replace(case, answer=spoken_text(case.answer)) for case in cases]
        return [(verdict, {}) for verdict in self.judge.judge(cases)]

    def read_answer(self, answer: Answer, wording: Wording) -> Answer:
        """An answer as it is clustered and stored once it is judged. Default: without thoughts and labels.

        For replies of a fixed form: "1", "**1**" and "Answer: 1" are one meaning for any clustering once each is read.

        Args:
            answer: any answer of a document: baseline, clean or noisy.
            wording: that this draw was asked with, perturbed where the draw is a noisy one.
        """
        return _spoken(answer)

    def choices(self, document: Mapping[str, Any]) -> Sequence[str] | None:
        """The texts that answer a document's question, for `guided: true`. Default: None, its answers are free.

        An empty sequence leaves this question free in a task whose second stage has questions with such texts.
        """
        return None

    def facts(self, document: Mapping[str, Any], answers: AnswerSet) -> Mapping[str, Any]:
        """What the metrics see of a document besides its columns. Default: nothing."""
        return {}

    def kept(self, document: Mapping[str, Any]) -> Mapping[str, Any]:
        """What the run file keeps of a document, for tables of finished runs; ready for JSON. Default: nothing.

        It stands in the document's verdict under "document", and stays there when the run is judged anew.
        """
        return {}

    # --- building -----------------------------------------------------------------------------------------------------

    def __init__(self, config: dict[str, Any], model_name: str | None = None) -> None:
        settings = DocumentSettings.of_task(config)
        refuse_stock_keys(config)
        # Before the data is loaded: a slip of the pen should not cost that.
        metrics = {**known_metrics(), **own_metrics(settings.evaluation, config["task"])}
        judge = self.judge_of(settings, config["task"])
        self._start(settings, metrics=metrics, judge=judge, prompt=load_prompt(settings.prompt))
        # TaskConfig knows neither our keys nor the one that named this class.
        framework = {key: value for key, value in config.items() if key not in ("class", "hedge", "hedge_overrides")}
        protocol = protocol_of(self._settings.protocol)
        framework["generation_kwargs"] = {**protocol.sampling, **(framework.get("generation_kwargs") or {})}
        if framework.get("filter_list"):
            framework["filter_list"] = asked_filters(protocol.pipelines(framework["filter_list"]))
        super().__init__(config=framework, model_name=model_name)
        self._tell_filters()

    def _start(self, settings: DocumentSettings, *, metrics: Mapping[str, Any], judge: Judge, prompt: Prompt) -> None:
        """What a task knows before lmms-eval's part of it is built."""
        self._settings, self._metrics, self.judge, self._prompt = settings, metrics, judge, prompt
        self._verdicts: dict[str, dict[str, Any]] = {}
        self._failed: list[dict[str, str]] = []
        # Facts that are only known after sampling. The very same object sits in every dump of the configuration, so
        # that lmms-eval writes them into its results file.
        self._outcome: dict[str, Any] = {}
        self._warned = False
        self._asked_at: float | None = None
        # Seconds and memory of each stage; like the outcome the very object that is in every dump.
        self._cost: dict[str, Any] = {}

    def _tell_filters(self) -> None:
        """The rows of the table say which detectors score; each pipeline asks the model that it clusters with."""
        known = frozenset(names())
        metrics = self._aggregation_list.values()
        asked = [name for metric in metrics for name in getattr(metric, "detectors", ()) if name in known]
        asked += asked_detectors()
        self._forced = passes_needed([need for name in asked for need in get(name).needs])
        for ensemble in self._filters:
            backend = None
            for step in ensemble.filters:
                if isinstance(step, ClusterFilter):
                    backend = step.scorer.backend
                elif isinstance(step, ScoreFilter):
                    step.serve(asked, backend)

    @property
    def reasoning_tags(self) -> Tags:
        """Tags around thoughts, which are taken out of every answer before it is judged; mostly none."""
        return reasoning_tags(self._args, self.config.reasoning_tags)

    @property
    def _args(self) -> Any:
        return getattr(self, "args", None)  # set by lmms-eval when the task is built; a notebook has none

    # --- data ---------------------------------------------------------------------------------------------------------

    def download(self, dataset_kwargs: Mapping[str, Any] | None = None) -> None:
        """Load the split, without the minute of retries that lmms-eval's own method takes to fail."""
        from datasets import DatasetDict

        split = self.config.test_split
        dataset = self._load_split(split)
        self._loaded_revision = splits.loaded_revision(dataset)
        self._revision = self._loaded_revision or self._settings.revision
        if self.config.process_docs is not None:
            dataset = self.config.process_docs(dataset, **(dataset_kwargs or {}))
        what = f"{self.config.task} ({self.config.dataset_path}, {split})"
        if missing := self._settings.columns() - set(dataset.column_names):
            there = ", ".join(dataset.column_names)
            raise DataError(f"{what}: no column {', '.join(sorted(missing))}; there are {there}")
        if len(dataset) == 0:
            raise DataError(f"{what}: no documents")
        dataset = splits.fetch_images(dataset, self._settings.images, self.config.dataset_path, self._revision)
        self._image_faults = splits.image_faults(dataset, self._settings.images)
        text_columns = self._settings.text_columns()
        self._keys = splits.document_keys(dataset, text_columns, self._settings.images)
        self._image_keys = splits.image_keys(dataset, self._settings.images)
        self._groups = self._read_groups(dataset)
        self.dataset = DatasetDict({split: dataset})
        self.dataset_no_image = DatasetDict({split: dataset.remove_columns(list(self._settings.images))})

    def _load_split(self, split: str) -> Any:
        path, name = self.config.dataset_path, self.config.dataset_name
        try:
            return splits.load_split(path, name, split, revision=self._settings.revision)
        except DataError as error:
            if path not in self.not_on_hub:
                raise
            raise DataError(f"{error} {self.not_on_hub[path]}") from error

    def _read_groups(self, dataset: Any) -> list[str]:
        if self._settings.group is not None:
            return [str(group) for group in dataset[self._settings.group]]
        return self._image_keys

    def doc_to_text(self, doc: Mapping[str, Any]) -> str:
        return self._prompt.text(self._wording(doc))

    def _wording(self, doc: Mapping[str, Any]) -> Wording:
        columns = (self._settings.question, self._settings.context, self._settings.distractor)
        return Wording(*(str(doc[column] or "") if column else "" for column in columns))

    def doc_to_target(self, doc: Mapping[str, Any]) -> str:
        return str(doc[self._settings.answer])

    def doc_to_visual(self, doc: Mapping[str, Any]) -> list[Any]:
        return self._settings.load_images(doc)

    def manifest(self) -> Manifest:
        """The ids of all documents, with digests of what they hold; see `hedge_tasks.data.manifests`."""
        split = self.config.test_split
        rows = enumerate(self.dataset_no_image[split])
        documents = {self._id(doc_id, doc): self._digests(doc_id, doc) for doc_id, doc in rows}
        # Of a local copy nobody knows the revision, whatever the YAML asks the hub for.
        source = Data(self.config.dataset_path, self.config.dataset_name, split, self._loaded_revision)
        return Manifest((self.config.task,), source, documents)

    def _digests(self, doc_id: int, doc: Mapping[str, Any]) -> Digests:
        return Digests(
            text_digest(self._wording(doc).question),
            text_digest(self.doc_to_target(doc)),
            grouping_digest(self._groups[doc_id] or None, self._question_type(doc)),
            self._image_keys[doc_id] or None,
        )

    def _id(self, doc_id: int, doc: Mapping[str, Any]) -> str:
        return str(doc[self._settings.id]) if self._settings.id else str(doc_id)

    def _question_type(self, doc: Mapping[str, Any]) -> str | None:
        return str(doc[self._settings.question_type]) if self._settings.question_type else None

    # --- requests -----------------------------------------------------------------------------------------------------

    def build_all_requests(self, **options: Any) -> None:
        if options.get("system_instruction"):
            logger.warning("{}: --system_instruction is ignored, the task's prompt is part of it", self.config.task)
        self._prepare()
        super().build_all_requests(**options)
        # What is answered from here on may be other tasks' as well: lmms-eval asks the model once for all.
        self._asked_at = time.perf_counter()

    def _prepare(self) -> None:
        """The plan, and whatever can be known to fail before the first draw."""
        # Read here, not in __init__: --gen_kwargs arrives after the task is built.
        self.plan = SamplingPlan.from_generation_kwargs(self.config.generation_kwargs)
        self._check_images()
        self._second_stage = self.second_stage()
        self._check_models()
        if not self._predict_only:
            check_judge(self.judge, bool(self._settings.images))

    def _check_images(self) -> None:
        """Documents without a picture that can be shown are left out, as far as the plan allows.

        Raises:
            DataError: there are more of them.
        """
        if not self._image_faults:
            return
        n_documents = len(self._keys)
        faults = splits.describe_faults(self._image_faults, n_documents)
        what = f"{self.config.task} ({self.config.dataset_path}, {self.config.test_split}): {faults}"
        if len(self._image_faults) > self.plan.allowed_failures(n_documents):
            raise DataError(f"{what}; max_failed leaves out as many as it says")
        logger.warning("{}; they are left out", what)

    def _check_models(self) -> None:
        """Fail before the hours of sampling, not after, when a clustering model cannot be had."""
        if self._predict_only:
            return
        faults: dict[str, Exception] = {}
        for ensemble in self._filters:
            for step in ensemble.filters:
                if isinstance(step, ClusterFilter):
                    try:
                        step.check()
                    except HedgeError as error:
                        faults[ensemble.name] = error
        if not faults:
            return
        first = next(iter(faults.values()))
        rest = [ensemble.name for ensemble in self._filters if ensemble.name not in faults]
        hint = f" To run only the filters that can run, set {FILTERS_VARIABLE}={','.join(rest)}." if rest else ""
        raise type(first)(f"{first}{hint}") from first

    def construct_requests(self, doc_id: int, ctx: str, **kwargs: Any) -> Instance:
        split = kwargs["metadata"]["split"]
        request = self._request(split, doc_id, ctx)
        if self.plan.noisy_count:
            self._check_noise(request)
        if request.store is None:
            self._warn_of_nothing_kept()
        # lmms-eval's response cache keeps deterministic requests. This one is not: the answer store does the keeping.
        settings = {"do_sample": True, "n": 1 + self.plan.n + self.plan.noisy_count}
        arguments = (ctx, settings, request, doc_id, self.config.task, split)
        return Instance("generate_samples", arguments, 0, **kwargs)

    def _request(self, split: str, doc_id: int, ctx: str) -> SampleRequest:
        """What is asked about a document.

        Args:
            ctx: the text that lmms-eval would ask with.
        """
        doc = self.dataset_no_image[split][doc_id]
        wording = self._wording(doc)
        return self._sample_request(
            id=self._id(doc_id, doc),
            key=self._keys[doc_id],
            question=wording.question,
            context=wording.context,
            distractor=wording.distractor,
            load_images=self._loader(doc_id),
            reference=self.doc_to_target(doc),
            group=self._groups[doc_id] or None,
            question_type=self._question_type(doc),
            choices=self._choices(doc),
        )

    def _sample_request(self, **of_document: Any) -> SampleRequest:
        """A request with what all documents of the task share."""
        return SampleRequest(
            prompt=self._prompt,
            plan=self.plan,
            model=model_identity(self._args),
            store=store_folder(self._args),
            second_stage=self._second_stage,
            forced=self._forced,
            **of_document,
        )

    def _loader(self, doc_id: int) -> Callable[[Mapping[str, Any]], list[Any]]:
        """What loads the pictures of a document, or says why there are none."""
        if doc_id not in self._image_faults:
            return self._settings.load_images
        return partial(_no_picture, f"the document has {self._image_faults[doc_id]}")

    def _choices(self, document: Mapping[str, Any]) -> tuple[str, ...]:
        if not self.plan.guided:
            return ()
        choices = self.choices(document)
        if choices is None:
            raise ConfigError(
                f"{self.config.task}: guided: the answers of this task are free, there is nothing to choose"
            )
        return tuple(choices)

    def _warn_of_nothing_kept(self) -> None:
        if not self._warned and is_first():
            logger.warning(
                "{}: nothing of this run will be kept, neither answers nor labels: a killed run starts anew, and no "
                "report, rescoring or larger n can use it. Give --output_path, or set HEDGE_STORE, to keep them",
                self.config.task,
            )
        self._warned = True

    def _check_noise(self, request: SampleRequest) -> None:
        try:
            self.plan.noise.check(request.wording)
        except ConfigError as error:
            raise ConfigError(f"{self.config.task}, document {request.id}: {error}") from None

    # --- results ------------------------------------------------------------------------------------------------------

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
        self._note_sampling([read_report(instance.resps[0]) for instance in self._instances])
        failed = {id(instance): r for instance, r in responses if isinstance(r, FailedDocument)}
        self._note_failures(list(failed.values()))
        answered = [(instance, r) for instance, r in responses if isinstance(r, AnswerSet)]
        instances = [instance for instance, _ in answered]
        answer_sets = [without_reasoning(answers, tags) for _, answers in answered]
        cost = self._cost
        if self._asked_at is not None:
            cost["answers"] = {"seconds": round(time.perf_counter() - self._asked_at, 3)}
        with measured() as judging:
            labelled = self._read(instances, self._adjudicate(instances, answer_sets))
        cost["labels"] = judging.to_dict()
        for instance, answer_set in zip(instances, labelled, strict=True):
            instance.resps = [answer_set.to_json()]
        everything = self._gather(instances, labelled)
        said = self._remember()
        evidence = KeptEvidence()
        try:
            for ensemble in self._filters:
                with measured() as scoring:
                    ensemble.apply(instances, None)
                cost[f"filter {ensemble.name}"] = scoring.to_dict()
                for instance in self._instances:
                    if id(instance) in failed:
                        instance.filtered_resps[ensemble.name] = failed[id(instance)]
            evidence = joined(gather([keep(said, labelled)]))
            self._note_entropies(instances)
        finally:
            # After the filters, for what they chose is part of the record; and also when one of them fails.
            self._save_run(everything, evidence)

    def _remember(self) -> Said:
        """What models say of the answers from here on, where the run is kept."""
        said = Said()
        if output_folder(self._args, FOLDER) is not None:
            for ensemble in self._filters:
                for step in ensemble.filters:
                    if isinstance(step, ClusterFilter):
                        step.keep(said)
            self._tell_filters()
        return said

    def _note_sampling(self, reports: Sequence[Mapping[str, Any] | None]) -> None:
        """How the model behaved, as the hook saw it: decoding in force, findings of the probe, use of the picture."""
        known = [report for of_rank in gather([[r for r in reports if r]]) for report in of_rank]
        if known:
            self._outcome["sampled"] = known[0]

    def _note_failures(self, failed: list[FailedDocument]) -> None:
        """Documents that are left out, of all processes.

        Raises:
            DrawsFailed: together they are more than the plan allows.
        """
        everywhere = [(f.id, f.reason) for f in failed]
        self._failed = [{"id": id_, "reason": reason} for id_, reason in gather(everywhere)]
        n_documents = sum(gather([len(self._instances)]))
        if len(self._failed) > self.plan.allowed_failures(n_documents):
            raise DrawsFailed(
                f"{self.config.task}: draws of {len(self._failed)} of {n_documents} documents failed, more than "
                f"max_failed={self.plan.max_failed:g} allows. First reason: {self._failed[0]['reason']}"
            )
        if self._failed:
            self._outcome["failed"] = self._failed

    def _note_entropies(self, instances: Sequence[Instance]) -> None:
        """How many documents have no entropy at all, by filter: no AUROC can tell anything there."""
        shares = {}
        for ensemble in self._filters:
            scored = [instance.filtered_resps[ensemble.name] for instance in instances]
            values = [s.scores.get("se") for s in scored if isinstance(s, ScoredAnswers)]
            zero = gather([value is not None and value < _NO_ENTROPY for value in values])
            if zero:
                shares[ensemble.name] = sum(zero) / len(zero)
        if shares and is_first():
            self._outcome["zero_entropy"] = shares
            self._outcome["health"] = {**self._outcome["health"], "zero_entropy": shares}

    def _adjudicate(self, instances: list[Instance], answer_sets: list[AnswerSet]) -> list[AnswerSet]:
        keep_labels(self.judge, output_folder(self._args, LABELS))
        cases = [self._case(instance, a) for instance, a in zip(instances, answer_sets, strict=True)]
        judged = self.judge_cases(cases, answer_sets)
        for instance, case, (verdict, more) in zip(instances, cases, judged, strict=True):
            kept = self.kept(self.dataset_no_image[instance.metadata["split"]][instance.doc_id])
            record = {**verdict_record(case, verdict), **more, **({"document": dict(kept)} if kept else {})}
            self._verdicts[case.id] = {**record, "judge": f"{verdict.judge} {verdict.version}"}
        return [a.with_label(verdict.label) for a, (verdict, _) in zip(answer_sets, judged, strict=True)]

    def _answers_are_free(self) -> bool:
        """Whether replies have no fixed form that the evaluation reads."""
        return type(self).read_answer is HedgeTask.read_answer

    def _read(self, instances: list[Instance], answer_sets: list[AnswerSet]) -> list[AnswerSet]:
        """Every answer as the evaluation reads it."""
        if self._answers_are_free():
            return [_spoken_set(answers) for answers in answer_sets]
        return [self._read_set(i.metadata["split"], i.doc_id, a) for i, a in zip(instances, answer_sets, strict=True)]

    def _read_set(self, split: str, doc_id: int, answers: AnswerSet) -> AnswerSet:
        document = self.dataset_no_image[split][doc_id]
        wording = replace(self._wording(document), answer=self.doc_to_target(document))
        key, seed, noise = self._keys[doc_id], self.plan.seed, self.plan.noise

        def noisy_wording(index: int) -> Wording:
            return noise.perturb_wording(wording, seed=draw_seed(seed, key, "noisy", index))

        return replace(
            answers,
            baseline=self.read_answer(answers.baseline, wording),
            clean=tuple(self.read_answer(answer, wording) for answer in answers.clean),
            noisy=tuple(self.read_answer(a, noisy_wording(index)) for index, a in enumerate(answers.noisy)),
        )

    def _case(self, instance: Instance, answers: AnswerSet) -> Case:
        """What the judge sees; the images only where it asks for them."""
        split, column = instance.metadata["split"], self._settings.description
        document = self.dataset_no_image[split][instance.doc_id]
        return Case(
            answers.id,
            answers.question or "",
            answers.reference or "",
            answers.baseline.text,
            description=(str(document[column] or "") or None) if column else None,
            images=partial(self._images, split, instance.doc_id) if self._settings.images else None,
            image_key=self._image_keys[instance.doc_id] or None,
            cut=answers.baseline.finish == "length",
        )

    def _images(self, split: str, doc_id: int) -> list[Any]:
        return self._settings.load_images(self.dataset[split][doc_id])

    def _gather(self, instances: list[Instance], answer_sets: list[AnswerSet]) -> Everything:
        """(document, its answers, its verdict) of all processes; the first process reports what came of them."""
        numbered = [
            (instance.doc_id, answer_set, self._verdicts[answer_set.id])
            for instance, answer_set in zip(instances, answer_sets, strict=True)
        ]
        everything = sorted(gather(numbered), key=lambda row: row[0])
        if is_first():
            sampled = self._outcome.get("sampled") or {}
            self._outcome.update(
                report_outcome(self.config.task, self.judge.name, everything, sampled, len(self._failed))
            )
        return everything

    def _save_run(self, everything: Everything, evidence: KeptEvidence) -> None:
        """Keep all answers and labels, and what models said of the answers, as a run file."""
        folder = output_folder(self._args, FOLDER)
        if folder is None or not is_first():
            return
        model, settings = display_name(self._args) or "", self._hedge_settings()
        settings["metadata"] = dict(self.config.metadata or {})
        settings |= {key: self._outcome[key] for key in ("sampled", "failed") if key in self._outcome}
        path = save_run(replace(run_of(self.config.task, model, everything, settings), evidence=evidence), folder)
        logger.info("{}: answers and labels are in {}", self.config.task, path)

    def process_results(self, doc: Mapping[str, Any], results: list[Any], full_docs: object = None) -> dict[str, Any]:
        """One record a metric: what its aggregation needs, never a bare number (lmms-eval would average that)."""
        if self._predict_only:
            return {"bypass": {"documents": 1}}
        if isinstance(results[0], FailedDocument):
            return {FAILED_RATE: {"value": 1, "group": None}}
        scored: ScoredAnswers = results[0]
        verdict = self._verdicts[scored.scores.id]
        document = {**doc, **self.facts(doc, scored.answers)}
        metrics = {name: metric for name, metric in self._aggregation_list.items() if name in self._metric_fn_list}
        records = {name: metric.record(scored.scores, verdict, document) for name, metric in metrics.items()}
        # A row of its own only where documents are left out: it would be 0 in every other table.
        return {**records, FAILED_RATE: {"value": 0, "group": None}} if self._failed else records

    def _prepare_metric_and_aggregation(self) -> None:
        self._metric_fn_list: dict[str, None] = {}
        self._metric_fn_kwargs: dict[str, Any] = {}
        self._aggregation_list: dict[str, Any] = {}
        self._higher_is_better: dict[str, bool] = {}
        for entry in self.config.metric_list:
            name, own = entry["metric"], entry.get("aggregation")
            if own is None and name not in self._metrics:
                raise unknown(f"metric of {self.config.task}", name, self._metrics)
            metric = self._metrics[name] if own is None else own() if isinstance(own, type) else own
            self._metric_fn_list[name] = None
            self._aggregation_list[name] = metric
            self._higher_is_better[name] = metric.higher_is_better
        self._aggregation_list[FAILED_RATE] = FailedRate(FAILED_RATE)
        self._higher_is_better[FAILED_RATE] = False

    def dump_config(self) -> dict[str, Any]:
        return {**super().dump_config(), "hedge": self._hedge_settings()}

    def _hedge_settings(self) -> dict[str, Any]:
        plan = SamplingPlan.from_generation_kwargs(self.config.generation_kwargs)
        filters = {e.name: _filter_settings(e.filters) for e in self._filters}
        return {
            "version": __version__,
            "documents": {
                **asdict(self._settings),
                "judge": self.judge.settings(),
                "revision": self._revision,
                "options": dict(self.config.dataset_kwargs or {}),
            },
            "prompt": asdict(self._prompt),
            "sampling": plan.settings(),
            "filters": filters,
            "outcome": self._outcome,
            **({"read_by": _name_of(type(self))} if type(self).read_answer is not HedgeTask.read_answer else {}),
            "cost": self._cost,
        }


def _no_picture(reason: str, document: Mapping[str, Any]) -> list[Any]:
    raise ValueError(reason)


def _name_of(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def _spoken(answer: Answer) -> Answer:
    text = spoken_text(answer.text)
    return answer if text == answer.text else replace(answer, text=text)


def _spoken_set(answers: AnswerSet) -> AnswerSet:
    """The answers as they are compared; the very same object where nothing had to go."""
    every = (answers.baseline, *answers.clean, *answers.noisy)
    read = [_spoken(answer) for answer in every]
    if all(one is other for one, other in zip(every, read, strict=True)):
        return answers
    n = 1 + len(answers.clean)
    return replace(answers, baseline=read[0], clean=tuple(read[1:n]), noisy=tuple(read[n:]))


def _filter_settings(steps: list[Any]) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for step in steps:
        if isinstance(step, (ClusterFilter, ScoreFilter)):
            settings |= step.settings()
    return settings
