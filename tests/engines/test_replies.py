"""What each engine's reply says: finish reasons, log-probabilities, the end token, seeds."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

from engines.asking import NEUTRAL, ask, texts
from engines.servers import Server, on

THREE = ("vllm", "llama_cpp", "transformers_serve")
WITH_LOGPROBS = ("vllm", "llama_cpp")
END_TOKEN = {"vllm": "</s>", "llama_cpp": ""}


# --- how an answer ended ----------------------------------------------------------------------------------------------


@on(*THREE)
def test_finish_reason_is_stop_at_the_end_token_and_length_at_the_limit(server: Server) -> None:
    assert ask(server).choice["finish_reason"] == "stop"
    cut = ask(server, max_tokens=1)
    assert cut.choice["finish_reason"] == "length"
    assert cut.body["usage"]["completion_tokens"] == 1


@on(*WITH_LOGPROBS)
def test_a_stop_text_ends_the_answer_and_is_left_out(server: Server) -> None:
    replies = [ask(server, seed=seed, stop=[" "], logprobs=True, **NEUTRAL[server.engine]) for seed in range(4)]
    for reply in replies:
        assert reply.choice["finish_reason"] == "stop"
        assert " " not in reply.text
    if server.engine == "vllm":
        assert {reply.choice["stop_reason"] for reply in replies} == {" "}


# --- log-probabilities ------------------------------------------------------------------------------------------------


@on(*WITH_LOGPROBS)
def test_tokens_joined_are_the_answer_and_its_end_token(server: Server) -> None:
    for seed in range(6):
        reply = ask(server, seed=seed, logprobs=True, **NEUTRAL[server.engine])
        *tokens, (end, _) = reply.tokens
        assert "".join(token for token, _ in tokens) == reply.text
        assert end == END_TOKEN[server.engine]
        assert reply.body["usage"]["completion_tokens"] == len(reply.tokens)
        assert all(-math.inf < logprob <= 0 for _, logprob in reply.tokens)


@on(*WITH_LOGPROBS)
def test_log_probabilities_are_of_the_raw_distribution_whatever_the_temperature(server: Server) -> None:
    first = {}
    for temperature in (0.5, 1.0, 2.0):
        for seed in range(12):
            reply = ask(server, seed=seed, temperature=temperature, logprobs=True, **NEUTRAL[server.engine])
            token, logprob = reply.tokens[0]
            first.setdefault(token, {})[temperature] = logprob
    shared = [by_temperature for by_temperature in first.values() if len(by_temperature) > 1]
    assert len(shared) > 1
    for by_temperature in shared:
        assert max(by_temperature.values()) - min(by_temperature.values()) < 1e-5


@on(*WITH_LOGPROBS)
def test_log_probabilities_are_before_top_k(server: Server) -> None:
    token, logprob = ask(server, top_k=1, logprobs=True).tokens[0]
    assert token
    assert logprob < -0.1  # of the only token left it would be 0


@on("vllm")
def test_log_probabilities_under_structured_outputs_are_after_the_mask(server: Server) -> None:
    free = dict(ask(server, seed=seed, logprobs=True, **NEUTRAL["vllm"]).tokens[0] for seed in range(24))
    choices = {"structured_outputs": {"choice": ["upper left", "no"]}}
    reply = ask(server, logprobs=True, **choices, **NEUTRAL["vllm"])
    token, logprob = reply.tokens[0]
    assert reply.text in ("upper left", "no")
    assert logprob > free["upper"] + 0.1 or token == "no"


@on("transformers_serve")
def test_transformers_serve_leaves_log_probabilities_out_without_a_word(server: Server) -> None:
    assert ask(server, logprobs=True).choice.get("logprobs") is None


# --- seeds ------------------------------------------------------------------------------------------------------------


@on(*THREE)
def test_a_seed_repeats_one_request_at_a_time(server: Server) -> None:
    assert texts(server, **NEUTRAL[server.engine]) == texts(server, **NEUTRAL[server.engine])


@on(*WITH_LOGPROBS)
def test_a_seed_repeats_among_sixteen_requests_at_once(server: Server) -> None:
    def answer(seed: int) -> str:
        return ask(server, seed=seed, **NEUTRAL[server.engine]).text

    with ThreadPoolExecutor(16) as pool:
        together = list(pool.map(answer, range(32)))
    assert together == texts(server, range(32), **NEUTRAL[server.engine])


@on("vllm")
def test_the_answers_of_one_request_have_seeds_in_a_row(server: Server) -> None:
    reply = ask(server, seed=5, n=8, **NEUTRAL[server.engine])
    choices = sorted(reply.body["choices"], key=lambda choice: choice["index"])
    together = [choice["message"]["content"] for choice in choices]
    assert together == texts(server, range(5, 13), **NEUTRAL[server.engine])
    assert len(set(together)) > 1


@on(*THREE)
def test_without_a_seed_answers_differ(server: Server) -> None:
    assert len({ask(server, **NEUTRAL[server.engine]).text for _ in range(12)}) > 1
