"""The answer's tokens and the thought's: one function for all adapters, and the same answer in each of them."""

from __future__ import annotations

from itertools import pairwise
from statistics import mean
from types import SimpleNamespace
from typing import Any

import pytest
from finished_runs import measure_health
from hypothesis import given, settings
from hypothesis import strategies as st
from openai_server import completion
from thinking_replies import REPLIES, ThinkingReply

from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.data.thoughts import (
    NO_BOUNDARY,
    NO_END,
    NO_TOKENS,
    Parts,
    Token,
    answer_of,
    has_thought,
    split_tokens,
    texts_of,
)
from hedge_tasks.llm.completion import Completion, read_choices
from hedge_tasks.runs.health import CUT

TEXT = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\ufffd\x00"), max_size=12)
MARKS = st.sampled_from(
    [("<think>", "</think>"), ("[THINK]", "[/THINK]"), ("◁think▷", "◁/think▷"), ("", "</think>"), ("", "")]
)


def _cut(data: st.DataObject, text: str) -> list[Token]:
    """A text in tokens that are cut anywhere, within a character, too."""
    content = text.encode()
    places = sorted(data.draw(st.sets(st.integers(1, max(1, len(content) - 1)), max_size=6)))
    edges = [0, *(place for place in places if place < len(content)), len(content)]
    pieces = [content[a:b] for a, b in pairwise(edges)]
    return [Token(piece, data.draw(st.floats(-20, 0))) for piece in pieces]


@settings(max_examples=20)
@given(st.data(), MARKS, TEXT, TEXT.filter(lambda text: bool(text.strip())))
def test_the_answers_tokens_spell_the_answer_and_all_tokens_are_in_one_part(
    data: st.DataObject, marks: tuple[str, str], thought: str, answer: str
) -> None:
    if has_thought(answer) or has_thought(thought):
        return
    before = f"{marks[0]}{thought}{marks[1]}" if marks[1] else ""
    tokens = [*(_cut(data, before) if before else []), *_cut(data, answer), Token(b"</s>", -1.0, control=True)]
    parts = split_tokens(tokens, answer.strip())
    assert isinstance(parts, Parts)
    assert (*parts.thought, *parts.answer) == tuple(tokens)
    assert "".join(texts_of(parts.counted)).strip() == answer.strip()
    assert split_tokens(tokens) == parts
    if not before:
        assert parts.thought == ()


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        (["<think>", "a", "</think>", "\n\n", "left"], (4, 1)),
        (["<think>", "a", "</", "think", ">", "\n", "left"], (6, 1)),
        (["<think>", "a", "</think>\n", "left"], (3, 1)),
        (["<think>", "</think>", "<think>", "b", "</think>", "left"], (5, 1)),
        (["<think>", "a", "</think", ">left"], NO_BOUNDARY),
        (["<think>", "a"], NO_END),
        (["a", "</think>", "b", "<think>", "c"], NO_END),
        (["<think>", "a", "</think>", "\n"], NO_TOKENS),
        (["le", "ft"], (0, 2)),
    ],
)
def test_where_the_answer_begins(pieces: list[str], expected: Any) -> None:
    found = split_tokens([Token(piece.encode(), -1.0) for piece in pieces])
    assert (found if isinstance(found, str) else (len(found.thought), len(found.answer))) == expected


# --- the adapters -----------------------------------------------------------------------------------------------------


class Vocabulary:
    """A tokenizer for one reply."""

    def __init__(self, reply: ThinkingReply) -> None:
        self.texts = [text for text, _ in reply.tokens]
        special = (*reply.control, reply.end)
        self.all_special_ids = [i for i, text in enumerate(self.texts) if text in special]
        self.eos_token_id = len(self.texts) - 1

    def decode(self, ids: list[int], *, skip_special_tokens: bool) -> str:
        kept = (i for i in ids if not (skip_special_tokens and i in self.all_special_ids))
        return "".join(self.texts[i] for i in kept)


def in_hf(reply: ThinkingReply, *, cut: int | None = None, until: tuple[str, ...] = ()) -> Answer:
    from hedge_tasks.models.token_sampling import AnswerReader

    reader = AnswerReader(Vocabulary(reply), SimpleNamespace(eos_token_id=None), until, True)  # type: ignore[arg-type]
    logprobs = [logprob for _, logprob in reply.tokens][:cut]
    places = range(len(logprobs))
    logprobs = logprobs[: next((i + 1 for i in places if reader.is_finished(range(i + 1))), len(logprobs))]
    return reader.read(list(range(len(logprobs))), logprobs, [[] for _ in logprobs])


def in_vllm(reply: ThinkingReply, *, cut: int | None = None, until: tuple[str, ...] = ()) -> Answer:
    from hedge_tasks.models.hedge_vllm import HedgeVLLM

    vocabulary = Vocabulary(reply)
    model = HedgeVLLM.__new__(HedgeVLLM)
    model._tokenizer, model._defaults, model._thinks = vocabulary, SimpleNamespace(eos_token_id=None), True
    tokens = reply.tokens[:cut]
    table = [{i: SimpleNamespace(logprob=p, decoded_token=text)} for i, (text, p) in enumerate(tokens)]
    ids = list(range(len(tokens)))
    text = vocabulary.decode(ids, skip_special_tokens=True)
    finish = "stop" if cut is None else "length"
    one = SimpleNamespace(text=text, token_ids=ids, logprobs=table, finish_reason=finish)
    answer = model._read(one, 0, until)
    assert isinstance(answer, Answer)
    return answer


def in_openai(reply: ThinkingReply, *, cut: int | None = None, until: tuple[str, ...] = ()) -> Answer:
    tokens = reply.tokens[:cut]
    vocabulary = Vocabulary(reply)
    text = vocabulary.decode(list(range(len(tokens))), skip_special_tokens=True)
    finish = "stop" if cut is None else "length"
    [outcome] = read_choices(completion(text, tokens, finish_reason=finish), until)
    assert isinstance(outcome, Completion)
    return outcome.answer


@pytest.mark.framework
@pytest.mark.parametrize("name", REPLIES)
@pytest.mark.parametrize(("until", "kept"), [((), 6), ((", 5", " be", "\n"), 2), (("upper", " the"), 0)])
def test_a_thinking_reply_is_the_same_answer_in_every_adapter(name: str, until: tuple[str, ...], kept: int) -> None:
    """A stop text ends the answer, and no thought that has it."""
    reply = REPLIES[name]
    logprobs = [logprob for _, logprob in reply.tokens]
    for adapter in (in_hf, in_vllm, in_openai):
        answer = adapter(reply, until=until)
        assert answer.text == "".join(reply.answer[:kept]).strip()
        assert (answer.mean_logprob, answer.n_tokens, answer.finish) == (-0.25, kept, "stop")
        assert answer.end_logprob == (None if until else -4.0)
        assert until or answer.tokens == tuple((text, -0.25) for text in reply.answer)
        assert answer.thought is not None
        assert answer.thought.n_tokens == len(reply.thought)
        assert answer.thought.mean_logprob == pytest.approx(mean(logprobs[: len(reply.thought)]), abs=1e-5)


@pytest.mark.framework
@pytest.mark.parametrize("n", [3, 6])
@pytest.mark.parametrize("left_in", [True, False], ids=["whole text", "text without what ended it"])
def test_tokens_behind_the_text_that_ended_an_answer_are_not_counted(n: int, left_in: bool) -> None:
    written = [("upper", -0.2), (" left", -0.4), ("\n", -0.1), ("Q", -3.0), (":", -2.0), (" Why", -2.1)][:n]
    reply = ThinkingReply((), tuple(text for text, _ in written), "</s>")
    body = completion("".join(reply.answer) if left_in else "upper left", written)
    [outcome] = read_choices(body, ["\n"])
    assert isinstance(outcome, Completion)
    answers = [outcome.answer]
    for adapter in (in_hf, in_vllm):
        tokens = SimpleNamespace(tokens=[*written, ("</s>", -4.0)], control=(), end="</s>")
        answers.append(adapter(tokens, cut=n, until=("\n",)))  # type: ignore[arg-type]
    for answer in answers:
        assert (answer.text, answer.mean_logprob, answer.n_tokens) == ("upper left", pytest.approx(-0.3), 2)
        assert (answer.finish, answer.end_logprob) == ("stop", None)


@pytest.mark.framework
@pytest.mark.parametrize("name", [name for name in REPLIES if name != "DeepSeek-R1"])
def test_a_thought_that_was_cut_is_no_answer_in_any_adapter(name: str) -> None:
    answers = [adapter(REPLIES[name], cut=5) for adapter in (in_hf, in_vllm, in_openai)]
    for answer in answers:
        assert (answer.mean_logprob, answer.n_tokens, answer.no_logprob) == (None, None, NO_END)
        assert answer.thought is not None
        assert answer.thought.n_tokens == 5
        assert answer_of(answer.text) == answer.text != ""
        assert has_thought(answer.text)
    assert len({answer.text for answer in answers}) == 1
    health = measure_health([AnswerSet("1", answers[0], (answers[1],))], {})
    assert [test.share for test in health.tests if test.name == CUT] == [1]
    assert any("the thought has no end: 2" in f.text for f in health.findings)
