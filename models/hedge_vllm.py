"""hedge_vllm: vLLM's offline engine, with a seed a draw and log-probabilities of the raw distribution.

See README.md beside this file for what was run and what was not.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import islice
from typing import Any

from PIL import Image
from tqdm import tqdm
from transformers import AutoConfig, GenerationConfig, PretrainedConfig

from hedge_tasks.data.answers import Answer, Draw
from hedge_tasks.data.thoughts import answer_of, cut, has_thought
from hedge_tasks.errors import ConfigError, HedgeError
from hedge_tasks.io.options import count
from hedge_tasks.llm.completion import PromptToken
from hedge_tasks.llm.fingerprints import identity_of
from hedge_tasks.models.base import (
    ONLY_HEDGE_HF,
    ChatAdapter,
    Conversations,
    PlainSettings,
    Prompted,
    Reading,
    forced_answer,
    marks_of,
    whole_replies,
)
from hedge_tasks.models.token_sampling import AnswerReader, sent_decoding
from hedge_tasks.models.weights import default_device
from hedge_tasks.perturb.workers import PictureWorkers
from hedge_tasks.sampling.prefetch import prefetch_messages
from hedge_tasks.sampling.requests import DrawRequest
from hedge_tasks.sampling.series import request_seed, series

_HOW_FAST = ("gpu_memory_utilization", "max_model_len", "max_num_batched_tokens", "enforce_eager")
"""Arguments of the engine that do not shape an answer."""

# Draws whose pictures are made while the engine is busy: about a dozen documents at n = 10.
_AHEAD = 256


class HedgeVLLM(ChatAdapter):
    """Adapter for the models that `vllm.LLM` loads and that have a chat template.

    Args:
        pretrained: hub id or local folder.
        revision: of the hub repository.
        dtype: "auto", "float32", "bfloat16", "float16"; as vLLM takes it.
        tensor_parallel_size: GPUs that share one copy of the model.
        max_images: most images a question shows.
        documents_per_call: documents whose draws are handed to vLLM in one call, and stored after it.
        batch_size: lmms-eval always passes one; vLLM makes its own batches.
        engine: further arguments of `vllm.LLM`, such as `max_model_len`.

    Raises:
        ConfigError: an argument makes no sense.
        HedgeError: vLLM is not installed.
    """

    def __init__(
        self,
        pretrained: str,
        revision: str | None = None,
        dtype: str = "auto",
        tensor_parallel_size: int = 1,
        max_images: int = 1,
        documents_per_call: int = 64,
        batch_size: int | str = 1,
        max_batch_size: int | None = None,
        device: str | None = None,
        **engine: Any,
    ) -> None:
        super().__init__()
        if "decoding" in engine:
            raise ConfigError(ONLY_HEDGE_HF)
        if device not in (None, "cuda"):
            raise ConfigError(f"device: vLLM chooses its own GPUs (CUDA_VISIBLE_DEVICES); got {device!r}")
        self.documents_per_call = count("documents_per_call", documents_per_call, at_least=1)
        self._pictures = PictureWorkers()
        settings: dict[str, Any] = {
            "model": pretrained,
            "revision": revision,
            "tokenizer_revision": revision,
            "dtype": dtype,
            "tensor_parallel_size": count("tensor_parallel_size", tensor_parallel_size, at_least=1),
            "limit_mm_per_prompt": {"image": count("max_images", max_images, at_least=1)},
            "enable_prefix_caching": True,  # the draws of a document share their prompt, the clean ones their image too
            "logprobs_mode": "raw_logprobs",  # before temperature and penalties
            "seed": 0,
            **engine,
        }
        if (world := int(os.environ.get("WORLD_SIZE", 1))) > 1:  # one engine each, every one with its own documents
            if settings["tensor_parallel_size"] > 1:
                raise ConfigError(
                    f"tensor_parallel_size: {world} processes are a copy of the model each. To spread one copy over "
                    "several GPUs, start a single process"
                )
            settings |= {"data_parallel_size": world, "distributed_executor_backend": "external_launcher"}
            self._rank, self._world_size = int(os.environ.get("RANK", 0)), world
        self.device = default_device()
        self.pretrained = pretrained
        self._vllm = _load_vllm()
        self._engine = self._vllm.LLM(**settings)
        self._tokenizer = self._engine.get_tokenizer()
        self._special = set(self._tokenizer.all_special_ids)
        self.control_marks = marks_of(self._tokenizer)
        self._thinks = has_thought(str(getattr(self._tokenizer, "chat_template", "")))
        self._defaults = _generation_config(pretrained, revision)
        weights, version = _weights(pretrained, revision), getattr(self._vllm, "__version__", "unknown")
        shaping = "".join(f":{name}={value}" for name, value in sorted(engine.items()) if name not in _HOW_FAST)
        self.answer_identity = f"hedge_vllm:{pretrained}@{weights}:{dtype}:vllm-{version}{shaping}"

    # --- draws: what the hook asks for --------------------------------------------------------------------------------

    def generate_draws(self, draws: Sequence[DrawRequest]) -> Iterator[list[tuple[int, Answer | str]]]:
        """Many documents a call, and the clean draws of a document in one request (`n`), which reads its prompt once.

        A draw that vLLM gave up comes back as the reason.
        """
        calls = [
            [[call[i] for i in group] for group in series([draws[i] for i in call])]
            for call in _calls(draws, self.documents_per_call)
        ]
        firsts = [draws[group[0]] for call in calls for group in call]
        with closing(prefetch_messages(firsts, ahead=_AHEAD, pictures=self._pictures)) as prepared:
            for call in calls:
                messages = [_for_vllm(conversation) for conversation in islice(prepared, len(call))]
                outputs = self._chat(messages, [self._sampling(draws[group[0]], len(group)) for group in call])
                yield [
                    pair
                    for group, output in zip(call, outputs, strict=True)
                    for pair in zip(group, self._read_draws(output, draws[group[0]], len(group)), strict=True)
                ]

    def _read_draws(self, output: Any, draw: DrawRequest, n: int) -> list[Answer | str]:
        """Return the answers of a request for several draws, in the order of their seeds."""
        completions = sorted(output.outputs, key=lambda completion: completion.index) if n > 1 else output.outputs
        if len(completions) != n:
            return [f"vLLM returned {len(completions)} outputs of {n}" if n > 1 else "vLLM returned no output"] * n
        until = draw.request.plan.limits().get("until", ())
        return [self._read(completion, draw.alternatives, until) for completion in completions]

    def _chat(self, conversations: list[list[dict[str, Any]]], sampling: list[Any]) -> list[Any]:
        return self._engine.chat(conversations, sampling_params=sampling, use_tqdm=False)

    def _sampling(self, draw: DrawRequest, n: int) -> Any:
        limits, choices = draw.request.plan.limits(), draw.request.choices
        first = replace(draw.draw, seed=request_seed(draw))
        sampling = self._sampling_of(first, limits, choices, draw.alternatives or 0, n=n)
        if not draw.seeded:
            sampling.seed = None
        return sampling

    def _sampling_of(
        self,
        draw: Draw,
        limits: Mapping[str, Any],
        choices: Sequence[str] = (),
        alternatives: int = 0,
        schema: Mapping[str, Any] | None = None,
        n: int = 1,
    ) -> Any:
        decoding = self.sent_decoding(limits)
        if choices or schema is not None:
            parameters = importlib.import_module("vllm.sampling_params")
            form = {"choice": list(choices)} if choices else {"json": dict(schema or {})}
            decoding["structured_outputs"] = parameters.StructuredOutputsParams(**form)
        return self._vllm.SamplingParams(
            n=n,
            temperature=draw.temperature,
            seed=draw.seed,
            max_tokens=limits["max_new_tokens"],
            stop=self._stops(limits.get("until", ())),
            logprobs=alternatives,  # of the chosen token, and of so many others
            skip_special_tokens=True,
            **decoding,
        )

    def _stops(self, until: Sequence[str]) -> list[str]:
        """Return the texts that are to end an answer; none for a model that thinks, whose thoughts they would end."""
        return [] if self._thinks else list(until)

    def sent_decoding(self, limits: Mapping[str, Any]) -> dict[str, Any]:
        """Settings of decoding besides the temperature; as `hedge_hf` has it."""
        return sent_decoding(limits, self._defaults)

    def _read(self, completion: Any, alternatives: int | None = None, until: Sequence[str] = ()) -> Answer | str:
        """Return the answer of one of the `outputs` of a `RequestOutput`, or why there is none.

        Args:
            alternatives: how many tokens are kept beside each one of the answer; None keeps no tokens.
            until: texts that end an answer.
        """
        if completion.finish_reason not in ("stop", "length"):
            return f"vLLM ended the request early (finish_reason {completion.finish_reason!r})"
        tokens, table = list(completion.token_ids), completion.logprobs
        if not tokens or table is None:
            return Answer(answer_of(completion.text), finish=completion.finish_reason)
        logprobs = [entries[token].logprob for token, entries in zip(tokens, table, strict=True)]
        likeliest = None
        if alternatives is not None:  # of each step vLLM tells the token itself besides the likeliest
            steps = [sorted(entries.items(), key=lambda pair: -pair[1].logprob)[:alternatives] for entries in table]
            likeliest = [[(token, entry.logprob) for token, entry in step] for step in steps]
        reader = AnswerReader(self._tokenizer, self._defaults, until, self._thinks)
        return reader.read(tokens, logprobs, likeliest)

    def _answer_draws(
        self, conversations: Conversations, draws: Sequence[Draw], limit: int, schema: Mapping[str, Any] | None
    ) -> list[Answer | str]:
        limits = {"max_new_tokens": limit}
        sampling = [self._sampling_of(draw, limits, schema=schema) for draw in draws]
        outputs = self._chat([_for_vllm(conversation) for conversation in conversations], sampling)
        return [self._read(out.outputs[0]) if out.outputs else "vLLM returned no output" for out in outputs]

    @classmethod
    def keeps_schemas(cls) -> bool:
        return True

    def forced_logprobs(self, conversations: Conversations, texts: Sequence[str]) -> list[Answer | str]:
        """Return how likely each text is as the answer to its conversation, by vLLM's `prompt_logprobs`.

        See `hedge_tasks.sampling.forced.ForcedModel`. The engine reads the conversation with the text as the beginning
        of its last turn.
        """
        begun = [_answered(conversation, text) for conversation, text in zip(conversations, texts, strict=True)]
        readings = self._read_prompts(begun, add_generation_prompt=False, continue_final_message=True)
        return [forced_answer(reading, text) for reading, text in zip(readings, texts, strict=True)]

    def reply_logprobs(self, conversations: Conversations, texts: Sequence[str]) -> list[Answer | str]:
        """Return how likely each text is as the whole reply; see `hedge_tasks.sampling.forced.ForcedModel`.

        The engine reads the reply as a finished turn, behind which the chat template writes the end: two readings a
        text, one a spelling, and one of each conversation object to see where the reply begins. vLLM's prefix cache
        does not serve prompts whose log-probabilities are asked for.
        """
        return whole_replies(conversations, texts, self._read_all, lambda token: token.id in self._special)

    def _read_all(self, prompts: Sequence[Prompted]) -> list[Reading]:
        """Have conversations read, either all with a finished reply behind them or none."""
        turns = [turns if reply is None else _answered(turns, reply) for turns, reply in prompts]
        begun = all(reply is None for _, reply in prompts)
        return self._read_prompts(turns, add_generation_prompt=begun, continue_final_message=False)

    def _read_prompts(self, conversations: Conversations, **options: bool) -> list[Reading]:
        """Have prompts read with the log-probabilities of their tokens; the one token that follows is thrown away."""
        if not conversations:
            return []
        sampling = [self._vllm.SamplingParams(temperature=0.0, max_tokens=1, prompt_logprobs=0) for _ in conversations]
        turns = [_for_vllm(conversation) for conversation in conversations]
        outputs = self._engine.chat(turns, sampling_params=sampling, use_tqdm=False, **options)
        return [_prompt_tokens(output) for output in outputs]

    def clean(self) -> None:
        """Let go of the engine, which holds nearly all of the GPU's memory; the clustering models need some of it."""
        self._engine = None
        super().clean()

    # --- ordinary lmms-eval requests ----------------------------------------------------------------------------------

    def generate_until(self, requests: list[Any]) -> list[str]:
        """Greedy or sampled generation for tasks that are not ours."""
        texts: list[str] = []
        with tqdm(total=len(requests), desc="Generating", disable=self.rank != 0) as bar:
            for start in range(0, len(requests), self.documents_per_call):
                part = requests[start : start + self.documents_per_call]
                conversations = [_for_vllm(self.messages_of(request)) for request in part]
                outputs = self._chat(conversations, [self._plain_sampling(request.args[2]) for request in part])
                stops = [PlainSettings.of(request.args[2]).until for request in part]
                texts += [cut(out.outputs[0].text, until).strip() for out, until in zip(outputs, stops, strict=True)]
                bar.update(len(part))
        return texts

    def _plain_sampling(self, task_settings: Mapping[str, Any]) -> Any:
        settings = PlainSettings.of(task_settings)
        return self._vllm.SamplingParams(
            temperature=settings.temperature,
            max_tokens=settings.max_new_tokens,
            stop=self._stops(settings.until),
            **settings.top,
        )


def _calls(draws: Sequence[DrawRequest], documents: int) -> list[list[int]]:
    """Positions of the draws of each call: whole documents, each with its draws in a row."""
    by_document: dict[Hashable, list[int]] = {}
    for i, draw in enumerate(draws):
        request = draw.request
        by_document.setdefault((request.key, request.prompt, request.wording), []).append(i)
    groups = list(by_document.values())
    parts = (groups[start : start + documents] for start in range(0, len(groups), documents))
    return [[i for group in part for i in group] for part in parts]


def _answered(conversation: list[dict[str, Any]], text: str) -> list[dict[str, Any]]:
    """Return a conversation with a text as its last turn."""
    return [*conversation, {"role": "assistant", "content": text}]


def _prompt_tokens(output: Any) -> Reading:
    """Return the prompt of a `RequestOutput`: each token with the log-probability that vLLM reports."""
    table, tokens = output.prompt_logprobs, output.prompt_token_ids
    if not table or not tokens:
        return "vLLM returned no log-probabilities of the prompt"
    # The first token has none, for nothing comes before it.
    pairs = [(token, entries[token]) for token, entries in zip(tokens, table, strict=True) if token in (entries or {})]
    return [PromptToken(token, entry.decoded_token or "", entry.logprob) for token, entry in pairs]


def _for_vllm(conversation: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """lmms-eval's messages with the pictures as vLLM's chat takes them from memory."""
    return [
        {**turn, "content": content if isinstance(content := turn["content"], str) else [_part(p) for p in content]}
        for turn in conversation
    ]


def _part(part: Mapping[str, Any]) -> dict[str, Any]:
    if part["type"] == "text":
        return dict(part)
    if part["type"] == "image" and isinstance(part["url"], Image.Image):
        picture = part["url"]
        return {"type": "image_pil", "image_pil": picture if picture.mode == "RGB" else picture.convert("RGB")}
    raise HedgeError(
        f"hedge_vllm shows text and images in memory; the task has {part['type']!r} content of another kind"
    )


def _load_vllm() -> Any:
    try:
        return importlib.import_module("vllm")
    except ImportError as error:
        raise HedgeError(f"hedge_vllm needs vLLM: pip install 'hedge-tasks[vllm]' ({error})") from error


def _generation_config(pretrained: str, revision: str | None) -> GenerationConfig:
    try:
        return GenerationConfig.from_pretrained(pretrained, revision=revision)
    except OSError:  # it has none of its own, and vLLM, too, takes what the model's configuration says
        return GenerationConfig.from_model_config(AutoConfig.from_pretrained(pretrained, revision=revision))


def _weights(pretrained: str, revision: str | None) -> str:
    """Identity of these weights among others of the same name: a fingerprint of the folder, or the hub's commit."""
    if os.path.isdir(pretrained):
        return identity_of(pretrained)
    # Reads the file only, so that models with code of their own need no trust for it.
    config, _ = PretrainedConfig.get_config_dict(pretrained, revision=revision)
    return identity_of(pretrained, config.get("_commit_hash") or revision)
