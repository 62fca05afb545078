"""Run files: what a finished run leaves for everything that comes after it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from finished_runs import run_text

from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.runs.run_files import FOLDER, Run, load_run, load_runs, save_run
from hedge_tasks.sampling import Answer, AnswerSet


def answer_set(i: int, text: str = "left\u2028 <b>") -> AnswerSet:
    answers = (Answer("left", -0.5, 2), Answer("", -2.5, 0))
    return AnswerSet(f"q{i}", Answer(text, -0.25, 3), answers, answers, "which?", "left", i % 2, "image", "side")


def run(task: str = "hedge_demo", model: str = "m", created: str = "2026-01-02T03:04:05.000006+00:00") -> Run:
    verdicts = {"q0": {"judge": "rule 1", "reason": "equal"}}
    return Run(task, model, (answer_set(0), answer_set(1)), verdicts, {"sampling": {"n": 2}}, created)


def test_a_run_comes_back_as_it_was_saved(tmp_path: Path) -> None:
    path = save_run(run(), tmp_path / FOLDER)
    assert load_run(tmp_path) == replace(run(), path=path)
    assert load_run(tmp_path / FOLDER) == load_run(path) == load_run(tmp_path)


def test_the_newest_run_of_each_task_and_model_counts(tmp_path: Path) -> None:
    save_run(run(created="2026-01-02T03:04:05.000007+00:00"), tmp_path)
    save_run(run(), tmp_path)
    save_run(run("hedge_vqarad"), tmp_path)
    assert [(r.task, r.created[-12:-6]) for r in load_runs(tmp_path)] == [
        ("hedge_demo", "000007"),
        ("hedge_vqarad", "000006"),
    ]
    assert load_run(tmp_path, "hedge_vqarad").task == "hedge_vqarad"
    with pytest.raises(DataError, match=r"holds 2 runs.*hedge_demo of m.*hedge_vqarad of m"):
        load_run(tmp_path)
    with pytest.raises(ConfigError, match="hedge_vqarad"):
        load_run(tmp_path, "hedge_vqarat")
    save_run(run(model="n"), tmp_path)
    assert [r.model for r in load_runs(tmp_path)] == ["m", "n", "m"]


def test_runs_of_other_draws_are_runs_of_their_own(tmp_path: Path) -> None:
    seeds = [replace(run(created=f"2026-01-02T03:04:0{i}+00:00"), settings={"sampling": {"seed": i}}) for i in (2, 1)]
    for of_seed in (*seeds, replace(seeds[0], created="2026-01-02T03:04:09+00:00")):
        save_run(of_seed, tmp_path)
    assert [r.created[17:19] for r in load_runs(tmp_path)] == ["01", "09"]
    with pytest.raises(DataError, match="holds 2 runs"):
        load_run(tmp_path)


def test_plain_answer_sets_are_a_run_without_settings(tmp_path: Path) -> None:
    file = tmp_path / "answers.jsonl"
    file.write_text("\n".join([answer_set(0).to_json(), "", answer_set(1).to_json()]), "utf-8")
    assert load_run(file) == Run("answers", "", (answer_set(0), answer_set(1)), path=file)


HEADER = {"hedge_run": 2, "task": "t", "model": "m", "created": "", "settings": {}}


def sealed(*rows: dict[str, object], **header: object) -> str:
    return run_text({**HEADER, **header}, [{"id": "q", **row} for row in rows])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no rows in it"),
        ("{", r"x.jsonl:1: not valid JSON"),
        ("[" * 100_000, r"x.jsonl:1: not valid JSON"),
        ("[1]", r"x.jsonl:1: expected a JSON object, got list"),
        (sealed(hedge_run=3), "x.jsonl:1: hedge_run: expected 2, got 3"),
        (sealed(settings=1), "x.jsonl:1: settings: expected an object, got 1"),
        (sealed({}), r"x.jsonl:2: baseline: missing"),
        *(
            (sealed({**answer_set(0).to_dict(), "verdict": verdict}), "x.jsonl:2: verdict")
            for verdict in (5, ["x"], {"reason": 5}, {"judge": {}}, {"objects": 1})
        ),
        (
            answer_set(0).to_json() + '\n{"id": "q0", "answers": ["a"]}',
            "another row has the id 'q0' and differs: .*x.jsonl:1",
        ),
    ],
)
def test_what_is_no_run_is_refused_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "x.jsonl"
    file.write_text(text, "utf-8")
    with pytest.raises(DataError, match=message):
        load_run(file)


def test_a_folder_without_runs_and_a_wrong_path_are_said_so(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no finished run in it"):
        load_runs(tmp_path)
    with pytest.raises(DataError, match="no such file or folder"):
        load_runs(tmp_path / "nowhere")


def test_what_another_method_was_tuned_on_is_counted_by_this_one() -> None:
    answers = AnswerSet("q", Answer("a"), (Answer("a"),), (), label=1).with_choice(True, {})
    [scores] = Scorer.build("exact", "exact").score([answers])
    assert scores.reported_label == 1


def test_documents_that_share_an_id_are_no_run(tmp_path: Path) -> None:
    """Their verdicts and scores would be mixed up."""
    twice = (AnswerSet("7", Answer("yes"), ()), AnswerSet("7", Answer("no"), ()))
    with pytest.raises(DataError, match=r"run-.*share the id '7'"):
        load_run(save_run(Run("t", "m", twice, {}, {}, created="2026"), tmp_path))
