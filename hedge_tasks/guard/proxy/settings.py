"""How the proxy treats what it gets, and its bounds."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import model_validator

from hedge_tasks.errors import ConfigError
from hedge_tasks.io.records import AtLeastOne, Settings

KEY_VARIABLE = "HEDGE_SERVE_KEY"
"""Environment variable with the key that clients must bring. It is not the upstream's."""


class ProxySettings(Settings):
    """Settings of the proxy.

    Attributes:
        on_reject: what a client gets for an answer that is not accepted: the answer with its verdict ("flag"), or a
            refusal in its place. An undecided answer is treated like a rejected one.
        key: what clients must bring; None for nothing.
        local: whether only programs of this machine may ask, under a name of this machine.
        most_requests: requests in the house at a time, those that wait included; one more gets a 429.
        largest_body: bytes of a request.
        most_pixels: of a request's picture.
    """

    on_reject: Literal["flag", "refuse"] = "flag"
    key: str | None = None
    local: bool = True
    most_requests: AtLeastOne = 32
    largest_body: AtLeastOne = 32 << 20
    most_pixels: AtLeastOne = 32_000_000

    @model_validator(mode="after")
    def _reachable_with_a_key_only(self) -> Self:
        if not self.local and self.key is None:
            raise ConfigError(f"an address that other machines can reach needs a key: set {KEY_VARIABLE}")
        return self
