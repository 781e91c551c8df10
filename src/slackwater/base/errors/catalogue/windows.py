"""Errors of windows, triggers and aggregates, sorted by code."""

from __future__ import annotations

from typing import Final

MESSAGES: Final[dict[str, str]] = {
    "ACCUMULATOR_CLASS": (
        "an accumulator must be a subclass of `Accumulator`; got {got}; write `class Mine(sw.Accumulator)` and pass "
        "`Mine` itself"
    ),
    "ACCUMULATOR_FAILED": (
        "method `{method}` of accumulator class {cls} failed{where}; got {cause}; correct the method and restart: "
        "the state before this batch is intact"
    ),
    "ACCUMULATOR_METHODS": (
        "an accumulator class must define create, add, merge and result; {cls} lacks {missing}; add the missing methods"
    ),
    "ACCUMULATOR_OUTPUT": (
        "an accumulator class must declare the type of its result; {cls} has `output` = {got}; write, for example, "
        'output = pl.Float64 or output = "double"'
    ),
    "AGGREGATE_DDOF": (
        "`ddof` of {aggregate} must be a non-negative integer; got {got}; use 1 for a sample, 0 for the population"
    ),
    "AGGREGATE_INPUT_NOT_A_ROW_VALUE": (
        "the input of an aggregate must be computed from one row alone; got {got} in {aggregate}; compute it from "
        "the row's columns, and leave the aggregation to the aggregate"
    ),
    "AGGREGATE_INPUT_TYPE": "{aggregate} needs {wants}; got {got}; choose another column or cast it",
    "AGGREGATE_METHOD": (
        "`{method}` of an aggregate must return {wants}; {aggregate} as `{alias}` in step `{step}` does not: {cause}; "
        "correct the class"
    ),
    "AGGREGATE_RESULT": (
        "`finish` must return the rows it got, in the same order, with their results in column `{alias}` as {dtype}; "
        "{aggregate} returned {got}; correct `finish`, or the type that `output_type` returns"
    ),
    "APPROX_DISTINCT_K": (
        "`k` of approx_distinct must be an integer of at least {least}; got {got}; 4096 gives a standard error of 1.6 %"
    ),
    "CALENDAR_OPTION": (
        "`{what}` of a calendar window must be one of {known}; got {got}; write, for example, {example}"
    ),
    "CALENDAR_WEEK_START": '`week_start` applies only to unit "week"; got {got} with unit "{unit}"; remove it',
    "CALENDAR_ZONE": "a calendar window needs a time zone of the IANA database; got {got}{hint}; {advice}",
    "COUNT_WINDOW_NAME": (
        "`{name}` is added by a count window; a key or an aggregate of step `{step}` already has that name; choose "
        "another name"
    ),
    "COUNT_WINDOW_OPTIONS": (
        "a count window fires once, when it is full, and no row is late for it; got {got}; remove it"
    ),
    "COUNT_WINDOW_SIZE": (
        "`{what}` of a count window must be a positive integer; got {got}; count_window(100) is a window of a hundred "
        "rows"
    ),
    "CUMULATIVE_UNEVEN": (
        "`size` of a cumulative window must be a multiple of `every`; got size {size}, every {every}; choose, for "
        'example, every="1h" with size "1d"'
    ),
    "QUANTILES_EMPTY": "{aggregate} takes a list of one or more quantiles; got {got}; try [0.5, 0.95]",
    "QUANTILE_ERROR": (
        "`relative_error` of a quantile must be at least {least} and below 1; got {got}; 0.01 means one percent"
    ),
    "QUANTILE_RANGE": "a quantile must be a number from 0 to 1; got {got} in {aggregate}; {advice}",
    "SEMANTICS_CHOICE": '`{name}` of sw.Semantics must be {known}; got {got}; omit it to use "{usual}"',
    "SESSION_MAX_LENGTH": (
        '`max_length` of a session must not be shorter than its gap; got {got} with gap {gap}; try max_length="24h"'
    ),
    "SESSION_TOUCHING": '`touching` must be "merge" or "separate"; got {got}; omit it to use "merge"',
    "SINK_SESSION_KEY": (
        "a session is identified by its start and its end, because a new session can begin where an old one began; "
        "output `{output}` goes to {sink}, which replaces rows by {key}; use both `window_start` and `window_end`, or "
        "neither if each key should keep its newest session"
    ),
    "SUM_OVERFLOW": (
        "a sum must fit its type {dtype}; got {got} for `{alias}` = {aggregate}{where}; cast the column to decimal "
        "or double before summing it"
    ),
    "TOP_N": '`n` of top must be a positive integer; got {got}; top(10, by="amount") keeps ten rows',
    "TRIGGER_ANY_OF": (
        "`any_of` takes two or more of after_count(n), every and every_event_time, each at most once; got {got}; "
        "give two different ones"
    ),
    "TRIGGER_COUNT": (
        "`after_count` takes a positive integer; got {got}; after_count(1) fires with every batch that has rows"
    ),
    "TRIGGER_EARLY": (
        "`early` takes after_count(n), every, every_event_time, any_of or never; got {got}; omit it for no early panes"
    ),
    "TRIGGER_LATE": (
        "`late` takes after_count(n), never() or None; got {got}; omit it to emit a pane for every late row"
    ),
    "WINDOW_BOUNDS": (
        "`bounds` of a window kind must return two expressions, a start and an end in epoch milliseconds, of windows "
        "that contain their events and do not overlap; {kind} in step `{step}` does not: {cause}; correct the class"
    ),
    "WINDOW_BOUNDS_ROW": (
        "a window must contain its event; {finding}; correct `bounds`, or filter such rows before the window"
    ),
    "WINDOW_OVERLAPS": (
        "every event of a window must get the same window; {finding}; correct `bounds` so that windows do not overlap"
    ),
    "WINDOW_MISSING": (
        "`aggregate` computes one result per key and window; got the keyed stream `{stream}`, which has no windows; "
        'add .window(...) before it, for example .window(sw.tumbling("1m"))'
    ),
    "WINDOW_OFFSET": (
        "`offset` of a {kind} window must be smaller than its `{period}` ({length}); got {got}; use the remainder"
    ),
    "WINDOW_OVERLAP": (
        "an event may fall into at most {most} windows; got a {kind} window that puts each event into {got}; choose "
        "a longer `every` or a shorter size, or sw.sliding for one result per event"
    ),
}
