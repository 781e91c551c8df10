"""What errors and notices of streams, keys and pipelines say, by code, sorted."""

from __future__ import annotations

from typing import Final

MESSAGES: Final[dict[str, str]] = {
    "ACCUMULATION": (
        '`accumulation` must be "discarding", "accumulating" or "retracting"; got {got}; leave it out '
        'for "accumulating"'
    ),
    "AGGREGATE_EMPTY": (
        "`aggregate` needs at least one aggregate; got none in step `{step}`; write for example "
        ".aggregate(orders=sw.count())"
    ),
    "AGGREGATE_NAME_TAKEN": (
        "an aggregate's name must not be a key's or a result column's; got `{alias}` in step "
        "`{step}`; choose another name"
    ),
    "BAD_NAME": (
        "a {what} name must be made of letters, digits, `.`, `-` and `_`, and begin with a letter or "
        "digit; got {got}; it names files and state, so choose it to stay"
    ),
    "CHAIN_GLOBAL": (
        "a chained step needs results with an event time; got `{before}`, a global window, before "
        "step `{step}`; use a window with an end"
    ),
    "CHAIN_UPDATES": (
        "a chained step must not count a window twice; got step `{step}` on the results of "
        '`{before}`, which shows a window more than once; give `{before}` accumulation="discarding", '
        'or no early panes and allowed_lateness="0s"'
    ),
    "DEAD_LETTERS_UNHANDLED": (
        "the dead letters of a stream must go somewhere; got none for `{stream}`; add "
        "{stream}.dead_letters.to(sink), or say .dead_letters.drop() and they are only counted"
    ),
    "DECODE_MISSING": (
        "a source of bytes must be decoded before its rows are used; got stream `{stream}` without; "
        'add .decode(sw.formats.json("id string, ts timestamp"))'
    ),
    "DECODE_TYPED": ("only a source of bytes can be decoded, and once; got `{step}` on typed rows; leave it out"),
    "EVENT_TIME_MISSING": (
        "a keyed step needs to know its rows' time; got step `{step}` on stream `{stream}` without "
        'one; add .event_time("column"), or .ingestion_time() or .processing_time() if you mean them'
    ),
    "EVENT_TIME_TWICE": (
        "a stream has one time, one watermark; got a second one in `{stream}`; take the time once, "
        "before the stream branches"
    ),
    "EVENT_TIME_TYPE": (
        "an event time must be a timestamp, a date or a whole number of epoch milliseconds; got {got} "
        'of type {dtype} in `{step}`; convert it, for example with pl.from_epoch("ts", "s") or '
        "col.str.to_datetime()"
    ),
    "FOLDERS_NESTED": (
        "what a pipeline writes must lie apart from what it reads and from its other outputs, or files of one would be "
        "taken for the other's; `{inner}` of {who} {how} `{outer}` of {other}; give one of them another folder"
    ),
    "GLOBAL_LATENESS": (
        "a global window never ends, so nothing is late for it; got `allowed_lateness` in step `{step}`; leave it out"
    ),
    "GLOBAL_NEEDS_TRIGGER": (
        "a global window never ends, so a live job would never see a result; got the default trigger; "
        'add trigger=sw.after_count(100) or sw.every("10s")'
    ),
    "KEY_COLUMNS": (
        "`key_by` takes one or more different column names; got {got} on stream `{stream}`; compute a "
        "key with .with_columns(name=...) first"
    ),
    "KEY_GROUPS": (
        "`key_groups` must be a power of two from 1 to 4096; got {got}; leave it out for the default, "
        "take more only for large clusters"
    ),
    "KEY_TYPE": (
        "a key must be a plain value with a name of its own; got `{key}` of type {dtype} in step "
        "`{step}`; key by simple columns, and not by a result column's name"
    ),
    "LATE_COLUMN_TAKEN": (
        "late rows carry event_time, late_by_ms, watermark, windows and step beside the original row; "
        "got a column `{column}` at step `{step}`; rename it with .select or .with_columns before "
        "the key"
    ),
    "LATE_UNHANDLED": (
        "late rows must go somewhere; got no end for those of step `{step}`; add "
        "results.late.to(sink), or say results.late.drop() and they are only counted"
    ),
    "MAP_EMPTY": (
        "a map function must work on an empty frame, or say its columns; got {cause} in `{step}`; "
        'make it work with no rows, or add output="column type, …"'
    ),
    "MAP_FUNCTION": ("`map` takes a function from Polars frame to Polars frame; got {got}; pass the function itself"),
    "MAP_RESULT": (
        "a map function must return a Polars DataFrame with the declared columns; got {got} in "
        "`{step}`; collect a LazyFrame before returning it, and see that `output` and the function "
        "agree"
    ),
    "METADATA_COLUMN_TAKEN": (
        "the source's own columns must differ from the record's; got `{column}` in both at `{step}`; "
        "rename the field, or ask for less `metadata`"
    ),
    "NOT_AN_AGGREGATE": (
        "`aggregate` takes aggregates; got {got} for `{alias}` in step `{step}`; use sw.count(), "
        'sw.sum("x"), … or sw.accumulator(Class, "x")'
    ),
    "NOT_A_FORMAT": (
        '`decode` takes a format; got {got} in stream `{stream}`; use for example sw.formats.json("id '
        'string, amount double")'
    ),
    "NOT_A_SINK": (
        "an output ends in a sink; got {got}; use sw.sinks.files(...), kafka(...), postgres(...), "
        "delta(...), redis(...), http(...), console(), memory() or foreach_batch(...)"
    ),
    "NOT_A_SOURCE": (
        "a stream begins with a source; got {got} for stream `{stream}`; use sw.sources.log(...), "
        "kafka(...) or another of sw.sources"
    ),
    "NOT_A_TRIGGER": (
        "`trigger` takes a trigger; got {got}; use sw.after_watermark(...), after_count, every, "
        "every_event_time or any_of"
    ),
    "NOT_A_WINDOW": (
        '`window` takes a window; got {got}; use sw.tumbling("1m"), hopping, sliding, session, '
        "cumulative or global_window"
    ),
    "NOT_SEMANTICS": "`semantics` takes sw.Semantics(...); got {got}; leave it out for the usual ones",
    "OBJECT_COLUMN": (
        "a column must have a type that can be stored and sent; got `{name}` of type Object in "
        "`{step}`; make it a number, a text, a time, a list or a struct"
    ),
    "OUTPUT_NOT_ENDED": (
        "a pipeline is made of ended outputs; got a {got} in `{pipeline}`; end it with .to(sink) or .drop()"
    ),
    "PIPELINE_EMPTY": ("a pipeline needs at least one output; got none in `{pipeline}`; add results.to(sink)"),
    "RESERVED_COLUMN": ("column names that begin with `__` belong to Slackwater; got `{name}`; rename the column"),
    "RESULTS_UNHANDLED": (
        "rows and results must go somewhere; got no end for those of {what}; add .to(sink) or a "
        "further step, or leave it out of the pipeline: it would be computed for nobody"
    ),
    "SESSION_GAP_TYPE": (
        "a session's gap of its own must be a whole number of milliseconds; got {got} of type {dtype} "
        'in `{step}`; cast it, as in pl.col("gap_s").cast(pl.Int64) * 1000'
    ),
    "SINK_CANNOT_TAKE": (
        "a sink must be able to take what an output sends; `{output}` sends {need}, and {sink} takes "
        "{takes}; use another accumulation or a sink that can{how}"
    ),
    "SINK_KEEPS_LAST_PANE": (
        "a table with one row per key must not lose panes that add up; `{output}` discards what it has shown, and "
        '{sink} keeps the last pane of each {key}; use accumulation="accumulating", or add pane_index to the key'
    ),
    "SINK_KEEPS_MERGED_SESSIONS": (
        "a table with one row per key must not keep sessions that have merged into others; `{output}` may merge "
        "sessions that it has shown, and {sink} would keep the old rows, one for each {key}; use "
        'accumulation="retracting", which withdraws them'
    ),
    "SINK_PROMISE": (
        "a sink promises `exactly_once`, `at_least_once` or `at_most_once`, and takes some of "
        "`append`, `update` and `retract`; {sink} of output `{output}` has {got}; correct `{what}` in "
        "its class"
    ),
    "SINK_SHARED": (
        "each output needs a place of its own, or their rows would mix; got `{place}` for both "
        "{first} and {second}; give one of them another"
    ),
    "SINK_TWICE": (
        "an output goes to a place once; output `{output}` has two sinks that are {sink}, and one "
        "would take the other's marks for its own; leave one of them out"
    ),
    "SLIDING_DISCARDING": (
        "a sliding window overlaps itself, so its panes cannot be discarded; got "
        'accumulation="discarding"; use "accumulating" or "retracting"'
    ),
    "SLIDING_TRIGGER": (
        "a sliding window fires once per event, when the watermark passes it; got {got}; leave `trigger` out"
    ),
    "STEP_NAME_TWICE": (
        'every keyed step needs a name of its own; got `{name}` twice; add name="…" to one .window(...)'
    ),
    "STEP_WITHOUT_COLUMNS": ("a step must be given columns, and leave some; got none in `{step}`; name at least one"),
    "STREAM_NAME_TWICE": ("every source stream needs a name of its own; got `{name}` for two sources; rename one"),
    "VALIDATE_EMPTY": (
        '`validate` needs at least one rule; got none in `{step}`; write .validate(positive="amount > 0")'
    ),
    "WHEN_ALL_IDLE": '`when_all_idle` must be "wait" or "go_on"; got {got}; leave it out to wait',
    "WHEN_ALL_IDLE_NEVER": (
        'time can go on without events only once partitions count as idle; got when_all_idle="go_on" '
        'and no `idle_after`; add idle_after="1m"'
    ),
}
