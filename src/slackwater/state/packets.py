"""Packets: what flows between the steps of a micro-batch, whatever it carries.

FRONT makes packets, the shuffle brings those of a key group together, KEYED turns them into other
packets, OUTPUTS unpacks what is left. One schema for all, so one stream carries every output.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import polars as pl
import pyarrow as pa

from slackwater.state.packing import pack

TICK, OUTPUT, STATS = "tick", "output", "stats"
"""Kinds of packets besides rows for a keyed step, whose kind is the channel that their port has sent them by."""
MOST_ROWS: Final = 100_000
"""Rows of an output packet; keeps every packet, and so every task's memory, bounded."""


class Packet(NamedTuple):
    """One packet. `target` is a step for rows, an output for output rows, and empty for ticks and stats."""

    key_group: int
    """The group's label, see `key_groups.labels`."""
    kind: str
    target: str
    order: str
    """Places rows as in the log: partition, offset, chunk."""
    rows: int
    min_end_ms: int
    """The smallest `__end` of the rows inside."""
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
    """Make a key group look at the clock, though it may have no rows."""
    return Packet(key_group, TICK, "", "", 0, 0, 0, None)


def output(frame: pl.DataFrame, name: str, order: str, labels: tuple[int, ...]) -> list[Packet]:
    """Return rows of an output as packets, which leave by the key groups of `labels`: spread by order over several.

    A key group is a slot of the sinks, and a batch that is run again must leave by the same ones. So several are for
    rows whose order is the log's own.
    """
    packets = []
    for number, start in enumerate(range(0, frame.height, MOST_ROWS)):
        part = frame[start : start + MOST_ROWS]
        place = f"{order}/{number:06d}"
        label = labels[zlib.crc32(f"{name}/{place}".encode()) % len(labels)]
        packets.append(Packet(label, OUTPUT, name, place, part.height, 0, 0, pack(part, name)))
    return packets


def stats(facts: dict[str, Any], order: str, labels: tuple[int, ...]) -> Packet:
    """Return a task's statistics as a packet."""
    label = labels[zlib.crc32(order.encode()) % len(labels)]
    return Packet(label, STATS, "", order, 0, 0, 0, json.dumps(facts).encode())
