"""SHALE from end to end: oracles whose numbers follow by arithmetic, blind runs, judges, and the embedded model."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from evaluation import Run, evaluate
from openai_server import images_of, serve, texts_of
from PIL import Image
from shale_set import small_set

from hedge_tasks.numbers import Number
from hedge_tasks.runs.run_files import load_runs
from hedge_tasks.suites.shale.building import build
from hedge_tasks.suites.shale.items import CLEAN, NOISY_SCENARIOS, SYN_RIGHT, ShaleItem
from hedge_tasks.suites.shale.paper import PAPER

pytestmark = pytest.mark.framework


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shale_hub")
    made = small_set()
    build(made.items, made.images.get, folder)
    return folder


@pytest.fixture(autouse=True)
def _environment(hub: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEDGE_DATA_DIR", str(hub))
    monkeypatch.setenv("HEDGE_MODELS", "nli=package://hedge_tasks.models.tiny/nli")
    monkeypatch.setenv("OPENAI_API_KEY", "none")


def digest(image: Image.Image) -> str:
    return hashlib.sha256(image.convert("RGB").tobytes()).hexdigest()


def known_items() -> dict[tuple[str, str], ShaleItem]:
    """What is asked with which picture -> the item."""
    made = small_set()
    digests = {name: digest(Image.open(io.BytesIO(content))) for name, content in made.images.items()}
    known: dict[tuple[str, str], ShaleItem] = {}
    for item in made.items:
        if item.task in ("ynq", "mcq"):
            first = known.setdefault((item.question, digests[item.image]), item)
            # A control of SYN is the clean question once more; the oracle can tell all others apart.
            assert first is item or (first.scenario, item.scenario, item.answer) == (CLEAN, SYN_RIGHT, first.answer)
    return known


def wrong_reply(item: ShaleItem) -> str:
    if item.task == "ynq":
        return "No" if item.answer == "Yes" else "Yes"
    return next(f"({letter})" for letter in "ABCD" if letter != item.answer[1])


def oracle(is_right: Callable[[ShaleItem], bool]) -> Callable[[dict[str, Any]], str]:
    """A model that knows each item and is wrong where it should be. Pictures it has never seen it does not answer.

    It tells no log-probabilities; forced passes ask for these, of the options in the other order as well.
    """
    known = known_items()

    def reply(body: dict[str, Any]) -> str:
        if {"prompt_logprobs", "top_logprobs"} & body.keys():
            return "?"
        [picture], [text] = images_of(body), texts_of(body)
        item = known[text, digest(picture)]
        return item.answer if is_right(item) else wrong_reply(item)

    return reply


def tables(run: Run, task: str) -> Mapping[int, Mapping[str, Number]]:
    """What `hedge paper shale` makes of one task of a run."""
    return {int(row.setting[-1]): row.numbers for row, _ in PAPER.rows_of(load_runs(run.output, task))}


# --- oracles ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def failing_in_some(hub: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Right in clean; wrong in CRP and PFX always, in TXT about colours only. Clean questions about flags are wrong."""

    def is_right(item: ShaleItem) -> bool:
        if item.aspect == "geography":
            return item.scenario != CLEAN
        if item.scenario in ("crp", "pfx"):
            return False
        return not (item.scenario == "txt" and item.aspect == "color")

    with pytest.MonkeyPatch.context() as patch, serve(oracle(is_right)) as url:
        patch.setenv("HEDGE_DATA_DIR", str(hub))
        patch.setenv("OPENAI_API_KEY", "none")
        return evaluate(
            tmp_path_factory.mktemp("oracle"),
            *("--model", "hedge_openai", "--model_args", f"model=tiny,base_url={url}"),
            *("--tasks", "hedge_shale_ynq,hedge_shale_mcq", "--gen_kwargs", "n=1,n_noisy=0"),
        )


@pytest.mark.slow
def test_resistance_is_what_arithmetic_says(failing_in_some: Run) -> None:
    for task in ("hedge_shale_ynq", "hedge_shale_mcq"):
        cells = failing_in_some.values(task)
        expected = dict.fromkeys(NOISY_SCENARIOS, 1.0) | {"crp": 0.0, "pfx": 0.0, "txt": 0.5}
        laid_out = tables(failing_in_some, task)[2]
        assert {name: laid_out[f"rr_{name}"].value for name in NOISY_SCENARIOS} == expected
        assert laid_out["rr"].value == cells["resistance_rate,exact"]
        # Flags are wrong when clean: right or not when perturbed, they are in no resistance rate.
        assert cells["resistance_rate,exact"] == pytest.approx(sum(expected.values()) / 10)
        assert cells["resistance_image,exact"] == pytest.approx((1 + 0 + 1 + 0.5) / 4)
        assert cells["resistance_instruction,exact"] == pytest.approx((1 + 0) / 2)
        assert cells["resistance_combination,exact"] == 1.0
        assert (laid_out["rr_pfx_controlled"].value, laid_out["rr_sty_p_controlled"].value) == (0.0, 1.0)
