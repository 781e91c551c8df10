"""The made-up events that every case reads: written once, vectorised, and kept in `build/bench-data`."""

from __future__ import annotations

import json
import os
import shutil
import struct
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Literal

import numpy as np
import polars as pl

DDL: Final = "event_id long, key string, ts long, value double"
"""The columns of an event, as both sides are told them; `ts` is in milliseconds since the epoch."""

_EPOCH_MS: Final = 1_700_000_000_000
_FIRST_WRITTEN_S: Final = 1_750_000_000
_VISIT_MS: Final = 30_000


@dataclass(frozen=True, kw_only=True)
class Events:
    """A stream of events, cut into batches of a few files.

    Event time moves on steadily, by `rows_per_s`, and each event stands up to `disorder_ms` before or
    after its turn. `visitors` is the number of keys seen at a time, which then make room for
    others for a long while, so that sessions end; None for every key all the time.
    """

    keys: int
    format: Literal["json", "parquet", "avro"]
    rows_per_batch: int = 2_000_000
    files_per_batch: int = 2
    rows_per_s: int = 6_000
    disorder_ms: int = 5_000
    visitors: int | None = None
    hot: float = 0.0
    """The share of rows that one key has."""
    first: int = 0
    """The number of the first event, which says its time as well."""

    @property
    def rows_per_file(self) -> int:
        """Rows in each file."""
        return self.rows_per_batch // self.files_per_batch


def batches(events: Events, folder: Path, count: int) -> Iterator[list[Path]]:
    """Yield the files of each of `count` batches in turn, having written those that are not there yet."""
    description = json.dumps(asdict(events))
    note = folder / "_events.json"
    if folder.exists() and (not note.exists() or note.read_text() != description):
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    note.write_text(description)
    for batch in range(count):
        first = batch * events.files_per_batch
        yield [_file(events, folder, number) for number in range(first, first + events.files_per_batch)]


def _file(events: Events, folder: Path, number: int) -> Path:
    # A name made of digits is the offset of the file's first record, as in every log.
    suffix = "jsonl" if events.format == "json" else "parquet"
    path = folder / f"{events.first + number * events.rows_per_file:020d}.{suffix}"
    if path.exists():
        return path
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    frame = _frame(events, number)
    if events.format == "json":
        frame.write_ndjson(temporary)
    elif events.format == "avro":
        # Records for a topic: Avro bodies, in a Parquet file of one column for Spark to send.
        pl.DataFrame({"value": [avro(*row) for row in frame.iter_rows()]}).write_parquet(temporary)
    else:
        frame.write_parquet(temporary)
    # Spark takes files by time of modification; tiny ones would share a millisecond.
    written = _FIRST_WRITTEN_S + number
    os.utime(temporary, (written, written))
    return temporary.rename(path)


def avro_schema() -> str:
    """Return the Avro schema of an event."""
    types = {"event_id": "long", "key": "string", "ts": "long", "value": "double"}
    fields = [{"name": name, "type": kind} for name, kind in types.items()]
    return json.dumps({"type": "record", "name": "Event", "fields": fields})


def avro(event_id: int, key: str, ts: int, value: float) -> bytes:
    """Return an event as the body of an Avro record."""
    return _zigzag(event_id) + _zigzag(len(key)) + key.encode() + _zigzag(ts) + struct.pack("<d", value)


def varint(number: int) -> bytes:
    """Return a number as Avro and Protobuf write it: seven bits a byte, the lowest first."""
    written = bytearray()
    while number > 0x7F:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*written, number])


def _zigzag(number: int) -> bytes:
    return varint((number << 1) ^ (number >> 63))


def _frame(events: Events, number: int) -> pl.DataFrame:
    dice = np.random.default_rng([number, events.keys])
    rows = events.rows_per_file
    ids = events.first + np.arange(number * rows, (number + 1) * rows)
    turn_ms = ids * 1_000 // events.rows_per_s
    key = dice.integers(0, events.visitors or events.keys, rows)
    if events.visitors is not None:
        key = (key + turn_ms // _VISIT_MS * events.visitors) % events.keys
    if events.hot:
        key[dice.random(rows) < events.hot] = 0
    late_ms = dice.integers(-events.disorder_ms, events.disorder_ms, rows) if events.disorder_ms else 0
    times = _EPOCH_MS + turn_ms + late_ms
    frame = pl.DataFrame({"event_id": ids, "key": key, "ts": times, "value": dice.random(rows) * 100})
    name = pl.format("user-{}", pl.col("key").cast(pl.String).str.zfill(6))
    return frame.with_columns(name.alias("key"), pl.col("value").round(2))
