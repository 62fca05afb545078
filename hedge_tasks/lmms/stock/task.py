"""A stock task asks, shows and scores; `HedgeTask` samples, clusters and keeps.

Composition: the stock task is a real one, built as lmms-eval builds it; everything about its documents is asked of it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from lmms_eval.api.task import ConfigurableMessagesTask, ConfigurableTask
from loguru import logger

from hedge_tasks.data import splits
from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.data.manifests import Data, text_digest
from hedge_tasks.errors import ConfigError, check_names
from hedge_tasks.evaluation import TEMPLATE_FILE, own_folder
from hedge_tasks.judging import Case, Judge, Verdict, configured_judge
from hedge_tasks.judging.config import ENVIRONMENT
from hedge_tasks.judging.references import NoJudge
from hedge_tasks.lmms.documents import Documents
from hedge_tasks.lmms.filters import chosen_filters
from hedge_tasks.lmms.settings import TEXT_NOISE, DocumentSettings
from hedge_tasks.lmms.stock.judge import StockJudge, find_rule, spread, target_text
from hedge_tasks.lmms.stock.names import NONE, StockOptions
from hedge_tasks.lmms.stock.presentation import KINDS, present
from hedge_tasks.lmms.stock.scoring import StockAnswer, StockScoring, copied
from hedge_tasks.lmms.task import HedgeTask
from hedge_tasks.measures.standard_measures import known_measures
from hedge_tasks.sampling.prompts import Prompt
from hedge_tasks.sampling.requests import SampleRequest

_LENGTHS = ("max_new_tokens", "max_gen_toks", "max_tokens")
_SAMPLING = ("temperature", "do_sample", "num_beams", "top_p", "top_k")
"""Settings of a stock task that a sampling plan has its own of."""


class StockTask(HedgeTask):
    """Any `generate_until` task of lmms-eval as a HEDGE task.

    Args:
        name: under which it is reported.
        config: of the stock task, as lmms-eval reads its YAML.
        options: of the user.
        chat: whether the model takes messages.
        model_name: `--model`, by which lmms-eval looks up model-specific prompts and limits.

    Raises:
        ConfigError: it cannot be scored for hallucination, or only with a rule that nobody has named; says which.
    """

    takes_system_instruction = True

    def __init__(
        self, name: str, config: Mapping[str, Any], options: StockOptions, *, chat: bool, model_name: str | None = None
    ) -> None:
        output = config.get("output_type", "generate_until")
        if "class" in config or output != "generate_until":
            kind = f"is of type {output}" if "class" not in config else "has a class of its own"
            raise ConfigError(f"{name}: {config.get('task')} {kind}; hedge: samples answers (generate_until)")
        self._options = options
        kind = ConfigurableMessagesTask if chat else ConfigurableTask
        # A copy: lmms-eval changes what it gets.
        self._stock = kind(config=copied(config), model_name=options.model or model_name)
        self._split = str(self._stock.config.test_split or self._stock.config.validation_split)
        self._documents = self._stock.dataset[self._split]
        self._present = partial(present, self._stock, chat=chat)
        kinds = {self._present(self._documents[row]).kind for row in spread(len(self._documents))}
        self._kind = next(kind for kind in KINDS if kind in {*kinds, "text"})
        self._scoring = StockScoring(self._stock)
        columns: dict[str, Any] = {"group": options.group, "question_type": options.question_type}
        check_names(f"column of {name}", filter(None, columns.values()), self._documents.column_names)
        self._stock_answers: dict[tuple[str, int], StockAnswer] = {}
        self._rows_by_key: dict[str, int] = {}
        self._start(
            DocumentSettings(prompt=name, question="", answer="", images=(), **columns),
            measures=known_measures(),
            judge=self._build_judge(name),
            prompt=Prompt(name=name, user="{question}"),
        )
        ConfigurableMessagesTask.__init__(self, config=self._framework(name), model_name=model_name)
        self._configure_filters()
        self._add_stock_metrics()

    # --- building -----------------------------------------------------------------------------------------------------

    def _build_judge(self, name: str) -> Judge:
        if os.environ.get(ENVIRONMENT, "").strip():
            return configured_judge("rule")
        if self._options.judge == NONE:
            return NoJudge()
        rule = find_rule(self._stock, self._scoring, self._scored_documents(), self._options, name)
        logger.info("{}: an answer is right by {}", name, rule)
        return StockJudge(rule, self._scoring.filters[0])

    def _framework(self, name: str) -> dict[str, Any]:
        """Return the configuration that lmms-eval sees."""
        from lmms_eval.utils import load_yaml_config

        stock = self._stock.config
        template = load_yaml_config(str(own_folder(TEMPLATE_FILE)))
        del template["class"]
        sampling = {**template["generation_kwargs"], **_limits(stock.generation_kwargs, name)}
        if self._kind == "text":
            sampling["perturbation"] = TEXT_NOISE
        if self._kind == "other":
            logger.warning("{}: there is no noise for video and sound: n_noisy is 0, and VASE has no number", name)
            sampling["n_noisy"] = 0
        return {
            **template,
            "task": name,
            "dataset_path": stock.dataset_path,
            "dataset_name": stock.dataset_name,
            "test_split": self._split,
            "num_fewshot": stock.num_fewshot,
            "generation_kwargs": sampling,
            "filter_list": chosen_filters(template["filter_list"]),
            "reasoning_tags": stock.reasoning_tags,
            "cluster_key": stock.cluster_key,
            "score_key": stock.score_key,
            "metadata": stock.metadata if isinstance(stock.metadata, dict) else None,
        }

    def _add_stock_metrics(self) -> None:
        """The stock task's rows beside ours; a name that is taken gets `task_` in front."""
        self._stock_names: dict[str, str] = {}
        for metric, aggregation in self._stock.aggregation().items():
            name = f"task_{metric}" if metric in self._aggregation_list else metric
            self._stock_names[metric] = name
            self._aggregation_list[name] = self._scoring.guarded(aggregation, f"{self.config.task}, {metric}")
            self._higher_is_better[name] = self._stock.higher_is_better().get(metric, True)

    # --- documents: the stock task's ----------------------------------------------------------------------------------

    def download(self, dataset_kwargs: Mapping[str, Any] | None = None) -> None:
        """Take the data of the stock task."""
        self.dataset, self.dataset_no_image = self._stock.dataset, self._stock.dataset_no_image
        stock = self._stock.config
        source = Data(stock.dataset_path, stock.dataset_name, self._split, splits.loaded_revision(self._documents))
        texts = self._stock.dataset_no_image[self._split]
        # Image keys are added for the documents asked for; pictures are read as the stock task reads them.
        self._data = Documents(self._documents, texts, source)

    def doc_to_text(self, doc: Mapping[str, Any]) -> Any:
        return self._stock.doc_to_text(doc)

    def doc_to_target(self, doc: Mapping[str, Any]) -> Any:
        return self._stock.doc_to_target(doc)

    def doc_to_visual(self, doc: Mapping[str, Any]) -> Any:
        return self._stock.doc_to_visual(doc)

    def fewshot_context(self, *args: Any, **kwargs: Any) -> Any:
        return self._stock.fewshot_context(*args, **kwargs)

    def set_config(self, key: str, value: Any, update: bool = False) -> None:
        super().set_config(key, value, update)
        if key == "num_fewshot":  # text tasks put the examples into their messages
            self._stock.set_config(key, value, update)

    def set_fewshot_seed(self, seed: int | None = None) -> None:
        super().set_fewshot_seed(seed)
        self._stock.set_fewshot_seed(seed)

    # --- requests -----------------------------------------------------------------------------------------------------

    def _request(self, split: str, doc_id: int, ctx: str) -> SampleRequest:
        doc = self._documents[doc_id]
        presented, settings = self._present(doc), self._settings
        if presented.kind == "other" and (self.plan.noisy_count or self.plan.image_check):
            raise ConfigError(
                f"{self.config.task}: document {doc_id} shows more than pictures, which nothing perturbs; n_noisy and "
                "image_check have to be 0"
            )
        self._data.image_keys[doc_id] = media = presented.media_key()
        key = presented.key(ctx)
        group = str(doc[settings.group]) if settings.group else media or f"text {text_digest(ctx)}"
        return self._sample_request(
            doc,
            id=str(doc_id),
            # The row tells apart those that ask and show the same.
            key=key if self._rows_by_key.setdefault(key, doc_id) == doc_id else f"{key}.{doc_id}",
            question=ctx,
            load_images=lambda document: list(self._present(document).media),
            reference=target_text(self._stock, doc),
            group=group or None,
            conversation=presented.conversation,
            other_media=presented.kind == "other",
        )

    # --- judging and scoring: the stock task's ------------------------------------------------------------------------

    def judge_cases(
        self, cases: Sequence[Case], answer_sets: Sequence[AnswerSet]
    ) -> list[tuple[Verdict, Mapping[str, Any]]]:
        """Let the stock task score the baseline answers, and ask the judge."""
        rows = [int(answers.id) for answers in answer_sets]
        texts = [answers.baseline.text for answers in answer_sets]
        scored = self._scoring.score_all(self._scored_documents().select(rows), texts)
        for name, of_filter in scored.items():
            for row, (filtered, outcome) in zip(rows, of_filter, strict=True):
                named = {self._stock_names.get(metric, metric): value for metric, value in outcome.metrics.items()}
                self._stock_answers[name, row] = StockAnswer(filtered, named)
        outcomes = [outcome for _, outcome in scored[self._scoring.filters[0]]]
        if isinstance(self.judge, StockJudge):
            self.judge.outcomes.update(zip((answers.id for answers in answer_sets), outcomes, strict=True))
        if faults := [outcome.fault for outcome in outcomes if outcome.fault]:
            logger.warning(
                "{}: {} of {} baseline answers could not be scored and are in none of its own rows: {}",
                *(self.config.task, len(faults), len(answer_sets), faults[0]),
            )
        return [(verdict, {}) for verdict in self.judge.judge(cases)]

    def _scored_documents(self) -> Any:
        """Return the rows as lmms-eval hands them to `process_results`."""
        with_media = getattr(self._args, "process_with_media", False)
        return (self._stock.dataset if with_media else self._stock.dataset_no_image)[self._split]

    def apply_filters(self) -> None:
        super().apply_filters()
        if self._predict_only:
            return
        own_filters = {ensemble.name for ensemble in self._filters}
        # One more block of rows a stock filter, under its name: the task's metrics on the baseline answers, once.
        for name in self._scoring.filters:
            for instance in self._instances:
                answer = self._stock_answers.get((name, instance.doc_id), StockAnswer("", {}))
                instance.filtered_resps[f"task_{name}" if name in own_filters else name] = answer

    def process_results(self, doc: Mapping[str, Any], results: list[Any], full_docs: object = None) -> dict[str, Any]:
        if results and isinstance(results[0], StockAnswer):
            return dict(results[0].metrics)
        return super().process_results(doc, results, full_docs)

    def _hedge_settings(self) -> dict[str, Any]:
        stock = {"task": self._stock.config.task, "shows": self._kind, "model_specific": self._options.model}
        return {**super()._hedge_settings(), "stock": stock}


def _limits(generation_kwargs: Mapping[str, Any] | None, task: str) -> dict[str, Any]:
    """Return what of a stock task's generation settings a sampling plan takes over: length, and where answers end."""
    settings = {key: value for key, value in (generation_kwargs or {}).items() if value is not None}
    limits: dict[str, Any] = {}
    if lengths := [int(settings[key]) for key in _LENGTHS if key in settings]:
        limits["max_new_tokens"] = lengths[0]
    if "until" in settings:
        until = settings["until"]
        limits["until"] = [text for text in ([until] if isinstance(until, str) else until) if text]
    if left := settings.keys() - {*_LENGTHS, *_SAMPLING, "until"}:
        logger.warning("{}: its generation settings {} are not handed on", task, ", ".join(sorted(left)))
    return limits
