"""Avro records: the definitions that users write, and the decoder that turns bytes into columns."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, overload

import numpy as np
import polars as pl

from slackwater.base.errors import refuse
from slackwater.base.folders import given_path
from slackwater.formats.avro.columns import read_records
from slackwater.formats.avro.cursor import I64, RecordFlaws
from slackwater.formats.avro.derived import derived_schema
from slackwater.formats.avro.encoding import AvroEncoder
from slackwater.formats.avro.parser import AvroParser, AvroSchemaError
from slackwater.formats.avro.payload import Payload
from slackwater.formats.avro.resolution import AsStruct, resolve_schemas
from slackwater.formats.avro.schema import AvroRecord, AvroType
from slackwater.formats.avro.types import columns_of
from slackwater.formats.avro.writers import incompatible, parse_registered, reading_of
from slackwater.formats.base import Decoded, Decoder, Flaw, Format, check_limit
from slackwater.formats.registry import Registry

MAX_BYTES: Final = 1 << 20

_LONGEST: Final = 64 << 20
_ROWS_AT_ONCE: Final = 1 << 16
"""The number of records read at a time, whose arrays then fit in the processor's cache."""
_MOST_UNKNOWN: Final = 100
_DECLARED: Final = "schema as declared"


@dataclass(frozen=True, kw_only=True)
class AvroFormat(Format):
    """Avro binary records, read as the columns of `reader` and written with it.

    Without a registry every record is a bare body of `reader`. With one, records are in Confluent's wire format,
    each with the id of its writer's schema.
    """

    schema: pl.Schema = field(hash=False)
    reader: AvroRecord
    registry: Registry | None = None
    label: str = _DECLARED
    """The name of the reader's schema in messages."""
    text: str = field(default="", repr=False)
    """The reader's schema as JSON."""
    schema_id: int | None = None
    """The schema's id, if it was taken from the registry."""
    max_bytes: int = MAX_BYTES

    def decoder(self) -> AvroDecoder:
        """Return a decoder for this format."""
        return AvroDecoder(self)

    def encoder(self, schema: Mapping[str, pl.DataType], *, subject: str) -> AvroEncoder:
        """Return an encoder for rows with these columns, or refuse columns that the schema cannot hold.

        A schema of the user's own is registered under `subject`, which is `<topic>-value` for a topic's records. A
        schema that came from the registry is not registered again.
        """
        return AvroEncoder(
            schema, self.reader, text=self.text, subject=subject, registry=self.registry, schema_id=self.schema_id
        )

    def __str__(self) -> str:
        return f"Avro, schemas from {self.registry}" if self.registry else "Avro"


@dataclass(frozen=True, kw_only=True)
class AvroOutput(Format):
    """Avro binary records whose schema is derived from the columns written; for writing only."""

    registry: Registry | None = None

    @property
    def schema(self) -> pl.Schema:  # type: ignore[override]  # a property, as there is no schema
        """Refuse: records cannot be read without a schema."""
        raise refuse("AVRO_ARGUMENTS", got="registry" if self.registry else "none of them")

    def decoder(self) -> AvroDecoder:
        """Refuse: records cannot be read without a schema."""
        raise refuse("AVRO_ARGUMENTS", got="registry" if self.registry else "none of them")

    def encoder(self, schema: Mapping[str, pl.DataType], *, subject: str) -> AvroEncoder:
        """Return an encoder for rows with these columns, whose schema is named after `subject`."""
        text = derived_schema(schema, subject)
        try:
            writer = AvroParser().parse(text)
        except AvroSchemaError as error:
            raise refuse("AVRO_SCHEMA", problem=error.problem, remedy=error.remedy) from None
        assert isinstance(writer, AvroRecord)
        return AvroEncoder(schema, writer, text=text, subject=subject, registry=self.registry)

    def __str__(self) -> str:
        return f"Avro, schemas in {self.registry}" if self.registry else "Avro"


@overload
def avro(
    schema: str | Mapping[str, Any] | Path, *, registry: Registry | None = None, max_bytes: int = MAX_BYTES
) -> AvroFormat: ...
@overload
def avro(*, registry: Registry, subject: str, max_bytes: int = MAX_BYTES) -> AvroFormat: ...
@overload
def avro(*, registry: Registry | None = None) -> AvroOutput: ...
def avro(
    schema: str | Mapping[str, Any] | Path | None = None,
    *,
    registry: Registry | None = None,
    subject: str | None = None,
    max_bytes: int = MAX_BYTES,
) -> AvroFormat | AvroOutput:
    """Read or write records as Avro: `avro(Path("order.avsc"))`, or with the schemas of a registry.

    `schema` is JSON text, the same as a dict, or the path of a file, and must be a record; its fields become
    columns. On its own, every record is a bare Avro body of that schema. With
    `registry=sw.formats.registry("http://host:8081")`, records are in Confluent's wire format, written with any
    schemas of the registry, and are resolved to `schema` by Avro's rules. With `subject=` instead of `schema`, they
    are resolved to the subject's latest version, fetched when the pipeline is built. A record whose schema cannot be
    resolved is a dead letter. An unreachable registry fails the batch, which is run again.

    Times become UTC timestamps in microseconds (finer values are truncated); `time-millis` and `time-micros`
    become integers of that unit; a `uuid` or an enum becomes a string, `decimal` a decimal, a map a list of keys
    and values. Only unions of null and one other type are supported. Records longer than `max_bytes` are dead
    letters.

    A sink writes with the same schema: your own is registered under `<topic>-value`; one named by `subject=` is
    already registered. With neither, for writing only, the schema is derived from the columns:
    `avro(registry=...)`, or `avro()` for records without ids.
    """
    _check_arguments(schema, registry, subject)
    check_limit("max_bytes", max_bytes, most=_LONGEST, default=MAX_BYTES)
    if schema is None and subject is None:
        return AvroOutput(registry=registry)
    label, schema_id = _DECLARED, None
    try:
        if registry is not None and subject is not None:
            latest = registry.latest(subject)
            label = f"schema {latest.id} (version {latest.version} of `{subject}`)"
            reader, text, schema_id = parse_registered(registry, latest), latest.text, latest.id
        else:
            source = _source(schema)
            reader = AvroParser().parse(source)
            text = source if isinstance(source, str) else json.dumps(source)
    except AvroSchemaError as error:
        raise refuse("AVRO_SCHEMA", problem=error.problem, remedy=error.remedy) from None
    columns = columns_of(reader)
    assert isinstance(reader, AvroRecord)
    return AvroFormat(
        schema=columns,
        reader=reader,
        registry=registry,
        label=label,
        text=text,
        schema_id=schema_id,
        max_bytes=max_bytes,
    )


def read_schema(source: object) -> AvroType:
    """Parse the type declared by JSON text, parsed JSON or a file; raise `AvroSchemaError` for anything else."""
    return AvroParser().parse(_source(source))


def _source(given: object) -> object:
    """Return a schema as JSON text or parsed JSON; a file is read as text."""
    if not isinstance(given, Path):
        return given
    try:
        return given_path(given).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        cause = getattr(error, "strerror", None) or "not UTF-8"
        raise refuse("SCHEMA_FILE", path=given, cause=cause) from None


def _check_arguments(schema: object, registry: object, subject: object) -> None:
    named = (("schema", schema), ("registry", registry), ("subject", subject))
    given = [name for name, value in named if value is not None]
    if "subject" in given and given != ["registry", "subject"]:
        raise refuse("AVRO_ARGUMENTS", got=" and ".join(given))
    if registry is not None and not isinstance(registry, Registry):
        raise refuse("AVRO_ARGUMENTS", got=f"a {type(registry).__name__} as registry")


class AvroDecoder(Decoder):
    """Decodes records of one Avro format; never raises because of a record's bytes.

    1. Records that are null, empty or too long are set aside.
    2. With a registry, records are grouped by the schema they were written with.
    3. Each group is read field by field, each field for thousands of records at once.
    4. Rows are put back in order; those of flawed records are all null.

    The resolution of each writer's schema is cached. The only error raised is that of a registry that does not answer:
    the records may be valid, so the batch must be run again.
    """

    def __init__(self, form: AvroFormat) -> None:
        self._format = form
        own = resolve_schemas(form.reader, form.reader)
        assert isinstance(own, AsStruct)
        self._own = own
        self._readings: dict[int, AsStruct | Flaw] = {}

    def __reduce__(self) -> tuple[type[AvroDecoder], tuple[AvroFormat]]:
        return (type(self), (self._format,))

    def decode(self, payload: pl.Series) -> Decoded:
        """Decode a column of bytes into rows, and flaws for the records that could not be decoded."""
        records = Payload.of(payload)
        rows, flaws = records.sized(self._format.max_bytes)
        findings = RecordFlaws(records.start)
        frames: list[pl.DataFrame] = []
        order: list[I64] = []
        if self._format.registry is None:
            groups = [(self._own, rows)]
        else:
            rows, unframed = records.framed(rows)
            flaws |= unframed
            groups = self._by_writer(records, rows, self._format.registry, flaws)
        for action, group in groups:
            for at in range(0, len(group), _ROWS_AT_ONCE):
                some = group[at : at + _ROWS_AT_ONCE]
                frames.append(read_records(action, records.cursor(findings, some), self._format.schema))
                order.append(some)
        flaws = self._named(findings.flaws(), records) | flaws
        if frames and len(groups) == 1 and not flaws:
            return Decoded.of(pl.concat(frames, rechunk=True), flaws)
        return Decoded.of(self._ordered(frames, order, len(payload), flaws), flaws)

    def _by_writer(
        self, records: Payload, rows: I64, registry: Registry, flaws: dict[int, Flaw]
    ) -> list[tuple[AsStruct, I64]]:
        """Group the records by writer's schema, largest groups first; records of unreadable schemas become flaws."""
        groups: list[tuple[AsStruct, I64]] = []
        unknown = 0
        for schema_id, group in records.by_schema(rows):
            reading = self._reading(registry, schema_id, may_ask=unknown < _MOST_UNKNOWN)
            if isinstance(reading, AsStruct):
                groups.append((reading, group))
                continue
            unknown += reading.reason == "unknown_schema"
            flaws.update(dict.fromkeys(group.tolist(), reading))
        return groups

    def _reading(self, registry: Registry, schema_id: int, *, may_ask: bool) -> AsStruct | Flaw:
        """Return how to read records of a schema; `may_ask` is false once too many ids were not in the registry."""
        if schema_id not in self._readings:
            if not may_ask:
                words = f"schema {schema_id} was not looked up: {_MOST_UNKNOWN} other ids are not in {registry}"
                return Flaw(reason="unknown_schema", message=words)
            schema = registry.schema(schema_id)
            if schema is None:
                return Flaw(reason="unknown_schema", message=f"schema {schema_id} is not in {registry}")
            self._readings[schema_id] = reading_of(registry, schema, self._format.reader, self._format.label)
        return self._readings[schema_id]

    def _named(self, flaws: dict[int, Flaw], records: Payload) -> dict[int, Flaw]:
        """Name both schemas in the flaws of single values that the reader's schema cannot hold."""
        if self._format.registry is None:
            return flaws
        for at, flaw in flaws.items():
            if flaw.reason == "incompatible_schema":
                flaws[at] = incompatible(records.schema_id(at), self._format.label, flaw.message)
        return flaws

    def _ordered(
        self, frames: list[pl.DataFrame], order: list[I64], height: int, flaws: dict[int, Flaw]
    ) -> pl.DataFrame:
        if not frames:
            return pl.DataFrame(schema=self._format.schema).clear(height)
        found = pl.concat(frames, rechunk=True)
        rows = np.concatenate(order)
        places = np.full(height, -1, np.int64)
        places[rows] = np.arange(len(rows))
        places[list(flaws)] = -1
        return found.select(pl.all().gather(pl.Series(places).set(pl.Series(places < 0), None)))
