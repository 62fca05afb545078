"""The key `parsing` of judges that read replies: ours, or as the paper's published code does."""

from __future__ import annotations

from hedge_tasks.errors import unknown

HEDGE = "hedge"
OFFICIAL = "official"

PARSINGS = (HEDGE, OFFICIAL)
"""Ways to read a reply. Every judge that reads records both, whichever decides."""


def check_parsing(name: object) -> str:
    """A way to read replies by its name.

    Raises:
        ConfigError: there is none of that name; names the nearest one.
    """
    if name not in PARSINGS:
        raise unknown("value of 'parsing'", str(name), PARSINGS)
    return str(name)
