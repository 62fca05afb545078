"""Tokens with their alternatives: kept with the baseline answer, read back, and scored without a draw (CCP)."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hedge_tasks.claims.base import CONTRADICTION, ENTAILMENT, NEUTRAL, Claim
from hedge_tasks.claims.ccp import TokenChoice, claim_ccp, questions, token_ccp, token_choices
from hedge_tasks.claims.decomposition import build_decomposition
from hedge_tasks.claims.entailment import SupportQuery
from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.data.spans import LabelledSpan
from hedge_tasks.detectors.registry import get
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.llm.completion import read_completion
from hedge_tasks.models.token_sampling import AnswerReader
from hedge_tasks.runs.claim_files import keep_support, kept_support
from hedge_tasks.runs.claims import inquiry, score_claims
from hedge_tasks.runs.run_files import Run, load_run
from hedge_tasks.sampling.definition import Definition
from hedge_tasks.sampling.hook import generate_samples
from hedge_tasks.sampling.plan import SamplingPlan
from hedge_tasks.sampling.prompts import load_prompt

GOLDEN = json.loads((Path(__file__).parent / "golden" / "ccp.json").read_text("utf-8"))
"""What lm-polygraph says; made by `golden/make_ccp.py`."""


class Table:
    """An engine that says of (draw, claim) what a table says, and that an unknown pair is neutral."""

    name, contradicts, priced = "table", True, "pairs"

    def __init__(self, table: dict[tuple[str, str], int]) -> None:
        self.table = table

    def support(self, asked: Sequence[SupportQuery]) -> list[np.ndarray]:
        said = [
            [[self.table.get((draw, claim), NEUTRAL) for draw in one.draws] for claim in one.claims] for one in asked
        ]
        return [
            np.eye(3)[np.array(of, dtype=int).reshape(len(one.claims), len(one.draws))]
            for one, of in zip(asked, said, strict=True)
        ]

    def price(self, asked: Sequence[SupportQuery]) -> int:
        return len({(draw, claim) for one in asked for claim in one.claims for draw in one.draws})

    def check(self) -> None: ...

    def settings(self) -> dict[str, Any]:
        return {"support": self.name}


def of_golden(one: dict[str, Any]) -> tuple[AnswerSet, Table]:
    """An answer of words whose claims and NLI are those of the golden file."""
    words = one["words"]
    starts = [sum(len(word) + 1 for word in words[:t]) for t in range(len(words))]
    tokens = tuple((f" {word}" if t else word, one["logprobs"][t][0]) for t, word in enumerate(words))
    # The token itself is among the likeliest, as adapters tell them.
    alternatives = tuple(
        tuple((f" {text}", p) for text, p in zip([words[t], *one["alternatives"][t]], one["logprobs"][t], strict=True))
        for t in range(len(words))
    )
    table, spans = {}, []
    for start, end in one["claims"]:
        spans.append(LabelledSpan(starts[start], starts[end - 1] + len(words[end - 1])))
        for t in range(start, end):
            before = "".join(f"{word} " for word in words[start:t])
            for other, (forward, backward) in zip(one["alternatives"][t], one["nli"][t], strict=True):
                table[before + words[t], before + other] = forward
                table[before + other, before + words[t]] = backward
    baseline = Answer(" ".join(words), tokens=tokens, alternatives=alternatives)
    return AnswerSet("a", baseline, (Answer("x"),), claims=tuple(spans)), Table(table)


@pytest.mark.parametrize("number", range(len(GOLDEN["answers"])))
def test_equal_to_lm_polygraph(number: int) -> None:
    answers, engine = of_golden(GOLDEN["answers"][number])
    asked = inquiry((answers,), build_decomposition("given"), elsewhere=False, ccp=True)
    scored = score_claims(Run("r", "", (answers,)), asked.ask(engine), engine, asked.price(engine), {}, ["claim_ccp"])
    found = scored.answers[0].scores["claim_ccp"]
    assert found - 1 == pytest.approx(np.array(GOLDEN["lm_polygraph"][number]), abs=1e-6)


CHOICE = TokenChoice("No mass", ("No lesion", "No cyst", "No idea"), np.log([0.5, 0.2, 0.1, 0.15]))


def test_one_token_by_hand() -> None:
    said = {ENTAILMENT: [0, 0, 1.0], NEUTRAL: [0, 1.0, 0], CONTRADICTION: [1.0, 0, 0]}
    forward = np.array([[said[ENTAILMENT]], [said[CONTRADICTION]], [said[NEUTRAL]]])
    backward = np.array([[said[NEUTRAL], said[CONTRADICTION], said[NEUTRAL]]])
    assert token_ccp(CHOICE, forward, backward) == pytest.approx(math.log(0.7 / 0.8))
    # Entailment one way and contradiction the other way say nothing.
    assert token_ccp(CHOICE, forward, backward[:, [2, 2, 2]]) == pytest.approx(math.log(0.7 / 0.8))
    torn = np.array([[said[CONTRADICTION], said[ENTAILMENT], said[NEUTRAL]]])
    assert token_ccp(CHOICE, forward, torn) == 0.0
    assert math.isnan(token_ccp(CHOICE, forward * np.nan, backward))
    assert claim_ccp([]) == 1.0
    assert claim_ccp([math.log(0.5), math.log(0.5)]) == pytest.approx(0.25)
    assert questions(CHOICE) == (SupportQuery(CHOICE.others, ("No mass",)), SupportQuery(("No mass",), CHOICE.others))


def test_choices_stand_behind_the_words_of_their_claim() -> None:
    others = (
        (("A", -1.0), ("No", -0.5)),
        ((" mass", -0.7), (" cyst", -1.2)),
        ((".", -0.1),),
        ((" It", 0.0),),
        ((" rib", -3.0),),
    )
    tokens = (("No", -0.5), (" mass", -0.7), (".", -0.1), (" The", -0.2), (" rib", -3.0))
    answer = Answer("No mass. The rib", tokens=tokens, alternatives=others)
    claims = [Claim("a#0", "a", "No mass.", 0, 8, "x"), Claim("a#1", "a", "The rib", 9, 16, "x")]
    found = token_choices(answer, claims)
    assert found is not None
    # "No" is a word that says something, "The" is none, and neither is the stop.
    assert [[(one.said, one.others) for one in of] for of in found] == [
        [("No", ("A",)), ("No mass", ("No cyst",))],
        [("The rib", ())],
    ]
    assert found[0][1].logprobs.tolist() == [-0.7, -1.2]
    assert token_choices(Answer("No mass.", tokens=tokens), claims) is None


def test_an_alternative_to_half_a_character_is_what_it_adds() -> None:
    """Tokens are bytes here, as in most vocabularies: \u00e9 and \u00e8 differ in their second one."""
    vocabulary = [b"caf", b"\xc3", b"\xa9", b"\xa8", b"e"]

    class Bytes:
        def decode(self, tokens: Sequence[int], **options: Any) -> str:
            return b"".join(vocabulary[token] for token in tokens).decode("utf-8", "replace")

    reader = object.__new__(AnswerReader)
    reader._tokenizer, reader._special = Bytes(), set()
    pieces, others = reader._with_alternatives(
        [0, 1, 2], [-0.1, -0.2, -0.3], [[(0, -0.1)], [(1, -0.2), (4, -1.0)], [(3, -1.5)]]
    )
    assert "".join(text for text, _ in pieces) == "caf\u00e9"
    assert others[2] == (("\u00e8", -1.5),)
    assert others[1][1] == ("e", -1.0)


def test_answers_keep_tokens_and_alternatives() -> None:
    answer = Answer("a b", tokens=(("a", -1.0), (" b", -700.0)), alternatives=((("a", -1.0),), ()))
    assert Answer.read(json.loads(json.dumps(answer.to_dict()))) == answer
    for fields, message in (
        ({"text": "a", "alternatives": []}, "expected a list for each of the tokens"),
        ({"text": "a", "tokens": [["a", -1]], "alternatives": []}, "expected a list for each of the tokens"),
        (
            {"text": "a", "tokens": [["a", -1]], "alternatives": [[["a", 1]]]},
            r"alternatives\[0\]\[0\]\[1\]: expected a number of at most 0.0, got 1",
        ),
    ):
        with pytest.raises(DataError, match=message):
            Answer.read(fields)


def test_only_the_baseline_is_drawn_anew_for_its_tokens() -> None:
    prompt = load_prompt("plain/question")
    plans = SamplingPlan(n=2), SamplingPlan(n=2, alternatives=5)
    assert "alternatives" not in plans[0].settings()
    keys = [[Definition.of("m", "t", prompt, plan).key("d", "q", draw) for draw in plan.draws("d")] for plan in plans]
    assert keys[0][0] != keys[1][0]
    assert keys[0][1:] == keys[1][1:]
    for wrong in (21, -1, True):
        with pytest.raises(ConfigError, match="alternatives"):
            SamplingPlan(alternatives=wrong)


def test_a_model_that_tells_no_tokens_is_refused() -> None:
    request = SimpleNamespace(plan=SamplingPlan(alternatives=5))
    with pytest.raises(ConfigError, match="alternatives: SimpleNamespace does not tell its tokens; hedge_hf"):
        generate_samples(SimpleNamespace(), [SimpleNamespace(args=("", {}, request))])


def entry(
    text: str, logprob: float, others: Sequence[tuple[str, float]] = (), raw: bytes | None = None
) -> dict[str, Any]:
    top = [{"token": t, "logprob": p, "bytes": list(t.encode())} for t, p in others]
    return {"token": text, "logprob": logprob, "bytes": list(raw or text.encode()), "top_logprobs": top}


def completion(text: str, entries: list[dict[str, Any]]) -> dict[str, Any]:
    choice = {"message": {"content": text}, "finish_reason": "stop", "logprobs": {"content": entries}}
    return {"choices": [choice]}


def test_a_server_tells_tokens_and_alternatives() -> None:
    end = entry("<|im_end|>", -0.1, [("<|im_end|>", -0.1)])
    others = [(" mass", -0.5), (" cyst", -1.5), ("<|im_end|>", -4.0)]
    found = read_completion(completion("No mass", [entry("No", -0.2), entry(" mass", -0.5, others), end]))
    assert found.answer.tokens is None
    assert found.answer_in_tokens.tokens == (("No", -0.2), (" mass", -0.5))
    assert found.answer_in_tokens.alternatives == ((), ((" mass", -0.5), (" cyst", -1.5)))
    # A letter in two tokens belongs to the second one.
    parts = [entry("\ufffd", -0.3, raw="é".encode()[:1]), entry("\ufffd", -0.4, raw="é".encode()[1:])]
    assert read_completion(completion("é", parts)).tokens == (("", -0.3), ("é", -0.4))
    # Tokens of another text than the answer are not its tokens.
    assert read_completion(completion("Yes", [entry("No", -0.2)])).tokens is None
    hostile = [{**entry("No", -0.2), "top_logprobs": [7, {"token": 1}, {"token": "x", "logprob": "y"}]}]
    assert read_completion(completion("No", hostile)).alternatives is None


# --- the command ------------------------------------------------------------------------------------------------------


def test_what_is_kept_and_what_is_refused(tmp_path: Path) -> None:
    answers, engine = of_golden(GOLDEN["answers"][3])
    path = tmp_path / "answers.jsonl"
    path.write_text(answers.to_json() + "\n", "utf-8")
    run = load_run(path)
    asked = inquiry(run.answer_sets, build_decomposition("given"), elsewhere=False, ccp=True)
    price = asked.price(engine)
    assert price.ccp > 0
    assert price.amount == price.ccp + len(asked.own[0].claims)
    assert f"({price.ccp} for CCP)" in str(price)
    supported = asked.ask(engine)
    keep_support(run, supported, engine, price, {})
    kept = kept_support(run, {})
    assert kept is not None
    assert kept.price == price
    assert kept.supported[0].ccp == pytest.approx(supported[0].ccp, abs=1e-12)
    plain = AnswerSet("a", Answer("A mass."), (Answer("x"),))
    with pytest.raises(DataError, match="no answer has tokens with alternatives"):
        inquiry((plain,), build_decomposition("sentence"), ccp=True)
    assert get("claim_ccp").draws(10, 10) == 0
