"""HedgeTask: a document becomes one request that carries a sampling plan, and its answers become scores.

Together with `plugin.py` the only place that knows lmms-eval's internals. Each assumption about them has a test in
`tests/test_framework_assumptions.py`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any

from lmms_eval.api.instance import Instance
from lmms_eval.api.reasoning import parse_reasoning_tags_config, strip_reasoning_tags
from lmms_eval.api.task import ConfigurableMessagesTask
from loguru import logger

from hedge_tasks import __version__
from hedge_tasks.adjudication import (
    Case,
    Judge,
    check_judge,
    configured_judge,
    keep_labels,
    reliability,
    verdict_record,
)
from hedge_tasks.adjudication.config import LABELS
from hedge_tasks.data import splits
from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.errors import ConfigError, DataError, unknown
from hedge_tasks.lmms.filters import ClusterFilter, ScoredAnswers, ScoreFilter
from hedge_tasks.lmms.metrics import METRICS
from hedge_tasks.lmms.processes import gather, is_first
from hedge_tasks.perturb import Wording
from hedge_tasks.runs.run_files import FOLDER, Run, now, save_run
from hedge_tasks.sampling.plan import SamplingPlan
from hedge_tasks.sampling.prompts import load_prompt
from hedge_tasks.sampling.requests import SampleRequest

STORE = "HEDGE_STORE"

# What the command line says about speed and place, not about answers.
_NOT_OF_THE_ANSWER = frozenset({"batch_size", "max_batch_size", "device", "num_concurrent", "timeout", "max_retries"})

# An argument with such a word in its name is nobody's business, and another key is not another model.
_SECRETS = ("key", "token", "secret", "password")


@dataclass(frozen=True)
class DocumentSettings:
    """The key `hedge:` of a task's YAML: which column is what, how it is asked and who judges.

    Attributes:
        prompt: `file/variant` of the package's prompt files.
        question, answer: columns with the question and the reference answer.
        context: column with what is given to read with the question; None for none.
        distractor: column with a wrong answer, for perturbations that mislead; None for none.
        images: columns with an image; none for a text task.
        id: column with the document's id; None takes the row number of the split.
        group: column that says which documents belong together; None takes the images.
        question_type: column with the kind of question, for AUROCs within a kind; None for none.
        description: column with what a judge should know of the question besides; None for none.
        judge: name of a judge, a mapping with `name` and its options, or a list of these, which vote; HEDGE_JUDGE
            takes its place.
        revision: revision of the data set on the hub.
    """

    prompt: str
    question: str = "question"
    answer: str = "answer"
    images: tuple[str, ...] = ("image",)
    id: str | None = None
    group: str | None = None
    question_type: str | None = None
    judge: Mapping[str, Any] = field(default_factory=lambda: {"name": "rule"})
    revision: str | None = None
    context: str | None = None
    distractor: str | None = None
    description: str | None = None

    @classmethod
    def from_config(cls, config: object, task: str) -> DocumentSettings:
        if not isinstance(config, Mapping):
            raise ConfigError(f"{task}: the YAML needs a mapping under 'hedge'")
        names = {f.name for f in fields(cls)}
        for key in config:
            if key not in names:
                raise unknown(f"setting of {task} under 'hedge'", key, names)
        if "prompt" not in config:
            raise ConfigError(f"{task}: 'hedge.prompt' is missing")
        settings = dict(config)
        if isinstance(settings.get("judge"), str):
            settings["judge"] = {"name": settings["judge"]}
        settings["images"] = tuple(settings.get("images", cls.images))
        return cls(**settings)

    def columns(self) -> set[str]:
        return {
            c
            for c in (*self.text_columns(), self.id, self.group, self.question_type, self.description, *self.images)
            if c
        }

    def text_columns(self) -> list[str]:
        """The columns whose text shapes what is asked or how it is judged."""
        return [c for c in (self.question, self.answer, self.context, self.distractor) if c]

    def load_images(self, document: Mapping[str, Any]) -> list[Any]:
        return [document[column] for column in self.images]


class HedgeTask(ConfigurableMessagesTask):
    """An lmms-eval task whose documents are answered many times and scored for hallucination.

    Built from a YAML with `class: !function hedge_tasks.lmms.task.HedgeTask`; see tasks/README.md for its keys.
    """

    def __init__(self, config: dict[str, Any], model_name: str | None = None) -> None:
        self._settings = DocumentSettings.from_config(_document_config(config), config["task"])
        self._judge: Judge = configured_judge(self._settings.judge)
        self._prompt = load_prompt(self._settings.prompt)
        self._verdicts: dict[str, dict[str, Any]] = {}
        # Facts that are only known after sampling. The very same object sits in every dump of the configuration, so
        # that lmms-eval writes them into its results file.
        self._outcome: dict[str, Any] = {}
        # TaskConfig knows neither our keys nor the one that named this class.
        framework = {key: value for key, value in config.items() if key not in ("class", "hedge", "hedge_overrides")}
        super().__init__(config=framework, model_name=model_name)

    # --- data ---------------------------------------------------------------------------------------------------------

    def download(self, dataset_kwargs: Mapping[str, Any] | None = None) -> None:
        """Load the split, without the minute of retries that lmms-eval's own method takes to fail."""
        from datasets import DatasetDict

        split = self.config.test_split
        dataset = splits.load_split(
            self.config.dataset_path, self.config.dataset_name, split, revision=self._settings.revision
        )
        self._revision = splits.loaded_revision(dataset) or self._settings.revision
        if self.config.process_docs is not None:
            dataset = self.config.process_docs(dataset, **(dataset_kwargs or {}))
        what = f"{self.config.task} ({self.config.dataset_path}, {split})"
        if missing := self._settings.columns() - set(dataset.column_names):
            there = ", ".join(dataset.column_names)
            raise DataError(f"{what}: no column {', '.join(sorted(missing))}; there are {there}")
        if len(dataset) == 0:
            raise DataError(f"{what}: no documents")
        dataset = splits.fetch_images(dataset, self._settings.images, self.config.dataset_path, self._revision)
        splits.check_images(dataset, self._settings.images, what)
        text_columns = self._settings.text_columns()
        self._keys = splits.document_keys(dataset, text_columns, self._settings.images)
        self._image_keys = splits.image_keys(dataset, self._settings.images)
        self._groups = self._read_groups(dataset)
        self.dataset = DatasetDict({split: dataset})
        self.dataset_no_image = DatasetDict({split: dataset.remove_columns(list(self._settings.images))})

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

    # --- requests -----------------------------------------------------------------------------------------------------

    def build_all_requests(self, **options: Any) -> None:
        if options.get("system_instruction"):
            logger.warning("{}: --system_instruction is ignored, the task's prompt is part of it", self.config.task)
        # Read here, not in __init__: --gen_kwargs arrives after the task is built.
        self._plan = SamplingPlan.from_generation_kwargs(self.config.generation_kwargs)
        self._check_models()
        if not self._predict_only:
            check_judge(self._judge, bool(self._settings.images))
        super().build_all_requests(**options)

    def _check_models(self) -> None:
        """Fail before the hours of sampling, not after, when a clustering model cannot be had."""
        if self._predict_only:
            return
        for ensemble in self._filters:
            for step in ensemble.filters:
                if isinstance(step, ClusterFilter):
                    step.check()

    def construct_requests(self, doc_id: int, ctx: str, **kwargs: Any) -> Instance:
        split = kwargs["metadata"]["split"]
        doc = self.dataset_no_image[split][doc_id]
        wording = self._wording(doc)
        request = SampleRequest(
            id=str(doc[self._settings.id]) if self._settings.id else str(doc_id),
            key=self._keys[doc_id],
            question=wording.question,
            context=wording.context,
            distractor=wording.distractor,
            prompt=self._prompt,
            plan=self._plan,
            load_images=self._settings.load_images,
            reference=self.doc_to_target(doc),
            group=self._groups[doc_id] or None,
            question_type=str(doc[self._settings.question_type]) if self._settings.question_type else None,
            model=_model_identity(getattr(self, "args", None)),
            store=_store_folder(getattr(self, "args", None)),
            follow_up=partial(self.follow_up, doc_id),
        )
        if self._plan.noisy_count:
            self._check_noise(request)
        # lmms-eval's response cache keeps deterministic requests. This one is not: the answer store does the keeping.
        settings = {"do_sample": True, "n": 1 + self._plan.n + self._plan.noisy_count}
        arguments = (ctx, settings, request, doc_id, self.config.task, split)
        return Instance("generate_samples", arguments, 0, **kwargs)

    def _check_noise(self, request: SampleRequest) -> None:
        try:
            self._plan.noise.check(request.wording)
        except ConfigError as error:
            raise ConfigError(f"{self.config.task}, document {request.id}: {error}") from None

    def follow_up(self, doc_id: int, answers: AnswerSet) -> Sequence[SampleRequest]:
        """Further questions about a document in the light of its answers; for tasks in two stages."""
        return ()

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
        answer_sets = [self._strip_reasoning(AnswerSet.from_json(i.resps[0])) for i in self._instances]
        labelled = self._adjudicate(answer_sets)
        for instance, answer_set in zip(self._instances, labelled, strict=True):
            instance.resps = [answer_set.to_json()]
        everything = self._gather(labelled)
        try:
            for ensemble in self._filters:
                ensemble.apply(self._instances, None)
        finally:
            # After the filters, for what they chose is part of the record; and also when one of them fails.
            self._save_run(everything)

    def _strip_reasoning(self, answer_set: AnswerSet) -> AnswerSet:
        """Take <think> blocks out of the answers, as lmms-eval does for its own tasks."""
        cli_tags = getattr(getattr(self, "args", None), "reasoning_tags", None)
        tags = parse_reasoning_tags_config(cli_value=cli_tags, task_value=self.config.reasoning_tags)
        if not tags:
            return answer_set

        def strip(answer: Answer) -> dict[str, Any]:
            return {**answer.to_dict(), "text": strip_reasoning_tags(answer.text, tags)}

        stripped = {
            "baseline": strip(answer_set.baseline),
            "clean": [strip(answer) for answer in answer_set.clean],
            "noisy": [strip(answer) for answer in answer_set.noisy],
        }
        return AnswerSet.from_dict({**answer_set.to_dict(), **stripped})

    def _adjudicate(self, answer_sets: list[AnswerSet]) -> list[AnswerSet]:
        keep_labels(self._judge, _output_folder(getattr(self, "args", None), LABELS))
        cases = [self._case(instance, a) for instance, a in zip(self._instances, answer_sets, strict=True)]
        verdicts = self._judge.judge(cases)
        for case, verdict in zip(cases, verdicts, strict=True):
            record = verdict_record(case, verdict)
            self._verdicts[case.id] = {**record, "judge": f"{verdict.judge} {verdict.version}"}
        return [a.with_label(verdict.label) for a, verdict in zip(answer_sets, verdicts, strict=True)]

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
        )

    def _images(self, split: str, doc_id: int) -> list[Any]:
        return self._settings.load_images(self.dataset[split][doc_id])

    def _gather(self, answer_sets: list[AnswerSet]) -> list[tuple[int, AnswerSet, dict[str, Any]]]:
        """(document, its answers, its verdict) of all processes; the first process reports what came of them."""
        numbered = [
            (instance.doc_id, answer_set, self._verdicts[answer_set.id])
            for instance, answer_set in zip(self._instances, answer_sets, strict=True)
        ]
        everything = sorted(gather(numbered), key=lambda row: row[0])
        if is_first():
            self._report_outcome([answer_set for _, answer_set, _ in everything])
            self._report_reliability([verdict for _, _, verdict in everything])
        return everything

    def _save_run(self, everything: list[tuple[int, AnswerSet, dict[str, Any]]]) -> None:
        """Keep all answers and labels as a run file."""
        args = getattr(self, "args", None)
        folder = _output_folder(args, FOLDER)
        if folder is None or not is_first():
            return
        run = Run(
            task=self.config.task,
            model=_model_identity(args) or "",
            answer_sets=tuple(answer_set for _, answer_set, _ in everything),
            verdicts={answer_set.id: verdict for _, answer_set, verdict in everything},
            settings={**self._hedge_settings(), "metadata": dict(self.config.metadata or {})},
            created=now(),
        )
        logger.info("{}: answers and labels are in {}", self.config.task, save_run(run, folder))

    def _report_outcome(self, answer_sets: list[AnswerSet]) -> None:
        unlabelled = sum(a.label is None for a in answer_sets)
        without = sum(not a.has_logprobs for a in answer_sets)
        self._outcome.update(documents=len(answer_sets), unlabelled=unlabelled, without_logprobs=without)
        if unlabelled:
            logger.warning(
                "{}: judge {!r} could not label {} of {} baseline answers; they are left out of every AUROC",
                *(self.config.task, self._judge.name, unlabelled, len(answer_sets)),
            )
        if without:
            logger.warning(
                "{}: no log-probabilities for {} of {} documents; their answers weigh the same (discrete entropy)",
                *(self.config.task, without, len(answer_sets)),
            )

    def _report_reliability(self, verdicts: list[dict[str, Any]]) -> None:
        """Say in log and results where too many answers have no label for the numbers to be relied on."""
        if reason := reliability(verdicts):
            self._outcome["unreliable"] = reason
            logger.warning("{}: the metrics are unreliable: {}", self.config.task, reason)

    def process_results(self, doc: Mapping[str, Any], results: list[Any], full_docs: object = None) -> dict[str, Any]:
        """One record a metric: what its aggregation needs, never a bare number (lmms-eval would average that)."""
        if self._predict_only:
            return {"bypass": {"documents": 1}}
        scored: ScoredAnswers = results[0]
        verdict = self._verdicts[scored.scores.id]
        metrics = self._aggregation_list.items()
        return {name: metric.record(scored.scores, verdict, doc) for name, metric in metrics}

    def _prepare_metric_and_aggregation(self) -> None:
        self._metric_fn_list: dict[str, None] = {}
        self._metric_fn_kwargs: dict[str, Any] = {}
        self._aggregation_list: dict[str, Any] = {}
        self._higher_is_better: dict[str, bool] = {}
        for entry in self.config.metric_list:
            name, own = entry["metric"], entry.get("aggregation")
            if own is None and name not in METRICS:
                raise unknown(f"metric of {self.config.task}", name, METRICS)
            metric = METRICS[name] if own is None else own() if isinstance(own, type) else own
            self._metric_fn_list[name] = None
            self._aggregation_list[name] = metric
            self._higher_is_better[name] = metric.higher_is_better

    def dump_config(self) -> dict[str, Any]:
        return {**super().dump_config(), "hedge": self._hedge_settings()}

    def _hedge_settings(self) -> dict[str, Any]:
        plan = SamplingPlan.from_generation_kwargs(self.config.generation_kwargs)
        filters = {e.name: _filter_settings(e.filters) for e in self._filters}
        return {
            "version": __version__,
            "documents": {
                **asdict(self._settings),
                "judge": self._judge.settings(),
                "revision": self._revision,
                "options": dict(self.config.dataset_kwargs or {}),
            },
            "prompt": asdict(self._prompt),
            "sampling": plan.settings(),
            "filters": filters,
            "outcome": self._outcome,
        }


def _document_config(config: Mapping[str, Any]) -> object:
    """The mapping `hedge`, with `hedge_overrides` on top: lmms-eval's `include` replaces mappings as a whole."""
    base, changes = config.get("hedge"), config.get("hedge_overrides", {})
    if not isinstance(changes, Mapping):
        raise ConfigError(f"{config['task']}: expected a mapping under 'hedge_overrides', got {changes!r}")
    return {**base, **changes} if isinstance(base, Mapping) else base


def _filter_settings(steps: list[Any]) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for step in steps:
        if isinstance(step, (ClusterFilter, ScoreFilter)):
            settings |= step.settings()
    return settings


def _model_identity(args: Any) -> str | None:
    """Name of the model and its arguments as the command line gives them, less what does not shape an answer."""
    if args is None or not getattr(args, "model", None):
        return None
    given = (argument.strip() for argument in str(args.model_args or "").split(","))
    return "|".join([str(args.model), *sorted(argument for argument in given if _shapes_answers(argument))])


def _shapes_answers(argument: str) -> bool:
    name = argument.partition("=")[0].strip().lower()
    return bool(name) and name not in _NOT_OF_THE_ANSWER and not any(word in name for word in _SECRETS)


def _store_folder(args: Any) -> Path | None:
    if folder := os.environ.get(STORE):
        return Path(folder)
    output_path = getattr(args, "output_path", None)
    return Path(output_path) / "hedge_answers" if output_path else None


def _output_folder(args: Any, name: str) -> Path | None:
    parent = getattr(args, "output_path", None) or os.environ.get(STORE)
    return Path(parent) / name if parent else None
