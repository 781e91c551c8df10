"""Row functions: the stateless operations on a stream before `key_by`, as frozen definitions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import polars as pl
from polars.exceptions import PolarsError

from slackwater.formats.base import Format
from slackwater.plan.join_table import JoinTable
from slackwater.plan.lookup import LookUp

FrameFunction = Callable[[pl.DataFrame], pl.DataFrame]


@dataclass(frozen=True, kw_only=True, eq=False)
class Decode:
    """Decode a record's bytes into columns; a record that cannot be decoded is a dead letter."""

    format: Format
    label = "decode"


@dataclass(frozen=True, kw_only=True, eq=False)
class TakeTime:
    """Give each row its time; a row without a usable time, or too far ahead, is a dead letter."""

    clock: Literal["event", "ingestion", "processing"]
    expression: pl.Expr | None = None
    written: str = ""
    """Here and below: the expression as the user wrote it, for `explain` and messages."""
    out_of_orderness_ms: int = 0
    idle_after_ms: int | None = None
    goes_on_when_idle: bool = False
    max_ahead_ms: int | None = None
    max_drift_ms: int | None = None

    @property
    def label(self) -> str:
        """The function's name within its stream."""
        return f"{self.clock}_time"


@dataclass(frozen=True, kw_only=True, eq=False)
class Where:
    """Keep the rows for which the predicate is true; the others are counted as filtered."""

    predicate: pl.Expr
    written: str
    label = "where"


@dataclass(frozen=True, kw_only=True, eq=False)
class WithColumns:
    """Add or replace columns."""

    expressions: tuple[pl.Expr, ...]
    written: str
    label = "with_columns"


@dataclass(frozen=True, kw_only=True, eq=False)
class Select:
    """Keep only these columns."""

    expressions: tuple[pl.Expr, ...]
    written: str
    label = "select"


@dataclass(frozen=True, kw_only=True, eq=False)
class Map:
    """Apply a function from Polars frame to Polars frame."""

    function: FrameFunction
    schema: pl.Schema | None = None
    label = "map"

    def apply(self, rows: pl.DataFrame, declared: pl.Schema | None) -> pl.DataFrame:
        """Return the function's result for `rows`; raise `MapResultError` if it lacks the declared columns."""
        made = self.function(rows)
        if not isinstance(made, pl.DataFrame):
            raise MapResultError(type(made).__name__)
        if declared is None or (rows.is_empty() and not made.width):  # no rows, so no columns
            return made
        if missing := [name for name in declared if name not in made.columns]:
            has = ", ".join(name for name in made.columns if not name.startswith("__"))
            raise MapResultError(f"one without {', '.join(missing)} (it has {has or 'none'})")
        try:
            return made.cast(declared)
        except PolarsError as error:
            raise MapResultError(f"a column of another type: {str(error).splitlines()[0]}") from error


class MapResultError(TypeError):
    """A map function did not return a frame with the declared columns; `got` describes what it returned."""

    def __init__(self, got: str) -> None:
        super().__init__(f"a map function must return a Polars DataFrame with the declared columns; got {got}")
        self.got = got


@dataclass(frozen=True, kw_only=True, eq=False)
class RowCondition:
    """A condition that every row must meet."""

    name: str
    predicate: pl.Expr
    written: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Validate:
    """Send rows that break a rule to the dead letters; a rule that evaluates to null is broken."""

    rules: tuple[RowCondition, ...]
    label = "validate"

    @property
    def written(self) -> str:
        """The rules as the user wrote them."""
        return ", ".join(f"{rule.name}: {rule.written}" for rule in self.rules)


RowOp = Decode | TakeTime | Where | WithColumns | Select | Map | Validate | LookUp | JoinTable
