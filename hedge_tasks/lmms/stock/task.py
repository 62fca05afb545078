"""A stock task asks, shows and scores; `HedgeTask` samples, clusters and keeps.

Composition: the stock task is a real one, built as lmms-eval builds it; everything about its documents is asked of it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval.api.task import ConfigurableMessagesTask, ConfigurableTask
from loguru import logger

from hedge_tasks.data import splits
from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.data.manifests import Data, text_digest
from hedge_tasks.data.option_order import options_in
from hedge_tasks.errors import ConfigError
from hedge_tasks.evaluation import TEMPLATE_FILE
from hedge_tasks.judging import Case, Judge, Verdict, configured_judge
from hedge_tasks.judging.config import ENVIRONMENT
from hedge_tasks.judging.references import NoJudge
from hedge_tasks.lmms.catalogue import task_folder
from hedge_tasks.lmms.documents import Documents
from hedge_tasks.lmms.filters import chosen_filters
from hedge_tasks.lmms.settings import TEXT_NOISE, DocumentSettings
from hedge_tasks.lmms.stock.aggregations import guarded, stability_metrics, stability_records
from hedge_tasks.lmms.stock.columns import group_column, id_column, type_column
from hedge_tasks.lmms.stock.data import built, with_local_copy
from hedge_tasks.lmms.stock.judge import Probes, StockJudge, spread, target_text
from hedge_tasks.lmms.stock.numbers import Numbers
from hedge_tasks.lmms.stock.options import NONE, StockOptions
from hedge_tasks.lmms.stock.presentation import Presentation
from hedge_tasks.lmms.stock.scoring import StockAnswer, StockOutcome, StockScoring, copied
from hedge_tasks.lmms.stock.source_scan import asks_a_model
from hedge_tasks.lmms.task import HedgeTask
from hedge_tasks.measures.forced_options import FORCED_ROWS, forced_measures, offered_facts
from hedge_tasks.measures.measure import by_name
from hedge_tasks.measures.standard_measures import known_measures
from hedge_tasks.replies import read_option
from hedge_tasks.sampling.prompts import Prompt
from hedge_tasks.sampling.requests import SampleRequest

_LIMITS = ("max_new_tokens", "until", "top_p", "top_k")
_LENGTHS = ("max_new_tokens", "max_gen_toks", "max_tokens")
_OURS = ("temperature", "do_sample", "num_beams", "max_gen_toks", "max_tokens")
"""Settings of a stock task that a sampling plan has its own of."""

_THOUGHTS = [["<think>", "</think>"], ["<thinking>", "</thinking>"]]
"""Text that lmms-eval strips for tasks with `auto_strip_thinking`."""

_WORKERS = 4


class StockTask(HedgeTask):
    """Any `generate_until` task of lmms-eval as a HEDGE task.

    Args:
        name: under which it is reported.
        config: of the stock task, as lmms-eval reads its YAML.
        options: of the user.
        chat: whether the model takes messages.
        model_name: `--model`, by which lmms-eval looks up model-specific prompts and limits.
        changes: keys that take the place of the template's (`metric_list`, `filter_list`, ...).

    Raises:
        ConfigError: it cannot be scored for hallucination, or only with a rule that nobody has given; says which.
    """

    def __init__(
        self,
        name: str,
        config: Mapping[str, Any],
        options: StockOptions,
        *,
        chat: bool,
        model_name: str | None = None,
        changes: Mapping[str, Any] | None = None,
    ) -> None:
        _check_kind(name, config)
        self._options = options
        kind = ConfigurableMessagesTask if chat else ConfigurableTask
        # A copy: lmms-eval changes what it is given.
        self._source = (str(config.get("dataset_path")), config.get("dataset_name"))
        own = with_local_copy(copied(config), name)
        self._stock = built(kind, own, options.model or model_name, self._source)
        self._split = str(self._stock.config.test_split or self._stock.config.validation_split)
        self._documents = self._stock.dataset[self._split]
        self._presentation = Presentation(self._stock, chat=chat)
        self._kind = self._presentation.kind([self._documents[row] for row in spread(len(self._documents))])
        self._outcomes: dict[str, StockOutcome] = {}
        self._stock_answers: dict[tuple[str, int], StockAnswer] = {}
        self._rows: dict[str, int] = {}
        self._rows_by_key: dict[str, int] = {}
        self._without_pictures = 0
        self._start(
            DocumentSettings(
                prompt=name,
                question="",
                answer="",
                images=(),
                id=id_column(self._documents, options.id, name),
                group=group_column(self._documents, options.group, name),
                question_type=type_column(self._documents, options.question_type, name),
            ),
            measures={**known_measures(), **by_name(forced_measures())},
            judge=self._build_judge(name),
            prompt=Prompt(name=name, user="{question}"),
        )
        ConfigurableMessagesTask.__init__(self, config=self._framework(name, changes or {}), model_name=model_name)
        self._configure_filters()
        self._add_stock_metrics()
        self._log_notes()

    # --- building -----------------------------------------------------------------------------------------------------

    def _build_judge(self, name: str) -> Judge:
        config = self._stock.config
        functions = [config.process_results, *self._stock.aggregation().values()]
        asks = asks_a_model(functions)
        self._scoring = StockScoring(self._stock, asks_a_model=asks is not None, judged_after=self._options.filter)
        self._asks, self._numbers = asks, Numbers(self._stock)
        self._probes: Probes | None = None
        # A model that is paid for is asked only by who names the metric.
        self._scores_beside = asks is None or self._options.judge not in (None, NONE)
        if os.environ.get(ENVIRONMENT, "").strip():
            return configured_judge({"name": "rule"})
        if self._options.judge == NONE:
            return NoJudge()
        if not self._scores_beside:
            metrics = ", ".join(self._numbers.metrics)
            raise ConfigError(
                f"{name}: its scoring may ask a language model ({asks}). To let it, name the metric: "
                f"{name}:judge=METRIC with one of {metrics}. Otherwise judge=none, or HEDGE_JUDGE names a judge"
            )
        documents = self._scored_documents()
        rows = spread(len(documents), 1) if asks else spread(len(documents))
        self._probes = Probes(self._stock, self._scoring, documents, rows)
        outcomes = self._probes.outcomes(thorough=asks is None)
        rule = self._numbers.rule(outcomes, self._options, name)
        facts = {"filter": self._scoring.filters[0], **({"asks_a_model": asks} if asks else {})}
        judge = StockJudge(rule, self._numbers, facts, self._outcomes)
        if asks:
            self._probes.check_reachable(judge, outcomes, name)
        return judge

    def _framework(self, name: str, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Return the configuration that lmms-eval sees."""
        from lmms_eval.utils import load_yaml_config

        stock = self._stock.config
        template = load_yaml_config(str(task_folder() / TEMPLATE_FILE))
        template.pop("class", None)
        sampling = {**template["generation_kwargs"], **_limits(stock.generation_kwargs, name)}
        metrics = template["metric_list"]
        if self._kind == "text":
            sampling["perturbation"] = TEXT_NOISE
        if self._kind == "other":
            sampling["n_noisy"] = 0
            metrics = [entry for entry in metrics if entry["metric"] != "vase_auroc"]
        if any(self.choices(self._documents[row]) for row in spread(len(self._documents))):
            metrics = [*metrics, *({"metric": row} for row in (*FORCED_ROWS, "option_entropy_auroc"))]
        framework = {
            **template,
            "task": name,
            "dataset_path": self._source[0],
            "dataset_name": self._source[1],
            "test_split": self._split,
            "num_fewshot": stock.num_fewshot,
            "generation_kwargs": {**sampling, **self._options.plan},
            "metric_list": metrics,
            "reasoning_tags": stock.reasoning_tags or (_THOUGHTS if stock.auto_strip_thinking else None),
            "cluster_key": stock.cluster_key,
            "score_key": stock.score_key,
            "metadata": stock.metadata if isinstance(stock.metadata, dict) else None,
            **changes,
        }
        return {**framework, "filter_list": chosen_filters(framework["filter_list"])}

    def _add_stock_metrics(self) -> None:
        """The stock task's rows beside ours; a name that is taken gets `task_` in front."""
        self._stock_names: dict[str, str] = {}
        self._stability = ""
        if not self._scores_beside:
            return
        aggregations = dict(self._stock.aggregation())
        if self._options.stability and isinstance(self.judge, StockJudge) and not self._asks:
            self._stability = self.judge.rule.metric or "task"
            aggregations |= stability_metrics(self._stability)
        for metric, aggregation in aggregations.items():
            name = f"task_{metric}" if metric in self._aggregation_list else metric
            self._stock_names[metric] = name
            self._aggregation_list[name] = guarded(aggregation, f"{self.config.task}, {metric}")
            self._higher_is_better[name] = self._stock.higher_is_better().get(metric, "variance" not in metric)

    def _log_notes(self) -> None:
        """Say what a user should know before the hours of sampling."""
        task, media = self.config.task, self._kind
        if media == "other":
            logger.warning(
                "{}: it shows more than pictures (video, sound), and there is no noise for that: n_noisy is 0, VASE is "
                "left out; semantic entropy, RadFlag and whatever needs clean answers alone remain",
                task,
            )
        elif media == "text":
            logger.info("{}: a text task; its noisy answers are to another wording ({})", task, TEXT_NOISE)
        if (repeats := self._stock.config.repeats) and repeats != 1:
            logger.warning("{}: repeats={} of its YAML does not count; n says how many answers", task, repeats)
        if isinstance(self.judge, StockJudge):
            logger.info("{}: an answer is right by {}", task, self.judge.rule)

    # --- documents: the stock task's ----------------------------------------------------------------------------------

    def download(self, dataset_kwargs: Mapping[str, Any] | None = None) -> None:
        """Take the data of the stock task."""
        self.dataset, self.dataset_no_image = self._stock.dataset, self._stock.dataset_no_image
        source = Data(*self._source, self._split, splits.loaded_revision(self._documents))
        texts = self._stock.dataset_no_image[self._split]
        # Image keys are added for the documents asked for; pictures are read as the stock task reads them.
        self._data = Documents(self._settings, self._documents, texts, source)

    def doc_to_text(self, doc: Mapping[str, Any]) -> Any:
        return self._stock.doc_to_text(doc)

    def doc_to_target(self, doc: Mapping[str, Any]) -> Any:
        return self._stock.doc_to_target(doc)

    def doc_to_visual(self, doc: Mapping[str, Any]) -> Any:
        return self._stock.doc_to_visual(doc)

    def choices(self, document: Mapping[str, Any]) -> tuple[str, ...] | None:
        """Return the letters of the question's options, where it has some and one of them is the right answer."""
        letter_sets = {
            tuple(option.letter for option in options_in(text)) for text in self._presentation.texts(document)
        } - {()}
        letters = letter_sets.pop() if len(letter_sets) == 1 else ()
        return letters if self._right_letter(document) in letters else None

    def _right_letter(self, document: Mapping[str, Any]) -> str:
        return target_text(self._stock, document).strip().strip("().: ").upper()

    def facts(self, document: Mapping[str, Any], answers: AnswerSet) -> Mapping[str, Any]:
        options = {option.letter: option.text for option in options_in(answers.question or "")}
        reading = (
            read_option(answers.baseline.text, options, cut=answers.baseline.finish == "length") if options else None
        )
        return {
            **offered_facts(answers, self._right_letter(document)),
            "option_said": None if reading is None or reading.soft else reading.value,
        }

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

    def build_all_requests(self, **options: Any) -> None:
        self._prepare()
        if self._kind == "other" and (self.plan.noisy_count or self.plan.image_check):
            raise ConfigError(
                f"{self.config.task}: it shows more than pictures, which nothing here perturbs; leave n_noisy and "
                "image_check at 0"
            )
        ConfigurableMessagesTask.build_all_requests(self, **options)
        self._announce(options.get("world_size") or 1)
        self._asked_at = time.perf_counter()
        if self._without_pictures and self.plan.noisy_count and not self._perturbs_text():
            logger.warning(
                "{}: {} of {} documents show no picture, and noise on pictures changes nothing of them: their noisy "
                "answers are further clean ones",
                *(self.config.task, self._without_pictures, len(self._instances)),
            )

    def _perturbs_text(self) -> bool:
        return self.plan.noise.settings().get("kind", "image") != "image"

    def _request(self, split: str, doc_id: int, ctx: str) -> SampleRequest:
        doc = self._documents[doc_id]
        presented, settings = self._presentation.present(doc), self._settings
        if presented.kind == "other" and self.plan.noisy_count:
            raise ConfigError(
                f"{self.config.task}: document {doc_id} shows more than pictures, which nothing here perturbs; give "
                "n_noisy=0"
            )
        self._without_pictures += not presented.media
        self._data.image_keys[doc_id] = media = presented.media_key()
        id_ = self._data.id(doc_id, doc)
        self._rows[id_] = doc_id
        group = str(doc[settings.group]) if settings.group else media or f"text {text_digest(ctx)}"
        return self._sample_request(
            id=id_,
            key=self._key(presented.key(ctx), doc_id),
            question=ctx,
            load_images=self._presentation.media,
            reference=target_text(self._stock, doc),
            group=group or None,
            question_type=self._data.question_type(doc),
            choices=self._choices(doc),
            options=self._offered(doc),
            conversation=presented.conversation,
            other_media=presented.kind == "other",
        )

    def _key(self, key: str, doc_id: int) -> str:
        """Return the key of a document; its row tells apart those that ask and show the same."""
        return key if self._rows_by_key.setdefault(key, doc_id) == doc_id else f"{key}.{doc_id}"

    # --- judging and scoring: the stock task's ------------------------------------------------------------------------

    def judge_cases(
        self, cases: Sequence[Case], answer_sets: Sequence[AnswerSet]
    ) -> list[tuple[Verdict, Mapping[str, Any]]]:
        if self._scores_beside:
            self._score(answer_sets)
            if self._asks and self._probes and isinstance(self.judge, StockJudge):
                self._check_judge_still_there(self.judge)
        return [(verdict, {}) for verdict in self.judge.judge(cases)]

    def _score(self, answer_sets: Sequence[AnswerSet]) -> None:
        """Let the stock task score the baseline answers and, for its stability, the clean ones."""
        rows = [self._rows[answers.id] for answers in answer_sets]
        documents = self._scored_documents().select(rows)
        filters = self._scoring.filters
        n_clean = min((len(a.clean) for a in answer_sets), default=0) if self._stability else 0
        try:
            baseline = self._scoring.filtered(documents, [a.baseline.text for a in answer_sets])
            clean = [
                self._scoring.filtered(documents, [a.clean[i].text for a in answer_sets])[filters[0]]
                for i in range(n_clean)
            ]
        except Exception as error:  # a filter of the task's own, with whatever it cannot bear
            outcome = StockOutcome(fault=f"its filters raised {type(error).__name__}: {error}")
            self._outcomes.update({answers.id: outcome for answers in answer_sets})
            return
        columns = [list(column) for column in zip(*(baseline[name] for name in filters), *clean, strict=True)]
        workers = int(getattr(self._args, "process_docs_parallel", None) or _WORKERS)
        scored = self._scoring.score_all(documents, columns, workers)
        for answers, row, filtered, outcomes in zip(answer_sets, rows, columns, scored, strict=True):
            self._outcomes[answers.id] = outcomes[0]
            extra = self._stability_records(outcomes[len(filters) :])
            for number, name in enumerate(filters):
                # What a judging model that failed left behind is no measurement of anything.
                own = {} if outcomes[number].fault else outcomes[number].metrics
                metrics = {**own, **(extra if number == 0 else {})}
                named = {self._stock_names.get(metric, metric): value for metric, value in metrics.items()}
                self._stock_answers[name, row] = StockAnswer(
                    filtered[number], StockOutcome(named, outcomes[number].fault)
                )

        faults = [fault for answers in answer_sets if (fault := self._outcomes[answers.id].fault)]
        if faults:
            logger.warning(
                "{}: {} of {} baseline answers could not be scored and are in none of its own rows: {}",
                *(self.config.task, len(faults), len(answer_sets), faults[0]),
            )

    def _stability_records(self, outcomes: Sequence[StockOutcome]) -> Mapping[str, Any]:
        if not self._stability or not isinstance(self.judge, StockJudge):
            return {}
        return stability_records(self._stability, [self.judge.verdict(outcome).label for outcome in outcomes])

    def _check_judge_still_there(self, judge: StockJudge) -> None:
        """Withdraw the labels of a judging model that went away meanwhile: it has called everything wrong since."""
        assert self._probes is not None
        try:
            self._probes.check_reachable(judge, self._probes.outcomes(thorough=False), self.config.task)
        except ConfigError as error:
            logger.warning("{}; no answer is labelled", error)
            judge.withdraw("the judging model could not be reached any more when the answers had been judged")

    def _scored_documents(self) -> Any:
        """Return the rows as lmms-eval hands them to `process_results`."""
        with_media = getattr(getattr(self, "args", None), "process_with_media", False)
        return (self._stock.dataset if with_media else self._stock.dataset_no_image)[self._split]

    def apply_filters(self) -> None:
        super().apply_filters()
        if self._predict_only or not self._scores_beside:
            return
        own_filters = {ensemble.name for ensemble in self._filters}
        # One more block of rows a stock filter, under its name: the task's metrics on the baseline answers, once.
        for name in self._scoring.filters:
            for instance in self._instances:
                answer = self._stock_answers.get((name, instance.doc_id), StockAnswer("", StockOutcome()))
                instance.filtered_resps[f"task_{name}" if name in own_filters else name] = answer

    def process_results(self, doc: Mapping[str, Any], results: list[Any], full_docs: object = None) -> dict[str, Any]:
        if results and isinstance(results[0], StockAnswer):
            return dict(results[0].outcome.metrics)
        return super().process_results(doc, results, full_docs)

    def _hedge_settings(self) -> dict[str, Any]:
        stock = {"task": self._stock.config.task, "shows": self._kind, "model_specific": self._options.model}
        return {**super()._hedge_settings(), "stock": stock}


def _check_kind(name: str, config: Mapping[str, Any]) -> None:
    if "class" in config:
        raise ConfigError(f"{name}: {config.get('task')} has a class of its own; call it without hedge:")
    output = config.get("output_type", "generate_until")
    if output != "generate_until":
        raise ConfigError(f"{name}: {config.get('task')} is of type {output}; hedge: samples answers (generate_until)")


def _limits(generation_kwargs: Mapping[str, Any] | None, task: str) -> dict[str, Any]:
    """Return what of a stock task's generation settings a sampling plan takes over."""
    settings = {key: value for key, value in (generation_kwargs or {}).items() if value is not None}
    limits = {key: settings[key] for key in _LIMITS if key in settings}
    length = next((settings[key] for key in _LENGTHS if key in settings), None)
    if length is not None:
        limits["max_new_tokens"] = int(length)
    if "until" in limits:
        until = [limits["until"]] if isinstance(limits["until"], str) else list(limits["until"])
        limits["until"] = [text for text in until if text]
    # Stock tasks are greedy and often say so with numbers that mean nothing to a sampler.
    if not 0 < limits.get("top_p", 1.0) <= 1:
        del limits["top_p"]
    if limits.get("top_k", 1) < 1 or not settings.get("do_sample", False):
        limits.pop("top_k", None)
    if not settings.get("do_sample", False):
        limits.pop("top_p", None)
    for key in settings.keys() - {*_LIMITS, *_OURS}:
        logger.warning("{}: its generation setting {}={!r} is not handed on", task, key, settings[key])
    return limits
