"""HedgeTask: a document becomes one request that carries a sampling plan, and its answers become scores.

This room is the only one that knows lmms-eval's internals. Each assumption about them has a test in
`tests/test_framework_assumptions.py`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
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
)
from hedge_tasks.adjudication.config import LABELS
from hedge_tasks.asking.account import asked
from hedge_tasks.clustering.said import Said
from hedge_tasks.data.answers import Answer, AnswerSet, FailedDocument, read_report, read_response
from hedge_tasks.data.manifests import Data, Manifest
from hedge_tasks.data.splits import DATA_FILES, FILE_KINDS
from hedge_tasks.detectors.registry import get
from hedge_tasks.detectors.units import UnitsOfAnswer
from hedge_tasks.errors import unknown
from hedge_tasks.lmms.documents import load_documents
from hedge_tasks.lmms.filters import (
    ClusterFilter,
    ScoredAnswers,
    ScoreFilter,
    asked_detectors,
    asked_filters,
)
from hedge_tasks.lmms.identity import display_name, model_identity, output_folder, store_folder
from hedge_tasks.lmms.next_step import note_kept
from hedge_tasks.lmms.outcome import Everything, run_of
from hedge_tasks.lmms.reasoning import Tags, reasoning_tags, spoken, spoken_set, without_reasoning
from hedge_tasks.lmms.requests import check_images, check_models, check_noise, closed_choices, warn_of_nothing_kept
from hedge_tasks.lmms.results import Results, filter_settings, keep_said
from hedge_tasks.lmms.rows import NO_SAMPLES, Row, measures_for
from hedge_tasks.lmms.settings import DocumentSettings, refuse_stock_keys
from hedge_tasks.measures.cost import measured
from hedge_tasks.measures.known import FAILED_RATE, detectors_of, looks_at_samples
from hedge_tasks.measures.measure import Measure
from hedge_tasks.measures.of_run import METRICS, answer_columns, sums_of
from hedge_tasks.measures.unit_numbers import TEXT, units_by_answer
from hedge_tasks.perturb import Wording
from hedge_tasks.replies import spoken_text
from hedge_tasks.runs.evidence import KeptEvidence, joined, keep
from hedge_tasks.runs.processes import gather, is_first
from hedge_tasks.runs.protocols import protocol_of
from hedge_tasks.runs.run_files import FOLDER
from hedge_tasks.sampling.forced import OPTIONS, passes_needed
from hedge_tasks.sampling.plan import SamplingPlan, SecondStage, draw_seed
from hedge_tasks.sampling.prompts import Prompt, load_prompt
from hedge_tasks.sampling.requests import SampleRequest
from hedge_tasks.scoring.claim_files import SETTING as CLAIMS
from hedge_tasks.scoring.task_claims import FoundClaims, TaskClaims, switched_off


class HedgeTask(ConfigurableMessagesTask):
    """An lmms-eval task whose documents are answered many times and scored for hallucination.

    Built from a YAML with `class: !function hedge_tasks.lmms.task.HedgeTask`; see tasks/README.md for its keys.

    An evaluation that needs more than the YAML can say derives a class and overrides hooks, in the order in which they
    are called: `judge_of`, `second_stage`, `choices`, `judge_cases`, `kept`, `read_answer`, `circumstances`, `facts`.
    EXTENDING.md shows each.
    Nothing else of this class is meant to be overridden, and nothing with an underscore to be used.

    Attributes:
        judge: says which baseline answers are hallucinated.
        plan: what is sampled for every document; known when the requests are built.
        not_on_hub: data set that lmms-eval cannot load from the hub -> how a user gets it, for the error.
    """

    judge: Judge
    plan: SamplingPlan
    not_on_hub: ClassVar[Mapping[str, str]] = {}

    _claims: TaskClaims | None = None
    _found_claims: FoundClaims | None = None
    _parts: Mapping[str, UnitsOfAnswer] | None = None

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
        return spoken(answer)

    def choices(self, document: Mapping[str, Any]) -> Sequence[str] | None:
        """The texts that answer a document's question, for `guided: true` and for the model's distribution over them.

        Default: None, its answers are free.

        An empty sequence leaves this question free in a task whose second stage has questions with such texts.
        """
        return None

    def facts(self, document: Mapping[str, Any], answers: AnswerSet) -> Mapping[str, Any]:
        """What the metrics see of a document besides its columns. Default: nothing."""
        return {}

    def circumstances(self) -> Mapping[str, Any]:
        """What else the metrics rest on, such as models that they load, for the record. Default: nothing."""
        return {}

    def kept(self, document: Mapping[str, Any]) -> Mapping[str, Any]:
        """What the run file keeps of a document, for tables of finished runs; ready for JSON. Default: nothing.

        It stands among the document's `columns`, beside those that the suite's own numbers need, whoever judges.
        """
        return {}

    # --- building -----------------------------------------------------------------------------------------------------

    def __init__(self, config: dict[str, Any], model_name: str | None = None) -> None:
        settings = DocumentSettings.of_task(config)
        refuse_stock_keys(config)
        # Before the data is loaded: a slip of the pen should not cost that.
        measures = measures_for(settings.evaluation, config["task"])
        judge = self.judge_of(settings, config["task"])
        self._start(settings, measures=measures, judge=judge, prompt=load_prompt(settings.prompt))
        self._claims = TaskClaims.from_config(settings.claims, config["task"])
        # TaskConfig knows neither our keys nor the one that named this class.
        framework = {key: value for key, value in config.items() if key not in ("class", "hedge", "hedge_overrides")}
        protocol = protocol_of(self._settings.protocol)
        framework["generation_kwargs"] = {**protocol.sampling, **(framework.get("generation_kwargs") or {})}
        if framework.get("filter_list"):
            framework["filter_list"] = asked_filters(protocol.pipelines(framework["filter_list"]))
        super().__init__(config=framework, model_name=model_name)
        self._tell_filters()

    def _start(
        self, settings: DocumentSettings, *, measures: Mapping[str, Measure], judge: Judge, prompt: Prompt
    ) -> None:
        """What a task knows before lmms-eval's part of it is built."""
        self._settings, self._known, self.judge, self._prompt = settings, measures, judge, prompt
        self._results = Results()
        self._warned = False
        self._asked_at: float | None = None

    def _tell_filters(self) -> None:
        """The rows of the table say which detectors score; each pipeline asks the model that it clusters with."""
        asked = [*detectors_of(self._measures.values()), *asked_detectors()]
        of_measures = [need for measure in self._measures.values() for need in measure.passes]
        self._forced = passes_needed([*of_measures, *(need for name in asked for need in get(name).needs)])
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

        config, split = self.config, self.config.test_split
        self._data = load_documents(
            config.task,
            Data(config.dataset_path, config.dataset_name, split),
            self._settings,
            process=config.process_docs,
            options=dataset_kwargs,
            not_on_hub=self.not_on_hub,
        )
        self.dataset = DatasetDict({split: self._data.rows})
        self.dataset_no_image = DatasetDict({split: self._data.texts})

    def doc_to_text(self, doc: Mapping[str, Any]) -> str:
        return self._prompt.text(self._data.wording(doc))

    def doc_to_target(self, doc: Mapping[str, Any]) -> str:
        return self._data.reference(doc)

    def doc_to_visual(self, doc: Mapping[str, Any]) -> list[Any]:
        return self._settings.load_images(doc)

    def manifest(self) -> Manifest:
        """The ids of all documents, with digests of what they hold; see `hedge_tasks.data.manifests`."""
        return self._data.manifest(self.config.task)

    # --- requests -----------------------------------------------------------------------------------------------------

    def build_all_requests(self, **options: Any) -> None:
        if options.get("system_instruction"):
            logger.warning("{}: --system_instruction is ignored, the task's prompt is part of it", self.config.task)
        self._prepare()
        super().build_all_requests(**options)
        self._announce(options.get("world_size") or 1)
        # What is answered from here on may be other tasks' as well: lmms-eval asks the model once for all.
        self._asked_at = time.perf_counter()

    def _announce(self, processes: int) -> None:
        """How much the model is going to be asked: a task of a thousand documents is tens of thousands of requests."""
        if not is_first():
            return
        n, noisy, documents = self.plan.n, self.plan.noisy_count, len(self._instances)
        samples = f" (1 baseline + {n} clean + {noisy} noisy)" if n else ""
        logger.info(
            "{}: {} documents x {} draws{} = {} requests{}{}",
            *(self.config.task, documents, 1 + n + noisy, samples, documents * (1 + n + noisy)),
            f" in this one of {processes} processes" if processes > 1 else "",
            ", and those of the second stage" if self._second_stage is not None else "",
        )

    def _prepare(self) -> None:
        """The plan, and whatever can be known to fail before the first draw."""
        # Read here, not in __init__: --gen_kwargs arrives after the task is built.
        self.plan = SamplingPlan.from_generation_kwargs(self.config.generation_kwargs)
        if not self.plan.n:
            self._leave_out_samples()
        check_images(self.config.task, self._data, self.plan)
        self._second_stage = self.second_stage()
        if not self._predict_only:
            if self.plan.n:
                check_models(self._filters)
            check_judge(self.judge, bool(self._settings.images))
            if self._claims is not None:
                self._claims.check(bool(self._settings.images))

    def _leave_out_samples(self) -> None:
        """Without samples there is nothing to cluster, and rows about samples have no number in any document."""
        gone = [name for name, measure in self._listed().items() if looks_at_samples(measure)]
        # Every clustering of a single answer is the same one.
        del self._filters[1:]
        for name in gone:
            del self._metric_fn_list[name]
        if not any(measure.unit_detectors for measure in self._listed().values()):
            self._claims = None
        if gone:
            self._results.outcome["left_out_rows"] = {"rows": gone, "reason": NO_SAMPLES}
            if is_first():
                logger.info("{}: without {}: {}", self.config.task, ", ".join(gone), NO_SAMPLES)

    def construct_requests(self, doc_id: int, ctx: str, **kwargs: Any) -> Instance:
        split = kwargs["metadata"]["split"]
        request = self._request(split, doc_id, ctx)
        if self.plan.noisy_count:
            check_noise(self.config.task, self.plan, request)
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
        data, wording = self._data, self._data.wording(doc)
        return self._sample_request(
            id=data.id(doc_id, doc),
            key=data.keys[doc_id],
            question=wording.question,
            context=wording.context,
            distractor=wording.distractor,
            load_images=data.loader(doc_id),
            reference=self.doc_to_target(doc),
            group=data.groups[doc_id] or None,
            question_type=data.question_type(doc),
            choices=self._choices(doc),
            options=tuple(self.choices(doc) or ()) if OPTIONS in self._forced else (),
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

    def _choices(self, document: Mapping[str, Any]) -> tuple[str, ...]:
        return closed_choices(self.config.task, self.choices(document)) if self.plan.guided else ()

    def _warn_of_nothing_kept(self) -> None:
        if not self._warned:
            warn_of_nothing_kept(self.config.task)
        self._warned = True

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
        results, task = self._results, self.config.task
        results.note_sampling([read_report(instance.resps[0]) for instance in self._instances])
        failed = {id(instance): r for instance, r in responses if isinstance(r, FailedDocument)}
        results.note_failures(task, list(failed.values()), len(self._instances), self.plan)
        answered = [(instance, r) for instance, r in responses if isinstance(r, AnswerSet)]
        instances = [instance for instance, _ in answered]
        answer_sets = [without_reasoning(answers, tags) for _, answers in answered]
        cost = results.cost
        if self._asked_at is not None:
            cost["answers"] = {"seconds": round(time.perf_counter() - self._asked_at, 3)}
        with measured() as judging:
            labelled = self._read(instances, self._adjudicate(instances, answer_sets))
            self._judge_claims(instances, labelled)
        cost["labels"] = {**judging.to_dict(), **asked(self.judge)[0]}
        for instance, answer_set in zip(instances, labelled, strict=True):
            instance.resps = [answer_set.to_json()]
        everything = results.gather(task, self.judge.name, instances, labelled)
        columns = self._kept_columns(instances, labelled)
        said = self._remember()
        evidence = KeptEvidence()
        try:
            self._find_claims(labelled, everything)
            for ensemble in self._filters:
                with measured() as scoring:
                    ensemble.apply(instances, None)
                cost[f"filter {ensemble.name}"] = scoring.to_dict()
                for instance in self._instances:
                    if id(instance) in failed:
                        instance.filtered_resps[ensemble.name] = failed[id(instance)]
            evidence = joined(gather([keep(said, labelled)]))
            results.note_entropies(self._filters, instances)
        finally:
            # After the filters, for what they chose is part of the record; and also when one of them fails.
            self._save_run(everything, evidence, columns)

    def _remember(self) -> Said:
        """What models say of the answers from here on, where the run is kept."""
        if output_folder(self._args, FOLDER) is None:
            return Said()
        said = keep_said(self._filters)
        self._tell_filters()
        return said

    def _adjudicate(self, instances: list[Instance], answer_sets: list[AnswerSet]) -> list[AnswerSet]:
        keep_labels(self.judge, output_folder(self._args, LABELS))
        cases = [self._case(instance, a) for instance, a in zip(instances, answer_sets, strict=True)]
        judged = self.judge_cases(cases, answer_sets)
        self._results.note_verdicts(cases, judged)
        return [a.with_label(verdict.label) for a, (verdict, _) in zip(answer_sets, judged, strict=True)]

    def _judge_claims(self, instances: Sequence[Instance], answer_sets: Sequence[AnswerSet]) -> None:
        """Put into the verdicts what a judge of claims says of each claim, where there is one."""
        if self._claims is not None:
            cases = {a.id: self._case(instance, a) for instance, a in zip(instances, answer_sets, strict=True)}
            judged = self._claims.judged(answer_sets, cases, output_folder(self._args, LABELS))
            self._results.note_claims(judged)

    def _find_claims(self, answer_sets: Sequence[AnswerSet], everything: Everything) -> None:
        """Ask how far the draws support the claims; rows and filters know of them from here on."""
        if self._claims is None:
            return
        detectors = dict.fromkeys(name for measure in self._listed().values() for name in measure.unit_detectors)
        run = run_of(self.config.task, display_name(self._args) or "", everything, self._hedge_settings())
        with measured() as asking:
            found = self._claims.found(answer_sets, run, [name for name in detectors if name != TEXT])
            about: dict[str, Any] = {**self._claims.labels, "why_unlabelled": self._claims.why_unlabelled}
            self._parts = units_by_answer(found.scored, text=TEXT in detectors, **about)
        self._found_claims = found
        self._results.cost["claims"] = {**asking.to_dict(), **self._claims.cost()}
        for ensemble in self._filters:
            for step in ensemble.filters:
                if isinstance(step, ScoreFilter):
                    step.know(found.evidence)

    def _answers_are_free(self) -> bool:
        """Whether replies have no fixed form that the evaluation reads."""
        return type(self).read_answer is HedgeTask.read_answer

    def _read(self, instances: list[Instance], answer_sets: list[AnswerSet]) -> list[AnswerSet]:
        """Every answer as the evaluation reads it."""
        if self._answers_are_free():
            return [spoken_set(answers) for answers in answer_sets]
        return [self._read_set(i.metadata["split"], i.doc_id, a) for i, a in zip(instances, answer_sets, strict=True)]

    def _read_set(self, split: str, doc_id: int, answers: AnswerSet) -> AnswerSet:
        document = self.dataset_no_image[split][doc_id]
        wording = replace(self._data.wording(document), answer=self.doc_to_target(document))
        key, seed, noise = self._data.keys[doc_id], self.plan.seed, self.plan.noise

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
        """What the suite's own numbers and tables need to know of each document, of all processes, by id."""
        measures = sums_of({"documents": self._settings.model_dump(), METRICS: list(self._metric_fn_list)})
        names = dict.fromkeys(name for measure in measures for name in measure.columns)
        kept = []
        for instance, answers in zip(instances, answer_sets, strict=True):
            document = self.dataset_no_image[instance.metadata["split"]][instance.doc_id]
            columns = dict(self.kept(document))
            if names:
                document = {**document, **self.facts(document, answers)}
                columns |= {name: document[name] for name in names if name in document}
            kept.append((answers.id, columns))
        everything = {id: columns for id, columns in gather(kept) if columns}
        # The answers are there by now: a number less is no reason to end the run.
        lacking = sorted(set(names).difference(*everything.values())) if everything else []
        if lacking and is_first():
            text = "{}: documents have no {}, so numbers of the suite cannot be computed from the run file"
            logger.warning(text, self.config.task, ", ".join(lacking))
        return everything

    def _save_run(self, everything: Everything, evidence: KeptEvidence, columns: Mapping[str, Any]) -> None:
        model, folder = display_name(self._args) or "", output_folder(self._args, FOLDER)
        settings = {**self._hedge_settings(), "metadata": dict(self.config.metadata or {})}
        run = self._results.save(folder, self.config.task, model, everything, evidence, columns, settings)
        if run is not None and self._claims is not None and self._found_claims is not None:
            self._claims.keep(run, self._found_claims)
        if folder is not None:
            note_kept(folder.parent, own_data=self.config.dataset_path in FILE_KINDS)

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
        records = {name: measure.record(scores, verdict, document) for name, measure in self._listed().items()}
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
            if measure.unit_detectors and switched_off(self.config.task, name):
                continue
            self._metric_fn_list[name] = None
            self._measures[name] = measure
        rows = {**self._measures, FAILED_RATE.name: FAILED_RATE}
        self._aggregation_list: dict[str, Any] = {name: Row(measure) for name, measure in rows.items()}
        self._higher_is_better = {name: measure.higher_is_better for name, measure in rows.items()}

    def _listed(self) -> dict[str, Measure]:
        """The measures of the table's rows; fewer than those of the YAML where there are no samples."""
        return {name: measure for name, measure in self._measures.items() if name in self._metric_fn_list}

    def dump_config(self) -> dict[str, Any]:
        return {**super().dump_config(), "hedge": self._hedge_settings()}

    def _hedge_settings(self) -> dict[str, Any]:
        plan = SamplingPlan.from_generation_kwargs(self.config.generation_kwargs)
        filters = {e.name: filter_settings(e.filters) for e in self._filters}
        return {
            "version": __version__,
            "documents": {
                **self._settings.model_dump(),
                "judge": self.judge.settings(),
                "revision": self._data.revision,
                "options": {k: v for k, v in (self.config.dataset_kwargs or {}).items() if k != DATA_FILES},
            },
            "prompt": asdict(self._prompt),
            "sampling": plan.settings(),
            "filters": filters,
            "outcome": self._results.outcome,
            **({CLAIMS: self._claims.settings()} if self._claims is not None else {}),
            **({"evaluation": dict(more)} if (more := self.circumstances()) else {}),
            METRICS: list(self._metric_fn_list),
            **({"read_by": _name_of(type(self))} if type(self).read_answer is not HedgeTask.read_answer else {}),
            "cost": self._results.cost,
        }


def _name_of(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"
