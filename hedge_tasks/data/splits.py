"""Sources of documents (a local folder, the package itself, the Hugging Face hub), and keys that identify them."""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

from loguru import logger

from hedge_tasks.data.pictures import PICTURE_FORMS, image_file_fault
from hedge_tasks.data.repositories import repository, tables_in
from hedge_tasks.errors import DataError, first_line
from hedge_tasks.io.downloads import download
from hedge_tasks.io.json_lines import read_objects
from hedge_tasks.io.sources import PACKAGE_SCHEME, hub_or_cache, inside_package

if TYPE_CHECKING:
    from datasets import Dataset

DATA_DIR = "HEDGE_DATA_DIR"

# In a builder's list of what it downloaded: hf://datasets/org/name@<commit>/file
_COMMIT = re.compile(r"^hf://[^@]+@([0-9a-f]{40})/")

FILE_KINDS = ("csv", "json", "parquet")
"""Values of `dataset_path` besides a data set's name: the kind of the files that `data_files` names."""

LINES = ".jsonl"
"""Ending of a split in a package that is small enough to be read by people."""

DATA_FILES = "data_files"
"""Key of `dataset_kwargs` that names the files."""

DataFiles = Mapping[str, Any] | Sequence[str] | str
"""Files of each split, or of the only one."""

_DOWNLOADS = 8
_DECODED_AT_START = 16
_LISTED = 10


def load_split(
    path: str, name: str | None, split: str, *, revision: str | None = None, files: DataFiles | None = None
) -> Dataset:
    """Load one split of a data set.

    Where `path` is csv, json or parquet, it is in `files`. Else it is looked for in this order: inside the package for
    `package://some.package/folder`; in the folder that the environment variable HEDGE_DATA_DIR names, as
    `<id with / written __>/[config/]<split>*.parquet` or as the hub itself lays it out
    (`hedge_tasks.data.repositories`); on the hub at `revision`. A folder without parquet files may have
    `<split>.jsonl`.

    Args:
        path: hub id, `package://` address, or kind of file.
        name: config of the data set, or None.
        split: such as "test".
        revision: commit or tag on the hub; local copies carry none.
        files: `dataset_kwargs.data_files` of the YAML; lmms-eval has made them paths from the YAML's folder.

    Raises:
        DataError: nothing found or unreadable. Names the data set and both ways to provide it.
    """
    from datasets import Dataset, load_dataset

    paths = _named_files(path, split, files) if path in FILE_KINDS else local_files(path, name, split)
    try:
        if paths is None:
            with hub_or_cache():
                return load_dataset(path, name=name, split=split, revision=revision)
        if paths[0].suffix == LINES and path not in FILE_KINDS:
            return Dataset.from_list([dict(row) for _, row in read_objects(paths[0])])
        kind = path if path in FILE_KINDS else "parquet"
        return load_dataset(kind, data_files=list(map(str, paths)), split="train")
    except Exception as error:  # network, pandas, pyarrow, datasets: many kinds, told apart by the text, helped alike
        if paths is not None:
            names = ", ".join(file.name for file in paths)
            raise DataError(f"{path}: cannot read {names} in {paths[0].parent}: {first_line(error)}") from error
        folder = f"DIR/{path.replace('/', '__')}"
        raise DataError(
            f"data set {path} ({_part(name, split)}) cannot be loaded: {first_line(error)}. Either make the "
            f"Hugging Face hub reachable (log in for gated data sets), or set {DATA_DIR}=DIR with what `hf download "
            f"{path} --repo-type dataset --local-dir {folder}` writes, or {folder}/{f'{name}/' if name else ''}{split}"
            "*.parquet, in it."
        ) from error


def _part(name: str | None, split: str) -> str:
    return f"config {name}, split {split}" if name else f"split {split}"


def _named_files(kind: str, split: str, files: DataFiles | None) -> list[Path]:
    """The files of a split that `dataset_kwargs.data_files` names.

    Raises:
        DataError: it names none, or one that is not there.
    """
    paths = _paths(files.get(split, ()) if isinstance(files, Mapping) else files or ())
    if missing := [str(path) for path in paths if not path.is_file()] if paths else ["nothing"]:
        raise DataError(
            f"dataset_path {kind}: dataset_kwargs.data_files names {', '.join(missing)} for the split {split!r}, where "
            f"there is no such file; expected data_files: {{{split}: FILE}}, from the YAML's folder"
        )
    return paths


def _paths(files: Sequence[str] | str) -> list[Path]:
    return [Path(file) for file in ([files] if isinstance(files, str) else files)]


def local_files(path: str, name: str | None, split: str) -> list[Path] | None:
    """The files of a split that is inside a package or below HEDGE_DATA_DIR; None where it is on the hub.

    They are parquet files, or files of JSON lines.

    Raises:
        DataError: such a folder does not hold the split.
    """
    if (folder := _own_folder(path)) is None:
        return None
    if not (files := tables_in(folder, name, split).get(split)):
        available = ", ".join(sorted(str(p.relative_to(folder)) for p in islice(folder.rglob("*.parquet"), _LISTED)))
        raise DataError(
            f"{path}: no file of {_part(name, split)} in {folder} (there: {available or 'no parquet file'}); expected "
            f"{split}*.parquet, data/{split}-00000-of-00001.parquet or {split}{LINES}"
        )
    if not path.startswith(PACKAGE_SCHEME):
        logger.info("{} ({}): reading {}", path, split, folder)
    return files


def _own_folder(path: str) -> Path | None:
    """The folder of a data set in a package, or of a copy of one of the hub; None where there is none.

    Raises:
        DataError: there is no such folder in a package, or HEDGE_DATA_DIR names none.
    """
    if path.startswith(PACKAGE_SCHEME):
        folder = inside_package(path)
        if folder is None or not folder.is_dir():
            raise DataError(f"{path}: there is no such folder in an installed package")
        return folder
    if not (root := os.environ.get(DATA_DIR)):
        return None
    if not Path(root).is_dir():
        raise DataError(f"{DATA_DIR}={root} is not a folder")
    if (folder := repository(Path(root), path)) is None:
        logger.info("{} is not in {}={}; trying the hub", path, DATA_DIR, root)
    return folder


def loaded_revision(dataset: Dataset) -> str | None:
    """The commit that a data set came from, as its builder recorded it; None for local files."""
    for address in dataset.info.download_checksums or {}:
        if match := _COMMIT.search(address):
            return match[1]
    return None


def fetch_images(
    dataset: Dataset,
    columns: Sequence[str],
    path: str,
    revision: str | None = None,
    files: DataFiles | None = None,
) -> Dataset:
    """Make columns with pictures such: files' bytes, `{bytes, path}`, names and addresses become the files they mean.

    A name is that of a file of the data set, relative to its root, looked for beside the files of a data set in files,
    else in the folder that HEDGE_DATA_DIR names and then on the hub at `revision`. An address of the data set's own
    files means the file of that name, so that a local copy serves it, too; any other address is downloaded and must
    begin with https://.

    Args:
        path, files: as for `load_split`.

    Raises:
        DataError: a column holds no pictures, a file cannot be had, or a name leads out of the data set's folder. Names
            the column and the file.
    """
    folder, is_whole = _own_folder(path), path.startswith(PACKAGE_SCHEME)
    if files:
        of_split = next(iter(files.values())) if isinstance(files, Mapping) else files
        folder, is_whole = _paths(of_split)[0].parent, True

    def read(name: str) -> bytes:
        own = re.match(rf"https?://[^/]+/datasets/{re.escape(path)}/(?:resolve|raw|blob)/[^/]+/([^?#]+)", name)
        if own is None and "://" in name:
            return download(name)
        file = PurePosixPath(unquote(own[1]) if own else name)
        if file.is_absolute() or ".." in file.parts or "\\" in name:
            raise DataError("a file name must lie in the data set's folder")
        if folder is not None and (is_whole or (folder / file).is_file()):
            # A copy of the hub's client is links into its cache.
            if is_whole and not Path(os.path.realpath(folder / file)).is_relative_to(os.path.realpath(folder)):
                raise DataError("it is a link out of the data set's folder")
            return (folder / file).read_bytes()
        from huggingface_hub import hf_hub_download

        return Path(hf_hub_download(path, str(file), repo_type="dataset", revision=revision)).read_bytes()

    for column in columns:
        dataset = _with_pictures(dataset, column, f"{path}, column {column!r}", read)
    return dataset


def _with_pictures(dataset: Dataset, column: str, what: str, read: Callable[[str], bytes]) -> Dataset:
    from datasets import Image, Value
    from tqdm.contrib.concurrent import thread_map

    feature = dataset.features[column]
    if isinstance(getattr(feature, "feature", feature), Image):
        return dataset
    if feature in (Value("binary"), Value("large_binary")):
        return dataset.cast_column(column, Image())
    is_record = isinstance(feature, Mapping) and {"bytes", "path"} <= feature.keys()
    if not is_record and feature not in (Value("string"), Value("large_string")):
        raise DataError(
            f"{what}: expected a picture in every row ({PICTURE_FORMS}), got {feature}; a process_docs of the task can "
            "make a column of pictures out of it"
        )

    def fetch(name: str) -> bytes:
        try:
            return read(name)
        except Exception as error:  # network, file system, hub: many kinds, and all mean the same to the user
            raise DataError(f"{what}: the image {name[:200]!r} cannot be had: {first_line(error)}") from error

    stored = [value if isinstance(value, Mapping) else {"path": value} for value in dataset[column][:]]
    names = sorted({value["path"] for value in stored if value["path"] and not value.get("bytes")})
    bar = {"desc": "Fetching images", "unit": "image", "delay": 2, "leave": False, "disable": None}
    contents = dict(zip(names, thread_map(fetch, names, max_workers=_DOWNLOADS, **bar), strict=True))
    images = [{**value, "bytes": value.get("bytes") or contents.get(value["path"])} for value in stored]
    present: Any = [image if image["bytes"] else None for image in images]
    order = dataset.column_names
    return dataset.remove_columns(column).add_column(column, present, feature=Image()).select_columns(order)


class DocumentContents(NamedTuple):
    """The documents of a data set by what they hold.

    Attributes:
        keys: by row, a hash of texts and image bytes, with a counter for exact duplicates. Seeds and stored answers
            hang on it, so that neither the order of the documents nor `--limit` matters.
        image_keys: by row, what documents with the same images share; empty without images.
        faults: what is wrong with images, by row, before anything is sampled; documents in order are not there.
    """

    keys: list[str]
    image_keys: list[str]
    faults: dict[int, str]


def contents_of(dataset: Dataset, text_columns: Sequence[str], image_columns: Sequence[str]) -> DocumentContents:
    """Look at all documents once.

    All images are looked into for their size and, where the format has some, their checksums, which takes as long as
    reading them. Only those of the first documents are decoded: for all it would take minutes. The others are decoded
    ahead of the model, where one that is damaged fails by its document's name
    (`hedge_tasks.sampling.requests.DrawRequest.row_of_data`).
    """
    contents, seen = DocumentContents([], [], {}), Counter[str]()
    for i, row in enumerate(undecoded(dataset, [*text_columns, *image_columns])):
        images = [_looked_at(row[column], decode=i < _DECODED_AT_START) for column in image_columns]
        digests = b"".join(digest for digest, _ in images)
        texts = "".join(f"{row[column]}\0" for column in text_columns)
        key = hashlib.sha256(texts.encode() + digests).hexdigest()[:32]
        contents.keys.append(f"{key}.{seen[key]}" if seen[key] else key)
        contents.image_keys.append(hashlib.sha256(digests).hexdigest()[:16] if images else "")
        if fault := next((fault for _, fault in images if fault), None):
            contents.faults[i] = fault
        seen[key] += 1
    return contents


def undecoded(dataset: Dataset, columns: Sequence[str]) -> Dataset:
    """The columns with images as stored bytes: hashing needs no pixels."""
    from datasets import Image, List

    selected = dataset.select_columns(list(columns))
    for column, feature in selected.features.items():
        if isinstance(getattr(feature, "feature", feature), Image):
            stored = Image(decode=False)
            selected = selected.cast_column(column, stored if isinstance(feature, Image) else List(stored))
    return selected


def _looked_at(image: Any, *, decode: bool) -> tuple[bytes, str | None]:
    """Digest of a stored image, and what is wrong with it; of several the digest of all, and the first fault."""
    if isinstance(image, list):
        parts = [_looked_at(part, decode=decode) for part in image]
        faults = (fault for _, fault in parts if fault)
        joined = b"".join(digest for digest, _ in parts)
        return hashlib.sha256(joined).digest(), next(faults, None if parts else "no image")
    content, path = (image.get("bytes"), image.get("path")) if isinstance(image, Mapping) else (None, image)
    fault = image_file_fault(bytes(content), decode=decode) if content else None if path else "no image"
    if not content:
        content = Path(path).read_bytes() if isinstance(path, str) and Path(path).is_file() else str(path).encode()
    return hashlib.sha256(content).digest(), fault
