"""The vLLM adapter against a stand-in for the few names of vLLM that it uses; tests/engines has the real one."""

from __future__ import annotations

import sys
import weakref
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from PIL import Image

from hedge_tasks.errors import ConfigError, DrawsFailed, HedgeError
from hedge_tasks.sampling import Answer, AnswerSet, SamplingPlan
from hedge_tasks.sampling.hook import generate_samples
from hedge_tasks.sampling.plan import draw_seed
from hedge_tasks.sampling.prompts import Prompt
from hedge_tasks.sampling.requests import SampleRequest

pytestmark = pytest.mark.framework

PICTURE = Image.new("RGB", (32, 24), (120, 60, 30))
END = 2


@dataclass(kw_only=True)
class SamplingParams:
    """Keyword names and defaults as in vLLM's reference; an unknown one raises a TypeError, as there."""

    n: int = 1
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    seed: int | None = None
    stop: list[str] | None = None
    max_tokens: int | None = 16
    logprobs: int | None = None
    skip_special_tokens: bool = True
    structured_outputs: Any = None


@dataclass
class Completion:
    text: str
    token_ids: tuple[int, ...]
    logprobs: list[dict[int, Any]] | None
    finish_reason: str | None = "stop"
    index: int = 0


class Letters:
    """A tokenizer whose tokens are letters."""

    all_special_ids, eos_token_id, chat_template = (END,), END, ""

    def decode(self, tokens: list[int], skip_special_tokens: bool) -> str:
        return "".join(chr(token) for token in tokens if not (skip_special_tokens and token == END))


@dataclass
class Engine:
    """`vllm.LLM`: remembers how it was made and what it was asked, and answers with `reply`."""

    settings: dict[str, Any]
    calls: list[tuple[list[Any], list[SamplingParams]]] = field(default_factory=list)

    def get_tokenizer(self) -> Letters:
        return Letters()

    def chat(self, messages: list[Any], sampling_params: list[SamplingParams], use_tqdm: bool = True) -> list[Any]:
        assert len(messages) == len(sampling_params)
        assert not use_tqdm
        self.calls.append((messages, sampling_params))
        return [self.answer(m, p) for m, p in zip(messages, sampling_params, strict=True)]

    def answer(self, messages: list[Any], params: SamplingParams) -> Any:
        """As vLLM's `ParentRequest`: child i has seed + i; the outputs come in any order."""
        seeds = [None if params.seed is None else params.seed + i for i in range(params.n)]
        children = [self.reply(messages, replace(params, seed=seed, n=1)) for seed in seeds]
        return SimpleNamespace(outputs=[replace(child, index=i) for i, child in enumerate(children)][::-1])

    def reply(self, messages: list[Any], params: SamplingParams) -> Completion:
        return completion(f" seed {params.seed} ", told=params.logprobs is not None)


def completion(text: str, told: bool = True, **likelier: float) -> Completion:
    """A reply that ends, every token with a log-probability of -0.5 and the end with -9, beside others."""
    tokens = (*map(ord, text), END)
    others = {ord(letter): SimpleNamespace(logprob=logprob) for letter, logprob in likelier.items()}
    table = [{**others, t: SimpleNamespace(logprob=-9.0 if t == END else -0.5)} for t in tokens]
    return Completion(text.strip(), tokens, table if told else None)


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> list[Engine]:
    made: list[Engine] = []

    def make(**settings: Any) -> Engine:
        made.append(Engine(settings))
        return made[-1]

    module = ModuleType("vllm")
    module.LLM, module.SamplingParams, module.__version__ = make, SamplingParams, "0.0.stand-in"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "vllm", module)
    parameters = ModuleType("vllm.sampling_params")
    parameters.StructuredOutputsParams = SimpleNamespace  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "vllm.sampling_params", parameters)
    for name in ("WORLD_SIZE", "RANK", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)
    return made


def adapter(folder: Path, **arguments: Any) -> Any:
    from hedge_tasks.models.hedge_vllm import HedgeVLLM

    (folder / "generation_config.json").write_text('{"repetition_penalty": 1.05, "top_p": 0.001}', "utf-8")
    model = HedgeVLLM(pretrained=str(folder), **arguments)
    model.task_dict = {"task": {"test": [{"image": PICTURE}] * 5}}
    return model


def requests(documents: int, store: Path | None = None, **plan: Any) -> list[Any]:
    rows = []
    for i in range(documents):
        request = SampleRequest(
            id=f"q{i}",
            key=f"key{i}",
            question="is it normal?",
            prompt=Prompt("test", "<image>{question}", "You are an expert."),
            plan=SamplingPlan(**{"n": 2, "max_new_tokens": 9, "probe": False, **plan}),
            load_images=lambda document: [document["image"]],
            store=store,
        )
        rows.append(SimpleNamespace(args=("text", {}, request, i, "task", "test")))
    return rows


def test_a_guided_draw_is_kept_to_its_choices(engines: list[Engine], tmp_path: Path) -> None:
    model = adapter(tmp_path)
    instances = requests(1, guided=True)
    instances[0].args = (
        *instances[0].args[:2],
        replace(instances[0].args[2], choices=("0", "1")),
        *instances[0].args[3:],
    )
    generate_samples(model, instances)
    generate_samples(model, requests(1))
    [guided, free] = [call[1] for call in engines[0].calls]
    assert {tuple(params.structured_outputs.choice) for params in guided} == {("0", "1")}
    assert all(params.structured_outputs is None for params in free)


def test_without_vllm_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(HedgeError, match=r"pip install 'hedge-tasks\[vllm\]'"):
        adapter(tmp_path)


def test_the_engine_gets_what_the_protocol_needs(engines: list[Engine], tmp_path: Path) -> None:
    adapter(tmp_path, dtype="bfloat16", max_model_len=4096, tensor_parallel_size=2, revision="r", max_images=3)
    settings = engines[0].settings
    assert settings["logprobs_mode"] == "raw_logprobs"
    assert settings["enable_prefix_caching"] is True
    assert settings["limit_mm_per_prompt"] == {"image": 3}
    assert (settings["dtype"], settings["max_model_len"]) == ("bfloat16", 4096)
    assert (settings["tensor_parallel_size"], settings["revision"]) == (2, "r")
    assert "data_parallel_size" not in settings


def test_every_draw_has_its_own_seed_and_clean_ones_share_a_request(engines: list[Engine], tmp_path: Path) -> None:
    lines = generate_samples(adapter(tmp_path), requests(2, top_p=0.9, until=["\n"]))
    [(conversations, params)] = engines[0].calls
    assert len(conversations) == 2 * 4
    assert [p.n for p in params] == [1, 2, 1, 1] * 2
    assert [p.temperature for p in params[:4]] == [0.1, 1.0, 1.0, 1.0]
    assert {(p.max_tokens, p.logprobs, p.top_p, p.top_k, p.repetition_penalty) for p in params} == {
        (9, 0, 0.9, 0, 1.05)
    }
    assert params[0].stop == ["\n"]
    plan = SamplingPlan(n=2)
    for i, line in enumerate(lines):
        key = f"key{i}"
        base = draw_seed(plan.seed, key, "clean", 0) % (2**31 - 2**20)
        folded = [draw.seed % 2**31 for draw in plan.draws(key)]
        seeds = [folded[0], base, base + 1, *folded[3:]]
        assert AnswerSet.from_json(line).texts == [f"seed {seed}" for seed in seeds]


def test_messages_carry_pictures_in_memory(engines: list[Engine], tmp_path: Path) -> None:
    generate_samples(adapter(tmp_path), requests(1))
    [(conversations, _)] = engines[0].calls
    system, user = conversations[0]
    assert system == {"role": "system", "content": [{"type": "text", "text": "You are an expert."}]}
    assert [part["type"] for part in user["content"]] == ["image_pil", "text"]
    pictures = [turns[1]["content"][0]["image_pil"].tobytes() for turns in conversations]
    assert pictures[0] == pictures[1] == PICTURE.tobytes()
    assert len(set(pictures)) == 3


def test_the_baseline_tells_its_tokens(engines: list[Engine], tmp_path: Path) -> None:
    model = adapter(tmp_path)
    [line] = generate_samples(model, requests(1, alternatives=2))
    assert [params.logprobs for _, of in engines[0].calls for params in of] == [2, 0, 0, 0]
    assert [answer.tokens is None for answer in AnswerSet.from_json(line).answers] == [False, True, True, True, True]

    answer = model._read(completion("No", x=-0.25, y=-3.0), 2)
    assert answer.tokens == (("N", -0.5), ("o", -0.5))
    assert answer.alternatives == ((("x", -0.25), ("N", -0.5)), (("x", -0.25), ("o", -0.5)))
    assert model._read(completion("No"), 0).alternatives is None
    assert (model._read(completion("No")).tokens, model._read(completion("No", told=False)).mean_logprob) == (
        None,
        None,
    )
    assert model._read(completion("No.\nx"), until=["\n"]) == Answer("No.", -0.5, 3, "stop")
    assert model._read(completion("")) == Answer("", -9.0, 0, "stop", end_logprob=-9.0)  # as likely as its end


def test_what_vllm_gave_up_is_no_answer(engines: list[Engine], tmp_path: Path) -> None:
    model = adapter(tmp_path)
    assert "abort" in model._read(Completion("ye", (7,), None, "abort"))
    engines[0].answer = lambda *_: SimpleNamespace(outputs=[])  # type: ignore[method-assign]
    with pytest.raises(DrawsFailed, match=r"vLLM returned (0 outputs of 2|no output)"):
        generate_samples(model, requests(1))


def test_documents_come_in_calls_and_finished_ones_are_kept(
    engines: list[Engine], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = adapter(tmp_path, documents_per_call=2)
    chat = Engine.chat

    def breaks(self: Engine, *args: Any, **kwargs: Any) -> Any:
        if len(self.calls) == 2:
            raise RuntimeError("CUDA out of memory")
        return chat(self, *args, **kwargs)

    monkeypatch.setattr(Engine, "chat", breaks)
    with pytest.raises(RuntimeError, match="CUDA out of memory"):
        generate_samples(model, requests(5, tmp_path / "store"))
    assert [len(messages) for messages, _ in engines[0].calls] == [8, 8]
    monkeypatch.setattr(Engine, "chat", chat)
    assert len(generate_samples(model, requests(5, tmp_path / "store"))) == 5
    assert [len(messages) for messages, _ in engines[0].calls] == [8, 8, 4]


def test_ordinary_tasks_are_generated_greedily(engines: list[Engine], tmp_path: Path) -> None:
    def messages(document: Any) -> list[dict[str, Any]]:
        content = [{"type": "image", "url": document["image"].convert("L")}, {"type": "text", "text": "?"}]
        return [{"role": "system", "content": "short"}, {"role": "user", "content": content}]

    settings = {"max_new_tokens": 5, "until": "\n\n", "temperature": 0, "top_p": 0.5}
    model = adapter(tmp_path)
    texts = model.generate_until([SimpleNamespace(args=("", messages, settings, i, "task", "test")) for i in range(3)])
    [(conversations, params)] = engines[0].calls
    assert texts == ["seed None"] * 3
    assert params[0] == SamplingParams(temperature=0.0, max_tokens=5, stop=["\n\n"])
    assert conversations[0][1]["content"][0]["image_pil"].mode == "RGB"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"documents_per_call": 0}, "documents_per_call: expected a number of at least 1"),
        ({"device": "cpu"}, "CUDA_VISIBLE_DEVICES"),
    ],
)
def test_wrong_arguments_are_named(engines: list[Engine], tmp_path: Path, arguments: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        adapter(tmp_path, **arguments)
    assert not engines


def test_several_processes_are_one_engine_each(
    engines: list[Engine], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    model = adapter(tmp_path)
    assert (model.rank, model.world_size) == (1, 2)
    assert engines[0].settings["data_parallel_size"] == 2
    assert engines[0].settings["distributed_executor_backend"] == "external_launcher"
    with pytest.raises(ConfigError, match="tensor_parallel_size: 2 processes"):
        adapter(tmp_path, tensor_parallel_size=2)


def test_other_weights_precision_or_release_are_another_model(engines: list[Engine], tmp_path: Path) -> None:
    first = adapter(tmp_path).answer_identity
    assert adapter(tmp_path).answer_identity == first
    assert adapter(tmp_path, dtype="float16").answer_identity != first
    assert adapter(tmp_path, quantization="fp8").answer_identity == f"{first}:quantization=fp8"
    assert adapter(tmp_path, max_model_len=64).answer_identity == first
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    assert adapter(tmp_path).answer_identity != first
    assert first.endswith(":vllm-0.0.stand-in")


@pytest.mark.slow
def test_clean_lets_go_of_the_engine(engines: list[Engine], tmp_path: Path) -> None:
    model = adapter(tmp_path)
    engine = weakref.ref(engines.pop())
    model.clean()
    assert engine() is None


def test_decoding_is_pure_unless_the_model_is_asked_for_its_own(engines: list[Engine], tmp_path: Path) -> None:
    model = adapter(tmp_path)
    pure = {"top_p": 1.0, "top_k": 0, "min_p": 0.0, "repetition_penalty": 1.05}
    assert model.sent_decoding(SamplingPlan().limits()) == pure
    # The generation config has a top_p of 0.001, as Qwen2-VL's has.
    assert model.sent_decoding(SamplingPlan(decoding="model").limits()) == {**pure, "top_p": 0.001}
    assert model.sent_decoding(SamplingPlan(decoding="model", top_p=0.9).limits()) == {**pure, "top_p": 0.9}
    generate_samples(model, requests(1, decoding="model"))
    [(_, params)] = engines[0].calls
    assert {p.top_p for p in params} == {0.001}
