"""The judge `hf`: a Hugging Face model in this process, text or vision-language."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedge_tasks.adjudication.base import Case, Verdict
from hedge_tasks.adjudication.model_judge import DEFAULT_MODEL, ModelJudge, Replies, Reply
from hedge_tasks.errors import unknown
from hedge_tasks.io import options
from hedge_tasks.serving.fingerprints import fingerprint

if TYPE_CHECKING:
    from hedge_tasks.models.hedge_hf import HedgeHF

_DTYPES = ("auto", "float32", "bfloat16", "float16")


class HFJudge(ModelJudge):
    """Loads a model when there is something to ask, and lets go of it afterwards.

    lmms-eval frees the evaluated model before answers are judged, so both need not fit at once.

    Args:
        model: Hub id, folder, or `package://some.python.package/folder`.
        prompt, images, asks, ask_unlabelled: See `ModelJudge`.
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
        ask_unlabelled: bool = False,
    ) -> None:
        super().__init__(model, prompt, images, asks, ask_unlabelled)
        self.revision = options.optional_text("revision", revision)
        self.peft = options.optional_text("peft", peft)
        if dtype not in _DTYPES:
            raise unknown("dtype", str(dtype), _DTYPES)
        self.dtype = dtype
        self.device = options.optional_text("device", device)
        self.trust_remote_code = options.flag("trust_remote_code", trust_remote_code)
        self.batch_size = options.count("batch_size", batch_size, at_least=1)
        self.max_tokens = options.count("max_tokens", max_tokens, at_least=1)
        self.thinking = options.flag("thinking", thinking)
        self._loaded: HedgeHF | None = None

    def _identity(self) -> dict[str, Any]:
        fields = {"revision": self.revision, "dtype": self.dtype, "thinking": self.thinking}
        adapter = {} if self.peft is None else {"peft": _named(self.peft)}
        return {"model": self._source, **adapter, **fields}

    def settings(self) -> dict[str, Any]:
        return {**super().settings(), "max_tokens": self.max_tokens}

    @cached_property
    def _source(self) -> str:
        """The model, and of a folder what tells its weights from others that have been there."""
        from hedge_tasks.serving.loading import resolve_model

        return _named(resolve_model(self.model), self.model)

    def judge(self, cases: Sequence[Case]) -> list[Verdict]:
        try:
            return super().judge(cases)
        finally:
            self._free()

    def _ask(self, cases: Sequence[Case], *, again: bool) -> Replies:
        adapter = self._loaded = self._loaded or self._load()
        for start in range(0, len(cases), self.batch_size):
            positions = range(start, min(start + self.batch_size, len(cases)))
            yield self._ask_batch(adapter, [cases[i] for i in positions], positions, again)

    def _ask_batch(
        self, adapter: HedgeHF, cases: Sequence[Case], positions: range, again: bool
    ) -> list[tuple[int, Reply]]:
        prepared = [self._conversation(adapter, case, again) for case in cases]
        asked = {i: messages for i, messages in enumerate(prepared) if not isinstance(messages, Reply)}
        limit = self.max_tokens * (2 if again else 1)
        answers = adapter.answer_conversations(list(asked.values()), max_new_tokens=limit)
        replies = {i: failed for i, failed in enumerate(prepared) if isinstance(failed, Reply)}
        replies |= {i: Reply(answer.text) for i, answer in zip(asked, answers, strict=True)}
        return [(position, replies[i]) for i, position in enumerate(positions)]

    def _conversation(self, adapter: HedgeHF, case: Case, again: bool) -> list[dict[str, Any]] | Reply:
        from hedge_tasks.data.pictures import to_rgb8

        try:
            images = [to_rgb8(_open(i)) for i in case.images()] if self.images and case.images is not None else []
        except (OSError, ValueError) as error:
            return Reply(problem=f"its images cannot be read ({error})", failed=True)
        messages = self.prompt.messages(case, images, again=again)
        if not self.thinking and "enable_thinking" in adapter.chat_template:
            messages[-1]["content"].append({"type": "text", "text": "/no_think"})  # Qwen3's switch
        return messages

    def _load(self) -> HedgeHF:
        """The model. Raises HedgeError where it cannot be had; says what to do."""
        from hedge_tasks.models.hedge_hf import HedgeHF
        from hedge_tasks.serving.loading import load_or_explain

        def load(source: str) -> HedgeHF:
            return HedgeHF(
                source,
                revision=self.revision,
                peft=self.peft,
                dtype=self.dtype,
                device=self.device,
                batch_size=self.batch_size,
                trust_remote_code=self.trust_remote_code,
            )

        return load_or_explain(load, self.model, self.revision, kind="judge")

    def _free(self) -> None:
        if self._loaded is not None:
            self._loaded.clean()
            self._loaded = None


def _named(place: str, hub_id: str | None = None) -> str:
    """A folder by its name and content, anything else by its id."""
    folder = Path(place)
    return f"{folder.name}@{fingerprint(folder)}" if folder.is_dir() else hub_id or place


def _open(image: Any) -> Any:
    from PIL import Image

    return image if isinstance(image, Image.Image) else Image.open(image)
