"""The base class of joins as keyed steps: two ports, results with the columns of both sides, late rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import polars as pl

from slackwater.base.errors import refuse
from slackwater.base.stable_hash import hash_columns
from slackwater.base.times import MAX_MS, MIN_MS
from slackwater.operators.joins.columns import IN_LOG, LEFT, RIGHT, SIDES, JoinColumns, SideName
from slackwater.operators.joins.kept_rows import Kept, KeptRows
from slackwater.operators.late_rows import Late, check_late_columns, late_schema
from slackwater.operators.ports import Port
from slackwater.operators.state.pieces import StepState
from slackwater.operators.state.shown import free_names, moment, of_key
from slackwater.operators.step import KeyedStep

How = Literal["inner", "left", "right", "full"]


@dataclass(frozen=True, kw_only=True)
class JoinStep(KeyedStep):
    """A join of two streams, validated and resolved."""

    name: str
    left: Port
    right: Port
    columns: JoinColumns
    how: How
    late: Late = "output"
    lateness_ms: int = 0

    @property
    def keys(self) -> tuple[str, ...]:  # type: ignore[override]  # the left side's
        """The key columns, by the names of the left side."""
        return self.left.keys

    @property
    def ports(self) -> Mapping[str, Port]:
        """The left and the right side."""
        return {LEFT: self.left, RIGHT: self.right}

    @property
    def result_types(self) -> pl.Schema:
        """The columns of both sides, and the event time of the result."""
        return self.columns.result_types

    @property
    def late_types(self) -> pl.Schema | None:
        """The columns of both sides, and the side that the row came from."""
        return late_schema(self.columns.late_types, side=pl.String()) if self.late == "output" else None

    @property
    def own_columns(self) -> frozenset[str]:
        """The event time of the result, and columns that Slackwater added in earlier steps."""
        found = {"event_time"}
        for side, port in ((LEFT, self.left), (RIGHT, self.right)):
            found |= {new for name, new in self.columns.sides[side].shown.items() if name in port.own}
        return frozenset(found)

    @property
    def result_order(self) -> list[str]:
        """Nothing: rows and their matches are found in the same order by a replay."""
        return []

    def reads(self, port: str) -> list[pl.Expr]:
        """Return all columns, because results contain them."""
        return [pl.col(name) for name in self.ports[port].schema]

    def check_next(self, step: str) -> None:
        """Accept any step: results are append-only."""

    def check_replaces(self, replaced_by: Sequence[str], **facts: object) -> None:
        """Accept any table: only the author of the pipeline knows which columns identify a result."""

    @property
    def state_parts(self) -> Mapping[int, str]:
        """The side that is stored in each part of the state."""
        return {self.kept(side).part: side for side in SIDES}

    @abstractmethod
    def kept(self, side: SideName) -> Kept:
        """Return how a side is stored."""

    def shown_state(self, state: StepState, key: pl.DataFrame | None = None) -> pl.DataFrame:
        """Return the stored rows of both sides, with the column names of results."""
        return pl.concat([self._shown_side(side, state, key) for side in SIDES], how="diagonal")

    def _shown_side(self, side: SideName, state: StepState, key: pl.DataFrame | None) -> pl.DataFrame:
        kept, mine = self.kept(side), self.columns.sides[side]
        rows = KeptRows(state, kept)
        pieces = rows.pieces
        if key is not None:
            key = key.rename(dict(zip(self.keys, kept.keys, strict=True)))
            pieces = rows.near(hash_columns(key, [*kept.keys]), MIN_MS, MAX_MS)
        found = of_key(rows.read(pieces), kept.keys, key)
        time = moment(pl.col("__ts" if "__ts" in kept.types else "__end")).alias("event_time")
        facts = {"__side": "side", "__met": "is_matched", "__gone": "is_deletion"}
        named = free_names(facts, (*self.result_types, *self.keys))
        side_of = pl.lit(side).alias(named["__side"])
        shown = self.columns.padded(side, found, (time,), fills_keys=True).select(
            *self.keys, side_of, "event_time", *mine.shown.values()
        )
        return shown.with_columns(found[name].alias(new) for name, new in named.items() if name in found.columns)

    def as_late(self, side: SideName, rows: pl.DataFrame) -> pl.DataFrame:
        """Return rows of a side with the column names of late rows."""
        return self.columns.late(side, rows)

    def pads(self, side: SideName) -> bool:
        """Return whether rows of a side without a match are also results."""
        return self.how in ("full", side)

    @property
    def independent(self) -> tuple[str, ...]:
        """Nothing: what is noted about rows, whether they matched, is stored apart from them."""
        return ()

    def chained(self) -> JoinStep:
        """Return the step with the places of rows, which break ties between results."""
        return replace(self, columns=replace(self.columns, has_places=True))

    @property
    def lineage(self) -> tuple[str, ...]:
        """The places of the left row and of the right one."""
        return (*self.columns.places(LEFT), *self.columns.places(RIGHT))

    def kept_types(self, side: SideName, **more: pl.DataType) -> pl.Schema:
        """Return the columns of the stored rows of a side, with their time in `__end`."""
        places = IN_LOG if self.columns.has_places else {}
        return pl.Schema(dict(self.ports[side].schema) | places | more | {"__end": pl.Int64()})

    @property
    def _ports_text(self) -> dict[str, str]:
        """The key and the columns of each side, for the layout."""
        added = ", with places" * self.columns.has_places
        return {side: f"by {', '.join(port.keys)}: {_listed(port)}{added}" for side, port in self.ports.items()}


def _listed(port: Port) -> str:
    return ", ".join(f"{name} {dtype}" for name, dtype in port.schema.items())


def checked_how(how: How, known: Sequence[str] = get_args(How)) -> How:
    """Return `how`, or reject it if it is not in `known`."""
    if how not in known:
        raise refuse("JOIN_HOW", known=", ".join(f'"{each}"' for each in known), got=repr(how))
    return how


def checked_late(late: Late) -> Late:
    """Return `late`, or reject an unknown value."""
    if late not in get_args(Late):
        raise refuse("JOIN_LATE", got=repr(late))
    return late


def checked_suffixes(suffixes: tuple[str, str]) -> tuple[str, str]:
    """Return `suffixes`, or reject anything but two strings."""
    is_pair = isinstance(suffixes, tuple | list) and len(suffixes) == 2  # noqa: PLR2004  a pair
    if not is_pair or not all(isinstance(suffix, str) for suffix in suffixes):
        raise refuse("JOIN_SUFFIXES", got=repr(suffixes))
    return suffixes[0], suffixes[1]


def check_late(step: str, late: Late, *ports: Port) -> None:
    """Reject rows with a column that Slackwater adds to late rows, if the join has a late output."""
    if late == "output":
        for port in ports:
            check_late_columns(port, step, "side")
