"""`generate_samples`: the request type that turns one document into many answers, on any lmms-eval model.

The plug-in adds it to lmms-eval's model base class. It receives every document of every task of this package at once,
takes finished draws from the answer store and asks the model for the others: an adapter of ours through
`generate_draws` (seeded draws with log-probabilities), any other through the `generate_until` it already has.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from loguru import logger
from tqdm import tqdm

from hedge_tasks.data.answers import Answer, AnswerSet, FailedDocument, Refused, Unaskable
from hedge_tasks.data.thoughts import cut
from hedge_tasks.errors import ConfigError, DrawsFailed
from hedge_tasks.io.chunks import chunks
from hedge_tasks.llm.secrets import Redactor
from hedge_tasks.perturb.workers import PictureWorkers
from hedge_tasks.sampling.behaviour import SettingTried
from hedge_tasks.sampling.failures import LONGEST_REASON, FailureTally
from hedge_tasks.sampling.forced import force, forced_answers
from hedge_tasks.sampling.image_check import plan_checks, summary
from hedge_tasks.sampling.inside import check_inside, keep_inside
from hedge_tasks.sampling.jobs import Job, Stores, keep_documents, load_documents
from hedge_tasks.sampling.plan import SamplingPlan
from hedge_tasks.sampling.prefetch import prefetch_messages
from hedge_tasks.sampling.probe import ProbeReport, announce, probe
from hedge_tasks.sampling.requests import DrawRequest, UnreadablePicture
from hedge_tasks.sampling.segments import home
from hedge_tasks.sampling.store import AnswerStore, FinishedDraw

MAX_ATTEMPTS = 3
"""How often a draw is asked for before it counts as failed."""

CHUNK = 64
"""Draws handed to a foreign adapter in one call, whose pictures are in memory together: enough to fill its batches."""

_FAILURE = re.compile(r"\[LMMS_EVAL_REQUEST_FAILED\b")
_BUDGET = "[LMMS_EVAL_BUDGET_EXCEEDED]"


class DrawingModel(Protocol):
    """Methods that an adapter must offer to receive draws instead of plain text requests."""

    def generate_draws(self, draws: Sequence[DrawRequest]) -> Iterator[Sequence[tuple[int, Answer | str]]]:
        """Yield the (position in `draws`, answer) pairs of each finished batch, in any order.

        A string in place of an answer says why this draw failed; it is asked for again, never stored. A `Refused` is
        not asked for again: the document is left out where the plan's `max_failed` allows it.

        A model with a true attribute `takes_choices` writes nothing but one of the texts in `draw.request.choices`,
        where there are some.
        """
        ...

    @property
    def answer_identity(self) -> str:
        """Everything about the model that shapes an answer (weights, revision, precision)."""
        ...


def generate_samples(model: Any, requests: Sequence[Any]) -> list[str]:
    """Sample all answers of all documents; the method that `lmms_eval.api.model.lmms` receives.

    Args:
        model: an lmms-eval model.
        requests: lmms-eval instances whose third argument is a `SampleRequest`.

    Returns:
        One `AnswerSet` as JSON an instance, in their order.

    Raises:
        DrawsFailed: draws of more documents failed `MAX_ATTEMPTS` times, or for good, than the plan's `max_failed`
            allows to leave out. All finished ones are in the store.
    """
    _check_abilities(model, [instance.args[2].plan for instance in requests])
    check_inside(model, [instance.args[2] for instance in requests])
    with Stores() as stores:
        jobs = [Job.of(model, instance.args[2], instance.args[3:6], stores) for instance in requests]
        failed = _fill_stores(model, jobs)
        answered = {i: job.answer_set() for i, job in enumerate(jobs) if not failed.keys() & job.draws.keys()}
        # The second stage waits for the first of all documents, so that its draws, too, come in large batches.
        further = {i: jobs[i].further(model, answers, stores) for i, answers in answered.items()}
        failed |= _fill_stores(model, [job for of_document in further.values() for job in of_document], probed=True)
        _check_images(model, [jobs[i] for i in answered])
        force(
            model,
            [job for i in answered for job in (jobs[i], *further.get(i, ())) if not failed.keys() & job.draws.keys()],
        )
        keep_inside(model, [jobs[i] for i in answered])
        answered = {i: answers.with_forced(forced_answers(jobs[i])) for i, answers in answered.items()}
        reports = _reports(jobs)
        return [
            _response(job, answered.get(i), further.get(i, ()), failed, reports.get(i)) for i, job in enumerate(jobs)
        ]


def _check_abilities(model: Any, plans: Sequence[SamplingPlan]) -> None:
    """Constrained decoding or tokens that are asked for and not to be had are an error: answers without are others."""
    name, able = type(model).__name__, "hedge_hf, hedge_vllm and hedge_openai"
    if any(plan.guided for plan in plans) and not getattr(model, "takes_choices", False):
        raise ConfigError(f"guided: {name} cannot be kept to given answers; {able} can")
    if any(plan.alternatives is not None for plan in plans) and not getattr(model, "tells_tokens", False):
        raise ConfigError(f"alternatives: {name} does not tell its tokens; {able} do")


def _response(
    job: Job,
    answers: AnswerSet | None,
    follow_ups: Sequence[Job],
    failed: Mapping[str, str],
    report: Mapping[str, Any] | None,
) -> str:
    """The result that goes back to lmms-eval for one document."""
    reasons = [failed[key] for each_job in (job, *follow_ups) for key in each_job.draws if key in failed]
    if reasons or answers is None:
        return FailedDocument(job.request.id, type(reasons[0])(reasons[0][:LONGEST_REASON])).to_json(report)
    further_sets = [further.answer_set().with_forced(forced_answers(further)) for further in follow_ups]
    return answers.with_follow_ups(further_sets).to_json(report)


def _reports(jobs: Sequence[Job]) -> dict[int, Mapping[str, Any]]:
    """How the model behaved, by the position of each definition's first document: it goes back with that one."""
    firsts = {jobs[i].definition.id: i for i in reversed(range(len(jobs)))}
    return {i: report for i in firsts.values() if (report := jobs[i].store.reports.get(jobs[i].definition.id))}


def _fill_stores(model: Any, jobs: Sequence[Job], *, probed: bool = False) -> dict[str, str]:
    """Make the draws of the jobs that are not in the store yet.

    Args:
        probed: whether the model has been probed: a second stage asks the one that answered the first.

    Returns:
        Why the draws failed that did, by key; no more of them than the plans allow for.

    Raises:
        DrawsFailed: more documents failed than a task's plan allows to leave out.
    """
    if not jobs:
        return {}
    load_documents(jobs)
    keep_documents(jobs)
    pending = {key: (draw, job.store) for job in jobs for key, draw in job.missing()}
    n_draws = len({key for job in jobs for key in job.draws})
    logger.info("{} draws for {} documents; {} are in the store", n_draws, len(jobs), n_draws - len(pending))
    groups = {} if probed else _jobs_by_definition(jobs, pending)
    _probe_definitions(model, groups, pending)
    tally = FailureTally(jobs)
    failed = _sample(model, pending, tally)
    _keep_reports(model, groups)  # once more, for what came to light only now
    for key, reason in failed.items():
        tally.add(key, reason)
    tally.check()
    if failed:
        logger.warning("{} of {} draws failed; their documents are left out. {}", len(failed), n_draws, tally.first)
    return failed


_Pending = Mapping[str, tuple[DrawRequest, AnswerStore]]
_Groups = Mapping[str, Sequence[Job]]
"""The jobs of each definition, by its id."""


def _probe_definitions(model: Any, groups: _Groups, pending: _Pending) -> None:
    """Probe the model, and keep with each definition the findings and the settings sent.

    Raises:
        DrawsFailed: nothing was answered, so that nothing would be: every draw would be tried in vain, for hours.
    """
    probes: dict[str, ProbeReport] = {}
    behaviour: Mapping[str, SettingTried] = {}
    for definition, group in groups.items():
        if group[0].request.plan.probe:
            draws = [draw for job in group for key, draw in job.draws.items() if key in pending]
            report = _probe(model, draws, settings=not behaviour)
            # What the server does with settings does not depend on the task: it is found out once.
            behaviour = report.behaviour if report and report.behaviour else behaviour
            probes |= {definition: report.replaced(behaviour=dict(behaviour))} if report else {}
    reports = _keep_reports(model, groups, probes)
    for definition, report in probes.items():
        task = groups[definition][0].definition.task
        announce(report, task, reports[definition].get("server", {}))
        if report.failed_wholly:
            raise DrawsFailed(
                f"{task}: all {report.draws} draws of the probe failed, so nothing is sampled. First reason: "
                f"{report.reason}. `--gen_kwargs probe=false` samples without a probe"
            )


def _keep_reports(
    model: Any, groups: _Groups, probes: Mapping[str, ProbeReport] | None = None
) -> dict[str, Mapping[str, Any]]:
    """Keep with each definition what was sent and what is known of the server, as far as that is known by now."""
    facts = getattr(model, "sampling_facts", None)
    reports: dict[str, Mapping[str, Any]] = {}
    for definition, group in groups.items():
        store, plan = group[0].store, group[0].request.plan
        before = {} if probes is not None else store.reports.get(definition, {})
        report = {**before, "decoding": _decoding(model, plan)}
        report |= {"probe": probes[definition].to_dict()} if probes and definition in probes else {}
        report |= {"server": facts()} if facts else {}
        reports[definition] = report
        store.put_report(definition, report)
    return reports


def _jobs_by_definition(jobs: Sequence[Job], pending: _Pending) -> dict[str, list[Job]]:
    """The jobs of each definition that has draws to make."""
    wanted = dict.fromkeys(job.definition.id for job in jobs if not pending.keys().isdisjoint(job.draws))
    return {name: [job for job in jobs if job.definition.id == name] for name in wanted}


def _check_images(model: Any, jobs: Sequence[Job]) -> None:
    """Make the draws of the plans' `image_check`, and store for each definition how many answers stayed the same."""
    checks = plan_checks(jobs)
    pending = {
        key: (draw, check.job.store)
        for check in checks
        for key, draw in check.draws.values()
        if check.job.store.get(key) is None
    }
    for outcome in outcomes(model, pending):
        _store_outcome(outcome, pending)  # one that fails is one document less in the check
    for job in {check.job.definition.id: check.job for check in checks}.values():
        store, definition = job.store, job.definition
        image_use = {"image_use": summary(checks, definition.task)}
        store.put_report(definition.id, {**store.reports.get(definition.id, {}), **image_use})


def _probe(model: Any, draws: Sequence[DrawRequest], *, settings: bool) -> ProbeReport | None:
    seeded, nowhere = hasattr(model, "generate_draws"), AnswerStore(None)

    def make(requests: Mapping[str, DrawRequest]) -> Iterator[_Outcome]:
        return outcomes(model, {key: (draw, nowhere) for key, draw in requests.items()})

    return probe(draws, make, seeded=seeded, settings=settings and seeded and not samples_itself(model))


def samples_itself(model: Any) -> bool:
    """Whether an adapter chooses the tokens in this package's own code, so that no server has to be trusted."""
    return bool(getattr(model, "samples_itself", False))


def _decoding(model: Any, plan: SamplingPlan) -> dict[str, Any]:
    """Settings asked for, and those sent to the server or engine; None where the adapter does not know them."""
    limits = plan.limits()
    effective = getattr(model, "sent_decoding", None)
    facts = {
        "asked": plan.decoding,
        "temperature": plan.temperature,
        "baseline_temperature": plan.baseline_temperature,
    }
    # Where tokens are left out or constrained, log-probabilities are of the raw distribution all the same: such draws
    # are no samples of it. Where they are contrasted, both are of the contrasted one, which is not the model's own.
    narrowed = plan.guided or any(value is not None for value in (plan.top_p, plan.top_k, plan.min_p))
    contrasts = (getattr(getattr(model, name, None), "settings", None) for name in ("contrast", "decoding"))
    method = next((settings for settings in contrasts if settings is not None), None)
    restricted: dict[str, Any] = {"restricted": True} if narrowed or method is not None else {}
    restricted |= {"method": dict(method)} if isinstance(method, Mapping) else {}
    itself = {"sampled_here": True} if samples_itself(model) else {}
    return {**facts, **restricted, **itself, "sent": effective(limits) if effective else None}


def _sample(model: Any, pending: _Pending, tally: FailureTally) -> dict[str, str]:
    """Make the pending draws and store them as they finish. Returns what is wrong with those that failed, by key."""
    if not pending:
        return {}
    left, failed = dict(pending), dict[str, str]()
    refused: dict[str, str] = {}
    with tqdm(total=len(pending), desc="Sampling", unit="draw", disable=getattr(model, "rank", 0) != 0) as bar:
        for attempt in range(1, MAX_ATTEMPTS + 1):
            failed = {}
            for outcome in outcomes(model, left):
                _store_outcome(outcome, left)
                for key, reason in outcome:
                    if isinstance(reason, Refused):
                        refused[key] = reason
                        tally.add(key, reason)
                        tally.check()
                    elif isinstance(reason, str):
                        failed[key] = reason
                bar.update(sum(isinstance(answer, Answer) for _, answer in outcome))
            left = {key: left[key] for key in failed}
            if not left or _BUDGET in failed.values():
                break
            if attempt < MAX_ATTEMPTS:
                logger.warning("{} draws failed, asking again ({} of {})", len(left), attempt, MAX_ATTEMPTS - 1)
    return refused | failed


_Outcome = list[tuple[str, "Answer | str"]]
"""Finished draws by key; a string in place of an answer says what went wrong."""


def _store_outcome(outcome: _Outcome, pending: _Pending) -> None:
    """Keep what has come at once in one write a store: a process that is killed leaves whole batches."""
    finished: dict[int, tuple[AnswerStore, list[FinishedDraw]]] = {}
    for key, answer in outcome:
        if isinstance(answer, Answer):
            draw, store = pending[key]
            place = (draw.request.id, draw.draw.condition, draw.draw.index, home(draw.request.key))
            finished.setdefault(id(store), (store, []))[1].append(FinishedDraw(key, answer, *place))
    for store, draws in finished.values():
        store.put(draws)


def outcomes(model: Any, pending: _Pending) -> Generator[_Outcome, None, None]:
    """The outcomes of draws as they finish, by whatever way the model is asked. Nothing is stored, nor asked again.

    A picture that cannot be read ends what an adapter is at. Its document's draws have failed then for good, and the
    adapter is asked for the others. Keys in the answers' texts are taken out before anybody has them. Documents that
    the model cannot be asked are not put to it.
    """
    redact = Redactor()
    make = _own_draws if hasattr(model, "generate_draws") else _foreign_draws
    if refused := _unaskable(pending, getattr(model, "control_marks", ())):
        yield list(refused.items())
    left = {key: draw_and_store for key, draw_and_store in pending.items() if key not in refused}
    while left:
        done: set[str] = set()
        try:
            for outcome in make(model, left):
                done.update(key for key, _ in outcome)
                yield [(key, without_keys(answer, redact)) for key, answer in outcome]
            return
        except UnreadablePicture as error:
            left = {key: draw_and_store for key, draw_and_store in left.items() if key not in done}
            gone = [key for key, (draw, _) in left.items() if draw.request.key == error.key]
            if not gone:
                raise
            left = {key: draw_and_store for key, draw_and_store in left.items() if key not in gone}
            yield [(key, Refused(error)) for key in gone]


def _unaskable(pending: _Pending, marks: Collection[str]) -> dict[str, Unaskable]:
    """Draws, by key, whose text holds a mark of the model's own: it would be read as a picture more, or the turn's end.

    Args:
        marks: of the model.
    """
    refused = {}
    for key, (draw, _) in pending.items():
        if held := [mark for mark in marks if mark in draw.request.text]:
            reason = f"its text holds {max(held, key=len)!r}, which the model reads as a mark of its own"
            refused[key] = Unaskable(f"document {draw.request.id} cannot be asked: {reason}")
    return refused


def without_keys(answer: Answer | str, redact: Redactor) -> Answer | str:
    """An answer with the keys in its text taken out. Its tokens would spell them. Reasons have been redacted before."""
    if not isinstance(answer, Answer):
        return answer
    text = redact(answer.text, answer=True)
    return answer if text == answer.text else replace(answer, text=text, tokens=None, alternatives=None)


def _own_draws(model: DrawingModel, pending: _Pending) -> Iterator[_Outcome]:
    keys = list(pending)
    for batch in model.generate_draws([pending[key][0] for key in keys]):
        yield [(keys[position], answer) for position, answer in batch]


def _foreign_draws(model: Any, pending: _Pending) -> Iterator[_Outcome]:
    from lmms_eval.api.instance import unwrap_generation_output

    with PictureWorkers() as workers:
        for keys in chunks(list(pending), CHUNK):
            draws = [pending[key][0] for key in keys]
            with closing(prefetch_messages(draws, pictures=workers, make=lambda draw, images: images)) as seen:
                pictures = list(seen)
            with _seeded(draws):
                outputs = model.generate_until(list(map(partial(_instance, model), draws, pictures)))
            texts = [unwrap_generation_output(output)[0] for output in outputs]
            replies = zip(keys, texts, draws, strict=True)
            yield [(key, _read_reply(text, draw.request.plan.until)) for key, text, draw in replies]


def _read_reply(text: object, until: Sequence[str]) -> Answer | str:
    if not isinstance(text, str):
        return f"the adapter returned {type(text).__name__} instead of text"
    if _BUDGET in text:
        return _BUDGET
    return text.strip() if _FAILURE.match(text.lstrip()) else Answer(cut(text, until).strip())


def _instance(model: Any, draw: DrawRequest, pictures: list[Any]) -> Any:
    """The draw as an ordinary `generate_until` request.

    Adapters batch requests whose generation settings are equal, so nothing of the single draw (seed, index) may be in
    there; the perturbed image comes out of the function that loads it.
    """
    from lmms_eval.api.instance import Instance

    request, (task, split, index) = draw.request, draw.row
    limits = request.plan.limits()
    # Of pure sampling the one field that every adapter knows; nobody but ours knows the word.
    pure = {"top_p": 1.0} if limits.pop("decoding") == "pure" else {}
    limits.pop("until", None)  # it would end a thought: the answer is cut here
    settings = {"temperature": draw.draw.temperature, "do_sample": draw.draw.temperature > 0, **pure, **limits}

    def images(document: Mapping[str, Any]) -> list[Any]:
        return pictures

    def messages(document: Mapping[str, Any]) -> list[dict[str, Any]]:
        return draw.conversation(pictures)

    order: tuple[Any, Any] = (settings, images) if model.is_simple else (messages, settings)
    arguments = (draw.text(), *order, index, task, split)
    metadata = {"task": task, "doc_id": index, "repeats": 1, "split": split}
    return Instance("generate_until", arguments, draw.draw.index, metadata)


@contextmanager
def _seeded(draws: Sequence[DrawRequest]) -> Iterator[None]:
    """Seed torch for a chunk of draws and restore its state after, so that a rerun on a local model repeats itself."""
    import torch

    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(hash(tuple(draw.draw.seed for draw in draws)) & (2**63 - 1))
        yield
