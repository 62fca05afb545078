"""hedge_tiny: the embedded demo model. It has only ever seen drawings and knows nothing of medicine."""

from __future__ import annotations

from typing import Any

from hedge_tasks.models.hedge_hf import HedgeHF
from hedge_tasks.models.tiny import vlm_path


class HedgeTiny(HedgeHF):
    """`hedge_hf` on the weights inside this package; takes the same arguments less `pretrained`."""

    answer_identity: str

    def __init__(self, dtype: str = "float32", **options: Any) -> None:
        super().__init__(pretrained=str(vlm_path()), dtype=dtype, **options)
        # The folder differs from one installation to the next, the weights do not.
        self.answer_identity = "hedge_tiny:" + self.answer_identity.partition("@")[2]
