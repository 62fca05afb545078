"""hedge_openai: any server with OpenAI's chat API (vLLM, SGLang, OpenAI), with log-probabilities where it offers them.

See models/README.md for what is found out about a server, what a draw costs and what its log-probabilities mean.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice
from string import ascii_uppercase
from typing import Any, TypeVar

import torch
from tqdm import tqdm

from hedge_tasks.data.answers import Answer, Draw, Refused
from hedge_tasks.data.option_order import MOST, spellings
from hedge_tasks.errors import ConfigError
from hedge_tasks.io.options import address, count, number
from hedge_tasks.llm.chat import OPENAI, ChatClient, encoded
from hedge_tasks.llm.completion import Completion, Written, is_control
from hedge_tasks.llm.concurrency import Call, ask_each
from hedge_tasks.llm.event_loop import run
from hedge_tasks.llm.failures import RequestFailed, ServerRefuses
from hedge_tasks.llm.messages import to_openai
from hedge_tasks.llm.secrets import check_key
from hedge_tasks.models.base import (
    ChatAdapter,
    Conversations,
    PlainSettings,
    Prompted,
    Reading,
    by_object,
    forced_answer,
    refuse_unknown,
    whole_replies,
)
from hedge_tasks.models.first_token import ask_for_letter, by_letters, first_tokens
from hedge_tasks.perturb.workers import PictureWorkers
from hedge_tasks.sampling.forced import OPTIONS
from hedge_tasks.sampling.prefetch import CleanPictures
from hedge_tasks.sampling.requests import DrawRequest, seen_urls
from hedge_tasks.sampling.series import LONGEST, SEEDS, request_seed, series

Result = TypeVar("Result")

NEUTRAL: Mapping[str, Any] = {
    "top_p": 1.0,
    "top_k": -1,
    "min_p": 0.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
}
"""Pure sampling, sent with every draw: a server fills in what is missing from its own or the model's defaults. A
repetition penalty that the model documents is part of the model."""

_OPTIONAL = ("logprobs", "top_logprobs", "seed", *NEUTRAL)
"""Settings left out where the server refuses them. Those that the plan itself sets are never left out."""

_READ: Mapping[str, Any] = {"temperature": 0.0, "max_tokens": 1, "prompt_logprobs": 0}
"""A request that has a prompt read with the log-probabilities of its tokens, as vLLM's server understands it."""

_BEGUN: Mapping[str, Any] = {**_READ, "add_generation_prompt": False, "continue_final_message": True}
"""The same with the last turn as the beginning of the answer."""

_FINISHED: Mapping[str, Any] = {**_READ, "add_generation_prompt": False, "continue_final_message": False}
"""The same with the last turn as the whole answer, behind which the chat template writes its end."""

_FIRST: Mapping[str, Any] = {"temperature": 1.0, "max_tokens": 1, "logprobs": True, **NEUTRAL}
"""A request for the first token of an answer and the likeliest others. Some servers tell log-probabilities after the
temperature, so that it is 1."""

_MOST_LIKELIEST: tuple[int, ...] = (20, 5)
"""How many of them are asked for: what OpenAI tells at most, and what others do."""

_LONGEST_REASON = 300

_SEEDS_IN_A_ROW = ("vllm", "llamacpp")
"""Owners of models, by which engines give themselves away, that draw the i-th of n answers with the i-th seed."""


_NO_RETRY = threading.Event()
"""For requests whose failure is an answer: nothing is waited for."""
_NO_RETRY.set()


@dataclass(frozen=True)
class _Question:
    """One request to the server.

    Attributes:
        positions: Of the outcomes, each with a seed that is one more than that of the one before.
        name: What errors call it.
        messages: Makes the conversation as JSON in OpenAI's form.
        settings: Fields of the request besides model and messages.
        optional: Those of them that are left out where the server refuses them.
        keep_filtered: Whether what a content filter left is an answer.
        with_tokens: Whether the answer keeps its tokens.
        with_thoughts: Whether the answer's text is all that was written.
        patient: Whether it is made again where it failed.
        options: Offered answers whose share as first tokens is kept, for the forced passes about them.
    """

    positions: tuple[int, ...]
    name: str
    messages: Callable[[], Awaitable[bytes]]
    settings: Mapping[str, Any]
    optional: tuple[str, ...] = _OPTIONAL
    keep_filtered: bool = True
    with_tokens: bool = False
    with_thoughts: bool = False
    patient: bool = True
    options: tuple[str, ...] = ()

    def part(self, begin: int, end: int | None = None) -> _Question:
        """Return the request for some of its outcomes, by default for all from one on."""
        settings = {**self.settings, "seed": self.settings["seed"] + begin} if begin else self.settings
        return replace(self, positions=self.positions[begin:end], settings=settings)


class HedgeOpenAI(ChatAdapter):
    """Adapter for a model behind an OpenAI-compatible chat API.

    Args:
        model: Name under which the server knows the model.
        base_url: Such as `http://localhost:8000/v1`; by default the environment's OPENAI_BASE_URL, or OpenAI itself.
        api_key: By default the environment's OPENAI_API_KEY. Better there: lmms-eval prints the model's arguments.
        num_concurrent: Requests under way at any time.
        timeout: Seconds to wait for an answer.
        max_retries: How often a request that failed is made again before its draw counts as failed.
        retry_backoff_s: Pause before the first retry; every further one doubles, up to a minute.
        wait_for_server: Seconds for which a server that is away is waited for, in the beginning and later.
        draws_per_request: Most clean draws of a document that one request asks for (`n`). By default as many as there
            are where the server is vLLM or llama.cpp, whose seeds then are those of single requests, and else 1.

    Raises:
        ConfigError: An argument is unknown or makes no sense.
    """

    takes_threads = True

    def __init__(
        self,
        model: str = "",
        base_url: str | None = None,
        api_key: str | None = None,
        num_concurrent: int = 16,
        timeout: float = 300.0,
        max_retries: int = 6,
        retry_backoff_s: float = 1.0,
        wait_for_server: float = 1800.0,
        draws_per_request: int | None = None,
        batch_size: int | str = 1,
        max_batch_size: int | None = None,
        device: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        refuse_unknown(options, HedgeOpenAI)
        if not str(model).strip():
            raise ConfigError("the model argument 'model' is missing: the name under which the server knows the model")
        self.model = str(model).strip()
        self.base_url = address("base_url", base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI)
        self.num_concurrent = count("num_concurrent", num_concurrent, at_least=1)
        self.max_retries = count("max_retries", max_retries, at_least=0)
        self.draws_per_request = (
            None if draws_per_request is None else count("draws_per_request", draws_per_request, at_least=1)
        )
        self._pictures = PictureWorkers()
        self._has_n = True
        self._reasons: dict[str, str] = {}
        self._n_likeliest = _MOST_LIKELIEST
        self._first_options: dict[int, Written] = {}
        self._n_first: int | None = None
        self._client = ChatClient(
            self.model,
            self.base_url,
            check_key("api_key", str(api_key or os.environ.get("OPENAI_API_KEY") or "")),
            timeout=number("timeout", timeout, zero=False),
            max_retries=self.max_retries,
            backoff_s=number("retry_backoff_s", retry_backoff_s),
            wait_s=number("wait_for_server", wait_for_server),
        )
        self.device = torch.device("cpu")  # where lmms-eval gathers the results of several processes
        self._names: set[str] = set()
        self._spelled = Counter[bool]()
        self._noting = threading.Lock()

    @cached_property
    def answer_identity(self) -> str:
        """The model, not its address: its name, and what the server says is behind that name where this is another."""
        # Of a folder its name: the same weights lie elsewhere on another machine.
        roots = [root for model in self._listed if isinstance(root := model.get("root"), str)]
        behind = {name for root in roots if (name := _short(root)) != _short(self.model)}
        return "|".join([f"hedge_openai:{self.model}", *sorted(behind)])

    @cached_property
    def _listed(self) -> list[Mapping[str, Any]]:
        """The server's entry under the model's name, once it is there."""
        return [model for model in self._client.served() if model.get("id") == self.model]

    def sent_decoding(self, limits: Mapping[str, Any]) -> dict[str, Any]:
        """Settings sent besides the temperature, and not refused. Whether they are obeyed is another matter."""
        settings = _decoding(limits)
        refused = sorted(name for name in settings if name in self._client.refused)
        sent = {name: value for name, value in settings.items() if name not in refused}
        if refused or not _is_pure(limits):
            sent["rest"] = "the server's defaults"
        sent["repetition_penalty"] = "the server's"
        return sent | ({"refused": refused} if refused else {})

    def sampling_facts(self) -> dict[str, Any]:
        """Behaviour of the server that was found out.

        Returns:
            `refused`: settings and what the server said; `answered_as`: the models that it says it is, `other_models`:
            those of them that were not asked for; `answers_with_tokens` and `answers_of_other_tokens`: how many answers
            came with tokens, and how many of these with tokens that do not spell the answer.
        """
        return {
            "refused": {name: reason[:_LONGEST_REASON] for name, reason in self._client.refused.items()},
            "answered_as": sorted(map(_short, self._names)),
            "other_models": sorted(_short(name) for name in self._names if not self._is_asked(name)),
            "answers_with_tokens": self._spelled.total(),
            "answers_of_other_tokens": self._spelled[False],
        }

    def generate_draws(self, draws: Sequence[DrawRequest]) -> Iterator[list[tuple[int, Answer | str]]]:
        """One request a draw, with the draw's own temperature and seed; a string says why a draw failed.

        Where the server is known to draw the i-th of `n` answers with the i-th seed, one request asks for all clean
        draws of a document that are missing.

        Draws of the model's own distribution bring the likeliest first tokens along where forced passes are to read
        these (`reply_logprobs`): at temperature 1, with nothing left out, they are what a request of their own finds.

        A `Refused` one would fail again: the server takes others, but not this one.

        Raises:
            HedgeError: The server would refuse every request. What was finished is yielded before.
            DrawsFailed: The server cannot be reached any more.
        """
        groups = series(draws, self._n_in_one)
        firsts = [draws[group[0]] for group in groups]
        uses = Counter(draw.prompt_key for draw in firsts)
        documents = CleanPictures(keep=self.num_concurrent + 1)
        messages = {
            draw.prompt_key: _Encoded(partial(self._messages, draw, documents), uses[draw.prompt_key])
            for draw in reversed(firsts)
        }
        n_likeliest = self._n_told(firsts)
        questions = [
            _draw_question(draw, group, messages[draw.prompt_key], n_likeliest if _tells_first(draw) else None)
            for draw, group in zip(firsts, groups, strict=True)
        ]
        yield from self._answers(questions)

    def _n_told(self, draws: Sequence[DrawRequest]) -> int | None:
        """Number of likeliest first tokens that draws bring; 0 where none has to, or the server reads prompts.

        It is found once. A failure here says nothing of later passes: the server may refuse just this question.
        """
        if self._n_first is None and (
            conversations := [draw.messages() for draw in islice(filter(_tells_first, draws), 1)]
        ):
            reads = not self._untold(self._read_first, conversations)
            self._n_first = 0 if reads or self._untold(self._first_token, conversations) else self._n_likeliest[0]
            self._reasons.clear()
        return self._n_first

    def _answer_draws(
        self, conversations: Conversations, draws: Sequence[Draw], limit: int, schema: Mapping[str, Any] | None
    ) -> list[Answer | str]:
        pairs = zip(conversations, draws, strict=True)
        questions = [
            _conversation_question(i, _Encoded(partial(list, messages)), draw, limit, schema)
            for i, (messages, draw) in enumerate(pairs)
        ]
        return self._collect(questions)

    @classmethod
    def keeps_schemas(cls) -> bool:
        return True  # the server is asked to; one that refuses answers without

    def forced_logprobs(self, conversations: Conversations, texts: Sequence[str]) -> list[Answer | str]:
        """Return how likely each text is as the answer to its conversation, where the server reports it: vLLM's does.

        See `hedge_tasks.sampling.forced.ForcedModel`. The server reads the conversation with the text as the beginning
        of its last turn. One request a text, and a first one that shows whether the server does so at all.
        """

        async def force(i: int, stop: threading.Event) -> Answer | str:
            turns = await asyncio.to_thread(_turns, conversations[i])
            return forced_answer(await self._read_prompt(_answered(turns, texts[i]), _BEGUN, stop), texts[i])

        if why := self._untold(self._read_first, conversations):
            return [why for _ in texts]
        return self._ask_each(force, len(texts))

    def reply_logprobs(self, conversations: Conversations, texts: Sequence[str]) -> list[Answer | str]:
        """Return how likely each text is as the whole reply; see `hedge_tasks.sampling.forced.ForcedModel`.

        A server that tells the log-probabilities of a prompt (vLLM's) reads the reply as a finished turn, behind which
        the chat template writes the end: two requests a text, one a spelling, and one for each conversation object to
        see where the reply begins. Of any other server the 20 likeliest first tokens are read, one request a
        conversation: options of one token each. Where one of them is not there, letters stand for all, in two orders
        (`first_token.by_letters`): three requests. Such answers have the `finish` "length": their end is not counted.
        """
        if self._untold(self._read_first, conversations):
            if why := self._untold(self._first_token, conversations):
                return [why for _ in texts]
            return self._first_tokens(conversations, texts)
        return whole_replies(conversations, texts, self._read_all, lambda token: is_control(token.text))

    def _untold(self, ask: Callable[..., Coroutine[Any, Any, object]], conversations: Conversations) -> str:
        """Why the server tells something of no conversation, empty where it does. It is asked once, about the first."""
        name = ask.__name__
        if name not in self._reasons and conversations:
            told = run(ask(conversations[0]))
            self._reasons[name] = told if isinstance(told, str) else ""
        return self._reasons.get(name, "")

    async def _read_first(self, conversation: list[dict[str, Any]]) -> Reading:
        return await self._read_prompt(_turns(conversation), _READ)

    def _read_all(self, prompts: Sequence[Prompted]) -> list[Reading]:
        """Have conversations read, each perhaps with a finished reply behind it."""
        turns = {key: _turns(conversation) for key, conversation in by_object(prompts).items()}

        async def read(i: int, stop: threading.Event) -> Reading:
            conversation, reply = prompts[i]
            begun = turns[id(conversation)]
            prompt = (begun, _READ) if reply is None else (_answered(begun, reply), _FINISHED)
            return await self._read_prompt(*prompt, stop)

        return self._ask_each(read, len(prompts))

    def _first_tokens(self, conversations: Conversations, texts: Sequence[str]) -> list[Answer | str]:
        """Return how likely an answer begins with each option, where all of it is one token."""
        pairs = list(zip(conversations, texts, strict=True))
        groups = list(by_object(pairs).values())

        async def ask(i: int, stop: threading.Event) -> Mapping[str, Answer | str]:
            offered = [text for conversation, text in pairs if conversation is groups[i]]
            # "(A)" and "A." are other spellings of "A", and none of one token.
            other_forms = {form for option in offered for form in spellings(option)[1:]}
            options = [option for option in offered if option not in other_forms]
            likeliest = await self._first_token(groups[i], stop, offered)
            if isinstance(likeliest, str):
                return dict.fromkeys(offered, likeliest)
            answers = first_tokens(likeliest, options)
            are_letters = set(options) <= set(ascii_uppercase)
            if not are_letters and 1 < len(options) <= MOST and str in map(type, answers.values()):
                return await self._by_letters(groups[i], options, stop)
            return answers

        by_conversation = dict(zip(map(id, groups), self._ask_each(ask, len(groups)), strict=True))
        return [by_conversation[id(turns)].get(text, "a spelling of several tokens") for turns, text in pairs]

    async def _by_letters(
        self,
        conversation: list[dict[str, Any]],
        options: Sequence[str],
        stop: threading.Event,
    ) -> dict[str, Answer | str]:
        """Return the same by letters of the options, shown in two orders, or why that is not known."""
        orders = []
        for order in (options, options[::-1]):
            likeliest = await self._first_token(ask_for_letter(conversation, order), stop)
            if isinstance(likeliest, str):
                return dict.fromkeys(options, likeliest)
            orders.append(likeliest)
        return by_letters(orders, options)

    async def _first_token(
        self, conversation: list[dict[str, Any]], stop: threading.Event | None = None, offered: Iterable[str] = ()
    ) -> Written | str:
        """Tokens that a reply may begin with, with their log-probabilities; or why they are not known.

        Of a draw that brought those of just the `offered` options nothing is asked.
        """
        turns = await asyncio.to_thread(_turns, conversation)
        if known := self._first_options.pop(hash((turns, frozenset(offered))), None):
            return known
        for n in self._n_likeliest:  # what is refused here must not be left out of draws
            outcome = await self._ask_once(turns, {**_FIRST, "top_logprobs": n}, stop, NEUTRAL)
            if not isinstance(outcome, RequestFailed):
                self._n_likeliest = (n,)
                return _likeliest(outcome) or "the server tells no likeliest first tokens (top_logprobs)"
            if outcome.kind != "refused":
                break
        return f"the server does not tell how likely replies are ({outcome})"

    async def _ask_once(
        self, turns: bytes, settings: Mapping[str, Any], stop: threading.Event | None, optional: Iterable[str] = ()
    ) -> Completion | RequestFailed:
        """Ask for what a server need not be able to tell: that it refuses everything is no end of the run."""
        try:
            [outcome] = await self._client.ask_async(turns, settings, optional=tuple(optional), stop=stop)
        except ServerRefuses as error:  # of answers that are there by now, none is to be lost
            return RequestFailed(str(error), "refused")
        return outcome

    def _ask_each(self, call: Call[Result], n: int) -> list[Result]:
        """Replies of `n` calls, many of them under way at once."""
        with closing(ask_each(call, n, self.num_concurrent)) as batches:
            outcomes = dict(pair for batch in batches for pair in batch)
        return [outcomes[i] for i in range(n)]

    async def _read_prompt(
        self, turns: bytes, settings: Mapping[str, Any], stop: threading.Event | None = None
    ) -> Reading:
        """Have a prompt read."""
        outcome = await self._ask_once(turns, settings, stop)
        if isinstance(outcome, RequestFailed):
            return f"the server does not tell how likely given words are ({outcome})"
        return outcome.prompt or "the server returned no log-probabilities of the prompt (vLLM's prompt_logprobs)"

    def generate_until(self, requests: list[Any]) -> list[str]:
        """Greedy or sampled generation for tasks that are not ours; failed requests become lmms-eval's sentinel."""
        failure = f"[LMMS_EVAL_REQUEST_FAILED after {self.max_retries} retries] "
        questions = [self._request_question(i, request) for i, request in enumerate(requests)]
        outcomes = self._collect(questions, description="Generating")
        return [outcome.text if isinstance(outcome, Answer) else f"{failure}{outcome}" for outcome in outcomes]

    def _request_question(self, i: int, request: Any) -> _Question:
        _, _, settings, index, task, _ = request.args
        plain = PlainSettings.of(settings)
        limits = {"max_new_tokens": plain.max_new_tokens, "until": plain.until, **plain.top}
        messages = _Encoded(lambda: self.messages_of(request))
        # The task takes thoughts out itself, as its settings say.
        return _Question((i,), f"{task} {index}", messages, _settings(plain.temperature, limits), with_thoughts=True)

    def _messages(self, draw: DrawRequest, documents: CleanPictures) -> list[dict[str, Any]]:
        return draw.conversation(seen_urls(draw, documents.images(draw), self._pictures))

    def _collect(self, questions: Sequence[_Question], description: str | None = None) -> list[Answer | str]:
        """Return the outcomes in the order of their questions."""
        outcomes: dict[int, Answer | str] = {}
        hidden = description is None or self.rank != 0
        with tqdm(total=len(questions), desc=description, disable=hidden) as bar:
            for batch in self._answers(questions):
                outcomes.update(batch)
                bar.update(len(batch))
        return [outcomes[i] for i in range(len(questions))]

    def _answers(self, questions: Sequence[_Question]) -> Iterator[list[tuple[int, Answer | str]]]:
        async def call(i: int, stop: threading.Event) -> list[Answer | RequestFailed]:
            return await self._answer_all(questions[i], await questions[i].messages(), stop)

        settings: dict[str, Any] = {"who": self.base_url, "unreachable": _unreachable}
        with closing(ask_each(call, len(questions), self.num_concurrent, **settings)) as batches:
            for batch in batches:
                pairs = [pair for i, outcomes in batch for pair in zip(questions[i].positions, outcomes, strict=True)]
                yield [(position, _outcome(outcome)) for position, outcome in pairs]

    @cached_property
    def _n_in_one(self) -> int:
        """Draws that one request asks for."""
        if self.draws_per_request is not None:
            return self.draws_per_request
        has_seeds_in_a_row = any(model.get("owned_by") in _SEEDS_IN_A_ROW for model in self._listed)
        return LONGEST if has_seeds_in_a_row else 1

    async def _answer_all(
        self, question: _Question, messages: bytes, stop: threading.Event
    ) -> list[Answer | RequestFailed]:
        """The outcomes of a request for several draws; those that the server does not send are asked for again."""
        n, stop = len(question.positions), stop if question.patient else _NO_RETRY
        ask = partial(self._client.ask_async, messages, optional=question.optional, stop=stop)
        if n <= 1 or not self._has_n:
            replies = [await ask(question.part(i, i + 1).settings) for i in range(n)]
            return [self._read(question, messages, reply) for [reply] in replies]
        outcome = await ask(question.settings, n)
        if len(outcome) == 1:
            self._has_n = False
            self._client.say_once("n", f"{self.base_url} knows of no n: every draw is a request of its own", "INFO")
        answers = [self._read(question, messages, completion) for completion in outcome]
        return [*answers, *(await self._answer_all(question.part(len(answers)), messages, stop))]

    def _read(
        self, question: _Question, messages: bytes, outcome: Completion | RequestFailed
    ) -> Answer | RequestFailed:
        """Return the answer in what the server sent, or why it is none."""
        if isinstance(outcome, RequestFailed):
            if outcome.kind == "refused":
                # Without the address: the reason stays with the document, in files that are passed on.
                return RequestFailed(f"the server refuses the request for {question.name!r} ({outcome})", "refused")
            return outcome
        self._note(outcome)
        if question.options and outcome.answer.thought is None and (likeliest := _likeliest(outcome)):
            options = tuple(pair for pair in likeliest if pair[0].strip() in question.options)
            self._first_options.setdefault(hash((messages, frozenset(question.options))), options)
        if outcome.answer.finish == "filtered" and not question.keep_filtered:
            return RequestFailed("a content filter stopped the answer (on_filtered: record keeps it)", "refused")
        answer = outcome.answer if question.with_tokens else replace(outcome.answer, tokens=None, alternatives=None)
        expects_logprobs = "logprobs" in question.settings and "logprobs" not in self._client.refused
        if expects_logprobs and answer.mean_logprob is None:
            why = f" ({answer.no_logprob})" if answer.no_logprob else ""
            self._client.say_once(
                f"no log-probabilities {answer.no_logprob}",
                f"{self.base_url} did not return usable log-probabilities for {question.name!r}{why}; "
                "answers without them are kept, and weigh the same",
            )
        return replace(answer, text=outcome.text) if question.with_thoughts else answer

    def _note(self, completion: Completion) -> None:
        """Count what its tokens spell, and say where the server answers as another model than the one asked for."""
        if completion.spelled is not None:
            with self._noting:
                self._spelled[completion.spelled] += 1
        if (named := completion.model) is not None:
            self._names.add(named)
            if not self._is_asked(named):
                other = f"{self.base_url}: model {self.model!r} was asked for, and {named!r} answered"
                self._client.say_once("another model", other)

    def _is_asked(self, named: str) -> bool:
        """Whether a name is that of the model asked for, with or without a folder, a date or a revision."""
        return _short(self.model) in named or _short(named) in self.model


class _Encoded:
    """A conversation in OpenAI's form as JSON, made once for all draws that are asked the same, and let go with the
    last one. It lives on the event loop.

    Encoding a picture takes longer than all else that a client does.

    Args:
        make: In lmms-eval's form; called in a thread.
        uses: Number of times that it is asked for.
    """

    def __init__(self, make: Callable[[], Sequence[Mapping[str, Any]]], uses: int = 1) -> None:
        self._make, self._uses = make, uses
        self._task: asyncio.Task[bytes] | None = None

    async def __call__(self) -> bytes:
        task = self._task = self._task or asyncio.create_task(asyncio.to_thread(lambda: _turns(self._make())))
        self._uses -= 1
        if self._uses <= 0:
            self._task = None
        return await asyncio.shield(task)  # others may wait for it, too


def _turns(conversation: Sequence[Mapping[str, Any]]) -> bytes:
    """Return a conversation of lmms-eval's form in OpenAI's, as JSON."""
    return encoded(to_openai(conversation))


def _answered(turns: bytes, text: str) -> bytes:
    """Return a conversation in OpenAI's form, as JSON, with a text as its last turn."""
    return b"%s,%s]" % (turns[:-1], encoded({"role": "assistant", "content": text}))


def _outcome(outcome: Answer | RequestFailed) -> Answer | str:
    if isinstance(outcome, Answer):
        return outcome
    return Refused(outcome) if outcome.kind in ("refused", "cut") else str(outcome)


def _short(name: str) -> str:
    """Return the last part of a path or a hub id."""
    return name.rstrip("/").rpartition("/")[2]


def _conversation_question(
    i: int, messages: _Encoded, draw: Draw, max_new_tokens: int, schema: Mapping[str, Any] | None
) -> _Question:
    settings = _settings(draw.temperature, {"max_new_tokens": max_new_tokens}, draw.seed)
    if schema is not None:
        settings["response_format"] = _json_format("reply", schema)
    optional = (*_OPTIONAL, "response_format")
    return _Question((i,), f"conversation {draw.index}", messages, settings, optional)


def _tells_first(draw: DrawRequest) -> bool:
    """Whether a draw's first token is of the distribution that a forced pass over the offered answers is to read."""
    request, limits, condition = draw.request, draw.request.plan.limits(), draw.draw.condition
    wanted = OPTIONS if (condition, draw.draw.index) == ("clean", 0) else condition
    is_own = draw.draw.temperature == 1 and _is_pure(limits) and NEUTRAL.keys().isdisjoint(limits)
    return wanted in request.forced and is_own and not request.choices


def _likeliest(completion: Completion) -> Written:
    """Return the first token with those in its place; nothing where these are not told."""
    tokens, alternatives = completion.answer.tokens, completion.answer.alternatives
    return (*tokens[:1], *alternatives[0]) if tokens and alternatives and alternatives[0] else ()


def _draw_question(
    draw: DrawRequest, positions: Sequence[int], messages: _Encoded, n_likeliest: int | None = None
) -> _Question:
    """Return the request for a draw, and for those that go with it.

    Args:
        draw: the first one.
        positions: of all of them.
        n_likeliest: number of likeliest tokens that it brings for forced passes.
    """
    request = draw.request
    limits = request.plan.limits()
    settings = _settings(draw.draw.temperature, limits, request_seed(draw))
    if not draw.seeded:
        del settings["seed"]
    if request.choices:
        settings["response_format"] = _choice_format(request.choices)
    # A draw without the top_p that its plan asks for would be a draw of something else.
    optional = tuple(name for name in _OPTIONAL if name not in limits)
    keep_filtered = request.plan.on_filtered == "record"
    if n_tokens := draw.alternatives or n_likeliest:
        settings["top_logprobs"] = n_tokens
    with_tokens, options = draw.alternatives is not None, request.options if n_likeliest else ()
    fields = (tuple(positions), request.id, messages, settings, optional, keep_filtered, with_tokens)
    return _Question(*fields, patient=draw.patient, options=options)


def _choice_format(choices: Sequence[str]) -> dict[str, Any]:
    """The structured output that OpenAI, vLLM, SGLang and llama.cpp understand alike: a JSON object with the answer."""
    schema = {
        "type": "object",
        "properties": {"answer": {"type": "string", "enum": list(choices)}},
        "required": ["answer"],
        "additionalProperties": False,
    }
    return _json_format("answer", schema)


def _json_format(name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": name, "strict": True, "schema": dict(schema)}}


def _settings(temperature: float, limits: Mapping[str, Any], seed: int | None = None) -> dict[str, Any]:
    """Return the fields of a request.

    Args:
        temperature: 0 is greedy.
        limits: `max_new_tokens`, and if set `top_p`, `top_k`, `until`, as `SamplingPlan.limits()` has them.
        seed: Of a draw; None for a request that is none.
    """
    settings: dict[str, Any] = {"temperature": temperature, "max_tokens": limits["max_new_tokens"]}
    if limits.get("until"):
        settings["stop"] = list(limits["until"])
    if seed is None:
        return settings | {name: limits[name] for name in ("top_p",) if name in limits}
    return {**settings, **_decoding(limits), "seed": seed % SEEDS, "logprobs": True}


def _decoding(limits: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that a request's `decoding` stands for, with what the plan sets itself on top."""
    own = {name: limits[name] for name in NEUTRAL if name in limits}
    return {**NEUTRAL, **own} if _is_pure(limits) else own


def _is_pure(limits: Mapping[str, Any]) -> bool:
    return limits.get("decoding") != "model"


def _unreachable(outcomes: Sequence[Answer | RequestFailed]) -> object:
    """Why nobody answered a request; all of its draws fail alike."""
    return getattr(outcomes[0], "unreachable", False) and outcomes[0]
