"""What cannot be: settings, files and folders that makers, judges, perturbations and boards refuse, each in words."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from at_border import at_border
from board_tasks import entry
from guarded import SERVED, policy
from PIL import Image
from test_judge_training import case
from test_judging_replies import spoiled

from hedge_tasks.errors import HedgeError
from hedge_tasks.guard.ask import plan_of, prompt_of
from hedge_tasks.guard.proxy.requests import RefusedRequest, read_request
from hedge_tasks.guard.proxy.settings import ProxySettings
from hedge_tasks.judging import judge_from
from hedge_tasks.judging.config import configured_judge, parse_spec
from hedge_tasks.judging.prompt import JudgePrompt, load_judge_prompt
from hedge_tasks.leaderboard.board import Board, entries_folder
from hedge_tasks.leaderboard.entry import place_of
from hedge_tasks.leaderboard.repository import make_repository
from hedge_tasks.leaderboard.site import build_site
from hedge_tasks.llm.loading import resolve_model
from hedge_tasks.making.judging.examples import TrainingExample, outcome_of, reply_of, write_examples
from hedge_tasks.making.medhallu.questions import read_questions
from hedge_tasks.making.output import write_rows
from hedge_tasks.making.shale.construction import ShaleMaking
from hedge_tasks.making.shale.drawn import DrawnGenerator
from hedge_tasks.making.shale.pictures import PictureMaking
from hedge_tasks.perturb import Perturbation, Wording, build_noise
from hedge_tasks.perturb.image import _LIMITS


def file(at: Path, *rows: object, name: str = "x.jsonl") -> Path:
    """A file of these lines; in the place of a folder it lets nothing be written."""
    (at / name).write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return at / name


def no_style(image: object, *, style: str, seed: int) -> str:
    return style


def styled(pipeline: str) -> object:
    noise = build_noise({"kind": "induction", "name": "shale_sty", "pipeline": pipeline})
    return noise.perturb_images([Image.new("RGB", (8, 8))], Wording("q"), seed=0)


PAIR = {"question": "q?", "answer": "a"}
HEDGE = load_judge_prompt("hedge")
EXAMPLE = TrainingExample(case(1), "supported", "g")
REFUSED: list[tuple[Callable[[Path], object], str]] = [
    # makers
    (lambda at: read_questions(str(at)), "there is no file"),
    (lambda at: read_questions(str(file(at))), "there is no question in it"),
    (lambda at: read_questions(str(file(at, PAIR, {}, {}))), "x.jsonl:2: no text under question"),
    (lambda at: read_questions(str(file(at, {**PAIR, "knowledge": 3}))), "knowledge is neither a text nor a list"),
    (lambda at: write_rows(file(at), [PAIR]), "cannot write"),
    (lambda at: write_examples(file(at), {}, HEDGE, {}, []), "cannot write"),
    (lambda at: write_examples(at, {"train": [replace(EXAMPLE, image=file(at))]}, HEDGE, {}, []), "cannot be read"),
    (lambda at: outcome_of(0, JudgePrompt.parse(spoiled(), "x").model_copy(update={"outcomes": ()})), "for nothing"),
    (lambda at: reply_of(HEDGE, "maybe"), "maybe"),
    (lambda at: ShaleMaking(PictureMaking(DrawnGenerator(64), ()), aspects=["colr"]), "did you mean 'color'"),
    # judges
    (lambda at: load_judge_prompt(3), "expected a name or a path"),  # type: ignore[arg-type]
    (lambda at: load_judge_prompt("hegde"), "did you mean 'hedge'"),
    (lambda at: load_judge_prompt(str(at / "x.json")), "prompt: .*x.json"),
    (lambda at: JudgePrompt.parse(spoiled(schema={}), "x"), "no enum of verdict"),
    (lambda at: parse_spec('{"name"'), "judge"),
    (lambda at: judge_from(f"labels:path={at / 'x.csv'}").settings(), "cannot read .*x.csv"),
    # perturbations
    (lambda at: Perturbation(name=""), "name must be a non-empty string"),
    (lambda at: build_noise(3), "perturbation must be the name of a preset or a mapping, got int"),  # type: ignore[arg-type]
    (lambda at: build_noise({"kind": "induction"}), "give image"),
    (lambda at: build_noise({"kind": "induction", "image": "sty", "styles": []}), "must not be empty"),
    (lambda at: build_noise({"kind": "induction", "image": "txt", "texts": "x"}), "texts must be a list of texts"),
    (lambda at: build_noise("shale_sty").scaled(2), "has no strength"),
    (lambda at: build_noise("shale_txt").check(Wording("q")), "needs a wrong answer"),
    (lambda at: build_noise("shale_pfx").check(Wording("q", distractor=" ")), "needs a wrong answer"),
    (lambda at: build_noise("shale_syn").check(Wording("Which? (A) x", answer="A")), "needs questions with options"),
    (lambda at: build_noise("shale_syn").check(Wording("(A) x (B) y", answer="C")), "needs questions with options"),
    (lambda at: styled("no.module:x"), "cannot be had"),
    (lambda at: styled("math:pi"), "is no function"),
    (lambda at: styled("test_refused:no_style"), "returned str, not a PIL image"),
    # boards and models
    (lambda at: entries_folder(at / "x"), "no such folder"),
    (lambda at: place_of(file(at), entry()), "this is a file"),
    (lambda at: place_of(file(at) / "y", entry()), "cannot write"),
    (lambda at: make_repository(file(at)), "is there already"),
    (lambda at: build_site(Board(), file(at)), "cannot write"),
    (lambda at: resolve_model("package://hedge_tasks/nowhere"), "no such folder in an installed package"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "words"), REFUSED)
def test_what_cannot_be_is_refused_in_words(call: Callable[[Path], object], words: str, tmp_path: Path) -> None:
    with pytest.raises(HedgeError, match=words):
        call(tmp_path)


def refused(**settings: object) -> bool:
    try:
        Perturbation.from_config({"preset": "none", **settings})
    except ValueError:
        return True
    return False


@pytest.mark.parametrize(("name", "limit"), [*_LIMITS.items(), ("strength", 0.0)])
def test_settings_of_a_perturbation_have_borders(name: str, limit: float) -> None:
    if name == "strength":
        at_border(lambda strength: refused(rotate=[0, 100], strength=strength), 1.8, "001")
        at_border(lambda strength: refused(hue=0.25, strength=strength), 2.0, "001")
        at_border(lambda turn: refused(rotate=[0, turn]), 180.0, "001")
    else:
        at_border(lambda value: refused(**{name: value}), limit, "001")
        at_border(lambda value: refused(**{name: value}), 0.0, "100")


def test_a_judge_of_the_environment_is_named_where_it_makes_no_sense(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEDGE_JUDGE", "ruel")
    with pytest.raises(HedgeError, match="HEDGE_JUDGE: unknown judge 'ruel', did you mean 'rule'"):
        configured_judge("rule")
    monkeypatch.setenv("HEDGE_JUDGE", " ")
    assert configured_judge("rule").name == "rule"


@pytest.mark.parametrize(("body", "words"), [([], "no JSON object"), ("data:image/png;base64,?", "not base64")])
def test_a_request_that_is_none_is_refused(body: object, words: str) -> None:
    if isinstance(body, str):
        parts = [{"type": "image_url", "image_url": {"url": body}}, {"type": "text", "text": "q"}]
        body = {"model": SERVED, "messages": [{"role": "user", "content": parts}]}
    with pytest.raises(RefusedRequest) as caught:
        read_request(json.dumps(body).encode(), SERVED, True, prompt_of(policy()), plan_of(policy()), ProxySettings())
    assert words in caught.value.message
