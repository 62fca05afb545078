"""The Hugging Face adapter on the embedded model: exact samples, true log-probabilities, clear refusals."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from PIL import Image
from requested import draw_requests, instances, request, sample

from hedge_tasks.data.answers import AnswerSet, read_report
from hedge_tasks.errors import ConfigError, HedgeError
from hedge_tasks.sampling import Draw
from hedge_tasks.sampling.hook import generate_samples
from hedge_tasks.sampling.prompts import Prompt
from hedge_tasks.sampling.requests import DrawRequest

pytestmark = pytest.mark.framework

QUESTION = "where is the lesion?"


@pytest.fixture(scope="module")
def model() -> Any:
    from hedge_tasks.models.hedge_tiny import HedgeTiny

    return HedgeTiny(batch_size=1)


@pytest.fixture(scope="module")
def picture() -> Image.Image:
    from datasets import Dataset

    from hedge_tasks.lmms.catalogue import task_folder

    parquet = task_folder() / "hedge_demo" / "data" / "demo-test.parquet"
    rows = Dataset.from_parquet(str(parquet))
    return next(row["image"] for row in rows if row["question_type"] == "location")


def draw_request(
    picture: Image.Image, draw: Draw, *, key: str = "doc", system: str | None = None, **plan: Any
) -> DrawRequest:
    about = {"key": key, "question": QUESTION, "prompt": Prompt("test", "<image>{question}", system)}
    [drawn] = draw_requests(request(plan={"max_new_tokens": 16, **plan}, **about), [draw], picture)
    return drawn


def clean(seed: int, temperature: float = 1.0) -> Draw:
    return Draw("clean", seed, temperature, seed)


def reference_logits(model: Any, picture: Image.Image, tokens: list[int]) -> torch.Tensor:
    """Logits of every next token, forced on `tokens` without a cache, on the CPU; shape (tokens + 1, vocabulary)."""
    content = [{"type": "image", "image": picture.convert("RGB")}, {"type": "text", "text": QUESTION}]
    inputs = model._processor.apply_chat_template(
        [[{"role": "user", "content": content}]],
        add_generation_prompt=True,
        tokenize=True,
        return_dict=True,
        return_tensors="pt",
    ).to(model.device)
    length = inputs["input_ids"].shape[1]
    forced = torch.tensor([tokens], dtype=torch.long, device=model.device)
    inputs["input_ids"] = torch.cat([inputs["input_ids"], forced], dim=1)
    inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
    with torch.inference_mode():
        return model._model(**inputs, use_cache=False).logits[0, length - 1 :].float().cpu()


@pytest.mark.parametrize("shared", [True, False])
def test_the_baseline_tells_its_tokens_and_the_likeliest_in_their_place(
    model: Any, picture: Image.Image, monkeypatch: pytest.MonkeyPatch, shared: bool
) -> None:
    monkeypatch.setattr(model, "share_prefill", shared)
    baseline = Draw("baseline", 0, 0.1, 5)
    plain, other = sample(model, [draw_request(picture, baseline), draw_request(picture, clean(1))])
    told, same = sample(model, [draw_request(picture, d, alternatives=3) for d in (baseline, clean(1))])
    assert same == other  # the samples keep none
    assert (told.text, told.mean_logprob) == (plain.text, plain.mean_logprob)
    assert "".join(text for text, _ in told.tokens).strip() == told.text
    assert told.mean_logprob == pytest.approx(sum(p for _, p in told.tokens) / len(told.tokens), abs=1e-5)
    tokens = model._tokenizer(told.text, add_special_tokens=False)["input_ids"]
    assert [model._tokenizer.decode([token]) for token in tokens] == [text for text, _ in told.tokens]
    special = set(model._tokenizer.all_special_ids)
    reference = reference_logits(model, picture, tokens).log_softmax(-1)
    assert [p for _, p in told.tokens] == pytest.approx(
        [reference[i, t].item() for i, t in enumerate(tokens)], abs=2e-5
    )
    values, likeliest = reference.topk(3)
    for i, others in enumerate(told.alternatives):
        expected = [
            (model._tokenizer.decode([token]), p)
            for token, p in zip(likeliest[i].tolist(), values[i].tolist(), strict=True)
            if token not in special
        ]
        assert [text for text, _ in others] == [text for text, _ in expected]
        assert [p for _, p in others] == pytest.approx([p for _, p in expected], abs=2e-5)
    [bare] = sample(model, [draw_request(picture, baseline, alternatives=0)])
    assert [text for text, _ in bare.tokens] == [text for text, _ in told.tokens]
    assert [p for _, p in bare.tokens] == pytest.approx([p for _, p in told.tokens], abs=2e-5)
    assert bare.alternatives is None


def test_a_run_probes_samples_looks_at_blank_pictures_and_asks_for_nothing_twice(
    model: Any, picture: Image.Image, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The path of a real run; other adapters take it in test_hedge_openai, test_hedge_vllm, test_series and test_hook.

    No quantised kernel is among what they run on: of these nothing is shown anywhere.
    """
    model.task_dict = {"task": {"test": [{"image": picture}, {"image": picture.rotate(90)}]}}
    plan = {"n": 1, "max_new_tokens": 3, "probe": True, "image_check": 1}
    asked = [request(i, plan=plan, group=f"g{i}", store=tmp_path) for i in range(2)]
    lines = generate_samples(model, instances(asked))
    found = [AnswerSet.from_json(line) for line in lines]
    assert [(len(answers.answers), answers.has_logprobs) for answers in found] == [(3, True)] * 2
    report = read_report(lines[0])
    assert report is not None
    assert report["probe"]["seeds_repeat"] is report["probe"]["raw_logprobs"] is True
    assert report["image_use"]["blank"] == 1
    monkeypatch.setattr(model, "generate_draws", lambda draws: pytest.fail("asked twice"))
    assert generate_samples(model, instances(asked)) == lines


@pytest.mark.parametrize("rank", ["0", "3"])
def test_more_ranks_than_gpus_are_an_error_in_every_rank_before_the_model_is_loaded(
    rank: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hedge_tasks.models.hedge_tiny import HedgeTiny
    from hedge_tasks.models.weights import placement

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setenv("LOCAL_RANK", rank)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    with pytest.raises(ConfigError, match=r"4 processes need a GPU each, and this machine has only 2: torchrun"):
        HedgeTiny()
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert placement(None, None) == {"": torch.device("cuda:1")}


@pytest.mark.parametrize("known", [True, False])
def test_the_system_prompt_reaches_the_model_where_its_template_has_no_such_role_too(
    model: Any, picture: Image.Image, monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    request = draw_request(picture, clean(0), system="You are a careful reader.")
    monkeypatch.setattr(model, "_knows_system", known)
    ids = model._inputs([request.messages()])["input_ids"][0]
    assert "You are a careful reader." in model._tokenizer.decode(ids)
    system, user = ({"role": role, "content": [{"type": "text", "text": role}]} for role in ("system", "user"))
    one_turn = [{"role": "user", "content": [*system["content"], *user["content"]]}]
    assert model._adapt([system, user]) == ([system, user] if known else one_turn)


def test_conversations_are_answered_like_requests_and_each_by_its_seed(
    model: Any, picture: Image.Image, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model, "batch_size", 2)
    parts = [[{"type": "image", "url": picture}, {"type": "text", "text": text}] for text in ("which shape?", "where?")]
    asked = [[{"role": "user", "content": content}] for content in (*parts, parts[0][1:])]
    greedy = model.answer_conversations(asked, max_new_tokens=6)
    model.task_dict = {"t": {"s": asked}}
    settings = {"max_new_tokens": 6, "do_sample": False}
    requests = [SimpleNamespace(args=(None, lambda it: it, settings, i, "t", "s")) for i in range(len(asked))]
    assert [answer.text for answer in greedy] == model.generate_until(requests)
    drawn = model.answer_conversations(asked, temperature=1.5, max_new_tokens=6, seeds=[7, 8, 9])
    assert drawn != greedy
    backwards = model.answer_conversations(asked[::-1], temperature=1.5, max_new_tokens=6, seeds=[9, 8, 7])
    assert [a.text for a in backwards[::-1]] == [a.text for a in drawn]
    assert model.answer_conversations([]) == []


@pytest.mark.parametrize("plan", [{}, {"max_new_tokens": 1}, {"until": (" l",)}], ids=str)
def test_answers_are_read_again_as_they_were_drawn(model: Any, picture: Image.Image, plan: dict[str, Any]) -> None:
    """The log-probability has the end token where the model chose it: not of what was cut."""
    draws = [draw_request(picture, clean(seed, temperature), **plan) for seed in (0, 1) for temperature in (0.1, 1.0)]
    answers = sample(model, draws)
    again = model.reread(draws, answers)
    for answer, read in zip(answers, again, strict=True):
        assert read.margin == pytest.approx(0, abs=1e-4)
        assert read.mean_logprob == pytest.approx(answer.mean_logprob, abs=1e-4)
    others = [replace(answer, text="a small cyst", finish="stop") for answer in answers]
    assert all(read.margin > 0.1 for read in model.reread(draws, others))


@pytest.fixture(scope="module")
def text_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small random Llama."""
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

    from hedge_tasks.models.tiny import vlm_path

    folder, tokenizer = tmp_path_factory.mktemp("llama"), AutoTokenizer.from_pretrained(str(vlm_path()))
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
    tokens = {f"{name}_token_id": getattr(tokenizer, f"{name}_token_id") for name in ("bos", "eos", "pad")}
    LlamaForCausalLM(LlamaConfig(vocab_size=len(tokenizer), **sizes, **tokens)).save_pretrained(folder)
    tokenizer.chat_template = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}"
    tokenizer.save_pretrained(folder)
    return folder


def test_a_text_only_model_answers_text_and_refuses_images(text_model: Path, picture: Image.Image) -> None:
    from hedge_tasks.models.hedge_hf import HedgeHF

    reads_text = HedgeHF(pretrained=str(text_model), dtype="float32")
    request = draw_request(picture, clean(0))
    text_only = replace(request, request=replace(request.request, load_images=lambda document: []))
    assert all(answer.n_tokens for answer in sample(reads_text, [text_only] * 2))
    with pytest.raises(HedgeError, match="reads text only, but the task shows it an image"):
        sample(reads_text, [request])


def test_what_a_model_cannot_do_is_refused_as_it_is_loaded(text_model: Path, tmp_path: Path) -> None:
    from hedge_tasks.models.hedge_hf import HedgeHF

    with pytest.raises(ConfigError, match=r"decoding=vcd needs pictures, and .* reads none"):
        HedgeHF(pretrained=str(text_model), decoding="vcd")
    with pytest.raises(ConfigError, match="contrasted in one way only"):
        HedgeHF(pretrained=str(text_model), decoding="dola", contrast="plain/question:vope/captioning:1")
    shutil.copytree(text_model, tmp_path, dirs_exist_ok=True)
    (tmp_path / "chat_template.jinja").unlink()
    with pytest.raises(ConfigError, match="has no chat template"):
        HedgeHF(pretrained=str(tmp_path))


def test_a_batch_doubles_as_far_as_the_memory_goes_and_changes_no_answer(
    picture: Image.Image, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hedge_tasks.models.hedge_tiny import HedgeTiny

    # A card that holds four documents beside the weights, and not eight.
    draws = [draw_request(picture, clean(i), key=f"doc{i}") for i in range(200)]
    alone = HedgeTiny(device="cpu", batch_size=1)
    growing = HedgeTiny(device="cpu")
    growing._growth._gpus = [0]  # type: ignore[union-attr]  # there is none here
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda _: 100)
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", lambda _: None)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (250, 350))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda _: 100)
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda _: 100 + 40 * growing.batch_size)
    batches = list(growing.generate_draws(draws))
    assert list(dict.fromkeys(map(len, batches[:-1]))) == [1, 2, 4]
    growing.batch_size = 4
    assert sample(growing, draws[:8]) == sample(alone, draws[:8])


def test_the_command_lines_unchosen_batch_is_automatic() -> None:
    from hedge_tasks.models.hedge_tiny import HedgeTiny

    kinds = [HedgeTiny.create_from_arg_string("", {"batch_size": size})._growth is None for size in (1, "1", "auto")]
    assert kinds == [False, True, False]


@pytest.mark.slow
def test_a_lora_adapter_changes_answers_and_identity(model: Any, tmp_path: Path, picture: Image.Image) -> None:
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForImageTextToText

    from hedge_tasks.models.hedge_tiny import HedgeTiny
    from hedge_tasks.models.tiny import vlm_path

    torch.manual_seed(0)
    base = AutoModelForImageTextToText.from_pretrained(str(vlm_path()), dtype=torch.float32)
    adapted = get_peft_model(base, LoraConfig(r=2, target_modules=["q_proj", "v_proj"], init_lora_weights=False))
    adapted.save_pretrained(tmp_path)
    with_adapter = HedgeTiny(peft=str(tmp_path))
    requests = [draw_request(picture, clean(seed)) for seed in range(8)]
    assert [a.text for a in sample(with_adapter, requests)] != [a.text for a in sample(model, requests)]
    assert with_adapter.answer_identity != model.answer_identity
    assert str(tmp_path) in with_adapter.answer_identity


def test_clean_frees_the_weights(picture: Image.Image) -> None:
    """lmms-eval calls it before clustering, which needs the memory for its own models."""
    import weakref

    from hedge_tasks.models.hedge_tiny import HedgeTiny

    adapter = HedgeTiny()
    sample(adapter, [draw_request(picture, clean(0)), draw_request(picture, clean(1))])
    weights = weakref.ref(adapter._model)
    adapter.clean()
    assert weights() is None


def test_sharing_is_checked_with_pictures_and_without_and_again_where_the_memory_did_not_do(
    model: Any, picture: Image.Image, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_picture = draw_request(picture, clean(1)).messages()
    text = [{"role": "user", "content": [{"type": "text", "text": "Is it?"}]}]
    verdicts = iter([True, None, False])
    monkeypatch.setattr(model, "_shares", {})
    monkeypatch.setattr(model, "_check_sharing", lambda inputs: next(verdicts))
    told = [model._may_share([messages]) for messages in (text, with_picture, with_picture, text, with_picture)]
    assert told == [True, False, False, True, False]
    assert next(verdicts, "all were asked for") == "all were asked for"
