"""An entry's answers before its model: it reads them again with their prompts and pictures, and draws some anew."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.data.manifests import text_digest
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.leaderboard.attestation_records import AttestedDocument, Beacon, Engine, FreshDraw
from hedge_tasks.leaderboard.chain import READ_BY
from hedge_tasks.leaderboard.stated import logprob_field
from hedge_tasks.leaderboard.submission import installed_versions
from hedge_tasks.sampling.hook import outcomes, samples_itself
from hedge_tasks.sampling.plan import NOT_OF_THE_ANSWER, SamplingPlan
from hedge_tasks.sampling.requests import DrawRequest, SampleRequest
from hedge_tasks.sampling.reread import Reread, reread
from hedge_tasks.sampling.store import AnswerStore

if TYPE_CHECKING:
    from hedge_tasks.lmms.task import HedgeTask

BASELINES = 9
"""Baseline answers that are drawn anew of a document, beside which the entry's has its place."""

_DISTRIBUTIONS = ("hedge-tasks", "torch", "transformers", "vllm", "lmms-eval")
_FARTHEST = 1e6
"""A margin of a token that can not be chosen at all, as JSON has it."""

_LEAST_MARGIN = 1e-3
"""Below which a seed's choice needs no drawing again."""

_ATTEMPTS = 3

_Kind = Literal["baseline", "clean", "noisy"]


def plan_of(submission: Mapping[str, Any]) -> SamplingPlan:
    """Return the sampling plan that a submission states.

    Raises:
        DataError: it states none.
    """
    sampling = submission["settings"].get("sampling")
    if not isinstance(sampling, Mapping):
        raise DataError("settings.sampling: the entry does not say how it was sampled")
    settings = {key: value for key, value in sampling.items() if key not in NOT_OF_THE_ANSWER}
    return SamplingPlan.from_generation_kwargs({**settings, "n": sampling.get("n"), "n_noisy": sampling.get("n_noisy")})


def engine_of(model: Any, adapter: str, display_name: str) -> Engine:
    """Describe the model that answers, for a statement.

    Args:
        model: an adapter.
        adapter: its name.
        display_name: the model as people are shown it.
    """
    identity = str(getattr(model, "answer_identity", None) or "unknown")[:2000]
    dtype = getattr(model, "dtype", None)
    versions = installed_versions(_DISTRIBUTIONS)
    return Engine(adapter=adapter, model=display_name[:500], identity=identity, dtype=dtype, versions=versions)


def read_again(
    model: Any, task: HedgeTask, submission: Mapping[str, Any], answers: Mapping[str, AnswerSet], beacon: Beacon
) -> Iterator[AttestedDocument]:
    """Return what a model says of the answers to some documents, one after the other.

    Args:
        model: an adapter.
        task: of the entry, with its documents.
        submission: the entry.
        answers: that the entry has, with texts, by id in the order in which they were picked.
        beacon: the answers that are drawn anew get their seeds from it.

    Raises:
        ConfigError: the task asks with another prompt here.
        DataError: the task has another document of an id, or draws failed.
    """
    if submission["settings"].get(READ_BY):
        raise DataError("settings.read_by: the answers are readings of replies, whose own texts are not in an entry")
    plan = plan_of(submission)
    check_prompt(task, submission)
    requests = task.sample_requests(plan, list(answers))
    by_id = {document["id"]: document for document in submission["documents"]}
    for id, own in answers.items():
        if id not in requests:
            raise DataError(f"document {id[:80]!r}: the task has none of this id here")
        request, row = requests[id]
        check_document(request, by_id[id])
        draws = draws_of(task, request, row, plan)
        if len(draws) != len(own.answers):
            raise DataError(f"document {id[:80]!r}: {len(own.answers)} answers, and the settings make {len(draws)}")
        yield _document(model, draws, own, beacon)


def draws_of(
    task: HedgeTask, request: SampleRequest, row: tuple[str, str, int], plan: SamplingPlan
) -> list[DrawRequest]:
    """Return all draws of a document in the order baseline, clean, noisy."""
    fetch = partial(_row, task, row)
    return [DrawRequest(request, draw, fetch, row) for draw in plan.draws(request.key)]


def _row(task: HedgeTask, row: tuple[str, str, int]) -> Mapping[str, Any]:
    _, split, index = row
    document: Mapping[str, Any] = task.dataset[split][index]
    return document


def check_prompt(task: HedgeTask, submission: Mapping[str, Any]) -> None:
    """Check that the entry was asked with the task's prompt.

    Raises:
        ConfigError: it was not.
    """
    prompt = submission["settings"].get("prompt")
    ours = task.prompt_settings
    if not isinstance(prompt, Mapping) or any(prompt.get(key) != ours[key] for key in ("user", "system")):
        raise ConfigError(f"settings.prompt: the entry was asked with another prompt than {ours['name']!r} is here")


def check_document(request: SampleRequest, document: Mapping[str, Any]) -> None:
    """Check that the entry's document is the task's: by the store's key where it has one, else by the question."""
    stored = document.get("drawn")
    same_document = (
        stored["document"] == request.key
        if stored
        else document["digests"]["question"] == text_digest(request.question)
    )
    if not same_document:
        raise DataError(f"document {document['id'][:80]!r}: the task has another one of this id here")


def _document(model: Any, draws: Sequence[DrawRequest], answers: AnswerSet, beacon: Beacon) -> AttestedDocument:
    stated = answers.answers
    readings = reread(model, draws, stated)
    redrawn = _redrawn(model, draws, stated, readings)
    # Where drawing again gives the very text, its own numbers are those of the draw, of whatever tokens it is made.
    final = [
        reading
        if i not in redrawn
        else Reread(redrawn[i].mean_logprob or 0.0, redrawn[i].n_tokens or 0, redrawn[i].end_logprob, 0.0)
        if redrawn[i].text == stated[i].text and redrawn[i].mean_logprob is not None
        else reading
        for i, reading in enumerate(readings)
    ]
    usable = [reading if isinstance(reading, Reread) else None for reading in final]
    return AttestedDocument(
        id=answers.id,
        texts=tuple(_digest(answer.text) for answer in stated),
        logprobs=tuple(None if reading is None else logprob_field(reading.mean_logprob) for reading in usable),
        n_tokens=tuple(None if reading is None else reading.n_tokens for reading in usable),
        end_logprobs=tuple(None if reading is None else logprob_field(reading.end_logprob) for reading in usable),
        margins=tuple(None if reading is None else _margin(reading) for reading in usable),
        equal=tuple(redrawn[i].text == stated[i].text if i in redrawn else None for i in range(len(stated))),
        fresh=_fresh(model, draws, beacon),
    )


def _redrawn(
    model: Any, draws: Sequence[DrawRequest], stated: Sequence[Answer], readings: Sequence[Reread | str]
) -> dict[int, Answer]:
    """Draws made again: where this package chooses the tokens those whose reading leaves a doubt, as a text may be made
    of other tokens than it was drawn in; elsewhere all that take seeds."""
    if not hasattr(model, "generate_draws"):
        return {}
    doubted = [i for i, reading in enumerate(readings) if not samples_itself(model) or _is_doubted(reading, stated[i])]
    answers = answers_to(model, {str(i): draws[i] for i in doubted})
    return {int(key): answer for key, answer in answers.items()}


def _is_doubted(reading: Reread | str, answer: Answer) -> bool:
    if isinstance(reading, str):
        return False
    has_other_tokens = answer.n_tokens is not None and reading.n_tokens != answer.n_tokens
    return has_other_tokens or (reading.margin is not None and reading.margin > _LEAST_MARGIN)


def _fresh(model: Any, draws: Sequence[DrawRequest], beacon: Beacon) -> dict[_Kind, tuple[FreshDraw, ...]]:
    """Draw answers anew, with seeds that follow from the beacon."""
    first, noisy = draws[0], [draw for draw in draws if draw.draw.condition == "noisy"]
    n = sum(draw.draw.condition == "clean" for draw in draws)
    seed = int(beacon.value[:12], 16)
    cold = replace(first.request.plan, temperature=first.request.plan.baseline_temperature, alternatives=None)
    plan = replace(first.request.plan, seed=seed, n_noisy=0, alternatives=None)
    once = replace(plan, n=1)
    requests: dict[_Kind, list[DrawRequest]] = {
        "baseline": _clean_draws(first, replace(cold, seed=seed, n=BASELINES, n_noisy=0), "baseline"),
        "clean": _clean_draws(first, replace(plan, n=n), "clean"),
        "noisy": [_clean_draws(_clean_request(draw), once, f"noisy {i}")[0] for i, draw in enumerate(noisy)],
    }
    named = {f"{kind} {i}": draw for kind, batch in requests.items() for i, draw in enumerate(batch)}
    answers = answers_to(model, named)
    twice = _drawn_twice(model, named)
    fresh: dict[_Kind, tuple[FreshDraw, ...]] = {}
    for kind, batch in requests.items():
        names = [f"{kind} {i}" for i in range(len(batch))]
        mine = [answers[name] for name in names]
        equal = [answers[name].text == twice[name].text if name in twice else None for name in names]
        fresh[kind] = tuple(map(_fresh_draw, mine, reread(model, batch, mine), equal))
    return fresh


def _drawn_twice(model: Any, requests: Mapping[str, DrawRequest]) -> dict[str, Answer]:
    """The same draws among others, by which it is seen whether a seed gives an answer again; none where this package
    chooses the tokens, and where no seeds are taken."""
    if samples_itself(model) or not hasattr(model, "generate_draws"):
        return {}
    return answers_to(model, dict(reversed(list(requests.items()))))


def _clean_draws(draw: DrawRequest, plan: SamplingPlan, name: str) -> list[DrawRequest]:
    """Return clean draws of another plan for a draw's prompt, with seeds of their own."""
    request = replace(draw.request, plan=plan, key=f"{draw.request.key} {name}")
    return [
        replace(draw, request=request, draw=new_draw)
        for new_draw in plan.draws(request.key)
        if new_draw.condition == "clean"
    ]


def _clean_request(draw: DrawRequest) -> DrawRequest:
    """A noisy draw's prompt as one that clean draws read: its noisy picture and wording are the document's own."""
    request, wording = draw.request, draw.wording()
    pictures = draw.images()
    changed: dict[str, Any] = {"load_images": lambda document: pictures}
    if request.conversation is None:
        texts = {"context": wording.context, "distractor": wording.distractor}
        changed |= {"question": wording.question, **texts}
    else:
        changed |= {"conversation": request.conversation.reworded(request.question, wording.question)}
    return replace(draw, request=replace(request, **changed))


def answers_to(model: Any, draws: Mapping[str, DrawRequest]) -> dict[str, Answer]:
    """Ask a model for draws and return the answers by key; failed draws are asked for again.

    Raises:
        DataError: one fails time and again.
    """
    nowhere, left = AnswerStore(None), dict(draws)
    answers: dict[str, Answer] = {}
    reasons: dict[str, str] = {}
    for _ in range(_ATTEMPTS):
        if not left:
            break
        for outcome in outcomes(model, {key: (draw, nowhere) for key, draw in left.items()}):
            answers |= {key: answer for key, answer in outcome if isinstance(answer, Answer)}
            reasons |= {key: answer for key, answer in outcome if isinstance(answer, str)}
        left = {key: draw for key, draw in left.items() if key not in answers}
    if left:
        key = next(iter(left))
        raise DataError(f"document {left[key].request.id[:80]!r}: a draw failed: {reasons.get(key, 'no answer')[:300]}")
    return answers


def _fresh_draw(answer: Answer, reading: Reread | str, equal: bool | None) -> FreshDraw:
    known = reading if isinstance(reading, Reread) else None
    return FreshDraw(
        text=_digest(answer.text),
        logprob=logprob_field(answer.mean_logprob),
        n_tokens=answer.n_tokens,
        end_logprob=logprob_field(answer.end_logprob),
        reread=None if known is None else logprob_field(known.mean_logprob),
        reread_n_tokens=None if known is None else known.n_tokens,
        reread_end=None if known is None else logprob_field(known.end_logprob),
        margin=None if known is None else _margin(known),
        equal=equal,
    )


def _digest(text: str) -> str:
    return str(text_digest(text))


def _margin(reading: Reread) -> float | None:
    # Rounded: what a margin is beyond its sixth digit is the noise of a batch.
    return None if reading.margin is None else round(min(reading.margin, _FARTHEST), 6)
