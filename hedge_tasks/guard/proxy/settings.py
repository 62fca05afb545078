"""How the proxy treats what it gets, and its bounds."""

from __future__ import annotations

from dataclasses import dataclass, fields

from hedge_tasks.errors import ConfigError, unknown
from hedge_tasks.io import options

ON_REJECT = ("flag", "refuse")
"""What a client gets for an answer that is not accepted: the answer with its verdict, or a refusal in its place."""

ON_UNJUDGED = ("refuse", "flag")
"""What it gets for a request that the policy cannot judge: an error, or an answer that says it is unjudged."""

KEY_VARIABLE = "HEDGE_SERVE_KEY"
"""Environment variable with the key that clients must bring. It is not the upstream's."""


@dataclass(frozen=True)
class ProxySettings:
    """Settings of the proxy.

    Attributes:
        on_reject: see `ON_REJECT`. An undecided answer is treated like a rejected one.
        on_unjudged: see `ON_UNJUDGED`.
        key: what clients must bring; None for nothing.
        local: whether only programs of this machine may ask, under a name of this machine.
        most_requests: requests in the house at a time, those that wait included; one more gets a 429.
        largest_body: bytes of a request.
        most_pixels: of all pictures of a request together.
        body_seconds: in which a request must have arrived.
    """

    on_reject: str = "flag"
    on_unjudged: str = "refuse"
    key: str | None = None
    local: bool = True
    most_requests: int = 32
    largest_body: int = 32 << 20
    most_pixels: int = 32_000_000
    body_seconds: float = 20.0

    def __post_init__(self) -> None:
        for name, value, valid in (
            ("on_reject", self.on_reject, ON_REJECT),
            ("on_unjudged", self.on_unjudged, ON_UNJUDGED),
        ):
            if value not in valid:
                raise unknown(f"value of {name}", value, valid)
        for field in fields(self):
            if field.name in ("most_requests", "largest_body", "most_pixels"):
                options.count(field.name, getattr(self, field.name), at_least=1)
        options.number("body_seconds", self.body_seconds, zero=False)
        if not self.local and self.key is None:
            raise ConfigError(f"an address that other machines can reach needs a key: set {KEY_VARIABLE}")
