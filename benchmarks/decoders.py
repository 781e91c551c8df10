"""`python -m benchmarks.decoders [FORMAT ...]`: records a second that each format decodes, on one core.

With `--encode`, records a second that Avro encodes, beside fastavro's writer in a loop over rows that are dicts
already and have times as numbers: what it does fastest.

The record is that of the other benchmarks: {event_id long, key string, ts long, value double}. Every
format decodes the same rows, and what it gives is compared with them first (a format with a type for
times of its own gives `ts` as one). The best of several turns
counts: on a machine that does other things as well, the others are slower for reasons of their own.
"""

from __future__ import annotations

import os

os.environ["POLARS_MAX_THREADS"] = "1"  # read once, when Polars is imported

import argparse
import io
import json
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import fastavro
import numpy as np
import pandas as pd
import polars as pl
from google.protobuf.descriptor_pb2 import (  # type: ignore[import-untyped]
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
)
from pyspark.sql import functions as F  # noqa: N812  PySpark's own convention

import slackwater as sw
from benchmarks.data import DDL, avro, varint
from slackwater.formats import Format
from slackwater.spark.session import spark_session

_SEED: Final = 20_240_131
_FIRST_ID: Final = 10_000_000
_EPOCH_MS: Final = 1_700_000_000_000


@dataclass(frozen=True, kw_only=True)
class Case:
    """A format and how its records are written; `write` takes the values of one row."""

    form: Callable[[], Format]
    write: Callable[[int, str, int, float], bytes]


def rows(count: int) -> pl.DataFrame:
    """Return the rows that every format decodes."""
    dice = np.random.default_rng(_SEED)
    keys = [f"user-{number:06d}" for number in dice.integers(0, 1_000, count)]
    return pl.DataFrame(
        {
            "event_id": np.arange(_FIRST_ID, _FIRST_ID + count),
            "key": keys,
            "ts": _EPOCH_MS + np.arange(count) * 7,
            "value": (dice.random(count) * 100).round(2),
        }
    )


def _json(event_id: int, key: str, ts: int, value: float) -> bytes:
    fields = {"event_id": event_id, "key": key, "ts": ts, "value": value}
    return json.dumps(fields, separators=(",", ":")).encode()


def _avro_schema() -> str:
    time_ms = {"type": "long", "logicalType": "timestamp-millis"}
    types = {"event_id": "long", "key": "string", "ts": time_ms, "value": "double"}
    fields = [{"name": name, "type": kind} for name, kind in types.items()]
    return json.dumps({"type": "record", "name": "Event", "fields": fields})


def _protobuf_form() -> Format:
    kinds = {
        "event_id": FieldDescriptorProto.TYPE_INT64,
        "key": FieldDescriptorProto.TYPE_STRING,
        "ts": FieldDescriptorProto.TYPE_INT64,
        "value": FieldDescriptorProto.TYPE_DOUBLE,
    }
    file = FileDescriptorProto(name="event.proto", syntax="proto3")
    message = file.message_type.add(name="Event")
    for number, (name, kind) in enumerate(kinds.items(), start=1):
        message.field.add(name=name, number=number, type=kind, label=FieldDescriptorProto.LABEL_OPTIONAL)
    content = FileDescriptorSet(file=[file]).SerializeToString()
    return sw.formats.protobuf(descriptor_set=content, name="Event")


def _protobuf(event_id: int, key: str, ts: int, value: float) -> bytes:
    text = b"\x12" + varint(len(key)) + key.encode()
    return b"\x08" + varint(event_id) + text + b"\x18" + varint(ts) + b"\x21" + struct.pack("<d", value)


def _csv(event_id: int, key: str, ts: int, value: float) -> bytes:
    return f"{event_id},{key},{ts},{value}".encode()


CASES: Final[dict[str, Case]] = {
    "json": Case(form=lambda: sw.formats.json(DDL), write=_json),
    "avro": Case(form=lambda: sw.formats.avro(_avro_schema()), write=avro),
    "protobuf": Case(form=_protobuf_form, write=_protobuf),
    "csv": Case(form=lambda: sw.formats.csv(DDL), write=_csv),
}
"""Every format that is measured: one entry each."""


def records_per_s(case: Case, given: pl.DataFrame, *, turns: int) -> tuple[float, float]:
    """Return records a second and megabytes a second, of the fastest of some turns."""
    payload = pl.Series([case.write(*row) for row in given.iter_rows()], dtype=pl.Binary)
    decoder = case.form().decoder()
    decoded = decoder.decode(payload)
    plain = decoded.frame.with_columns(pl.selectors.datetime().dt.epoch("ms"))
    if not decoded.bad.is_empty() or not plain.equals(given):
        raise SystemExit(f"{case.form()} does not give the rows that were written: {decoded.bad.head(3)}")
    best_s = min(_timed_s(lambda: decoder.decode(payload)) for _ in range(turns))
    return len(payload) / best_s, float(payload.bin.size().sum()) / best_s / 1e6


def sparks_records_per_s(name: str, given: pl.DataFrame, *, turns: int) -> float | None:
    """Return records a second of Spark's own decoder on one core, from memory; None if it has none here."""
    decode = {"json": F.from_json, "csv": F.from_csv}.get(name)
    if decode is None:
        return None
    spark = spark_session(master="local[1]", name="decoders")
    lines = [(CASES[name].write(*row).decode(),) for row in given.iter_rows()]
    records = spark.createDataFrame(pd.DataFrame(lines, columns=["line"])).cache()
    records.count()
    ddl = ", ".join(f"{column} {kind}" for column, kind in (pair.split() for pair in DDL.split(", ")))
    event = decode(F.col("line"), ddl).alias("event")
    decoded = records.select(event).select("event.*")
    best_s = min(_timed_s(lambda: decoded.write.format("noop").mode("overwrite").save()) for _ in range(turns))
    records.unpersist()
    return given.height / best_s


def encoded_per_s(given: pl.DataFrame, *, turns: int, nullable: bool) -> tuple[float, float]:
    """Return records a second that Avro and fastavro encode, having compared the records; all may be null or none."""
    frame = given.with_columns(pl.col("ts").cast(pl.Datetime("ms", "UTC")))
    form = sw.formats.avro() if nullable else sw.formats.avro(_avro_schema())
    encoder = form.encoder(frame.schema, subject="events-value")
    plain = pl.Schema(given.schema)
    text = sw.formats.avro().encoder(plain, subject="events-value").text if nullable else _avro_schema()
    schema = fastavro.parse_schema(json.loads(text.replace('"logicalType": "timestamp-millis"', '"doc": ""')))
    listed = given.to_dicts()

    def in_a_loop() -> list[bytes]:
        records = []
        for row in listed:
            out = io.BytesIO()
            fastavro.schemaless_writer(out, schema, row)
            records.append(out.getvalue())
        return records

    if encoder.encode(frame).to_list() != in_a_loop():
        raise SystemExit("Avro and fastavro do not write the same records")
    ours = min(_timed_s(lambda: encoder.encode(frame)) for _ in range(turns))
    theirs = min(_timed_s(in_a_loop) for _ in range(turns))
    return given.height / ours, given.height / theirs


def _timed_s(run: Callable[[], object]) -> float:
    begun = time.perf_counter()
    run()
    return time.perf_counter() - begun


def main() -> None:
    """Measure the formats that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("formats", nargs="*", help=f"which of {', '.join(CASES)}; all by default")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--spark", action="store_true", help="Spark's own decoders beside them, where it has them")
    parser.add_argument("--encode", action="store_true", help="encode Avro in place of decoding")
    options = parser.parse_args()
    if unknown := set(options.formats) - set(CASES):
        parser.error(f"no such format: {', '.join(sorted(unknown))}")
    given = rows(options.rows)
    if options.encode:
        print(f"{'records':<20}{'records/s':>14}{'fastavro':>14}")
        for nullable in (False, True):
            ours, theirs = encoded_per_s(given, turns=options.turns, nullable=nullable)
            print(f"{'all may be null' if nullable else 'none is null':<20}{ours:>14,.0f}{theirs:>14,.0f}", flush=True)
        return
    print(f"{'format':<12}{'records/s':>14}{'MB/s':>10}" + (f"{'Spark records/s':>18}" if options.spark else ""))
    for name in options.formats or CASES:
        rate, megabytes = records_per_s(CASES[name], given, turns=options.turns)
        sparks = sparks_records_per_s(name, given, turns=options.turns) if options.spark else None
        print(f"{name:<12}{rate:>14,.0f}{megabytes:>10,.1f}" + (f"{sparks:>18,.0f}" if sparks else ""), flush=True)


if __name__ == "__main__":
    main()
