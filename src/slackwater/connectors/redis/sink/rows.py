"""A batch's rows encoded for Redis: one row per key, every value as text, split into chunks of JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import polars as pl

from slackwater.base.errors import near_miss, refuse, row_error
from slackwater.connectors.sink import SinkBatch, Slot
from slackwater.connectors.sink_options import check_key_values
from slackwater.formats.row_json import bytes_as_base64, check_json

RETRACTED: Final = "is_retraction"
_ISO: Final = "%Y-%m-%dT%H:%M:%S%.f%:z"
"""Times in this format sort as text in the order of time."""
_NESTED: Final = (pl.List, pl.Struct, pl.Array)
_KEYLESS: Final = (*_NESTED, pl.Float32, pl.Float64)
"""Types that cannot be keys: a reader cannot predict the text of a nested value or a float."""
_CHUNK_ROWS: Final = 1_000
_CHUNK_BYTES: Final = 8 << 20
"""The server is blocked while it processes a chunk."""


@dataclass(frozen=True, kw_only=True)
class RedisHashes:
    """How rows become hashes: the columns that name a hash, those that are its fields, and the prefix of the name."""

    key: tuple[str, ...]
    columns: tuple[str, ...] | None
    prefix: str | None

    def fields(self, schema: pl.Schema) -> list[str]:
        """Return the fields of a hash: the chosen columns, or all except the key and the retraction flag."""
        return list(self.columns or (name for name in schema if name not in (*self.key, RETRACTED)))

    def newest_by(self, slot: Slot) -> str | None:
        """Return the column that orders results sharing a hash; None if each has its own, or the order is unknown."""
        identity = slot.identity
        if identity is None or not identity.is_in(slot.schema) or {*identity.bounds} & {*self.key}:
            return None
        return identity.bounds[-1]

    def order(self, slot: Slot) -> int:
        """Return the position of `newest_by` among the fields, from 1; -1 if it is not a field, 0 if there is none."""
        column, fields = self.newest_by(slot), self.fields(slot.schema)
        if column is None:
            return 0
        return 1 + fields.index(column) if column in fields else -1

    def check(self, slot: Slot) -> None:
        """Check that the output has the named columns, and that its keys can be written as text."""
        for what, names in (("key", self.key), ("columns", self.columns or ())):
            for name in names:
                if name not in slot.schema:
                    hint = near_miss(name, slot.schema)
                    raise refuse("REDIS_COLUMN", what=what, output=slot.output, got=f"no column `{name}`{hint}")
        for name in self.key:
            if isinstance(slot.schema[name], _KEYLESS):
                got = f"`{name}` of type {slot.schema[name]}"
                raise refuse("REDIS_COLUMN", what="key", output=slot.output, got=got)
        if not self.fields(slot.schema):
            raise refuse("REDIS_COLUMN", what="columns", output=slot.output, got="no column besides the key")
        if self.order(slot) < 0:
            raise refuse("REDIS_WINDOWS", output=slot.output, got=list(self.columns or ()), key=", ".join(self.key))

    def chunks(self, batch: SinkBatch, slot: Slot, *, reserved: str) -> Iterator[str]:
        """Yield the last row of each key, in chunks: JSON objects of columns; at least one chunk.

        `key` holds the names of the hashes, `gone` whether they are retracted, and "1", "2", … the fields' values.
        """
        rows = self._last_rows(batch, slot)
        names = self._checked_names(rows, slot, reserved)
        values = {str(n): _text(name, rows.schema[name]) for n, name in enumerate(self.fields(batch.schema), start=1)}
        gone = pl.col(RETRACTED).fill_null(value=False) if RETRACTED in rows.schema else pl.lit(value=False)
        texts = bytes_as_base64(rows).select(key=names, gone=gone, **values)
        for chunk in texts.iter_slices(_chunk_rows(texts)):
            yield _json(chunk)
        if texts.is_empty():
            yield _json(texts)

    def try_out(self, rows: pl.DataFrame, slot: Slot, *, reserved: str) -> None:
        """Raise if a row cannot become a hash."""
        self._checked_names(rows, slot, reserved)
        check_json(rows.select(self.fields(slot.schema)))

    def _checked_names(self, rows: pl.DataFrame, slot: Slot, reserved: str) -> pl.Series:
        """Return the names of the rows' hashes; raises if one is null or in the range reserved for marks."""
        check_key_values(rows, self.key, slot)
        check_json(rows.select(self.key))
        names = bytes_as_base64(rows.select(self.key)).select(key=self._names(rows.schema)).to_series()
        taken = names.filter(names.str.starts_with(reserved))
        if len(taken):
            raise row_error("REDIS_KEY_RESERVED", key=taken[0], output=slot.output, reserved=reserved)
        return names

    def _last_rows(self, batch: SinkBatch, slot: Slot) -> pl.DataFrame:
        """Return the last row of each key; memory grows with the batch's keys, not with its rows."""
        kept = [pl.DataFrame(schema=batch.schema)]
        kept += [self._newest(frame, slot) for frame in batch.frames()]
        return self._newest(pl.concat(kept), slot)

    def _newest(self, rows: pl.DataFrame, slot: Slot) -> pl.DataFrame:
        """Return the last row of each key; of its newest result, if there are several."""
        column = self.newest_by(slot)
        ordered = rows if column is None else rows.sort(column, maintain_order=True)
        return ordered.unique(self.key, keep="last", maintain_order=True)

    def _names(self, schema: pl.Schema) -> pl.Expr:
        """Return the names of the hashes; in names with several parts, colons within a part are escaped."""
        parts = [_text(name, schema[name]) for name in self.key]
        if len(parts) > 1:
            parts = [part.str.replace_all("%", "%25", literal=True) for part in parts]
            parts = [part.str.replace_all(":", "%3A", literal=True) for part in parts]
        return pl.concat_str([*([] if self.prefix is None else [pl.lit(self.prefix)]), *parts], separator=":")


def _text(name: str, dtype: pl.DataType) -> pl.Expr:
    """Return a column as text; bytes are already base64."""
    value = pl.col(name)
    if isinstance(dtype, pl.Datetime):
        return value.dt.strftime(_ISO)
    if isinstance(dtype, pl.Duration):
        return value.dt.to_string("iso")
    if isinstance(dtype, _NESTED):
        # Polars encodes only whole structs as JSON, so the value is wrapped in one and its text unwrapped.
        text = pl.struct(value.alias("v")).struct.json_encode()
        return pl.when(value.is_not_null()).then(text.str.strip_prefix('{"v":').str.strip_suffix("}"))
    return value.cast(pl.String)


def _chunk_rows(texts: pl.DataFrame) -> int:
    average = texts.estimated_size() / max(texts.height, 1)
    return max(1, min(_CHUNK_ROWS, int(_CHUNK_BYTES / max(average, 1))))


def _json(chunk: pl.DataFrame) -> str:
    text: str = chunk.select(pl.struct(pl.all().implode()).struct.json_encode()).item()
    return text
