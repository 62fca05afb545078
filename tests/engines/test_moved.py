"""A server that moves keeps its draws: the store is found again by the model, not by the address."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from evaluation import Run, evaluate

from engines.servers import Server, on, running
from hedge_tasks.models.hedge_openai import HedgeOpenAI
from hedge_tasks.sampling.requests import DrawRequest

pytestmark = pytest.mark.framework


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[DrawRequest]:
    """All draws that the adapter is asked for."""
    seen: list[DrawRequest] = []
    plain = HedgeOpenAI.generate_draws

    def counted(self: HedgeOpenAI, draws: Sequence[DrawRequest]) -> Any:
        seen.extend(draws)
        return plain(self, draws)

    monkeypatch.setattr(HedgeOpenAI, "generate_draws", counted)
    monkeypatch.setenv("HEDGE_FILTERS", "nli")
    return seen


def run(folder: Path, url: str) -> Run:
    arguments = f"model=tiny,base_url={url}"
    command = ("--model", "hedge_openai", "--model_args", arguments, "--tasks", "hedge_demo", "--limit", "4")
    return evaluate(folder, *command, "--gen_kwargs", "n=2,n_noisy=1,probe=False")


def test_a_server_on_another_port_answers_from_the_store(
    asked: list[DrawRequest], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEDGE_STORE", str(tmp_path / "store"))
    runs, urls = [], []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        with running("llama_cpp", tmp_path / name) as server:
            runs.append(run(tmp_path / name / "out", server.url))
            urls.append(server.url)
            assert len(asked) == 4 * 4  # not one more at the second
    assert urls[0] != urls[1]
    assert runs[0].values("hedge_demo") == runs[1].values("hedge_demo")


@on("vllm")
def test_vllm_at_another_address_is_the_model_that_it_was(server: Server) -> None:
    """The folder behind the alias is part of the identity by its name, the address is not."""
    elsewhere = server.url.replace("127.0.0.1", "localhost")
    one, other = (HedgeOpenAI(model=server.model, base_url=url) for url in (server.url, elsewhere))
    assert one.base_url != other.base_url
    assert one.answer_identity == other.answer_identity == f"hedge_openai:tiny|{server.weights.name}"
