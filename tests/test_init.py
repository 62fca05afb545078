"""`hedge init`: a user's own table becomes a task, and what could be meant in two ways is asked."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from evaluation import prepare
from PIL import Image

from hedge_tasks.cli import main
from hedge_tasks.data.roles import ColumnSettings, find_roles
from hedge_tasks.data.tables import read_table
from hedge_tasks.errors import ConfigError


@pytest.fixture(scope="module")
def _stock_tasks() -> None:
    """lmms-eval's index of its own tasks, which a trial of a new task looks into, once a test run."""
    prepare()


def png(shade: int, size: tuple[int, int] = (32, 24)) -> bytes:
    made = io.BytesIO()
    Image.new("RGB", size, (shade, 0, 0)).save(made, "PNG")
    return made.getvalue()


def rows(n: int = 6, **columns: list[Any]) -> dict[str, list[Any]]:
    return {
        "question": [f"Is it größer als {i}?" for i in range(n)],
        "answer": ["yes" if i % 2 else "no" for i in range(n)],
        **columns,
    }


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with pictures, as the current one."""
    (tmp_path / "bilder").mkdir()
    for i in range(6):
        (tmp_path / "bilder" / f"é {i}.png").write_bytes(png(i // 2))  # every two of them are the same
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    return tmp_path


@pytest.fixture
def fails(here: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs `hedge init`, which has to fail without leaving anything behind; returns the last line of what it says."""

    def call(*arguments: str) -> str:
        before = {path for path in here.rglob("*") if "cache" not in path.parts}
        assert main(["init", *arguments]) == 2
        assert {path for path in here.rglob("*") if "cache" not in path.parts} == before
        return capsys.readouterr().err.rstrip().splitlines()[-1]

    return call


def names() -> list[str]:
    return [f"bilder/é {i}.png" for i in range(6)]


# --- tables -----------------------------------------------------------------------------------------------------------


def test_what_a_parquet_file_repeats_counts_in_full(
    here: Path, fails: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One long value that 1000 rows have by its number takes some hundred bytes in the file."""
    monkeypatch.setattr("hedge_tasks.io.outside._UNPACKED", 1 << 20)
    for encoded in (False, True):
        for n_rows in (8, 1000):
            values = pa.array(["x" * 10_000] * n_rows)
            columns = {"question": values.dictionary_encode() if encoded else values, "answer": ["y"] * n_rows}
            pq.write_table(pa.table(columns), here / "t.parquet")
            if n_rows == 8:
                assert sum(len(row["question"]) for _, row in read_table(here / "t.parquet").rows(None)) == 80_000
            else:
                assert "t.parquet: it unpacks to more than 1 MiB" in fails("mine", "t.parquet")


def test_a_value_that_is_stored_once_is_never_in_many_rows_at_once(
    here: Path, fails: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The memory that it takes to find out is of the size of the budget, not of a batch of rows."""
    monkeypatch.setattr("hedge_tasks.io.outside._UNPACKED", 1 << 20)
    table = pa.table({"question": ["x" * 200_000] * 200, "answer": ["y"] * 200})
    pq.write_table(table, here / "t.parquet", dictionary_pagesize_limit=1 << 30)
    del table
    default = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(default)
    pa.set_memory_pool(pool)
    try:
        assert "t.parquet: it unpacks to more than 1 MiB" in fails("mine", "t.parquet")
    finally:
        pa.set_memory_pool(default)
    assert pool.max_memory() < 8 << 20


@pytest.mark.slow
def test_folders_without_a_table_or_with_two(fails: Callable[..., str]) -> None:
    Path("bilder", "weights.pt").touch()
    assert "it holds no table. Put a CSV file into it" in fails("mine", "bilder")
    for name in ("a.csv", "b.jsonl"):
        Path("bilder", name).write_text("question,answer\na,b\n")
    assert "several tables, name the one that is meant: bilder/a.csv, bilder/b.jsonl" in fails("mine", "bilder")
    assert "no such file or folder" in fails("mine", "nowhere")


# --- columns ----------------------------------------------------------------------------------------------------------


def table_of(folder: Path, **columns: list[Any]) -> Any:
    pd.DataFrame(columns).to_parquet(folder / "t.parquet")
    return read_table(folder / "t.parquet")


def test_columns_are_told_by_names_and_values(here: Path) -> None:
    found = find_roles(
        table_of(
            here,
            **rows(
                image=[png(i) for i in range(6)],
                notes=["a"] * 6,
                patient_id=["p", "p", "q", "q", "r", "r"],
                qid=list(range(6)),
                category=["x", "y"] * 3,
                index=[1] * 6,  # not unique: no id
            ),
        ),
        ColumnSettings(),
    )
    assert (found.question, found.answer, found.image) == ("question", "answer", "image")
    assert (found.group, found.id, found.question_type) == ("patient_id", "qid", "category")


def test_the_user_s_word_counts_more(here: Path) -> None:
    table = table_of(here, **rows(text=["t"] * 6, a=names(), patient_id=["p"] * 3 + ["q"] * 3))
    found = find_roles(table, ColumnSettings("text", ("question",), "a", "none", "none", "answer"))
    assert (found.question, found.answer, found.image, found.group) == ("text", "question", "a", None)
    assert (found.question_type, found.id) == ("answer", None)
    with pytest.raises(ConfigError, match=r"unknown column \(--image\) 'pic', did you mean 'picture'"):
        find_roles(table_of(here, **rows(picture=names())), ColumnSettings(image="pic"))


@pytest.mark.slow
def test_options_that_make_no_sense(fails: Callable[..., str]) -> None:
    pd.DataFrame(rows(key=["k"] * 6)).to_csv("t.csv", index=False)
    assert "it is the column of answers, too" in fails("mine", "t.csv", "--answer", "question")
    assert "rows share a value" in fails("mine", "t.csv", "--id", "key")
    assert "which column holds the questions? Say --question" in fails("mine", "t.csv", "--question", "none")
    assert "unknown prompt file 'plane'" in fails("mine", "t.csv", "--prompt", "plane/question")
    for name in ("my task", "a,b", "hedge:x", "-x", "größe", "a/b", ""):
        assert "cannot be the name of a task" in fails("--", name, "t.csv")
    Path("mine-task").mkdir()
    assert "mine-task is there already" in fails("mine", "t.csv")


# --- rows -------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_rows_that_cannot_be_used_are_named(fails: Callable[..., str]) -> None:
    images = names()
    images[1], images[2] = "bilder/none.png", ""
    Path("bilder/é 3.png").write_bytes(b"no picture")
    columns = rows(image=images)
    columns["answer"][4], columns["question"][5] = "", "  "
    pd.DataFrame(columns).to_csv("t.csv", index=False)
    told = fails("mine", "t.csv")
    assert "t.csv: 5 of 6 rows cannot be used: row 2: there is no picture 'bilder/none.png' in ." in told
    assert (
        "row 3: no picture; row 4: 'bilder/é 3.png': an unreadable image; row 5: no answer; row 6: no question" in told
    )
    assert told.endswith("Mend them; where others stay, --drop leaves such rows out")
    columns["answer"] = [""] * 6
    pd.DataFrame(columns).to_csv("t.csv", index=False)
    assert "6 of 6 rows cannot be used" in fails("mine", "t.csv", "--drop")


# --- the whole --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.framework
@pytest.mark.usefixtures("_stock_tasks")
def test_a_task_with_pictures_from_a_folder(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Non-ASCII everywhere, a row left out, ids and kinds; the YAML that was written is used."""
    (here / "Bücher").mkdir()
    columns = rows(image=names(), qid=[f"ü{i}" for i in range(6)], category=["a", "b"] * 3, rest=["z"] * 6)
    columns["image"][5] = "https://me:SECRETPW@127.0.0.1:9/none.png"
    pd.DataFrame(columns).to_csv("Bücher/fragen.csv", index=False)
    call = ["init", "my-task", "Bücher", "--images", str(here), "--drop", "--out", "Bücher/neu", "--json"]
    assert main(call) == 0
    said = capsys.readouterr()
    facts = json.loads(said.out)
    assert (facts["documents"], facts["left_out"]) == (5, [6])
    assert "Left out: 1 of 6 rows cannot be used: row 6" in said.err
    assert "://[secret]@127.0.0.1:9/none.png" in said.err
    assert "not used, and not seen by the model: column 'rest'" in said.err
    assert facts["first"][0] == {"text": "Is it größer als 0?", "pictures": "32 x 24", "reference": "no"}
    folder = here / "Bücher" / "neu"
    assert sorted(path.name for path in folder.iterdir()) == ["data", "my-task.yaml"]
    written = (folder / "my-task.yaml").read_text("utf-8")
    config = yaml.safe_load(written)
    assert str(here) not in written
    assert config["include"] == "hedge_tasks"
    assert config["hedge"]["images"] == ["image"]
    assert {"metric": "se_auroc_within"} in config["metric_list"]
    assert "\n# pictures: column 'image'\n" in written
    folder = folder.rename(here / "moved")  # it loads on any machine, from any folder
    from lmms_eval.tasks import TaskManager, get_task_dict

    manager = TaskManager(include_path=str(folder), include_defaults=False)
    task = get_task_dict(["my-task"], manager, "chat")["my-task"]
    assert [len(task.doc_to_visual(document)) for document in task.test_docs()] == [1] * 5


@pytest.mark.slow
@pytest.mark.framework
@pytest.mark.usefixtures("_stock_tasks")
def test_a_task_of_texts_and_a_name_that_is_taken(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pd.DataFrame(rows()).to_json("t.jsonl", orient="records", lines=True, force_ascii=False)
    assert main(["init", "pope", "t.jsonl"]) == 2
    assert "'pope' is taken by a task or group of lmms-eval" in capsys.readouterr().err
    assert not Path("pope").exists()
    assert main(["init", "mine", "t.jsonl"]) == 0
    said = capsys.readouterr()
    assert "pictures: none" in said.err
    config = yaml.safe_load(Path("mine-task/mine.yaml").read_text("utf-8"))
    assert config["generation_kwargs"] == {"perturbation": "neutral_wording"}
