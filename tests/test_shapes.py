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
from datasets import ClassLabel, Dataset, Features, List, Value
from datasets import Image as ImageFeature
from PIL import Image

from hedge_tasks.data import dicom, splits
from hedge_tasks.data.local_data import write_rows
from hedge_tasks.data.manifests import Data
from hedge_tasks.data.own_data import texts_of, write_data
from hedge_tasks.data.picture_files import PictureFiles
from hedge_tasks.data.roles import ColumnSettings, Roles, find_roles
from hedge_tasks.data.tables import StoredTable, read_table
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.judging import Case, judge_from
from hedge_tasks.lmms import documents
from hedge_tasks.lmms.own_task.files import judge_of
from hedge_tasks.lmms.settings import DocumentSettings

Made = list[dict[str, Any]]
QUESTIONS = [{"question_id": i, "image_id": i // 2, "question": f"{i}?"} for i in range(4)]
COLORS = ("red", "blue", "green", "black")


def png(shade: int) -> bytes:
    made = io.BytesIO()
    Image.new("RGB", (8 + shade, 8), (shade, 0, 0)).save(made, "PNG")
    return made.getvalue()


def made(table: StoredTable, folder: Path, settings: ColumnSettings | None = None) -> tuple[Roles, Made]:
    """What is written of a table, pictures as their widths."""
    files = PictureFiles(folder)
    roles = find_roles(table, settings or ColumnSettings(), files)
    assert write_data(table, roles, files, folder / "made.parquet") == {}
    rows = pq.read_table(folder / "made.parquet").to_pylist()
    for row in rows if roles.image else ():
        listed = row[roles.image] if roles.listed else [row[roles.image]]
        row[roles.image] = [Image.open(io.BytesIO(one["bytes"])).width - 8 for one in listed]
    return roles, rows


def refused(table: StoredTable, settings: ColumnSettings | None = None) -> str:
    """Why a table makes no task: what is asked, or the first row that cannot be used."""
    try:
        roles = find_roles(table, settings or ColumnSettings())
    except ConfigError as error:
        return str(error)
    faults = write_data(table, roles, PictureFiles(table.folder), table.folder / "made" / "made.parquet")
    assert faults
    return next(iter(faults.values()))


def frame(folder: Path, **columns: Any) -> StoredTable:
    return of_frame(pd.DataFrame({"question": ["which?", "where?", "how?", "who?"], **columns}), folder)


def of_frame(table: pd.DataFrame, folder: Path) -> StoredTable:
    table.to_parquet(folder / "frame.parquet")
    return read_table(folder / "frame.parquet")


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
        lambda i: "data:image/png;base64," + base64.b64encode(png(i)).decode(),
    ],
    ids=["name", "deeper", "Windows", "no ending", "bytes", "data uri"],
)
def test_a_picture_is_found_however_it_is_said(pictures: Path, value: Callable[[int], Any]) -> None:
    table = frame(pictures, answer=["a", "b", "c", "d"], image=[value(i) for i in range(4)])
    _, rows = made(table, pictures)
    assert [row["image"] for row in rows] == [[0], [1], [2], [3]]


def test_lists_of_pictures_are_shown_in_their_order(pictures: Path) -> None:
    answers = ["a", "b", "c", "d"]
    lists = [["im/p0.png"], ["im/p1.png", "im/p0.png"], ["im/p2.png"], ["im/p3.png", "im/p3.png", "im/p1.png"]]
    roles, rows = made(frame(pictures, answer=answers, images=lists), pictures)
    assert roles.listed
    assert [row["images"] for row in rows] == [[0], [1, 0], [2], [3, 3, 1]]
    names = [f"im/p{i}.png" for i in range(4)]
    table = frame(pictures, answer=answers, image_2=names, image_1=names)
    assert "Say --image image_2 or image_1, which may hold lists" in refused(table)
    assert [row["image_1"] for row in made(table, pictures, ColumnSettings(image="image_1"))[1]] == [[0], [1], [2], [3]]
    empty = frame(pictures, answer=answers, images=[[], *lists[1:]])
    assert refused(empty, ColumnSettings(image="images")) == "no picture"
    rows = [{"question": "?", "answer": "a", "image": image} for image in ("im/p0.png", ["im/p1.png"] * 2)]
    (pictures / "t.json").write_text(json.dumps(rows))
    assert refused(read_table(pictures / "t.json")) == "a list of pictures, and the first row has none"


def test_names_that_lead_out_of_the_folder_are_refused(
    pictures: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path_factory.mktemp("other") / "p.png"
    other.write_bytes(png(9))
    (pictures / "link.png").symlink_to(other)
    (pictures / "linked").symlink_to(other.parent)
    for name in (str(other), f"../{other.parent.name}/p.png", "link.png", "linked/p.png"):
        assert "lies outside of" in refused(frame(pictures, answer=list("abcd"), image=[name] * 4))
    monkeypatch.chdir(pictures)
    with pytest.raises(DataError, match="lies outside of"):
        PictureFiles(Path()).path(f"../{other.parent.name}/p.png")
    table, files = frame(pictures, answer=list("abcd"), image=[str(other)] * 4), PictureFiles(other.parent)
    assert write_data(table, find_roles(table, ColumnSettings(), files), files, pictures / "made.parquet") == {}


def test_a_name_that_fits_two_files_is_refused(pictures: Path) -> None:
    (pictures / "more").mkdir()
    (pictures / "more" / "p0.png").write_bytes(png(5))
    assert "may be one of several" in refused(frame(pictures, answer=list("abcd"), image=["p0.png"] * 4))


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"imageId": [7, 8, 9, 10]}, "column 'imageId': there is no picture 7 in"),
        ({"scan": ["a.png", "b", "c", "d"]}, "no column names them by its own name. Say --image scan"),
        ({"options": ["red or blue"] * 4}, "0 options in 'red or blue'; expected a list"),
    ],
)
def test_a_column_that_would_stay_unread_is_refused_by_name(pictures: Path, columns: Any, told: str) -> None:
    table = frame(pictures, answer=list("abcd"), **columns)
    assert told in refused(table)
    nothing = ColumnSettings(image="none", options=("none",))
    assert find_roles(table, nothing).unused(table) == list(columns)


def test_pictures_beside_a_table_that_names_none_are_asked_about(pictures: Path) -> None:
    csv = pictures / "t.csv"
    csv.write_text("image_id,question,answer\np0,a,b\np1,c,d\n")
    assert find_roles(read_table(pictures), ColumnSettings()).image == "image_id"
    csv.write_text("image_name,img_id,question,answer\ngone.png,p0,a,b\ngone.png,p1,c,d\n")
    assert find_roles(read_table(pictures), ColumnSettings()).image == "img_id"
    csv.write_text("question,answer\na,b\n")
    (pictures / "frame.parquet").unlink(missing_ok=True)
    with pytest.raises(ConfigError, match=r"there are pictures, and no column names them by its own name. Say --image"):
        find_roles(read_table(pictures), ColumnSettings())
    assert find_roles(read_table(pictures), ColumnSettings(image="none")).image is None
    assert find_roles(read_table(csv), ColumnSettings()).image is None  # nobody named the folder


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
        ({"options": [str(list(COLORS))] * 4, "answer": ["B"] * 4}, "BBBB"),
        ({"choices": [[f"{c}. {t}" for c, t in zip("ABCD", COLORS, strict=True)]] * 4, "answer": ["B"] * 4}, "BBBB"),
        ({c: [t] * 4 for c, t in zip("ABCD", COLORS, strict=True)} | {"answer": ["D"] * 4}, "DDDD"),
    ],
)
def test_options_are_shown_and_the_right_one_is_a_letter(tmp_path: Path, columns: Any, right: str) -> None:
    roles, rows = made(frame(tmp_path, **columns), tmp_path)
    assert [row["answer"] for row in rows] == list(right)
    assert rows[0]["question"] == "which?\nA. red\nB. blue\nC. green\nD. black"
    assert judge_of(roles) == "option"


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        ([1, 2, 3, 1], "the answer 1 may count the options or be the text of one; write letters"),
        (["cyan", "pink", "A", "rose"], "is none, or several, of its 4 options; --options none"),
    ],
)
def test_answers_that_may_mean_two_options(tmp_path: Path, answers: list[Any], told: str) -> None:
    table = frame(tmp_path, options=[list(COLORS)] * 4, answer=answers)
    assert told in refused(table)


def test_numbers_that_are_no_place_are_texts(tmp_path: Path) -> None:
    table = frame(tmp_path, options=[["7", "8", "9"]] * 4, answer=[7, 8, 9, 7])
    assert [row["answer"] for row in made(table, tmp_path)[1]] == list("ABCA")


# --- references -------------------------------------------------------------------------------------------------------


def test_columns_and_lists_in_texts_are_several_references(tmp_path: Path) -> None:
    table = frame(tmp_path, short=["a", "b", "c", None], long=["aa", "b", "cc", "dd"])
    _, rows = made(table, tmp_path, ColumnSettings(answers=("short", "long")))
    assert [row["short"] for row in rows] == ["a\naa", "b", "c\ncc", "dd"]
    (tmp_path / "t.csv").write_text("question,answer\na?,\"['yes', 'yep']\"\nb?,[contrast] CT\n")
    assert [row["answer"] for row in made(read_table(tmp_path / "t.csv"), tmp_path)[1]] == ["yes\nyep", "[contrast] CT"]
    (tmp_path / "t.csv").write_text("question,answer\na?,\"['yes' 'yep']\"\n")  # an array of NumPy in a CSV file
    with pytest.raises(DataError, match=r"begins like a list .* NumPy needs column.map\(list\)"):
        find_roles(read_table(tmp_path / "t.csv"), ColumnSettings())


def test_a_reply_of_a_model_is_no_reference(tmp_path: Path) -> None:
    table = frame(tmp_path, response=list("abcd"), reference=list("efgh"), correct=[0, 1, 1, 0])
    assert [row["reference"] for row in made(table, tmp_path)[1]] == list("efgh")
    without = frame(tmp_path, response=list("abcd"), prediction=list("abcd"))
    assert "which column holds the right answers?" in refused(without)
    two = frame(tmp_path, answer=list("abcd"), ground_truth=list("efgh"))
    assert "which column holds the right answers?" in refused(two)


def test_a_row_that_answers_nothing_is_named(tmp_path: Path) -> None:
    table = frame(tmp_path, answer=["red", "N/A", None, "none"])
    faults = write_data(table, find_roles(table, ColumnSettings()), PictureFiles(tmp_path), tmp_path / "made")
    assert faults == {1: "no answer", 2: "no answer"}


def test_no_reference_is_said_and_nobody_judges(tmp_path: Path) -> None:
    table = frame(tmp_path, difficulty=["easy", "hard"] * 2)
    assert "Say --answer COLUMN (--answer none: nobody judges); there are question ('which?')" in refused(table)
    roles, rows = made(table, tmp_path, ColumnSettings(answers=("none",)))
    assert (judge_of(roles), list(rows[0])) == ("none", ["question"])
    assert judge_from("none").judge([Case("1", "q", "", "a")])[0].label is None


# --- tables and folders -----------------------------------------------------------------------------------------------


def test_a_table_of_a_spreadsheet_program(tmp_path: Path) -> None:
    text = "Frage;Antwort\nWie groß?;„fünf“ – höchstens\n"
    for encoding in ("cp1252", "utf-16", "utf-8-sig"):
        (tmp_path / "t.csv").write_bytes(text.encode(encoding))
        table = read_table(tmp_path / "t.csv")
        assert list(table.values("Antwort")) == ["„fünf“ – höchstens"]
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
    assert next(iter(table.rows(None)))[1] == {"question": "a?", "answer": "yes", "reason": None}
    more = openpyxl.load_workbook(tmp_path / "t.xlsx")
    more.create_sheet("more")
    more.save(tmp_path / "two.xlsx")
    with pytest.raises(DataError, match=r"several sheets \(Sheet, more\)"):
        read_table(tmp_path / "two.xlsx")


def of_split(split: str) -> Dataset:
    features = Features({"question": Value("string"), "answer": ClassLabel(names=["red", "blue"])})
    return Dataset.from_dict({"question": [split, split], "answer": [0, 1]}, features=features)


def test_splits_and_classes_of_repositories(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for name in ("train", "test"):
        of_split(name).to_parquet(str(tmp_path / "data" / f"{name}-00000-of-00001.parquet"))
    table = read_table(tmp_path)
    assert (list(table.values("question")), list(table.values("answer"))) == (["test", "test"], ["red", "blue"])
    assert [*read_table(tmp_path, split="train").values("question")] == ["train", "train"]
    with pytest.raises(ConfigError, match=r"unknown --split .*'dev'. Valid: test, train"):
        read_table(tmp_path, split="dev")
    (tmp_path / "data" / "test-00000-of-00001.parquet").rename(tmp_path / "data" / "validation.parquet")
    with pytest.raises(ConfigError, match=r"unknown --split .*'test'. Valid: train, validation"):
        read_table(tmp_path)


def test_vqav2s_two_files_and_numbers_of_pictures(tmp_path: Path) -> None:
    (tmp_path / "val2014").mkdir()
    for i in range(2):
        Image.new("RGB", (8, 8), (100 * i, 0, 0)).save(tmp_path / "val2014" / f"COCO_val2014_{i:012}.jpg")
    said = [["red"] * 5 + ["crimson"] * 3 + ["rose", "pink"], ["a", "b"] * 2 + list("cdefgh"), ["2"] * 10, ["no"] * 9]
    annotations = [
        {"question_id": i, "answers": [{"answer": text, "answer_id": n} for n, text in enumerate(of)]}
        for i, of in enumerate(said)
    ]
    (tmp_path / "questions.json").write_text(json.dumps({"info": {}, "questions": QUESTIONS}))
    (tmp_path / "annotations.json").write_text(json.dumps({"info": {}, "annotations": annotations[::-1]}))
    table = read_table(tmp_path)
    files = PictureFiles(tmp_path)
    roles = find_roles(table, ColumnSettings(), files)
    assert (roles.question, roles.answer, roles.image) == ("question", "answers", "image_id")
    assert write_data(table, roles, files, tmp_path / "made") == {}
    references = [texts_of(row, roles)["answers"].split("\n") for _, row in table.rows(None)]
    # VQA accuracy calls an answer right that three people gave; where no three agree, the commonest ones.
    assert sorted(references) == [["2"], ["a", "b"], ["no"], ["red", "crimson"]]
    (tmp_path / "val2014" / "other_1.jpg").write_bytes(png(7))
    with pytest.raises(DataError, match="one of several"):
        PictureFiles(tmp_path).path("1")


# --- data of tasks ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"question": ["q", "r"], "answer": ["a", None]}, "the column 'answer' is null or no text in 1 rows (1)"),
        (
            {"question": [{"a": "q"}, None], "answer": ["a", "b"]},
            "the column 'question' is null or no text in 2 rows (0, 1)",
        ),
        (
            {"question": [["q"], ["r"]], "answer": ["a", "b"]},
            "the column 'question' is null or no text in 2 rows (0, 1)",
        ),
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
    write_data(table, find_roles(table, ColumnSettings()), files, file)
    rows = pq.read_table(file).to_pylist()
    rows[3]["images"][1]["bytes"] = rows[3]["images"][1]["bytes"][:40]
    write_rows(file, rows, {"question": Value("string"), "answer": Value("string"), "images": List(ImageFeature())})
    settings = DocumentSettings(prompt="plain/question", images=("images",))
    options = {"data_files": {"test": str(file)}}
    found = documents.load_documents("mine", Data("parquet", None, "test"), settings, options=options)
    shown = [settings.load_images(found.rows[row]) for row in range(3)]
    assert [[picture.width - 8 for picture in row] for row in shown] == [[0], [1, 0], [0]]
    assert found.groups[0] == found.groups[2] != found.groups[1]
    assert found.image_faults == {3: "an unreadable image"}


@pytest.mark.parametrize("name", ["test-00000-of-00001-eb8844602202be60.parquet"])
def test_tasks_read_the_layout_of_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    folder = tmp_path / "flaviagiammarino__vqa-rad" / "data"
    folder.mkdir(parents=True)
    of_split("test").to_parquet(str(folder / name))
    of_split("train").to_parquet(str(folder / name.replace("test", "train")))
    monkeypatch.setenv("HEDGE_DATA_DIR", str(tmp_path))
    assert splits.load_split("flaviagiammarino/vqa-rad", None, "test")["question"][:] == ["test", "test"]
