"""Whole replies by forced passes through vLLM and servers: tokens, end and both spellings, or the reason why not."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from openai_server import Response, Script, completion, error, serve
from PIL import Image
from requested import FakeModel, instances, request

from hedge_tasks.data.answers import NOISY, REVERSED, Answer, AnswerSet, option_logprobs, read_report
from hedge_tasks.data.option_order import options_in, reversed_letters, reversed_question, spellings
from hedge_tasks.detectors.pipeline import Scores
from hedge_tasks.llm.completion import PromptToken
from hedge_tasks.measures.forced_options import forced_measures, offered_facts
from hedge_tasks.measures.measure import by_name
from hedge_tasks.models.base import whole_reply
from hedge_tasks.models.first_token import first_tokens
from hedge_tasks.runs.health import health_of
from hedge_tasks.runs.run_files import Run, now
from hedge_tasks.sampling.forced import passes_needed
from hedge_tasks.sampling.hook import generate_samples
from hedge_tasks.sampling.prompts import Prompt

TURNS = [{"role": "user", "content": [{"type": "text", "text": "where?"}]}]
OTHER = [{"role": "user", "content": [{"type": "text", "text": "and here?"}]}]

# A language model over pieces: log-probability of each after whatever stands before it.
PIECES = {
    "<s>": -1.0,
    "where?": -5.0,
    "and here?": -7.0,
    "<|assistant|>": -3.0,
    "left": -1.5,
    " left": -0.75,
    " lung": -0.5,
    "lung": -4.0,
    "no": -2.0,
    "\n": -0.1,
    "<|end|>": -0.25,
}
IDS = {piece: i for i, piece in enumerate(PIECES)}
YES_NO = ("Yes", "No")


def pieces_of(text: str) -> list[str]:
    found = []
    while text:
        piece = max((p for p in PIECES if text.startswith(p)), key=len)
        found.append(piece)
        text = text[len(piece) :]
    return found


def rendered(messages: list[dict[str, Any]], prompted: bool) -> list[str]:
    """As a chat template does that closes a reply with its end and a line break."""
    said = messages[-1]["content"] if messages[-1]["role"] == "assistant" else None
    question = messages[0]["content"]
    question = question if isinstance(question, str) else question[0]["text"]
    begin = ["<s>", question, "<|assistant|>"]
    return begin if prompted else [*begin, *pieces_of(said or ""), "<|end|>", "\n"]


def expected(option: str) -> float:
    return math.log(
        sum(math.exp(sum(PIECES[p] for p in pieces_of(blank + option)) + PIECES["<|end|>"]) for blank in ("", " "))
    )


def total(answer: Any) -> float:
    assert isinstance(answer, Answer), answer
    assert answer.mean_logprob is not None
    assert answer.n_tokens
    return answer.mean_logprob * answer.n_tokens


# --- out of tokens ----------------------------------------------------------------------------------------------------


def tokens(*pieces: str) -> list[PromptToken]:
    return [PromptToken(IDS[piece], piece, PIECES[piece]) for piece in pieces]


def is_end(token: PromptToken) -> bool:
    return token.id == IDS["<|end|>"]


def test_spellings_are_summed_and_one_that_two_names_share_counts_once() -> None:
    prompt = tokens("<s>", "<|assistant|>")
    plain = [*prompt, *tokens("left", "<|end|>", "\n")]
    indented = [*prompt, *tokens(" left", "<|end|>")]
    both = whole_reply(prompt, [plain, indented], "left", is_end)
    assert total(both) == pytest.approx(math.log(math.exp(-1.75) + math.exp(-1.0)), abs=1e-5)
    assert total(whole_reply(prompt, [plain, plain], "left", is_end)) == pytest.approx(-1.75)


@pytest.mark.parametrize(
    ("closed", "says"),
    [
        (("<s>", "where?", "left", "<|end|>"), "behind another prompt"),
        (("<s>", "<|assistant|>", "no", "<|end|>"), "as another text"),
        (("<s>", "<|assistant|>", "left"), "no end"),
        (("<s>", "<|assistant|>", "left", "\n", "<|end|>"), "no end"),
        (("<s>",), "another"),
    ],
)
def test_what_is_no_whole_reply_has_a_reason(closed: tuple[str, ...], says: str) -> None:
    found = whole_reply(tokens("<s>", "<|assistant|>"), [tokens(*closed)], "left", is_end)
    assert isinstance(found, str)
    assert says in found


def test_first_tokens_tell_options_of_one_token() -> None:
    told = [("A", -1.0), (" A", -2.0), ("B", -3.0), ("The", -0.5), ("A", -1.0)]
    found = first_tokens(told, ["A", "B", "C"])
    assert found["A"] == Answer("A", pytest.approx(math.log(math.exp(-1) + math.exp(-2)), abs=1e-5), 1, "length")
    assert found["B"] == Answer("B", -3.0, 1, "length")
    assert "likeliest" in str(found["C"])
    assert "upper left" in str(first_tokens([("upper", -1.0)], ["upper", "upper left"])["upper"])


# --- two orders -------------------------------------------------------------------------------------------------------


@settings(max_examples=20)
@given(
    st.lists(st.text("abc xyz", min_size=1).map(str.strip).filter(bool), min_size=2, max_size=6),
    st.sampled_from(["{}. {}", "({}) {}", "{}) {}", "{}: {}"]),
    st.booleans(),
)
def test_the_other_order_twice_is_the_given_one(texts: list[str], form: str, on_lines: bool) -> None:
    assume(on_lines or form == "({}) {}")
    between = "\n" if on_lines else " "
    options = between.join(form.format(chr(ord("A") + i), text) for i, text in enumerate(texts))
    question = f"Which one?{between}{options}\nAnswer with the letter."
    assert [option.text for option in options_in(question)] == texts
    other = reversed_question(question)
    assert other is not None
    assert [option.text for option in options_in(other)] == texts[::-1]
    assert reversed_question(other) == question
    letters = reversed_letters(question)
    shown, given_order = ({o.letter: o.text for o in options_in(q)} for q in (other, question))
    assert all(shown[letters[letter]] == text for letter, text in given_order.items())


SCORES = Scores("q", 1, None, None, {}, "uniform", (0,))


class Placer(FakeModel):
    """Answers "A" with probability .8 whatever it means, and "B" with .2; each as a whole reply, in three spellings."""

    spelled: Mapping[str, float] = {"A": 0.5, "(A)": 0.2, "A.": 0.1, "B": 0.1, "(B)": 0.06, "B.": 0.04}

    def __init__(self) -> None:
        super().__init__(lambda draw: Answer("A", -0.5, 2))
        self.forced: list[tuple[int, str, str]] = []

    def reply_logprobs(self, conversations: Any, texts: Any) -> list[Answer]:
        said = [conversation[-1]["content"][-1]["text"] for conversation in conversations]
        self.forced += zip(map(id, conversations), said, texts, strict=True)
        return [Answer(text, math.log(self.spelled[text]), 1) for text in texts]


def two_orders() -> tuple[AnswerSet, Placer]:
    asked = request(
        plan={"n": 1, "n_noisy": 0},
        question="Which? (A) red (B) blue",
        prompt=Prompt("p", "{question}"),
        load_images=lambda document: [],
        forced=passes_needed(["forced_reversed"]),
        options=("A", "B"),
    )
    model = Placer()
    [line] = generate_samples(model, instances([asked]))
    return AnswerSet.from_json(line), model


def test_a_liking_for_places_is_averaged_out_and_told() -> None:
    answers, model = two_orders()
    assert [(said, text) for _, said, text in model.forced] == [
        *(("Which? (A) red (B) blue", form) for letter in "AB" for form in spellings(letter)),
        # By what they mean: red, blue.
        *(("Which? (A) blue (B) red", form) for letter in "BA" for form in spellings(letter)),
    ]
    assert answers.n_forced == len(model.forced)
    assert len({number for number, *_ in model.forced}) == 2  # each order is read once
    assert option_logprobs(answers.forced)["A"] == pytest.approx(math.log(0.8))
    assert option_logprobs(answers.forced, REVERSED)["A"] == pytest.approx(math.log(0.2))
    numbers = by_name(forced_measures())
    document = offered_facts(answers, "A")
    record = {
        name: measure.record(SCORES, {"label": 1, "category": "b"}, document)["value"]
        for name, measure in numbers.items()
    }
    assert record == pytest.approx(
        {
            "forced_accuracy": 0.5,  # red and blue are even
            "forced_gap": 0.5,  # the written reply is wrong
            "forced_differs_rate": 0.0,
            "option_brier": 0.5,
            "option_overconfidence": 0.0,
            "option_entropy_mean": math.log(2),
            "option_order_gap": 0.6,
        }
    )


# --- servers ----------------------------------------------------------------------------------------------------------


def vllm_server(body: dict[str, Any]) -> Response:
    pieces = rendered(body["messages"], body.get("add_generation_prompt", True))
    table = [{str(IDS[p]): {"logprob": PIECES[p], "rank": 1, "decoded_token": p}} for p in pieces]
    return Response({**completion("x"), "prompt_logprobs": [None, *table[1:]]})


@pytest.mark.framework
def test_a_server_that_reads_prompts_closes_the_reply() -> None:
    from hedge_tasks.models.hedge_openai import HedgeOpenAI

    script = Script(vllm_server)
    with serve(script) as url:
        model = HedgeOpenAI(model="m", base_url=url)
        found = model.reply_logprobs([TURNS, TURNS, OTHER, TURNS], ["left lung", "left", "left", "lung"])
        again = model.reply_logprobs([OTHER], ["left"])
    options = ("left lung", "left", "left", "lung")
    assert [total(one) for one in found] == pytest.approx([expected(option) for option in options], abs=2e-5)
    assert again == [found[2]]
    # One reading to see whether it tells, one of each prompt, two a text.
    assert len(script.bodies) == 1 + 2 + 8 + 1 + 2
    closed = [body for body in script.bodies if body["messages"][-1]["role"] == "assistant"]
    assert all(body["continue_final_message"] is body["add_generation_prompt"] is False for body in closed)
    assert {body["messages"][-1]["content"] for body in closed} >= {"left", " left"}


def openai_server(**told: float) -> Callable[[dict[str, Any]], Response]:
    def reply(body: dict[str, Any]) -> Response:
        top = [{"token": token, "logprob": logprob} for token, logprob in told.items()]
        choice = {
            "index": 0,
            "finish_reason": "length",
            "message": {"role": "assistant", "content": top[0]["token"]},
            "logprobs": {"content": [{**top[0], "top_logprobs": top}]},
        }
        return Response({"model": "m", "choices": [choice]})

    return reply


PLACES = ("upper", "upper left", "lower")
BELIEF = {"upper": 0.2, "upper left": 0.7, "lower": 0.1}
BIAS = {"A": 3.0, "B": 1.0, "C": 2.0}


class LetteredServer:
    """A chat server that knows how likely it finds each place, and likes some letters better than others.

    Args:
        mass: of the first token that the letters hold.
    """

    def __init__(self, mass: float) -> None:
        self.mass = mass
        self.asked: list[dict[str, Any]] = []

    @staticmethod
    def letters(order: list[str]) -> dict[str, float]:
        weights = {letter: BIAS[letter] * BELIEF[place] for letter, place in zip("ABC", order, strict=True)}
        return {letter: weight / sum(weights.values()) for letter, weight in weights.items()}

    def __call__(self, body: dict[str, Any]) -> Response:
        if "prompt_logprobs" in body:
            return Response({"error": {"message": "prompt_logprobs is not known"}}, 400)
        self.asked.append(body)
        content = body["messages"][-1]["content"]
        text = content if isinstance(content, str) else "\n".join(part["text"] for part in content)
        order = [line[3:] for line in text.splitlines() if line[1:3] == ". "]
        if not order:
            return openai_server(upper=math.log(0.9), lower=math.log(0.1))(body)
        told = {letter: math.log(p * self.mass) for letter, p in self.letters(order).items()}
        return openai_server(**told, The=math.log(1 - self.mass))(body)

    def shares(self) -> list[float]:
        """Of each place the geometric mean over both orders, made a distribution."""
        given, turned = self.letters(list(PLACES)), self.letters(list(PLACES[::-1]))
        means = [math.sqrt(given["ABC"[i]] * turned["CBA"[i]]) for i in range(3)]
        return [mean / sum(means) for mean in means]


@pytest.mark.framework
@pytest.mark.parametrize(("server", "known"), [(LetteredServer(0.501), True), (LetteredServer(0.499), False)])
def test_options_of_several_tokens_are_told_by_their_letters_in_two_orders(server: LetteredServer, known: bool) -> None:
    from hedge_tasks.models.hedge_openai import HedgeOpenAI

    with serve(server) as url:
        found = HedgeOpenAI(model="m", base_url=url, max_retries=0).reply_logprobs([TURNS] * 3, list(PLACES))
    if not known:
        assert all("the letters hold 0.50 of the first token" in str(one) for one in found)
        return
    assert {one.finish for one in found if isinstance(one, Answer)} == {"length"}
    assert [math.exp(total(one)) for one in found] == pytest.approx(server.shares(), abs=2e-5)
    assert sum(math.exp(total(one)) for one in found) == pytest.approx(1, abs=1e-4)
    _, _, *lettered_ones = server.asked
    assert len(lettered_ones) == 2
    assert all("where?" in json.dumps(body["messages"]) for body in lettered_ones)


# --- a whole run against a server -------------------------------------------------------------------------------------

PICTURES = [Image.new("RGB", (32, 24), (value, 40, 90)) for value in (10, 90, 170)]


class ChatServer:
    """It reads no prompts. How it begins a reply follows from all that it is shown; told after the temperature.

    Args:
        probe: what it answers where more than five likeliest tokens are asked for; None tells them.
        reply: what it writes.
    """

    def __init__(self, probe: Any = None, reply: str = "Yes") -> None:
        self.probe, self.reply = probe, reply
        self.bodies: list[dict[str, Any]] = []

    def __call__(self, body: dict[str, Any]) -> Any:
        self.bodies.append(body)
        if "prompt_logprobs" in body:
            return error(400, "prompt_logprobs: extra field")
        if self.probe is not None and body.get("top_logprobs"):
            return self.probe
        reply = self.reply if body["max_tokens"] > 1 else "Yes"
        said = completion(reply, [(piece, -0.5) for piece in reply.splitlines(keepends=True)])
        seen = json.dumps(body["messages"]).encode()
        heat = [byte / 100 / body["temperature"] for byte in hashlib.sha256(seen).digest()[:3]]
        whole = np.logaddexp.reduce(heat)
        top = [{"token": t, "logprob": float(h - whole)} for t, h in zip(("Yes", "No", " No"), heat, strict=True)]
        said["choices"][0]["logprobs"]["content"][0] |= {**top[0], "top_logprobs": top[: body.get("top_logprobs", 0)]}
        return Response(said)


def run_of(
    server: Callable[[dict[str, Any]], Any],
    store: Path | None = None,
    forced: tuple[str, ...] = ("options", "noisy"),
    offered: Sequence[tuple[str, ...]] = (),
    **plan: Any,
) -> list[AnswerSet]:
    from hedge_tasks.models.hedge_openai import HedgeOpenAI

    with serve(server) as url:
        model = HedgeOpenAI(model="m", base_url=url, max_retries=0)
        model.task_dict = {"task": {"test": [{"image": PICTURES[0] if offered else p} for p in PICTURES]}}
        about = {"question": "Is it?", "store": store, "forced": forced}
        about["choices"] = YES_NO if plan.get("guided") else ()
        draws, offered = {"n": 2, "n_noisy": 2, **plan}, offered or [YES_NO] * len(PICTURES)
        asked = [request(i, plan=draws, options=options, **about) for i, options in enumerate(offered)]
        lines = generate_samples(model, instances(asked))
    run_of.report = read_report(lines[0])
    return [AnswerSet.from_json(line) for line in lines]


@pytest.mark.framework
@pytest.mark.parametrize(
    ("plan", "reply", "swept"),
    [
        ({}, "Yes", 0),
        ({"temperature": 0.7}, "Yes", 9),
        ({"top_p": 0.9}, "Yes", 9),
        ({"decoding": "model"}, "Yes", 9),
        ({"guided": True}, "Yes", 9),
        ({"n": 0, "n_noisy": 0}, "Yes", 3),
        ({}, "<think>\nHm.\n</think>\nYes", 9),
    ],
)
def test_first_tokens_come_with_draws_that_tell_them_and_are_what_a_sweep_finds(
    plan: dict[str, Any], reply: str, swept: int, tmp_path: Path
) -> None:
    server, late = ChatServer(reply=reply), ChatServer()
    answers = run_of(server, **plan)
    n_draws = 3 * len(answers[0].answers)
    # Whether it reads prompts and tells first tokens, of what is drawn and of what was answered.
    n_asked = 2 if plan else 4
    assert len(server.bodies) == n_asked + n_draws + swept
    assert [body["max_tokens"] for body in server.bodies].count(1) == n_asked + swept
    run_of(ChatServer(), tmp_path, forced=())
    kept = run_of(late, tmp_path)  # nothing is drawn any more
    assert len(late.bodies) == 2 + 9
    names = [name for name in kept[0].forced if plan.get("n") != 0 or not name.startswith(NOISY)]
    for one, other in zip(answers, kept, strict=True):
        assert one.forced == {name: other.forced[name] for name in names}
    assert len({answer.mean_logprob for one in kept for answer in one.forced.values()}) == 2 * 9


@pytest.mark.framework
def test_a_first_question_that_fails_loses_nothing() -> None:
    server, failed = ChatServer(), list[object]()

    def busy_once(body: dict[str, Any]) -> Any:
        if body["max_tokens"] == 1 and body.get("top_logprobs") and not failed:
            failed.append(body)
            return error(500, "busy")
        return server(body)

    assert [a.forced for a in run_of(busy_once)] == [a.forced for a in run_of(ChatServer())]
    assert failed


@pytest.mark.framework
def test_equal_prompts_with_other_options_are_apart() -> None:
    both = run_of(ChatServer(), offered=[YES_NO, ("Yes", "Maybe"), YES_NO], n_noisy=0)
    alone = run_of(ChatServer(), offered=[YES_NO], n_noisy=0)
    assert [both[i].forced for i in (0, 2)] == [alone[0].forced] * 2


@pytest.mark.framework
@pytest.mark.parametrize(
    "probe", [error(400, "top_logprobs: extra field"), error(404, "no"), error(500, "on fire"), completion("Yes")]
)
def test_a_server_that_tells_no_first_tokens_is_asked_twice_a_run_which_says_so(probe: Any, tmp_path: Path) -> None:
    server = ChatServer(Response(probe) if isinstance(probe, dict) else probe)
    answers = run_of(server)
    assert [a.texts for a in answers] == [["Yes"] * 5] * 3
    assert not any(a.forced for a in answers)
    asked = [body.get("top_logprobs") for body in server.bodies if body["max_tokens"] == 1]
    assert asked in (2 * [None, 20], 2 * [None, 20, 5])
    assert len(server.bodies) == len(asked) + 3 * 5
    untold = run_of.report["untold"]
    assert re.match("18 of 18 gave nothing: .* likel", untold)
    run = Run("task", "m", tuple(answers), {}, {"sampled": run_of.report}, now())
    assert f"forced passes ({untold})" in health_of(run).unchecked
    run_of(server, tmp_path)
    run_of(ChatServer(), tmp_path)
    assert not run_of.report["untold"]
