"""The columns of a change: the row, the operation, the time and the position in the source, from an envelope."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import polars as pl

from slackwater.base.times import FIRST_USABLE_MS, LAST_USABLE_MS
from slackwater.formats.base import Flaw
from slackwater.formats.ddl import TIMESTAMP
from slackwater.formats.json.values import excerpt

OPERATIONS: Final = {
    "c": "insert",
    "u": "update",
    "d": "delete",
    "r": "snapshot",
    "t": "truncate",
    "m": "message",
}
TOMBSTONE: Final = "tombstone"
SCHEMA_CHANGE: Final = "schema_change"

_OF_ROWS: Final = ("insert", "update", "delete", "snapshot")
_POSITION_BITS: Final = 36
"""The bits for a position in a MySQL log file; the bits above them are the file's number."""


def change_schema(row: pl.DataType, key: Mapping[str, pl.DataType]) -> pl.Schema:
    """Return the columns of changes to rows of type `row`."""
    return pl.Schema(
        {
            "op": pl.String(),
            **key,
            "before": row,
            "after": row,
            "source_time": TIMESTAMP,
            "processed_time": TIMESTAMP,
            "position": pl.Int64(),
            "snapshot": pl.Boolean(),
            "transaction": pl.String(),
            "table": pl.String(),
        }
    )


TAKEN: Final = frozenset(change_schema(pl.Null(), {}))
"""The names that a key column cannot have."""


def change_columns(envelopes: pl.DataFrame, schema: pl.Schema, key: tuple[str, ...]) -> pl.DataFrame:
    """Return one row of `schema` for each envelope."""
    source = _Fields(envelopes, "source")
    op = pl.col("op").replace_strict(OPERATIONS, default=None, return_dtype=pl.String)
    if "ddl" in envelopes.columns:
        op = pl.when(pl.col("op").is_null() & pl.col("ddl").is_not_null()).then(pl.lit(SCHEMA_CHANGE)).otherwise(op)
    processed_ms = _usable_ms(pl.col("ts_ms"))
    # Connectors send 0 if they do not know when a snapshot row was written.
    source_ms = _usable_ms(source.number("ts_ms"))
    happened_ms = pl.when(source_ms > 0).then(source_ms).otherwise(processed_ms)
    is_delete = pl.col("op") == "d"
    columns = {
        "op": op,
        **{name: pl.when(is_delete).then(_of("before", name)).otherwise(_of("after", name)) for name in key},
        "before": pl.col("before"),
        "after": pl.col("after"),
        "source_time": (happened_ms * 1_000).cast(TIMESTAMP),
        "processed_time": (processed_ms * 1_000).cast(TIMESTAMP),
        "position": _position(source),
        "snapshot": (source.text("snapshot").fill_null("false") != "false")
        | (pl.col("op") == "r").fill_null(value=False),
        "transaction": _Fields(envelopes, "transaction").text("id"),
        "table": _table(source),
    }
    return envelopes.select(**{name: columns[name].cast(dtype) for name, dtype in schema.items()})


def change_flaws(envelopes: pl.DataFrame, changes: pl.DataFrame, key: tuple[str, ...]) -> dict[int, Flaw]:
    """Return the flaws of envelopes that could be read: no operation, an unknown one, or no key."""
    flaws: dict[int, Flaw] = {}
    for at in changes["op"].is_null().arg_true().to_list() if changes["op"].null_count() else ():
        flaws[at] = _no_operation(envelopes["op"][at])
    keyless = changes["op"].is_in(_OF_ROWS) & changes.select(pl.all_horizontal(pl.col(key).is_null())).to_series()
    for at in keyless.fill_null(value=False).arg_true().to_list():
        op, side = changes["op"][at], "before" if changes["op"][at] == "delete" else "after"
        words = f"the key of {'an' if op[0] in 'iu' else 'a'} {op} is in `{side}`; got no {', '.join(key)} there"
        flaws[at] = Flaw(reason="no_key", message=words)
    return flaws


def _no_operation(op: str | None) -> Flaw:
    if op is None:
        words = "an envelope has an `op`; got a record without one, and without the `ddl` of a schema change"
        return Flaw(reason="not_an_envelope", message=words)
    return Flaw(reason="unknown_op", message=f"`op` is one of {', '.join(OPERATIONS)}; got {excerpt(op)}")


class _Fields:
    """The fields of a struct, any of which may be missing or have another type."""

    def __init__(self, frame: pl.DataFrame, name: str) -> None:
        dtype = frame.schema.get(name)
        self._name = name
        self._types = {field.name: field.dtype for field in dtype.fields} if isinstance(dtype, pl.Struct) else {}

    def text(self, name: str) -> pl.Expr:
        """Return a field as text, or null if it is missing."""
        return self._scalar(name).cast(pl.String)

    def number(self, name: str) -> pl.Expr:
        """Return a field as an integer, or null if it is not one."""
        return self._scalar(name).cast(pl.Int64, strict=False)

    def _scalar(self, name: str) -> pl.Expr:
        known = self._types.get(name)
        is_scalar = known is not None and (known in (pl.String, pl.Boolean) or known.is_integer())
        return pl.col(self._name).struct.field(name) if is_scalar else pl.lit(None)


def _of(side: str, name: str) -> pl.Expr:
    return pl.col(side).struct.field(name)


def _usable_ms(milliseconds: pl.Expr) -> pl.Expr:
    return pl.when(milliseconds.is_between(FIRST_USABLE_MS, LAST_USABLE_MS)).then(milliseconds)


def _position(source: _Fields) -> pl.Expr:
    """Return a change's position in the database's log, which grows with every change of a row; null if unknown."""
    number = source.text("file").str.extract(r"\.([0-9]+)$").cast(pl.Int64, strict=False)
    place = source.number("pos")
    fits = number.is_between(0, 2 ** (62 - _POSITION_BITS)) & place.is_between(0, 2**_POSITION_BITS - 1)
    in_file = pl.when(fits).then(number * 2**_POSITION_BITS + place)
    last = source.text("sequence").str.extract(r'"([0-9]+)"\]$').cast(pl.Int64, strict=False)
    return pl.coalesce(source.number("lsn"), in_file, source.number("scn"), last)


def _table(source: _Fields) -> pl.Expr:
    """Return `schema.table`, or `database.table` for a database without schemas."""
    within = pl.coalesce(source.text("schema"), source.text("db"))
    table = pl.coalesce(source.text("table"), source.text("collection"))
    return pl.when(within.is_null()).then(table).otherwise(within + "." + table)
