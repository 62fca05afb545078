"""A model that is asked, by a text: behind a server, or one of our adapters in this process."""

from __future__ import annotations

from typing import Any

from hedge_tasks.errors import ConfigError, unknown
from hedge_tasks.io import options
from hedge_tasks.llm.models import LocalModel, Model, ServedModel
from hedge_tasks.models import adapter_class

_NOT_OF_THE_MODEL = frozenset(
    {
        *("api_key", "base_url", "url"),  # a key is in no file, and a server that moves is the same model
        *("num_concurrent", "timeout", "max_retries", "wait_for_server", "device", "batch_size", "draws_per_batch"),
    }
)
"""Arguments of adapters that say nothing about what a model replies."""


def adapter_model(adapter: str, **arguments: Any) -> LocalModel:
    """One of our adapters by its name, with arguments as for lmms-eval's `--model_args`.

    Raises:
        ConfigError: There is none, or it answers no conversations of its own.
    """
    kind = adapter_class(adapter)
    if not hasattr(kind, "answer_conversations"):
        raise ConfigError(f"adapter {adapter!r} answers no conversations that belong to no task")
    name = str(arguments.get("pretrained") or arguments.get("model") or adapter)
    # A reply that was kept to its schema is another one.
    schema = {"schema": "kept"} if kind.keeps_schemas() else {}
    shaping = {key: value for key, value in arguments.items() if key not in _NOT_OF_THE_MODEL}
    identity = {"adapter": adapter, **shaping, **schema}
    return LocalModel(name, lambda: identity, lambda: kind(**arguments), keeps_schemas=True)


def model_from(spec: str) -> Model:
    """A model from `model=NAME,url=...` or `adapter=hedge_hf,pretrained=...`; a plain name is a served model's.

    Raises:
        ConfigError: A part is no `key=value`, an option is unknown or makes no sense, or no server can be asked.
    """
    chosen: dict[str, Any] = options.pairs("model", spec if "=" in spec or "," in spec else f"model={spec}")
    if "adapter" in chosen:
        return adapter_model(chosen.pop("adapter"), **chosen)
    names = ("model", "url", "account", "thinking", "timeout", "max_retries")
    for key in chosen:
        if key not in names:
            raise unknown("option of a model", key, (*names, "adapter"))
    if "model" not in chosen:
        raise ConfigError("model: 'model' is missing, as in model=NAME,url=http://localhost:8000/v1")
    model = ServedModel(**chosen)
    model.check()
    return model
