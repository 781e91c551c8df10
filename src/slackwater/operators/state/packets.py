"""Packets: the units of data that flow between the steps of a micro-batch, whatever they carry.

FRONT creates packets, the shuffle collects those of a key group, KEYED turns them into other
packets, and OUTPUTS unpacks the rest. All have one schema, so one stream carries every output.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import polars as pl
import pyarrow as pa

from slackwater.operators.state.packing import pack

TICK, OUTPUT, STATS = "tick", "output", "stats"
"""Kinds of packets other than rows for a keyed step; the kind of those is the channel their port sent them by."""
MOST_ROWS: Final = 100_000
"""The most rows in an output packet, which bounds the size of a packet and the memory of a task."""


class Packet(NamedTuple):
    """One packet. `target` is a step for rows, an output for output rows, and empty for ticks and stats."""

    key_group: int
    """The label of the key group, see `key_groups.labels`."""
    kind: str
    target: str
    order: str
    """The sort key that restores log order: partition, offset, chunk."""
    rows: int
    min_end_ms: int
    """The smallest `__end` of the rows in the packet."""
    max_end_ms: int
    payload: bytes | None


DDL: Final = (
    "key_group int, kind string, target string, `order` string, rows long, min_end_ms long, max_end_ms long, "
    "payload binary"
)
ARROW: Final[pa.Schema] = pa.schema(
    [  # type: ignore[arg-type]  # the stubs lose the types of mixed tuples
        ("key_group", pa.int32()),
        ("kind", pa.string()),
        ("target", pa.string()),
        ("order", pa.string()),
        ("rows", pa.int64()),
        ("min_end_ms", pa.int64()),
        ("max_end_ms", pa.int64()),
        ("payload", pa.binary()),
    ]
)


def to_arrow(packets: Iterable[Packet]) -> pa.RecordBatch:
    """Return packets as one Arrow batch."""
    columns = list(zip(*packets, strict=True)) or [()] * len(ARROW)
    arrays = [pa.array(column, type=field.type) for column, field in zip(columns, ARROW, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=ARROW)


def tick(key_group: int) -> Packet:
    """Return a packet that makes a key group check the clock even if it has no rows."""
    return Packet(key_group, TICK, "", "", 0, 0, 0, None)


def output(frame: pl.DataFrame, name: str, order: str, labels: tuple[int, ...]) -> list[Packet]:
    """Return rows of an output as packets that leave by the key groups `labels`; `order` spreads them over several.

    A key group is a slot of the sinks, and a replayed batch must use the same slots. So pass several labels only
    for rows in log order.
    """
    packets = []
    for number, start in enumerate(range(0, frame.height, MOST_ROWS)):
        part = frame[start : start + MOST_ROWS]
        place = f"{order}/{number:06d}"
        label = labels[zlib.crc32(f"{name}/{place}".encode()) % len(labels)]
        packets.append(Packet(label, OUTPUT, name, place, part.height, 0, 0, pack(part, name)))
    return packets


def stats(facts: dict[str, Any], order: str, labels: tuple[int, ...]) -> Packet:
    """Return the statistics of a task as a packet."""
    label = labels[zlib.crc32(order.encode()) % len(labels)]
    return Packet(label, STATS, "", order, 0, 0, 0, json.dumps(facts).encode())
