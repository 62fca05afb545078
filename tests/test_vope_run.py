"""VOPE end to end inside lmms-eval: models that arithmetic can check, the embedded model, relevance, the store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import vope_images
from evaluation import Run, evaluate
from openai_server import images_of, serve, texts_of
from vope_images import TRUTHS, number_of

# Every story names all that is there and two things that are not: 9 objects of 17 are present.
PRESENT, ABSENT = 9, 8


def story(number: int) -> str:
    return f"A {' and a '.join(TRUTHS[number])}. Far off a zebra dreams of a kite."


def is_recheck(text: str) -> bool:
    return text.startswith(("Is there", "Are there"))


def truly(text: str, number: int) -> bool:
    return any(f" {name} in the image" in text for name in TRUTHS[number])


def run_model(root: Path, reply: Callable[[dict[str, Any]], str], tasks: str, *more: str, plan: str) -> Run:
    vope_images.build(root / "hub")
    with pytest.MonkeyPatch.context() as patch, serve(reply) as url:
        patch.setenv("HEDGE_DATA_DIR", str(root / "hub"))
        patch.setenv("OPENAI_API_KEY", "none")
        return evaluate(
            root / "out",
            *("--model", "hedge_openai", "--model_args", f"model=tiny,base_url={url}", "--tasks", tasks),
            *("--gen_kwargs", plan),
            *more,
        )


@pytest.mark.slow
@pytest.mark.framework
def test_an_oracle_and_a_model_that_denies_everything(tmp_path: Path) -> None:
    """An oracle on the images of one data set, and it denies everything on those of the other, which are larger."""
    asked: list[str] = []

    def reply(body: dict[str, Any]) -> str:
        [text], [image] = texts_of(body), images_of(body)
        number = number_of(image)
        if not is_recheck(text):
            return story(number)
        if image.width == vope_images.SIZE[0] and not {"prompt_logprobs", "top_logprobs"} & body.keys():
            asked.append(text)  # a forced pass is no draw
        if image.width == vope_images.SIZE[0]:
            return "Yes." if truly(text, number) else "No."
        return "No"

    vope_images.build(tmp_path / "hub", "qqwsad5__VOPE", size=(64, 40))
    run = run_model(tmp_path, reply, "hedge_vope,hedge_vope_official_writing", plan="n=1,n_noisy=0")
    tasks = [f"hedge_vope_{name}" for name in ("captioning", "reasoning", "writing")]
    assert set(run.results["group_subtasks"]["hedge_vope"]) == set(tasks)
    for task in tasks:
        cells = run.values(task)
        assert cells["hal_d,objects"] == cells["hal_i,objects"] == 0.0
        assert cells["exp,objects"] == cells["chair_i,objects"] == pytest.approx(ABSENT / (PRESENT + ABSENT))
        assert cells["chair_s,objects"] == 1.0
        assert cells["objects,objects"] == PRESENT + ABSENT
        assert cells["parsers_differ,objects"] == ABSENT  # "No." is a yes to the reference code
        assert cells["unread_rate,objects"] == 0.0
        assert cells["object_vase_auroc,objects"].startswith("undefined")
    assert len({run.results["configs"][task]["hedge"]["prompt"]["user"] for task in tasks}) == 3
    assert "Is there a wine glass in the image?" in asked
    # The same recheck of the same image is one draw for all three tasks.
    assert len(asked) == PRESENT + ABSENT
    denied = run.values("hedge_vope_official_writing")
    assert denied["hal_d,objects"] == "undefined: the model affirms no object"
    assert denied["hal_i,objects"] == pytest.approx(PRESENT / (PRESENT + ABSENT))
    assert denied["exp,objects"] == 1.0
