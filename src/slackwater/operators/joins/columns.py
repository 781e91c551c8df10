"""The columns of a join's results and late rows, and which side each of them comes from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import polars as pl

from slackwater.base.errors import refuse
from slackwater.base.times import TIMESTAMP, to_timestamp
from slackwater.operators.joins.matching import Pairs
from slackwater.operators.ports import Port

SideName = Literal["left", "right"]
LEFT: Final[SideName] = "left"
RIGHT: Final[SideName] = "right"
SIDES: Final[tuple[SideName, SideName]] = (LEFT, RIGHT)
IN_LOG: Final = {"__part": pl.String(), "__off": pl.Int64()}
"""The columns with the place of a row."""
LATER: Final = to_timestamp(pl.max_horizontal("__left", "__right")).alias("event_time")
"""The event time of a pair, which is that of its later row."""
OWN_TIME: Final = to_timestamp(pl.col("__end")).alias("event_time")
"""The event time of a result for a row without a match."""


def other_side(side: SideName) -> SideName:
    """Return the side that `side` is joined with."""
    return RIGHT if side == LEFT else LEFT


@dataclass(frozen=True, kw_only=True)
class SideColumns:
    """The columns of one side: its key, and the new names of its columns."""

    keys: tuple[str, ...]
    shown: Mapping[str, str]
    """The names of its columns in results, where key columns have the names of the left side."""
    late: Mapping[str, str]
    """The names of its columns in late rows, where columns with the same name and type on both sides are one."""


@dataclass(frozen=True, kw_only=True)
class JoinColumns:
    """The columns of a join's results and late rows."""

    sides: Mapping[SideName, SideColumns]
    result_types: pl.Schema
    late_types: pl.Schema
    """The columns of both sides in late rows."""
    carried: tuple[str, ...] = ()
    """Hidden columns of the left row, other than its time, from which the added columns of a pair are computed."""
    has_places: bool = False
    """Whether rows are stored with their places, which results then have as well; only steps after the join need it."""

    def places(self, side: SideName) -> dict[str, str]:
        """Return the hidden columns of results that have the place of a side's row, and where they come from."""
        return {f"__{side}{name.removeprefix('_')}": name for name in IN_LOG} if self.has_places else {}

    def pairs(
        self, left: pl.DataFrame, right: pl.DataFrame, found: Pairs, added: Sequence[pl.Expr] = (LATER,)
    ) -> pl.DataFrame:
        """Return the results for pairs of rows, given by their numbers.

        `added` are additional columns, computed from the times of the rows, `__left` and `__right`.
        """
        mine, other = self.sides[LEFT], self.sides[RIGHT]
        places = {side: [pl.col(name).alias(new) for new, name in self.places(side).items()] for side in SIDES}
        times = [pl.col("__end").alias("__left"), *places[LEFT]]
        first = left.select(*mine.keys, *_named(mine.shown), *self.carried, *times)[found.ours]
        second = right.select(*_named(other.shown), pl.col("__end").alias("__right"), *places[RIGHT])[found.theirs]
        return first.hstack(second.get_columns()).with_columns(added).select(*self._names)

    def padded(
        self,
        side: SideName,
        rows: pl.DataFrame,
        added: Sequence[pl.Expr] = (OWN_TIME,),
        *,
        fills_keys: bool = False,
    ) -> pl.DataFrame:
        """Return the results for rows of one side without a match on the other.

        A key column with the same name on both sides belongs to both. If the names differ, each belongs to its own
        side and is null without a row of that side; `fills_keys` still fills the left one with the value of the right.
        """
        mine = self.sides[side]
        pairs = zip(mine.keys, self.sides[LEFT].keys, strict=True)
        keys = [pl.col(own).alias(key) for own, key in pairs if own == key or fills_keys]
        places = [pl.col(name).alias(new) for new, name in self.places(side).items()]
        columns = rows.select(*keys, *_named(mine.shown), *places, *added)
        types = dict(self.result_types) | {new: IN_LOG[name] for s in SIDES for new, name in self.places(s).items()}
        absent = {name: dtype for name, dtype in types.items() if name not in columns.columns}
        columns = columns.with_columns(pl.lit(None, dtype=dtype).alias(name) for name, dtype in absent.items())
        return columns.select(*self._names)

    @property
    def _names(self) -> list[str]:
        return [*self.result_types, *(name for side in SIDES for name in self.places(side))]

    def late(self, side: SideName, rows: pl.DataFrame) -> pl.DataFrame:
        """Return rows of one side with the column names of late rows."""
        changed = {name: new for name, new in self.sides[side].late.items() if name != new}
        return rows.rename(changed) if changed else rows


def join_columns(
    step: str, left: Port, right: Port, suffixes: tuple[str, str], added: Mapping[str, pl.DataType] | None = None
) -> JoinColumns:
    """Return the columns of a join of two ports, or reject it; `added` are additional columns of its results."""
    _check_keys(step, left, right)
    first = dict(added or {})
    every = {*first, "event_time"}
    for side, port in zip(SIDES, (left, right), strict=True):
        if taken := [name for name in port.schema if name in every and name not in port.own]:
            raise refuse("JOIN_COLUMN_TAKEN", step=step, side=side, column=taken[0])
    mine = [name for name in left.schema if name not in left.keys and name not in every]
    same_keys = {key for key, own in zip(left.keys, right.keys, strict=True) if key == own}
    theirs = [name for name in right.schema if name not in same_keys and name not in every]
    shared = {*theirs} & {*mine, *left.keys}
    shown_left = {name: name + suffixes[0] * (name in shared) for name in mine}
    shown_right = {name: name + suffixes[1] * (name in shared) for name in theirs}
    _check_distinct(step, [*left.keys, *first, *shown_left.values(), *shown_right.values(), "event_time"])
    types: dict[str, pl.DataType] = {key: left.schema[key] for key in left.keys} | first
    types |= {shown_left[name]: left.schema[name] for name in mine}
    types |= {shown_right[name]: right.schema[name] for name in theirs}
    late_left, late_right = _late_names(step, left, right, suffixes)
    late = {late_left[name]: dtype for name, dtype in left.schema.items()}
    late |= {late_right[name]: dtype for name, dtype in right.schema.items()}
    sides: dict[SideName, SideColumns] = {
        LEFT: SideColumns(keys=left.keys, shown=shown_left, late=late_left),
        RIGHT: SideColumns(keys=right.keys, shown=shown_right, late=late_right),
    }
    return JoinColumns(
        sides=sides, result_types=pl.Schema(types | {"event_time": TIMESTAMP}), late_types=pl.Schema(late)
    )


def _check_keys(step: str, left: Port, right: Port) -> None:
    """Reject keys that can never be equal."""
    if len(left.keys) != len(right.keys):
        facts = {"left": ", ".join(left.keys), "right": ", ".join(right.keys)}
        raise refuse("JOIN_KEYS_NUMBER", step=step, **facts)
    for mine, other in zip(left.keys, right.keys, strict=True):
        if left.schema[mine] != right.schema[other]:
            facts = {"left": f"{mine} {left.schema[mine]}", "right": f"{other} {right.schema[other]}"}
            raise refuse("JOIN_KEY_TYPES", step=step, **facts)


def _late_names(
    step: str, left: Port, right: Port, suffixes: tuple[str, str]
) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Return the names of each side's columns in late rows: the same where name and type are the same."""
    unlike = {name for name, dtype in left.schema.items() if right.schema.get(name, dtype) != dtype}
    mine = {name: name + suffixes[0] * (name in unlike) for name in left.schema}
    theirs = {name: name + suffixes[1] * (name in unlike) for name in right.schema}
    _check_distinct(
        step, [*mine.values(), *(new for name, new in theirs.items() if name not in mine or name in unlike)]
    )
    return mine, theirs


def _check_distinct(step: str, names: Sequence[str]) -> None:
    if twice := [name for name, times in Counter(names).items() if times > 1]:
        raise refuse("JOIN_NAMES_COLLIDE", step=step, got=", ".join(twice))


def _named(names: Mapping[str, str]) -> list[pl.Expr]:
    return [pl.col(name).alias(new) for name, new in names.items()]
