"""A Delta table as a streaming DataFrame, and the errors with which Delta stops it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from slackwater.base.errors import RunError, fault, listed
from slackwater.connectors.delta.jars import check_delta_session
from slackwater.formats.schemas import as_schema, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from slackwater.connectors.delta.source.definition import DeltaSource

_CHANGED: Final = ("DELTA_SOURCE_TABLE_IGNORE_CHANGES", "DELTA_SOURCE_IGNORE_DELETE")


def delta_stream(spark: SparkSession, source: DeltaSource) -> DataFrame:
    """Return a table's rows as a streaming DataFrame, with the columns that the pipeline was planned for."""
    check_delta_session(spark)
    frame = spark.readStream.format("delta").options(**dict(source.options)).load(source.path)
    ddl = ", ".join(f"{quoted(field.name)} {field.dataType.simpleString()}" for field in frame.schema.fields)
    found = as_schema(ddl)
    problems = [f"`{name}` is not a column" for name in source.typed if name not in found]
    problems += [
        f"`{name}` is {found[name]} and not {dtype}, a column"
        for name, dtype in source.typed.items()
        if name in found and found[name] != dtype
    ]
    if problems:
        raise fault("DELTA_SOURCE_COLUMNS", path=source.path, problems=listed(problems))
    return frame.select(*(quoted(name) for name in source.typed))


def changed_source(table: DeltaSource, error: Exception) -> RunError | None:
    """Return the error for a commit that changed rows of a table, if that stopped the query."""
    text = str(error)
    if table.path not in text or not any(code in text for code in _CHANGED):
        return None
    why = next(line for line in text.splitlines() if any(code in line for code in _CHANGED))
    return fault("DELTA_SOURCE_CHANGED", path=table.path, why=why.strip()[:300])
