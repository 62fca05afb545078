"""Croissant metadata of a made set (MLCommons, version 1.0): what its files are and what their columns hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

CROISSANT = "croissant.json"
"""Name of the file beside the card."""

_CONTEXT: Mapping[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
"""As the specification prints it."""


def croissant_of(
    folder: Path,
    splits: Mapping[str, str],
    checksums: Mapping[str, str],
    *,
    title: str,
    licence: str | None,
    about: str,
) -> dict[str, Any]:
    """Metadata of a set whose files are there.

    Columns of other types than texts, numbers, truth values, pictures and lists of these are left out.

    Args:
        splits: names of Parquet files in the folder, by split.
        checksums: SHA-256 of each file.
        title, licence, about: of the set; the licence as the hub names it.
    """
    import pyarrow.parquet as pq

    schemas = {split: pq.read_schema(folder / file) for split, file in splits.items()}
    found: dict[str, Any] = {
        "@context": dict(_CONTEXT),
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": title,
        "description": about,
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
    return found if licence is None else {**found, "license": licence}


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


def _item_of(of: pa.DataType) -> pa.DataType:
    import pyarrow as pa

    return of.value_type if pa.types.is_list(of) or pa.types.is_large_list(of) else of


def _type_of(of: pa.DataType) -> str | None:
    import pyarrow as pa

    item = _item_of(of)
    if pa.types.is_struct(item) and {field.name for field in item} == {"bytes", "path"}:
        return "sc:ImageObject"
    kinds = {
        "sc:Text": pa.types.is_string(item) or pa.types.is_large_string(item),
        "sc:Boolean": pa.types.is_boolean(item),
        "sc:Integer": pa.types.is_integer(item),
        "sc:Float": pa.types.is_floating(item),
    }
    return next((kind for kind, fits in kinds.items() if fits), None)
