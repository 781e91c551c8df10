"""The join of a stream with a small table: what is looked up, and what is added to rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Literal

import polars as pl

from slackwater.base.durations import render_ms
from slackwater.base.errors import listed, near_miss, refuse
from slackwater.base.expressions import unknown_column
from slackwater.base.stable_text import stable_text
from slackwater.connectors.table import Table
from slackwater.formats.schemas import shown

How = Literal["left", "inner"]


@dataclass(frozen=True, kw_only=True, eq=False)
class JoinTable:
    """Adds the columns of the table's row with the same key; all rows of a batch see the same version of the table."""

    table: Table
    left: tuple[str, ...]
    right: tuple[str, ...]
    how: How
    columns: tuple[str, ...] | None
    suffix: str | None
    name: str | None
    label = "join_table"

    @property
    def added(self) -> tuple[str, ...]:
        """The columns of the table that are added to rows."""
        return self.columns or tuple(name for name in self.table.schema if name not in self.right)

    @property
    def names(self) -> dict[str, str]:
        """The name of each added column in the joined rows."""
        return {name: f"{name}{self.suffix or ''}" for name in self.added}

    def schema_after(self, schema: pl.Schema, step: str) -> pl.Schema:
        """Return the columns of joined rows; raises if the join is not possible."""
        table = self.table.schema
        for left, right in zip(self.left, self.right, strict=True):
            if left not in schema:
                raise unknown_column(left, schema, step=step)
            self._check_column(right)
            is_key = not (schema[left].is_nested() or schema[left].is_float())
            if schema[left] != table[right] or not is_key:
                facts = {"left": left, "left_type": schema[left], "right": right, "right_type": table[right]}
                raise refuse("TABLE_KEY_TYPE", step=step, **facts)
        for name in self.added:
            self._check_column(name)
        if not self.added:
            raise refuse("TABLE_NO_COLUMNS", step=step, table=self.table)
        made = dict(schema)
        for name, new in self.names.items():
            if new in made:
                raise refuse("TABLE_COLUMN_TAKEN", step=step, column=new, table=self.table)
            made[new] = table[name]
        return pl.Schema(made)

    def _check_column(self, name: str) -> None:
        known = self.table.schema
        if name not in known:
            hint = near_miss(name, known)
            raise refuse("TABLE_COLUMN", place=self.table, name=name, known=listed(known, near=name), hint=hint)

    @property
    def rules(self) -> str:
        """Everything that the result for a row depends on, except the table's rows."""
        own = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "table"}
        return f"{stable_text(own)} {self.table} {dict(self.table.schema)}"

    @property
    def written(self) -> str:
        """The join as shown by `explain`."""
        on = ", ".join(a if a == b else f"{a} = {b}" for a, b in zip(self.left, self.right, strict=True))
        again = self.table.refresh_ms
        read = "read at the start" if again is None else f"read every {render_ms(again)}"
        columns = shown({name: self.table.schema[name] for name in self.added})
        return f"{on} in {self.table}: {columns}   {self.how}, {read}"


def join_table(
    table: Table,
    *,
    stream: str,
    on: str | Sequence[str] | Mapping[str, str],
    how: How,
    columns: Sequence[str] | None,
    suffix: str | None,
    name: str | None,
) -> JoinTable:
    """Return a join of `stream` with its options checked."""
    if not isinstance(table, Table):
        raise refuse("NOT_A_TABLE", stream=stream, got=repr(table))
    pairs = dict(on) if isinstance(on, Mapping) else {each: each for each in _names(on)}
    if not pairs or not all(isinstance(each, str) and each for pair in pairs.items() for each in pair):
        raise refuse("TABLE_ON", stream=stream, got=repr(on))
    if how not in ("left", "inner"):
        raise refuse("TABLE_HOW", stream=stream, got=repr(how))
    chosen = None if columns is None else _names(columns)
    if chosen is not None and (not chosen or not all(isinstance(each, str) and each for each in chosen)):
        raise refuse("TABLE_COLUMNS", stream=stream, got=repr(columns))
    if suffix is not None and (not isinstance(suffix, str) or not suffix):
        raise refuse("TABLE_SUFFIX", stream=stream, got=repr(suffix))
    return JoinTable(
        table=table,
        left=tuple(pairs),
        right=tuple(pairs.values()),
        how=how,
        columns=chosen,
        suffix=suffix,
        name=name,
    )


def _names(given: object) -> tuple[str, ...]:
    names = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, list | tuple) else ()
    return names if len(set(map(str, names))) == len(names) else ()
