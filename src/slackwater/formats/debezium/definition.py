"""Debezium's change events: the definition that users write, and the decoder that turns envelopes into columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import polars as pl

from slackwater.base.errors import listed, near_miss, refuse
from slackwater.formats.base import Decoded, Decoder, Flaw, Format
from slackwater.formats.debezium.columns import TAKEN, change_schema
from slackwater.formats.debezium.encodings import DECIMALS, UNITS, Decimals, Encodings, RecordEncoding, Times
from slackwater.formats.debezium.reader import ChangeRows, Changes, EnvelopeReader, flaws_of
from slackwater.formats.debezium.wrapper import Parts, Unwrapper
from slackwater.formats.json import MAX_BYTES, json
from slackwater.formats.schemas import SchemaSpec, as_schema, shown
from slackwater.formats.texts import to_texts

_ENVELOPE: Final[dict[str, type[pl.DataType]]] = {
    "before": pl.Struct,
    "after": pl.Struct,
    "source": pl.Struct,
    "op": pl.String,
    "ts_ms": pl.Int64,
}
_NOTHING: Final = "null"
_MOST_READERS: Final = 64
_SAMPLES: Final = 20


@dataclass(frozen=True, kw_only=True)
class DebeziumFormat(Format):
    """Debezium envelopes, read as changes: see `debezium`."""

    schema: pl.Schema = field(hash=False)
    rows: pl.Schema = field(hash=False)
    """The columns of the table, which are the fields of `before` and `after`."""
    key: tuple[str, ...]
    value: Format | None = None
    times: Times | None = None
    decimals: Decimals = "precise"
    max_bytes: int = MAX_BYTES

    def decoder(self) -> Decoder:
        """Return a decoder for this format."""
        return JsonEnvelopeDecoder(self) if self.value is None else EnvelopeDecoder(self, self.value)

    def __str__(self) -> str:
        return f"Debezium, {'JSON' if self.value is None else self.value}"


def debezium(
    schema: SchemaSpec | None = None,
    *,
    key: str | Sequence[str],
    value: Format | None = None,
    times: Times | None = None,
    decimals: Decimals = "precise",
    max_bytes: int = MAX_BYTES,
) -> DebeziumFormat:
    """Read records as Debezium change events: `debezium("id long, email string", key="id")`.

    `schema` declares the table's columns and `key` names its key columns. Envelopes are JSON, with or without Kafka
    Connect's wrapper of schema and payload. With `value=sw.formats.avro(...)` they are Avro; the table's columns
    are then those of its field `after`, and `schema` is omitted.

    Each record becomes a row of `op` ("insert", "update", "delete", "snapshot", "truncate", "message",
    "schema_change" or "tombstone"), the key columns, `before` and `after`, `source_time`, `processed_time`,
    `position`, `snapshot`, `transaction` and `table`.

    The wrapper's schema defines how times, decimals and bytes are encoded. Without a wrapper, `times` is the unit of
    numeric times ("millis", "micros", "nanos", or "auto" to decide by magnitude), and `decimals` the connector's
    `decimal.handling.mode`. Records longer than `max_bytes` are dead letters.
    """
    if (schema is None) == (value is None):
        raise refuse("DEBEZIUM_ARGUMENTS", got="neither of them" if value is None else "both")
    if times not in tuple(UNITS):
        raise refuse("DEBEZIUM_OPTION", what="times", takes='"millis", "micros", "nanos" or "auto"', got=repr(times))
    if decimals not in tuple(DECIMALS):
        takes = '"precise", "string" or "double"'
        raise refuse("DEBEZIUM_OPTION", what="decimals", takes=takes, got=repr(decimals))
    rows = _rows_of(value) if schema is None else as_schema(schema)
    names = _checked_key(key, rows)
    json(rows, max_bytes=max_bytes)  # refuses an invalid limit
    return DebeziumFormat(
        schema=change_schema(pl.Struct(dict(rows)), {name: rows[name] for name in names}),
        rows=rows,
        key=names,
        value=value,
        times=times,
        decimals=decimals,
        max_bytes=max_bytes,
    )


def _rows_of(value: object) -> pl.Schema:
    """Return the table's columns in a format for envelopes; refuse a format that does not describe one."""
    if not isinstance(value, Format):
        raise refuse("DEBEZIUM_ENVELOPE", got=f"a {type(value).__name__}")
    for name, kind in _ENVELOPE.items():
        if not isinstance(value.schema.get(name), kind):
            raise refuse("DEBEZIUM_ENVELOPE", got=f"a format of {shown(value.schema):.200}, without a valid `{name}`")
    after = value.schema["after"]
    if value.schema["before"] != after:
        raise refuse("DEBEZIUM_ENVELOPE", got="`before` and `after` with different columns")
    assert isinstance(after, pl.Struct)
    return as_schema({column.name: column.dtype for column in after.fields})


def _checked_key(key: object, rows: pl.Schema) -> tuple[str, ...]:
    names = (key,) if isinstance(key, str) else tuple(key) if isinstance(key, Sequence) else ()
    if not names or not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise refuse("DEBEZIUM_KEY", got=repr(key), known=listed(rows))
    for name in names:
        if name not in rows:
            raise refuse("DEBEZIUM_KEY", got=f"{name!r}{near_miss(name, rows)}", known=listed(rows, near=name))
        if name in TAKEN:
            raise refuse("DEBEZIUM_KEY_NAME", got=name, taken=", ".join(sorted(TAKEN)))
    return names


def _changes(form: DebeziumFormat) -> Changes:
    return Changes(schema=form.schema, rows=form.rows, key=form.key)


class EnvelopeDecoder(Decoder):
    """Decodes envelopes with another format and turns them into changes; raises only what that format raises."""

    def __init__(self, form: DebeziumFormat, value: Format) -> None:
        self._format = form
        self._value = value
        self._changes = _changes(form)
        self._decoder = value.decoder()

    def __reduce__(self) -> tuple[type[EnvelopeDecoder], tuple[DebeziumFormat, Format]]:
        return (type(self), (self._format, self._value))

    def decode(self, payload: pl.Series) -> Decoded:
        """Decode a column of bytes into changes, and flaws for the records that could not be decoded."""
        missing = payload.is_null()
        places = (~missing).arg_true().to_numpy()
        decoded = self._decoder.decode(payload.drop_nulls() if len(places) < len(payload) else payload)
        changes, flaws = self._changes.of(decoded.frame)
        pieces = ChangeRows(self._changes.schema, len(payload))
        pieces.add(places, changes)
        pieces.add_tombstones(missing.arg_true().to_numpy())
        return pieces.decoded({int(places[at]): flaw for at, flaw in (flaws | flaws_of(decoded)).items()})


class JsonEnvelopeDecoder(Decoder):
    """Decodes envelopes in JSON; never raises, whatever the bytes.

    1. Records without a payload are tombstones; those that are too long or not UTF-8 are set aside.
    2. Wrappers are removed; their schemas define the encoding of their payloads. Payloads without a wrapper are assumed
       to be encoded like the previous ones.
    3. Payloads of the same encoding are read together.
    4. Payloads that could not be read are examined one by one: those with another wrapper or encoding are read again.

    The path a record takes affects only the speed, never the result.
    """

    def __init__(self, form: DebeziumFormat) -> None:
        self._format = form
        self._changes = _changes(form)
        self._encodings = Encodings(rows=form.rows, times=form.times, decimals=form.decimals)
        self._unwrapper = Unwrapper(self._encodings)
        self._readers: dict[RecordEncoding, EnvelopeReader] = {}
        self._usual: RecordEncoding | None = None

    def __reduce__(self) -> tuple[type[JsonEnvelopeDecoder], tuple[DebeziumFormat]]:
        return (type(self), (self._format,))

    def decode(self, payload: pl.Series) -> Decoded:
        """Decode a column of bytes into changes, and flaws for the records that could not be decoded."""
        # Some versions of Connect write the text `null` instead of no payload, so both mean the same.
        texts = to_texts(payload.fill_null(_NOTHING.encode()), max_bytes=self._format.max_bytes)
        unwrapped = self._unwrapper.unwrap(texts.lines)
        payloads = unwrapped.payloads
        tombstones = (payloads.str.strip_chars(" \t\n\r") == _NOTHING).fill_null(value=False)
        pieces = ChangeRows(self._changes.schema, len(payload))
        pieces.add_tombstones(tombstones.arg_true().to_numpy())
        readable = (payloads.is_not_null() & ~tombstones).to_numpy()
        doubtful: dict[int, tuple[Flaw, str, RecordEncoding]] = {}
        for number, known in enumerate(unwrapped.readings):
            places = np.flatnonzero(readable & (unwrapped.reading_of == number))
            if len(places):
                some = payloads.gather(places)
                reading = known or self._guess(some)
                read = self._reader(reading).read(some)
                pieces.add(places, read.frame)
                for at, flaw in flaws_of(read).items():
                    doubtful[int(places[at])] = (flaw, some[at], reading)
        return pieces.decoded(texts.flaws | self._look_again(texts.lines, doubtful, pieces))

    def _guess(self, payloads: pl.Series) -> RecordEncoding:
        """Return the most likely encoding of payloads without a schema: that of the previous ones, or of a sample."""
        if self._usual is None:
            some = payloads.gather_every(max(1, len(payloads) // _SAMPLES)).head(_SAMPLES)
            seen = Counter(self._encodings.by_values(self._unwrapper.parsed(text)) for text in some)
            likely = seen.most_common(1)[0][0]
            self._usual = likely if likely.is_whole else self._encodings.by_values(None)
        return self._usual

    def _look_again(
        self, lines: pl.Series, doubtful: dict[int, tuple[Flaw, str, RecordEncoding]], pieces: ChangeRows
    ) -> dict[int, Flaw]:
        """Reread records that were unwrapped or read with the wrong encoding; return the flaws that remain."""
        flaws: dict[int, Flaw] = {}
        again: dict[RecordEncoding, tuple[list[int], list[str]]] = {}
        empty: list[int] = []
        for at, (flaw, payload, reading) in doubtful.items():
            parts = self._unwrapper.take_apart(lines[at])
            if isinstance(parts, Flaw):
                is_own = payload == lines[at] and flaw.reason != "not_an_envelope"
                flaws[at] = flaw if is_own else parts
                continue
            flaws[at] = flaw
            text = parts.payload if isinstance(parts, Parts) else lines[at]
            known = parts.reading if isinstance(parts, Parts) else None
            own = known or self._encodings.by_values(self._unwrapper.parsed(text))
            if isinstance(parts, Parts) and text == _NOTHING:
                empty.append(at)
            elif (text, own) != (payload, reading):
                places, texts = again.setdefault(own, ([], []))
                places.append(at)
                texts.append(text)
        for own, (places, texts) in again.items():
            read = self._reader(own).read(pl.Series(texts, dtype=pl.String))
            pieces.add(np.array(places), read.frame)
            remaining = flaws_of(read)
            for number, at in enumerate(places):
                flaws.pop(at)
                if number in remaining:
                    flaws[at] = remaining[number]
            if own.is_whole and len(places) - len(remaining) > len(lines) // 2:
                self._usual = own
        pieces.add_tombstones(np.array(empty, np.intp))
        return {at: flaw for at, flaw in flaws.items() if at not in set(empty)}

    def _reader(self, reading: RecordEncoding) -> EnvelopeReader:
        reader = self._readers.pop(reading, None) or EnvelopeReader(
            self._changes, reading, max_bytes=self._format.max_bytes
        )
        self._readers[reading] = reader
        if len(self._readers) > _MOST_READERS:
            self._readers.pop(next(iter(self._readers)))
        return reader
