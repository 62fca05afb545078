"""Forced passes: asked for where they are needed, stored as draws are, and as likely as the model's own draws."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from evaluation import evaluate
from openai_server import Response, Script, completion, serve
from PIL import Image
from requested import FakeModel, instances, request

from hedge_tasks.cli import main
from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.detectors import evidence_of, get
from hedge_tasks.errors import ConfigError
from hedge_tasks.perturb.text import load_templates
from hedge_tasks.runs.run_files import load_run
from hedge_tasks.sampling.archive import complete_sets, matching_definition, open_store
from hedge_tasks.sampling.conversations import Conversation
from hedge_tasks.sampling.hook import generate_samples
from hedge_tasks.sampling.image_check import GREY

PICTURE = Image.new("RGB", (48, 32), (200, 10, 10))
TURNS = [{"role": "user", "content": [{"type": "text", "text": "where?"}]}]
ALL = ("blank", "true", "false")


class ForcingModel(FakeModel):
    """Answers by the number of the document; a text is as likely as it is short."""

    def __init__(self) -> None:
        super().__init__(
            lambda draw: Answer(f"at {draw.request.id}", -0.5, 2), {"task": {"test": [{"image": PICTURE}] * 3}}
        )
        self.forced: list[tuple[list[dict[str, Any]], str]] = []

    def forced_logprobs(self, conversations: Sequence[Any], texts: Sequence[str]) -> list[Answer | str]:
        self.forced += zip(conversations, texts, strict=True)
        return [Answer(text, -len(text) / 10, 2) for text in texts]

    def reply_logprobs(self, conversations: Sequence[Any], texts: Sequence[str]) -> list[Answer | str]:
        self.forced += zip(conversations, texts, strict=True)
        return [Answer(text, -len(text), 1) for text in texts]


def requests(
    store: Path | None,
    forced: tuple[str, ...],
    images: bool = True,
    context: str = "",
    options: tuple[str, ...] = (),
) -> list[Any]:
    about: dict[str, Any] = {"context": context, "store": store, "forced": forced, "options": options}
    about |= {} if images else {"load_images": lambda document: []}
    return instances(request(i, plan={"n": 1}, question=f"question {i}?", **about) for i in range(2))


def sampled(model: Any, *arguments: Any, **options: Any) -> list[AnswerSet]:
    return [AnswerSet.from_json(line) for line in generate_samples(model, requests(*arguments, **options))]


def said(conversation: list[dict[str, Any]]) -> str:
    return " ".join(part["text"] for turn in conversation for part in turn["content"] if part["type"] == "text")


def pictures(conversation: list[dict[str, Any]]) -> list[Image.Image]:
    return [part["url"] for turn in conversation for part in turn["content"] if part["type"] == "image"]


# --- the hook ---------------------------------------------------------------------------------------------------------


def test_what_is_asked_for_is_made_once_and_kept(tmp_path: Path) -> None:
    model = ForcingModel()
    first, second = sampled(model, tmp_path, ALL)
    assert [text for _, text in model.forced] == ["at q0", "True", "False", "at q1", "True", "False"]
    blank, true, _ = (conversation for conversation, _ in model.forced[:3])
    assert said(blank) == "question 0?"
    assert [picture.size for picture in pictures(blank)] == [PICTURE.size]
    assert pictures(blank)[0].getcolors() == [(48 * 32, GREY)]
    assert "question 0?" in said(true)
    assert "at q0" in said(true)
    assert pictures(true)[0].getpixel((0, 0)) == (200, 10, 10)
    assert first.forced == {
        "blank": Answer("at q0", -0.5, 2),
        "true": Answer("True", -0.4, 2),
        "false": Answer("False", -0.5, 2),
    }
    assert second.forced["blank"].text == "at q1"
    assert stored(tmp_path) == [first.forced, second.forced]
    again = ForcingModel()
    assert sampled(again, tmp_path, ALL) == [first, second]
    assert again.forced == []
    # What is not asked for is neither made nor handed on, though the store has it.
    assert [a.forced for a in sampled(again, tmp_path, ())] == [{}, {}]
    assert [list(a.forced) for a in sampled(again, tmp_path, ("true", "false"))] == [["true", "false"]] * 2
    assert again.forced == []


def test_the_question_is_asked_in_other_words(tmp_path: Path) -> None:
    model = ForcingModel()
    first, second = sampled(model, tmp_path, ("reworded",))
    conversations = [conversation for conversation, _ in model.forced]
    introductions = load_templates("neutral")
    for i, conversation in enumerate(conversations):
        assert said(conversation) in [template.replace("{question}", f"question {i}?") for template in introductions]
        assert pictures(conversation)[0].getpixel((0, 0)) == (200, 10, 10)
    assert [text for _, text in model.forced] == ["at q0", "at q1"]
    assert first.forced == {"reworded": Answer("at q0", -0.5, 2)}
    assert get("reworded_msp").score(evidence_of(first)) == pytest.approx(1.0)
    again = ForcingModel()
    assert sampled(again, tmp_path, ("reworded",)) == [first, second]
    assert again.forced == []
    # Messages that another task has written are reworded as those of noisy draws are.
    content = [{"type": "image", "url": PICTURE}, {"type": "text", "text": "question 1? Be brief."}]
    written, _ = Conversation.of([{"role": "user", "content": content}])
    others = requests(None, ("reworded",))
    others[1].args = (*others[1].args[:2], replace(others[1].args[2], conversation=written), *others[1].args[3:])
    list(generate_samples(again, others))
    assert said(again.forced[1][0]) == f"{said(conversations[1])} Be brief."
    assert pictures(again.forced[1][0])[0].getpixel((0, 0)) == (200, 10, 10)


def stored(folder: Path) -> list[Mapping[str, Answer]]:
    """The forced passes of the complete documents in a store."""
    store = open_store(folder)
    return [a.forced for a in complete_sets(store, matching_definition(folder, store.definitions)).answer_sets]


# --- detectors --------------------------------------------------------------------------------------------------------


# --- adapters ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tiny() -> Any:
    from hedge_tasks.models.hedge_tiny import HedgeTiny

    return HedgeTiny(batch_size=3)


def demo_row() -> Any:
    from datasets import Dataset

    from hedge_tasks.lmms.catalogue import task_folder

    [row] = Dataset.from_parquet(str(task_folder() / "hedge_demo" / "data" / "demo-test.parquet")).select([3])
    return row


def plain_reply(tiny: Any, turns: list[dict[str, Any]], option: str) -> float:
    """Log-probability of an option as the whole reply, by an uncached forward pass for each spelling."""
    import torch

    model, tokenizer, inputs = tiny._model, tiny._tokenizer, tiny._inputs([turns])
    ends = model.generation_config.eos_token_id
    ends = [ends] if isinstance(ends, int) else list(ends)
    whole = 0.0
    for tokens in {tuple(tokenizer(blank + option, add_special_tokens=False)["input_ids"]) for blank in ("", " ")}:
        longer = {
            **inputs,
            "input_ids": torch.cat([inputs["input_ids"], torch.tensor([tokens], device=tiny.device)], 1),
        }
        longer["attention_mask"] = torch.ones_like(longer["input_ids"])
        with torch.inference_mode():
            shares = model(**longer).logits[0, -len(tokens) - 1 :].double().softmax(-1)
        whole += math.prod(float(shares[i, t]) for i, t in enumerate(tokens)) * float(shares[-1, ends].sum())
    return math.log(whole)


@pytest.mark.slow
@pytest.mark.framework
def test_whole_replies_are_as_likely_as_a_plain_forward_pass_says(tiny: Any) -> None:
    """Tokens and end by one uncached forward pass each, written out here; with and without a shared prefill."""
    row = demo_row()
    turns = [
        {"role": "user", "content": [{"type": "image", "url": row["image"]}, {"type": "text", "text": row["question"]}]}
    ]
    options = ["upper", "upper left", "yes", "no", "small cyst"]
    shared = tiny.reply_logprobs([turns] * len(options), options)
    sharing, tiny.share_prefill = tiny.share_prefill, False
    try:
        plain = tiny.reply_logprobs([turns] * len(options), options)
    finally:
        tiny.share_prefill = sharing
    for option, one, other in zip(options, shared, plain, strict=True):
        for found in (one, other):
            assert found.mean_logprob * found.n_tokens == pytest.approx(plain_reply(tiny, turns, option), abs=1e-5)
    probabilities = [math.exp(found.mean_logprob * found.n_tokens) for found in shared]
    assert sum(probabilities) <= 1 + 1e-6
    # What the model samples it says as often as that: one in 100 draws within five standard errors.
    draws = [answer.text for answer in tiny.answer_conversations([turns] * 100, temperature=1.0, max_new_tokens=24)]
    for option, p in zip(options, probabilities, strict=True):
        assert abs(draws.count(option) - 100 * p) <= 5 * math.sqrt(100 * p * (1 - p)) + 1


def prompt_tokens(*pieces: tuple[str, float]) -> list[Any]:
    told = [{str(i): {"logprob": p, "rank": 1, "decoded_token": piece}} for i, (piece, p) in enumerate(pieces)]
    return [None, *told]


@pytest.mark.framework
def test_a_server_that_tells_the_log_probabilities_of_a_prompt() -> None:
    from hedge_tasks.models.hedge_openai import HedgeOpenAI

    def reply(body: dict[str, Any]) -> Response:
        text = body["messages"][-1]["content"]
        pieces = [("<user>", -5.0), ("where", -4.0), *((f" {word}", -len(word) / 10) for word in text.split())]
        return Response({**completion("x"), "prompt_logprobs": prompt_tokens(*pieces)})

    script = Script(reply)
    with serve(script) as url:
        model = HedgeOpenAI(model="m", base_url=url)
        found = model.forced_logprobs([TURNS] * 3, ["left lung", "no", "left lung base"])
    assert found == [Answer("left lung", -0.4, 2), Answer("no", -0.2, 1), Answer("left lung base", -0.4, 3)]
    for body in script.bodies[1:]:  # the first one shows whether the server does so at all
        assert body["prompt_logprobs"] == 0
        assert body["continue_final_message"] is True
        assert body["add_generation_prompt"] is False
        assert body["messages"][-1]["role"] == "assistant"


# --- an evaluation ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.framework
def test_an_evaluation_that_names_the_detectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEDGE_DETECTORS", "p_true,image_ratio,rauq")
    monkeypatch.setenv("HEDGE_FILTERS", "nli")
    arguments = ("--model", "hedge_tiny", "--tasks", "hedge_demo", "--limit", "12", "--gen_kwargs", "n=1,n_noisy=0")
    run = evaluate(tmp_path, *arguments)
    samples = run.samples("hedge_demo")
    told = [json.loads(sample["filtered_resps"]) for sample in samples]
    assert all({"blank", "true", "false"} == fields["forced"].keys() for fields in told)
    assert all(0 <= fields["scores"]["p_true"] <= 1 for fields in told)
    assert len({fields["scores"]["image_ratio"] for fields in told}) > 6
    # RAUQ looks inside: it is kept because the detector is asked for.
    assert all(fields["scores"]["rauq"] > 0 for fields in told)
    [file] = tmp_path.rglob("hedge_runs/run-*.jsonl")
    assert load_run(file, None).settings["sampling"]["inside"] == "attention+logits"
    assert main(["detectors", str(file), "--detectors", "p_true,image_ratio,se", "--clustering", "exact"]) == 0
    monkeypatch.setenv("HEDGE_DETECTORS", "p_tru")
    with pytest.raises(ConfigError, match=r"HEDGE_DETECTORS.*did you mean 'p_true'"):
        evaluate(tmp_path / "other", *arguments)
