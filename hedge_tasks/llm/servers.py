"""Where a served model is, and whether it is told the key of an account: the same for whoever asks."""

from __future__ import annotations

import os

from hedge_tasks.errors import ConfigError
from hedge_tasks.io.options import address
from hedge_tasks.llm.chat import OPENAI
from hedge_tasks.llm.secrets import NO_KEY, check_key


def server_and_key(url: str | None, *, account: bool, who: str) -> tuple[str, str]:
    """The address and the key for a server with OpenAI's API.

    The environment's address and key belong together. An address out of a YAML or a command line is another server,
    which must not be told the key of an account somewhere else.

    Args:
        url: Such as `http://localhost:8000/v1`; None takes that of OPENAI_API_URL, or OpenAI's.
        account: Whether a server at `url` is told OPENAI_API_KEY.
        who: What errors call whoever asks.

    Raises:
        ConfigError: The address is none, or OpenAI would be asked without a key.
    """
    from dotenv import load_dotenv

    load_dotenv(".env", override=False)  # as lmms-eval does for its judges
    own = url is not None and url != OPENAI and not account
    if url is None:
        url = address("OPENAI_API_URL", os.environ.get("OPENAI_API_URL") or OPENAI)
    key = NO_KEY if own else check_key("OPENAI_API_KEY", os.environ.get("OPENAI_API_KEY"))
    if key == NO_KEY and url == OPENAI:
        raise ConfigError(
            f"{who}: no OPENAI_API_KEY for api.openai.com; for a server of your own set OPENAI_API_URL "
            "(such as http://localhost:8000/v1)"
        )
    return url, key
