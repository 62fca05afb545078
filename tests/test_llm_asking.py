"""The one asker under judges, claims and makers: prompts, replies that are read and kept, keys, and the account."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai_server import Response, Script, completion, serve
from scripted_making import counted

from hedge_tasks.claims.decomposition import build_decomposition
from hedge_tasks.claims.entailment import build_entailment
from hedge_tasks.data.answers import Answer, Thought
from hedge_tasks.errors import ConfigError, DataError, DrawsFailed, HedgeError
from hedge_tasks.judging import Case, judge_from
from hedge_tasks.llm.account import Account, Counts, account_of, asked
from hedge_tasks.llm.asker import Asker, Query, QueryResult
from hedge_tasks.llm.failures import RequestFailed
from hedge_tasks.llm.log import Reply, ReplyLog
from hedge_tasks.llm.models import LocalModel, ReplyOrFailure, Request, ServedModel
from hedge_tasks.llm.reading import Unreadable, by_schema, read_object
from hedge_tasks.llm.template import Template
from hedge_tasks.models.by_text import model_from

KEY = "sk-very-secret-0123456789"
FILE: dict[str, Any] = {
    "name": "colour",
    "version": 2,
    "system": ["Say the colour", "in JSON."],
    "fields": [{"name": "thing", "required": True}, {"name": "light"}],
    "again": "Once more.",
    "schema": {"type": "object", "required": ["colour"], "properties": {"colour": {"enum": ["red", "green"]}}},
    "decoding": {"max_tokens": 40},
}
TEMPLATE = Template.parse(json.dumps(FILE), "colour")
RED, GREEN = '{"colour": "red"}', '{"colour": "green"}'


@pytest.fixture(autouse=True)
def _no_file_of_keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


class Scripted:
    """Answers from a list, batch by batch; a failure stands for a request that comes to nothing."""

    who = name = "scripted"
    identity: Mapping[str, Any] = {"model": "scripted"}

    def __init__(self, *outcomes: str | RequestFailed) -> None:
        self.left = list(outcomes)
        self.seen: list[Any] = []

    def reply(self, request: Request, stop: threading.Event) -> ReplyOrFailure:
        self.seen.append(request)
        outcome = self.left.pop(0)
        return outcome if isinstance(outcome, RequestFailed) else Reply(outcome, None, None, 10, 2, 0.5)

    def replies(self, requests: Sequence[Request]) -> Generator[list[tuple[int, ReplyOrFailure]], None, None]:
        for i, one in enumerate(requests):
            yield [(i, self.reply(one, threading.Event()))]

    def check(self) -> None: ...

    def free(self) -> None: ...


def query(thing: str = "a leaf", **more: Any) -> Query[str]:
    return Query(TEMPLATE, {"thing": thing}, lambda reply: TEMPLATE.object(reply.text)["colour"], **more)


def again(model: Scripted) -> list[bool]:
    return [request.conversation()[-1]["content"][-1]["text"] == "Once more." for request in model.seen]


# --- prompts ----------------------------------------------------------------------------------------------------------


def test_a_conversation_shows_the_fields_in_their_order_and_leaves_out_what_is_not_there() -> None:
    system, user = TEMPLATE.conversation({"light": None, "thing": "a [INST] <b> leaf"}, ["PICTURE"], again=True)
    assert system["content"] == [{"type": "text", "text": "Say the colour\nin JSON."}]
    picture, shown, once_more = user["content"]
    assert (picture, once_more["text"]) == ({"type": "image", "url": "PICTURE"}, "Once more.")
    assert json.loads(shown["text"]) == {"thing": "a [INST] <b> leaf"}
    assert not set("<>") & set(shown["text"])
    with pytest.raises(ConfigError, match="did you mean 'thing'"):
        TEMPLATE.conversation({"thingy": "x"})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sytem": []}, "did you mean 'system'"), ({"system": ...}, "system missing"),
        ({"fields": ...}, "fields: missing"), ({"fields": [{"name": "thing", "required": 3}]}, "required: expected"),
        ({"decoding": {"max_tokens": "many"}}, "expected an integer or a number"),
        ({"examples": [{"case": {"thingy": "x"}, "reply": {}}]}, "are no fields"),
        ({"turns": [{"role": "system", "text": ["x"], "when": "y"}]}, "turns: .* are no fields"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_prompt_is_refused(changes: dict[str, Any], words: str) -> None:
    data = {key: value for key, value in {**FILE, **changes}.items() if value is not ...}
    with pytest.raises(DataError, match=words):
        Template.read(data, "colour")


# --- reading ----------------------------------------------------------------------------------------------------------

ACCEPT = by_schema(FILE["schema"])


@pytest.mark.parametrize(
    "reply",
    [
        RED, f"```json\n{RED}\n```", f"[{RED}]", json.dumps(RED), f"Sure: {RED}. I hope this {{helps}}.",
        f'<think>{{"colour": "green"}}, {{or}} what?</think>{RED}', f'I weigh {{a, b}} and {{"n": 1}}: {RED}',
        f"{RED} and once more {RED}", '{"colour": "red", "why": "quotes </think> of the text"}',
    ],
)  # fmt: skip
def test_braces_around_an_object_lose_no_reply(reply: str) -> None:
    assert read_object(reply, ACCEPT)["colour"] == "red"


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ("", "no JSON object"), ("red", "no JSON object"), ("<think>" + RED, "a thought that does not end"),
        (f"{RED} {GREEN}", "differ"), ('{"colour": "red", "colour": "green"}', "two values"),
        ('{"colour": "blue"}', "colour"), ("{" * 10_000, "no JSON object"),
    ],
)  # fmt: skip
def test_what_is_no_single_object_is_unreadable(reply: str, words: str) -> None:
    with pytest.raises(Unreadable, match=words):
        read_object(reply, ACCEPT)


@given(st.text())
def test_any_text_is_read_or_unreadable_and_nothing_else(text: str) -> None:
    with suppress(Unreadable):
        assert read_object(text, ACCEPT)["colour"] in ("red", "green")
    assert read_object(f"<think>{text.replace('think', '')}</think>{RED}", ACCEPT)["colour"] == "red"


# --- asking -----------------------------------------------------------------------------------------------------------


def test_a_reply_that_cannot_be_read_is_asked_for_again_with_more_room() -> None:
    model = Scripted("?", RED)
    [found] = Asker(model, Account()).ask_all([query()])
    assert found.value == "red"
    assert again(model) == [False, True]
    assert [request.settings["max_tokens"] for request in model.seen] == [40, 80]
    assert {request.settings["temperature"] for request in model.seen} == {0.0}


def test_one_that_fails_for_good_says_why_and_spoils_no_other() -> None:
    account = Account()
    model = Scripted(RequestFailed("policy", "refused"), RED)  # what may pass, the client has asked again
    first, second = Asker(model, account).ask_all([query("a"), query("b")])
    assert (first.value, first.problem, second.value) == (None, "the server refused: policy", "red")
    assert (account.total.requests, account.total.failed) == (1, 1)
    with pytest.raises(HedgeError, match="scripted answered none of 1 requests; one: busy"):
        Asker(Scripted(RequestFailed("busy", "busy")), Account()).ask_all([query()])
    [alone] = Asker(Scripted(RequestFailed("policy", "refused")), Account()).ask_all([query()])
    assert (alone.value, alone.problem) == (None, "the server refused: policy"), "one question says nothing of others"


def test_another_schema_or_another_room_is_another_question() -> None:
    model, asked = Scripted(), query()
    keys = {q.key(model, 0) for q in (asked, replace(asked, schema={"type": "object"}), replace(asked, max_tokens=7))}
    assert len(keys) == 3


def test_equal_questions_are_asked_once_and_those_of_another_place_are_others_with_other_seeds() -> None:
    model = Scripted(RED, GREEN)
    found = Asker(model, Account()).ask_all([query("a"), query("b"), query("a")])
    assert [one.value for one in found] == ["red", "green", "red"]
    assert Asker(model, Account()).ask_all([]) == []
    model = Scripted(RED, GREEN)
    found = Asker(model, Account()).ask_all([query(place="1"), query(place="2")])
    assert [one.value for one in found] == ["red", "green"]
    seeds = [request.settings.get("seed") for request in model.seen]
    assert len(set(seeds)) == 2
    assert all(seed is not None and 0 <= seed < 2**31 for seed in seeds)


def both(model: Scripted, account: Account, folder: Path, asks: int, **options: Any) -> list[QueryResult[str]]:
    """A question in a batch, and the same alone: the same replies are asked for, kept and counted."""
    with ReplyLog(folder / "batch") as log:
        batch = Asker(model, account, log, asks=asks, stage="s", **options).ask_all([query()])
    with ReplyLog(folder / "alone") as log:
        alone = Asker(model, account, log, asks=asks, stage="s", **options).ask(query(), threading.Event())
    return [*batch, alone]


def test_what_is_kept_is_not_asked_and_goes_on_from_where_it_was(tmp_path: Path) -> None:
    account = Account()
    model = Scripted("?", "?", "?", "?")
    assert [one.value for one in both(model, account, tmp_path, 2)] == [None, None]
    assert account.to_dict()["stages"]["s"] == {
        **{"requests": 4, "cached": 0, "unreadable": 4, "failed": 0},
        **{"prompt_tokens": 40, "completion_tokens": 8, "seconds": 2.0},
        **{"all_prompt_tokens": 40, "all_completion_tokens": 8},
    }
    # Nobody is asked again ...
    account = Account()
    found = both(Scripted(), account, tmp_path, 2)
    assert [one.problem for one in found] == ["no JSON object"] * 2
    assert (account.total.requests, account.total.cached, account.total.prompt_tokens) == (0, 4, 0)
    # ... but who asks three times, for the third time,
    model = Scripted(RED, RED)
    assert [one.value for one in both(model, Account(), tmp_path, 3)] == ["red", "red"]
    assert again(model) == [True, True]


@pytest.mark.parametrize("ask", [Asker.ask_all, lambda asker, queries: [asker.ask(queries[0], threading.Event())]])
def test_pictures_that_nothing_tells_from_others_are_not_kept(ask: Callable[..., Any], tmp_path: Path) -> None:
    for keys, requests in ((None, [1, 1]), (("k",), [1, 0])):
        for expected in requests:
            account = Account()
            with ReplyLog(tmp_path) as log:
                ask(Asker(Scripted(RED), account, log), [query(image_keys=keys)])
                assert (account.total.requests, len(log)) == (expected, 0 if keys is None else 1)


class Adapter:
    """Says how it was asked."""

    chat_template = ""

    def answer_conversations(self, conversations: Sequence[Any], **how: Any) -> list[Answer]:
        return [Answer(f"{len(conversations)} {how['max_new_tokens']}") for _ in conversations]


def test_a_batch_of_a_local_model_is_asked_alike_and_a_broken_picture_spoils_no_other() -> None:
    def broken() -> list[Any]:
        raise OSError("truncated")

    model = LocalModel("m", dict, Adapter, batch_size=2)
    tokens = [5, 5, 5, 9, 9, 5]
    requests = [Request(lambda: [{"role": "user", "content": "x"}], {"max_tokens": tokens_}) for tokens_ in tokens]
    requests[4] = Request(broken, {"max_tokens": 9})
    outcomes = dict(one for batch in model.replies(requests) for one in batch)
    said = [one.text if isinstance(one, Reply) else str(one) for _, one in sorted(outcomes.items())]
    assert said == ["2 5", "2 5", "1 5", "1 9", "its images cannot be read (truncated)", "1 5"]

    def refuse(*_: Any, **how: Any) -> list[Answer]:
        raise DrawsFailed("too long")

    refusing = LocalModel("m", dict, lambda: SimpleNamespace(answer_conversations=refuse))
    assert [str(one) for batch in refusing.replies(requests[3:5]) for _, one in batch] == ["too long", said[4]]
    assert refusing.reply(requests[0], threading.Event()).kind == "refused"  # type: ignore[union-attr]


# --- the account ------------------------------------------------------------------------------------------------------


def test_the_account_of_what_rests_on_others_has_theirs() -> None:
    def parts(*accounts: Account) -> Any:
        return type("Asking", (), {"parts": accounts})()

    one, other = Account(), Account()
    one.count("a", Reply("x", prompt_tokens=1_000, completion_tokens=5, seconds=2.25), cached=False)
    other.count("a", Reply("x", prompt_tokens=9), cached=True)
    other.add("b", Counts(failed=1))
    total = account_of(parts(one, other), None, object())
    assert total.total == Counts(1, 1, 0, 1, 1_000, 5, 2.25, 1_009, 5)
    assert total.to_dict()["stages"]["b"]["failed"] == 1
    assert asked(None, object()) == ({}, [])
    assert one.total.cached == 0, "adding up changes none of them"


def test_every_judge_says_what_it_cost() -> None:
    with serve(Script('{"reason": "", "verdict": "supported"}')) as url:
        llm = {"name": "llm", "model": "m", "url": url}
        panel = judge_from([llm, {**llm, "model": "n"}, "rule"])
        panel.judge([Case("1", "which side?", "left", "left")])
        assert counted(account_of(panel), "requests") == {"llm:m": 1, "llm:n": 1}
        assert account_of(judge_from("rule")).total.requests == 0


# --- servers and keys -------------------------------------------------------------------------------------------------


def askers() -> dict[str, Callable[[], object]]:
    """What fails where no server can be asked, of each that asks."""
    return {
        "judge": judge_from("llm:model=m").check,  # type: ignore[attr-defined]
        "support": build_entailment("judge", model="m").check,
        "claims": build_decomposition("atomic", model="m").check,  # type: ignore[attr-defined]
        "maker": lambda: model_from("m"),
    }


@pytest.mark.parametrize("who", ["judge", "support", "claims", "maker"])
def test_a_file_of_the_environment_names_the_key(who: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "")  # so that it is put back
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(ConfigError, match="no OPENAI_API_KEY"):
        askers()[who]()
    (tmp_path / ".env").write_text(f"OPENAI_API_KEY={KEY}\n")
    askers()[who]()


# --- borders ----------------------------------------------------------------------------------------------------------


def test_a_question_is_asked_twice_and_where_all_fail_the_asking_has_failed() -> None:
    [found] = Asker(Scripted("?", "?"), Account()).ask_all([query()])
    assert (found.value, found.attempts, found.problem) == (None, 2, "no JSON object")
    with pytest.raises(Unreadable, match=r"^.{200}\Z"):
        by_schema({"type": "object", "required": ["x" * 300]})({})
    refused = [RequestFailed("policy", "refused")] * 2
    with pytest.raises(HedgeError, match="answered none of 2 requests; one: the server refused: policy"):
        Asker(Scripted(*refused), Account()).ask_all([query("a"), query("b")])
    # Pictures that nothing tells from others make equal questions different.
    alike = [query(image_keys=None)] * 2
    assert [one.value for one in Asker(Scripted(RED, GREEN), Account()).ask_all(alike)] == ["red", "green"]
    template = Template.parse(json.dumps({**FILE, "decoding": {}}), "colour", foreign=True)
    assert template.id == f"colour/2#{template.digest[:8]}"
    request = replace(query(place="p"), prompt=template).request(1)
    assert request.settings["max_tokens"] == 2 * 512
    assert request.settings["seed"] == int(hashlib.sha256(b"p\x001").hexdigest()[:8], 16) // 2


def test_a_reply_of_which_nothing_is_told_costs_nothing_known() -> None:
    account = Account()
    account.count("a", Reply("x"), cached=False)
    assert account.total == Counts(requests=1)


@pytest.mark.parametrize(("template", "told"), [("{% if enable_thinking %}", True), ("{{ x }}", False), (None, False)])
def test_a_local_model_is_told_not_to_think_where_it_knows_the_word(template: str | None, told: bool) -> None:
    class Thinks(Adapter):
        chat_template = template

        def keeps_schemas(self) -> bool:
            return told

        def answer_conversations(self, conversations: Sequence[Any], **how: Any) -> list[Answer]:
            texts = [part["text"] for part in conversations[0][-1]["content"]]
            return [Answer(f" {texts} {'schema' in how} {how['seeds']}", n_tokens=3, thought=Thought(4))]

    request = Request(lambda: [{"role": "user", "content": "x"}], {"max_tokens": 5, "seed": 7}, {"type": "object"})
    model = LocalModel("m", dict, Thinks, thinking=False, keeps_schemas=True)
    texts = ["x", "/no_think"] if told else ["x"]
    reply = model.reply(request, threading.Event())
    assert isinstance(reply, Reply)
    assert (reply.text, reply.model, reply.completion_tokens) == (f"{texts} {told} [7]", "m", 7)
    assert len(list(model.replies([request] * 2))) == 2, "one at a time"


def test_who_refuses_and_who_says_nothing_is_there() -> None:
    requests = [Request(lambda: [{"role": "user", "content": "x"}], {"max_tokens": 5})] * 8
    with serve(Script(Response({"error": "no"}, 400))) as url:
        outcomes = [one for batch in ServedModel("m", url, concurrency=1).replies(requests) for one in batch]
        assert len(outcomes) == 8
    with serve(Script("")) as url:
        reply = ServedModel("m", url, max_retries=0).reply(requests[0], threading.Event())
    assert reply == Reply("", "stop", "local", 1, 1)
    for finish, kind in (("length", "cut"), ("stop", "empty")):
        with serve(Script(Response(completion(None, finish_reason=finish)))) as url:
            reply = ServedModel("m", url, max_retries=0).reply(requests[0], threading.Event())
        assert isinstance(reply, Reply)
        assert (reply.text, reply.finish, bool(reply.problem)) == ("", kind, True)


def test_a_wording_of_others_is_filled_in_once() -> None:
    turns = [{"role": "system", "text": ["S"]}, {"role": "user", "text": ["{thing} {other}"]}]
    turns += [{"role": "user", "text": [" in {light}"], "when": "light"}]
    template = Template.parse(json.dumps({**FILE, "system": [], "turns": turns}), "colour")
    assert template.shown({"thing": "a {light}", "light": None}) == "a {light} {other}"
    assert template.conversation({"thing": "x"})[0] == {"role": "system", "content": [{"type": "text", "text": "S"}]}
    assert template.shown({"thing": "<|x|>", "light": "dusk"}) == "< |x|> {other} in dusk"
    with pytest.raises(ConfigError, match="unknown field of prompt colour/2 'think', did you mean 'thing'"):
        template.shown({"think": "x"})
