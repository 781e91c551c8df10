"""Builds columns from the fields found in many messages, recursively for nested messages."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from slackwater.formats.ddl import TIMESTAMP
from slackwater.formats.protobuf.gather import ManyNumbers, OneNumber, OneSlice
from slackwater.formats.protobuf.plan import (
    MAX_DURATION_SECONDS,
    MAX_NANOS,
    MAX_SECONDS,
    MIN_SECONDS,
    FieldPlan,
    MessagePlan,
)
from slackwater.formats.protobuf.scan import Gatherer, Tags, scan
from slackwater.formats.protobuf.wire import Flags, Messages, Numbers
from slackwater.formats.slices import cut, listed

_VIEWS: Final[dict[str, type[np.generic]]] = {
    "double": np.float64,
    "float": np.float32,
    "int32": np.int32,
    "int64": np.int64,
    "sint32": np.int32,
    "sint64": np.int64,
    "uint32": np.uint32,
    "uint64": np.uint64,
}


class ColumnReader:
    """Reads many messages of one plan into columns; marks messages it is not sure of as doubtful."""

    def __init__(self, plan: MessagePlan) -> None:
        self._plan = plan
        self._tags = Tags(plan)
        self._inner = {field.number: ColumnReader(field.message) for field in plan.fields if field.message is not None}

    def read(self, messages: Messages) -> list[pl.Series]:
        """Return a column for each field; the values of doubtful messages are meaningless."""
        found = scan(self._plan, self._tags, messages)
        self._mark_odd(found, messages.doubtful)
        return [
            self._column(field, gathered, messages).alias(field.name)
            for field, gathered in zip(self._plan.fields, found, strict=True)
        ]

    def _mark_odd(self, found: list[Gatherer], doubtful: Flags) -> None:
        """Mark messages that lack a required field or have two members of one oneof."""
        counts: dict[tuple[int, ...], NDArray[np.intp]] = {}
        for field, gathered in zip(self._plan.fields, found, strict=True):
            if isinstance(gathered, OneNumber | OneSlice):
                if field.is_required:
                    doubtful |= ~gathered.seen
                if field.rivals:
                    oneof = tuple(sorted([field.number, *field.rivals]))
                    counts[oneof] = counts.get(oneof, 0) + gathered.seen.astype(np.intp)
        for count in counts.values():
            doubtful |= count > 1

    def _column(self, field: FieldPlan, found: Gatherer, messages: Messages) -> pl.Series:
        if isinstance(found, OneNumber):
            numbers = _numbers(field, found.raw)
            return _null_unless(found.seen, numbers) if field.has_presence else numbers
        if isinstance(found, OneSlice):
            return self._single(field, found, messages)
        if isinstance(found, ManyNumbers):
            rows, raw = found.items()
            return listed(_counts(rows, messages), _numbers(field, raw), field.dtype)
        rows, starts, stops = found.items()
        slices = messages.at(starts, stops)
        items = self._entries(field, slices) if field.is_map else self._values(field, slices)
        messages.doubtful[rows[slices.doubtful]] = True
        if field.is_map:
            # The last entry of a duplicate key wins.
            keys = pl.DataFrame({"row": rows, "key": items.struct.field("key")})
            is_last = keys.select(pl.struct("row", "key").is_last_distinct()).to_series()
            rows, items = rows[is_last.to_numpy()], items.filter(is_last)
        return listed(_counts(rows, messages), items, field.dtype)

    def _single(self, field: FieldPlan, found: OneSlice, messages: Messages) -> pl.Series:
        """Return the column of a field that occurs at most once in a message."""
        starts = np.where(messages.doubtful, messages.starts, found.starts)
        stops = np.where(messages.doubtful, messages.starts, found.stops)
        if field.message is None or not field.has_presence:
            slices = messages.at(starts, stops)
            column = self._values(field, slices)
            messages.doubtful[slices.doubtful] = True
            return _null_unless(found.seen, column) if field.has_presence else column
        there = np.flatnonzero(found.seen & ~messages.doubtful)
        slices = messages.at(starts[there], stops[there])
        column = self._values(field, slices)
        messages.doubtful[there[slices.doubtful]] = True
        if len(there) == len(messages):
            return column
        places = np.full(len(messages), -1)
        places[there] = np.arange(len(there))
        return column.gather(pl.Series(places).replace(-1, None))

    def _values(self, field: FieldPlan, slices: Messages) -> pl.Series:
        """Return one value for each slice; mark invalid ones as doubtful."""
        if field.message is not None:
            return _shaped(field.message, self._inner[field.number].read(slices), slices.doubtful)
        pieces = cut(slices.wire.data, slices.starts, slices.stops)
        return pl.Series(pieces) if field.kind == "bytes" else _texts(pieces, slices.doubtful)

    def _entries(self, field: FieldPlan, slices: Messages) -> pl.Series:
        """Return map entries, one for each slice."""
        return pl.DataFrame(self._inner[field.number].read(slices)).to_struct()


def _numbers(field: FieldPlan, raw: Numbers) -> pl.Series:
    """Convert raw numbers to the field's type; numbers too wide for it lose their upper bits."""
    if field.kind == "bool":
        return pl.Series(raw != 0)
    if field.kind == "enum":
        return _labels(field, pl.Series(raw.astype(np.uint32).view(np.int32)))
    if field.kind.startswith("sint"):
        # The lowest bit is the sign, which flips all other bits, so first truncate to the declared width.
        raw = raw & np.uint64(0xFFFFFFFF) if field.kind == "sint32" else raw
        raw = (raw >> np.uint64(1)) ^ (~(raw & np.uint64(1)) + np.uint64(1))
    is_wide = field.kind.endswith(("64", "double"))
    return pl.Series((raw if is_wide else raw.astype(np.uint32)).view(_VIEWS[field.kind]))


def _labels(field: FieldPlan, numbers: pl.Series) -> pl.Series:
    """Return the names of enum values; a number without a name becomes its digits."""
    names = numbers.replace_strict(
        list(field.labels), list(field.labels.values()), default=None, return_dtype=pl.String()
    )
    return names.fill_null(numbers.cast(pl.String)) if names.null_count() else names


def _texts(pieces: pa.Array[Any], doubtful: Flags) -> pl.Series:
    """Return slices as text; those that are not UTF-8 are marked as doubtful and become empty."""
    try:
        return pl.Series(pieces.cast(pa.large_string()), dtype=pl.String)
    except pa.ArrowInvalid:
        kept = []
        for at, piece in enumerate(pl.Series(pieces).to_list()):
            try:
                kept.append(piece.decode())
            except UnicodeDecodeError:
                doubtful[at] = True
                kept.append("")
        return pl.Series(kept, dtype=pl.String)


def _shaped(plan: MessagePlan, columns: list[pl.Series], doubtful: Flags) -> pl.Series:
    """Combine the columns of a message into one of the message's shape."""
    match plan.shape:
        case "struct":
            return pl.DataFrame(columns).to_struct()
        case "wrapper":
            return columns[0]
        case "empty":
            return pl.Series(np.ones(len(doubtful), dtype=bool))
    seconds, nanos = columns[0].to_numpy(), columns[1].to_numpy().astype(np.int64)
    if plan.shape == "timestamp":
        fits = (seconds >= MIN_SECONDS) & (seconds <= MAX_SECONDS) & (nanos >= 0) & (nanos <= MAX_NANOS)
        micros = np.where(fits, seconds, 0) * 1_000_000 + np.where(fits, nanos, 0) // 1000
        doubtful |= ~fits
        return pl.Series(micros).cast(TIMESTAMP)
    fits = (seconds >= -MAX_DURATION_SECONDS) & (seconds <= MAX_DURATION_SECONDS) & (np.abs(nanos) <= MAX_NANOS)
    fits &= np.sign(seconds) * np.sign(nanos) >= 0
    doubtful |= ~fits
    # Rounds towards zero, because both parts have the same sign.
    return pl.Series(np.where(fits, seconds, 0) * 1000 + np.sign(nanos) * (np.abs(nanos) // 1_000_000))


def _counts(rows: NDArray[np.intp], messages: Messages) -> NDArray[np.intp]:
    return np.bincount(rows, minlength=len(messages))


def _null_unless(seen: Flags, column: pl.Series) -> pl.Series:
    return column if seen.all() else pl.select(pl.when(pl.Series(seen)).then(column)).to_series()
