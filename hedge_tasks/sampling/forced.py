"""Forced passes: how likely a model finds given words.

One reading of a prompt with the words at its end, and no draw. They are asked for only where a detector that needs them
is named, by adapters that have `forced_logprobs`, and stored as draws are:

- `blank`: the baseline answer once more, after a grey picture in place of the real one;
- `reworded`: the baseline answer once more, to the same question behind another introduction;
- `true`, `false`: the words "True" and "False", after the question whether the baseline answer is true;
- `options`: each answer that the question offers as the *whole* reply, its end included: the model's distribution over
  the offered answers, which no reading of sampled replies has to guess. One pass an option, named `option:TEXT`; a
  letter is the sum over what spells it (`data.option_order.spellings`: "A", "(A)", "A."), with a pass for each;
- `reversed`: the same where lettered options are shown in the other order, against a liking for places. One pass an
  option, named `reversed:LETTER` by the letter that the option has in the given order;
- `noisy`: the same on the perturbed picture of each noisy draw, named `noisy:NUMBER:TEXT`. One pass an option and
  picture, beside the draws and never in one number with them;
- `self_reading`: the same as the final answer behind the model's own baseline reply, named `read:TEXT`, where words
  leave open what the reply says. A question without options of its own has "Yes" and "No".
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import Any, Protocol

from loguru import logger
from tqdm import tqdm

from hedge_tasks.data.answers import NOISY, OPTION, READ, REVERSED, Answer
from hedge_tasks.data.option_order import reversed_letters, reversed_question, spellings
from hedge_tasks.errors import check_names
from hedge_tasks.perturb.base import Wording, build_noise
from hedge_tasks.sampling.conversations import Conversation
from hedge_tasks.sampling.definition import Definition
from hedge_tasks.sampling.failures import LONGEST_REASON
from hedge_tasks.sampling.image_check import blank_images
from hedge_tasks.sampling.jobs import Job
from hedge_tasks.sampling.prompts import Prompt, load_prompt
from hedge_tasks.sampling.requests import DrawRequest, SampleRequest
from hedge_tasks.sampling.segments import home
from hedge_tasks.sampling.store import FinishedDraw

PASSES: Mapping[str, tuple[str, ...]] = {
    "forced_blank": ("blank",),
    "forced_reworded": ("reworded",),
    "forced_truth": ("true", "false"),
    "forced_options": ("options",),
    "forced_reversed": ("options", "reversed"),
    "forced_noisy": ("options", "noisy"),
}
"""Evidence that a detector may need -> the passes that give it."""

SELF_READING = "self_reading"
"""Asks for one more of each, behind the model's own reply."""

NAMES = (*dict.fromkeys(name for names in PASSES.values() for name in names), SELF_READING)

OPTIONS = "options"
"""Asks for one pass an offered answer."""

_REVERSED = "reversed"
"""Asks for one more of each, in the other order."""

_NOISY = "noisy"
"""Asks for one an offered answer and noisy draw."""

_PREFIXES = {OPTION: OPTIONS, REVERSED: _REVERSED, READ: SELF_READING, NOISY: _NOISY}
"""Beginnings of the names of passes about offered answers -> what asks for them."""

CONDITION = "forced"
"""Of these records in a store, for people with `grep`."""

_REWORDING = "neutral_wording"
_YES_NO = ("Yes", "No")
_WORDS = {"true": "True", "false": "False"}
_CHUNK = 64


class ForcedModel(Protocol):
    """Methods that an adapter must offer to make forced passes."""

    def forced_logprobs(
        self, conversations: Sequence[list[dict[str, Any]]], texts: Sequence[str]
    ) -> list[Answer | str]:
        """How likely each text is as the answer to its conversation.

        Args:
            conversations: As `answer_conversations` takes them.
            texts: One a conversation, not empty.

        Returns:
            In their order answers with the text, its mean log-probability at temperature 1 and its number of tokens; a
            string in place of one says why there is none.
        """
        ...

    def reply_logprobs(self, conversations: Sequence[list[dict[str, Any]]], texts: Sequence[str]) -> list[Answer | str]:
        """As `forced_logprobs`, for each text as the whole reply, its end included.

        Spellings that differ in a leading blank are summed. The end is the last token that counts.
        """
        ...


@dataclass(frozen=True)
class ForcedPass:
    """One text after one prompt.

    Attributes:
        name: one of `NAMES`, or `OPTION`, `REVERSED`, `READ` or `NOISY` with the option behind it.
        draw: a draw whose conversation is read.
        text: that the model is made to say.
    """

    name: str
    draw: DrawRequest
    text: str

    @property
    def forms(self) -> tuple[str, ...]:
        """The texts that are read: of a whole reply every spelling."""
        return spellings(self.text) if self.whole else (self.text,)

    @property
    def whole(self) -> bool:
        """Whether the text is the whole reply, so that its end counts."""
        return self.name != _kind(self.name)


_Pass = tuple[ForcedPass, Job]


def passes_needed(needs: Sequence[str]) -> tuple[str, ...]:
    """Names of the passes that give what detectors need."""
    return tuple(dict.fromkeys(name for need, names in PASSES.items() if need in needs for name in names))


def forced_keys(
    definition: Definition,
    document: str,
    question: str,
    baseline: Answer,
    options: Sequence[str] = (),
    n_noisy: int = 0,
) -> dict[str, str]:
    """Name -> key in the store of every pass about a document that a definition may have.

    Args:
        document: key of its content.
        baseline: the answer that the passes are about, part of what defines them.
        options: that the question offers.
        n_noisy: noisy draws.
    """
    key = partial(definition.forced_key, document, question)
    offered, letters = options or _YES_NO, _reversed_letters(question, options)
    # The document's key stands for the question in the given order only.
    other_order = {"name": _REVERSED, "asked": reversed_question(question) or ""}
    behind = {"name": SELF_READING, "baseline": baseline.text, "offered": ", ".join(offered)}
    keys = {f"{OPTION}{option}": key({"name": OPTIONS, **_option_fields(option)}, None) for option in options}
    keys |= {f"{REVERSED}{o}": key({**other_order, **_option_fields(letter)}, None) for o, letter in letters.items()}
    keys |= {f"{READ}{option}": key({**behind, **_option_fields(option)}, _final_prompt()) for option in offered}
    for draw in definition.plan(1, n_noisy).draws(document) if options and n_noisy else ():
        if draw.condition == "noisy":
            of_draw = {"name": _NOISY, "draw": definition.key(document, question, draw)}
            for option in options:
                keys[f"{NOISY}{draw.index}:{option}"] = key({**of_draw, **_option_fields(option)}, None)
    for name in (name for name in NAMES if name not in _PREFIXES.values()):
        prompt = _truth_prompt() if name in _WORDS else None
        fields = {"name": name, "baseline": baseline.text, "said": _forced_text(name, baseline)}
        if name == "reworded":
            fields["asked"] = _reworded_question(question, document)
        keys[name] = key(fields, prompt)
    return keys


def force(model: Any, jobs: Sequence[Job]) -> None:
    """Make the passes that the jobs' requests ask for, and store them.

    What cannot be told is left out, with a warning, and in the report of the task's first definition: detectors that
    need it then have no number, and say why.

    Args:
        jobs: of documents that are answered.
    """
    asks = {whole: getattr(model, name, None) for whole, name in _ASKS.items()}
    passes = {key: (pass_, job) for job in jobs for key, pass_ in _passes(job).items()}
    pending = {key: (pass_, job) for key, (pass_, job) in passes.items() if job.store.get(key) is None}
    unable = f"{type(model).__name__} does not tell how likely given words are"
    untold = {key: unable for key, (pass_, _) in pending.items() if asks[pass_.whole] is None}
    possible = {key: of_job for key, of_job in pending.items() if key not in untold}
    hidden = not possible or getattr(model, "rank", 0) != 0
    with tqdm(total=len(possible), desc="Forced passes", unit="pass", disable=hidden) as bar:
        for part in _chunks(possible):
            untold |= _force_some(asks, part)
            bar.update(len(part))
    for task, job in {job.definition.task: job for job in reversed(jobs)}.items():
        _tell(job, [untold.get(key) for key, (_, its_job) in passes.items() if its_job.definition.task == task])


def _tell(job: Job, reasons: Sequence[str | None]) -> None:
    """Log how many of a task's passes gave nothing, and why the first did, and keep it with a job's definition."""
    untold = [reason for reason in reasons if reason is not None]
    text = f"{len(untold)} of {len(reasons)} gave nothing: {untold[0]}"[:LONGEST_REASON] if untold else ""
    before = job.store.reports.get(job.definition.id, {})
    if text != before.get("untold", ""):
        logger.warning("{}: forced passes: {}", job.definition.task, text or "what was missing is there")
        job.store.put_report(job.definition.id, {**before, "untold": text})


def forced_answers(job: Job) -> dict[str, Answer]:
    """By name the passes about a job's document that were asked for and made."""
    return complete_passes({name: job.store.get(key) for name, key in _keys(job).items()})


def complete_passes(answers: Mapping[str, Answer | None]) -> dict[str, Answer]:
    """The passes that were made, by name, of those that were asked for.

    Options only where there are all of them, told in the same way (whole replies, or first tokens): a distribution over
    some of the options is another one.
    """
    complete = {name: answer for name, answer in answers.items() if answer is not None}
    for prefix in _PREFIXES:
        offered = [answer for name, answer in answers.items() if name.startswith(prefix)]
        if len({answer and answer.finish == "length" for answer in offered}) > 1:
            complete = {name: answer for name, answer in complete.items() if not name.startswith(prefix)}
    return complete


def _reversed_letters(question: str, options: Sequence[str]) -> dict[str, str]:
    """Option -> its letter in the other order; empty where the options offered are not the question's letters."""
    letters = reversed_letters(question)
    return letters if set(letters) == set(options) else {}


def _kind(name: str) -> str:
    """The name that a pass is asked for by."""
    return next((kind for prefix, kind in _PREFIXES.items() if name.startswith(prefix)), name)


def _chunks(passes: Mapping[str, _Pass]) -> Iterator[dict[str, _Pass]]:
    """About `_CHUNK` passes each; those of a document stay together, as its options are read together."""
    part: dict[str, _Pass] = {}
    for _, group in groupby(passes.items(), key=lambda item: id(item[1][1])):
        part |= dict(group)
        if len(part) >= _CHUNK:
            yield part
            part = {}
    if part:
        yield part


_ASKS = {False: "forced_logprobs", True: "reply_logprobs"}


def _force_some(asks: Mapping[bool, Any], passes: Mapping[str, _Pass]) -> dict[str, str]:
    """Make and store some passes. Returns by key why those failed that did."""
    outcomes: dict[str, Answer | str] = {
        key: Answer("", 0.0, 0) for key, (pass_, _) in passes.items() if not pass_.text and not pass_.whole
    }
    conversations = _conversations({key: pass_ for key, (pass_, _) in passes.items() if key not in outcomes})
    for whole, ask in asks.items():
        forms = [(key, form) for key in conversations if passes[key][0].whole == whole for form in passes[key][0].forms]
        answers = ask([conversations[key] for key, _ in forms], [form for _, form in forms]) if forms else []
        by_key: dict[str, list[Answer | str]] = {}
        for (key, _), answer in zip(forms, answers, strict=True):
            by_key.setdefault(key, []).append(answer)
        outcomes |= {key: _sum_of_forms(of_key) for key, of_key in by_key.items()}
    for key, answer in outcomes.items():
        if isinstance(answer, Answer):
            job = passes[key][1]
            job.store.put([FinishedDraw(key, answer, job.request.id, CONDITION, 0, home(job.request.key))])
    return {key: answer for key, answer in outcomes.items() if isinstance(answer, str)}


def _sum_of_forms(outcomes: Sequence[Answer | str]) -> Answer | str:
    """One text in several forms, the first its own: the sum of their probabilities, as a mean over its own tokens.

    The first form alone where no more than first tokens are told: the others begin with a bracket, or as it does.
    """
    own = outcomes[0]
    if isinstance(own, str) or own.finish == "length" or len(outcomes) == 1:
        return own
    answers = [a for a in outcomes if isinstance(a, Answer)]
    total = [a.mean_logprob * a.n_tokens for a in answers if a.mean_logprob is not None and a.n_tokens]
    top = max(total, default=-math.inf)
    if top == -math.inf or not own.n_tokens:
        return own
    together = top + math.log(math.fsum(math.exp(value - top) for value in total))
    return replace(own, mean_logprob=min(together / own.n_tokens, 0.0))


def _option_fields(option: str) -> dict[str, Any]:
    """The offered answer as part of what defines a pass, with its forms where it has several."""
    forms = spellings(option)
    return {"said": option} if len(forms) == 1 else {"said": option, "written": list(forms)}


def _conversations(passes: Mapping[str, ForcedPass]) -> dict[str, list[dict[str, Any]]]:
    """By key the conversation of each pass; one object for all options of a question, so that it is read once."""
    draws = {id(pass_.draw): pass_.draw for pass_ in passes.values()}
    shared = {number: draw.messages() for number, draw in draws.items()}
    # Without a picture there is nothing to blank out, and nothing to be learnt.
    turns = {key: shared[id(pass_.draw)] for key, pass_ in passes.items()}
    return {key: t for key, t in turns.items() if passes[key].name != "blank" or shows_picture(t)}


def _passes(job: Job) -> dict[str, ForcedPass]:
    """By key the passes that a job's request asks for."""
    keys = _keys(job)
    draw, baseline = _baseline(job)
    if _in_other_order(job.request) == job.request:
        keys = {name: key for name, key in keys.items() if _kind(name) != _REVERSED}
    # One object for all options of a question and picture, which is read once.
    draws = {kind: _draw_to_read(kind, draw, baseline) for kind in dict.fromkeys(map(_kind, keys)) if kind != _NOISY}
    noisy = {str(d.draw.index): d for d in job.draws.values() if d.draw.condition == "noisy"}
    letters = _reversed_letters(job.request.question, job.request.options)
    return {
        key: ForcedPass(
            name,
            noisy[name.removeprefix(NOISY).partition(":")[0]] if name.startswith(NOISY) else draws[_kind(name)],
            _forced_text(name, baseline, letters),
        )
        for name, key in keys.items()
    }


def _keys(job: Job) -> dict[str, str]:
    """By name the keys of the passes that a job's request asks for."""
    request = job.request
    check_names("forced pass", request.forced, NAMES)
    wanted = set(request.forced)
    if SELF_READING in wanted and (request.unsettled is None or not request.unsettled(job.answer_set())):
        wanted.remove(SELF_READING)
    n_noisy = request.plan.noisy_count if _NOISY in wanted else 0
    arguments = (request.key, request.question, _baseline(job)[1], request.options, n_noisy)
    keys = forced_keys(job.definition, *arguments) if wanted else {}
    return {name: key for name, key in keys.items() if _kind(name) in wanted}


def _baseline(job: Job) -> tuple[DrawRequest, Answer]:
    key, draw = next(iter(job.draws.items()))  # `SamplingPlan.draws`: baseline first
    return draw, job.store[key]


def _draw_to_read(name: str, draw: DrawRequest, baseline: Answer) -> DrawRequest:
    """Return the draw whose conversation the passes of a kind read."""
    request = draw.request
    if name == OPTIONS:
        return draw
    if name == SELF_READING:
        then = _final_prompt().user_text(Wording(", ".join(request.options or _YES_NO)))
        return _AfterReply(request, draw.draw, draw.document, draw.row, reply=baseline.text, then=then)
    if name == _REVERSED:
        return replace(draw, request=_in_other_order(request))
    if name == "blank":
        return replace(draw, request=replace(request, load_images=blank_images(request)))
    if name == "reworded":
        reworded = _reworded_question(request.question, request.key)
        conversation = request.conversation and request.conversation.reworded(request.question, reworded)
        return replace(draw, request=replace(request, question=reworded, conversation=conversation))
    question = f"{request.context}\n{request.question}" if request.context else request.question
    truth_request = replace(request, prompt=_truth_prompt(), question=question, context=baseline.text)
    return replace(draw, request=truth_request)


def _in_other_order(request: SampleRequest) -> SampleRequest:
    """The request with its lettered options in the other order; as it is where they are not one text of the user's."""
    question = reversed_question(request.question)
    if question is None:
        return request
    if request.conversation is None:
        return replace(request, question=question)
    with_options = [
        (i, j, reversed_text)
        for i, turn in enumerate(request.conversation.turns)
        for j, part in enumerate(turn["content"])
        if part["type"] == "text" and (reversed_text := reversed_question(part["text"])) is not None
    ]
    if len(with_options) != 1 or reversed_letters(request.question) != reversed_letters(with_options[0][2]):
        return request
    i, j, reversed_text = with_options[0]
    turns = [dict(turn) for turn in request.conversation.turns]
    turns[i]["content"] = [{**p, "text": reversed_text} if n == j else p for n, p in enumerate(turns[i]["content"])]
    return replace(request, question=question, conversation=Conversation(tuple(turns)))


def _forced_text(name: str, baseline: Answer, letters: Mapping[str, str] | None = None) -> str:
    """The words that are forced.

    Args:
        letters: of the options in the other order.
    """
    if name.startswith((OPTION, READ)):
        return name.partition(":")[2]
    if name.startswith(NOISY):
        return name.removeprefix(NOISY).partition(":")[2]
    if name.startswith(REVERSED):
        return (letters or {})[name.removeprefix(REVERSED)]
    return _WORDS.get(name, baseline.text)


def _reworded_question(question: str, document: str) -> str:
    """The question behind an introduction that changes nothing, which the document alone decides."""
    seed = int.from_bytes(hashlib.sha256(document.encode()).digest()[:8], "big")
    return build_noise(_REWORDING).perturb_wording(Wording(question), seed=seed).question


@dataclass(frozen=True, kw_only=True)
class _AfterReply(DrawRequest):
    """A draw with the reply to it and a further turn of the user's."""

    reply: str
    then: str

    def conversation(self, images: list[Any]) -> list[dict[str, Any]]:
        turns = [("assistant", self.reply), ("user", self.then)]
        further_turns = [{"role": role, "content": [{"type": "text", "text": text}]} for role, text in turns]
        return [*super().conversation(images), *further_turns]


def _final_prompt() -> Prompt:
    return load_prompt("forced/final_answer")


def _truth_prompt() -> Prompt:
    return load_prompt("forced/p_true")


def shows_picture(conversation: Sequence[Mapping[str, Any]]) -> bool:
    """Whether there is a picture in a conversation of lmms-eval's form."""
    return any(part["type"] == "image" for turn in conversation for part in turn["content"])
