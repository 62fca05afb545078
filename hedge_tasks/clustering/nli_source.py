"""Relations from earlier outputs and the cache where they are known, from the model where not."""

from __future__ import annotations

from collections.abc import Sequence

from hedge_tasks.clustering.model_outputs import PairTable, Values
from hedge_tasks.clustering.nli_cache import Probabilities, RelationCache, cache_file, cache_folder
from hedge_tasks.clustering.nli_model import Origin, find_origin, load_nli_model, pairs_a_pass
from hedge_tasks.clustering.relations import LIKELIEST, Pair, Relation
from hedge_tasks.llm.loading import default_device


class NliSource:
    """A classifier that asks the model only what is neither in its table nor, from any earlier run, on disk.

    The model is loaded when the first pair is in neither.

    Args:
        model, revision, device, dtype: The model, and how it is run; by default on the GPU if there is one.
        batch_size: Most pairs in a forward pass; by default `pairs_a_pass`.
        use_disk: Whether to use the cache on disk.
        table: Earlier outputs, looked up before the disk; what comes from there or the model is added. By default an
            empty one, which lives as long as this object.
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
        self._batch_size, self._use_disk = batch_size, use_disk
        self._table = PairTable(len(LIKELIEST), symmetric=False) if table is None else table
        self._opened: tuple[Origin, RelationCache] | None = None

    def __enter__(self) -> NliSource:
        return self

    def __exit__(self, *error: object) -> None:
        if self._opened is not None:
            self._opened[1].close()

    def __call__(self, pairs: Sequence[Pair]) -> list[Relation]:
        """The most likely relation of each pair, in the order of the pairs."""
        return [LIKELIEST[index] for index in self.probabilities(pairs).argmax(axis=1)]

    def probabilities(self, pairs: Sequence[Pair]) -> Values:
        """Probabilities of contradiction, neutral and entailment for each pair, in their order, shape `(pairs, 3)`."""
        values, known = self._table.read(pairs)
        missing = {i: pairs[i] for i in (~known).nonzero()[0].tolist()}
        if missing:
            distinct = list(dict.fromkeys(missing.values()))
            self._table.warn_missing(f"{self._model} is asked for {len(distinct)} relations of answers")
            new = self._cached_or_asked(distinct)
            self._table.add(distinct, [new[pair] for pair in distinct])
            values[list(missing)] = [new[pair] for pair in missing.values()]
        return values

    def _cached_or_asked(self, pairs: Sequence[Pair]) -> dict[Pair, Probabilities]:
        if self._opened is None:
            # Not before there is something to ask: a model that is not needed need not be there.
            origin = find_origin(self._model, self._revision)
            self._opened = origin, self._disk(origin)
        origin, disk = self._opened
        rows = disk.read(pairs)
        if unknown := [pair for pair in pairs if pair not in rows]:
            device = default_device(self._device)
            model = load_nli_model(origin, device, self._dtype)
            for batch in model.predict(unknown, batch_size=self._batch_size or pairs_a_pass(device)):
                disk.write(batch)
                rows.update(batch)
        return rows

    def _disk(self, origin: Origin) -> RelationCache:
        folder = cache_folder() if self._use_disk else None
        if folder is None or origin.identity is None:
            return RelationCache(None)
        return RelationCache(cache_file(folder, origin.model, f"{origin.identity} {self._dtype}"))
