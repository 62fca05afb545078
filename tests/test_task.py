"""What a task tells the hook about the model and the place for answers."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

pytestmark = pytest.mark.framework


def identity(model: str | None, model_args: str | None) -> str | None:
    from hedge_tasks.lmms.identity import model_identity

    return model_identity(SimpleNamespace(model=model, model_args=model_args))


def test_speed_and_place_are_not_part_of_a_models_identity() -> None:
    one = identity("vllm", "model=a,dtype=bfloat16,device=cuda:0,batch_size=4")
    assert (
        one
        == identity("vllm", "dtype=bfloat16, model=a,device=cuda:1,num_concurrent=9")
        == "vllm|dtype=bfloat16|model=a"
    )
    assert one != identity("vllm", "model=b,dtype=bfloat16")
    assert one != identity("openai", "model=a,dtype=bfloat16")


def test_secrets_are_not_part_of_a_models_identity() -> None:
    named = identity("openai", "model=a,api_key=sk-1,hf_token=hf-2,CLIENT_SECRET=x,db_password=y")
    assert named == "openai|model=a"


@pytest.mark.parametrize(
    ("model", "arguments", "shown"),
    [
        (
            "hedge_openai",
            "base_url=http://10.0.0.7:8000/v1,model=Qwen/Qwen2.5-VL-7B",
            "Qwen/Qwen2.5-VL-7B (hedge_openai)",
        ),
        ("hedge_hf", "pretrained=/data/models/llava-med/,dtype=bfloat16", "llava-med (hedge_hf, dtype=bfloat16)"),
        ("hedge_hf", "pretrained=a/b,peft=./runs/lora", "a/b (hedge_hf, peft=lora)"),
        ("openai", "model_version=gpt-x,api_key=sk-1", "gpt-x (openai)"),
        ("hedge_tiny", "", "hedge_tiny"),
    ],
)
def test_people_are_shown_neither_addresses_nor_folders(model: str, arguments: str, shown: str) -> None:
    from hedge_tasks.lmms.identity import display_name

    assert display_name(SimpleNamespace(model=model, model_args=arguments)) == shown


def test_without_a_command_line_the_model_has_no_name() -> None:
    assert identity(None, "model=a") is None


def test_the_store_is_where_the_environment_says_or_with_the_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hedge_tasks.lmms.identity import store_folder

    assert store_folder(SimpleNamespace(output_path="out")) == Path("out/hedge_answers")
    assert store_folder(SimpleNamespace(output_path=None)) is None
    assert store_folder(None) is None
    monkeypatch.setenv("HEDGE_STORE", str(tmp_path))
    assert store_folder(SimpleNamespace(output_path="out")) == tmp_path
