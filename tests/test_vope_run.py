"""VOPE end to end inside lmms-eval: models that arithmetic can check, the embedded model, relevance, the store."""

from __future__ import annotations

import json
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

from hedge_tasks.cli import main
from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.lmms.catalogue import task_folder
from hedge_tasks.lmms.settings import DocumentSettings
from hedge_tasks.models.hedge_hf import HedgeHF
from hedge_tasks.suites.vope import claims, documents, extraction, objects
from hedge_tasks.suites.vope.task import VopeTask
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


def hesitant(body: dict[str, Any]) -> str:
    """Affirms everything. The kite, which is never there, appears only in the story that is judged."""
    text, number = texts_of(body)[-1], number_of(images_of(body)[0])
    if is_recheck(text):
        return "<think>Is it?</think>Yes"
    kite = " A kite." if body.get("temperature", 1.0) < 0.5 else ""
    return f"<think>Perhaps an elephant?</think>A {' and a '.join(TRUTHS[number])}.{kite}"


def relevance(body: dict[str, Any]) -> str:
    said = json.loads(texts_of(body)[-1])["object"]
    score = {"kite": 3, "zebra": 1}[said]
    if body["model"] == "second" and number_of(images_of(body)[0]) == 0:
        score = 2
    return json.dumps({"reason": "so", "score": score})


@pytest.fixture(scope="module")
def rich(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Stories clean and noisy, two judges of relevance, options of a user's own."""
    root = tmp_path_factory.mktemp("vope")
    own = root / "own"
    own.mkdir()
    with serve(lambda body: relevance(body) if "second" in body["model"] or "first" in body["model"] else "") as url:
        judges = ", ".join(
            f"{{name: llm, model: {name}, prompt: vope_relevance, url: '{url}'}}" for name in ("first", "second")
        )
        (own / "mine.yaml").write_text(
            f"include: {task_folder()}/hedge_vope/_hedge_vope_yaml\ntask: mine\n"
            "reasoning_tags: [['<think>', '</think>']]\n"
            f"hedge_overrides:\n  prompt: vope/writing\n"
            f"  judge: {{name: vope, parsing: official, relevance: [{judges}]}}\n",
            "utf-8",
        )
        plan = "n=3,baseline_temperature=0.1"
        return run_model(root, hesitant, "mine", "--include_path", str(own), plan=plan)


@pytest.mark.slow
@pytest.mark.framework
def test_the_share_of_stories_tells_hallucinated_objects(rich: Run) -> None:
    cells = rich.values("mine")
    # A model that affirms everything: Hal-D is CHAIR_i, and nothing is imagined.
    assert cells["hal_d,objects"] == cells["chair_i,objects"] == pytest.approx(4 / 13)
    assert cells["hal_i,objects"] == "undefined: the model denies no object"
    assert cells["exp,objects"] == 0.0
    few = "undefined: only 4 of 13 objects are hallucinated; an AUROC needs 5 of each class"
    for score in ("radflag", "vase"):
        assert cells[f"object_{score}_auroc,objects"] == few
    # All stories agree, with the object or without it: entropy cannot tell.
    assert cells["object_se_auroc,objects"] == "undefined: every object has the same score"


@pytest.mark.slow
@pytest.mark.framework
def test_reasoning_is_no_story_and_no_reply(rich: Run) -> None:
    [file] = (rich.output / "hedge_runs").glob("run-*mine*")
    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()[1:-1]]  # between header and closing line
    words = {entry["word"] for row in rows for entry in row["verdict"]["objects"]}
    assert "elephant" not in words
    assert {entry["reply"] for row in rows for entry in row["verdict"]["objects"]} == {"Yes"}
    assert [row["label"] for row in rows] == [1, 1, 1, 1]
    # Both stages are in the record, so that everything can be read again without a model.
    sets = [AnswerSet.read(row) for row in rows]
    assert all(len(a.follow_ups) == len(row["verdict"]["objects"]) for a, row in zip(sets, rows, strict=True))


@pytest.mark.slow
@pytest.mark.framework
def test_two_judges_rate_absent_objects_with_the_image(rich: Run) -> None:
    settings = rich.results["configs"]["mine"]["hedge"]["documents"]["judge"]
    assert settings["parsing"] == "official"
    assert [judge["model"] for judge in settings["relevance"]] == ["first", "second"]


@pytest.mark.slow
@pytest.mark.framework
def test_the_command_lays_out_tables(rich: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["paper", "vope", str(rich.output)]) == 0
    text = capsys.readouterr().out
    assert "30.8" in text  # 4 of 13
    assert "the model denies no object" in text
    assert "by relevance" in text
    assert main(["paper", "vope", str(rich.output), "--json"]) == 0
    cells = {number["measure"]: number["value"] for number in json.loads(capsys.readouterr().out)["numbers"]}
    assert cells["hal_d"] == pytest.approx(4 / 13)
    assert cells["parsers_differ"] == 0
    assert [cells[f"relevance_hallucinated_{score}"] for score in (1, 2, 3)] == [0, 0, 4]
    assert (cells["relevance_hallucinated"], cells["relevance_imagined"], cells["relevance_unrated"]) == (3, None, 0)
    # One judge says 3 four times, the other once 2: chance would do as well.
    assert cells["relevance_kappa_linear"] == pytest.approx(0.0)


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


def test_another_judge_is_refused_by_name() -> None:
    config = {"task": "mine", "hedge": {"prompt": "vope/writing", "judge": "rule"}}
    with pytest.raises(ConfigError, match="mine: the judge must be 'vope', got 'rule'"):
        VopeTask(config)


@pytest.mark.parametrize(
    ("given", "models"),
    [
        ("rule", []),
        ("llm:model=a", []),
        ("llm:model=a,prompt=vope_relevance", ["a"]),
        (json.dumps([{"name": "llm", "model": name, "prompt": "vope_relevance"} for name in "ab"]), ["a", "b"]),
        ('["rule", {"name": "llm", "model": "a", "prompt": "vope_relevance"}]', []),
    ],
)
def test_the_judge_from_the_environment_rates_relevance_or_is_not_asked(
    given: str, models: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEDGE_JUDGE", given)
    judge = VopeTask.judge_of(
        object.__new__(VopeTask), DocumentSettings(prompt="vope/writing", judge={"name": "vope"}), "mine"
    )
    assert [one.model.name for one in judge.relevance] == models


def test_an_official_set_that_is_not_built_says_how_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEDGE_DATA_DIR", str(tmp_path))
    config = {
        "task": "mine",
        "dataset_path": "qqwsad5/VOPE",
        "test_split": "test",
        "metric_list": [],
        "filter_list": [],
    }
    documents = {"prompt": "vope/writing", "judge": "vope"}
    with pytest.raises(DataError, match="build the set with `hedge data vope`"):
        VopeTask({**config, "hedge": documents})
