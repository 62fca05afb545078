"""The dialect of one server: settings that it refuses are spelled differently or left out, each found out once."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

_WORDS = {
    "response_format": r"response_format|json_schema|json_object|schema|structured|guided|grammar",
    "chat_template_kwargs": r"chat_template|enable_thinking|extra (fields|inputs)",
    "max_tokens": "max_completion_tokens",
    "logprobs": "(?<!top_)logprob",
    "top_logprobs": "top_logprob",
    "n": r"(?:^|[\s'\"`.{])n(?:$|[\s'\"`:=,}])",
}
"""How a refusal names a setting; any other one by its own name, in snake_case, camelCase or words."""

_PENALTY = re.compile(r"\bpenalt(?:y|ies)\b")
"""Gemini says "Penalty is not enabled", and not which."""

_REFUSALS = (400, 403, 422)
_EXTENSIONS = ("chat_template_kwargs", "response_format")
"""Settings that not every server knows: they are refused with further statuses, and without being named."""
_REFUSALS_OF_EXTENSIONS = (*_REFUSALS, 404, 415, 500, 501)
_OF_THE_REQUEST = re.compile(r"context|token|length|content|image")

_OWN_VALUE = ("top_p", "top_k", "min_p", "presence_penalty", "frequency_penalty")
_CONSEQUENCES = {
    **{name: f"its own {name} applies" for name in _OWN_VALUE},
    "logprobs": "answers come without log-probabilities, and weigh the same",
    "top_logprobs": "no token of an answer has alternatives",
    "seed": "a draw that is made again may differ",
}

_NO_TOP_K = -1

Levels = Mapping[str, int]
"""How far each setting is from its first form: setting -> position among its forms; of `n` the most that is taken."""


class Dialect:
    """The settings of requests as one server takes them. It lives on the event loop.

    Args:
        server: What messages call the server.
        say: Told what the server refuses: a topic, a sentence, and the level of the message.

    Attributes:
        answered: Whether there was an answer: from then on a refusal without a reason is one of its request.
        levels: Of the settings that were refused in their first form.
        refused: Settings that were refused in every form that they have, each with the server's reason.
    """

    def __init__(self, server: str, say: Callable[[str, str, str], None]) -> None:
        self._server, self._say = server, say
        self.answered = False
        self.levels: Levels = {}
        self.refused: dict[str, str] = {}

    def learn(
        self, status: int, reason: str, settings: Mapping[str, Any], optional: Collection[str], levels: Levels
    ) -> bool:
        """Whether a refused request is worth another try, put differently. Later requests are put like that, too.

        Args:
            status: Of the refusal.
            reason: What the server said.
            settings: Of the request, in their first forms.
            optional: Settings that may be left out where no form of them is taken.
            levels: The dialect in which the request was put.
        """
        for setting in self._suspects(status, reason.lower(), settings, levels):
            at = levels.get(setting, 0)
            level = _next_level(setting, settings[setting], at, reason, setting in optional)
            if level is None:
                continue
            if self.levels.get(setting, 0) == at:
                self.levels = {**self.levels, setting: level}
                if _form(setting, settings[setting], self.levels) is None:
                    self.refused[setting] = reason
                consequence = _CONSEQUENCES.get(setting) if setting in self.refused else None
                text = consequence or "later requests are put without it, or in another form"
                words = f"{self._server} refuses {setting} ({reason}): {text}"
                self._say(f"{setting} {level}", words, "WARNING" if consequence else "INFO")
            return True
        # Another request may have taught it while this one was under way.
        return self.levels != levels

    def _suspects(self, status: int, reason: str, settings: Mapping[str, Any], levels: Levels) -> list[str]:
        """Settings that the refusal may mean, the likeliest first."""
        sent = [name for name in settings if _form(name, settings[name], levels) is not None]
        sent.sort(key=lambda name: (name not in _WORDS, name == "n"))  # those with words of their own are the surer
        named = [
            name
            for name in sent
            if status in (_REFUSALS_OF_EXTENSIONS if name in _EXTENSIONS else _REFUSALS)
            # `presence_penalty`, `presencepenalty`, `presence penalty`
            and re.search(_WORDS.get(name, rf"\b{re.escape(name).replace('_', '[_ ]?')}\b"), reason)
        ]
        if not named and status in _REFUSALS and _PENALTY.search(reason):
            named = [name for name in sent if name.endswith("_penalty")]
        bare = not self.answered and status in (400, 422) and not _OF_THE_REQUEST.search(reason)
        return named or ([name for name in _EXTENSIONS if name in sent] if bare else [])


def spell(settings: Mapping[str, Any], levels: Levels, optional: Collection[str]) -> dict[str, Any]:
    """The settings in the forms that a server takes, as far as is known.

    Args:
        optional: settings that may be left out. Others are sent even where a neutral value was refused before.
    """
    forms = {name: _form(name, value, levels) for name, value in settings.items()}
    return dict(form or (name, settings[name]) for name, form in forms.items() if form or name not in optional)


def _next_level(name: str, value: Any, at: int, reason: str, is_optional: bool) -> int | None:
    """The level behind one that was refused; None where there is none."""
    # "n must be between 1 and 8"
    limits = [int(digits) for digits in re.findall(r"\b\d{1,4}\b", reason)] if name == "n" and not at else []
    if limits := [most for most in limits if 1 < most < value]:
        return max(limits)
    forms = _forms(name, value)
    return at + 1 if at + 1 < len(forms) and (forms[at + 1] is not None or is_optional) else None


def _form(name: str, value: Any, levels: Levels) -> tuple[str, Any] | None:
    if name == "n" and (most := levels.get("n", 0)) > 1:
        return name, min(value, most)
    forms = _forms(name, value)
    return forms[min(levels.get(name, 0), len(forms) - 1)]


def _forms(name: str, value: Any) -> list[tuple[str, Any] | None]:
    """Ways to put a setting, from the best to the last; None leaves it out."""
    if name == "max_tokens":
        return [(name, value), ("max_completion_tokens", value)]
    if name == "response_format":
        return [(name, value), (name, {"type": "json_object"}), None]
    if name == "top_k" and value == _NO_TOP_K:
        return [(name, value), (name, 0), None]  # for servers to which -1 is no number of tokens
    return [(name, value), None]
