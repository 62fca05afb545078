"""SHALE's tables: as they were printed, and out of finished runs beside them."""

from __future__ import annotations

import csv
import json
import random
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import REPOSITORY

from hedge_tasks.cli import main
from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.judging.config import verdict_record
from hedge_tasks.runs.model_names import named_like
from hedge_tasks.runs.relabel import cases_of, relabel
from hedge_tasks.runs.run_files import Run, save_run
from hedge_tasks.suites.shale.correlation import beside, correlations, faithfulness, read_scores
from hedge_tasks.suites.shale.items import (
    ALL_SCENARIOS,
    ASPECTS,
    CLEAN,
    IMAGE_SCENARIOS,
    NOISY_SCENARIOS,
    PERCEPTION,
    SCENARIOS,
    TASKS,
    controls_of,
)
from hedge_tasks.suites.shale.judge import ShaleJudge
from hedge_tasks.suites.shale.published import AVERAGE, TABLES, models, printed, published
from hedge_tasks.suites.shale.tables import COLUMNS, ModelTables, tables_of

# --- the transcription ------------------------------------------------------------------------------------------------


def test_every_number_of_the_paper_is_there() -> None:
    file = REPOSITORY.parent / "shared" / "papers" / "shale.txt"
    if not file.is_file():
        pytest.skip("the paper's text (../shared/papers/shale.txt) is not here")
    text = re.sub(r"</?u>", "", file.read_text("utf-8"))
    for table in TABLES:
        part = text[text.index(f"Table {table}: Evaluation") :]
        of_paper = re.findall(r"^(\S[^\t\n]*)\t((?:\d\.\d{3}\t?)+)$", part, re.MULTILINE)
        of_paper = [(name, numbers) for name, numbers in of_paper if name != "Average"][:21]
        rows = printed(table)
        for (name, row), (printed_name, numbers) in zip(rows.items(), of_paper, strict=True):
            said = re.sub(r"\s*\[\d+\]", "", printed_name).replace("InterVL2", "InternVL2")
            assert said.lower() == name.lower()
            assert [f"{value:.3f}" for value in row.values()] == numbers.split("\t")


def test_the_tables_agree_with_each_other() -> None:
    """What makes a slip of the pen improbable, and says what the paper's averages are."""
    half = 0.0005 + 1e-9
    for model in models():
        by_type, closed, opened = printed(5)[model], printed(2)[model], printed(3)[model]
        assert by_type["discriminative"] == closed["clean"]
        assert abs(by_type["discriminative"] - (by_type["ynq"] + by_type["mcq"]) / 2) <= half
        assert abs(opened["clean"] - (by_type["ffq"] + by_type["ic"]) / 2) <= half
        assert by_type["generative"] == by_type["ffq"]
        assert abs(by_type["overall"] - (by_type["ynq"] + by_type["mcq"] + by_type["ffq"]) / 3) <= half
        # An aspect has 400 items, of all four types: no other pool gives these multiples and this mean.
        aspects = printed(6)[model].values()
        assert all(abs(value * 400 - round(value * 400)) <= 400 * half for value in aspects)
        assert abs(sum(aspects) / 12 - sum(by_type[task] for task in TASKS) / 4) < 0.02
        assert abs(printed(7)[model]["sports"] * 32 - round(printed(7)[model]["sports"] * 32)) <= 32 * half


def test_the_averages_are_the_papers() -> None:
    """The rows "Average" of Tables 2 and 3, which are not in the files."""
    closed = [0.400, 0.849, 0.840, 0.845, 0.816, 0.600, 0.792, 0.510, 0.481, 0.496, 0.445, 0.369, 0.668]
    assert [p.value for p in published(2, AVERAGE).values()] == pytest.approx(closed, abs=0.001)
    assert [p.value for p in published(3, AVERAGE).values()] == pytest.approx(
        [0.696, 0.668, 0.676, 0.578, 0.530, 0.711], abs=0.001
    )
    assert published(5, "Otter")["generative"].value == printed(3)["Otter"]["clean"]
    with pytest.raises(ConfigError, match="did you mean 'Otter'"):
        published(2, "Oter")
    with pytest.raises(ConfigError, match="table 4"):
        printed(4)


@pytest.mark.parametrize(
    ("model", "beside"),
    [
        ("hedge_vllm|model=deepseek-ai/deepseek-vl2", "DeepSeek-VL2"),
        ("hedge_vllm|model=deepseek-ai/deepseek-vl2-tiny", AVERAGE),
        ("hedge_hf|pretrained=OpenGVLab/InternVL3-14B-hf", "InternVL3-14B"),
        ("hedge_hf|pretrained=liuhaotian/llava-1.5-13b", "LLaVA-1.5-13B"),
        ("hedge_hf|pretrained=Qwen/Qwen2.5-VL-7B-Instruct", AVERAGE),
    ],
)
def test_a_model_of_the_paper_is_known_by_its_name(model: str, beside: str) -> None:
    assert (named_like(model, models()) or AVERAGE) == beside


# --- out of runs ------------------------------------------------------------------------------------------------------

Right = dict[tuple[str, str, str, int], "int | None"]
"""(task, scenario, aspect, number of the scene) -> right, wrong or no verdict."""


def answers_at_random(seed: int, scenes: int = 6) -> Right:
    choice = random.Random(seed)
    return {
        (task, scenario, aspect, scene): choice.choice((0, 1, 1, None))
        for task in TASKS
        for scenario in ALL_SCENARIOS
        for aspect in ASPECTS
        for scene in range(scenes)
        if choice.random() < 0.8
    }


def run_of(right: Right, task: str, **more: Any) -> Run:
    sets, verdicts, columns = [], {}, {}
    for (of, scenario, aspect, scene), said in right.items():
        id = f"{of}{aspect}{scene}-{scenario}"
        label = None if said is None else 1 - said
        sets.append(AnswerSet(id, Answer("x"), (Answer("x"),), label=label, group=f"{aspect}{scene}"))
        columns[id] = {"task": of, "scenario": scenario, "aspect": aspect, "pair": f"{of}{aspect}{scene}"}
        verdicts[id] = {"judge": "shale"}
    facts = {"model": "m", "answer_sets": tuple(sets), "verdicts": verdicts, "columns": columns, "created": "2026"}
    return Run(task, **{**facts, **more})


def share(right: Right, task: str, scenario: str) -> float:
    values = [r for (t, s, *_), r in right.items() if (t, s) == (task, scenario) and r is not None]
    return sum(values) / len(values)


def resistance(right: Right, tasks: tuple[str, ...], scenarios: tuple[str, ...]) -> float:
    rates = []
    for scenario in scenarios:
        clean = {(t, a, n) for (t, s, a, n), r in right.items() if s == CLEAN and r == 1 and t in tasks}
        noisy = [right[t, scenario, a, n] for t, a, n in clean if right.get((t, scenario, a, n)) is not None]
        rates.append(sum(r or 0 for r in noisy) / len(noisy))
    return sum(rates) / len(rates)


def controlled(right: Right, tasks: tuple[str, ...], scenarios: tuple[str, ...]) -> float:
    """An item is still right where it is in every form that it was asked in."""
    rates = []
    for scenario in scenarios:
        forms = (scenario, *controls_of(scenario))
        clean = {(t, a, n) for (t, s, a, n), r in right.items() if s == CLEAN and r == 1 and t in tasks}
        said = [[r for f in forms if (r := right.get((t, f, a, n))) is not None] for t, a, n in clean]
        rates.append(sum(all(one) for one in said if one) / sum(bool(one) for one in said))
    return sum(rates) / len(rates)


def expected(right: Right) -> dict[tuple[int, str], float]:
    """Every number, counted by hand."""
    closed, opened = ("ynq", "mcq"), ("ffq", "ic")
    cells = {(2, s): sum(share(right, t, s) for t in closed) / 2 for s in SCENARIOS}
    cells |= {(3, s): sum(share(right, t, s) for t in opened) / 2 for s in (CLEAN, *IMAGE_SCENARIOS)}
    cells |= {(2, "rr"): resistance(right, closed, NOISY_SCENARIOS)}
    cells |= {(3, "rr"): resistance(right, opened, IMAGE_SCENARIOS)}
    cells |= {(2, f"rr_{s}"): resistance(right, closed, (s,)) for s in NOISY_SCENARIOS}
    lied = ("syn", "pfx", "sty_p", "crp_p", "adv_p", "txt_p")
    cells |= {(2, "rr_controlled"): controlled(right, closed, lied)}
    cells |= {(2, f"rr_{s}_controlled"): controlled(right, closed, (s,)) for s in lied}
    cells |= {(2, f"rr_{c}"): resistance(right, closed, (c,)) for s in lied for c in controls_of(s)}
    cells |= {(3, f"rr_{s}"): resistance(right, opened, (s,)) for s in IMAGE_SCENARIOS}
    by_type = {task: share(right, task, CLEAN) for task in TASKS}
    cells |= {(5, task): value for task, value in by_type.items()}
    cells |= {(5, "discriminative"): cells[2, CLEAN], (5, "generative"): cells[3, CLEAN]}
    cells |= {(5, "overall"): sum(by_type[t] for t in ("ynq", "mcq", "ffq")) / 3}
    cells |= {(5, "all_types"): sum(by_type.values()) / 4}
    for aspect in ASPECTS:
        values = [r for (_, s, a, _), r in right.items() if (s, a) == (CLEAN, aspect) and r is not None]
        cells[6 if aspect in ASPECTS[:12] else 7, aspect] = sum(values) / len(values)
    return cells


def only(found: list[ModelTables]) -> ModelTables:
    [one] = found
    return one


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_all_cells_equal_those_that_are_counted_by_hand(seed: int) -> None:
    """Whether the items come in one run or in four."""
    right = answers_at_random(seed)
    together = only(tables_of([run_of(right, "all")]))
    apart = [run_of({k: v for k, v in right.items() if k[0] == task}, f"hedge_shale_{task}") for task in TASKS]
    for found in (together, only(tables_of(apart))):
        values = {(n, name): cell.value for n, cells in found.tables.items() for name, cell in cells.numbers.items()}
        assert values.pop((2, "blind")) is None
        assert values == pytest.approx(expected(right), abs=1e-12)
        unknown = sum(r is None for r in right.values())
        [rough, silent] = found.notes
        assert rough.startswith("intervals between fewer than 10 scenes are rough: type, existence, ")
        assert silent == f"{unknown} of {len(right)} answers have no verdict and are in no share"
    for n in TABLES:
        of_paper = list(printed(n)["Otter"])
        assert [pool.measure.name for pool in COLUMNS[n]][: len(of_paper)] == of_paper


@pytest.mark.slow
def test_intervals_are_between_scenes() -> None:
    """Twelve copies of every scene tell no more than one; scenes of their own do."""
    choice = random.Random(1)
    right: Right = {("mcq", CLEAN, "color", n): int(choice.random() < 0.6) for n in range(60)}
    copied = [run_of(right, f"t{i}") for i in range(12)]

    def named(run: Run, i: int, group: str) -> Run:
        sets = [replace(a, id=f"{a.id}/{i}", group=f"{a.group}{group}") for a in run.answer_sets]
        verdicts, columns = ({f"{id}/{i}": v for id, v in of.items()} for of in (run.verdicts, run.columns))
        return replace(run, answer_sets=tuple(sets), verdicts=verdicts, columns=columns)

    def width(runs: list[Run], column: str) -> float:
        cell = only(tables_of(runs)).tables[5 if column == "mcq" else 6].numbers[column]
        assert cell.interval is not None
        return cell.interval[1] - cell.interval[0]

    one = width([copied[0]], "mcq")
    own_scenes = [named(run, i, f"/{i}") for i, run in enumerate(copied)]
    for column in ("mcq", "color"):
        assert width([named(run, i, "same") for i, run in enumerate(copied)], column) == pytest.approx(one, rel=0.1)
        assert width(own_scenes, column) == pytest.approx(one / 12**0.5, rel=0.15)
    cell = only(tables_of(own_scenes)).tables[5].numbers["mcq"]
    assert (cell.n, cell.n_groups) == (720, 720)
    assert only(tables_of([named(r, i, "s") for i, r in enumerate(copied)])).tables[5].numbers["mcq"].n_groups == 60


def test_an_interval_without_variation_is_no_point() -> None:
    right: Right = {(t, s, "color", n): 1 for t in ("ynq", "mcq") for s in (CLEAN, "crp") for n in range(10)}
    tables = only(tables_of([run_of(right, "t")])).tables
    for cell in (tables[2].numbers[CLEAN], tables[2].numbers["rr"], tables[6].numbers["color"]):
        assert cell.interval is not None
        assert cell.interval == pytest.approx((0.7225, 1.0), abs=1e-3)  # Wilson, 10 of 10 scenes


def test_what_is_lacking_is_said() -> None:
    right: Right = {("ynq", s, "color", n): 1 for s in (CLEAN, "crp", "syn") for n in range(3)}
    found = only(tables_of([run_of(right, "t")]))
    assert "Tables 6 and 7 are over ynq alone; the paper's are over all four types" in found.notes
    assert "the resistance rate of Table 2 is over crp, syn alone" in found.notes
    assert found.tables[2].numbers[CLEAN].reason == "no judged document is of type 'mcq' in 'clean'"
    assert found.tables[2].numbers["rr"].value == 1.0
    assert tables_of([Run("pope", "m", ())]) == []


def test_of_two_runs_of_the_same_questions_the_newer_counts() -> None:
    old: Right = {("mcq", CLEAN, "color", n): 0 for n in range(4)}
    new: Right = dict.fromkeys(old, 1)
    runs = [run_of(new, "b", created="2026-02"), run_of(old, "a", created="2026-01"), run_of(old, "a", model="other")]
    [first, second] = tables_of(runs)
    assert (first.model, first.tables[5].numbers["mcq"].value) == ("m", 1.0)
    assert first.runs == ("b of m, 2026-02",)
    assert "a of m, 2026-01 is left out: a newer run has the same questions" in first.notes
    assert (second.model, second.tables[5].numbers["mcq"].value) == ("other", 0.0)


# --- closed questions, read one way or the other ----------------------------------------------------------------------


def closed_run(replies: dict[str, str], **settings: Any) -> Run:
    """Questions with the right option (B), judged by SHALE's judge."""
    question = "Which? (A) red (B) blue"
    sets = tuple(
        AnswerSet(id, Answer(reply), (Answer(reply),), question=question, reference="(B) blue", group=id)
        for id, reply in replies.items()
    )
    bare = Run("hedge_shale_mcq", "m", sets, settings=settings, created="2026")
    judged = zip(cases_of(bare), ShaleJudge().judge(cases_of(bare)), strict=True)
    verdicts = {case.id: verdict_record(case, verdict) for case, verdict in judged}
    columns = {id: {"task": "mcq", "scenario": CLEAN, "aspect": "color", "pair": id} for id in replies}
    judged_once = replace(bare, verdicts=verdicts, columns=columns)
    return replace(relabel(judged_once, ShaleJudge())[0], created="2026")


def test_replies_can_be_read_the_other_way_and_a_new_judge_keeps_the_documents() -> None:
    run = closed_run({"1": "(B)", "2": "B.", "3": "(A)"})
    assert only(tables_of([run])).tables[5].numbers["mcq"].value == pytest.approx(2 / 3)
    assert only(tables_of([run], parsing="official")).tables[5].numbers["mcq"].value == pytest.approx(1 / 3)
    without = {id: {k: v for k, v in verdict.items() if k != "votes"} for id, verdict in run.verdicts.items()}
    with pytest.raises(DataError, match="1: its verdict has no reading 'official'"):
        tables_of([replace(run, verdicts=without)], parsing="official")


def test_blind_answers_are_in_their_column_alone() -> None:
    """Those of a blind run, and those of a run for the multimodal gain."""
    seen = closed_run({"1": "(B)", "2": "(B)"})
    blind = closed_run({"1": "(A)", "2": "(B)"}, documents={"images": []})
    found = only(tables_of([seen, blind]))
    assert (found.tables[5].numbers["mcq"].value, found.tables[2].numbers["blind"].n) == (1.0, 2)
    alone = [AnswerSet("x", Answer("A"), (Answer("A"),), question="Which? (A) red (B) blue", reference="(B) blue")]
    gain = replace(seen, answer_sets=tuple(a.with_follow_ups(alone) for a in seen.answer_sets[:1]))
    found = only(tables_of([gain]))
    assert (found.tables[5].numbers["mcq"].value, found.tables[2].numbers["blind"].n) == (1.0, 1)


# --- the command ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_command_lays_them_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    right = {key: value for key, value in answers_at_random(0).items() if key[0] in ("ynq", "mcq")}
    save_run(run_of(right, "hedge_shale_closed", model="hedge_hf|pretrained=llava-1.5-7b"), tmp_path / "hedge_runs")
    out = tmp_path / "cells.csv"
    assert main(["paper", "shale", str(tmp_path), "--json", "--out", str(out)]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["models"][0]["published"] == "LLaVA-1.5-7B"
    cells = {(int(c["table"]), c["measure"]): c for c in facts["cells"]}
    assert cells[2, "txt_p"]["value"] == pytest.approx(sum(share(right, t, "txt_p") for t in ("ynq", "mcq")) / 2)
    assert cells[2, "txt_p"]["paper"] == 0.253
    assert cells[5, "ffq"]["value"] is None
    assert cells[5, "all_types"]["paper"] is None
    with out.open(encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == len(cells)
    assert main(["paper", "shale", str(tmp_path), "--table", "2", "--published", "Otter"]) == 0
    text = capsys.readouterr().out
    assert re.search(r"^TXT-P +0\.\d{3} +\[0\.\d{3}, 0\.\d{3}\] +\d+ +\d+ +0\.212 +[+-]0\.\d{3}$", text, re.MULTILINE)
    assert "Table 3" not in text
    assert main(["paper", "shale", str(tmp_path), "--table", "4"]) == 2
    assert "tables of results are 2, 3, 5, 6, 7" in capsys.readouterr().err
    save_run(Run("pope", "m", ()), tmp_path / "other" / "hedge_runs")
    assert main(["paper", "shale", str(tmp_path / "other")]) == 2
    assert "no run of SHALE in" in capsys.readouterr().err


# --- other benchmarks (Figure 5) --------------------------------------------------------------------------------------


def test_correlations_are_pearsons() -> None:
    rng = np.random.default_rng(0)
    scores = {name: {f"m{i}": float(rng.random()) for i in range(9)} for name in ("a", "b", "c")}
    del scores["c"]["m0"]
    for one, other, count, r in correlations(scores):
        shared = sorted(scores[one].keys() & scores[other].keys())
        expected = np.corrcoef([scores[one][m] for m in shared], [scores[other][m] for m in shared])[0, 1]
        assert (count, r) == (len(shared), pytest.approx(expected))
    flat = {"a": {"x": 1.0, "y": 2.0, "z": 3.0}, "b": {"x": 1.0, "y": 1.0, "z": 1.0}, "c": {"x": 1.0, "y": 3.0}}
    assert correlations(flat) == [("a", "b", 3, None), ("a", "c", 2, None), ("b", "c", 2, None)]


@pytest.mark.slow
def test_the_command_sets_the_set_beside_other_benchmarks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ours: dict[str, Any] = {}
    for number in range(4):
        right = answers_at_random(number, scenes=2)
        run = run_of(right, "hedge_shale", model=f"m{number}")
        save_run(run, tmp_path / f"m{number}")
        [one] = tables_of([run])
        ours[one.model] = faithfulness(one)
        perceived = [r for (_, scenario, a, _), r in right.items() if scenario == CLEAN and a in PERCEPTION]
        said = [r for r in perceived if r is not None]
        assert ours[one.model] == pytest.approx(sum(said) / len(said))
    (tmp_path / "others.csv").write_text("model,POPE\n" + "".join(f"{m},{2 * v - 1}\n" for m, v in ours.items()))
    runs = [str(tmp_path / f"m{number}") for number in range(4)]
    assert main(["paper", "shale", *runs, "--scores", str(tmp_path / "others.csv"), "--json"]) == 0
    [found] = json.loads(capsys.readouterr().out)["correlations"]
    assert found == {"one": "SHALE", "other": "POPE", "models": 4, "r": pytest.approx(1.0)}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("model,POPE\nx,0.5\n", "no model of the runs"),
        ("model,POPE\nx,much\n", "no number: 'much'"),
        ("model,POPE\nx,nan\n", "no number"),
        ("name,POPE\nx,1\n", "no model; there are name"),
        ("model,POPE\nx,1\nx,2\n", "twice"),
    ],
)
def test_scores_that_cannot_be_read_are_named(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "others.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=complaint):
        beside([], read_scores(path))
