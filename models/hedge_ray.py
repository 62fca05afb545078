"""hedge_ray: another adapter of ours, several times, wherever a Ray cluster has room for it.

    lmms-eval --model hedge_ray --model_args of=hedge_hf,replicas=8,num_gpus=1,pretrained=... --tasks ...

A draw is a pure function of document and index, so it does not matter which replica makes it. Replicas are actors: each
loads the adapter, perturbs and encodes the pictures of its draws, and answers a few documents at a time. This process
hands them out, a few ahead and no more, and is the only one that writes to the store. What a replica or a node had in
hand when it died goes to another one; a new replica takes its place as soon as the cluster has room, also on a node
that joins later.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from loguru import logger

from hedge_tasks.data.answers import Answer
from hedge_tasks.errors import ConfigError, HedgeError
from hedge_tasks.io.ray_cluster import connect
from hedge_tasks.models import adapter_class
from hedge_tasks.models.base import ONLY_HEDGE_HF, ChatAdapter
from hedge_tasks.sampling.requests import DrawRequest, SampleRequest

AHEAD = 2
"""Batches that a replica has been handed: the one that it is at, and the next."""

MOST_DEATHS = 3
"""Replicas that may die at one batch before its draws count as failed."""

_FACTS = ("answer_identity", "control_marks", "takes_choices", "tells_tokens", "samples_itself", "contrast")
_DELEGATED = ("answer_conversations", "forced_logprobs", "reply_logprobs", "sent_decoding", "sampling_facts")
_PATIENCE_S = 60.0


class HedgeRay(ChatAdapter):
    """Replicas of an adapter on a Ray cluster.

    Args:
        of: The adapter, such as `hedge_hf`, `hedge_vllm` or `hedge_openai`.
        replicas: How many.
        num_gpus, num_cpus: What each of them needs; a share of a GPU is possible.
        address: Of the cluster; `auto` is the one that this machine is part of. By default Ray starts on this machine.
        draws_per_task: Draws that are handed out at once; those of a document stay together.
        options: Of the adapter.

    Raises:
        ConfigError: There is no such adapter, or Ray is not installed; whatever the adapter raises.
    """

    def __init__(
        self,
        of: str,
        replicas: int = 1,
        num_gpus: float = 0,
        num_cpus: float = 1,
        address: str | None = None,
        draws_per_task: int = 64,
        **options: Any,
    ) -> None:
        super().__init__()
        if of == "hedge_ray" or replicas < 1 or draws_per_task < 1:
            raise ConfigError("hedge_ray: of is another adapter, replicas and draws_per_task are at least 1")
        if "decoding" in options:
            raise ConfigError(ONLY_HEDGE_HF)
        self._ray = connect(address, "hedge_ray")
        kind = adapter_class(of)
        self._draws_per_task = draws_per_task
        remote = self._ray.remote(_Replica).options(num_gpus=num_gpus, num_cpus=num_cpus)
        self._new = partial(remote.remote, of, options)
        self._replicas = [_Handle(self._new()) for _ in range(replicas)]
        facts = self._ask("facts")
        self.answer_identity: str = facts["answer_identity"]
        for name in _FACTS[1:]:
            setattr(self, name, facts[name])
        for name in _DELEGATED:
            if hasattr(kind, name):
                setattr(self, name, partial(self._ask, "ask", name))

    def generate_draws(self, draws: Sequence[DrawRequest]) -> Iterator[list[tuple[int, Answer | str]]]:
        """Hand draws to the replicas that are there, and give back each batch as it is done."""
        waiting = deque(_batches(draws, self._draws_per_task))
        deaths = Counter[int]()
        under_way: dict[Any, tuple[_Handle, list[int]]] = {}
        try:
            while waiting or under_way:
                self._hand_out(draws, waiting, under_way)
                starting = {handle.started: handle for handle in self._replicas if not handle.ready}
                done, _ = self._ray.wait([*under_way, *starting], timeout=_PATIENCE_S)
                if not done and not under_way:
                    logger.warning("hedge_ray: no replica is there; waiting for the cluster to have room for one")
                for ref in done:
                    if ref in starting:
                        starting[ref].ready = self._result(starting[ref], ref) is not None
                        continue
                    handle, rows = under_way.pop(ref)
                    handle.n_batches -= 1
                    if (answers := self._result(handle, ref)) is not None:
                        yield [(rows[i], answer) for i, answer in answers]
                        continue
                    deaths[rows[0]] += 1
                    if deaths[rows[0]] < MOST_DEATHS:
                        waiting.appendleft(rows)
                    else:
                        yield [(i, f"{MOST_DEATHS} replicas died at it; see Ray's log") for i in rows]
        finally:
            for ref, (handle, _) in under_way.items():
                self._ray.cancel(ref)
                handle.n_batches -= 1

    def generate_until(self, requests: list[Any]) -> list[str]:
        raise HedgeError("hedge_ray samples for tasks of hedge_tasks; for others use the adapter itself")

    def clean(self) -> None:
        """End the replicas, so that what they held is free."""
        for handle in self._replicas:
            self._ray.kill(handle.actor)
        self._replicas = []

    def _hand_out(
        self, draws: Sequence[DrawRequest], waiting: deque[list[int]], under_way: dict[Any, tuple[_Handle, list[int]]]
    ) -> None:
        """Give batches to the replicas that are there, the idlest first."""
        ready = [handle for handle in self._replicas if handle.ready]
        for handle in sorted(ready, key=lambda handle: handle.n_batches):
            while waiting and handle.n_batches < AHEAD:
                rows = waiting.popleft()
                under_way[handle.actor.draw.remote(_carried([draws[i] for i in rows]))] = (handle, rows)
                handle.n_batches += 1

    def _result(self, handle: _Handle, ref: Any) -> Any:
        """Return what a replica replied; None where it died, and another one has taken its place.

        Raises:
            HedgeError: The adapter did.
        """
        ray = self._ray
        try:
            return ray.get(ref)
        except ray.exceptions.RayTaskError as error:
            raise error.cause if isinstance(error.cause, HedgeError) else error from error
        except ray.exceptions.RayError as error:
            if handle in self._replicas:  # once, whatever it had been handed
                logger.warning("hedge_ray: a replica died, another one takes its place: {}", str(error).splitlines()[0])
                self._replicas[self._replicas.index(handle)] = _Handle(self._new())
            return None

    def _ask(self, method: str, *arguments: Any, **options: Any) -> Any:
        """Ask the first replica that is there; another one where it dies."""
        for _ in range(MOST_DEATHS):
            starting = {handle.started: handle for handle in self._replicas}
            [ref], _ = self._ray.wait(list(starting))
            handle = starting[ref]
            handle.ready = self._result(handle, ref) is not None
            if handle.ready:
                reply = self._result(handle, getattr(handle.actor, method).remote(*arguments, **options))
                if reply is not None:
                    return reply
        raise HedgeError(f"hedge_ray: {MOST_DEATHS} replicas died one after the other; see Ray's log")


class _Replica:
    """In another process: the adapter."""

    def __init__(self, of: str, options: Mapping[str, Any]) -> None:
        self._model = adapter_class(of)(**options)

    def ready(self) -> bool:
        return True

    def facts(self) -> dict[str, Any]:
        return {name: getattr(self._model, name, None) for name in _FACTS}

    def draw(self, draws: Sequence[DrawRequest]) -> list[tuple[int, Answer | str]]:
        return [outcome for batch in self._model.generate_draws(draws) for outcome in batch]

    def ask(self, name: str, *arguments: Any, **options: Any) -> Any:
        return getattr(self._model, name)(*arguments, **options)


class _Handle:
    """This process's handle of a replica; `started` is there as soon as the replica is."""

    def __init__(self, actor: Any) -> None:
        self.actor, self.ready, self.n_batches = actor, False, 0
        self.started = actor.ready.remote()


@dataclass(frozen=True)
class _Pictures:
    """In place of `SampleRequest.load_images`: those that were loaded here."""

    images: list[Any]

    def __call__(self, document: Mapping[str, Any]) -> list[Any]:
        return self.images


def _carried(draws: Sequence[DrawRequest]) -> list[DrawRequest]:
    """Draws as another process can have them: with their pictures, loaded once a document, and without the data set."""
    requests: dict[int, SampleRequest] = {}
    for draw in draws:
        if id(draw.request) not in requests:
            images = draw.request.load_images(draw.row_of_data())
            requests[id(draw.request)] = replace(draw.request, load_images=_Pictures(images))
    return [replace(draw, request=requests[id(draw.request)], document=dict) for draw in draws]


def _batches(draws: Sequence[DrawRequest], size: int) -> Iterator[list[int]]:
    """Positions of draws, about so many a batch; those of a document in one."""
    by_document: dict[str, list[int]] = {}
    for i, draw in enumerate(draws):
        by_document.setdefault(draw.request.key, []).append(i)
    batch: list[int] = []
    for rows in by_document.values():
        batch += rows
        if len(batch) >= size:
            yield batch
            batch = []
    if batch:
        yield batch
