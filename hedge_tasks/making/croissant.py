"""Croissant metadata of a made set (MLCommons, version 1.0): what its files are and what their columns hold."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

CROISSANT = "croissant.json"
"""Name of the file beside the card."""

_CONTEXT = resources.files("hedge_tasks.making") / "templates" / "croissant_context.json"
"""As the specification prints it."""


def croissant_of(
    folder: Path,
    splits: Mapping[str, str],
    checksums: Mapping[str, str],
    *,
    title: str,
    licence: str | None,
    description: str,
) -> dict[str, Any]:
    """Metadata of a set whose files are there.

    Columns of other types than texts, numbers, truth values, pictures and lists of these are left out.

    Args:
        splits: names of Parquet files in the folder, by split.
        checksums: SHA-256 of each file.
        title, licence, description: of the set; the licence as the hub names it.
    """
    import pyarrow.parquet as pq

    schemas = {split: pq.read_schema(folder / file) for split, file in splits.items()}
    metadata: dict[str, Any] = {
        "@context": json.loads(_CONTEXT.read_text("utf-8")),
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": title,
        "description": description,
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": file,
                "name": file,
                "contentUrl": file,
                "encodingFormat": "application/x-parquet",
                "sha256": checksums[file],
            }
            for file in splits.values()
        ],
        "recordSet": [
            {
                "@type": "cr:RecordSet",
                "@id": split,
                "name": split,
                "field": [*_fields(split, splits[split], schema)],
            }
            for split, schema in schemas.items()
        ],
    }
    return metadata if licence is None else {**metadata, "license": licence}


def _fields(split: str, file: str, schema: pa.Schema) -> Iterator[dict[str, Any]]:
    for column in schema:
        if (kind := _type_of(column.type)) is None:
            continue
        source: dict[str, Any] = {"fileObject": {"@id": file}, "extract": {"column": column.name}}
        if kind == "sc:ImageObject":
            source["transform"] = {"jsonPath": "bytes"}
        field = {"@type": "cr:Field", "@id": f"{split}/{column.name}", "name": column.name, "dataType": kind}
        listed = {"repeated": True} if _item_of(column.type) is not column.type else {}
        yield {**field, **listed, "source": source}


def _item_of(data_type: pa.DataType) -> pa.DataType:
    import pyarrow as pa

    return data_type.value_type if pa.types.is_list(data_type) or pa.types.is_large_list(data_type) else data_type


def _type_of(data_type: pa.DataType) -> str | None:
    import pyarrow as pa

    item = _item_of(data_type)
    if pa.types.is_struct(item) and {field.name for field in item} == {"bytes", "path"}:
        return "sc:ImageObject"
    kinds = {
        "sc:Text": pa.types.is_string(item) or pa.types.is_large_string(item),
        "sc:Boolean": pa.types.is_boolean(item),
        "sc:Integer": pa.types.is_integer(item),
        "sc:Float": pa.types.is_floating(item),
    }
    return next((kind for kind, fits in kinds.items() if fits), None)
