"""hedge_vllm: vLLM's offline engine, with a seed a draw and log-probabilities of the raw distribution.

See hedge_vllm.md beside this file for what was run and what was not.
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

from hedge_tasks.data.answers import Answer, Draw, Finish
from hedge_tasks.data.thoughts import NO_END, Parts, Token, answer_of, cut, has_thought, split_tokens, up_to_stop
from hedge_tasks.errors import ConfigError, HedgeError
from hedge_tasks.llm.completion import PromptToken
from hedge_tasks.llm.fingerprints import identity_of
from hedge_tasks.models.base import (
    SPELLINGS,
    ChatAdapter,
    Conversations,
    PlainSettings,
    Reading,
    forced_answer,
    marks_of,
    positive,
    refuse_unknown,
    whole_reply,
)
from hedge_tasks.models.token_sampling import answer_in, rounded, sent_decoding, thought_of
from hedge_tasks.models.weights import default_device
from hedge_tasks.perturb.workers import PictureWorkers
from hedge_tasks.sampling.prefetch import prefetch_messages
from hedge_tasks.sampling.requests import DrawRequest
from hedge_tasks.sampling.series import request_seed, series

# Draws whose pictures are made while the engine is busy: about a dozen documents at n = 10.
_AHEAD = 256


class HedgeVLLM(ChatAdapter):
    """Adapter for the models that `vllm.LLM` loads and that have a chat template.

    Args:
        pretrained: hub id or local folder.
        revision: of the hub repository.
        dtype: "auto", "float32", "bfloat16", "float16"; as vLLM takes it.
        max_model_len: longest prompt and answer together, in tokens. None leaves the model's own.
        max_num_batched_tokens: tokens that the engine reads in one step. None leaves vLLM's choice. On a CPU it must
            hold all prompts of a call, as the engine there cannot read a seeded prompt in parts.
        enforce_eager: do not compile the model: a start in seconds instead of minutes, and slower draws.
        gpu_memory_utilization: share of each GPU's memory that vLLM may take.
        tensor_parallel_size: GPUs that share one copy of the model.
        data_parallel_size: copies of the model, one a process; start that many processes with torchrun.
        max_images: most images a question shows.
        documents_per_call: documents whose draws are handed to vLLM in one call, and stored after it.
        trust_remote_code: run code from the model's repository. Off unless asked for.
        batch_size: lmms-eval always passes one; vLLM makes its own batches.

    Raises:
        ConfigError: an argument is unknown or makes no sense.
        HedgeError: vLLM is not installed.
    """

    def __init__(
        self,
        pretrained: str,
        revision: str | None = None,
        dtype: str = "auto",
        max_model_len: int | None = None,
        max_num_batched_tokens: int | None = None,
        enforce_eager: bool = False,
        gpu_memory_utilization: float = 0.9,
        tensor_parallel_size: int = 1,
        data_parallel_size: int = 1,
        max_images: int = 1,
        documents_per_call: int = 64,
        trust_remote_code: bool = False,
        batch_size: int | str = 1,
        max_batch_size: int | None = None,
        device: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        refuse_unknown(options, HedgeVLLM)
        if device not in (None, "cuda"):
            raise ConfigError(f"device: vLLM chooses its own GPUs (CUDA_VISIBLE_DEVICES); got {device!r}")
        self.documents_per_call = positive("documents_per_call", documents_per_call)
        self._pictures = PictureWorkers()
        if not 0 < float(gpu_memory_utilization) <= 1:
            raise ConfigError(f"gpu_memory_utilization: expected a number in (0, 1], got {gpu_memory_utilization!r}")
        settings: dict[str, Any] = {
            "model": pretrained,
            "revision": revision,
            "tokenizer_revision": revision,
            "dtype": dtype,
            "gpu_memory_utilization": float(gpu_memory_utilization),
            "limit_mm_per_prompt": {"image": positive("max_images", max_images)},
            "trust_remote_code": trust_remote_code,
            "enforce_eager": enforce_eager,
            "enable_prefix_caching": True,  # the draws of a document share their prompt, the clean ones their image too
            "logprobs_mode": "raw_logprobs",  # before temperature and penalties
            "seed": 0,
        }
        if max_model_len is not None:
            settings["max_model_len"] = positive("max_model_len", max_model_len)
        if max_num_batched_tokens is not None:
            settings["max_num_batched_tokens"] = positive("max_num_batched_tokens", max_num_batched_tokens)
        self._settle_parallelism(
            settings,
            tensor=positive("tensor_parallel_size", tensor_parallel_size),
            data=positive("data_parallel_size", data_parallel_size),
        )
        self.device = default_device()
        self.pretrained = pretrained
        self._vllm = _load_vllm()
        self._engine = self._vllm.LLM(**settings)
        self._special = set(self._engine.get_tokenizer().all_special_ids)
        self.control_marks = marks_of(self._engine.get_tokenizer())
        self._defaults = self._engine.get_default_sampling_params()
        version = getattr(self._vllm, "__version__", "unknown")
        self.answer_identity = f"hedge_vllm:{pretrained}@{_weights(pretrained, revision)}:{dtype}:vllm-{version}"

    def _settle_parallelism(self, settings: dict[str, Any], *, tensor: int, data: int) -> None:
        """Several processes are one engine each, every one with its own documents; one process is one engine."""
        world = int(os.environ.get("WORLD_SIZE", 1))
        settings["tensor_parallel_size"] = tensor
        if world == 1 and data > 1:
            raise ConfigError(
                f"data_parallel_size={data} needs as many processes: torchrun --nproc-per-node {data} -m lmms_eval ..."
            )
        if world == 1:
            return
        if tensor > 1 or data not in (1, world):
            raise ConfigError(
                f"{world} processes: set data_parallel_size={world} and tensor_parallel_size=1. To spread one copy of "
                "the model over several GPUs, start a single process"
            )
        settings |= {"data_parallel_size": world, "distributed_executor_backend": "external_launcher"}
        self._rank, self._world_size = int(os.environ.get("RANK", 0)), world

    # --- draws: what the hook asks for --------------------------------------------------------------------------------

    def generate_draws(self, draws: Sequence[DrawRequest]) -> Iterator[list[tuple[int, Answer | str]]]:
        """Many documents a call, and the clean draws of a document in one request (`n`), which reads its prompt once.

        A draw that vLLM gave up comes back as the reason.
        """
        calls = [_groups(draws, call) for call in _calls(draws, self.documents_per_call)]
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
        template = getattr(self._engine.get_tokenizer(), "chat_template", "") if until else ""
        return [] if has_thought(str(template)) else list(until)

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
        finish: Finish = completion.finish_reason
        tokens, table = list(completion.token_ids), completion.logprobs
        if not tokens or table is None:
            return Answer(answer_of(completion.text), finish=finish)
        chosen = [(token, entries[token]) for token, entries in zip(tokens, table, strict=True)]
        pieces = [Token(_spelled(entry), entry.logprob, token in self._special) for token, entry in chosen]
        parts = split_tokens(pieces)
        whole = self._text(completion.text, tokens, parts)
        written = cut(whole, until)
        text = answer_of(written)
        finish = "stop" if written != whole else finish
        if isinstance(parts, str):
            in_thought = pieces[: len(pieces) - (finish == "stop" and pieces[-1].control)]  # without the end token
            thought = thought_of([piece.logprob for piece in in_thought]) if parts == NO_END else None
            return Answer(text, finish=finish, thought=thought, no_logprob=parts)
        begin = len(parts.thought)
        if until and finish == "stop":
            parts = up_to_stop(parts, text, is_cut=written != whole)
        answer = answer_in(text, parts, finish)
        if alternatives is None:
            return answer
        own = slice(begin, begin + len(parts.answer))
        texts, likeliest = self._with_alternatives(tokens[own], table[own], alternatives)
        return replace(answer, tokens=texts, alternatives=likeliest)

    def _text(self, text: str, tokens: Sequence[int], parts: Parts | str) -> str:
        """Return the text, perhaps without its thought. Marks of a thought that are control tokens are not in vLLM's
        own.
        """
        if has_thought(text) or (isinstance(parts, Parts) and not parts.thought):
            return text
        tokenizer = self._engine.get_tokenizer()
        if isinstance(parts, str):
            # The end token is no text; the marks of the thought, which may be control tokens, are.
            ended = bool(tokens) and tokens[-1] == tokenizer.eos_token_id
            return str(tokenizer.decode(tokens[:-1] if ended else tokens, skip_special_tokens=False)).strip()
        return str(tokenizer.decode(tokens[len(parts.thought) :], skip_special_tokens=True)).lstrip()

    def _with_alternatives(self, tokens: Sequence[int], table: Sequence[Mapping[int, Any]], k: int) -> tuple[Any, ...]:
        """Tokens and alternatives of an answer as vLLM writes them, special ones left out."""

        def text_and_logprob(entry: Any) -> tuple[str, float]:
            return entry.decoded_token or "", rounded(entry.logprob)

        steps = [(token, entries) for token, entries in zip(tokens, table, strict=True) if token not in self._special]
        texts = tuple(text_and_logprob(entries[token]) for token, entries in steps)
        # Beside the k likeliest there is the token itself.
        likeliest = [sorted(entries.items(), key=lambda pair: -pair[1].logprob)[:k] for _, entries in steps]
        alternatives = tuple(
            tuple(text_and_logprob(entry) for token, entry in pairs if token not in self._special)
            for pairs in likeliest
        )
        return texts, (alternatives if k else None)

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
        by_id = {id(conversation): conversation for conversation in conversations}
        prompts = dict(zip(by_id, self._read_prompts(list(by_id.values())), strict=True))
        closed = self._read_finished(conversations, texts)
        return [
            whole_reply(prompts[id(conversation)], readings, text, self._is_control)
            for conversation, readings, text in zip(conversations, closed, texts, strict=True)
        ]

    def _is_control(self, token: PromptToken) -> bool:
        return token.id in self._special

    def _read_finished(self, conversations: Conversations, texts: Sequence[str]) -> list[list[Reading]]:
        """Have each text read as the finished last turn of its conversation, once a spelling."""
        pairs = zip(conversations, texts, strict=True)
        turns = [_answered(conversation, blank + text) for conversation, text in pairs for blank in SPELLINGS]
        readings = self._read_prompts(turns, add_generation_prompt=False, continue_final_message=False)
        return [readings[i : i + len(SPELLINGS)] for i in range(0, len(readings), len(SPELLINGS))]

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


def _groups(draws: Sequence[DrawRequest], call: Sequence[int]) -> list[list[int]]:
    """Positions of the draws of each request of a call."""
    return [[call[i] for i in group] for group in series([draws[i] for i in call])]


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


def _spelled(entry: Any) -> bytes:
    return (entry.decoded_token or "").encode("utf-8", "replace")


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


def _weights(pretrained: str, revision: str | None) -> str:
    """Identity of these weights among others of the same name: a fingerprint of the folder, or the hub's commit."""
    if os.path.isdir(pretrained):
        return identity_of(pretrained)
    from transformers import PretrainedConfig

    # Reads the file only, so that models with code of their own need no trust for it.
    config, _ = PretrainedConfig.get_config_dict(pretrained, revision=revision)
    return identity_of(pretrained, config.get("_commit_hash") or revision)
