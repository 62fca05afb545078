"""Relations from the cache where it has them, from the model where it has not."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Mapping, Sequence
from functools import lru_cache

from loguru import logger

from hedge_tasks.clustering.model_outputs import PairTable
from hedge_tasks.clustering.nli_cache import Prediction, RelationCache, cache_file, cache_folder
from hedge_tasks.clustering.nli_model import Origin, find_origin, load_nli_model, pairs_a_pass
from hedge_tasks.clustering.relations import LIKELIEST, Pair, Relation
from hedge_tasks.llm.loading import default_device

# A killed run loses what was classified in this time.
_WRITE_EVERY_S = 10.0


class NliSource:
    """A classifier that asks the model only what neither this run nor, through the disk, an earlier one has asked.

    The model is loaded when the first pair is not in the cache. A cache on disk that cannot be used (damaged, locked,
    not writable) is reported and left alone; one in memory then stands in for it.

    Args:
        model, revision, device, dtype: The model, and how it is run; by default on the GPU if there is one.
        batch_size: Most pairs in a forward pass; by default `pairs_a_pass`.
        use_disk: Whether to use the cache on disk.
        table: Earlier outputs, looked up before any cache; what comes from the cache or the model is added.
    """

    def __init__(
        self,
        model: str,
        revision: str | None,
        device: str | None,
        dtype: str,
        *,
        batch_size: int | None = None,
        use_disk: bool = True,
        table: PairTable | None = None,
    ) -> None:
        self._model, self._revision, self._device, self._dtype = model, revision, device, dtype
        self._batch_size = batch_size
        self._use_disk, self._table = use_disk, table
        self._origin: Origin | None = None
        self._disk: RelationCache | None = None

    def __enter__(self) -> NliSource:
        return self

    def __exit__(self, *error: object) -> None:
        self._close_disk()

    def __call__(self, pairs: Sequence[Pair]) -> list[Relation]:
        """The most likely relation of each pair, in the order of the pairs."""
        predictions = self._predictions(pairs)
        return [predictions[pair].relation for pair in pairs]

    def probabilities(self, pairs: Sequence[Pair]) -> list[tuple[float, float, float]]:
        """Probabilities of contradiction, neutral and entailment for each pair, in the order of the pairs."""
        predictions = self._predictions(pairs)
        return [predictions[pair].probabilities for pair in pairs]

    def _predictions(self, pairs: Sequence[Pair]) -> dict[Pair, Prediction]:
        if self._table is None:
            return self._cached_or_asked(pairs)
        values, is_known = self._table.read(pairs)
        predictions = {
            pair: Prediction(LIKELIEST[max(range(3), key=row.__getitem__)], (row[0], row[1], row[2]))
            for pair, row, is_there in zip(pairs, values.tolist(), is_known.tolist(), strict=True)
            if is_there
        }
        if missing := [pair for pair in dict.fromkeys(pairs) if pair not in predictions]:
            self._table.warn_missing(f"{self._model} is asked for {len(missing)} relations of answers")
            new = self._cached_or_asked(missing)
            self._table.add(missing, [new[pair].probabilities for pair in missing])
            predictions.update(new)
        return predictions

    def _cached_or_asked(self, pairs: Sequence[Pair]) -> dict[Pair, Prediction]:
        if self._origin is None:
            # Not before there is something to ask: a model that is not needed need not be there.
            self._origin = find_origin(self._model, self._revision)
            self._open_disk(self._origin)
        predictions = dict(self._read(pairs))
        unknown = [pair for pair in dict.fromkeys(pairs) if pair not in predictions]
        if unknown:
            predictions.update(self._ask(self._origin, unknown))
        return predictions

    def _ask(self, origin: Origin, pairs: Sequence[Pair]) -> dict[Pair, Prediction]:
        device = default_device(self._device)
        model = load_nli_model(origin, device, self._dtype)
        predictions: dict[Pair, Prediction] = {}
        unwritten: dict[Pair, Prediction] = {}
        last_write = time.monotonic()
        try:
            for batch in model.predict(pairs, batch_size=self._batch_size or pairs_a_pass(device)):
                predictions.update(batch)
                unwritten.update(batch)
                if time.monotonic() - last_write > _WRITE_EVERY_S:
                    self._write(unwritten)
                    unwritten, last_write = {}, time.monotonic()
        finally:
            self._write(unwritten)
        return predictions

    def _read(self, pairs: Sequence[Pair]) -> dict[Pair, Prediction]:
        if self._disk is not None:
            try:
                return self._disk.read(pairs)
            except (sqlite3.Error, OSError) as error:
                self._give_up_disk(error)
        return self._memory().read(pairs)

    def _write(self, predictions: Mapping[Pair, Prediction]) -> None:
        if not predictions:
            return
        if self._disk is not None:
            try:
                self._disk.write(predictions)
                return
            except (sqlite3.Error, OSError) as error:
                self._give_up_disk(error)
        self._memory().write(predictions)

    def _memory(self) -> RelationCache:
        assert self._origin is not None
        return _memory_cache(self._origin, default_device(self._device), self._dtype)

    def _open_disk(self, origin: Origin) -> None:
        folder = cache_folder() if self._use_disk else None
        if folder is None or origin.identity is None:
            return
        try:
            self._disk = RelationCache(cache_file(folder, origin.model, f"{origin.identity} {self._dtype}"))
        except (sqlite3.Error, OSError) as error:
            self._give_up_disk(error)

    def _give_up_disk(self, error: Exception) -> None:
        logger.warning(
            "The NLI cache on disk cannot be used ({}); this run does without. HEDGE_CACHE names its folder, "
            "HEDGE_CACHE=off turns it off, and its files can be deleted.",
            error,
        )
        self._close_disk()

    def _close_disk(self) -> None:
        if self._disk is not None:
            self._disk.close()
            self._disk = None


@lru_cache(maxsize=2)
def _memory_cache(origin: Origin, device: str, dtype: str) -> RelationCache:
    """The cache in memory, which lives as long as the process: clusterings with and without the question share it."""
    return RelationCache(None)
