"""`generate_samples`: the request type that turns one document into many answers, on any lmms-eval model.

The plug-in adds it to lmms-eval's model base class. It receives every document of every task of this package at once,
takes finished draws from the answer store and asks the model for the others: an adapter of ours through
`generate_draws` (seeded draws with log-probabilities), any other through the `generate_until` it already has.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from loguru import logger
from tqdm import tqdm

from hedge_tasks.errors import DrawsFailed
from hedge_tasks.perturb import perturb_image, to_rgb8
from hedge_tasks.sampling.answers import Answer, AnswerSet, Draw
from hedge_tasks.sampling.plan import SamplingPlan
from hedge_tasks.sampling.prompts import Prompt
from hedge_tasks.sampling.store import AnswerStore, Record, draw_key

MAX_ATTEMPTS = 3
"""How often a draw is asked for before it counts as failed."""

CHUNK = 256
"""Draws handed to a foreign adapter in one call: large enough to fill its batches, small enough to lose little."""

_FAILURE = re.compile(r"\[LMMS_EVAL_REQUEST_FAILED\b")
_BUDGET = "[LMMS_EVAL_BUDGET_EXCEEDED]"


@dataclass(frozen=True)
class SampleRequest:
    """What lmms-eval carries from the task to the hook for one document.

    Attributes:
        id: the document's id, as users know it.
        key: hash of the document's content; see `hedge_tasks.data.document_keys`.
        question, reference, group, stratum: copied into the answer set.
        prompt: rendered with the question for every draw.
        plan: what to sample.
        load_images: the document (a row of the data set) -> its images, as they are stored.
        model: what identifies the model that answers, None where the command line does not tell.
        store: folder of the answer store, None to keep answers in memory only.
    """

    id: str
    key: str
    question: str
    prompt: Prompt
    plan: SamplingPlan
    load_images: Callable[[Mapping[str, Any]], list[Any]]
    reference: str | None = None
    group: str | None = None
    stratum: str | None = None
    model: str | None = None
    store: Path | None = None


@dataclass(frozen=True)
class DrawRequest:
    """One draw to be made: what an adapter's `generate_draws` receives.

    Attributes:
        request: the document it belongs to.
        draw: condition, temperature, seed.
        document: the row of the data set, fetched when the images are needed.
        row: (task, split, index) of that row, as lmms-eval's adapters want it.
    """

    request: SampleRequest
    draw: Draw
    document: Callable[[], Mapping[str, Any]]
    row: tuple[str, str, int]

    def images(self) -> list[Any]:
        """The images of this draw, 8-bit RGB, perturbed when the draw is a noisy one."""
        return draw_images(self, self.document())

    def messages(self) -> list[dict[str, Any]]:
        return self.request.prompt.messages(self.request.question, self.images())


class DrawingModel(Protocol):
    """What an adapter must offer to receive draws instead of plain text requests."""

    def generate_draws(self, draws: Sequence[DrawRequest]) -> Iterator[Sequence[tuple[int, Answer | str]]]:
        """Yield the (position in `draws`, answer) pairs of each finished batch, in any order.

        A string in place of an answer says why this draw failed; it is asked for again, never stored.
        """
        ...

    @property
    def answer_identity(self) -> str:
        """Everything about the model that shapes an answer (weights, revision, precision)."""
        ...


def draw_images(draw: DrawRequest, document: Mapping[str, Any]) -> list[Any]:
    return seen_images(draw, clean_images(draw.request, document))


def clean_images(request: SampleRequest, document: Mapping[str, Any]) -> list[Any]:
    """The images of a document as its clean draws see them, 8-bit RGB."""
    return [to_rgb8(image) for image in request.load_images(document)]


def seen_images(draw: DrawRequest, images: list[Any]) -> list[Any]:
    """What this draw sees where a clean one sees `images`: a noisy draw gets them perturbed."""
    if draw.draw.condition != "noisy":
        return images
    # The n-th image of a document gets a seed of its own; with one image it is the draw's.
    noise = draw.request.plan.noise
    return [perturb_image(image, seed=draw.draw.seed + i, preset=noise) for i, image in enumerate(images)]


def generate_samples(model: Any, requests: Sequence[Any]) -> list[str]:
    """Sample all answers of all documents; the method that `lmms_eval.api.model.lmms` receives.

    Args:
        model: an lmms-eval model.
        requests: lmms-eval instances whose third argument is a `SampleRequest`.

    Returns:
        One `AnswerSet` as JSON an instance, in their order.

    Raises:
        DrawsFailed: some draws failed `MAX_ATTEMPTS` times. All finished ones are in the store.
    """
    with _Stores() as stores:
        jobs = [_Job(model, instance, stores) for instance in requests]
        pending = {key: (draw, job.store) for job in jobs for key, draw in job.missing()}
        n_draws = len({key for job in jobs for key in job.draws})
        logger.info("{} draws for {} documents; {} are in the store", n_draws, len(jobs), n_draws - len(pending))
        failed = _sample(model, pending)
        if failed:
            raise _failure(failed, n_draws, {job.store.folder for job in jobs})
        return [job.answer_set().to_json() for job in jobs]


class _Stores:
    """The answer stores of one call, one a folder, closed together."""

    def __init__(self) -> None:
        self._open: dict[Path | None, AnswerStore] = {}

    def __enter__(self) -> _Stores:
        return self

    def __exit__(self, *error: object) -> None:
        for store in self._open.values():
            store.close()

    def at(self, folder: Path | None) -> AnswerStore:
        if folder not in self._open:
            self._open[folder] = AnswerStore(folder)
        return self._open[folder]


class _Job:
    """One document: its draws by key, and where their answers are."""

    def __init__(self, model: Any, instance: Any, stores: _Stores) -> None:
        self.request: SampleRequest = instance.args[2]
        row = (instance.args[4], instance.args[5], instance.args[3])
        identity = getattr(model, "answer_identity", None) or self.request.model
        # A model that nobody can name must not leave answers behind that another one would be given.
        self.store = stores.at(self.request.store if identity else None)
        self.draws = {
            _key(self.request, draw, identity): DrawRequest(self.request, draw, _fetch(model, row), row)
            for draw in self.request.plan.draws(self.request.key)
        }

    def missing(self) -> list[tuple[str, DrawRequest]]:
        """Draws that the store has no answer for."""
        return [(key, draw) for key, draw in self.draws.items() if self.store.get(key) is None]

    def answer_set(self) -> AnswerSet:
        """The answers to all draws, all of which must be in the store by now."""
        of: dict[str, list[Answer]] = {"baseline": [], "clean": [], "noisy": []}
        for key, draw in self.draws.items():
            of[draw.draw.condition].append(self.store[key])
        return AnswerSet(
            id=self.request.id,
            baseline=of["baseline"][0],
            clean=tuple(of["clean"]),
            noisy=tuple(of["noisy"]),
            question=self.request.question,
            reference=self.request.reference,
            group=self.request.group,
            stratum=self.request.stratum,
        )


def _fetch(model: Any, row: tuple[str, str, int]) -> Callable[[], Mapping[str, Any]]:
    task, split, index = row
    return lambda: model.task_dict[task][split][index]


def _key(request: SampleRequest, draw: Draw, identity: str | None) -> str:
    definition = {
        "model": identity,
        "document": request.key,
        "question": request.question,
        "prompt": {"system": request.prompt.system, "user": request.prompt.user},
        "draw": asdict(draw),
        "noise": request.plan.noise.settings() if draw.condition == "noisy" else None,
        "limits": request.plan.limits(),
    }
    return draw_key(definition)


_Pending = Mapping[str, tuple[DrawRequest, AnswerStore]]


def _sample(model: Any, pending: _Pending) -> dict[str, str]:
    """Make the pending draws and store them as they finish. Returns what is wrong with those that failed, by key."""
    if not pending:
        return {}
    make = _own_draws if hasattr(model, "generate_draws") else _foreign_draws
    left, failed = dict(pending), dict[str, str]()
    with tqdm(total=len(pending), desc="Sampling", unit="draw", disable=getattr(model, "rank", 0) != 0) as bar:
        for attempt in range(1, MAX_ATTEMPTS + 1):
            failed = {}
            for outcome in make(model, left):
                _keep(outcome, left)
                failed |= {key: text for key, text in outcome if isinstance(text, str)}
                bar.update(sum(isinstance(answer, Answer) for _, answer in outcome))
            left = {key: left[key] for key in failed}
            if not left or _BUDGET in failed.values():
                break
            if attempt < MAX_ATTEMPTS:
                logger.warning("{} draws failed, asking again ({} of {})", len(left), attempt, MAX_ATTEMPTS - 1)
    return failed


_Outcome = list[tuple[str, "Answer | str"]]
"""Finished draws by key; a string in place of an answer says what went wrong."""


def _keep(outcome: _Outcome, pending: _Pending) -> None:
    by_store: dict[int, list[Record]] = {}
    stores = {}
    for key, answer in outcome:
        if isinstance(answer, Answer):
            request, store = pending[key]
            stores[id(store)] = store
            record = Record(key, answer, request.request.id, request.draw.condition, request.draw.index)
            by_store.setdefault(id(store), []).append(record)
    for number, records in by_store.items():
        stores[number].put(records)


def _own_draws(model: DrawingModel, pending: _Pending) -> Iterator[_Outcome]:
    keys = list(pending)
    for batch in model.generate_draws([pending[key][0] for key in keys]):
        yield [(keys[position], answer) for position, answer in batch]


def _foreign_draws(model: Any, pending: _Pending) -> Iterator[_Outcome]:
    from lmms_eval.api.instance import unwrap_generation_output

    for keys in _chunks(list(pending), CHUNK):
        draws = [pending[key][0] for key in keys]
        with _seeded(draws):
            outputs = model.generate_until([_instance(model, draw) for draw in draws])
        texts = [unwrap_generation_output(output)[0] for output in outputs]
        yield [(key, _read(text)) for key, text in zip(keys, texts, strict=True)]


def _read(text: object) -> Answer | str:
    if not isinstance(text, str):
        return f"the adapter returned {type(text).__name__} instead of text"
    if _BUDGET in text:
        return _BUDGET
    return text.strip() if _FAILURE.match(text.lstrip()) else Answer(text.strip())


def _instance(model: Any, draw: DrawRequest) -> Any:
    """The draw as an ordinary `generate_until` request.

    Adapters batch requests whose generation settings are equal, so nothing of the single draw (seed, index) may be in
    there; the perturbed image comes out of the function that loads it.
    """
    from lmms_eval.api.instance import Instance

    request, (task, split, index) = draw.request, draw.row
    settings = {"temperature": draw.draw.temperature, "do_sample": draw.draw.temperature > 0, **request.plan.limits()}
    if "until" in settings:
        settings["until"] = list(settings["until"])
    text = request.prompt.text(request.question)

    def images(document: Mapping[str, Any]) -> list[Any]:
        return draw_images(draw, document)

    def messages(document: Mapping[str, Any]) -> list[dict[str, Any]]:
        return request.prompt.messages(request.question, images(document))

    order: tuple[Any, Any] = (settings, images) if model.is_simple else (messages, settings)
    arguments = (text, *order, index, task, split)
    metadata = {"task": task, "doc_id": index, "repeats": 1, "split": split}
    return Instance("generate_until", arguments, draw.draw.index, metadata)


class _seeded:
    """Seed torch for a chunk of draws and restore its state after, so that a rerun on a local model repeats itself."""

    def __init__(self, draws: Sequence[DrawRequest]) -> None:
        self._seed = hash(tuple(draw.draw.seed for draw in draws)) & (2**63 - 1)

    def __enter__(self) -> None:
        import torch

        self._cpu = torch.get_rng_state()
        self._cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else None
        torch.manual_seed(self._seed)

    def __exit__(self, *error: object) -> None:
        import torch

        torch.set_rng_state(self._cpu)
        if self._cuda is not None:
            torch.cuda.set_rng_state_all(self._cuda)


def _chunks(items: list[str], size: int) -> Iterable[list[str]]:
    return (items[i : i + size] for i in range(0, len(items), size))


def _failure(failed: Mapping[str, str], n_draws: int, folders: set[Path | None]) -> DrawsFailed:
    reason = next(iter(failed.values()))
    places = sorted(os.fspath(folder) for folder in folders if folder is not None)
    kept = (
        f"Finished draws are kept in {', '.join(places)}; the same command continues from there"
        if places
        else "There is no answer store (set HEDGE_STORE or --output_path), so finished draws are lost"
    )
    return DrawsFailed(f"{len(failed)} of {n_draws} draws failed. First reason: {reason[:300]}. {kept}.")
