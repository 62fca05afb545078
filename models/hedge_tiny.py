"""hedge_tiny: the embedded demo model. It has only ever seen drawings and knows nothing of medicine."""

from __future__ import annotations

import hashlib
from typing import Any

from hedge_tasks.errors import unknown
from hedge_tasks.models.hedge_hf import HedgeHF
from hedge_tasks.models.tiny import report_weights, vlm_path

_WRITES = ("answers", "reports")


class HedgeTiny(HedgeHF):
    """`hedge_hf` on the weights inside this package; takes the same arguments less `pretrained`.

    Args:
        writes: "answers" to questions, or "reports" of a few sentences (`hedge_demo_reports`). They share the vision
            tower.

    Raises:
        ConfigError: an argument is unknown or makes no sense.
    """

    answer_identity: str

    def __init__(self, dtype: str = "float32", writes: str = "answers", **options: Any) -> None:
        if writes not in _WRITES:
            raise unknown("writes", writes, _WRITES)
        super().__init__(pretrained=str(vlm_path()), dtype=dtype, **options)
        # The folder differs from one installation to the next, the weights do not.
        self.answer_identity = "hedge_tiny:" + self.answer_identity.partition("@")[2]
        if writes == "reports":
            self._write_reports()

    def _write_reports(self) -> None:
        """Put projector and language model of the one that writes reports over those that are there."""
        from safetensors.torch import load

        content = report_weights().read_bytes()
        unexpected = self._model.load_state_dict(load(content), strict=False).unexpected_keys
        assert not unexpected, unexpected
        self.answer_identity += f":reports@{hashlib.sha256(content).hexdigest()[:16]}"
