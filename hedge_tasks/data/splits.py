"""Where documents come from (a local folder, the package itself, the Hugging Face hub) and what identifies them."""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import unquote

from loguru import logger

from hedge_tasks.data.pictures import TOO_LARGE, UNREADABLE, image_file_fault
from hedge_tasks.errors import DataError
from hedge_tasks.io.json_lines import read_objects
from hedge_tasks.io.sources import PACKAGE_SCHEME, hub_or_cache, package_folder, split_address

if TYPE_CHECKING:
    from datasets import Dataset

DATA_DIR = "HEDGE_DATA_DIR"

# In a builder's list of what it downloaded: hf://datasets/org/name@<commit>/file
_COMMIT = re.compile(r"^hf://[^@]+@([0-9a-f]{40})/")

_DOWNLOADS = 8
_TIMEOUT_S = 30.0
_LARGEST_IMAGE = 64 << 20
_DECODED_AT_START = 16


def load_split(path: str, name: str | None, split: str, *, revision: str | None = None) -> Dataset:
    """Load one split of a data set.

    Looked for in this order: inside the package for `package://some.package/folder`; in the folder that the environment
    variable HEDGE_DATA_DIR names, as `<id with / written __>/[config/]<split>*.parquet`; on the hub at `revision`. A
    folder without parquet files may have `<split>.jsonl`.

    Args:
        path: hub id or `package://` address.
        name: config of the data set, or None.
        split: such as "test".
        revision: commit or tag on the hub; local copies carry none.

    Raises:
        DataError: nothing found or unreadable. Names the data set and both ways to provide it.
    """
    if path.startswith(PACKAGE_SCHEME):
        return _read_parquet(_package_folder(path), split, path)
    local = _local_folder(path, name)
    if local is not None:
        logger.info("{} ({}): reading {}", path, split, local)
        return _read_parquet(local, split, path)
    return _load_from_hub(path, name, split, revision)


def loaded_revision(dataset: Dataset) -> str | None:
    """The commit that a data set came from, as its builder recorded it; None for local files."""
    for address in dataset.info.download_checksums or {}:
        if found := _COMMIT.search(address):
            return found[1]
    return None


def fetch_images(dataset: Dataset, columns: Sequence[str], path: str, revision: str | None = None) -> Dataset:
    """Replace names and addresses in image columns by the files that they mean. Embedded images stay as they are.

    A name is that of a file of the data set, relative to its root, looked for in the folder that HEDGE_DATA_DIR names
    and then on the hub at `revision`. An address of the data set's own files means the file of that name, so that a
    local copy serves it, too; any other address is downloaded and must begin with https://.

    Args:
        path: hub id of the data set or `package://` address.

    Raises:
        DataError: a file cannot be had, or a name leads out of the data set's folder. Names the column and the file.
    """
    from datasets import Image, Value

    for column in columns:
        if dataset.features[column] not in (Value("string"), Value("large_string")):
            continue
        names = dataset[column][:]
        files = _fetch_all(sorted({name for name in names if name}), path, revision, f"{path}, column {column!r}")
        images = [{"bytes": files[name], "path": name} if name else None for name in names]
        at = dataset.column_names.index(column)
        order = [*dataset.column_names[:at], column, *dataset.column_names[at + 1 :]]
        dataset = dataset.remove_columns(column).add_column(column, images, feature=Image()).select_columns(order)
    return dataset


def _fetch_all(names: Sequence[str], path: str, revision: str | None, what: str) -> dict[str, bytes]:
    """Read or download files, several at a time."""
    from tqdm.contrib.concurrent import thread_map

    def fetch(name: str) -> bytes:
        try:
            return _fetch(name, path, revision)
        except Exception as error:  # network, file system, hub: many kinds, and all mean the same to the user
            raise DataError(f"{what}: the image {name[:200]!r} cannot be had: {_first_line(error)}") from error

    bar = {"desc": "Fetching images", "unit": "image", "delay": 2, "leave": False}
    return dict(zip(names, thread_map(fetch, names, max_workers=_DOWNLOADS, **bar), strict=True))


def _fetch(name: str, path: str, revision: str | None) -> bytes:
    own = re.match(rf"https?://[^/]+/datasets/{re.escape(path)}/(?:resolve|raw|blob)/[^/]+/([^?#]+)", name)
    if own is None and "://" in name:
        return _download(name)
    file = PurePosixPath(unquote(own[1]) if own else name)
    if file.is_absolute() or ".." in file.parts or "\\" in name:
        raise DataError("a file name must lie in the data set's folder")
    local = _beside_data(path, file)
    if local is not None:
        return local.read_bytes()
    from huggingface_hub import hf_hub_download

    return Path(hf_hub_download(path, str(file), repo_type="dataset", revision=revision)).read_bytes()


def _beside_data(path: str, file: PurePosixPath) -> Path | None:
    """A file of the local copy of a data set, None if it has no such file."""
    if path.startswith(PACKAGE_SCHEME):
        return _package_folder(path) / file
    root = os.environ.get(DATA_DIR)
    found = Path(root) / path.replace("/", "__") / file if root else None
    return found if found is not None and found.is_file() else None


def _download(address: str) -> bytes:
    import httpx

    if not address.startswith("https://"):
        raise DataError("only https:// addresses are downloaded")
    parts, size = [], 0
    with httpx.stream("GET", address, timeout=_TIMEOUT_S, follow_redirects=True) as response:
        response.raise_for_status()
        for part in response.iter_bytes():
            parts.append(part)
            size += len(part)
            if size > _LARGEST_IMAGE:
                raise DataError(f"more than {_LARGEST_IMAGE >> 20} MiB")
    return b"".join(parts)


def document_keys(dataset: Dataset, text_columns: Sequence[str], image_columns: Sequence[str]) -> list[str]:
    """One key a document: a hash of its texts and its image bytes, with a counter for exact duplicates.

    Seeds and stored answers hang on it, so that neither the order of the documents nor `--limit` matters.
    """
    seen: Counter[str] = Counter()
    keys = []
    for row in _undecoded(dataset, [*text_columns, *image_columns]):
        digest = hashlib.sha256()
        for column in text_columns:
            digest.update(f"{row[column]}\0".encode())
        for column in image_columns:
            digest.update(hashlib.sha256(_image_bytes(row[column])).digest())
        key = digest.hexdigest()[:32]
        keys.append(f"{key}.{seen[key]}" if seen[key] else key)
        seen[key] += 1
    return keys


def image_keys(dataset: Dataset, image_columns: Sequence[str]) -> list[str]:
    """One key a document that documents with the same images share. Empty without images."""
    if not image_columns:
        return [""] * len(dataset)
    return [
        hashlib.sha256(b"".join(hashlib.sha256(_image_bytes(row[c])).digest() for c in image_columns)).hexdigest()[:16]
        for row in _undecoded(dataset, image_columns)
    ]


def image_faults(dataset: Dataset, image_columns: Sequence[str]) -> dict[int, str]:
    """What is wrong with the images of documents, by row, before anything is sampled; documents in order are not there.

    All images are looked into for their size and, where the format has some, their checksums, which takes as long as
    reading them. Only those of the first documents are decoded: for all it would take minutes. The others are decoded
    ahead of the model, where one that is damaged fails by its document's name
    (`hedge_tasks.sampling.requests.DrawRequest.row_of_data`).
    """
    faults: dict[int, str] = {}
    for column in image_columns:
        for i, row in enumerate(_undecoded(dataset, [column])):
            if fault := _image_fault(row[column], decode=i < _DECODED_AT_START):
                faults.setdefault(i, fault)
    return faults


def describe_faults(faults: Mapping[int, str], n_documents: int) -> str:
    """One line about documents whose images cannot be shown; see `image_faults`."""
    said = []
    for fault in ("no image", UNREADABLE, TOO_LARGE):
        if rows := [i for i, found in sorted(faults.items()) if found == fault]:
            shown = ", ".join(map(str, rows[:10])) + (", ..." if len(rows) > 10 else "")
            said.append(f"{len(rows)} of {n_documents} documents have {fault} (rows {shown})")
    return "; ".join(said)


def _undecoded(dataset: Dataset, columns: Sequence[str]) -> Dataset:
    """The columns with images as stored bytes: hashing needs no pixels."""
    from datasets import Image

    selected = dataset.select_columns(list(columns))
    for column, feature in selected.features.items():
        if isinstance(feature, Image):
            selected = selected.cast_column(column, Image(decode=False))
    return selected


def _image_bytes(image: object) -> bytes:
    if isinstance(image, Mapping):
        if image.get("bytes") is not None:
            return bytes(image["bytes"])
        image = image.get("path")
    if isinstance(image, str) and Path(image).is_file():
        return Path(image).read_bytes()
    return str(image).encode()


def _image_fault(image: object, *, decode: bool) -> str | None:
    """What is wrong with a stored image."""
    if not image or (isinstance(image, Mapping) and not (image.get("bytes") or image.get("path"))):
        return "no image"
    if isinstance(image, Mapping) and image.get("bytes"):
        return image_file_fault(bytes(image["bytes"]), decode=decode)
    return None


def _package_folder(address: str) -> Path:
    parts = split_address(address)
    folder = package_folder(*parts) if parts else None
    if folder is None:
        raise DataError(f"{address}: there is no such folder in an installed package")
    return folder


def _local_folder(path: str, name: str | None) -> Path | None:
    root = os.environ.get(DATA_DIR)
    if not root:
        return None
    if not Path(root).is_dir():
        raise DataError(f"{DATA_DIR}={root} is not a folder")
    folder = Path(root) / path.replace("/", "__")
    for candidate in [folder / name, folder] if name else [folder]:
        if any(candidate.glob("*.parquet")):
            return candidate
    if folder.is_dir():
        raise DataError(f"{folder} ({DATA_DIR}) holds no parquet file" + (f" for config {name!r}" if name else ""))
    logger.info("{} is not in {}={}; trying the hub", path, DATA_DIR, root)
    return None


def _read_parquet(folder: Path, split: str, what: str) -> Dataset:
    from datasets import Dataset

    files = sorted(folder.glob(f"{split}*.parquet"))
    lines = folder / f"{split}.jsonl"
    if not files and lines.is_file():
        return Dataset.from_list([dict(row) for _, row in read_objects(lines)])
    if not files:
        found = ", ".join(sorted(p.name for p in folder.glob("*.parquet"))) or "no parquet file"
        raise DataError(f"{what}: no {split}*.parquet or {split}.jsonl in {folder} (there: {found})")
    try:
        return Dataset.from_parquet([str(file) for file in files])
    except Exception as error:  # pyarrow and datasets raise many kinds; all mean the same to the user
        names = ", ".join(file.name for file in files)
        raise DataError(f"{what}: cannot read {names} in {folder}: {_first_line(error)}") from error


def _load_from_hub(path: str, name: str | None, split: str, revision: str | None) -> Dataset:
    from datasets import load_dataset

    try:
        with hub_or_cache():
            return load_dataset(path, name=name, split=split, revision=revision)
    except Exception as error:  # network, authorisation, missing repository: told apart by the text, helped alike
        folder = f"{path.replace('/', '__')}/{f'{name}/' if name else ''}{split}*.parquet"
        part = f"config {name}, split {split}" if name else f"split {split}"
        raise DataError(
            f"data set {path} ({part}) cannot be loaded: {_first_line(error)}. Either make the Hugging Face hub "
            f"reachable (log in for gated data sets), or put a copy at DIR/{folder} and set {DATA_DIR}=DIR."
        ) from error


def _first_line(error: Exception) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0][:300]}" if text else type(error).__name__
