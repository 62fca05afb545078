"""Tasks of the user's own: data in files beside the YAML, pictures however they are stored, and includes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from at_border import at_border
from datasets import Dataset, Features, Value
from datasets import Image as ImageFeature
from hostile import attempt
from requested import png

from hedge_tasks.data.manifests import Data
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.evaluation import included_file
from hedge_tasks.lmms.documents import Documents, load_documents
from hedge_tasks.lmms.settings import DocumentSettings
from hedge_tasks.runs.trust import read_task

COLOURS = ((250, 0, 0), (0, 250, 0), (250, 0, 0))
"""Of three documents; the first and the last show the same."""


def write(folder: Path, kind: str) -> tuple[str, str]:
    """A data set of three documents as somebody has it; returns the kind of file and its name."""
    for number, colour in enumerate(COLOURS):
        (folder / "pictures").mkdir(exist_ok=True)
        (folder / "pictures" / f"bild {number} é.png").write_bytes(png(colour))
    names = [f"pictures/bild {number} é.png" for number in range(3)]
    stored: Mapping[str, list[Any]] = {
        "names": names,
        "bytes": [png(colour) for colour in COLOURS],
        "records": [{"bytes": png(c), "path": None} for c in COLOURS],
        "records with extras": [{"path": "x", "size": 1, "bytes": png(c)} for c in COLOURS],
        "records of paths": [{"bytes": None, "path": name} for name in names],
        "mixed records": [{"bytes": png(COLOURS[0]), "path": None}, *({"bytes": None, "path": n} for n in names[1:])],
        "lists": [[png(colour)] for colour in COLOURS],
        "numbers": [1, 2, 3],
        "csv": names,
        "json": names,
    }
    rows = {"question": ["a?", "b?", "c?"], "answer": ["yes", "no", "left"]}
    frame = pd.DataFrame({**rows, "picture": stored.get(kind, names)})
    if kind == "csv":
        frame.to_csv(folder / "data.csv", index=False)
        return "csv", "data.csv"
    if kind == "json":
        frame.to_json(folder / "data.jsonl", orient="records", lines=True)
        return "json", "data.jsonl"
    if kind == "images":
        features = Features(question=Value("string"), answer=Value("string"), picture=ImageFeature())
        images = [{"bytes": png(c), "path": None} for c in COLOURS]
        Dataset.from_dict({**rows, "picture": images}, features=features).to_parquet(folder / "data.parquet")
    else:
        frame.to_parquet(folder / "data.parquet")
    return "parquet", "data.parquet"


def documents(folder: Path, kind: str) -> Documents:
    file_kind, name = write(folder, kind)
    settings = DocumentSettings(prompt="plain/question", images=("picture",))
    source = Data(file_kind, None, "test")
    return load_documents("mine", source, settings, options={"data_files": {"test": str(folder / name)}})


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")


KINDS = (
    "images",
    "bytes",
    "records",
    "records with extras",
    "records of paths",
    "mixed records",
    "names",
    "csv",
    "json",
)


def test_a_picture_is_the_same_however_it_is_stored(tmp_path: Path) -> None:
    keys = {}
    for kind in KINDS:
        folder = tmp_path / kind
        folder.mkdir()
        found = documents(folder, kind)
        settings = DocumentSettings(prompt="plain/question", images=("picture",))
        assert found.image_faults == {}, kind
        shown = [settings.load_images(found.rows[row])[0] for row in range(3)]
        assert [picture.convert("RGB").getpixel((0, 0)) for picture in shown] == list(COLOURS), kind
        assert found.image_keys[0] == found.image_keys[2] != found.image_keys[1], kind
        assert list(found.groups) == list(found.image_keys.values())
        assert found.source == Data(found.source.path, None, "test", None)
        keys[kind] = found.keys
    assert len(set(map(tuple, keys.values()))) == 1, keys


@pytest.mark.parametrize(("kind", "told"), [("lists", "got List("), ("numbers", "int64")], ids=["lists", "numbers"])
def test_a_column_without_pictures_is_named_with_a_cure(tmp_path: Path, kind: str, told: str) -> None:
    with pytest.raises(DataError, match=r"column 'picture'.*{bytes, path}.*process_docs") as error:
        documents(tmp_path, kind)
    assert told in str(error.value)


def test_a_missing_picture_file_is_named(tmp_path: Path) -> None:
    name, file = write(tmp_path, "names")
    (tmp_path / "pictures" / "bild 1 é.png").unlink()
    settings = DocumentSettings(prompt="plain/question", images=("picture",))
    with pytest.raises(DataError, match=r"column 'picture': the image 'pictures/bild 1 é.png' cannot be had"):
        load_documents("mine", Data(name, None, "test"), settings, options={"data_files": str(tmp_path / file)})


@pytest.mark.parametrize(
    ("files", "told"),
    [
        (None, "names nothing for the split 'test'"),
        ({"train": "x.csv"}, "nothing for the split 'test'"),
        ("x.csv", "no such file"),
    ],
)
def test_files_that_are_not_there(files: object, told: str) -> None:
    settings = DocumentSettings(prompt="plain/question", images=())
    with pytest.raises(DataError, match=told):
        load_documents("mine", Data("csv", None, "test"), settings, options={"data_files": files})


def test_documents_have_an_id_of_their_own(tmp_path: Path) -> None:
    pd.DataFrame({"question": ["a", "b"], "answer": ["x", "y"], "id": [7, 7]}).to_csv(tmp_path / "x.csv")
    settings = DocumentSettings(prompt="plain/question", images=(), id="id")
    with pytest.raises(DataError, match="share values of the column 'id'"):
        load_documents("mine", Data("csv", None, "test"), settings, options={"data_files": str(tmp_path / "x.csv")})


def test_of_rows_without_a_text_the_first_ten_are_named(tmp_path: Path) -> None:
    def told(n: float) -> str:
        file, settings = tmp_path / f"{n}.csv", DocumentSettings(prompt="plain/question", images=())
        pd.DataFrame({"question": ["a"] + [None] * int(n), "answer": "x"}).to_csv(file)
        options = {"data_files": {"test": str(file)}}
        return attempt(lambda: load_documents("mine", Data("csv", None, "test"), settings, options=options))[1]

    assert "'question' is null or no text in 2 rows (1, 2)" in told(2)
    at_border(lambda n: told(n).endswith("10, ...)"), 10, "001")


# --- includes ---------------------------------------------------------------------------------------------------------

ADDRESS = "package://hedge_tasks.tasks/_hedge_template_yaml"


@pytest.mark.parametrize("include", ["hedge_tasks", ADDRESS])
def test_the_template_is_included_from_any_folder(tmp_path: Path, include: str) -> None:
    from lmms_eval import utils

    from hedge_tasks.lmms.plugin import install

    install()
    (tmp_path / "hedge_tasks").mkdir()  # as beside a clone of this repository: a folder is no file to include
    file = tmp_path / "mine.yaml"
    file.write_text(f"include: {include}\ntask: mine\nmetric_list: [{{metric: se_auroc}}]\n")
    for config in (utils.load_yaml_config(str(file), mode="full"), read_task(file)):
        assert config["task"] == "mine"
        assert config["metric_list"] == [{"metric": "se_auroc"}]
        assert config["generation_kwargs"]["n"] == 10
        assert "include" not in config
    assert utils.load_yaml_config(str(file), mode="full")["class"].__name__ == "HedgeTask"


def test_a_file_of_that_name_comes_first_and_the_first_of_several_wins(tmp_path: Path) -> None:
    from lmms_eval import utils

    (tmp_path / "hedge_tasks").write_text("metadata: {version: 7}\nnum_fewshot: 3\n")
    (tmp_path / "other").write_text("num_fewshot: 4\noutput_type: generate_until\n")
    file = tmp_path / "mine.yaml"
    file.write_text("include: [hedge_tasks, other]\ntask: mine\n")
    wanted = {"task": "mine", "metadata": {"version": 7}, "num_fewshot": 3, "output_type": "generate_until"}
    assert read_task(file) == wanted == utils.load_yaml_config(str(file), mode="full")


def test_an_include_that_no_package_has(tmp_path: Path) -> None:
    assert included_file(str(tmp_path / "none")) == str(tmp_path / "none")
    for address in (
        "package://no_such_package/x",
        "package://hedge_tasks.tasks/none",
        "package://hedge_tasks.tasks/hedge_demo",
        "package://hedge_tasks.tasks/../x",
    ):
        with pytest.raises(ConfigError, match="no such file in an installed package"):
            included_file(f"{tmp_path}/{address}")
