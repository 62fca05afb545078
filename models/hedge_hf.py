"""hedge_hf: any Hugging Face image-text-to-text or causal language model, with seeded draws and log-probabilities."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from functools import wraps
from itertools import groupby, islice
from typing import Any

import numpy as np
import torch
from lmms_eval.protocol import ChatMessages
from loguru import logger
from tqdm import tqdm
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
    AutoProcessor,
    AutoTokenizer,
)
from transformers.models.auto.modeling_auto import MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES

from hedge_tasks.data.answers import Answer, Draw
from hedge_tasks.data.inside import Inside
from hedge_tasks.data.sentences import sentence_spans
from hedge_tasks.data.thoughts import has_thought
from hedge_tasks.errors import ConfigError, HedgeError, lookup
from hedge_tasks.io.options import count, scalar
from hedge_tasks.llm.fingerprints import identity_of
from hedge_tasks.models.base import (
    SPELLINGS,
    ChatAdapter,
    Conversations,
    PlainSettings,
    conversation_draws,
    marks_of,
    refuse_unknown,
    spelled_answer,
)
from hedge_tasks.models.contrast import Contrast, ContrastiveDecoding
from hedge_tasks.models.decoding import PlainGeneration, SharedPrefill, forced_draws, forced_logprobs, reply_logprob
from hedge_tasks.models.inside import arrays_inside, eager, image_token
from hedge_tasks.models.mitigations import DISTORTED, Vcd, distorted_pixels, mitigation
from hedge_tasks.models.token_sampling import (
    VERSION,
    AnswerReader,
    Continuations,
    TokenSampler,
    rounded,
    sent_decoding,
)
from hedge_tasks.models.weights import (
    DeviceMap,
    GrowingBatch,
    check_pixel_limits,
    free_memory,
    input_device,
    is_out_of_memory,
    pixel_limits,
    placement,
    tell_of_windows,
)
from hedge_tasks.perturb.workers import PictureWorkers
from hedge_tasks.sampling.forced import shows_picture
from hedge_tasks.sampling.prefetch import prefetch_messages
from hedge_tasks.sampling.requests import DrawRequest
from hedge_tasks.sampling.reread import Reread

# Largest total variation distance between shared and uncached next-token distributions that is rounding, and no fault:
# in half precision the rounding of the logits alone makes a few percent.
_SHARING_TOLERANCE = 1e-3
_SHARING_TOLERANCE_HALF = 0.05

_REREAD_ROWS = 16
"""Answers that are read again in one pass, at most; `draws_per_batch` makes it fewer."""


class HedgeHF(ChatAdapter):
    """Adapter for models that `AutoModelForImageTextToText` or `AutoModelForCausalLM` loads.

    Args:
        pretrained: hub id or local folder.
        revision: of the hub repository.
        dtype: "auto", "float32", "bfloat16", "float16".
        device: such as "cuda:1"; by default this rank's GPU, or the CPU.
        device_map: in place of `device`, to spread one model over the GPUs of this process, as transformers takes it:
            "auto", or module names and their devices.
        min_pixels, max_pixels: limits of the size of an image as the model reads it, for processors that scale images
            to a number of pixels (Qwen-VL and its kin).
        attn_implementation: handed to transformers.
        batch_size: documents a batch; all draws of a document (21 at n = 10) are rows of the same one. "auto" begins
            with one and doubles as far as the GPU's memory goes (`GrowingBatch`); it is what lmms-eval's command line
            means where nothing is typed.
        draws_per_batch: at most this many rows a batch, for GPUs that cannot take a whole document. Where the memory
            still does not suffice it is halved, and the draws are asked again: in float32 no answer depends on its
            batch, in half precision rounding may turn one near a tie.
        share_prefill: read every prompt once for all its draws. By default where a check on the first document
            finds that it changes nothing; False never, True without the check.
        peft: LoRA adapter (hub id or folder) to merge into the weights.
        contrast: PROMPT:OTHER:ALPHA, contrastive decoding between two prompts; see `hedge_tasks.models.contrast`.
        decoding: "vcd" or "dola", against hallucination; see `hedge_tasks.models.mitigations`.
        alpha, beta, noise_step: of vcd.
        layers, beta: of dola.
        trust_remote_code: run code from the model's repository. Off unless asked for.

    Raises:
        ConfigError: an argument is unknown or makes no sense.
    """

    samples_itself = True

    def __init__(
        self,
        pretrained: str,
        revision: str | None = None,
        dtype: str = "auto",
        device: str | None = None,
        device_map: DeviceMap | None = None,
        min_pixels: int | None = None,
        max_pixels: int | None = None,
        attn_implementation: str | None = None,
        batch_size: int | str = "auto",
        draws_per_batch: int | None = None,
        share_prefill: bool | None = None,
        peft: str | None = None,
        contrast: str | None = None,
        decoding: str | None = None,
        alpha: float | None = None,
        beta: float | None = None,
        noise_step: int | None = None,
        layers: str | int | None = None,
        trust_remote_code: bool = False,
        max_batch_size: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        refuse_unknown(options, HedgeHF)
        is_auto = batch_size == "auto"
        self.batch_size = count("batch_size", 1 if is_auto else scalar(str(batch_size)), at_least=1)
        self.draws_per_batch = draws_per_batch
        if draws_per_batch is not None:
            count("draws_per_batch", draws_per_batch, at_least=1)
        self._pictures = PictureWorkers()
        self.pretrained, self.share_prefill = pretrained, share_prefill
        self._shares: dict[bool, bool | None] = {}  # of prompts with pictures, and without
        self.contrast = None if contrast is None else Contrast.parse(contrast)
        self.decoding = mitigation(decoding, alpha=alpha, beta=beta, noise_step=noise_step, layers=layers)
        source = {"revision": revision, "trust_remote_code": trust_remote_code}
        config = AutoConfig.from_pretrained(pretrained, **source)
        self._reads_images = config.model_type in MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES
        self._refuse_decoding()
        limits = pixel_limits(min_pixels, max_pixels)
        self._processor = (AutoProcessor if self._reads_images else AutoTokenizer).from_pretrained(
            pretrained, **source, **limits
        )
        check_pixel_limits(limits, self._processor, pretrained)
        self._tokenizer = getattr(self._processor, "tokenizer", self._processor)
        self._tokenizer.padding_side = "left"
        if self._tokenizer.pad_token_id is None:
            self._tokenizer.pad_token = self._tokenizer.eos_token
        self._knows_system = self._check_template()
        self._placeholders = _placeholder_tokens(config)
        self._image_token = image_token(config)
        self.control_marks = marks_of(self._processor, sorted(self._placeholders))
        self._model: Any = (
            AutoModelForImageTextToText if self._reads_images else AutoModelForCausalLM
        ).from_pretrained(
            pretrained,
            dtype=_dtype(dtype),
            device_map=placement(device, device_map),
            **({} if attn_implementation is None else {"attn_implementation": attn_implementation}),
            **source,
        )
        if peft is not None:
            from peft import PeftModel

            self._model = PeftModel.from_pretrained(self._model, peft).merge_and_unload()
        self._model.eval()
        self._model.forward = _exact(self._model.forward)
        self._decoder: Any = self._model if self.decoding is None else self.decoding.wrap(self._model)
        self._growth = GrowingBatch(self._model) if is_auto else None
        self.device = input_device(self._model)
        tell_of_windows(config, self.device)
        weights = identity_of(pretrained, getattr(config, "_commit_hash", None))
        self.answer_identity = self._identity(weights, peft, limits)

    def _refuse_decoding(self) -> None:
        if self.decoding is not None and self.contrast is not None:
            raise ConfigError("contrast, decoding: logits are contrasted in one way only; leave one of them out")
        if self.decoding is not None and self.decoding.needs_pictures and not self._reads_images:
            raise ConfigError(
                f"decoding={self.decoding.name} needs pictures, and {self.pretrained} reads none; "
                "decoding=dola needs none"
            )

    def _identity(self, weights: str, peft: str | None, limits: Mapping[str, int]) -> str:
        """Name of all that shapes an answer besides prompt and draw."""
        adapter = f"+{peft}@{identity_of(peft)}" if peft else ""
        identity = f"hedge_hf:{self.pretrained}@{weights}{adapter}:{self._model.dtype}:{VERSION}"
        if self.contrast is not None:
            identity += f":contrast={self.contrast.identity}"
        if self.decoding is not None:
            identity += f":decoding={json.dumps(self.decoding.settings, sort_keys=True)}"
        return identity + "".join(f":{name}={value}" for name, value in limits.items())

    @classmethod
    def create_from_arg_string(cls, arg_string: str, additional_config: dict[str, Any] | None = None) -> HedgeHF:
        """As lmms-eval makes a model. Where nobody types a batch size it passes the number 1, and else a text."""
        config = dict(additional_config or {})
        if config.get("batch_size") == 1:
            del config["batch_size"]
        return super().create_from_arg_string(arg_string, config)

    # --- draws: what the hook asks for --------------------------------------------------------------------------------

    def generate_draws(self, draws: Sequence[DrawRequest]) -> Iterator[list[tuple[int, Answer]]]:
        """Sample every draw from its own noise, so that batch, order and number of draws change nothing."""
        planned: deque[tuple[list[int], list[int], int, int]] = deque()

        def prompts() -> Iterator[DrawRequest]:
            for documents in self._batches(draws):
                rows = [row for document in documents for row in document]
                distinct, owners = _distinct_prompts([draws[i] for i in rows])
                planned.append((rows, owners, len(distinct), len(documents)))
                yield from distinct

        # Pictures are perturbed while the model is busy with the batch before.
        with closing(prefetch_messages(prompts(), pictures=self._pictures)) as prepared:
            for first in prepared:
                rows, owners, n_prompts, n_documents = planned.popleft()
                messages = [first, *islice(prepared, n_prompts - 1)]
                with self._growth.watched(n_documents) if self._growth else nullcontext():
                    for part, answers in self._sample_in_parts([draws[i] for i in rows], messages, owners):
                        yield list(zip(rows[part], answers, strict=True))
                if self._growth and self.draws_per_batch is None:
                    self.batch_size = self._growth.documents

    def _sample_in_parts(
        self, draws: Sequence[DrawRequest], messages: list[list[dict[str, Any]]], owners: list[int]
    ) -> Iterator[tuple[slice, list[Answer]]]:
        """The answers of a batch, all at once where there is room for it."""
        done = 0
        while done < len(draws):
            part = slice(done, done + min(self.draws_per_batch or len(draws), len(draws) - done))
            size = part.stop - part.start
            part_messages, positions = _distinct_messages(messages, owners[part])
            try:
                answers = self._sample(draws[part], part_messages, positions)
            except RuntimeError as error:
                if size == 1 or not is_out_of_memory(error):
                    raise
                self._halve(size, error)
            else:
                yield part, answers
                done = part.stop
                continue
            free_memory()  # only here, where the error and with it the frames that hold tensors are gone

    def _halve(self, size: int, error: RuntimeError) -> None:
        self.draws_per_batch = (size + 1) // 2
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        logger.warning(
            "{}: no memory for {} draws at once, going on with draws_per_batch={} ({})",
            *(self.pretrained, size, self.draws_per_batch, reason),
        )

    def _sample(
        self, draws: Sequence[DrawRequest], messages: list[list[dict[str, Any]]], owners: list[int]
    ) -> list[Answer]:
        """Sample one answer a draw; `owners` says which of the messages is whose prompt."""
        limits = draws[0].request.plan.limits()
        reader = self._reader(limits.get("until", ()))
        allowed = [self._allowed(draw.request.choices, reader) for draw in draws]
        sampler = self._sampler([d.draw for d in draws], limits, allowed, [d.alternatives for d in draws])
        limit = limits["max_new_tokens"]
        if self.contrast is None or not self._is_contrasted(draws[0]):
            return self._decode(messages, owners, sampler, reader, limit)
        self._require_sharing(messages[:1])
        draw_of_prompt = dict(zip(reversed(owners), reversed(draws), strict=True))
        others = [self.contrast.messages(draw_of_prompt[i], conversation) for i, conversation in enumerate(messages)]
        decoding = ContrastiveDecoding(self._model, self.contrast, self._inputs(others))
        return decoding.decode(self._inputs(messages), owners, sampler, reader, limit)

    def _decode(
        self,
        messages: list[list[dict[str, Any]]],
        owners: Sequence[int],
        sampler: TokenSampler,
        reader: AnswerReader,
        limit: int,
    ) -> list[Answer]:
        """Decode one answer an owner, from one reading of each of the messages where that can be shared."""
        if self.decoding is not None:
            self._require_sharing(messages[:1])
        if self._may_share(messages[:1]):
            return SharedPrefill(self._decoder).decode(self._decoder_inputs(messages), owners, sampler, reader, limit)
        inputs = self._inputs([messages[owner] for owner in owners])
        return PlainGeneration(self._model).decode(inputs, sampler, reader, limit)

    def _allowed(self, choices: tuple[str, ...], reader: AnswerReader) -> Continuations | None:
        if not choices:
            return None
        if self.decoding is not None and self.decoding.beta > 0:
            raise ConfigError(
                f"guided: decoding={self.decoding.name} leaves out implausible tokens, the allowed ones perhaps among "
                "them; beta=0 leaves out none"
            )
        return Continuations(self._tokenizer, choices, reader.ends)

    def sent_decoding(self, limits: Mapping[str, Any]) -> dict[str, Any]:
        """Settings of decoding besides the temperature: `top_p`, `top_k`, `min_p`, `repetition_penalty`."""
        return sent_decoding(limits, self._model.generation_config)

    def _is_contrasted(self, draw: DrawRequest) -> bool:
        return self.contrast is not None and self.contrast.applies_to(draw)

    def _require_sharing(self, messages: list[list[dict[str, Any]]]) -> None:
        if not self._may_share(messages):
            raise HedgeError(f"{self.pretrained}: contrastive decoding needs a shared prefill, and this model has none")

    def _may_share(self, messages: list[list[dict[str, Any]]]) -> bool:
        """Whether draws may share a prefill: asked for, or right on the first prompt with pictures, or without."""
        if self.share_prefill is not None:
            return self.share_prefill
        kind = any(map(shows_picture, messages))
        if self._shares.get(kind) is None:
            self._shares[kind] = self._check_sharing(self._inputs(messages))
        return bool(self._shares[kind])

    def _check_sharing(self, inputs: Any) -> bool | None:
        """Return the result of the check; None where the memory did not suffice, and another prompt is checked."""
        full = self._model.dtype in (torch.float32, torch.float64)
        tolerance = _SHARING_TOLERANCE if full else _SHARING_TOLERANCE_HALF
        try:
            error = SharedPrefill(self._model).error(inputs)
        except Exception as failure:  # an architecture may refuse in any way; plain generation then does the work
            if is_out_of_memory(failure):
                logger.warning("{}: no memory to check the shared prefill, the next batch is asked", self.pretrained)
                return None
            logger.warning("{}: no shared prefill, its cache cannot be shared ({})", self.pretrained, failure)
            return False
        if not error <= tolerance:
            logger.warning(
                "{}: no shared prefill, it would change the next-token distribution by {:.2g} (total variation)",
                *(self.pretrained, error),
            )
            return False
        logger.info("{}: shared prefill checked, total variation {:.1e}", self.pretrained, error)
        return True

    def _batches(self, draws: Sequence[DrawRequest]) -> Iterator[list[list[int]]]:
        """Documents that go together, each the positions of its draws: of equal limits, as many as `batch_size` now."""
        by_document: dict[tuple[Any, ...], list[int]] = {}
        for i, draw in enumerate(draws):
            request = draw.request
            together = str((request.plan.limits(), self._is_contrasted(draw)))
            by_document.setdefault((together, request.key, request.prompt, request.wording), []).append(i)
        for _, alike in groupby(by_document.items(), key=lambda document: document[0][0]):
            while batch := [rows for _, rows in islice(alike, self.batch_size)]:
                yield batch

    def reread(self, draws: Sequence[DrawRequest], answers: Sequence[Answer]) -> list[Reread | str]:
        """Read given answers again as their draws; see `hedge_tasks.sampling.reread.RereadingModel`.

        Of the spellings with and without a blank in front the one counts that the seed comes closer to.
        """
        size = min(self.draws_per_batch or _REREAD_ROWS, _REREAD_ROWS)
        rereads: list[Reread | str] = []
        for start in range(0, len(draws), size):
            rereads += self._reread(draws[start : start + size], answers[start : start + size])
        return rereads

    def _reread(self, draws: Sequence[DrawRequest], answers: Sequence[Answer]) -> Sequence[Reread | str]:
        if any(self._is_contrasted(draw) for draw in draws):
            return ["contrastive decoding is not read again"] * len(draws)
        inputs = self._decoder_inputs([draw.messages() for draw in draws])
        spelled = [self._reread_spelled(inputs, draws, answers, blank) for blank in SPELLINGS]
        return [min(pair, key=lambda reread: reread.margin or 0.0) for pair in zip(*spelled, strict=True)]

    def _reread_spelled(
        self, inputs: Any, draws: Sequence[DrawRequest], answers: Sequence[Answer], blank: str
    ) -> list[Reread]:
        limits = draws[0].request.plan.limits()
        reader = self._reader(limits.get("until", ()))
        allowed = [self._allowed(draw.request.choices, reader) for draw in draws]
        sampler = self._sampler([d.draw for d in draws], limits, allowed)
        spelled = self._token_ids(blank + answer.text for answer in answers)
        tokens = [ids if answer.text else [] for ids, answer in zip(spelled, answers, strict=True)]
        passes = forced_draws(self._decoder, inputs, tokens, sampler, sorted(reader.ends))
        # What a text of `until` ended has not chosen an end token, nor has an answer that was cut off.
        has_end = [answer.finish != "length" and not limits.get("until") for answer in answers]
        return [_as_reread(own, ahead, end) for (own, ahead), end in zip(passes, has_end, strict=True)]

    # --- plain conversations ------------------------------------------------------------------------------------------

    def _answer_draws(
        self, conversations: Conversations, draws: Sequence[Draw], limit: int, schema: Mapping[str, Any] | None
    ) -> list[Answer]:
        answers: list[Answer] = []
        for start in range(0, len(draws), self.batch_size):
            rows = slice(start, start + self.batch_size)
            sampler = self._sampler(draws[rows], {})
            answers += self._decode(list(conversations[rows]), range(len(draws[rows])), sampler, self._reader(), limit)
        return answers

    def _reader(self, until: Sequence[str] = ()) -> AnswerReader:
        return AnswerReader(self._tokenizer, self._model.generation_config, until, has_thought(self.chat_template))

    def _sampler(
        self,
        draws: Sequence[Draw],
        limits: Mapping[str, Any],
        allowed: Sequence[Continuations | None] = (),
        alternatives: Sequence[int | None] = (),
    ) -> TokenSampler:
        defaults = self._model.generation_config
        return TokenSampler(draws, limits, defaults, self._placeholders, self.device, allowed, alternatives)

    def forced_logprobs(self, conversations: Conversations, texts: Sequence[str]) -> list[Answer | str]:
        """Return how likely each text is as the answer to its conversation.

        See `hedge_tasks.sampling.forced.ForcedModel`. Answers are stripped, and many models begin with a blank, which
        is another token: of both spellings the likelier one counts. For the rest the text is what the tokenizer makes
        of it. An answer that was sampled may, seldom, be the same text in other tokens, and then have another
        log-probability.
        """
        spellings = [self._forced_logprobs(conversations, [blank + text for text in texts]) for blank in SPELLINGS]
        likelier = [max(logprobs, key=sum) for logprobs in zip(*spellings, strict=True)]
        return [
            Answer(text, rounded(sum(logprobs) / max(len(logprobs), 1)), len(logprobs))
            for text, logprobs in zip(texts, likelier, strict=True)
        ]

    def reply_logprobs(self, conversations: Conversations, texts: Sequence[str]) -> list[Answer | str]:
        """Return how likely each text is as the whole reply; see `hedge_tasks.sampling.forced.ForcedModel`.

        Texts of the same conversation object share one reading of it, where the model's draws may. A reply ends with
        any of the model's end tokens.
        """
        replies: list[Answer | str] = []
        for _, group in groupby(range(len(texts)), key=lambda i: id(conversations[i])):
            rows = list(group)
            replies += self._reply_logprobs(conversations[rows[0]], [texts[i] for i in rows])
        return replies

    def _reply_logprobs(self, conversation: list[dict[str, Any]], texts: Sequence[str]) -> list[Answer]:
        spellings = [[tuple(ids) for ids in self._token_ids(blank + text for blank in SPELLINGS)] for text in texts]
        # Some tokenizers spell both alike, and one reply must not count twice.
        replies = list(dict.fromkeys(tokens for pair in spellings for tokens in pair))
        ends = sorted(self._reader().ends)
        inputs = self._decoder_inputs([conversation])
        if self._may_share([conversation]):
            logprobs = SharedPrefill(self._decoder).reply_logprobs(inputs, replies, ends)
        else:
            logprobs = [reply_logprob(self._decoder, inputs, reply, ends) for reply in replies]
        by_reply = dict(zip(replies, logprobs, strict=True))
        return [
            # The end is one of several tokens, so that the first of them stands for all.
            spelled_answer(text, {(*tokens, ends[0]): by_reply[tokens] for tokens in pair})
            for text, pair in zip(texts, spellings, strict=True)
        ]

    def _forced_logprobs(self, conversations: Conversations, texts: Sequence[str]) -> list[list[float]]:
        """Log-probabilities of the tokens of each text after its conversation."""
        logprobs: list[list[float]] = []
        for start in range(0, len(texts), self.batch_size):
            rows = slice(start, start + self.batch_size)
            inputs = self._decoder_inputs(list(conversations[rows]))
            logprobs += forced_logprobs(self._decoder, inputs, self._token_ids(texts[rows]))
        return logprobs

    def inside(self, conversations: Conversations, texts: Sequence[str], parts: frozenset[str]) -> list[Inside | str]:
        """Return arrays from inside the model while it reads a question and an answer; see `hedge_tasks.data.inside`.

        The text is what the tokenizer makes of it, in the spelling (with a blank in front, or none) that is likelier.
        Attention is read one answer at a time: the weights of all layers are in the memory. A token belongs to a
        sentence where one of its characters does, white space aside.

        Raises:
            ConfigError: sentences are asked for, and the tokenizer does not tell where tokens stand.
        """
        if "sentences" in parts and not getattr(self._tokenizer, "is_fast", False):
            raise ConfigError(f"sentences: the tokenizer of {self.pretrained} does not tell where tokens stand")
        if self.decoding is not None and (raw := sorted(parts & {"logits", "draws"})):
            raise ConfigError(
                f"{raw[0]}: kept logits are the model's own, and decoding={self.decoding.name} draws from others"
            )
        rows: list[Inside | str] = []
        size = 1 if "attention" in parts else self.batch_size
        with eager(self._model) if "attention" in parts else nullcontext():
            for start in range(0, len(texts), size):
                batch = slice(start, start + size)
                rows += self._inside(list(conversations[batch]), texts[batch], parts)
        return rows

    def _inside(
        self, conversations: list[list[dict[str, Any]]], texts: Sequence[str], parts: frozenset[str]
    ) -> list[Inside | str]:
        inputs = self._inputs(conversations)
        plain, indented = (self._token_ids(blank + text for text in texts) for blank in SPELLINGS)
        logprobs = (forced_logprobs(self._model, inputs, tokens) for tokens in (plain, indented))
        # As `forced_logprobs` takes an answer, so that both are of the same tokens.
        blanks = [sum(x) < sum(y) for x, y in zip(*logprobs, strict=True)]
        tokens = [b if blank else a for a, b, blank in zip(plain, indented, blanks, strict=True)]
        if "sentences" not in parts:
            return arrays_inside(self._model, inputs, tokens, self._image_token, parts)
        spans = [sentence_spans(text) for text in texts]
        sentences = list(map(self._tokens_of, texts, blanks, spans))
        rows = arrays_inside(self._model, inputs, tokens, self._image_token, parts, sentences)
        return [
            row if isinstance(row, str) else row | {"sentence_spans": np.array(own, np.float32).reshape(-1, 2)}
            for row, own in zip(rows, spans, strict=True)
        ]

    def _token_ids(self, texts: Iterable[str]) -> list[list[int]]:
        return [self._tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts]

    def _tokens_of(self, text: str, blank: bool, spans: Sequence[tuple[int, int]]) -> list[list[int]]:
        """The tokens of each span of characters of a text, which is spelled with a blank in front, or without."""
        if not spans:
            return []
        spelled = SPELLINGS[blank] + text
        offsets = self._tokenizer(spelled, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
        places = [(end - len(spelled[start:end].lstrip()) - blank, end - blank) for start, end in offsets]
        return [
            [t for t, (start, end) in enumerate(places) if start < behind and end > begin and end > start]
            for begin, behind in spans
        ]

    @property
    def chat_template(self) -> str:
        """Chat template of the model, as the source of a Jinja template."""
        return str(self._processor.chat_template)

    # --- ordinary lmms-eval requests ----------------------------------------------------------------------------------

    def generate_until(self, requests: list[Any]) -> list[str]:
        """Greedy or sampled generation for tasks that are not ours."""
        answers: dict[int, str] = {}
        settings = [str(request.args[2]) for request in requests]
        with tqdm(total=len(requests), desc="Generating", disable=self.rank != 0) as bar:
            for _, alike in groupby(sorted(range(len(requests)), key=settings.__getitem__), settings.__getitem__):
                while batch := list(islice(alike, self.batch_size)):
                    answers.update(zip(batch, self._generate([requests[i] for i in batch]), strict=True))
                    bar.update(len(batch))
        return [answers[i] for i in range(len(requests))]

    def _generate(self, requests: list[Any]) -> list[str]:
        """Sample one text a request, all with the settings of the first. Seeds come from torch's own."""
        own = requests[0].args[2]
        if int(own.get("num_beams") or 1) > 1:
            raise ConfigError("num_beams: hedge_hf takes one beam; for beam search use another lmms-eval model")
        settings = PlainSettings.of(own)
        draws = conversation_draws(len(requests), settings.temperature, torch.randint(2**31, (len(requests),)).tolist())
        conversations = [self.messages_of(request) for request in requests]
        sampler, reader = self._sampler(draws, settings.top), self._reader(settings.until)
        owners = range(len(conversations))
        return [a.text for a in self._decode(conversations, owners, sampler, reader, settings.max_new_tokens)]

    # --- inputs -------------------------------------------------------------------------------------------------------

    def _inputs(self, conversations: list[list[dict[str, Any]]]) -> Any:
        return self._placed(self._processed(conversations))

    def _decoder_inputs(self, conversations: list[list[dict[str, Any]]]) -> Any:
        """Inputs for `self._decoder`: with `decoding=vcd` the noisy pictures are among them."""
        method = self.decoding
        if method is None:
            return self._inputs(conversations)
        inputs = self._processed(conversations)
        if method.needs_pictures and not all(map(shows_picture, conversations)):
            raise ConfigError(f"decoding={method.name} needs pictures, and there is a prompt without any")
        if isinstance(method, Vcd):
            frames = getattr(getattr(self._model.config, "vision_config", None), "temporal_patch_size", None) or 1
            inputs[DISTORTED] = distorted_pixels(inputs, method.noise_step, frames)
        return self._placed(inputs)

    def _processed(self, conversations: list[list[dict[str, Any]]]) -> Any:
        rendered = [self._adapt(ChatMessages(messages=messages).to_hf_messages()) for messages in conversations]
        inputs: Any = self._processor.apply_chat_template(
            rendered,
            add_generation_prompt=True,
            tokenize=True,
            return_dict=True,
            return_tensors="pt",
            **({"processor_kwargs": {"padding": True}} if self._reads_images else {"padding": True}),
        )
        return inputs

    def _placed(self, inputs: Any) -> Any:
        inputs = inputs.to(self.device)
        for name in {"pixel_values", DISTORTED} & inputs.keys():
            inputs[name] = inputs[name].to(self._model.dtype)
        return inputs

    def _adapt(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Bring messages into the form that this model's template takes."""
        if not self._knows_system and messages[0]["role"] == "system":
            system, user, *later = messages
            messages = [{**user, "content": [*system["content"], *user["content"]]}, *later]
        if self._reads_images:
            return messages
        if any(part["type"] != "text" for message in messages for part in message["content"]):
            raise HedgeError(f"{self.pretrained} reads text only, but the task shows it an image")
        return [{**m, "content": "\n".join(part["text"] for part in m["content"])} for m in messages]

    def _check_template(self) -> bool:
        """Whether the chat template takes a system message."""
        if not getattr(self._processor, "chat_template", None):
            raise ConfigError(f"{self.pretrained} has no chat template; hedge_hf needs an instruction-tuned model")
        text = {"type": "text", "text": "?"} if self._reads_images else None
        content: Any = [text] if text else "?"
        turns = [{"role": "system", "content": content}, {"role": "user", "content": content}]
        try:
            self._processor.apply_chat_template(turns, add_generation_prompt=True, tokenize=False)
        except Exception as error:  # templates raise what they like; all of it means "no system role"
            logger.info(
                "{}: no system role in the chat template, merged into the user turn ({})", self.pretrained, error
            )
            return False
        return True


def _as_reread(logprobs: Sequence[float], margins: Sequence[float], ended: bool) -> Reread:
    """Return an answer's log-probabilities and margins, the last of them its end's."""
    *own, end = logprobs
    mean = sum(own) / len(own) if own else end
    # An answer that was cut off has not chosen its end.
    counted = margins if ended else margins[:-1]
    return Reread(rounded(mean), len(own), rounded(end) if ended else None, max(counted, default=0.0))


def _exact(forward: Callable[..., Any]) -> Callable[..., Any]:
    """A model's forward without TensorFloat-32 in cuDNN's convolutions, torch's default for float32.

    With it a log-probability depends on the batch by 5e-4, without by 7e-6.
    """

    @wraps(forward)
    def exact(*arguments: Any, **options: Any) -> Any:
        before = torch.backends.cudnn.allow_tf32
        torch.backends.cudnn.allow_tf32 = False
        try:
            return forward(*arguments, **options)
        finally:
            torch.backends.cudnn.allow_tf32 = before

    return exact


def _distinct_prompts(draws: Sequence[DrawRequest]) -> tuple[list[DrawRequest], list[int]]:
    """One draw a distinct prompt, and for every draw the position of its own. Clean draws of a document share one."""
    positions: dict[Hashable, int] = {}
    owners = [positions.setdefault(draw.prompt_key, len(positions)) for draw in draws]
    prompts = {owner: draw for draw, owner in reversed(list(zip(draws, owners, strict=True)))}
    return [prompts[owner] for owner in range(len(positions))], owners


def _distinct_messages(
    messages: list[list[dict[str, Any]]], owners: Sequence[int]
) -> tuple[list[list[dict[str, Any]]], list[int]]:
    """Return the messages that these draws ask, and for every draw the position of its own among them."""
    positions = {owner: i for i, owner in enumerate(dict.fromkeys(owners))}
    return [messages[owner] for owner in positions], [positions[owner] for owner in owners]


def _placeholder_tokens(config: Any) -> set[int]:
    """Tokens that stand for images and videos. A model must not say them: they are no text."""
    names = [f"{kind}_token_{end}" for kind in ("image", "video", "boi", "eoi") for end in ("id", "index")]
    names += ["vision_start_token_id", "vision_end_token_id"]
    return {value for name in names if isinstance(value := getattr(config, name, None), int)}


def _dtype(name: str) -> Any:
    names = ("float32", "bfloat16", "float16", "float64")
    return lookup("dtype", name, {"auto": "auto", **{known: getattr(torch, known) for known in names}})
