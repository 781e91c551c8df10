"""Rows that the user's code emits, checked one by one and collected into frames."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import polars as pl

from slackwater.base.stable_hash import hash_columns
from slackwater.base.times import TIMESTAMP, to_timestamp
from slackwater.operators.process.failures import MisfitError
from slackwater.operators.process.values import checker

NO_EVENT: Final = -1
PLACES: Final = ("__part", "__off", "__of", "__number")
"""The hidden columns of rows that say what they follow from: the place of an event, a hash of the key, a number."""


def emitted_types(declared: pl.Schema, keys: Mapping[str, pl.DataType]) -> pl.Schema:
    """Return the columns of an output: key columns that are not declared, the declared columns, `event_time`."""
    missing = {name: dtype for name, dtype in keys.items() if name not in declared}
    return pl.Schema({**missing, **declared, "event_time": TIMESTAMP})


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


class Emitter:
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
        self.events: list[int] = []
        """The position of each row's event among the current events; `NO_EVENT` for a timer's."""

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
        if name not in self._other_keys:
            return False
        value, mine = row[name], key[self._other_keys[name]]
        return bool(value == mine or (value != value and mine != mine))  # noqa: PLR0124  NaN is equal to NaN, as a key

    def add(self, row: list[Any], key: int, at_ms: int, event: int) -> None:
        """Add a row that was checked."""
        self.rows.append(row)
        self.keys.append(key)
        self.times.append(at_ms)
        self.events.append(event)

    def undo(self, height: int) -> None:
        """Remove all rows except the first `height`."""
        del self.rows[height:], self.keys[height:], self.times[height:], self.events[height:]

    def frame(self, keys: pl.DataFrame, events: pl.DataFrame | None, *, has_places: bool) -> pl.DataFrame | None:
        """Return the rows, or None if there are none; `keys` and `events` are the current ones.

        With `has_places`, the rows have the columns `PLACES`.
        """
        if not self.rows:
            return None
        made = zip(self._columns, zip(*self.rows, strict=True), strict=True)
        columns = [pl.Series(name, values, dtype=self._types[name], strict=True) for name, values in made]
        times = (
            pl.Series("event_time", self.times, dtype=pl.Int64).to_frame().select(to_timestamp(pl.col("event_time")))
        )
        others = self._others(keys, events)
        frame = pl.DataFrame([*others.get_columns(), *columns, *times.get_columns()]).select(self._types.names())
        return frame.hstack(self._places(keys, events)) if has_places else frame

    def _others(self, keys: pl.DataFrame, events: pl.DataFrame | None) -> pl.DataFrame:  # noqa: ARG002  see below
        """Return the columns of the rows that the user's code does not give: those of the key."""
        return keys[self.keys].select(name for name in keys.columns if name not in self._columns)

    def _places(self, keys: pl.DataFrame, events: pl.DataFrame | None) -> list[pl.Series]:
        event = pl.Series(self.events, dtype=pl.Int64)
        event = event.set(event == NO_EVENT, None)
        nothing = pl.DataFrame(schema={"__part": pl.String(), "__off": pl.Int64()})
        places = (nothing if events is None else events.select(nothing.columns)).select(pl.all().gather(event))
        of = pl.Series("__of", hash_columns(keys, keys.columns)[self.keys])
        return [*places.get_columns(), of, pl.int_range(len(self.rows), eager=True).alias("__number")]


class AddingEmitter(Emitter):
    """The output of a process that adds columns to its events: rows have the columns of their event as well."""

    def __init__(self, what: str, declared: pl.Schema, keys: Mapping[str, pl.DataType], carried: pl.Schema) -> None:
        super().__init__(what, declared, keys)
        self._types = pl.Schema({**carried, **declared, "event_time": TIMESTAMP})
        self._carried = list(carried)

    def add(self, row: list[Any], key: int, at_ms: int, event: int) -> None:
        """Add a row that was checked; a timer has no event to add columns to."""
        if event == NO_EVENT:
            raise MisfitError("columns are added to an event, and a timer has none; use `output`, or ctx.emit(...)")
        super().add(row, key, at_ms, event)

    def _others(self, keys: pl.DataFrame, events: pl.DataFrame | None) -> pl.DataFrame:  # noqa: ARG002  in the event
        """Return the columns of the rows' events."""
        assert events is not None, "a row was added to an event"
        return events[self.events].select(self._carried)
