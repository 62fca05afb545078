"""The judge `hf`: a Hugging Face model in this process, text or vision-language."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from hedge_tasks.errors import unknown
from hedge_tasks.io import options
from hedge_tasks.judging.model_judge import DEFAULT_MODEL, ModelJudge, title
from hedge_tasks.llm.fingerprints import fingerprint
from hedge_tasks.llm.models import LocalModel

_DTYPES = ("auto", "float32", "bfloat16", "float16")


class HFJudge(ModelJudge):
    """Loads a model when there is something to ask, and lets go of it afterwards.

    lmms-eval frees the evaluated model before answers are judged, so both need not fit at once.

    Args:
        model: Hub id, folder, or `package://some.python.package/folder`.
        prompt, images, asks: See `ModelJudge`.
        revision: On the hub.
        peft: Folder or hub id of a low-rank adapter, such as `hedge judge train` makes.
        dtype, device, trust_remote_code: As `hedge_hf` takes them.
        batch_size: Cases at a time.
        max_tokens: Of a reply; where a reply is asked for again, twice as many.
        thinking: Let a model that can do so reason before it replies (needs a larger `max_tokens`).

    Raises:
        ConfigError: A value makes no sense.
    """

    name = "hf"

    def __init__(
        self,
        model: str = DEFAULT_MODEL,
        prompt: str = "hedge",
        *,
        images: bool | None = None,
        revision: str | None = None,
        peft: str | None = None,
        dtype: str = "auto",
        device: str | None = None,
        trust_remote_code: bool = False,
        batch_size: int = 8,
        max_tokens: int = 256,
        thinking: bool = False,
        asks: int = 2,
    ) -> None:
        source = options.text("model", model)
        revision, peft = options.optional_text("revision", revision), options.optional_text("peft", peft)
        if dtype not in _DTYPES:
            raise unknown("dtype", str(dtype), _DTYPES)
        thinking = options.flag("thinking", thinking)
        loading = {
            "revision": revision,
            "peft": peft,
            "dtype": dtype,
            "device": options.optional_text("device", device),
            "batch_size": options.count("batch_size", batch_size, at_least=1),
            "trust_remote_code": options.flag("trust_remote_code", trust_remote_code),
        }

        @cache
        def identity() -> dict[str, Any]:
            from hedge_tasks.llm.loading import resolve_model

            adapter = {} if peft is None else {"peft": _name_and_digest(peft)}
            fields = {"revision": revision, "dtype": dtype, "thinking": thinking}
            return {"model": _name_and_digest(resolve_model(source), source), **adapter, **fields}

        local = LocalModel(
            source,
            identity,
            lambda: _load(source, loading),
            batch_size=batch_size,
            thinking=thinking,
            who=f"judge {title(self.name, source)}",
        )
        super().__init__(local, prompt, images=images, asks=asks, max_tokens=max_tokens)


def _load(model: str, options: dict[str, Any]) -> Any:
    """The model. Raises HedgeError where it cannot be had; says what to do."""
    from hedge_tasks.llm.loading import load_or_explain
    from hedge_tasks.models.hedge_hf import HedgeHF

    return load_or_explain(lambda source: HedgeHF(source, **options), model, options["revision"], kind="judge")


def _name_and_digest(place: str, hub_id: str | None = None) -> str:
    """A folder by its name and content, anything else by its id."""
    folder = Path(place)
    return f"{folder.name}@{fingerprint(folder)}" if folder.is_dir() else hub_id or place
