"""Avro schemas of one field, and what is written and read by them."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import polars as pl

from slackwater.formats import avro as typed_avro
from slackwater.formats.avro import AvroEncoder

avro: Any = typed_avro  # untyped: schemas are dicts
UUID_TEXT = "0f8fad5b-d9cb-469f-a165-70867728950e"


def record(*fields: Any, name: str = "R") -> dict[str, Any]:  # noqa: ANN401
    return {"type": "record", "name": name, "fields": list(fields)}


def of_type(kind: Any, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    return record({"name": "a", "type": kind, **more})


def fixed(size: int, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"type": "fixed", "name": "F", "size": size, **more}


def decimal(precision: int, scale: int = 0) -> dict[str, Any]:
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}


def long(logical: str) -> dict[str, Any]:
    return {"type": "long", "logicalType": logical}


def column(*values: Any, dtype: Any) -> pl.DataFrame:  # noqa: ANN401
    return pl.DataFrame({"a": pl.Series(values, dtype=dtype)})


def encoded(schema: Any, frame: pl.DataFrame) -> list[bytes]:  # noqa: ANN401
    encoder: AvroEncoder = avro(schema).encoder(frame.schema, subject="orders-value")
    return encoder.encode(frame).to_list()


def derived(schema: dict[str, Any], subject: str = "orders-value") -> Any:  # noqa: ANN401
    return json.loads(avro().encoder(pl.Schema(schema), subject=subject).text)


def read(schema: Any, payload: bytes) -> Any:  # noqa: ANN401
    """Return what fastavro reads, having read all of it."""
    source = io.BytesIO(payload)
    found = fastavro.schemaless_reader(source, schema, None)
    assert source.tell() == len(payload)
    return found
