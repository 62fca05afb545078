"""What cannot be: settings, files and folders that makers, judges, perturbations and boards refuse, each in words."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from at_border import at_border
from board_tasks import entry
from guarded import SERVED, policy
from PIL import Image
from scripted_making import Scripted
from test_judge_training import case
from test_judging_replies import spoiled

from hedge_tasks.data.option_files import read_options
from hedge_tasks.errors import HedgeError
from hedge_tasks.guard.ask import plan_of, prompt_of
from hedge_tasks.guard.proxy.requests import RefusedRequest, read_request
from hedge_tasks.guard.proxy.settings import ProxySettings
from hedge_tasks.judging import judge_from
from hedge_tasks.judging.config import configured_judge, parse_spec
from hedge_tasks.judging.designed import read_experts
from hedge_tasks.judging.prompt import JudgePrompt, load_judge_prompt
from hedge_tasks.leaderboard.board import Board, entries_folder
from hedge_tasks.leaderboard.entry import place_of
from hedge_tasks.leaderboard.repository import make_repository
from hedge_tasks.leaderboard.site import build_site
from hedge_tasks.llm.loading import resolve_model
from hedge_tasks.making.gate.accept import accept
from hedge_tasks.making.judging.examples import TrainingExample, outcome_of, reply_of, write_examples
from hedge_tasks.making.judging.training import kinds_of, read_recipe
from hedge_tasks.making.medhallu.candidates import read_candidates
from hedge_tasks.making.medhallu.construction import models_of
from hedge_tasks.making.medhallu.questions import SourceQuestion, read_questions
from hedge_tasks.making.output import write_rows
from hedge_tasks.making.pictures.base import CHECKERS, GENERATORS, built
from hedge_tasks.making.shale.construction import ShaleMaking
from hedge_tasks.making.shale.drawn import DrawnGenerator
from hedge_tasks.making.shale.pictures import PictureMaking
from hedge_tasks.making.stages import Made, make
from hedge_tasks.perturb import Perturbation, Wording, build_noise
from hedge_tasks.perturb.image import _LIMITS
from hedge_tasks.runs.task_claims import TaskClaims


def file(at: Path, *rows: object, name: str = "x.jsonl") -> Path:
    """A file of these lines; in the place of a folder it lets nothing be written."""
    (at / name).write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return at / name


def no_style(image: object, *, style: str, seed: int) -> str:
    return style


def styled(pipeline: str) -> object:
    noise = build_noise({"kind": "induction", "name": "shale_sty", "pipeline": pipeline})
    return noise.perturb_images([Image.new("RGB", (8, 8))], Wording("q"), seed=0)


def text(at: Path, content: str, name: str = "x.csv") -> Path:
    (at / name).write_text(content, "utf-8")
    return at / name


PAIR = {"question": "q?", "answer": "a"}
CANDIDATE = {"id": "q", "question": "?", "truth": "the drug", "candidates": [{"answer": "x", "fooled": True}]}
WRITER, OTHER = Scripted("a", str), Scripted("b", str)
OPTIONS = {"id": "1", "answer": "A", "logits": [0, 1]}
NO_OPTIONS: list[tuple[object, str]] = [
    ({**OPTIONS, "answer": "C"}, "unknown answer 'C'"),
    ({**OPTIONS, "logits": [0] * 27}, "a list of at most 26"),
    ({**OPTIONS, "logits": [0, math.nan]}, "finite number"),
    ({**OPTIONS, "logits": ["-inf", "-inf"]}, "no option can be chosen"),
    ({"id": "1", "anwser": "A", "logits": [0, 1]}, "did you mean 'answer'"),
    ({"answer": "A", "logits": [0, 1]}, "id: missing"),
    ({**OPTIONS, "options": {"C": "x"}}, "same labels: .*'C'"),
    ({**OPTIONS, "options": ["x"]}, "the same labels"),
    ({**OPTIONS, "logits": [0], "options": ["x", "y"]}, "2 options or more"),
]
NOISES: list[tuple[object, str]] = [
    ("hegde", "did you mean 'hedge'"),
    ({"preset": "nnoe"}, "did you mean 'none'"),
    ({"rotat": [1, 2]}, "did you mean 'rotate'"),
    ({"strength": -1}, "strength must not be negative"),
    ({"strength": math.nan}, "strength must be a number"),
    ({"strength": 50}, "x strength must be at most"),
    ({"rotate": 10}, "rotate must be"),
    ({"rotate": [10, 2]}, "rotate must be"),
    ({"p_affine": 1.5}, "p_affine must lie between 0 and 1"),
    ({"hue": True}, "hue must be a number"),
    ({"scale": 0.95}, "scale must lie between"),
    ({"fit_output": "yes"}, "fit_output: expected true or false"),
    ({"pipeline": 0}, "pipeline 0"),
    ({"kind": "text", "templates": "neutrl"}, "did you mean 'neutral'"),
    ({"kind": "text", "shuffle": True}, "did you mean 'shuffle_context'"),
    ({"kind": "text", "shuffle_context": 1}, "expected true or false"),
    ({"kind": "text", "templates": 3}, "must be names"),
    ({"kind": "text", "templates": [3]}, "must be names"),
    ({"kind": "text", "templates": {"neutral": "0"}}, "not those of these settings"),
    ("confidence_weakenin", "did you mean 'confidence_weakening'"),
    ({"kind": "induction", "image": "crb"}, "did you mean 'crp'"),
    ({"kind": "induction", "name": "shale_crp", "blur": [3, 2]}, "blur must be"),
    ({"kind": "induction", "name": "shale_crp", "salt_pepper": [0, 1.5]}, "between 0 and 1"),
    ({"kind": "induction", "name": "shale_crp", "jpeg": [True, 3]}, "jpeg must be"),
    ({"kind": "induction", "name": "shale_adv", "steps": 0}, "steps: expected"),
    ({"kind": "induction", "name": "shale_pfx", "prefixes": ["I think so."]}, "needs {distractor} once"),
    ({"kind": "induction", "name": "shale_sty", "pipeline": "filters"}, "pipeline must be"),
    ({"kind": "induction", "name": "shale_crp", "version": 0}, "made by version 0"),
    (3, "perturbation must be the name of a preset or a mapping, got int"),
    ({"kind": "induction"}, "give image"),
    ({"kind": "induction", "image": "sty", "styles": []}, "must not be empty"),
    ({"kind": "induction", "image": "txt", "texts": "x"}, "texts must be a list of texts"),
]
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
    (lambda at: kinds_of("tasks"), "did you mean 'task'"),
    (lambda at: read_recipe(None, {"num_train_epoch": 3}), "did you mean 'num_train_epochs'"),
    (lambda at: read_recipe(None, {"trained": "conector"}), "part to train"),
    (lambda at: read_recipe(None, {"learning_rate": "fast"}), "learning_rate"),
    (lambda at: read_recipe(None, {"max_steps": 5}), "max_steps"),
    # options
    *((lambda at, row=row: read_options(file(at, OPTIONS, row)), f"x.jsonl:2.*{words}") for row, words in NO_OPTIONS),
    (lambda at: ShaleMaking(PictureMaking(DrawnGenerator(64), ()), aspects=["colr"]), "did you mean 'color'"),
    (lambda at: ShaleMaking(PictureMaking(SimpleNamespace(name="x"), ())), "need a checker"),  # type: ignore[arg-type]
    (lambda at: models_of(WRITER, [WRITER, OTHER], None, []), "at least 3"),  # type: ignore[list-item,arg-type]
    (lambda at: models_of(WRITER, [WRITER, OTHER, WRITER], None, []), "same model"),  # type: ignore[list-item,arg-type]
    (lambda at: make([SourceQuestion("q0", "q?", "a", ())] * 2, print, {}, {}, at), "'q0' more than once"),
    (lambda at: accept(Made([], rejected={"x": 2}, unfinished={"q": ""}), print, list), "1 × unfinished, 2 × x"),
    (lambda at: read_candidates(at), "no file"),
    (lambda at: read_candidates(file(at, name="candidates.jsonl")), "no question"),
    (lambda at: read_candidates(file(at, CANDIDATE, CANDIDATE)), "2 lines have the id 'q'"),
    (lambda at: read_candidates(file(at, {**CANDIDATE, "candidates": [{"answer": "x", "fooled": ""}]})), "1: .*fooled"),
    (lambda at: read_candidates(file(at, {**CANDIDATE, "candidates": [{"foled": True}]})), "did you mean 'fooled'"),
    (lambda at: built(GENERATORS, "difusers:x"), "did you mean 'diffusers'"),
    (lambda at: built(GENERATORS, "diffusers:x,steps=0"), "steps"),
    (lambda at: built(GENERATORS, ":x"), "expected NAME:MODEL"),
    (lambda at: built(CHECKERS, "vqa"), "unknown checker"),
    (lambda at: built(CHECKERS, "vqascore:api_key=x"), "belongs into the environment"),
    # judges
    (lambda at: read_experts(text(at, "code,label\na1,maybe\n")), "no answer"),
    (lambda at: read_experts(text(at, "code,word\na1,1\n")), "label"),
    (lambda at: read_experts(text(at, "name,label\na1,1\n")), "code"),
    (lambda at: read_experts(text(at, "code,label\na1,\n")), "no row has a label"),
    (lambda at: load_judge_prompt(3), "expected a name or a path"),  # type: ignore[arg-type]
    (lambda at: load_judge_prompt("hegde"), "did you mean 'hedge'"),
    (lambda at: load_judge_prompt(str(at / "x.json")), "prompt: .*x.json"),
    (lambda at: JudgePrompt.parse(spoiled(schema={}), "x"), "no enum of verdict"),
    (lambda at: parse_spec('{"name"'), "judge"),
    (lambda at: judge_from(f"labels:path={at / 'x.csv'}").settings(), "cannot read .*x.csv"),
    # claims
    (lambda at: TaskClaims.from_config({"unti": "sentence"}, "my_task"), "my_task.*did you mean 'unit'"),
    (lambda at: TaskClaims.from_config({"support": "word"}, "my_task"), "my_task.*did you mean 'words'"),
    (lambda at: TaskClaims.from_config({"support": {"name": "judge"}}, "my_task"), "my_task.*argument: 'model'"),
    (lambda at: TaskClaims.from_config({"support": "words", "silent": "wrong"}, "my_task"), "my_task.*silent"),
    # perturbations
    *((lambda at, noise=noise: build_noise(noise), words) for noise, words in NOISES),
    (lambda at: Perturbation(name=""), "name must be a non-empty string"),
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
