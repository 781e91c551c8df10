"""Bad definitions of streams, and of what is done with each row."""

# ruff: noqa: E501  one definition a line, with its code and words

from __future__ import annotations

import sys
import threading
from typing import Any

import polars as pl
import polars.selectors as cs

from tests.plan.bad_definition import DDL, Bad, built, purchases, records, sw, windowed

LOCKED: Any = threading.Lock().acquire


def broken(frame: pl.DataFrame) -> pl.DataFrame:
    """Fail on an empty frame."""
    return frame.with_columns(first=pl.lit(frame["amount"][0]))


ROWS = [
    Bad("a stream without a proper name", "BAD_NAME", "a stream name must consist of letters", lambda: sw.stream("my orders", sw.testing.rows_source(DDL))),
    Bad("a pipeline without a name", "BAD_NAME", "a pipeline name", lambda: sw.Pipeline("", purchases().to(sw.sinks.memory()))),
    Bad("a step with a slash in its name", "BAD_NAME", "a step name", lambda: windowed(name="a/b")),
    Bad("two streams of one name", "STREAM_NAME_TWICE", "got `purchases` for two sources", lambda: sw.Pipeline("p", purchases().to(sw.sinks.memory()), purchases().to(sw.sinks.memory()))),
    Bad("bytes used without decoding", "DECODE_MISSING", "got stream `purchases` without", lambda: built(records().event_time("placed_at"))),
    Bad("bytes sent to a sink", "DECODE_MISSING", ".decode(sw.formats.json(", lambda: built(records())),
    Bad("rows decoded twice", "DECODE_TYPED", "got `purchases.decode` on typed rows", lambda: built(purchases().decode(sw.formats.json(DDL)))),
    Bad("a column that does not exist", "UNKNOWN_COLUMN", "got `weight` in `purchases.where`; the rows there have user_id, amount", lambda: built(purchases().where("weight > 1"))),
    Bad("a column with a typing error", "UNKNOWN_COLUMN", "got `amuont` in `purchases.where` (did you mean `amount`?)", lambda: built(purchases().where("amuont > 1"))),
    Bad("a key that does not exist", "UNKNOWN_COLUMN", "(did you mean `user_id`?)", lambda: built(purchases().key_by("userid").window(sw.tumbling("1m")).aggregate(n=sw.count()))),
    Bad("a new column that differs in case", "DUPLICATE_COLUMN", "got `Amount` after `amount` in `purchases.with_columns`; rename", lambda: built(purchases().with_columns(Amount="amount * 2"))),
    Bad("an aggregate of an unknown column", "UNKNOWN_COLUMN", "in `purchases.window, aggregate total`", lambda: built(windowed().aggregate(total=sw.sum("amounts")))),
    Bad("an expression that is a number", "EXPRESSION_KIND", "got 3", lambda: purchases().where(3)),
    Bad("SQL with a function that there is not", "EXPRESSION_SQL", "use a function that Polars SQL supports", lambda: purchases().where("nosuch(amount) > 1")),
    Bad("SQL that cannot be read", "EXPRESSION_SQL", "check quotes", lambda: purchases().where("amount > ")),
    Bad("an expression of the wrong types", "EXPRESSION_TYPE", "in `purchases.with_columns`", lambda: built(purchases().with_columns(x=pl.col("user_id").dt.hour()))),
    Bad("a condition that is no truth value", "PREDICATE_TYPE", "of type Float64 in `purchases.where`", lambda: built(purchases().where("amount"))),
    Bad("a rule that is no truth value", "PREDICATE_TYPE", "in `purchases.validate, rule paid`", lambda: built(purchases().validate(paid="amount"))),
    Bad("a column with a hidden name", "RESERVED_COLUMN", "got `__mine`", lambda: built(purchases().with_columns(__mine="amount"))),
    Bad("no rule to validate", "VALIDATE_EMPTY", "got none in `purchases.validate`", lambda: purchases().validate()),
    Bad("nothing to select", "STEP_WITHOUT_COLUMNS", "got none in `purchases.select`; name at least one", lambda: purchases().select()),
    Bad("no columns to add", "STEP_WITHOUT_COLUMNS", "got none in `purchases.with_columns`", lambda: purchases().with_columns()),
    Bad("a selector that selects nothing", "STEP_WITHOUT_COLUMNS", "got none in `purchases.select`", lambda: built(purchases().select(cs.binary()))),
    Bad("a map that leaves no column", "MAP_EMPTY", "got a frame without columns in `purchases.map`", lambda: built(purchases().map(lambda frame: frame.select(pl.col("^__.*$"))))),
    Bad("a source that is nothing", "NOT_A_SOURCE", "got None for stream `a`; use sw.sources.log(...)", lambda: sw.stream("a", None)),
    Bad("a source that is a path", "NOT_A_SOURCE", "got 'data/x'", lambda: sw.stream("a", "data/x")),
    Bad("a condition on all rows", "EXPRESSION_NOT_A_ROW_VALUE", 'got [(col("amount")) > (col("amount").mean())] in `purchases.where`, which may read other rows', lambda: built(purchases().where(pl.col("amount") > pl.col("amount").mean()))),
    Bad("a condition on all rows in SQL", "EXPRESSION_NOT_A_ROW_VALUE", "use an aggregate of a keyed step, or a `map` that handles each row on its own", lambda: built(purchases().where("amount > AVG(amount)"))),
    Bad("a column from all rows", "EXPRESSION_NOT_A_ROW_VALUE", 'col("amount").min())] in `purchases.with_columns`', lambda: built(purchases().with_columns(z=pl.col("amount") - pl.col("amount").min()))),
    Bad("a selected sum", "EXPRESSION_NOT_A_ROW_VALUE", 'got col("amount").sum() in `purchases.select`', lambda: built(purchases().select(total=pl.col("amount").sum()))),
    Bad("an event time from all rows", "EXPRESSION_NOT_A_ROW_VALUE", "in `purchases.event_time`", lambda: built(sw.stream("purchases", sw.testing.rows_source(DDL)).event_time(pl.col("placed_at").max()))),
    Bad("a rule about all rows", "EXPRESSION_NOT_A_ROW_VALUE", "in `purchases.validate, rule unique`", lambda: built(purchases().validate(unique=pl.col("user_id").is_unique()))),
    Bad("a gap from all rows", "EXPRESSION_NOT_A_ROW_VALUE", 'got col("amount").cast(Int64).max() in `purchases.window`', lambda: built(windowed(sw.session(pl.col("amount").cast(pl.Int64, strict=False).max())).aggregate(n=sw.count()))),
    Bad("a condition on results that looks at other results", "EXPRESSION_NOT_A_ROW_VALUE", "in `purchases.window.where`", lambda: built(windowed().aggregate(n=sw.count()).where("n = MAX(n)"))),
    Bad("a condition that holds a lock", "EXPRESSION_NOT_PORTABLE", "in `purchases.where`: TypeError: cannot pickle '_thread.lock' object; create locks", lambda: built(purchases().where(pl.col("amount").map_batches(LOCKED)))),
    Bad("a sum by a function that holds a lock", "EXPRESSION_NOT_PORTABLE", "in `sum(", lambda: built(windowed().aggregate(s=sw.sum(pl.col("amount").map_batches(LOCKED))))),
    Bad("a column selected twice", "EXPRESSION_NAME_TWICE", 'got col("amount"), col("amount") in `purchases.select`, which produces a name twice', lambda: built(purchases().select("amount", "amount"))),
    Bad("a name given twice", "EXPRESSION_NAME_TWICE", 'col("user_id").alias("amount") in `purchases.with_columns`', lambda: built(purchases().with_columns(pl.col("amount"), amount="user_id"))),
    Bad("a condition on two columns at once", "EXPRESSION_NOT_ONE_COLUMN", "in `purchases.where`, which produces 2; name a single column", lambda: built(purchases().where(pl.col("amount", "user_id").is_null()))),
    Bad("a sum of two columns at once", "EXPRESSION_NOT_ONE_COLUMN", "which produces 2", lambda: built(windowed().aggregate(s=sw.sum(pl.col("amount", "user_id"))))),
    Bad("a map that does not give what it declares", "MAP_RESULT", "got one without zz (it has user_id, amount, placed_at, tags) in `purchases.map`", lambda: built(purchases().map(lambda frame: frame, output="zz long"))),
    Bad("a map that gives nothing, with its columns declared", "MAP_RESULT", "got NoneType in `purchases.map`", lambda: built(purchases().map(lambda frame: None, output="zz long"))),
    Bad("a map that exits", "MAP_EMPTY", "got SystemExit: 3 in `purchases.map`", lambda: built(purchases().map(lambda frame: sys.exit(3)))),
    Bad("a map that makes objects", "OBJECT_COLUMN", "got `o` of type Object in `purchases.map`", lambda: built(purchases().map(lambda frame: frame.with_columns(pl.Series("o", [], dtype=pl.Object))))),
    Bad("map with something that is no function", "MAP_FUNCTION", "from a Polars frame to a Polars frame; got 'upper'", lambda: purchases().map("upper")),
    Bad("map with a function that needs rows", "MAP_EMPTY", "in `purchases.map`", lambda: built(purchases().map(broken))),
    Bad("map with a function that returns something else", "MAP_RESULT", "got LazyFrame in `purchases.map`", lambda: built(purchases().map(lambda frame: frame.lazy()))),
    Bad("no key", "KEY_COLUMNS", "got [] on stream `purchases`", lambda: purchases().key_by()),
    Bad("one key twice", "KEY_COLUMNS", "distinct column names", lambda: purchases().key_by("user_id", "user_id")),
    Bad("a key that is an expression", "KEY_COLUMNS", ".with_columns(name=...)", lambda: purchases().key_by(pl.col("user_id"))),
    Bad("a key that is a list", "KEY_TYPE", "got `tags` of type List", lambda: built(purchases().key_by("tags").window(sw.tumbling("1m")).aggregate(n=sw.count()))),
    Bad("a key with the name of a result column", "KEY_TYPE", "got `pane`", lambda: built(purchases().with_columns(pane="user_id").key_by("pane").window(sw.tumbling("1m")).aggregate(n=sw.count()))),
    Bad("a column with the name of a late column", "LATE_COLUMN_TAKEN", "the rows of step `purchases.window` already have a column `event_time`", lambda: built(purchases().with_columns(event_time="placed_at").key_by("user_id").window(sw.tumbling("1m")).aggregate(n=sw.count()))),
    Bad("a schema of an unknown type", "BAD_SCHEMA", "unknown type `strnig` of `a` (did you mean `string`?)", lambda: sw.formats.json("a strnig")),
    Bad("a schema without columns", "BAD_SCHEMA", "got no column", lambda: sw.formats.json({})),
    Bad("a schema with a column twice", "DUPLICATE_COLUMN", "got `A` after `a`", lambda: sw.formats.json("a string, A int")),
    Bad("a schema with a hidden name", "RESERVED_COLUMN", "got `__ts`", lambda: sw.formats.json("__ts long")),
    Bad("a format limit of zero", "FORMAT_LIMIT", "format option `max_depth`", lambda: sw.formats.json("a string", max_depth=0)),
]  # fmt: skip
