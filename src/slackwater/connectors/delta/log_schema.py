"""A table's columns, read from its log without Spark: pipelines are planned before there is a session."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import polars as pl

_METADATA: Final = '{"metaData"'


def logged_schema(path: str) -> str | None:
    """Return the columns of the table at a local path as DDL; None if there is no table."""
    log = Path(path) / "_delta_log"
    commits = sorted(log.glob("[0-9]*.json"), reverse=True)
    text = next(filter(None, map(_in_commit, commits)), None) or _in_checkpoint(log)
    return None if text is None else _ddl(json.loads(text))


def _in_commit(path: Path) -> str | None:
    """Return the schema set by a commit, in Spark's JSON; most commits set none."""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            if line.startswith(_METADATA):
                schema: str = json.loads(line)["metaData"]["schemaString"]
                return schema
    return None


def _in_checkpoint(log: Path) -> str | None:
    """Return the schema from the newest checkpoint, which replaces the commits before it."""
    for path in sorted(log.glob("[0-9]*.checkpoint*.parquet"), reverse=True):
        column = pl.col("metaData").struct.field("schemaString")
        found = pl.scan_parquet(path).select(column).drop_nulls().collect()
        if found.height:
            text: str = found.item(0, 0)
            return text
    return None


def _ddl(schema: dict[str, Any]) -> str:
    from pyspark.sql.types import StructType  # noqa: PLC0415  takes half a second, and few pipelines need it

    fields = StructType.fromJson(schema).fields
    return ", ".join(f"`{field.name}` {field.dataType.simpleString()}" for field in fields)
