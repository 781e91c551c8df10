"""Aggregates that users write: what is wrong with one is refused when it is built, and no result is lost or changed."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import polars as pl
import pytest

import slackwater as sw
from slackwater.base.errors import DefinitionError, RunError
from slackwater.testing import rows_source, run

ROWS = [{"k": key, "v": value, "w": 1, "ts": 0} for key, value in (("a", 700.5), ("a", 75.25), ("b", 3.0))]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Total(sw.Aggregate):
    """A sum, written as users write it."""

    column: str = "v"
    name = "total"
    may_stream = False

    def inputs(self) -> list[pl.Expr]:
        return [pl.col(self.column)]

    def output_type(self, schema: pl.Schema) -> pl.DataType:
        return pl.Float64()

    def partial(self, alias: str) -> list[pl.Expr]:
        return [pl.col(self.column).sum().alias(f"__{alias}.s")]

    def merge(self, alias: str) -> list[pl.Expr]:
        return [pl.col(f"__{alias}.s").sum()]

    def finish(self, frame: pl.DataFrame, alias: str) -> pl.DataFrame:
        return frame.with_columns(pl.col(f"__{alias}.s").alias(alias))


def total(**methods: Callable[..., Any]) -> sw.Aggregate:
    """Return a `Total` with other methods."""
    own: sw.Aggregate = type("Own", (Total,), methods)()
    return own


def done(aggregate: sw.Aggregate) -> list[tuple[Any, ...]]:
    stream = sw.stream("s", rows_source("k string, v double, w long, ts long")).event_time("ts")
    results = stream.key_by("k").window(sw.tumbling("1m"), name="w").aggregate(x=aggregate, n=sw.count())
    pipeline = sw.Pipeline("p", results.to(sw.sinks.memory()), results.late.drop(), stream.dead_letters.drop())
    return run(pipeline, {"s": ROWS})[results].select("k", "x", "n").sort("k").rows()


def finished(expression: Callable[[str], pl.Expr]) -> Callable[..., pl.DataFrame]:
    return lambda _, frame, alias: frame.with_columns(expression(alias).alias(alias))


REFUSED: dict[str, tuple[dict[str, Callable[..., Any]], str]] = {
    "inputs are one expression": ({"inputs": lambda _: pl.col("v")}, "a list of Polars expressions; .*: got `Expr`;"),
    "the type is a text": ({"output_type": lambda *_: "double"}, "a Polars type; .*: got 'double';"),
    "partial fails": ({"partial": lambda *_: 1 / 0}, "`partial` .*: ZeroDivisionError: division by zero;"),
    "partial has a wrong name": (
        {"partial": lambda *_: [pl.col("v").sum().alias("s")]},
        "named `__x.…`; .* column `s`",
    ),
    "partial does not aggregate": ({"partial": lambda _, x: [pl.col("v").alias(f"__{x}.s")]}, "`__x.s` of type List"),
    "partial reads more": (
        {"partial": lambda _, x: [pl.col("w").sum().alias(f"__{x}.s")]},
        "it reads column `w`, and there are k, v; correct",
    ),
    "merge reads more": (
        {"merge": lambda _, x: [pl.col("w").sum().alias(f"__{x}.s")]},
        "it reads column `w`, and there are __x.s; correct",
    ),
    "merge loses a column": ({"merge": lambda *_: []}, "`merge` .*: column `__x.s` is missing;"),
    "merge changes a type": ({"merge": lambda _, x: [pl.col(f"__{x}.s").len()]}, "`__x.s` of type UInt32, not Float64"),
    "finish without a result": ({"finish": lambda _, frame, __: frame}, "`Own` returned a frame without column `x`"),
    "finish returns text": ({"finish": finished(lambda _: pl.lit("x"))}, "returned `x` of type String"),
    "finish is lazy": ({"finish": lambda _, frame, __: frame.lazy()}, "returned `LazyFrame`"),
    "finish doubles rows": (
        {"finish": lambda _, frame, x: pl.concat([frame, frame]).with_columns(pl.lit(1.0).alias(x))},
        "4 rows for 2 rows",
    ),
    "finish reverses rows": (
        {"finish": lambda _, frame, x: frame.reverse().with_columns(pl.lit(1.0).alias(x))},
        "rows in another order",
    ),
    "finish fails": ({"finish": lambda *_: [].pop()}, "`finish` .*: IndexError: pop from empty list"),
    "a fraction is declared whole": ({"output_type": lambda *_: pl.Int64()}, "as Int64; .* `x` of type Float64"),
    "a number is declared text": ({"output_type": lambda *_: pl.String}, "as String; .* `x` of type Float64"),
}


@pytest.mark.parametrize("methods, words", REFUSED.values(), ids=REFUSED)
def test_aggregate_that_breaks_its_contract_is_refused_when_the_pipeline_is_built(
    methods: dict[str, Callable[..., Any]], words: str
) -> None:
    with pytest.raises(DefinitionError, match=words) as caught:
        done(total(**methods))
    assert caught.value.code in ("AGGREGATE_METHOD", "AGGREGATE_RESULT")


def test_finish_that_drops_the_rows_of_some_keys_stops_the_run() -> None:
    def large(_: object, frame: pl.DataFrame, alias: str) -> pl.DataFrame:
        sums = pl.col(f"__{alias}.s")
        return frame.filter((sums == 0) | (sums > 100)).with_columns(sums.alias(alias))

    with pytest.raises(RunError, match=r"`Own` returned 0 rows for 1 row; correct `finish`") as caught:
        done(total(finish=large))
    assert caught.value.code == "AGGREGATE_RESULT"


def test_result_of_a_narrower_type_becomes_the_declared_one() -> None:
    whole = total(finish=finished(lambda alias: pl.col(f"__{alias}.s").round().cast(pl.Int32)))
    assert done(whole) == [("a", 776.0, 2), ("b", 3.0, 1)]


def test_correct_aggregate_of_the_users_own_is_computed_like_a_built_in_one() -> None:
    assert done(Total()) == done(sw.sum("v")) == [("a", 775.75, 2), ("b", 3.0, 1)]


def test_checked_aggregate_keeps_the_names_and_the_promise_of_the_users_class() -> None:
    stream = sw.stream("s", rows_source("k string, v double, ts long")).event_time("ts")
    results = stream.key_by("k").window(sw.tumbling("1m")).aggregate(x=Total())
    pipeline = sw.Pipeline("p", results.to(sw.sinks.memory()), results.late.drop(), stream.dead_letters.drop())
    [checked] = pipeline.plan().steps[0].spec.aggregates.values()  # type: ignore[attr-defined]
    assert [repr(checked), pickle.loads(pickle.dumps(checked)).may_stream] == ["total(v)", False]  # noqa: S301
