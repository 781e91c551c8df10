"""Measuring a log or topic that no pipeline reads yet: only its event time is needed."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Final

import polars as pl

from slackwater.base.durations import Duration
from slackwater.base.errors import fault, listed, near_miss
from slackwater.base.expressions import as_expr
from slackwater.base.folders import given_path
from slackwater.connectors.kafka.connection import Connection, connection
from slackwater.connectors.kafka.reading import topic_frames
from slackwater.connectors.kafka.source.definition import kafka
from slackwater.connectors.log.reading import LogFile, LogFormat, list_log, read_file
from slackwater.connectors.log.source import LogSource, log
from slackwater.formats.json import json as json_format
from slackwater.formats.schemas import SchemaSpec
from slackwater.plan.plan import Plan
from slackwater.plan.planner import plan_pipeline
from slackwater.plan.streams import Output, Stream, stream
from slackwater.tools.lateness.measure import Watch, measure_source
from slackwater.tools.lateness.report import DEFAULT_TARGET, LatenessReport, check_target, make_report

_NAME: Final = "log"
_SAMPLE: Final = 200
_FORMATS: Final[dict[str, LogFormat]] = {".parquet": "parquet", ".avro": "avro"}
_TIMESTAMP: Final = pl.Datetime("us", "UTC")


def measure_log(
    folder: str | Path,
    *,
    time: str,
    schema: SchemaSpec | None = None,
    format: LogFormat | None = None,  # noqa: A002  the name users expect
    max_ahead: Duration | None = None,
    target: float = DEFAULT_TARGET,
    limit: int | None = None,
    watch: Watch | None = None,
) -> LatenessReport:
    """Measure a log by `time`, a column or an expression: `measure_log("data/orders", time="placed_at")`.

    Anything not given is derived from the log: the format from a file name, the columns of Parquet and Avro from a
    file, the types of the JSON columns that `time` needs from the first records. `limit` and `target` are as in
    `measure_plan`.
    """
    check_target(target)
    [source] = _plan(given_path(folder), time=time, schema=schema, format=format, max_ahead=max_ahead).sources
    measured = replace(measure_source(source, limit=limit, watch=watch), out_of_orderness_ms=None)
    return make_report([measured], target=target)


def measure_topic(
    servers: str | Connection,
    topic: str,
    *,
    time: str,
    schema: SchemaSpec | None = None,
    max_ahead: Duration | None = None,
    target: float = DEFAULT_TARGET,
    limit: int | None = None,
    watch: Watch | None = None,
) -> LatenessReport:
    """Measure a Kafka topic of JSON records by `time`: `measure_topic("localhost:9092", "orders", time="placed_at")`.

    The types of the columns that `time` needs are inferred from the newest records, unless `schema` is given.
    """
    check_target(target)
    known = connection(servers) if isinstance(servers, str) else servers
    source = kafka(known.servers, topic=topic, tls=known.tls, sasl=known.sasl)
    columns = schema
    if columns is None:
        frames = (frame for _, frame in topic_frames(source.connection, [topic], limit=_SAMPLE))
        records = [_object(line) for frame in frames for line in frame["value"].drop_nulls().to_list()]
        columns = _seen_types(
            f"{known.servers}/{topic}", [each for each in records if each], as_expr(time).meta.root_names()
        )
    timed = stream("topic", source).decode(json_format(columns)).event_time(time, max_ahead=max_ahead)
    [only] = _timed_plan(timed).sources
    measured = measure_source(only, limit=limit, watch=watch)
    return make_report([replace(measured, name=topic, out_of_orderness_ms=None)], target=target)


def _plan(
    folder: str | Path,
    *,
    time: str,
    schema: SchemaSpec | None,
    format: LogFormat | None,  # noqa: A002  as above
    max_ahead: Duration | None,
) -> Plan:
    """Return a plan that only reads the log and takes its event time."""
    if not Path(folder).is_dir():
        raise fault("LOG_FOLDER_MISSING", path=folder, stream=_NAME)
    files = list_log(folder)
    if not files:
        raise fault("LATENESS_NO_EVENTS", found=f"log `{folder}` holds no file")
    needed = as_expr(time).meta.root_names()
    if format is None:
        format = _FORMATS.get(Path(files[0].path).suffix, "json")  # noqa: A001  as the argument
    if format == "parquet":
        rows = stream(_NAME, _parquet(folder, files[0], needed, schema))
    elif format == "avro":
        rows = stream(_NAME, log(folder, format=format, schema=schema))
    else:
        columns = schema if schema is not None else _seen_types(folder, _sample(files), needed)
        rows = stream(_NAME, log(folder, format=format)).decode(json_format(columns))
    timed = rows.event_time(time, max_ahead=max_ahead)
    return _timed_plan(timed)


def _timed_plan(timed: Stream) -> Plan:
    return plan_pipeline("lateness", (Output(of=timed, kind="rows").drop(), timed.dead_letters.drop()), key_groups=1)


def _parquet(folder: str | Path, first: LogFile, needed: list[str], schema: SchemaSpec | None) -> LogSource:
    if schema is not None:
        return log(folder, format="parquet", schema=schema)
    try:
        known = pl.read_parquet_schema(first.path)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise fault("LOG_FILE_UNREADABLE", path=first.path, cause=error) from error
    # Only the columns that `time` needs are read. If one is missing, the error should list all columns.
    wanted = {name: dtype for name, dtype in known.items() if name in needed}
    return log(folder, format="parquet", schema=wanted if len(wanted) == len(set(needed)) else known)


def _seen_types(folder: str | Path, records: list[dict[str, object]], needed: list[str]) -> dict[str, pl.DataType]:
    found: dict[str, pl.DataType] = {}
    for column in needed:
        kinds = Counter(_kind(record[column]) for record in records if record.get(column) is not None)
        if not kinds:
            names = _fields(records)
            facts = {"hint": near_miss(column, names), "known": listed(names, near=column)}
            raise fault("LATENESS_TIME_UNKNOWN", column=column, path=folder, number=len(records), **facts)
        found[column] = kinds.most_common(1)[0][0]
    return found


def _sample(files: list[LogFile]) -> list[dict[str, object]]:
    """Return the first records of the first file that has any; anything but JSON objects is left out."""
    for file in files:
        for piece in read_file(file.path, length=file.length, modified_ms=file.modified_ms, kind="json"):
            records = [_object(line) for line in piece.frame["__payload"].head(_SAMPLE).to_list()]
            found = [record for record in records if record]
            if found:
                return found
    return []


def _object(line: bytes) -> dict[str, object]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return {}  # counted as a dead letter by the measurement
    return record if isinstance(record, dict) else {}


def _kind(value: object) -> pl.DataType:
    if isinstance(value, bool):
        return pl.Boolean()
    if isinstance(value, int):
        return pl.Int64()
    return pl.Float64() if isinstance(value, float) else _TIMESTAMP


def _fields(records: list[dict[str, object]]) -> list[str]:
    return list(dict.fromkeys(name for record in records for name in record))
