"""Bad definitions of joins, and of steps that need a key."""

# ruff: noqa: E501  one definition a line, with its code and words

from __future__ import annotations

from functools import partial
from typing import Any

import polars as pl

from tests.plan.bad_definition import Bad, built, purchases, sw, windowed

REFUNDS = "user_id string, refunded double, at timestamp"


def refunds(ddl: str = REFUNDS) -> Any:  # noqa: ANN401
    """Return a second stream, to join purchases with."""
    return sw.stream("refunds", sw.testing.rows_source(ddl)).event_time("at")


def unkeyed(method: str) -> Any:  # noqa: ANN401
    """Ask a stream without a key for what only keyed streams have."""
    return getattr(purchases(), method)(None)


def joined(other: Any = None, **options: Any) -> Any:  # noqa: ANN401
    """Build a pipeline of purchases joined with refunds."""
    other = refunds().key_by("user_id") if other is None else other
    results = purchases().key_by("user_id").join(other, **{"between": ("0s", "1d"), **options})
    return built(results, *([other.stream.dead_letters.drop()] if other.stream.name == "refunds" else []))


def windows_attached() -> Any:  # noqa: ANN401
    """Attach windows, which end after their rows."""
    rows = purchases()
    return rows.attach(rows.key_by("user_id").window(sw.tumbling("1m")).aggregate(n=sw.count()), on="user_id")


def attached_twice(**options: Any) -> Any:  # noqa: ANN401
    """Attach the larger purchases to all of them."""
    rows = purchases()
    return rows.attach(rows.where("amount > 1"), **options)


def as_of(**options: Any) -> Any:  # noqa: ANN401
    """Build a pipeline of purchases joined with the refund before each."""
    other = refunds()
    options = {"versions_ttl": sw.FOREVER, **options}
    return built(
        purchases().key_by("user_id").join_as_of(other.key_by("user_id"), **options), other.dead_letters.drop()
    )


def windows_joined(
    window: Any = None,  # noqa: ANN401  as above
    other: Any = None,  # noqa: ANN401
    *,
    how: str = "inner",
    theirs: Any = None,  # noqa: ANN401
    **options: Any,  # noqa: ANN401
) -> Any:  # noqa: ANN401
    """Build a pipeline of purchases and refunds in windows."""
    window = sw.tumbling("1m") if window is None else window
    right = (
        refunds()
        .key_by("user_id")
        .window(window if other is None else other, **(options if theirs is None else theirs))
    )
    return built(windowed(window, **options).join(right, how=how), right.keyed.stream.dead_letters.drop())


JOINS = [
    Bad("rows of another stream attached", "ATTACH_TIMES", "got `purchases`, with the times of purchases, and `refunds`, with those of refunds; use .key_by(...).join", lambda: purchases().attach(refunds(), on="user_id")),
    Bad("windows attached to their rows", "ATTACH_TIMES", "and `purchases.window`, with those of purchases.window", windows_attached),
    Bad("a keyed stream attached", "JOIN_OTHER", "must be a stream; got refunds.key_by(...) for stream `purchases`; remove .key_by(...): `on` is the key", lambda: purchases().attach(refunds().key_by("user_id"), on="user_id")),
    Bad("a name attached", "JOIN_OTHER", "got 'refunds' for stream `purchases`; pass the stream itself", lambda: purchases().attach("refunds", on="user_id")),
    *(Bad(f"rows attached on a {type(on).__name__}", "ATTACH_ON", f"got {on!r} on stream `purchases`; if the names differ, rename one first", partial(attached_twice, on=on)) for on in (None, {"user_id": "id"}, {"user_id"}, pl.col("user_id"))),
    Bad("rows attached on a list of no names", "KEY_COLUMNS", "got [None] on stream `purchases`", lambda: attached_twice(on=[None])),
    Bad("rows attached on nothing", "KEY_COLUMNS", "got [] on stream `purchases`", lambda: attached_twice(on=[])),
    Bad("rows attached on a column that is not there", "UNKNOWN_COLUMN", "`usr`", lambda: built(attached_twice(on="usr"))),
    Bad("no bounds", "JOIN_BETWEEN", "`between` takes a lower and an upper bound on how much later the other row may be; got None", lambda: joined(between=None)),
    Bad("no word of bounds", "JOIN_BETWEEN", "got None; write, for example", lambda: purchases().key_by("user_id").join(refunds().key_by("user_id"))),
    *(Bad(f"{method} of a stream without a key", "KEY_MISSING", f"`{method}` works on the rows of each key; got stream `purchases`, which has no key; add .key_by(...) before it", partial(unkeyed, method)) for method in ("window", "match", "deduplicate", "join", "join_as_of", "process")),
    Bad("aggregates of a stream without a key", "KEY_MISSING", "add .key_by(...).window(...) before it", lambda: purchases().aggregate(n=sw.count())),
    Bad("aggregates of results without a key", "KEY_MISSING", "got stream `purchases.window`", lambda: windowed().aggregate(n=sw.count()).aggregate(n=sw.count())),
    Bad("aggregates without windows", "WINDOW_MISSING", "got the keyed stream `purchases`, which has no windows; add .window(...)", lambda: purchases().key_by("user_id").aggregate(n=sw.count())),
    Bad("one bound", "JOIN_BETWEEN", "got ('1h',)", lambda: joined(between=("1h",))),
    Bad("a bound left out", "JOIN_BETWEEN", "got ('0s', None); write, for example", lambda: joined(between=("0s", None))),
    Bad("a bound that is a word", "DURATION_UNREADABLE", "a bound of `between`", lambda: joined(between=("0s", "soon"))),
    Bad("bounds the wrong way round", "JOIN_BETWEEN_ORDER", "got 1h and -5m; write the earlier one first", lambda: joined(between=("1h", "-5m"))),
    Bad("an unknown kind of join", "JOIN_HOW", 'must be one of "inner", "left", "right", "full"; got \'outer\'', lambda: joined(how="outer")),
    Bad("another way with late rows", "JOIN_LATE", 'must be "output" or "process"; got \'keep\'', lambda: joined(late="keep")),
    Bad("one suffix", "JOIN_SUFFIXES", "got '_right'", lambda: joined(suffixes="_right")),
    Bad("a join with a stream that has no key", "JOIN_OTHER", "got refunds for stream `purchases`; add .key_by(...)", lambda: purchases().key_by("user_id").join(refunds(), between=("0s", "1d"))),
    Bad("keys of different number", "JOIN_KEYS_NUMBER", "has user_id on the left and user_id, refunded on the right", lambda: joined(refunds().key_by("user_id", "refunded"))),
    Bad("keys of different types", "JOIN_KEY_TYPES", "has user_id String on the left and refunded Float64 on the right", lambda: joined(refunds().key_by("refunded"))),
    Bad("columns of two sides that differ in case", "DUPLICATE_COLUMN", "got `Amount` after `amount` in the rows of step `purchases.join`", lambda: joined(refunds("user_id string, Amount double, at timestamp").key_by("user_id"))),
    Bad("names that are equal with their suffixes", "JOIN_NAMES_COLLIDE", "got amount twice in step `purchases.join`", lambda: joined(refunds("user_id string, amount double, at timestamp").key_by("user_id"), suffixes=("", ""))),
    Bad("a suffix that makes the name of another column", "JOIN_NAMES_COLLIDE", "got amount_right twice", lambda: joined(refunds("user_id string, amount double, amount_right long, at timestamp").key_by("user_id"))),
    Bad("late rows with one name for two columns", "JOIN_NAMES_COLLIDE", "got amount_right twice", lambda: joined(refunds("user_id string, amount long, amount_right long, at timestamp").key_by("user_id"), suffixes=("_left", "_right"))),
    Bad("a column with the name of the result's time", "JOIN_COLUMN_TAKEN", "`event_time` is added by the join; the right rows of step `purchases.join` already have a column of that name", lambda: joined(refunds("user_id string, event_time long, at timestamp").key_by("user_id"), late="process")),
    Bad("a column with the name of a late row's side", "LATE_COLUMN_TAKEN", "late rows get the additional columns event_time, late_by_ms, watermark, side and step; the rows of step `purchases.join` already have a column `side`", lambda: joined(refunds("user_id string, side string, at timestamp").key_by("user_id"))),
    Bad("a condition on a column that is not there", "JOIN_ON_MATCH", "got right.amuont < left.amount in step `purchases.join`, where the right rows have no column `amuont`; correct it", lambda: joined(on_match="right.amuont < left.amount")),
    Bad("a condition on a column with a slip", "JOIN_ON_MATCH", "where the right rows have no column `refundd` (did you mean `refunded`?); correct it", lambda: joined(on_match="cast(right.refundd as long) < left.amount")),
    Bad("a condition that never holds", "JOIN_ON_MATCH", "got false in step `purchases.join`, where no pair meets it; correct it", lambda: joined(on_match="false")),
    Bad("a condition over an aggregate", "JOIN_ON_MATCH", "got sum(right.refunded) > 3 in step `purchases.join`, where the value may depend on other pairs; correct it", lambda: joined(on_match="sum(right.refunded) > 3")),
    Bad("a condition of types that do not compare", "JOIN_ON_MATCH", "got right.user_id > left.amount in step `purchases.join`, where the types do not fit: cannot compare string with numeric type (f64); correct it", lambda: joined(on_match="right.user_id > left.amount")),
    Bad("a condition that does not say of which side", "JOIN_ON_MATCH", "read columns as left.name and right.name; got amount > 1", lambda: joined(on_match="amount > 1")),
    Bad("a condition that is a number", "JOIN_ON_MATCH", "got right.refunded - left.amount", lambda: joined(on_match="right.refunded - left.amount")),
    Bad("a condition over all pairs", "JOIN_ON_MATCH", "for each pair", lambda: joined(on_match=pl.col("left").struct["amount"].max() > 1)),
    Bad("versions that last for no stated time", "JOIN_VERSIONS_TTL", 'write, for example, versions_ttl="30d"', lambda: as_of(versions_ttl=None)),
    Bad("versions that last for no time", "DURATION_TOO_SHORT", "`versions_ttl` must be longer than zero", lambda: as_of(versions_ttl="0s")),
    Bad("an as-of join that keeps versions without rows", "JOIN_HOW", 'must be one of "inner", "left"; got \'full\'', lambda: as_of(how="full")),
    Bad("a mark of deleted versions that is no truth value", "PREDICATE_TYPE", "in `purchases.join, deleted`", lambda: as_of(deleted="refunded")),
    Bad("a mark of deleted versions that is no column", "UNKNOWN_COLUMN", "in `purchases.join, deleted`; ", lambda: as_of(deleted="amount > 1")),
    Bad("a window join with a stream that has no windows", "JOIN_OTHER", "must be a windowed stream; got refunds", lambda: windowed().join(refunds())),
    Bad("a window join with a stream that is only keyed", "JOIN_OTHER", "got refunds.key_by(...) for stream `purchases`; add .window(...) to it too", lambda: windowed().join(refunds().key_by("user_id"))),
    Bad("an interval join with windows", "JOIN_OTHER", "must be a keyed stream; got purchases.key_by(...).window(...) for stream `refunds`; remove .window(...); a join of windows has it on both sides", lambda: refunds().key_by("user_id").join(windowed(), between=("0s", "1d"))),
    Bad("a window join of different windows", "JOIN_WINDOWS_DIFFER", "got tumbling 1m, allowed lateness 0s on the left and tumbling 2m, allowed lateness 0s on the right", lambda: windows_joined(other=sw.tumbling("2m"))),
    Bad("a window join of different lateness", "JOIN_WINDOWS_DIFFER", "and tumbling 1m, allowed lateness 5m on the right", lambda: windows_joined(theirs={"allowed_lateness": "5m"})),
    Bad("a window join of sessions", "JOIN_WINDOW_KIND", "got session gap 1m", lambda: windows_joined(sw.session("1m"))),
    Bad("a window join of sliding windows", "JOIN_WINDOW_KIND", "or .join(other, between=...) for rows near each other", lambda: windows_joined(sw.sliding("1m"))),
    Bad("an outer window join that is corrected", "JOIN_WINDOW_LATENESS", 'got how="left" with allowed lateness 5m; use how="inner"', lambda: windows_joined(how="left", allowed_lateness="5m")),
    Bad("a window join with a trigger", "JOIN_WINDOW_OPTIONS", "for the windows of `purchases`; remove them", lambda: windows_joined(trigger=sw.after_count(2))),
    Bad("an unknown kind of window join", "JOIN_HOW", "got 'outer'", lambda: windows_joined(how="outer")),
    Bad("late rows of a join that processes them", "LATE_NEVER", "got `.late`; remove it", lambda: joined(late="process")),
    Bad("a join with results that are shown twice", "CHAIN_UPDATES", "got step `purchases.join` on the results of `refunds.window`", lambda: joined(refunds().key_by("user_id").window(sw.tumbling("1m"), allowed_lateness="1m").aggregate(n=sw.count()).key_by("user_id"))),
]  # fmt: skip
