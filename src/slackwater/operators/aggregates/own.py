"""Aggregates that users derive from `Aggregate`: tried when a pipeline is built, and their results checked.

Built-in aggregates are trusted and are not wrapped, so they pay nothing for it.
"""

# ruff: noqa: D102  the contract in base.py says what the methods do

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final, Self

import polars as pl

from slackwater.base.errors import DefinitionError, RunError, SlackwaterError, cause_of, counted, fault, listed, refuse
from slackwater.base.expressions import FAILURES
from slackwater.formats.schemas import fits
from slackwater.operators.aggregates.base import Aggregate, part
from slackwater.operators.aggregates.combine import combine_rows, merge_states, state_schema

_GROUP: Final = "__trial"
_ORDER: Final = pl.DataFrame({_GROUP: [0, 1], "__ts": [0, 1], "__part": ["0", "0"], "__off": [0, 1]})
_WANTS: Final = {
    "inputs": "a list of Polars expressions",
    "output_type": "a Polars type",
    "prepare": "a list of Polars expressions",
    "partial": "aggregations of the columns that `inputs` reads, named `__{alias}.…`",
    "merge": "aggregations of the state columns with the same names and types",
    "finish": "the frame it got with the results as column `{alias}`",
}
"""What each method of an aggregate must return."""


class _MisshapenError(Exception):
    """Raised when a method returns something else than it must."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Checked(Aggregate):
    """A user's aggregate whose `finish` must return a result for each row it got, in order, of the declared type."""

    own: Aggregate
    dtype: pl.DataType

    def __post_init__(self) -> None:
        for name in ("name", "may_stream"):  # class variables of the base, which the user's class sets
            object.__setattr__(self, name, getattr(self.own, name))

    def inputs(self) -> list[pl.Expr]:
        return self.own.inputs()

    def output_type(self, schema: pl.Schema) -> pl.DataType:  # noqa: ARG002  known since the aggregate was tried
        return self.dtype

    def bind(self, schema: pl.Schema) -> Self:
        return replace(self, own=self.own.bind(schema))

    def prepare(self, alias: str) -> list[pl.Expr]:
        return self.own.prepare(alias)

    def partial(self, alias: str) -> list[pl.Expr]:
        return self.own.partial(alias)

    def merge(self, alias: str) -> list[pl.Expr]:
        return self.own.merge(alias)

    def compact(self, frame: pl.DataFrame, alias: str) -> pl.DataFrame:
        return self.own.compact(frame, alias)

    def finish(self, frame: pl.DataFrame, alias: str) -> pl.DataFrame:
        made = self.own.finish(frame, alias)
        if not isinstance(made, pl.DataFrame):
            raise self._misshapen(alias, f"`{type(made).__name__}`")
        if made.height != frame.height:
            raise self._misshapen(alias, f"{counted(made.height, 'row')} for {counted(frame.height, 'row')}")
        if alias not in made.columns:
            raise self._misshapen(alias, f"a frame without column `{alias}`")
        others = [name for name in frame.columns if not name.startswith(part(alias, ""))]
        if any(name not in made.columns for name in others) or not made.select(others).equals(frame.select(others)):
            raise self._misshapen(alias, "other rows, or rows in another order")
        return frame.with_columns(self._fitted(made[alias], alias))

    def describe(self) -> str:
        return self.own.describe()

    def _fitted(self, results: pl.Series, alias: str) -> pl.Series:
        if results.dtype == self.dtype:
            return results
        if not fits(results.dtype, self.dtype):
            raise self._misshapen(alias, f"`{alias}` of type {results.dtype}")
        try:
            return results.cast(self.dtype)
        except pl.exceptions.PolarsError as error:
            cause = str(error).strip().partition("\n")[0]
            raise self._misshapen(alias, f"`{alias}` of type {results.dtype} ({cause})") from error

    def _misshapen(self, alias: str, got: str) -> RunError:
        return fault("AGGREGATE_RESULT", alias=alias, aggregate=_shown(self.own), dtype=self.dtype, got=got)


def inputs_of(aggregate: Aggregate, alias: str, *, step: str) -> list[pl.Expr]:
    """Return what `aggregate` reads, or reject it if that is not a list of expressions."""
    with _trying(aggregate, "inputs", alias, step):
        return _expressions(aggregate.inputs())


def tried(aggregate: Aggregate, alias: str, schema: pl.Schema, *, step: str) -> Aggregate:
    """Return the aggregate, checked if it is a user's: on no rows and on two rows of nulls it must do what it promises.

    `schema` has the columns that it may read: those of its inputs, and the key.
    """
    if aggregate.is_trusted:
        return aggregate
    with _trying(aggregate, "output_type", alias, step):
        dtype = aggregate.output_type(schema)
        dtype = dtype() if isinstance(dtype, type) and issubclass(dtype, pl.DataType) else dtype
        if not isinstance(dtype, pl.DataType):
            raise _MisshapenError(f"got {dtype!r}")
    nulls = [pl.lit(None, dtype=each).alias(name) for name, each in schema.items()]
    rows, many = _ORDER.with_columns(nulls), {alias: aggregate}
    for method in ("prepare", "partial", "merge"):
        with _trying(aggregate, method, alias, step):
            _expressions(getattr(aggregate.bind(rows.schema), method)(alias))
    bound = aggregate.bind(rows.schema)
    prepared, partials = bound.prepare(alias), bound.partial(alias)
    columns = [*schema, *(each.meta.output_name(raise_if_undetermined=False) for each in prepared)]
    with _trying(aggregate, "partial", alias, step), _reading([*prepared, *partials], columns):
        states = combine_rows(rows, [_GROUP], many).sort(_GROUP)
        _check_columns(states, pl.Schema({_GROUP: pl.Int64(), **state_schema(rows.schema, many)}), alias)
    columns = [name for name in states.columns if name != _GROUP]
    with _trying(aggregate, "merge", alias, step), _reading(aggregate.merge(alias), columns):
        merged = merge_states(pl.concat([states, states]), [_GROUP], many)
        _check_columns(merged, states.schema, alias)
    checked = Checked(own=aggregate, dtype=dtype)
    with _trying(aggregate, "finish", alias, step):
        for frame in (states.clear(), states):
            checked.finish(frame, alias)
    return checked


def _expressions(given: object) -> list[pl.Expr]:
    if not isinstance(given, list):
        raise _MisshapenError(f"got `{type(given).__name__}`")
    for each in given:
        if not isinstance(each, pl.Expr):
            raise _MisshapenError(f"got `{type(each).__name__}` in the list")
    return given


def _check_columns(states: pl.DataFrame, wanted: pl.Schema, alias: str) -> None:
    for name, dtype in states.schema.items():
        if name != _GROUP and not name.startswith(part(alias, "")):
            raise _MisshapenError(f"got column `{name}`")
        if wanted.get(name, dtype) != dtype:
            raise _MisshapenError(f"got column `{name}` of type {dtype}, not {wanted[name]}")
    if missing := [name for name in wanted if name not in states.columns]:
        raise _MisshapenError(f"column `{missing[0]}` is missing")


@contextmanager
def _reading(expressions: Sequence[pl.Expr], columns: Sequence[str | None]) -> Iterator[None]:
    """Name the column that expressions read although there are only `columns`; Polars' message has hidden ones, too."""
    try:
        yield
    except pl.exceptions.ColumnNotFoundError as error:
        roots = [root for each in expressions for root in each.meta.root_names()]
        missing = [root for root in roots if root not in columns and root not in _ORDER.columns]
        if not missing:
            raise
        raise _MisshapenError(f"it reads column `{missing[0]}`, and there are {listed(columns)}") from error


@contextmanager
def _trying(aggregate: Aggregate, method: str, alias: str, step: str) -> Iterator[None]:
    """Refuse the aggregate if what is done inside shows that `method` is wrong."""
    try:
        yield
    except RunError as error:
        raise DefinitionError(error.code, error.message) from error
    except SlackwaterError:
        raise
    except FAILURES as error:
        cause = str(error) if isinstance(error, _MisshapenError) else cause_of(error)
        facts = {"method": method, "wants": _WANTS[method].format(alias=alias), "alias": alias, "step": step}
        raise refuse("AGGREGATE_METHOD", aggregate=_shown(aggregate), cause=cause, **facts) from error


def _shown(aggregate: Aggregate) -> str:
    return f"`{type(aggregate).__qualname__}`"
