"""Rows as Kafka records: keys, values and headers, built from whole columns."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable

import polars as pl

from slackwater.base.errors import RunError, listed, near_miss, refuse, row_error
from slackwater.connectors.sink import SinkBatch, Slot, Unavailable
from slackwater.connectors.sink_options import check_key_values
from slackwater.formats.row_json import check_json, json_objects

if TYPE_CHECKING:
    from slackwater.connectors.kafka.sink.definition import KafkaSink

Header = str | pl.Expr
RETRACTION: Final = "is_retraction"
_FIELD: Final = "v"
_WIDEST_NUMBER: Final = 400
"""More characters than Polars writes for any number or time."""
_ESCAPED: Final = 6
"""The most bytes that one byte of text can become: \\u0000."""
_AROUND: Final = 8
_OPENING: Final = len(f'{{"{_FIELD}":')


class ValueEncoder(Protocol):
    """Encodes rows of one schema as record values."""

    def encode(self, frame: pl.DataFrame) -> pl.Series:
        """Return the value of each row, as bytes."""


@runtime_checkable
class Announcing(Protocol):
    """An encoder whose schema must be in a registry."""

    def schema_id(self) -> int | None:
        """Return the schema's id in the registry, after registering it if that was requested."""

    def try_out(self, frame: pl.DataFrame) -> pl.Series:
        """Return the value of each row with a placeholder for the schema id, without contacting the registry."""


class ValueFormat(Protocol):
    """A format that records can be written in."""

    def encoder(self, schema: pl.Schema, *, subject: str) -> ValueEncoder:
        """Return an encoder for rows of `schema`; `subject` is their name in a registry."""


class JsonValues:
    """One JSON object per row: bytes are base64, times ISO 8601 in UTC. Readers of dead letters expect this form."""

    def encode(self, frame: pl.DataFrame) -> pl.Series:
        """Return the objects, as bytes."""
        return json_objects(frame).cast(pl.Binary)


@dataclass(frozen=True, kw_only=True)
class Encoded:
    """Records ready to send, in the form the client takes."""

    keys: list[bytes | None] | None
    values: list[bytes | None]
    headers: list[list[tuple[str, bytes | None]]] | None


@dataclass(frozen=True, kw_only=True)
class Records:
    """Encodes the rows of one output as records."""

    key: tuple[str, ...]
    values: ValueEncoder
    headers: tuple[tuple[str, pl.Expr], ...]
    tombstones: bool
    is_retracting: bool
    slot: Slot
    topic: str

    @classmethod
    def of(cls, sink: KafkaSink, slot: Slot) -> Records:
        """Return the encoder for a slot's rows."""
        with _registry_may_be_away():
            values = sink.value.encoder(slot.schema, subject=f"{sink.topic}-value") if sink.value else JsonValues()
        return cls(
            key=sink.key,
            values=values,
            headers=tuple((name, _column(header)) for name, header in sink.headers),
            tombstones=sink.tombstones,
            is_retracting=RETRACTION in slot.schema,
            slot=slot,
            topic=sink.topic,
        )

    def try_out(self, frame: pl.DataFrame, *, most_bytes: int) -> None:
        """Raise if a row of `frame` cannot become a record, or only one too large for the client."""
        if self.tombstones:
            check_key_values(frame, self.key, self.slot)
        frame.select(expr.alias(str(at)) for at, (_, expr) in enumerate(self.headers))
        if isinstance(self.values, JsonValues):
            check_json(frame)
            if _most_bytes(frame) <= most_bytes:
                return
        else:
            check_json(frame.select(self.key))
        values = self.values.try_out(frame) if isinstance(self.values, Announcing) else self.values.encode(frame)
        sizes = values.bin.size().fill_null(0)
        if self.key:
            sizes += self._keys(frame).bin.size().fill_null(0)
        if (sizes > most_bytes).any():
            facts = {"output": self.slot.output, "topic": self.topic, "limit": f"{most_bytes} bytes"}
            raise row_error("KAFKA_SINK_TOO_LARGE", remedy="message.max.bytes in `options`", **facts)

    def announce(self) -> None:
        """Register the schema now, so that a rejected one is known before the first batch."""
        if isinstance(self.values, Announcing):
            with _registry_may_be_away():
                self.values.schema_id()

    def encoded(self, batch: SinkBatch) -> Iterator[Encoded]:
        """Yield a batch's records, frame by frame."""
        kept = self._last_of_each_key(batch) if self.tombstones else None
        begin = 0
        for frame in batch.frames():
            rows = frame
            if kept is not None:
                rows = frame.filter(kept[begin : begin + frame.height])
                begin += frame.height
            if rows.height:
                yield self._encode(rows)

    def _encode(self, frame: pl.DataFrame) -> Encoded:
        with _registry_may_be_away():
            values = self.values.encode(frame)
        if self.tombstones and self.is_retracting:
            values = pl.select(pl.when(~frame[RETRACTION]).then(values)).to_series()
        headers = None
        if self.headers:
            names = [name for name, _ in self.headers]
            columns = frame.select(expr.alias(str(at)) for at, (_, expr) in enumerate(self.headers))
            texts = [_as_bytes(_repeated(column, frame.height)).to_list() for column in columns]
            headers = [list(zip(names, row, strict=True)) for row in zip(*texts, strict=True)]
        return Encoded(keys=self._keys(frame).to_list() if self.key else None, values=values.to_list(), headers=headers)

    def _keys(self, frame: pl.DataFrame) -> pl.Series:
        if len(self.key) == 1:
            return _as_bytes(frame[self.key[0]])
        return json_objects(frame.select(self.key)).cast(pl.Binary)

    def _last_of_each_key(self, batch: SinkBatch) -> pl.Series:
        """Return for each row of the batch whether it is the last of its key; only the keys are held in memory."""
        columns = [frame.select(self.key) for frame in batch.frames()]
        keys = pl.concat([batch.schema.to_frame().select(self.key), *columns])
        check_key_values(keys, self.key, self.slot)
        return keys.select(pl.struct(pl.all()).is_last_distinct()).to_series()


@dataclass(kw_only=True)
class RecordTrial:
    """Finds rows that cannot become records; its encoder is created on first use, in the worker."""

    sink: KafkaSink
    slot: Slot
    most_bytes: int
    _records: Records | None = None

    def __call__(self, frame: pl.DataFrame) -> None:
        """Raise if a row of `frame` cannot be a record."""
        if self._records is None:
            self._records = Records.of(self.sink, self.slot)
        self._records.try_out(frame, most_bytes=self.most_bytes)


@contextmanager
def _registry_may_be_away() -> Iterator[None]:
    """Make a batch wait for an unavailable registry as it waits for the broker."""
    try:
        yield
    except RunError as error:
        if error.code == "REGISTRY_UNREACHABLE":
            raise Unavailable(error.message) from error
        raise


def _as_bytes(column: pl.Series) -> pl.Series:
    """Return text as UTF-8, bytes unchanged and everything else as JSON; null stays null."""
    if isinstance(column.dtype, pl.Binary):
        return column
    if isinstance(column.dtype, pl.String | pl.Categorical | pl.Enum):
        return column.cast(pl.String).cast(pl.Binary)
    texts = json_objects(column.to_frame(_FIELD)).str.slice(_OPENING).str.head(-1)
    return pl.select(pl.when(column.is_not_null()).then(texts).cast(pl.Binary)).to_series()


def _most_bytes(frame: pl.DataFrame) -> int:
    """Return an upper bound for the size of a row's JSON; for nested columns there is none before encoding."""
    total = 2
    for column in frame.get_columns():
        dtype, widest = column.dtype, _WIDEST_NUMBER
        if dtype.is_nested():
            return sys.maxsize
        if isinstance(dtype, pl.String | pl.Categorical | pl.Enum):
            widest = _ESCAPED * int(column.cast(pl.String).str.len_bytes().max() or 0)  # type: ignore[arg-type]  # an integer column
        elif isinstance(dtype, pl.Binary):
            widest = 2 * int(column.bin.size().max() or 0)  # type: ignore[arg-type]  # an integer column
        total += widest + _ESCAPED * len(column.name.encode()) + _AROUND
    return total


def _repeated(column: pl.Series, height: int) -> pl.Series:
    """Return a column, repeated to the full height if it is a literal."""
    return column if len(column) == height else column.new_from_index(0, height)


def _column(header: Header) -> pl.Expr:
    return pl.col(header) if isinstance(header, str) else header


def check_columns(sink: KafkaSink, slot: Slot) -> None:
    """Reject a key or headers that use columns the output does not have."""
    for column in sink.key:
        if column not in slot.schema:
            raise _unknown("key", column, slot)
    for _, header in sink.headers:
        _check_header(header, slot)


def _check_header(header: Header, slot: Slot) -> None:
    if isinstance(header, str):
        if header not in slot.schema:
            raise _unknown("headers", header, slot)
        return
    try:
        made: Any = slot.schema.to_frame().select(header)
    except pl.exceptions.PolarsError as error:
        raise _unknown("headers", str(header), slot) from error
    if made.width != 1:
        raise _unknown("headers", str(header), slot)


def _unknown(what: str, got: str, slot: Slot) -> Exception:
    known = listed(slot.schema, near=got)
    return refuse(
        "KAFKA_SINK_COLUMN", what=what, output=slot.output, got=got, known=known, hint=near_miss(got, slot.schema)
    )
