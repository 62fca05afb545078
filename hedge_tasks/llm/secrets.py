"""Keys: read where they are expected, checked, and kept out of every error, log line and label."""

from __future__ import annotations

import os
import re

from hedge_tasks.errors import ConfigError

NO_KEY = "EMPTY"
"""The key that vLLM's documentation sends to a server that asks for none."""

LONGEST_SHOWN = 300
"""Characters of a server's words that an error quotes: servers quote the request that they refuse, with its picture."""

_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD", re.IGNORECASE)
_SHORTEST_OF_ENVIRONMENT = 8
_SHORTEST_KEY = 4
_SHORTEST_IN_ANSWER = 16
"""Characters of a secret of the environment that is looked for in an answer: no word of an answer is as long."""

_KEY_LIKE = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|\bsk-[\w-]{20,}"  # OpenAI, Anthropic, OpenRouter
    r"|(?<=://)[^\s/\"]*:[^\s/\"]+(?=@)"  # user and password of an address
    r"|\b(?:hf|gsk)_[A-Za-z0-9]{30,}"
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"
    r"|\bAIza[\w-]{35}"
    r"|\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_\w{40,})"
    r"|\bglpat-[\w-]{20,}"
    r"|\bxox[abeoprs]-[\w-]{10,}"
    r"|\bnvapi-[\w-]{40,}"
    r"|\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}",  # JSON web tokens
    re.DOTALL,
)
"""Keys by the form that their makers give them, and passwords by their place in an address."""


def check_key(name: str, value: str | None) -> str:
    """A key that can be sent.

    Args:
        name: What the key is called where it was given.
        value: The key; None or blank where there is none.

    Returns:
        The key without surrounding blanks, or `NO_KEY`.

    Raises:
        ConfigError: An HTTP library would refuse it, and quote it in its error.
    """
    key = (value or "").strip() or NO_KEY
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ConfigError(f"{name}: there are characters in it that no key has, such as blanks or line breaks")
    return key


class Redactor:
    """Takes secrets out of texts that others will see.

    Args:
        key: The key that requests are made with; the environment's secrets, as they are now, count besides.
    """

    def __init__(self, key: str = NO_KEY) -> None:
        named = (value.strip() for name, value in os.environ.items() if _SECRET_NAME.search(name))
        secrets = {value for value in named if len(value) >= _SHORTEST_OF_ENVIRONMENT}
        if len(key) >= _SHORTEST_KEY:
            secrets.add(key)
        # The longest first: one may be the beginning of another.
        self._secrets = sorted(secrets - {NO_KEY}, key=len, reverse=True)

    def __call__(self, text: str, *, answer: bool = False) -> str:
        """The text with every secret in it, and every key of a known form, replaced.

        Args:
            answer: It is a model's: of the secrets those alone that no word could be. A chart may have a key on it, and
                a careless server quotes the one that it was sent.
        """
        for secret in self._secrets:
            if not answer or (len(secret) >= _SHORTEST_IN_ANSWER and any(c.isdigit() for c in secret)):
                text = text.replace(secret, "[secret]")
        return _KEY_LIKE.sub("[secret]", text)

    def shown(self, value: object) -> str:
        """Quote a text in an error: first redacted and then shortened, or half a key would stand at the cut."""
        return self(str(value))[:LONGEST_SHOWN]
