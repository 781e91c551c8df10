"""What errors and notices of windows, triggers and aggregates say, by code, sorted."""

from __future__ import annotations

from typing import Final

MESSAGES: Final[dict[str, str]] = {
    "ACCUMULATOR_CLASS": (
        "an accumulator must be a class derived from `Accumulator`; got {got}; write `class "
        "Mine(sw.Accumulator)` and pass `Mine` itself"
    ),
    "ACCUMULATOR_FAILED": (
        "method `{method}` of accumulator class {cls} failed{where}; got {cause}; correct the method and "
        "start again, the state before this batch is unharmed"
    ),
    "ACCUMULATOR_METHODS": (
        "an accumulator class must define create, add, merge and result; {cls} lacks {missing}; add what is missing"
    ),
    "ACCUMULATOR_OUTPUT": (
        "an accumulator class must say its result's type; {cls} has `output` = {got}; write for "
        'example output = pl.Float64 or output = "double"'
    ),
    "AGGREGATE_DDOF": (
        "`ddof` of {aggregate} must be a whole number of 0 or more; got {got}; use 1 for a sample, 0 for all there is"
    ),
    "AGGREGATE_INPUT_NOT_A_ROW_VALUE": (
        "an aggregate's input must be computed from one row alone; got {got} in {aggregate}; compute "
        "it from the row's columns, and leave summing to the aggregate"
    ),
    "AGGREGATE_INPUT_TYPE": "{aggregate} needs {wants}; got {got}; choose another column or cast it",
    "APPROX_DISTINCT_K": (
        "`k` of approx_distinct must be a whole number of {least} or more; got {got}; 4096 gives a "
        "standard error of 1.6 %"
    ),
    "CALENDAR_OPTION": (
        "`{what}` of a calendar window must be one of {known}; got {got}; write for example "
        'sw.calendar("month", zone="Europe/Berlin")'
    ),
    "CALENDAR_ZONE": (
        "a calendar window needs a time zone of the IANA database; got {got}{hint}; write for example "
        'zone="Europe/Berlin" or zone="UTC"'
    ),
    "CUMULATIVE_UNEVEN": (
        "a cumulative window's `size` must be a multiple of `every`; got size {size}, every {every}; "
        'choose for example every="1h" in size "1d"'
    ),
    "QUANTILES_EMPTY": "{aggregate} takes a list of one or more quantiles; got {got}; try [0.5, 0.95]",
    "QUANTILE_ERROR": (
        "`relative_error` of a quantile must be at least {least} and below 1; got {got}; 0.01 means one percent"
    ),
    "QUANTILE_RANGE": (
        "a quantile must be a number from 0 to 1; got {got} in {aggregate}; 0.95 is the 95th percentile"
    ),
    "SEMANTICS_CHOICE": '`{name}` of sw.Semantics is {known}; got {got}; leave it out for "{usual}"',
    "SESSION_MAX_LENGTH": (
        'a session\'s `max_length` must not be shorter than its gap; got {got} with gap {gap}; try max_length="24h"'
    ),
    "SESSION_TOUCHING": '`touching` must be "merge" or "separate"; got {got}; leave it out for "merge"',
    "SUM_OVERFLOW": (
        "a sum must fit its type {dtype}; got {got} for `{alias}` = {aggregate}{where}; sum a cast of the "
        "column, to decimal or double, instead"
    ),
    "TOP_N": ('`n` of top must be a whole number of 1 or more; got {got}; top(10, by="amount") keeps ten rows'),
    "TRIGGER_ANY_OF": (
        "`any_of` takes two or more of after_count(n), every and every_event_time, each kind once; "
        "got {got}; name two that differ"
    ),
    "TRIGGER_COUNT": (
        "`after_count` takes a whole number of 1 or more; got {got}; after_count(1) fires with every "
        "batch that has rows"
    ),
    "TRIGGER_EARLY": (
        "`early` takes after_count(n), every, every_event_time, any_of or never; got {got}; leave it "
        "out for no early panes"
    ),
    "TRIGGER_LATE": (
        "`late` takes after_count(n), never() or None; got {got}; leave it out for a pane with every late row"
    ),
    "WINDOW_OFFSET": (
        "a {kind} window's `offset` must be smaller than its `{period}` ({length}); got {got}; take the remainder"
    ),
    "WINDOW_OVERLAP": (
        "an event may fall into {most} windows at most; got a {kind} window that puts each event into "
        "{got}; choose a longer `every` or a shorter size, or sw.sliding for one result per event"
    ),
}
