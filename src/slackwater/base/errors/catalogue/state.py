"""Errors of deduplication and of user state, sorted by code."""

from __future__ import annotations

from typing import Final

MESSAGES: Final[dict[str, str]] = {
    "CHAIN_RETRACTIONS": (
        "a chained step must not count a row that is withdrawn; got step `{step}` on the results of `{before}`, which "
        'retracts rows; keep "first" or "first_by_time" instead, or send its results straight to a sink'
    ),
    "DEDUPLICATE_KEEP": (
        '`keep` must be "first", "first_by_time" or "last_by_time"; got {got} in step `{step}`; omit it to keep the '
        "first row to arrive"
    ),
    "DEDUPLICATE_LATE": (
        '`late` must be "output" or "process"; got {got} in step `{step}`; omit it to send rows behind the watermark '
        "to the late output"
    ),
    "DEDUPLICATE_WITHIN": (
        '`deduplicate` must know how long to remember a key; got no `within` in step `{step}`; add within="24h", or '
        "within=sw.FOREVER if a duplicate may arrive at any time"
    ),
    "NOT_A_PROCESS": (
        "`process` takes an instance of a subclass of sw.Process or sw.FrameProcess; got {got} in step `{step}`; "
        "write, for example, .process(FraudDetector(), output=...)"
    ),
    "PROCESS_ADDED_COLUMN": (
        "`adds` takes columns that the events do not have; got `{column}`, which the events of step `{step}` have; "
        "rename it, or declare all columns with `output`"
    ),
    "PROCESS_ASYNC": (
        "the methods of a process must be synchronous; got async def {name} in class {cls}; write {wanted}, and query "
        "other systems with a lookup"
    ),
    "PROCESS_CLASS": (
        "`process` takes an instance, not a class; got the class {cls} in step `{step}`; write .process({cls}(), ...)"
    ),
    "PROCESS_OF_FRAMES": (
        "a FrameProcess has one method on_rows, one `state` and no timers or further outputs; class {cls} has "
        "`{name}`; remove it, or derive the class from sw.Process"
    ),
    "PROCESS_ON_EVENT": (
        "a process must define how it handles an event; class {cls} has no method on_event; add def on_event(self, "
        "event, ctx)"
    ),
    "PROCESS_ON_ROWS": (
        "a FrameProcess must define how it handles rows; class {cls} has no method on_rows; add def on_rows(self, "
        "rows, state, ctx)"
    ),
    "PROCESS_ORDER": (
        '`order` must be "arrival" or "event_time"; got {got} in step `{step}`; omit it to process events as they '
        "arrive"
    ),
    "PROCESS_OUTPUT": (
        "`process` must know the columns of its results; got no `output` in step `{step}`; add "
        'output="card string, reason string", or adds="reason string" for the event with more columns'
    ),
    "PROCESS_OUTPUT_COLUMN": (
        "`{column}` is added by the step; the output or the key of step `{step}` already has a column of that name; "
        "rename it"
    ),
    "PROCESS_OUTPUT_TWICE": (
        "the results of `process` have the columns of `output`, or those of the event and `adds`; got both in step "
        "`{step}`; remove one"
    ),
    "PROCESS_PARAMETERS": (
        "a method of a process must take what it is called with; got {got} in class {cls}; write {wanted}"
    ),
    "PROCESS_ROWS_COLUMN": (
        "`event_time` is added for a FrameProcess; the rows of step `{step}` already have a column of that name; "
        "rename it with .select or .with_columns before key_by"
    ),
    "PROCESS_SIDE_NAME": (
        "a declared output must not have a name that every step may use; got `{name}` in class {cls}; choose another "
        "name, such as alerts"
    ),
    "PROCESS_STATE": (
        "a FrameProcess must declare the columns of its state; class {cls} has no `state`; add, for example, state = "
        '"total double, seen long"'
    ),
    "PROCESS_STATE_COLUMN": (
        "state has the columns of the key in addition to its own; got `{column}` in both, in step `{step}`; choose "
        "another name for the column of the state"
    ),
    "RETRACTION_COLUMN_TAKEN": (
        "`is_retraction` is added by a step that retracts; the rows of step `{step}` already have a column of that "
        "name; rename it with .select or .with_columns before key_by"
    ),
    "SINK_KEY_RETRACTED": (
        "a table must have a row for each key, or the retraction of one would remove the row of another; `{output}` "
        "also retracts by {missing}, and {sink} has one row for each {key}; add {missing} to the key of the table"
    ),
    "STATE_CLOCK": ('`clock` must be "event" or "processing"; got {got} in {call}; omit it to forget by the watermark'),
    "STATE_KEY_TYPE": (
        "the elements of a set and the keys of a map must be plain values; got {dtype} in {call}; use a number, a "
        "string or a time"
    ),
    "STATE_ON_OBJECT": (
        "state and outputs are declared on the class, where the step finds them; got self.{name} = ... in an object of "
        "{cls}; move `{name} = ...` from __init__ to the body of the class"
    ),
    "STATE_OVERWRITTEN": (
        "declared state belongs to the class; an instance of {cls} has its own attribute `{name}`; do not assign it, "
        "call self.{name}.set(...) in on_event"
    ),
    "STATE_TTL": (
        'state needs a time to live after its last write; got no `ttl` in {call}; add ttl="24h", or ttl=sw.FOREVER to '
        "keep it for every key that ever appears"
    ),
    "STATE_TYPE": (
        "state must have a type that can be stored; got {got} in {call}; use a Polars type such as pl.Float64, or a "
        'Spark type name such as "double"'
    ),
    "STATE_UNBOUND": (
        "state belongs to a key, and can be used in on_event and on_timer only; got a use of {name} outside of them, "
        "such as in __init__; move it to on_event, where a value that was never set reads as None"
    ),
}
