"""The model that a guard asks: an adapter of this package, which must be of the model that the policy is about."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from hedge_tasks.errors import ConfigError
from hedge_tasks.guard.policy import Policy

SERVER = "hedge_openai"
"""The adapter of servers."""

_SHOWN = re.compile(r"(?P<model>.*) \((?P<adapter>\w+)(?P<rest>(?:, [^,]+)*)\)")
_DEFAULTS: Mapping[str, Any] = {"max_retries": 1, "timeout": 60, "wait_for_server": 0}
"""Of a server: somebody waits for the answer."""


def adapter_for(policy: Policy, model: str = SERVER, model_args: str = "", *, endpoint: str | None = None) -> Any:
    """The adapter that a policy's questions are asked with.

    Args:
        policy: whose model it must be.
        model: name of the adapter.
        model_args: as for lmms-eval, `key=value,...`.
        endpoint: of a server, in place of `base_url` there. The model's name is the policy's unless `model_args` gives
            one.

    Raises:
        ConfigError: it is another model than the policy's, or arguments make no sense.
    """
    from hedge_tasks.lmms.identity import display_name
    from hedge_tasks.models import adapter_class

    kind = adapter_class(model)
    if model == SERVER:
        model_args = _server_args(policy, model_args, endpoint)
    elif endpoint is not None:
        raise ConfigError(f"an address is for {SERVER}; {model} runs in this process")
    name, ours = display_name(SimpleNamespace(model=model, model_args=model_args)), policy.circumstances.model
    if name != ours:
        raise ConfigError(
            f"--model_args: the policy is about {ours!r}, and this is {name!r}; its promise does not hold for another "
            "model"
        )
    return kind.create_from_arg_string(model_args)


def served_name(policy: Policy) -> str:
    """The name of the policy's model without adapter and arguments."""
    model = policy.circumstances.model
    match = _SHOWN.fullmatch(model)
    return match["model"] if match else model


def _server_args(policy: Policy, model_args: str, endpoint: str | None) -> str:
    arguments = _pairs(model_args)
    if endpoint is not None:
        if "base_url" in arguments:
            raise ConfigError("base_url: the address of the server is given twice")
        arguments["base_url"] = endpoint
    match = _SHOWN.fullmatch(policy.circumstances.model)
    if match and match["adapter"] == SERVER:
        # What else the policy's model was asked with shapes its answers, too.
        arguments = {"model": match["model"], **_pairs(match["rest"]), **arguments}
    return ",".join(f"{key}={value}" for key, value in {**_DEFAULTS, **arguments}.items())


def _pairs(arguments: str) -> dict[str, str]:
    return dict(part.strip().partition("=")[::2] for part in arguments.split(",") if part.strip())
