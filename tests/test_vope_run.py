"""VOPE end to end inside lmms-eval: models that arithmetic can check, the embedded model, relevance, the store."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import vope_images
from evaluation import Run, evaluate
from openai_server import images_of, serve, texts_of
from vope_images import TRUTHS, number_of

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.models.hedge_hf import HedgeHF
from hedge_tasks.suites.vope import claims, documents, extraction, objects
from hedge_tasks.suites.vope.vocabulary import Vocabulary
from training import phantom

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


SCANS = Vocabulary({"ct": "ct", "mri": "mri", "x ray": "x ray"}, {"x ray": "x ray"})


@pytest.mark.slow
@pytest.mark.framework
def test_the_embedded_model_writes_and_is_rechecked_and_a_second_run_asks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model has only ever seen drawn scans, so here the kinds of scans are the objects; both stages are its own."""
    for module in (claims, extraction, documents, objects):
        monkeypatch.setattr(module, "coco", lambda: SCANS)
    vope_images.build_scans(tmp_path / "hub", n=8)
    monkeypatch.setenv("HEDGE_DATA_DIR", str(tmp_path / "hub"))
    monkeypatch.setenv("HEDGE_STORE", str(tmp_path / "store"))
    command = ("--model", "hedge_tiny", "--tasks", "hedge_vope_writing", "--gen_kwargs", "n=2,max_new_tokens=12")
    first = evaluate(tmp_path / "one", *command)
    with monkeypatch.context() as patch:
        patch.setattr(HedgeHF, "generate_draws", None)  # all answers of both stages come from the store
        second = evaluate(tmp_path / "two", *command)
    assert first.values("hedge_vope_writing") == second.values("hedge_vope_writing")
    counts: Counter[tuple[bool, bool]] = Counter()
    absent = 0
    for sample in first.samples("hedge_vope_writing"):
        answers = AnswerSet.from_json(sample["filtered_resps"])
        [said] = re.findall("CT|MRI|X-ray", answers.baseline.text)
        [recheck] = answers.follow_ups
        meaning = phantom.meaning_of(recheck.baseline.text)
        assert meaning is not None
        assert meaning.value in ("yes", "no")
        there = said.lower().replace("-", " ") == answers.reference
        absent += not there
        # "A lesion is visible" is about another object, and no reply to "Is there a CT in the image?".
        if recheck.baseline.text.split(",")[0] in ("yes", "no"):
            counts[there, meaning.value == "yes"] += 1
    cells = first.values("hedge_vope_writing")
    told, denied = ({there: counts[there, said] for there in (True, False)} for said in (True, False))
    assert cells["objects,objects"] == 8
    read = sum(counts.values())
    assert 0 < read < 8
    assert cells["unread_rate,objects"] == pytest.approx(1 - read / 8)
    assert cells["exp,objects"] == pytest.approx(sum(denied.values()) / read)
    assert cells["hal_d,objects"] == pytest.approx(told[False] / sum(told.values()))
    assert cells["hal_i,objects"] == pytest.approx(denied[True] / sum(denied.values()))
    assert cells["chair_i,objects"] == pytest.approx(absent / 8)
