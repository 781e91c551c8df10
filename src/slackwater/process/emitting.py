"""Rows that the user's code emits, checked one by one and collected into frames."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from slackwater.ground.times import TIMESTAMP, to_timestamp
from slackwater.process.failures import MisfitError
from slackwater.process.values import checker


def emitted_types(declared: pl.Schema, keys: Mapping[str, pl.DataType]) -> pl.Schema:
    """Return the columns of an output: key columns that are not declared, the declared columns, `event_time`."""
    missing = {name: dtype for name, dtype in keys.items() if name not in declared}
    return pl.Schema({**missing, **declared, "event_time": TIMESTAMP})


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


class Outlet:
    """One output of a process during one batch."""

    def __init__(self, what: str, declared: pl.Schema, keys: Mapping[str, pl.DataType]) -> None:
        self._what = what
        self._types = emitted_types(declared, keys)
        self._checks = {name: checker(dtype, f"column `{name}` of {what}") for name, dtype in declared.items()}
        self._key_places = [(name, place) for place, name in enumerate(keys) if name in declared]
        self._other_keys = {name: place for place, name in enumerate(keys) if name not in declared}
        self._columns = list(declared)
        self.rows: list[list[Any]] = []
        self.keys: list[int] = []
        """The position of each row's key among the current keys."""
        self.times: list[int] = []

    def checked(self, row: Any, key: Sequence[Any]) -> list[Any]:  # noqa: ANN401  the user's own
        """Return a row as stored in its columns, or raise `MisfitError`."""
        if not isinstance(row, Mapping):
            raise MisfitError(f"{self._what} takes dictionaries; got {row!r:.80}")
        if row.keys() == self._checks.keys():
            return [check(row[name]) for name, check in self._checks.items()]
        if strange := _listed(name for name in row if name not in self._checks and not self._is_key(name, row, key)):
            raise MisfitError(f"{self._what} has no column {strange}; it has {', '.join(self._checks)}")
        of_key = {name: key[place] for name, place in self._key_places}
        if missing := _listed(name for name in self._columns if name not in row and name not in of_key):
            raise MisfitError(f"{self._what} needs every column; got a row without {missing}; write None for null")
        return [check(row[name]) if name in row else of_key[name] for name, check in self._checks.items()]

    def _is_key(self, name: str, row: Mapping[str, Any], key: Sequence[Any]) -> bool:
        """Return whether a column is one of the key, which results have anyway, with the key's value."""
        return name in self._other_keys and bool(row[name] == key[self._other_keys[name]])

    def add(self, row: list[Any], key: int, at_ms: int) -> None:
        """Add a row that was checked."""
        self.rows.append(row)
        self.keys.append(key)
        self.times.append(at_ms)

    def undo(self, height: int) -> None:
        """Remove all rows except the first `height`."""
        del self.rows[height:], self.keys[height:], self.times[height:]

    def frame(self, keys: pl.DataFrame) -> pl.DataFrame | None:
        """Return the rows, or None if there are none; `keys` are the current keys."""
        if not self.rows:
            return None
        made = zip(self._columns, zip(*self.rows, strict=True), strict=True)
        columns = [pl.Series(name, values, dtype=self._types[name], strict=True) for name, values in made]
        times = (
            pl.Series("event_time", self.times, dtype=pl.Int64).to_frame().select(to_timestamp(pl.col("event_time")))
        )
        others = keys[self.keys].select(name for name in keys.columns if name not in self._columns)
        return pl.DataFrame([*others.get_columns(), *columns, *times.get_columns()]).select(self._types.names())
