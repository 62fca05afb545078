"""What each engine does with the sampling fields of a request: obeys, ignores without a word, or refuses.

The adapters rest on these facts. A new release of an engine that behaves otherwise fails the test that says so.
"""

from __future__ import annotations

from typing import Any

import pytest

from engines.asking import NEUTRAL, SAMPLED, ask, texts
from engines.servers import Server, on

THREE = ("vllm", "llama_cpp", "transformers_serve")

# What narrows sampling down to one text where it is obeyed.
NARROW = {"top_p": 0.01, "top_k": 1, "min_p": 0.99}


@on(*THREE)
def test_neutral_fields_sample(server: Server) -> None:
    assert len(set(texts(server, **NEUTRAL[server.engine]))) > 2


@on("vllm", "llama_cpp")
@pytest.mark.parametrize("name", NARROW)
def test_top_p_top_k_and_min_p_are_obeyed(server: Server, name: str) -> None:
    assert len(set(texts(server, **{**NEUTRAL[server.engine], name: NARROW[name]}))) == 1


@on("transformers_serve")
def test_transformers_serve_obeys_top_p(server: Server) -> None:
    assert len(set(texts(server, **SAMPLED, top_p=0.01))) == 1


@on("transformers_serve")
@pytest.mark.parametrize(
    "name", ["top_k", "min_p", "repetition_penalty", "repeat_penalty", "do_sample", "no_such_field"]
)
def test_transformers_serve_refuses_the_field(server: Server, name: str) -> None:
    reply = ask(server, **{name: 1})
    assert reply.status == 422
    assert reply.body == {"detail": f"Unexpected fields in the request: {{{name!r}}}"}


@on("vllm", "llama_cpp")
@pytest.mark.parametrize(
    "fields",
    [{"no_such_field": 3}, {"do_sample": False}, {"guided_choice": ["yes"]}],
    ids=lambda fields: next(iter(fields)),
)
def test_unknown_fields_are_ignored_without_a_word(server: Server, fields: dict[str, Any]) -> None:
    neutral = NEUTRAL[server.engine]
    assert texts(server, **neutral, **fields) == texts(server, **neutral)


@on("vllm", "llama_cpp")
def test_top_k_is_off_with_minus_one_and_zero_alike(server: Server) -> None:
    neutral = NEUTRAL[server.engine]
    assert texts(server, **{**neutral, "top_k": 0}) == texts(server, **{**neutral, "top_k": -1})


PENALTY = {"vllm": ("repetition_penalty", "repeat_penalty"), "llama_cpp": ("repeat_penalty", "repetition_penalty")}


@on(*PENALTY)
def test_repetition_penalty_has_two_names_and_the_others_name_is_ignored(server: Server) -> None:
    known, ignored = PENALTY[server.engine]
    neutral = NEUTRAL[server.engine]
    plain = texts(server, **neutral)
    assert texts(server, **neutral, **{ignored: 5.0}) == plain
    assert texts(server, **neutral, **{known: 5.0}) != plain


# --- what applies where nothing is sent -------------------------------------------------------------------------------


@on("vllm_greedy")
@pytest.mark.parametrize("sent", [{}, {"top_p": 1.0}, {"top_k": -1}, {"min_p": 0.0}], ids=str)
def test_vllm_fills_each_missing_field_from_the_models_defaults(server: Server, sent: dict[str, Any]) -> None:
    assert len(set(texts(server, **sent))) == 1


@on("vllm_greedy")
def test_vllm_samples_where_top_p_and_top_k_are_both_sent(server: Server) -> None:
    assert len(set(texts(server, top_p=1.0, top_k=-1))) > 2


@on("llama_cpp")
def test_llama_cpp_has_sampling_defaults_of_its_own(server: Server) -> None:
    from engines.asking import send

    defaults = send(f"{server.url.removesuffix('/v1')}/props").body["default_generation_settings"]["params"]
    found = {name: round(defaults[name], 4) for name in ("temperature", "top_k", "top_p", "min_p", "repeat_penalty")}
    assert found == {"temperature": 0.8, "top_k": 40, "top_p": 0.95, "min_p": 0.05, "repeat_penalty": 1.0}


@on("transformers_serve")
def test_transformers_serve_is_greedy_unless_do_sample_is_said(server: Server) -> None:
    assert len(set(texts(server, temperature=1.0))) == 1
    assert len(set(texts(server, temperature=2.0, top_p=1.0))) == 1


@on(*THREE)
def test_n_answers_from_one_request(server: Server) -> None:
    reply = ask(server, n=3, **NEUTRAL[server.engine])
    assert reply.status == 200
    assert len(reply.body["choices"]) == (1 if server.engine == "transformers_serve" else 3)
