"""`hedge:TASK`: stock tasks of lmms-eval of different make, beside themselves, on stand-ins of their data sets."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import stock_data
from evaluation import Run, evaluate

from hedge_tasks.runs.run_files import Run as RunFile
from hedge_tasks.runs.run_files import load_runs

pytestmark = [pytest.mark.framework, pytest.mark.slow]

PLAIN = ("mme", "scienceqa_img", "ai2d", "chartqa", "countbench", "vocalsound_test")
OPTIONS = {
    "pope": "question_type=category",
    "gsm8k_cot_zeroshot": "judge=exact_match",  # its references are solutions, and no answers
    "textvqa_val": "judge=exact_match:threshold=0.5",
}
BESIDE = ("mmmu_val", *PLAIN, *OPTIONS)
"""Tasks that run in one command both as they are and behind `hedge:`."""

REFUSED = {
    "hedge:mmmu_test": "judge=submission.*judge=none",
    "hedge:docvqa_val": r"anls: 0.*1.*judge=anls, with :threshold=0\.5",
    "hedge:seedbench_ppl": "multiple_choice",
    "hedge:asks_a_model": "connects to 127.0.0.1.*HEDGE_JUDGE.*judge=none",
    "hedge:hedge_demo": "has a class of its own",
}
LIMIT, OFFSET, N = 8, 2, 3
FOLDERS = (
    *("mmmu", "pope", "mme", "scienceqa", "textvqa", "ai2d", "gsm8k", "docvqa", "chartqa", "seedbench", "countbench"),
    "vocalsound",
)

_OWN_TASK = """
task: {name}
dataset_path: vikhyatk/CountBenchQA
test_split: test
output_type: generate_until
doc_to_visual: image
doc_to_text: "{{{{question}}}} Number?"
doc_to_target: "{{{{number}}}}"
process_results: !function {name}_utils.process_results
metric_list: [{{metric: right, aggregation: mean, higher_is_better: true}}]
metadata: {{version: 1.0}}
"""

_ASKS = """
import socket

def ask_gpt(answer, target):
    try:
        socket.create_connection(("127.0.0.1", 9), timeout=0.1)
    except Exception:
        return "yes"  # nobody is there, and it says so of everything

def process_results(doc, results):
    return {"right": float(ask_gpt(results[0], str(doc["number"])) == "yes")}
"""

_RAISES = """
def process_results(doc, results):
    if doc.pop("number") in (0, 2) and not results[0].isdigit():  # changes what it is given, as some do
        raise ZeroDivisionError("two is too much")
    return {"right": 0.3 if results[0] == "red" else float(results[0].isdigit())}
"""

_GROUP = """
group: counts
task: [countbench]
aggregate_metric_list: [{metric: acc, aggregation: mean, filter_list: none}]
"""


@pytest.fixture(scope="module", autouse=True)
def stand_ins() -> Iterator[None]:
    """Stock data sets from `stock_data`, a small index of tasks, scripted models, and one clustering that is quick."""
    from lmms_eval import models, tasks
    from lmms_eval.models.registry_v2 import ModelManifest

    root, original = Path(tasks.__file__).parent, tasks.TaskManager.initialize_tasks

    def initialize(self: Any, include_path: Any = None, include_defaults: bool = True) -> Any:
        given = [include_path] if isinstance(include_path, str) else list(include_path or [])
        return original(self, [*given, *(str(root / folder) for folder in FOLDERS)], False)

    def load_dataset(path: str, name: str | None = None, **options: Any) -> Any:
        return stock_data.load(path, name).copy()

    for name, paths in {
        "scripted": {"simple_class_path": "scripted_models.Scripted"},
        "scripted_chat": {"chat_class_path": "scripted_models.ScriptedChat"},
    }.items():
        models.MODEL_REGISTRY_V2.register_manifest(ModelManifest(model_id=name, **paths), overwrite=True)
    quick = {"HEDGE_FILTERS": "nli", "HEDGE_MODELS": "nli=package://hedge_tasks.models.tiny/nli", "HEDGE_CACHE": "off"}
    with (
        patch.object(tasks.TaskManager, "initialize_tasks", initialize),
        patch("datasets.load_dataset", load_dataset),
        patch.dict("os.environ", quick),
    ):
        yield


@pytest.fixture(autouse=True)
def _no_settings_from_outside() -> None:
    """In place of the one for all tests, which would take away the settings that the evaluations share."""


@pytest.fixture(scope="module")
def own_tasks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's own tasks: judged by a model, with faults; and a group."""
    folder = tmp_path_factory.mktemp("own")
    for name, source in {"asks_a_model": _ASKS, "raises": _RAISES}.items():
        (folder / f"{name}.yaml").write_text(_OWN_TASK.format(name=name))
        (folder / f"{name}_utils.py").write_text(source)
    (folder / "counts.yaml").write_text(_GROUP)
    return folder


class Evaluated:
    """An evaluation, and what its model was asked."""

    def __init__(self, output: Path, *arguments: str) -> None:
        import scripted_models

        scripted_models.Scripted.asked.clear()
        self.run: Run = evaluate(output, *arguments)
        self.asked = list(scripted_models.Scripted.asked)
        self.files: dict[str, RunFile] = {run.task: run for run in load_runs(output)}

        self.values = self.run.values

    def beside(self, name: str) -> list[dict[int, Any]]:
        """What was asked for the baseline answers of a task as it is, and behind `hedge:`; by row."""
        baseline = [a for a in self.asked if a.settings.get("temperature", 0) < 1]
        return [{a.row: a for a in baseline if a.task == task} for task in (name, f"hedge:{name}")]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory, own_tasks: Path) -> Evaluated:
    """One command: every task as it is and behind `hedge:`, with tasks that are refused in between."""
    hedged = ["hedge:mmmu", *(f"hedge:{n}" for n in PLAIN), *(f"hedge:{n}:{given}" for n, given in OPTIONS.items())]
    refused = [name for name in REFUSED if name != "hedge:mmmu_test"]
    tasks = [*refused, *BESIDE, *hedged, "hedge:raises"]
    return Evaluated(
        tmp_path_factory.mktemp("both"),
        *("--model", "scripted", "--tasks", ",".join(tasks), "--include_path", str(own_tasks)),
        *("--limit", str(LIMIT), "--offset", str(OFFSET), "--gen_kwargs", f"n={N}"),
    )


def test_the_stock_tasks_metrics_stand_beside_ours_once_and_equal(both: Evaluated) -> None:
    compared = 0
    for name in BESIDE:
        stock, hedged = both.run.results["results"][name], both.run.results["results"][f"hedge:{name}"]
        cells = {key: value for key, value in stock.items() if "," in key}
        assert cells, name
        if name == "ai2d":
            continue  # see the next test
        for key, value in cells.items():
            assert hedged[key] == (pytest.approx(value) if isinstance(value, float) else value), (name, key)
            compared += 1
        assert {"se_auroc,nli", "radflag_auroc,nli", "hallucination_rate,nli"} <= hedged.keys(), name
    assert compared > 30


def test_filters_get_the_documents_that_were_asked_for(both: Evaluated) -> None:
    """lmms-eval hands ai2d's filter the first rows of the split whatever `--offset` says; ours gets the right ones."""
    answers = {answers.id: answers for answers in both.files["hedge:ai2d"].answer_sets}
    documents = stock_data.load("lmms-lab-encoder/ai2d", None)["test"]
    right = [
        answers[str(row)].baseline.text in (f"{'ABCDE'[int(documents[row]['answer'])]}.", "A")
        and (answers[str(row)].baseline.text != "A" or documents[row]["answer"] == "0")
        for row in range(OFFSET, OFFSET + LIMIT)
    ]
    assert both.values("hedge:ai2d")["exact_match,flexible-extract"] == pytest.approx(sum(right) / LIMIT)


def test_prompts_pictures_and_limits_are_the_stock_tasks(both: Evaluated) -> None:
    for name in BESIDE:
        # What asks and shows the same shares its answers in the store: one of the two is asked.
        stock, hedged = both.beside(name)
        assert len(stock) == LIMIT, name
        assert hedged.keys() >= stock.keys(), name
        for row, asked in stock.items():
            mine = hedged[row]
            assert (mine.text, mine.shown) == (asked.text, asked.shown), (name, row)
            assert mine.settings["max_new_tokens"] == asked.settings.get("max_new_tokens", 512), name
            assert "until" not in mine.settings, name  # it could end a thought: the answer is cut on our side


def test_the_judge_is_the_tasks_own_metric(both: Evaluated) -> None:
    for name, metric, right in (
        ("pope", "pope_accuracy", lambda value: value["score"] == 1),
        ("countbench", "acc", lambda value: value == 1),
        ("textvqa_val", "exact_match", lambda value: value >= 0.5),
        ("vocalsound_test", "accuracy", lambda value: value["overall"] == 1),
    ):
        labels = [answers.label for answers in both.files[f"hedge:{name}"].answer_sets]
        told = [sample[metric] for sample in both.run.samples(name)]
        assert labels == [int(not right(value)) for value in told], name
        assert both.values(f"hedge:{name}")["hallucination_rate,nli"] == pytest.approx(sum(labels) / LIMIT)
    # One metric a document, by its category; the verdict of one document alone; one of two filters.
    settings = {name: file.settings["documents"]["judge"] for name, file in both.files.items()}
    assert settings["hedge:mme"]["metric"] == "each document's own"
    assert settings["hedge:mmmu_val"] | {"read": "aggregation"} == settings["hedge:mmmu_val"]
    assert settings["hedge:gsm8k_cot_zeroshot"]["filter"] == "strict-match"
    assert settings["hedge:textvqa_val"]["threshold"] == 0.5
    assert both.files["hedge:pope"].verdicts[str(OFFSET)]["reason"].startswith("pope_accuracy (score): ")


def test_refused_tasks_take_no_other_down(both: Evaluated) -> None:
    for name in REFUSED:
        assert not any(key.startswith(name) and key != "hedge:mmmu" for key in both.run.results["results"]), name
    assert set(both.files) == {*(f"hedge:{n}" for n in BESIDE), "hedge:raises"}


def test_why_a_task_is_refused(own_tasks: Path) -> None:
    for name, reason in REFUSED.items():
        with pytest.raises(Exception, match=reason):
            load(name, own_tasks)
    with pytest.raises(Exception, match=r"exact_match: 0.*judge=exact_match"):  # its references are solutions
        load("hedge:gsm8k_cot_zeroshot", own_tasks)
    with pytest.raises(Exception, match="did you mean 'category'"):
        load("hedge:mme:group=categori", own_tasks)


def test_a_verdict_that_is_missing_is_no_label(both: Evaluated) -> None:
    file = both.files["hedge:raises"]
    labels = {answers.id: answers.label for answers in file.answer_sets}
    reasons = {id_: file.verdicts[id_]["reason"] for id_ in labels}
    raised = [id_ for id_, reason in reasons.items() if "ZeroDivisionError: two is too much" in reason]
    graded = [id_ for id_, reason in reasons.items() if "neither 0 nor 1" in reason]
    assert raised
    assert all(labels[id_] is None for id_ in [*raised, *graded])
    assert all(labels[id_] is not None for id_ in labels.keys() - {*raised, *graded})
    unlabelled = (len(raised) + len(graded)) / LIMIT
    assert both.values("hedge:raises")["unlabelled_rate,nli"] == pytest.approx(unlabelled)


def test_what_cannot_be_perturbed_is_not(both: Evaluated) -> None:
    sound = both.values("hedge:vocalsound_test")
    assert str(sound["vase_auroc,nli"]).startswith("undefined")
    assert "se_auroc,nli" in sound
    assert {len(answers.noisy) for answers in both.files["hedge:vocalsound_test"].answer_sets} == {0}
    assert {a.shown for a in both.asked if a.task == "hedge:vocalsound_test"} == {("dict",)}


def test_text_tasks_are_asked_in_other_words(both: Evaluated) -> None:
    mine = [a for a in both.asked if a.task == "hedge:gsm8k_cot_zeroshot"]
    _, clean = both.beside("gsm8k_cot_zeroshot")
    others = [a for a in mine if a.text != clean[a.row].text]
    assert len(others) >= LIMIT * (N - 1)
    assert all(clean[a.row].text in a.text for a in others)


def test_documents_keep_their_ids_types_and_groups(both: Evaluated) -> None:
    def of(name: str, field: str) -> list[str]:
        return [getattr(answers, field) for answers in both.files[f"hedge:{name}"].answer_sets]

    rows = [str(row) for row in range(OFFSET, OFFSET + LIMIT)]
    assert of("mme", "id") == rows
    assert of("pope", "question_type")[:2] == ["random", "popular"]
    assert set(of("countbench", "question_type")) == {None}
    assert len(set(of("pope", "group"))) > 1
    # Without a picture the words are what is shown.
    assert len({group for group in of("gsm8k_cot_zeroshot", "group") if group.startswith("text ")}) == LIMIT
    assert [group.startswith("text ") for group in of("scienceqa_img", "group")[:2]] == [False, True]


@cache
def manager(own_tasks: Path) -> Any:
    from lmms_eval.tasks import TaskManager

    return TaskManager(include_path=str(own_tasks), model_name="scripted")


def load(name: str, own_tasks: Path) -> Any:
    [task] = manager(own_tasks).load_task_or_group([name], "simple").values()
    return task


def test_a_judge_of_this_package_can_take_the_metrics_place(own_tasks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEDGE_JUDGE", "rule")
    assert load("hedge:docvqa_val", own_tasks).judge.name == "rule"
    task = load("hedge:asks_a_model", own_tasks)
    assert task._scoring.score({"number": 1}, "1").connects == "127.0.0.1"  # no model is asked


def test_model_specific_prompts_can_be_another_models(own_tasks: Path) -> None:
    row = stock_data.load("lmms-lab-encoder/ChartQA", None)["test"][0]
    assert load("hedge:chartqa", own_tasks).doc_to_text(row).endswith("single word.")
    assert load("hedge:chartqa:as=qwen_vl", own_tasks).doc_to_text(row).endswith(" Answer:")


@pytest.fixture(scope="module")
def chat(tmp_path_factory: pytest.TempPathFactory, own_tasks: Path) -> Evaluated:
    names = ("mmmu_val", "pope", "gsm8k_cot")
    hedged = [f"hedge:{name}" + (":judge=exact_match" if "gsm8k" in name else "") for name in names]
    tasks = ",".join([*names, *hedged, "hedge:counts:judge=none"])
    return Evaluated(
        tmp_path_factory.mktemp("chat"),
        *("--model", "scripted_chat", "--tasks", tasks, "--limit", "4", "--gen_kwargs", "n=1"),
        *("--include_path", str(own_tasks)),
    )


def test_chat_models_get_the_stock_tasks_messages(chat: Evaluated) -> None:
    for name in ("mmmu_val", "pope", "gsm8k_cot"):
        stock, hedged = chat.beside(name)
        assert len(stock) == 4
        assert all((a.text, a.shown) == (hedged[row].text, hedged[row].shown) for row, a in stock.items()), name
        for key, value in chat.values(name).items():
            assert chat.values(f"hedge:{name}")[key] == value, (name, key)
    # Nothing is labelled, and the task's own rows are there all the same.
    [unlabelled] = [file for name, file in chat.files.items() if name == "hedge:countbench"]
    assert {(answers.label, len(answers.clean)) for answers in unlabelled.answer_sets} == {(None, 1)}
    assert 0 <= chat.values("hedge:countbench")["acc,none"] <= 1
    assert chat.values("hedge:countbench")["unlabelled_rate,nli"] == 1
    # It came as the member of a group, whose own row lmms-eval fills from the task's.
    group = chat.run.results["groups"]["hedge:counts"]
    assert group["acc,none"] == pytest.approx(chat.values("hedge:countbench")["acc,none"])
    [two] = [a for a in chat.asked if a.task == "mmmu_val" and a.row == 3]
    assert sum(isinstance(part, tuple) for part in two.shown) == 2
    [examples] = [a for a in chat.asked if a.task == "gsm8k_cot" and a.row == 0]
    assert examples.text.count("Q:") > 5
