"""A leaderboard's repository, its workflow run step by step on one made here, and entries in the formats of others."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from finished_runs import finished_run, suite_run
from once import programs

from hedge_tasks.cli import main
from hedge_tasks.errors import DataError
from hedge_tasks.leaderboard import check, make_submission, read_submission, write_submission
from hedge_tasks.leaderboard.export import as_lmms_eval, as_model_index
from hedge_tasks.leaderboard.repository import commands_for, committed_at, make_repository, merged_in, place_of
from hedge_tasks.leaderboard.submission import digest_of
from hedge_tasks.report.results import read_results
from hedge_tasks.runs.run_files import save_run

GIT = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
PIP = {"PIP_NO_DEPS": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}  # what is needed is here: looking takes 5 s a time
GIT |= {f"GIT_{who}_{what}": "me@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def sh(command: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """As a runner of GitHub runs a step: `bash -e`, with pipefail. `hedge` and `python` are forks."""
    path = f"{programs()}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    own = folder.parent / f"{folder.name}-runner"
    own.mkdir(exist_ok=True)
    given = {
        **os.environ,
        **GIT,
        **PIP,
        "RUNNER_TEMP": str(own),
        "PATH": path,
        "PYTHONPATH": os.pathsep.join(sys.path),
        **environment,
    }
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", command],
        cwd=folder,
        env=given,
        capture_output=True,
        text=True,
        timeout=300,
    )


def git(folder: Path, *arguments: str) -> str:
    done = sh(shlex.join(["git", *arguments]), folder)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("leaderboard") / "board"
    assert main(["leaderboard", "init", str(folder), "--title", "Ours"]) == 0
    git(folder, "init", "--quiet", "--initial-branch", "main")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "Begin")
    return folder


def workflow(repository: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((repository / ".github/workflows/leaderboard.yml").read_text("utf-8"))
    return found


def run_job(repository: Path, job: str, base: str = "") -> list[tuple[str, subprocess.CompletedProcess[str]]]:
    """The `run:` steps of a job, in order, until one fails."""
    done = []
    for step in workflow(repository)["jobs"][job]["steps"]:
        if "run" not in step:
            continue
        environment = {
            name: value.replace("${{ github.event.pull_request.base.sha }}", base)
            for name, value in step.get("env", {}).items()
        }
        assert not any("${{" in text for text in (step["run"], *environment.values()))
        done.append((step["name"], sh(step["run"], repository, **environment)))
        if done[-1][1].returncode:
            break
    return done


def test_the_workflow_gives_strangers_nothing(repository: Path) -> None:
    text = (repository / ".github/workflows/leaderboard.yml").read_text("utf-8")
    found = workflow(repository)
    assert set(found[True]) == {"pull_request", "push", "workflow_dispatch"}  # YAML reads `on` as true
    assert found["permissions"] == {}
    jobs = found["jobs"]
    assert {name: job["permissions"] for name, job in jobs.items()} == {
        "validate": {"contents": "read"},
        "build": {"contents": "read"},
        "publish": {"pages": "write", "id-token": "write"},
    }
    assert jobs["validate"]["if"] == "github.event_name == 'pull_request'"
    assert jobs["build"]["if"] == "github.event_name != 'pull_request'"
    assert jobs["publish"]["needs"] == "build"  # skipped where that is
    assert not any("run" in step for step in jobs["publish"]["steps"])
    assert "secrets." not in text
    assert not re.search(r"^\s*pull_request_target", text, re.MULTILINE)
    steps = [step for job in jobs.values() for step in job["steps"]]
    assert all(re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40}", step["uses"]) for step in steps if "uses" in step)
    assert all(step["with"]["persist-credentials"] is False for step in steps if "checkout" in step.get("uses", ""))
    # Nothing that a stranger may choose, such as a branch's or a file's name, is put into a script.
    assert not any("${{" in step["run"] for step in steps if "run" in step)


@pytest.mark.slow
def test_the_workflow_runs_end_to_end(repository: Path, tmp_path: Path) -> None:
    run = save_run(finished_run(24, seed=1, model="org/model"), tmp_path)
    code = main(["leaderboard", "submit", str(run), "--out", str(repository), "--weights", "open", "--parameters", "7"])
    assert code == 0
    [entry] = (repository / "entries").glob("*.json")
    commands = commands_for(entry, read_submission(entry))
    base = git(repository, "rev-parse", "main")
    # What the command told to do, but for the push and the pull request itself.
    told = sh("\n".join(commands[:-2]), tmp_path)
    assert told.returncode == 0, told.stderr
    steps = run_job(repository, "validate", base)
    assert [name for name, _ in steps] == [
        "Only new entries beside entries",
        "Take the rules from the base",
        "Install",
        "Validate what is new",
        "Build with it",
    ]
    assert [step.returncode for _, step in steps] == [0] * 5, steps[-1][1].stderr
    assert f"{entry.name}: valid" in steps[3][1].stdout
    git(repository, "switch", "--quiet", "main")
    git(repository, "merge", "--quiet", "--no-edit", "-")
    steps = run_job(repository, "build")
    assert [step.returncode for _, step in steps] == [0, 0], steps[-1][1].stderr
    assert "org/model" in (repository / "site" / "index.html").read_text("utf-8")
    assert git(repository, "status", "--porcelain") == ""

    git(repository, "switch", "--quiet", "--create", "forged")
    forged = read_submission(entry)
    forged["clusterings"]["exact"]["aggregates"]["se"]["auroc"] = 0.99
    content = {**forged, "digest": digest_of(forged)}
    write_submission(repository / "entries" / "-x y'.json", content)
    git(repository, "add", ".")
    git(repository, "commit", "--quiet", "--message", "Better")
    [(name, step)] = run_job(repository, "validate", git(repository, "rev-parse", "main"))
    assert (name, step.returncode) == ("Only new entries beside entries", 1)
    git(repository, "mv", "entries/-x y'.json", "entries/better.json")
    git(repository, "commit", "--quiet", "--message", "Better named")
    name, step = run_job(repository, "validate", git(repository, "rev-parse", "main"))[-1]
    assert (name, step.returncode != 0) == ("Validate what is new", True)
    assert "auroc: stated 0.99" in step.stdout
    (repository / "requirements.txt").write_text("evil\n", "utf-8")
    git(repository, "commit", "--quiet", "--all", "--message", "And this")
    only = next(s for s in workflow(repository)["jobs"]["validate"]["steps"] if s.get("name", "").startswith("Only"))
    refused = sh(only["run"], repository, BASE=git(repository, "rev-parse", "main"))
    assert refused.returncode == 1
    assert "requirements.txt" in refused.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("git rm --quiet entries/theirs.json", "entries/theirs.json"),
        ("echo '{}' > entries/theirs.json", "entries/theirs.json"),
        ("git mv entries/theirs.json entries/mine.json", "entries/theirs.json"),
        ("git mv manifests/t.json entries/t.json", "manifests/t.json"),
        ("git mv entries/theirs.json old.json", "old.json"),
        ("cp entries/theirs.json entries/mine.json; git rm --quiet manifests/t.json", "manifests/t.json"),
        (
            "for name in changed not-new entries-changed; do ln -s /dev/null $name; done; git rm --quiet entries/*",
            "entries/theirs.json",
        ),
    ],
    ids=[
        "removed",
        "changed",
        "renamed",
        "a manifest made an entry",
        "moved away",
        "a manifest removed",
        "notes to null",
    ],
)
def test_a_pull_request_leaves_what_is_there_alone(tmp_path: Path, command: str, named: str) -> None:
    board = tmp_path / "board"
    assert main(["leaderboard", "init", str(board), "--title", "Ours"]) == 0
    (board / "entries").mkdir(exist_ok=True)
    (board / "entries" / "theirs.json").write_text('{"a": 1, "b": 2}', "utf-8")
    (board / "manifests" / "t.json").write_text('{"documents": [1, 2, 3]}', "utf-8")
    git(board, "init", "--quiet", "--initial-branch", "main")
    git(board, "add", ".")
    git(board, "commit", "--quiet", "--message", "Begin")
    git(board, "switch", "--quiet", "--create", "mine")
    assert sh(command, board).returncode == 0
    git(board, "add", "--all", ".")
    git(board, "commit", "--quiet", "--message", "Mine")
    [(name, step)] = run_job(board, "validate", git(board, "rev-parse", "main"))
    assert (name, step.returncode) == ("Only new entries beside entries", 1)
    assert named in step.stderr


@pytest.mark.slow
def test_the_rules_are_those_of_the_base(tmp_path: Path) -> None:
    board = tmp_path / "board"
    assert main(["leaderboard", "init", str(board), "--title", "Ours"]) == 0
    git(board, "init", "--quiet", "--initial-branch", "main")
    git(board, "add", ".")
    git(board, "commit", "--quiet", "--message", "Begin")
    git(board, "switch", "--quiet", "--create", "mine")
    (board / "requirements.txt").write_text("evil\n", "utf-8")
    git(board, "commit", "--quiet", "--all", "--message", "Mine")
    steps = {s["name"]: s for s in workflow(board)["jobs"]["validate"]["steps"] if "run" in s}
    assert sh(steps["Take the rules from the base"]["run"], board, BASE="main").returncode == 0
    assert "evil" not in (tmp_path / "board-runner" / "base" / "requirements.txt").read_text("utf-8")
    assert "$RUNNER_TEMP/base/requirements.txt" in steps["Install"]["run"]
    (board / "pip.py").write_text("raise SystemExit('of the pull request')\n", "utf-8")
    told = sh(steps["Install"]["run"].partition(" install ")[0] + " --version", board)
    assert told.stdout.startswith("pip "), told.stderr
    assert all(
        "$RUNNER_TEMP/base/manifests" in steps[name]["run"] for name in ("Validate what is new", "Build with it")
    )


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine", "utf-8")
    with pytest.raises(DataError, match="not empty"):
        make_repository(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["notes.txt"]


def test_where_an_entry_is_written_and_what_is_told(tmp_path: Path) -> None:
    submission = make_submission(finished_run(8), name="it's; rm -rf / $(x)")
    assert place_of(tmp_path / "mine.json", submission) == tmp_path / "mine.json"
    place = place_of(tmp_path, submission)
    assert (place.parent, place.suffix) == (tmp_path, ".json")
    assert re.fullmatch(r"hedge-x-it-s-rm-rf-x-[0-9a-f]{8}\.json", place.name)
    (tmp_path / "entries").mkdir()
    assert place_of(tmp_path, submission).parent == tmp_path / "entries"
    assert commands_for(place, submission)[:2] == [
        "git clone YOUR-FORK leaderboard",
        f"cp {place} leaderboard/entries/{place.name}",
    ]
    title = "Entry: it's; rm -rf / $(x) on hedge_x"
    assert [shlex.split(line)[3] for line in commands_for(place, submission) if line.startswith("git commit")] == [
        title
    ]


SUITE = make_submission(suite_run(40, model="hedge_hf|pretrained=org/model"), texts=True, url="https://example.org/m")


@pytest.mark.slow
def test_a_model_card_is_read_by_the_hubs_library() -> None:
    from huggingface_hub import ModelCard

    card = ModelCard(as_model_index(SUITE, check(SUITE)) + "\n# A model\n")
    assert card.data.model_name == SUITE["entry"]["name"]
    found = {(one.metric_type, one.metric_name): one for one in card.data.eval_results}
    f1 = found["f1", "F1"]
    assert f1.metric_value == SUITE["suite"]["f1"]["value"]
    assert f1.metric_args["low"] == SUITE["suite"]["f1"]["low"]
    assert f1.metric_args["checked"] == "recomputed"
    assert f1.source_url == "https://example.org/m"
    assert (f1.task_type, f1.dataset_name) == ("visual-question-answering", "own_medhallu")
    se = found["roc_auc", "ROC-AUC of SE (verdict)"]
    assert se.metric_value == SUITE["clusterings"]["verdict"]["aggregates"]["se"]["auroc"]
    assert found["hallucination_rate", "hallucination rate"].metric_value == SUITE["summary"]["hallucination_rate"]


@pytest.mark.slow
def test_a_results_file_is_read_as_lmms_evals_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from lmms_eval.utils import make_table

    write_submission(tmp_path / "s.json", SUITE)
    out = tmp_path / "x_results.json"
    code = main(["leaderboard", "export", str(tmp_path / "s.json"), "--format", "lmms-eval", "--out", str(out)])
    assert code == 0
    read = read_results(out)
    assert read is not None
    rows = {(row.filter, row.metric): row for row in read.rows}
    se = SUITE["clusterings"]["verdict"]["aggregates"]["se"]
    assert (rows["verdict", "se_auroc"].value, rows["verdict", "se_auroc"].stderr) == (se["auroc"], se["stderr"])
    assert rows["verdict", "f1"].higher_is_better is True
    assert rows["verdict", "hallucination_rate"].higher_is_better is False
    assert rows["verdict", "f1"].n == 40
    assert (read.facts["adapter"], read.facts["model_args"]) == ("hedge_hf", "pretrained=org/model")
    table = make_table(json.loads(out.read_text("utf-8")))
    assert re.search(
        rf"\|own_medhallu *\|verdict *\| *0\|f1 *\|↑ *\|{SUITE['suite']['f1']['value']:.4f} *\|± *\|", table
    )
    capsys.readouterr()
    forged = {**SUITE, "summary": {**SUITE["summary"], "hallucination_rate": 0.0}}
    write_submission(tmp_path / "f.json", {**forged, "digest": digest_of(forged)})
    assert main(["leaderboard", "export", str(tmp_path / "f.json"), "--format", "model-index"]) == 2
    assert "not valid: summary.hallucination_rate" in capsys.readouterr().err


def test_undefined_numbers_are_told_or_left_out() -> None:
    run = finished_run(12)
    sure = make_submission(type(run)(**{**vars(run), "answer_sets": tuple(a.with_label(0) for a in run.answer_sets)}))
    findings = check(sure)
    assert "roc_auc" not in as_model_index(sure, findings)
    told = json.loads(as_lmms_eval(sure, findings))["results"]["hedge_x"]
    assert told["se_auroc,exact"].startswith("undefined: no document is labelled hallucinated")


def test_who_was_first_follows_the_main_line_and_no_date(tmp_path: Path) -> None:
    board = tmp_path / "board"
    (board / "entries").mkdir(parents=True)
    git(board, "init", "--quiet", "--initial-branch", "main")

    def add(name: str, **environment: str) -> None:
        (board / "entries" / name).write_text(name, "utf-8")
        git(board, "add", ".")
        assert sh(f"git commit --quiet --message {shlex.quote(name)}", board, **environment).returncode == 0

    add("honest.json")
    git(board, "switch", "--quiet", "--create", "theirs")
    (board / "entries" / "0").write_text("a time?", "utf-8")
    add("zzz.json", GIT_COMMITTER_DATE="946684800 +0000", GIT_AUTHOR_DATE="946684800 +0000")
    git(board, "switch", "--quiet", "main")
    add("second.json")
    git(board, "merge", "--quiet", "--no-ff", "--no-edit", "theirs")
    order = merged_in(board / "entries")
    assert order["honest.json"] < order["second.json"] < order["zzz.json"] == order["0"]
    first, merged = (committed_at(board / "entries" / name) for name in ("honest.json", "zzz.json"))
    assert first is not None
    assert merged is not None
    assert merged >= first  # the merge's time, not the commit's
    assert merged_in(tmp_path) == {}
    assert committed_at(tmp_path / "nowhere.json") is None
