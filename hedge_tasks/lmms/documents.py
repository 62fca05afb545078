"""The documents of a task: the rows of its split, read as the key `hedge` of its YAML says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from hedge_tasks.data import splits
from hedge_tasks.data.groups import find_groups
from hedge_tasks.data.manifests import Data, text_digest
from hedge_tasks.data.splits import DATA_FILES
from hedge_tasks.errors import DataError
from hedge_tasks.lmms.catalogue import how_built
from hedge_tasks.lmms.settings import DocumentSettings

if TYPE_CHECKING:
    from datasets import Dataset

_SHOWN = 10


@dataclass
class Documents:
    """The rows of a split, and what is known of each.

    Attributes:
        rows, texts: all columns, and those without images.
        source: where they come from; a local copy has no revision, whatever the YAML asks the hub for.
        keys: by row, what seeds and stored answers hang on.
        groups: by row, which ones belong together: by the column of groups, and by what they show.
        image_keys: by row, what documents with the same images share; empty for none.
        image_faults: of the rows whose images cannot be shown, why.
    """

    rows: Dataset
    texts: Dataset
    source: Data
    keys: list[str] = field(default_factory=list)
    groups: tuple[str | None, ...] = ()
    image_keys: dict[int, str] = field(default_factory=dict)
    image_faults: dict[int, str] = field(default_factory=dict)


def load_documents(
    task: str,
    source: Data,
    settings: DocumentSettings,
    *,
    process: Callable[..., Dataset] | None = None,
    options: Mapping[str, Any] | None = None,
) -> Documents:
    """Load a split and look into its images.

    Args:
        task: its name, for errors.
        source: data set, config and split; `settings` has the revision.
        settings: which column is what.
        process: `process_docs` of the YAML.
        options: `dataset_kwargs` of the YAML: `data_files` where the data set is in files, and keyword arguments of
            `process`.

    Raises:
        DataError: the data cannot be had, lacks a column, or is empty.
    """
    options = dict(options or {})
    files = options.pop(DATA_FILES, None)
    try:
        dataset = splits.load_split(
            source.path, source.name, str(source.split), revision=settings.revision, files=files
        )
    except DataError as error:
        raise DataError(f"{error}{how_built(task)}") from error
    source = replace(source, revision=splits.loaded_revision(dataset))
    if process is not None:
        dataset = process(dataset, **options)
    what = f"{task} ({source.path}, {source.split})"
    if missing := settings.columns() - set(dataset.column_names):
        names = ", ".join(dataset.column_names)
        raise DataError(f"{what}: no column {', '.join(sorted(missing))}; there are {names}")
    if len(dataset) == 0:
        raise DataError(f"{what}: no documents")
    _check_texts(dataset, settings, what)
    if settings.id and len(set(map(str, dataset[settings.id]))) < len(dataset):
        raise DataError(f"{what}: documents share values of the column {settings.id!r}; leave out id, to number them")
    dataset = splits.fetch_images(dataset, settings.images, source.path, source.revision or settings.revision, files)
    contents = splits.contents_of(dataset, settings.text_columns(), settings.images)
    return Documents(
        dataset,
        dataset.remove_columns(list(settings.images)),
        source,
        keys=contents.keys,
        groups=_groups(dataset, settings, contents.image_keys),
        image_keys=dict(enumerate(contents.image_keys)),
        image_faults=contents.faults,
    )


def _check_texts(dataset: Dataset, settings: DocumentSettings, what: str) -> None:
    """Refuse cells that would be asked or judged as the text "None" or as a list in Python's form.

    Raises:
        DataError: names the column and the first rows.
    """
    for column in settings.text_columns():
        faulty = (list, dict, type(None)) if column in (settings.question, settings.answer) else (list, dict)
        if rows := [i for i, value in enumerate(dataset[column][:]) if isinstance(value, faulty)]:
            first = ", ".join(map(str, rows[:_SHOWN])) + (", ..." if len(rows) > _SHOWN else "")
            raise DataError(f"{what}: the column {column!r} is null or no text in {len(rows)} rows ({first})")


def _groups(dataset: Dataset, settings: DocumentSettings, image_keys: Sequence[str]) -> tuple[str | None, ...]:
    """Return the groups of the rows: what the column says, joined with what rows show.

    Rows without a picture belong together where they ask the same. Words alone tell nothing of rows with pictures:
    "What is shown?" is asked of every one.
    """
    declared = None if settings.group is None else [str(group) or None for group in dataset[settings.group]]
    columns = [column for column in (settings.context, settings.question) if column]
    texts = ["\0".join(map(str, row)) for row in zip(*(dataset[column][:] for column in columns), strict=True)]
    contents = [key or f"text {text_digest(text)}" for key, text in zip(image_keys, texts, strict=True)]
    return find_groups(declared, contents)
