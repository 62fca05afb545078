"""HedgeTask: a document becomes one request that carries a sampling plan, and its answers become scores.

Its hooks are in `hedge_tasks.lmms.hooks`, what becomes of the answers in `hedge_tasks.lmms.results`. This room is
the only one that knows lmms-eval's internals. Each assumption about them has a test in
`tests/test_framework_assumptions.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

from lmms_eval.api.instance import Instance
from loguru import logger

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.data.inside import parts_of
from hedge_tasks.data.manifests import Data
from hedge_tasks.data.own_data import describe
from hedge_tasks.detectors.registry import get
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.judging import Judge, check_judge
from hedge_tasks.lmms.documents import load_documents
from hedge_tasks.lmms.filters import check_models, chosen_detectors, chosen_filters, filters_of
from hedge_tasks.lmms.identity import model_identity, store_folder
from hedge_tasks.lmms.results import TaskResults
from hedge_tasks.lmms.rows import NO_SAMPLES, measures_for
from hedge_tasks.lmms.self_reading import asks_itself, unsettled
from hedge_tasks.lmms.settings import DocumentSettings, refuse_stock_keys
from hedge_tasks.measures.measure import Measure
from hedge_tasks.measures.standard_measures import detectors_of, looks_at_samples
from hedge_tasks.runs.processes import is_first
from hedge_tasks.runs.protocols import protocol_of
from hedge_tasks.runs.task_claims import TaskClaims
from hedge_tasks.sampling.forced import OPTIONS, SELF_READING, passes_needed
from hedge_tasks.sampling.plan import SamplingPlan
from hedge_tasks.sampling.prompts import Prompt, load_prompt
from hedge_tasks.sampling.requests import SampleRequest


class HedgeTask(TaskResults):
    """An lmms-eval task whose documents are answered many times and scored for hallucination.

    Built from a YAML with `class: !function hedge_tasks.lmms.task.HedgeTask`; see tasks/README.md for its keys.

    An evaluation that needs more than the YAML can say derives a class and overrides hooks, in the order in which they
    are called: `judge_of`, `second_stage`, `choices`, `judge_cases`, `read_answer`, `circumstances`, `facts`.
    EXTENDING.md shows each.
    Nothing else of this class is meant to be overridden, and nothing with an underscore to be used.

    Attributes:
        judge: says which baseline answers are hallucinated.
        plan: what is sampled for every document; known when the requests are built.
    """

    judge: Judge
    plan: SamplingPlan
    takes_system_instruction: ClassVar[bool] = False

    # --- building -----------------------------------------------------------------------------------------------------

    def __init__(self, config: dict[str, Any], model_name: str | None = None) -> None:
        settings = DocumentSettings.of_task(config)
        protocol = protocol_of(settings.protocol)
        refuse_stock_keys(config)
        # Before the data is loaded: a slip of the pen should not cost that.
        measures = measures_for(settings.evaluation)
        judge = self.judge_of(settings, config["task"])
        self._start(settings, measures=measures, judge=judge, prompt=load_prompt(settings.prompt))
        self._claims = TaskClaims.from_config(settings.claims, config["task"])
        # TaskConfig knows neither our keys nor the one that named this class.
        framework = {key: value for key, value in config.items() if key not in ("class", "hedge", "hedge_overrides")}
        own = framework.get("generation_kwargs") or {}
        # Where a task names none, lmms-eval would end answers at an empty line.
        framework["generation_kwargs"] = {"until": [], **protocol.sampling, **own}
        if framework.get("filter_list"):
            framework["filter_list"] = chosen_filters(protocol.pipelines(framework["filter_list"]))
        super().__init__(config=framework, model_name=model_name)
        self._configure_filters()

    def _start(
        self, settings: DocumentSettings, *, measures: Mapping[str, Measure], judge: Judge, prompt: Prompt
    ) -> None:
        """Set what a task knows before lmms-eval's part of it is built."""
        self._settings, self._known, self.judge, self._prompt = settings, measures, judge, prompt
        self._verdicts, self._outcome = {}, {}

    def _configure_filters(self) -> None:
        """Tell each filter which detectors score: those of the table's rows, and those that the environment names."""
        detectors = [*detectors_of(self._measures.values()), *chosen_detectors()]
        of_measures = [need for measure in self._measures.values() for need in measure.passes]
        self._inside = frozenset[str]().union(*(get(name).parts for name in detectors))
        self._forced = passes_needed([*of_measures, *(need for name in detectors for need in get(name).needs)])
        for step in filters_of(self._filters).values():
            step.scorer = step.scorer.with_detectors(detectors)

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
        )
        self.dataset = DatasetDict({split: self._data.rows})
        self.dataset_no_image = DatasetDict({split: self._data.texts})

    def doc_to_text(self, doc: Mapping[str, Any]) -> str:
        return self._prompt.text(self._settings.wording(doc))

    def doc_to_target(self, doc: Mapping[str, Any]) -> str:
        return str(doc[self._settings.answer]) if self._settings.answer else ""

    def doc_to_visual(self, doc: Mapping[str, Any]) -> list[Any]:
        return self._settings.load_images(doc)

    # --- requests -----------------------------------------------------------------------------------------------------

    def build_all_requests(self, **options: Any) -> None:
        if options.get("system_instruction") and not self.takes_system_instruction:
            logger.warning("{}: --system_instruction is ignored, the task's prompt is part of it", self.config.task)
        if is_first() and store_folder(self._args) is None:
            lost = "nothing will be kept, so that no report, rescoring or second start can use it; give --output_path"
            logger.warning("{}: {}", self.config.task, lost)
        self._prepare()
        super().build_all_requests(**options)

    def _prepare(self) -> None:
        """Read the plan, and check whatever can be checked before the first draw: a run fails then, not hours later.

        Raises:
            HedgeError: what is missing, or makes no sense.
        """
        # Read here, not in __init__: --gen_kwargs arrives after the task is built.
        plan = SamplingPlan.from_generation_kwargs(self.config.generation_kwargs)
        if missing := self._inside - parts_of(plan.inside):
            plan = plan.replaced(inside="+".join(sorted(parts_of(plan.inside) | missing)))
            # The record of the run is made of the configuration.
            self.config.generation_kwargs = {**self.config.generation_kwargs, "inside": plan.inside}
        self.plan = plan
        if not plan.n:
            self._leave_out_samples()
        self._check_images()
        self._second_stage = self.second_stage()
        if not self._predict_only:
            if plan.n:
                check_models(filters_of(self._filters))
            check_judge(self.judge, bool(self._settings.images))
            if self._claims is not None:
                self._claims.check(bool(self._settings.images))

    def _check_images(self) -> None:
        """Leave out documents without a picture that can be shown, as far as the plan allows."""
        faults, n_documents, source = self._data.image_faults, len(self._data.keys), self._data.source
        what = f"{self.config.task} ({source.path}, {source.split}): {describe(faults, n_documents, 'cannot be shown')}"
        if len(faults) > self.plan.allowed_failures(n_documents):
            raise DataError(f"{what}; max_failed leaves out as many as it says")
        if faults:
            logger.warning("{}; they are left out", what)

    def _leave_out_samples(self) -> None:
        """Leave out filters and rows that are about samples, where none are drawn."""
        gone = [name for name, measure in self._measures.items() if looks_at_samples(measure)]
        # Every clustering of a single answer is the same one.
        del self._filters[1:]
        for name in gone:
            del self._metric_fn_list[name], self._measures[name]
        if not any(measure.unit_detectors for measure in self._measures.values()):
            self._claims = None
        if gone and is_first():
            logger.info("{}: without {}: {}", self.config.task, ", ".join(gone), NO_SAMPLES)

    def construct_requests(self, doc_id: int, ctx: str, **kwargs: Any) -> Instance:
        split = kwargs["metadata"]["split"]
        request = self._request(split, doc_id, ctx)
        if self.plan.noisy_count:
            try:
                self.plan.noise.check(request.wording)
            except ConfigError as error:
                raise ConfigError(f"{self.config.task}, document {request.id}: {error}") from None
        # lmms-eval's response cache keeps deterministic requests. This one is not: the answer store does the keeping.
        settings = {"do_sample": True, "n": 1 + self.plan.n + self.plan.noisy_count}
        arguments = (ctx, settings, request, doc_id, self.config.task, split)
        return Instance("generate_samples", arguments, 0, **kwargs)

    def documents(self, plan: SamplingPlan | None = None) -> list[SampleRequest]:
        """Return what is asked about every document, for whoever has answers from elsewhere or asks again.

        Args:
            plan: in place of the task's own.
        """
        if plan is None:
            self._prepare()
        else:
            self.plan, self._second_stage = plan, None
        requests = [self._request(self.config.test_split, i, "") for i in range(len(self._data.texts))]
        return requests if plan is None else [replace(request, store=None, forced=()) for request in requests]

    def measure(self, answer_sets: Sequence[AnswerSet]) -> None:
        """Judge, cluster and score answers of a finished run, whose draws are read already, and write its run file.

        Args:
            answer_sets: of every document, in the order of the data.
        """
        self._prepare()
        self._draws_are_read = True
        metadata = {"task": self.config.task, "split": self.config.test_split, "repeats": 1}
        self._instances = []
        for i, answers in enumerate(answer_sets):
            instance = self.construct_requests(i, "", metadata={**metadata, "doc_id": i})
            instance.resps = [answers.to_json()]
            self._instances.append(instance)
        self.apply_filters()

    def _request(self, split: str, doc_id: int, ctx: str) -> SampleRequest:
        """Return what is asked about a document.

        Args:
            ctx: the text that lmms-eval would ask with.
        """
        doc = self.dataset_no_image[split][doc_id]
        data, settings, wording = self._data, self._settings, self._settings.wording(doc)
        fault = data.image_faults.get(doc_id)
        return self._sample_request(
            doc,
            id=str(doc[settings.id]) if settings.id else str(doc_id),
            key=data.keys[doc_id],
            question=wording.question,
            context=wording.context,
            distractor=wording.distractor,
            load_images=partial(_no_picture, fault) if fault else settings.load_images,
            reference=self.doc_to_target(doc),
            group=data.groups[doc_id],
        )

    def _sample_request(self, doc: Mapping[str, Any], **of_document: Any) -> SampleRequest:
        """Return a request with what all documents of the task share."""
        plan, kind = self.plan, self._settings.question_type
        reads = plan.self_reading and asks_itself(self.judge) and not self._predict_only
        offered = reads or OPTIONS in self._forced
        texts = self.choices(doc) if plan.guided or offered else ()
        if plan.guided and texts is None:
            raise ConfigError(f"{self.config.task}: guided: its answers are free, there is nothing to choose")
        return SampleRequest(
            question_type=str(doc[kind]) if kind else None,
            choices=tuple(texts or ()) if plan.guided else (),
            options=tuple(texts or ()) if offered else (),
            unsettled=partial(unsettled, self.judge, self.reasoning_tags, self.answers_are_free) if reads else None,
            prompt=self._prompt,
            plan=plan,
            model=model_identity(self._args),
            store=store_folder(self._args),
            second_stage=self._second_stage,
            forced=(*self._forced, *((SELF_READING,) if getattr(self.judge, "of_documents", True) else ())),
            **of_document,
        )


def _no_picture(fault: str, document: Mapping[str, Any]) -> list[Any]:
    raise ValueError(f"the document has {fault}")
