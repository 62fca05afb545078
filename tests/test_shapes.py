"""Data as people have it: a shape becomes the task that its owner means, or is refused by the name of what is odd."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import pyarrow.parquet as pq
import pytest
from datasets import ClassLabel, Dataset, DatasetDict, Features, List, Value
from datasets import Image as ImageFeature
from PIL import Image

from hedge_tasks.data import dicom, splits
from hedge_tasks.data.columns import ColumnSettings, Roles, find_roles
from hedge_tasks.data.local_data import write_rows
from hedge_tasks.data.manifests import Data
from hedge_tasks.data.media import PictureFiles, medium_of
from hedge_tasks.data.own_data import inspect_rows, picture_columns, write_data
from hedge_tasks.data.tables import StoredTable, read_table, table_of_frame
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.judging import Case, judge_from
from hedge_tasks.lmms import documents
from hedge_tasks.lmms.own_task.files import judge_of
from hedge_tasks.lmms.settings import DocumentSettings
from hedge_tasks.suites.medhallu import documents as medhallu
from hedge_tasks.suites.vqarad import documents as vqarad

Made = list[dict[str, Any]]
COLORS = ("red", "blue", "green", "black")


def png(shade: int) -> bytes:
    made = io.BytesIO()
    Image.new("RGB", (8 + shade, 8), (shade, 0, 0)).save(made, "PNG")
    return made.getvalue()


def made(table: StoredTable, folder: Path, settings: ColumnSettings | None = None) -> tuple[Roles, Made]:
    """What is written of a table, pictures as their widths."""
    files = PictureFiles(folder)
    roles = find_roles(table, settings or ColumnSettings(), files)
    assert inspect_rows(table, roles, files).faults == {}
    write_data(table, roles, files, (), folder / "made.parquet")
    rows = pq.read_table(folder / "made.parquet").to_pylist()
    for row in rows:
        for column in picture_columns(roles):
            listed = row[column] if isinstance(row[column], list) else [row[column]]
            row[column] = [Image.open(io.BytesIO(one["bytes"])).width - 8 for one in listed]
    return roles, rows


def refused(table: StoredTable, settings: ColumnSettings | None = None) -> str:
    """Why a table makes no task: what is asked, or the first row that cannot be used."""
    try:
        roles = find_roles(table, settings or ColumnSettings())
    except ConfigError as error:
        return str(error)
    faults = inspect_rows(table, roles, PictureFiles(table.folder)).faults
    assert faults
    return next(iter(faults.values()))


def frame(folder: Path, **columns: Any) -> StoredTable:
    return table_of_frame(pd.DataFrame({"question": ["which?", "where?", "how?", "who?"], **columns}), folder)


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    (tmp_path / "im").mkdir()
    for shade in range(4):
        (tmp_path / "im" / f"p{shade}.png").write_bytes(png(shade))
    return tmp_path


# --- pictures ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        lambda i: f"im/p{i}.png",
        lambda i: f"p{i}.png",  # it lies deeper
        lambda i: f"IM\\P{i}.PNG",
        lambda i: f"p{i}",
        lambda i: png(i),
        lambda i: {"bytes": png(i), "path": None},
        lambda i: [f"im/p{i}.png"],
        lambda i: base64.b64encode(png(i)).decode(),
        lambda i: "data:image/png;base64," + base64.b64encode(png(i)).decode(),
    ],
    ids=["name", "deeper", "Windows", "no ending", "bytes", "record", "list", "base64", "data uri"],
)
def test_a_picture_is_found_however_it_is_said(pictures: Path, value: Callable[[int], Any]) -> None:
    table = frame(pictures, answer=["a", "b", "c", "d"], image=[value(i) for i in range(4)])
    _, rows = made(table, pictures)
    assert [row["image"] for row in rows] == [[0], [1], [2], [3]]


def test_lists_of_pictures_and_numbered_columns_are_shown_in_their_order(pictures: Path) -> None:
    answers = ["a", "b", "c", "d"]
    lists = [["im/p0.png"], ["im/p1.png", "im/p0.png"], ["im/p2.png"], ["im/p3.png", "im/p3.png", "im/p1.png"]]
    roles, rows = made(frame(pictures, answer=answers, images=lists), pictures)
    assert roles.listed
    assert [row["images"] for row in rows] == [[0], [1, 0], [2], [3, 3, 1]]
    second = [None, "im/p0.png", None, "im/p1.png"]
    first = [f"im/p{i}.png" for i in range(4)]
    table = frame(pictures, answer=answers, image_2=second, image_1=first)
    assert [row["pictures"] for row in made(table, pictures)[1]] == [[0], [1, 0], [2], [3, 1]]
    assert refused(frame(pictures, answer=answers, before=first, after=second)) == "no picture in 'after'"


def test_names_that_lead_out_of_the_folder_are_refused(
    pictures: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("other") / "p.png"
    other.write_bytes(png(9))
    (pictures / "link.png").symlink_to(other)
    for name in (str(other), f"../{other.parent.name}/p.png", "link.png"):
        table = frame(pictures, answer=list("abcd"), image=[name] * 4)
        assert "lies outside of" in refused(table)
        roles = find_roles(table, ColumnSettings())
        assert inspect_rows(table, roles, PictureFiles(pictures, outside=True)).faults == {}


def test_a_name_that_fits_two_files_is_refused(pictures: Path) -> None:
    (pictures / "more").mkdir()
    (pictures / "more" / "p0.png").write_bytes(png(5))
    assert "may be one of several" in refused(frame(pictures, answer=list("abcd"), image=["p0.png"] * 4))


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"video": ["a.mp4"] * 4}, "the column 'video' holds video"),
        ({"clip": [None, None, None, "x"]}, "the column 'clip' holds video"),
        ({"sound": ["a.wav"] * 4}, "the column 'sound' holds audio"),
        ({"volume": ["a.nii.gz"] * 4}, "the column 'volume' holds volumes"),
        ({"image": [1, 2, 3, 4]}, "by its name the column 'image' holds pictures, and by its values (1)"),
        ({"image": [["case 1"]] * 4}, "by its name the column 'image' holds pictures"),
        ({"options": ["red or blue"] * 4}, "by its name the column 'options' holds options"),
        ({"extra": ["a.png", "b", "c", "d"]}, "the column 'extra' holds pictures in 1 of the first 4 rows"),
        ({"messages": ["a"] * 4}, "'messages' holds conversations"),
        ({"left": ["p0.png"] * 4, "right": ["p1.png"] * 4}, "'left' and 'right' all hold pictures"),
    ],
)
def test_a_column_that_would_stay_unread_is_refused_by_name(pictures: Path, columns: Any, told: str) -> None:
    assert told in refused(frame(pictures, answer=list("abcd"), **columns))
    ignored = ColumnSettings(question="question", ignore=tuple(columns))
    assert find_roles(frame(pictures, answer=list("abcd"), **columns), ignored).images == ()


def test_pictures_beside_a_table_that_names_none_are_asked_about(pictures: Path) -> None:
    csv = pictures / "t.csv"
    csv.write_text("image_id,question,answer\np0,a,b\np1,c,d\n")
    assert find_roles(read_table(pictures), ColumnSettings()).images == ("image_id",)
    csv.write_text("question,answer\na,b\n")
    with pytest.raises(ConfigError, match=r"there are pictures .* no column names them. Say --image COLUMN"):
        find_roles(read_table(pictures), ColumnSettings())
    assert find_roles(read_table(pictures), ColumnSettings(images=("none",))).images == ()
    assert find_roles(read_table(csv), ColumnSettings()).images == ()  # nobody named the folder


def test_media_are_told_by_their_bytes() -> None:
    assert medium_of(png(1)) == "pictures"
    assert medium_of(b"\0\0\0\x18ftypisom....") == "video"
    assert medium_of(b"RIFF....WAVEfmt ") == "audio"
    assert medium_of(bytes(128) + b"DICM") == "pictures"
    assert medium_of("What is shown in scan.png?") is None


def test_dicom_needs_a_reader(pictures: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pydicom", None)
    (pictures / "a.dcm").write_bytes(bytes(128) + b"DICM")
    table = frame(pictures, answer=list("abcd"), scan=["a.dcm"] * 4)
    assert "reading it needs pydicom (pip install 'hedge-tasks[dicom]')" in refused(table)


def test_dicom_is_shown_in_its_window(tmp_path: Path) -> None:
    pydicom = pytest.importorskip("pydicom")
    import numpy as np
    from pydicom.uid import ExplicitVRLittleEndian

    data = pydicom.Dataset()
    data.file_meta = pydicom.dataset.FileMetaDataset()
    data.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    data.file_meta.MediaStorageSOPClassUID = data.file_meta.MediaStorageSOPInstanceUID = pydicom.uid.generate_uid()
    data.Rows, data.Columns, data.SamplesPerPixel, data.PhotometricInterpretation = 1, 4, 1, "MONOCHROME2"
    data.BitsAllocated, data.BitsStored, data.HighBit, data.PixelRepresentation = 16, 16, 15, 1
    data.PixelData = np.array([[-900, 0, 255, 900]], "<i2").tobytes()
    data.RescaleSlope, data.RescaleIntercept = 1, 0
    file = tmp_path / "a.dcm"
    data.save_as(file, enforce_file_format=True)
    with pytest.raises(DataError, match="without a window"):
        dicom.as_png(file.read_bytes(), "a.dcm")
    data.WindowCenter, data.WindowWidth = [128, 40], [256, 400]
    data.save_as(file, enforce_file_format=True)
    shown = Image.open(io.BytesIO(dicom.as_png(file.read_bytes(), "a.dcm")))
    assert list(shown.getdata()) == [0, 0, 255, 255]


# --- options ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "right"),
    [
        ({"options": [list(COLORS)] * 4, "answer": ["A", "b", "(C)", "D. black"]}, "ABCD"),
        ({"options": [list(COLORS)] * 4, "answer": ["red", "Blue", "green", "black"]}, "ABCD"),
        ({"options": [str(list(COLORS))] * 4, "answer": ["B"] * 4}, "BBBB"),
        ({"choices": [[f"{c}. {t}" for c, t in zip("ABCD", COLORS, strict=True)]] * 4, "answer": ["B"] * 4}, "BBBB"),
        ({"choices": [dict(zip("ABCD", COLORS, strict=True))] * 4, "answer": ["C"] * 4}, "CCCC"),
        ({"choices": [{"text": list(COLORS), "label": list("ABCD")}] * 4, "answer": ["C"] * 4}, "CCCC"),
        ({"options": [list(COLORS)] * 4, "answer": [0, 1, 2, 3]}, "ABCD"),
        ({"options": [list(COLORS)] * 4, "answer": ["1", "2", "3", "4"]}, "ABCD"),
        ({c: [t] * 4 for c, t in zip("ABCD", COLORS, strict=True)} | {"answer": ["D"] * 4}, "DDDD"),
        ({f"option_{c}": [t] * 4 for c, t in zip("abcd", COLORS, strict=True)} | {"answer": ["D"] * 4}, "DDDD"),
    ],
)
def test_options_are_shown_and_the_right_one_is_a_letter(tmp_path: Path, columns: Any, right: str) -> None:
    roles, rows = made(frame(tmp_path, **columns), tmp_path)
    assert [row["answer"] for row in rows] == list(right)
    assert rows[0]["question"] == "which?\nA. red\nB. blue\nC. green\nD. black"
    assert judge_of(roles) == "option"


def test_an_empty_last_option_is_none(tmp_path: Path) -> None:
    options = dict(zip("ABC", COLORS, strict=False))
    columns = {c: [t] * 4 for c, t in options.items()} | {"D": ["", "black", None, "nan"]}
    _, rows = made(frame(tmp_path, answer=["A"] * 4, **columns), tmp_path)
    assert ["black" in row["question"] for row in rows] == [False, True, False, False]


def test_options_that_stand_in_the_question(tmp_path: Path) -> None:
    asked = "Which color?\nA. red\nB. blue\nAnswer with the letter."
    table = table_of_frame(pd.DataFrame({"question": [asked] * 2, "answer": ["A", "B"]}), tmp_path)
    roles, rows = made(table, tmp_path)
    assert (judge_of(roles), rows[0]["question"], rows[1]["answer"]) == ("option", asked, "B")


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        ([1, 2, 3, 1], "fit counting from 0 and from 1. Say --first-option 0 or --first-option 1"),
        ([0, 1, 2, 7], "some of them are no number of an option"),
        (["cyan", "pink", "A", "rose"], "names none of the options"),
    ],
)
def test_answers_that_may_mean_two_options(tmp_path: Path, answers: list[Any], told: str) -> None:
    table = frame(tmp_path, options=[list(COLORS)] * 4, answer=answers)
    assert told in refused(table)


def test_numbers_count_from_where_the_user_says(tmp_path: Path) -> None:
    table = frame(tmp_path, options=[list(COLORS)] * 4, answer=[1, 2, 3, 1])
    for first, right in ((0, "BCDB"), (1, "ABCA")):
        _, rows = made(table, tmp_path, ColumnSettings(first_option=first))
        assert "".join(row["answer"] for row in rows) == right
    digits = frame(tmp_path, options=[["1", "2", "3"]] * 4, answer=[1, 2, 3, 1])
    assert "the number of the right option, or its text" in refused(digits)


def test_the_judge_of_options_reads_letters_and_texts() -> None:
    judge, question = judge_from("option"), "Which?\nA. red\nB. blue"
    replies = ["A", "(B)", "It is blue.", "red", "I cannot tell."]
    verdicts = judge.judge([Case(str(i), question, "A", reply) for i, reply in enumerate(replies)])
    assert [verdict.label for verdict in verdicts] == [0, 1, 1, 0, None]
    with pytest.raises(DataError, match="'C' is no option"):
        judge.judge([Case("1", question, "C", "A")])


# --- references -------------------------------------------------------------------------------------------------------


def test_several_references_are_each_right(tmp_path: Path) -> None:
    lists = [["red", "crimson"], ["blue"], ["green", None, "green"], ["one", "1"]]
    roles, rows = made(frame(tmp_path, answers=lists), tmp_path)
    assert [row["answers"] for row in rows] == ["red\ncrimson", "blue", "green", "one\n1"]
    judge = judge_from(judge_of(roles))
    told = [
        judge.judge([Case("1", "Which color?", "red\ncrimson", said)])[0].label for said in ("red", "Crimson.", "blue")
    ]
    assert told == [0, 0, None]  # whether blue is crimson the judge does not know: no table of synonyms has the word
    assert judge.judge([Case("1", "Which color?", "red\ngreen", "blue")])[0].label == 1


def test_several_references_in_a_cell_are_asked_about(tmp_path: Path) -> None:
    table = frame(tmp_path, answer=["red|crimson", "blue|navy", "green", "black|dark"])
    assert "Say --separator '|', or --separator none" in refused(table)
    _, rows = made(table, tmp_path, ColumnSettings(separator="|"))
    assert [row["answer"] for row in rows] == ["red\ncrimson", "blue\nnavy", "green", "black\ndark"]
    _, rows = made(table, tmp_path, ColumnSettings(separator="none"))
    assert rows[0]["answer"] == "red|crimson"


def test_a_row_that_answers_nothing_is_named(tmp_path: Path) -> None:
    table = frame(tmp_path, answer=["red", "N/A", None, "none"])
    faults = inspect_rows(table, find_roles(table, ColumnSettings()), PictureFiles(tmp_path)).faults
    assert faults == {1: "no answer", 2: "no answer"}


def test_zeros_and_ones_for_yes_and_no_are_asked_about(tmp_path: Path) -> None:
    asked = ["Is it red?", "Are there two?", "Does it move?", "Is it?"]
    table = table_of_frame(pd.DataFrame({"question": asked, "answer": [1, 0, 0, 1]}), tmp_path)
    assert "Which is yes?" in refused(table)


def test_no_reference_is_said_and_nobody_judges(tmp_path: Path) -> None:
    table = frame(tmp_path, difficulty=["easy", "hard"] * 2)
    assert "Say --answer COLUMN, or --answer none (no labels)" in refused(table)
    roles, rows = made(table, tmp_path, ColumnSettings(answer="none"))
    assert (judge_of(roles), list(rows[0])) == ("none", ["question"])
    assert judge_from("none").judge([Case("1", "q", "", "a")])[0].label is None


# --- tables and folders -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "answer"), [("Frage", "Antwort"), ("问题", "答案"), ("pregunta", "respuesta"), ("Question", "réponse")]
)
def test_columns_have_names_of_other_languages(tmp_path: Path, question: str, answer: str) -> None:
    pd.DataFrame({question: ["a", "b"], answer: ["c", "d"]}).to_csv(tmp_path / "t.csv", sep=";", index=False)
    roles = find_roles(read_table(tmp_path / "t.csv"), ColumnSettings())
    assert (roles.question, roles.answer) == (question, answer)


def test_a_table_of_a_spreadsheet_program(tmp_path: Path) -> None:
    text = "Frage;Antwort\nWie groß?;„fünf“ – höchstens\n"
    for encoding in ("cp1252", "utf-16", "utf-8-sig"):
        (tmp_path / "t.csv").write_bytes(text.encode(encoding))
        table = read_table(tmp_path / "t.csv")
        assert table.values("Antwort") == ["„fünf“ – höchstens"]
        assert ("Windows-1252" in table.read_as) == (encoding == "cp1252")
    (tmp_path / "t.csv").write_bytes("问题,答案\n这是什么,红色的图\n".encode("gbk"))
    with pytest.raises(DataError, match=r"not UTF-8 .*; save it as UTF-8"):
        read_table(tmp_path / "t.csv")


def test_a_spreadsheet_has_the_columns_of_its_header(tmp_path: Path) -> None:
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet()
    for row in (["question", "answer", "reason"], ["a?", "yes"], ["b?", "no"]):
        sheet.append(row)
    book.save(tmp_path / "t.xlsx")
    table = read_table(tmp_path / "t.xlsx")
    assert table.columns == ("question", "answer", "reason")
    assert next(iter(table.rows(None))) == {"question": "a?", "answer": "yes", "reason": None}


@pytest.mark.parametrize(
    "value",
    [
        {"question": ["a", "b"], "answer": ["c", "d"]},
        {"info": {"year": 2026}, "data": [{"question": "a", "answer": "c"}, {"question": "b", "answer": "d"}]},
        [
            {"conversations": [{"from": "human", "value": f"<image>\n{q}"}, {"from": "gpt", "value": a}]}
            for q, a in (("a", "c"), ("b", "d"))
        ],
    ],
    ids=["columns", "wrapped", "conversations"],
)
def test_json_in_other_forms(tmp_path: Path, value: Any) -> None:
    (tmp_path / "t.json").write_text(json.dumps(value))
    table = read_table(tmp_path / "t.json")
    assert (table.values("question"), table.values("answer")) == (["a", "b"], ["c", "d"])


def test_a_conversation_of_several_turns_is_refused(tmp_path: Path) -> None:
    turns = [{"role": role, "content": "x"} for role in ("user", "assistant", "user", "assistant")]
    (tmp_path / "t.jsonl").write_text(json.dumps({"messages": turns}))
    with pytest.raises(DataError, match="row 1: the column 'messages' holds 4 turns"):
        read_table(tmp_path / "t.jsonl")


def of_split(split: str) -> Dataset:
    features = Features({"question": Value("string"), "answer": ClassLabel(names=["red", "blue"])})
    return Dataset.from_dict({"question": [split, split], "answer": [0, 1]}, features=features)


def test_splits_and_classes_of_saved_data_sets_and_repositories(tmp_path: Path) -> None:
    data = DatasetDict({name: of_split(name) for name in ("train", "test")})
    data.save_to_disk(str(tmp_path / "saved"))
    data["test"].save_to_disk(str(tmp_path / "one"))
    (tmp_path / "repo" / "data").mkdir(parents=True)
    for name, of in data.items():
        of.to_parquet(str(tmp_path / "repo" / "data" / f"{name}-00000-of-00001.parquet"))
    for place in ("saved", "one", "repo"):
        table = read_table(tmp_path / place)
        assert (table.values("question"), table.values("answer")) == (["test", "test"], ["red", "blue"])
    assert read_table(tmp_path / "repo", split="train").values("question") == ["train", "train"]
    with pytest.raises(ConfigError, match=r"unknown split .*'dev'"):
        read_table(tmp_path / "saved", split="dev")
    (tmp_path / "repo" / "data" / "test-00000-of-00001.parquet").rename(
        tmp_path / "repo" / "data" / "validation-00000-of-00001.parquet"
    )
    with pytest.raises(ConfigError, match="which of its splits, train, validation"):
        read_table(tmp_path / "repo")


def test_a_table_in_each_split_s_folder(tmp_path: Path) -> None:
    for name in ("train", "test"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "0.png").write_bytes(png(1 if name == "test" else 2))
        (tmp_path / name / "metadata.jsonl").write_text(
            json.dumps({"file_name": "0.png", "question": "q", "answer": "a"})
        )
    table = read_table(tmp_path)
    _, rows = made(table, table.folder)
    assert rows == [{"question": "q", "answer": "a", "file_name": [1]}]


def test_configs_of_a_readme(tmp_path: Path) -> None:
    for name in ("small", "large"):
        pd.DataFrame({"question": [name], "answer": ["a"]}).to_json(
            tmp_path / f"{name}.jsonl", orient="records", lines=True
        )
    entries = "".join(
        f"- config_name: {n}\n  data_files:\n  - split: test\n    path: {n}.jsonl\n" for n in ("small", "large")
    )
    (tmp_path / "README.md").write_text(f"---\nconfigs:\n{entries}---\n# Set\n")
    with pytest.raises(ConfigError, match="which of its configs, small, large"):
        read_table(tmp_path)
    assert read_table(tmp_path, config="large").values("question") == ["large"]


# --- data of tasks ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"question": ["q", "r"], "answer": ["a", None]}, "the column 'answer' is null in 1 rows (1)"),
        ({"question": [{"a": "q"}, None], "answer": ["a", "b"]}, "the column 'question' is null in 1 rows (1)"),
        ({"question": [["q"], ["r"]], "answer": ["a", "b"]}, "the column 'question' is no text in 2 rows (0, 1)"),
    ],
)
def test_a_cell_that_would_be_asked_as_python_writes_it_is_named(columns: Any, told: str) -> None:
    settings = DocumentSettings(prompt="plain/question", images=())
    with pytest.raises(DataError) as caught:
        documents._check_texts(Dataset.from_dict(columns), settings, "mine")
    assert str(caught.value) == f"mine: {told}"


def test_documents_with_lists_of_pictures(pictures: Path) -> None:
    """Their pictures come in their order, groups know them, and one that is damaged is the document's fault."""
    lists = [["im/p0.png"], ["im/p1.png", "im/p0.png"], ["im/p0.png"], ["im/p2.png", "im/p3.png"]]
    table, files = frame(pictures, answer=list("abcd"), images=lists), PictureFiles(pictures)
    file = pictures / "made.parquet"
    write_data(table, find_roles(table, ColumnSettings()), files, (), file)
    rows = pq.read_table(file).to_pylist()
    rows[3]["images"][1]["bytes"] = rows[3]["images"][1]["bytes"][:40]
    write_rows(file, rows, {"question": Value("string"), "answer": Value("string"), "images": List(ImageFeature())})
    settings = DocumentSettings(prompt="plain/question", images=("images",))
    options = {"data_files": {"test": str(file)}}
    found = documents.load_documents("mine", Data("parquet", None, "test"), settings, options=options)
    assert [[picture.width - 8 for picture in found.images(row)] for row in range(3)] == [[0], [1, 0], [0]]
    assert found.grouping.groups[0] == found.grouping.groups[2] != found.grouping.groups[1]
    assert found.image_faults == {3: "an unreadable image"}


@pytest.mark.parametrize("name", ["test-00000-of-00001.parquet", "test-00000-of-00001-eb8844602202be60.parquet"])
def test_tasks_read_the_layout_of_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    folder = tmp_path / "flaviagiammarino__vqa-rad" / "data"
    folder.mkdir(parents=True)
    of_split("test").to_parquet(str(folder / name))
    of_split("train").to_parquet(str(folder / name.replace("test", "train")))
    monkeypatch.setenv("HEDGE_DATA_DIR", str(tmp_path))
    assert splits.load_split("flaviagiammarino/vqa-rad", None, "test")["question"][:] == ["test", "test"]


def test_a_row_of_vqa_rad_or_medhallu_that_lacks_something_is_named() -> None:
    answers = Dataset.from_dict({"question": ["q", "r"], "answer": ["yes", None]})
    with pytest.raises(DataError, match=r"VQA-RAD: 1 rows have no answer \(rows 1\)"):
        vqarad.process_docs(answers)
    for knowledge in (None, {"a": "b"}, [], [None]):
        with pytest.raises(DataError, match="MedHallu: row 3: Knowledge is "):
            medhallu._knowledge(knowledge, "lines", 3)
