"""Expressions on rows: those that look at other rows are refused, and nothing else is."""

# ruff: noqa: E501  tables, by kind

from __future__ import annotations

import functools
import operator
import threading
from datetime import datetime
from typing import Any

import polars as pl
import polars.selectors as cs
import pytest
from polars.testing import assert_frame_equal
from pyspark import cloudpickle

import slackwater as sw
from slackwater.base.errors import DefinitionError
from slackwater.base.expressions import Expression, as_expr, result_schema

SCHEMA = pl.Schema(
    {
        "id": pl.Int64(),
        "n": pl.Int64(),
        "x": pl.Float64(),
        "s": pl.String(),
        "day": pl.String(),
        "t": pl.Datetime("us"),
        "l": pl.List(pl.Int64),
        "a": pl.Array(pl.Int64, 2),
        "st": pl.Struct({"x": pl.Int64, "y": pl.Int64}),
    }
)
ROWS = pl.DataFrame(
    {
        "id": [1, 2, 3],
        "n": [5, None, 1],
        "x": [1.5, 0.5, None],
        "s": ["ab", "b", None],
        "day": ["2026-01-03", "2026-01-01", "2026-01-02"],
        "t": [datetime(2026, 1, day) for day in (3, 1, 2)],  # noqa: DTZ001  as the column has it
        "l": [[3, 1], [], [2]],
        "a": [[2, 1], [3, 4], [5, 6]],
        "st": [{"x": 1, "y": 2}, {"x": 3, "y": 4}, {"x": 5, "y": 6}],
    },
    schema=SCHEMA,
)
n, x, s, l, t = (pl.col(name) for name in "nxslt")  # noqa: E741  the columns' names
by_python = n.map_elements(operator.index, return_dtype=pl.Int64)

OF_ONE_ROW: list[Expression] = [
    pl.lit(1), pl.lit(1) + pl.lit(2), pl.lit(None), pl.lit([1, 2]), pl.date(2026, 1, 1), pl.date(2026, 1, n),
    pl.duration(days=n), pl.from_epoch(n, "ms"), pl.struct("id", "n"), pl.struct(pl.all()), pl.struct(q=pl.lit(1)),
    pl.when(n > 1).then(n).otherwise(0), pl.when(n > 1).then(pl.lit("x")), pl.concat_str(["s", "n"]), pl.coalesce("n", "id"),
    pl.format("{}-{}", "id", "s"), pl.concat_list("n", "id"), pl.max_horizontal("n", "id"), pl.sum_horizontal(cs.numeric()),
    pl.fold(pl.lit(0), lambda a, b: a + b, [pl.col("id"), n]), pl.reduce(lambda a, b: a + b, [pl.col("id"), n]),
    pl.all(), pl.all().exclude("id"), cs.numeric(), cs.numeric() * 2, cs.temporal().dt.year(), pl.col("n", "id"), pl.nth(0),
    n.replace({1: 2}), n.replace({1: 2, 3: 4}), n.replace_strict({1: 2, 5: 4}, default=None), n.is_in([1, 2]),
    n.is_in(pl.Series([1, 2])), n.is_in(l), n.is_between(1, 2), n.fill_null(0).clip(0, 5), n.cast(pl.String), n.eq_missing(1),
    x.round(1), x.fill_nan(0), -n, n**2, n // 2, n.hash(), n.alias("k"), (n + 1).name.suffix("_x"),
    s.str.split("a"), s.str.extract("(a)"), s.str.contains_any(["a", "b"]), s.str.replace_many({"a": "c", "b": "d"}),
    s.str.len_chars() + 1, pl.col("day").str.to_date("%Y-%m-%d"), pl.col("day").str.to_date("%Y-%m-%d").dt.year(),
    t.dt.hour(), t.dt.truncate("1h"), t.dt.offset_by("1d"), t.cast(pl.Date).dt.add_business_days(1, roll="forward"),
    l.list.sum(), l.list.sort(), l.list.head(1), l.list.unique(), l.list.eval(pl.element().rank()), l.list.eval(pl.element().sum()),
    l.list.filter(pl.element() > 1), l.list.contains(n), l.list.get(0, null_on_oob=True), pl.col("a").arr.sum(), pl.col("a").arr.sort(),
    pl.col("a").arr.eval(pl.element() * 2), pl.col("st").struct.field("x"), pl.col("st").struct.unnest(), -pl.col("st").struct.field("*"),
    pl.col("st").struct.with_fields(pl.field("x") * 2), by_python, by_python.cast(pl.String) + "!", n.map_batches(lambda values: values),
    n.bitwise_count_ones(), pl.cum_fold(pl.lit(0), lambda a, b: a + b, [pl.col("id"), n]), pl.col("st").name.map_fields(str.upper),
    n.replace_strict(pl.Series([1, 5]), pl.Series([2, 4]), default=None), pl.col("a").arr.to_struct(), n.upper_bound(),
    "1", "'x'", "true", "n % 2", "n / 2", "POW(n, 2)", "n IN (1, 2)", "n NOT IN (1, 2)", "n BETWEEN 1 AND 2", "n IS NULL",
    "CASE WHEN n > 1 THEN 'a' ELSE 'b' END", "CASE WHEN n > 1 THEN 'a' END", "COALESCE(n, 0)", "CAST(n AS VARCHAR)", "n::int",
    "CONCAT(s, 'x')", "CONCAT_WS('-', s, n)", "s || 'x'", "s LIKE 'a%'", "s ILIKE 'A%'", "UPPER(s)", "SUBSTR(s, 1, 1)",
    "EXTRACT(hour FROM t)", "DATE_PART('year', t)", "CAST(t AS date)", "STRFTIME(t, '%Y')", "t + INTERVAL '1 hour'", "DATE '2026-01-01'",
    "GREATEST(n, id)", "NULLIF(n, 1)", "IFNULL(n, 0)", "ROUND(x, 1)", "ARRAY_SUM(l)", "ARRAY_CONTAINS(l, 1)", "st.x",
]  # fmt: skip

OF_OTHER_ROWS: list[Expression] = [
    pl.len(), n.sum(), n > n.mean(), x - x.min(), n.count(), n.n_unique(), x.std(), x.quantile(0.5), n.first(), n.implode(),
    n.sort(), n.sort_by("id"), n.reverse(), n.rank(), n.arg_sort(), n.head(2), n.tail(1), n.slice(0, 1), n.gather([0]), n.get(0),
    n.sample(1), n.shuffle(), n.unique(), n.mode(), n.value_counts(), n.top_k(1), n.filter(n > 1), n.drop_nulls(), l.explode(), l.list.explode(),
    n.over("id"), n.sum().over("id"), n.shift(), n.diff(), n.pct_change(), n.cum_sum(), n.rolling_mean(2), n.rolling_sum_by("t", "1h"),
    n.sum().rolling("t", period="1h"), x.ewm_mean(alpha=0.5), n.forward_fill(), n.fill_null(strategy="mean"), n.fill_null(n.mean()),
    n.interpolate(), n.is_duplicated(), n.is_unique(), n.is_first_distinct(), n.rle_id(), (n > 1).any(), n.is_in(n.implode()),
    pl.int_range(pl.len()), pl.int_range(0, 3), pl.lit(pl.Series([1, 2, 3])), n + pl.lit(pl.Series([1, 2, 3])), n * pl.len(), pl.corr("n", "x"),
    pl.when(n == n.max()).then(1).otherwise(0), pl.struct(n.sum()), pl.coalesce(n, n.mean()), pl.concat_str(s, s.first()),
    n.append(pl.col("id")), n.implode().list.sum(), n.implode().list.eval(pl.element() * 2), pl.col("st").struct.with_fields(pl.field("x").min()),
    pl.all().sum(), cs.numeric() - cs.numeric().min(), cs.float().cum_min(), cs.numeric().over("id"), cs.float().nan_max(), cs.float().ewm_std(alpha=0.5),
    by_python.sum(), by_python - by_python.min(), n.sum().map_batches(lambda values: values), pl.col("st").struct.field("*").sum(),
    pl.col("day").str.to_date("%Y-%m-%d").max(), pl.col("day").str.to_date("%Y-%m-%d").shift(),
    x.approx_quantile(0.5), n.cumulative_eval(pl.element().sum()), n.pipe_with_dtype(lambda e, _: e), cs.numeric().is_sorted(),
    n.map_batches(lambda values: values.sum(), returns_scalar=True), pl.fold(pl.lit(0), lambda a, b: a + b, [n], returns_scalar=True),
    n.ext.to(pl.Int64), pl.col("l").list.concat(pl.Series([[1], [2], [3]])),
    "SUM(n)", "SUM(n % 2)", "n / SUM(n)", "n > AVG(n)", "n IN (1, 2) AND n > AVG(n)", "COUNT(*)", "COUNT(DISTINCT n)", "COALESCE(MAX(n), 0)",
    "FIRST(n)", "MEDIAN(x)", "ARRAY_AGG(n)", "UNNEST(l)", "SUM(n) OVER (PARTITION BY id)", "ROW_NUMBER() OVER (ORDER BY n)",
]  # fmt: skip


@pytest.mark.parametrize("expression", OF_ONE_ROW, ids=str)
def test_expression_of_one_row_is_taken_and_does_not_depend_on_the_chunks(expression: Expression) -> None:
    expr = as_expr(expression)
    result_schema(SCHEMA, [expr], step="s.select")
    # Beside a column, as hidden ones always are: a literal has a value for every row.
    chunks = [ROWS[:1], ROWS[1:2], ROWS[2:]]
    single = [chunk.select(expr.name.suffix("!"), "id") for chunk in chunks]
    assert_frame_equal(pl.concat(single), ROWS.select(expr.name.suffix("!"), "id"))


@pytest.mark.parametrize("expression", OF_OTHER_ROWS, ids=str)
def test_expression_that_looks_at_other_rows_is_refused(expression: Expression) -> None:
    with pytest.raises(
        DefinitionError, match=r"one value per row, from that row alone; got .* in `s.select`"
    ) as caught:
        result_schema(SCHEMA, [as_expr(expression)], step="s.select")
    assert caught.value.code == "EXPRESSION_NOT_A_ROW_VALUE"


def test_expression_of_a_thousand_terms_is_taken() -> None:
    # Python's own JSON gives up on a thousand terms in one another; Polars takes seconds for two thousand.
    terms = functools.reduce(operator.or_, [n == number for number in range(1_100)])
    assert result_schema(SCHEMA, [terms], step="s.select") == {"n": pl.Boolean()}


def test_aggregate_among_two_thousand_terms_is_refused() -> None:
    terms = functools.reduce(operator.or_, [n.sum() == 0, *(n == number for number in range(2_000))])
    with pytest.raises(DefinitionError, match="one value per row"):
        result_schema(SCHEMA, [terms], step="s.select")


def test_function_that_spark_could_not_send_is_refused() -> None:
    lock = threading.Lock()
    held = n.map_batches(lambda values: values * lock.locked())
    with pytest.raises(DefinitionError, match=r"cannot pickle '_thread.lock' object") as caught:
        result_schema(SCHEMA, [held], step="s.select")
    assert caught.value.code == "EXPRESSION_NOT_PORTABLE"


def test_function_in_an_expression_travels_as_the_plan_does() -> None:
    held = 3
    expr = n.map_batches(lambda values: values * held, return_dtype=pl.Int64)
    sent = cloudpickle.dumps(expr)  # type: ignore[no-untyped-call]  # has no types
    assert ROWS.select(cloudpickle.loads(sent))["n"].to_list() == [15, None, 3]


def test_rows_keep_their_number_when_only_a_literal_is_selected() -> None:
    stream = sw.stream("s", sw.testing.rows_source("id long"))
    ones = stream.select(one=pl.lit(1))
    pipeline = sw.Pipeline("p", ones.to(sw.sinks.memory()), stream.dead_letters.drop())
    rows: list[dict[str, Any]] = [{"id": 1}, {"id": 2}]
    assert sw.testing.run(pipeline, {"s": rows})[ones].to_dicts() == [{"one": 1}, {"one": 1}]


def test_filter_of_a_list_is_an_aggregate_s_input_too() -> None:
    stream = sw.stream("s", sw.testing.rows_source("k string, ts long, l array<bigint>")).event_time("ts")
    results = (
        stream.key_by("k").window(sw.tumbling("1m")).aggregate(n=sw.sum(l.list.filter(pl.element() > 1).list.sum()))
    )
    pipeline = sw.Pipeline("p", results.to(sw.sinks.memory()), results.late.drop(), stream.dead_letters.drop())
    rows: list[dict[str, Any]] = [{"k": "a", "ts": 0, "l": [1, 2, 3]}]
    assert sw.testing.run(pipeline, {"s": rows})[results]["n"].to_list() == [5]


@pytest.mark.parametrize(
    "expression",
    ["DATE(day)", pl.col("day").str.to_date(), pl.col("day").str.to_datetime(strict=False).dt.hour() + 1],
    ids=str,
)
def test_times_in_text_need_a_format(expression: Expression) -> None:
    with pytest.raises(DefinitionError, match="times in text need a format") as caught:
        result_schema(SCHEMA, [as_expr(expression)], step="s.select")
    assert caught.value.code == "EXPRESSION_FORMAT"


@pytest.mark.parametrize("text", ["t > now()", "cast(t as date) = CURRENT_DATE", "coalesce(t, localtimestamp)"])
def test_clock_in_sql_is_refused(text: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        as_expr(text)
    assert caught.value.code == "EXPRESSION_CLOCK"


@pytest.mark.parametrize("text", ["now > 1", "s = 'now()'", '"current_date" = 1', "nowhere(1) = 1"])
def test_what_only_looks_like_the_clock_is_not_refused_for_it(text: str) -> None:
    try:
        as_expr(text)
    except DefinitionError as error:
        assert error.code == "EXPRESSION_SQL"  # noqa: PT017  a function that there is not
