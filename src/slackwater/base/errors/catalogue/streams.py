"""Errors of streams, keys and pipelines, sorted by code."""

from __future__ import annotations

from typing import Final

MESSAGES: Final[dict[str, str]] = {
    "ACCEPT_CODE": (
        "`accept` names findings of `slackwater check` by their code; pipeline `{pipeline}` accepts {got}{hint}, which "
        "is not a code; take the code from the output of `slackwater check`"
    ),
    "ACCEPT_KIND": (
        "`accept` maps codes to reasons; got {got} for pipeline `{pipeline}`; write, for example, "
        'accept=dict(SW402="late clicks do not matter")'
    ),
    "ACCEPT_REASON": (
        "an accepted finding needs a reason, as text; got {got} for {rule} in pipeline `{pipeline}`; state why it is "
        "acceptable here"
    ),
    "ACCUMULATION": (
        '`accumulation` must be "discarding", "accumulating" or "retracting"; got {got}; omit it to use "accumulating"'
    ),
    "AGGREGATE_EMPTY": (
        "`aggregate` needs at least one aggregate; got none in step `{step}`; write, for example, "
        ".aggregate(orders=sw.count())"
    ),
    "AGGREGATE_NAME_TAKEN": (
        "an aggregate must not have the name of a key or a result column; got `{alias}` in step `{step}`; choose "
        "another name"
    ),
    "BAD_NAME": (
        "a {what} name must consist of letters, digits, `.`, `-` and `_`, and start with a letter or digit; got {got}; "
        "choose a stable name, because it identifies files and state"
    ),
    "CHAIN_GLOBAL": (
        "a chained step needs results with an event time; got `{before}`, a global window, before step `{step}`; use "
        "a window that ends"
    ),
    "CHAIN_UPDATES": (
        "a chained step must not count a window twice; got step `{step}` on the results of `{before}`, which emits a "
        "window more than once; continue from `.final`, which emits each window once, when it can no longer change; "
        'or give `{before}` accumulation="discarding"'
    ),
    "DEAD_LETTERS_UNHANDLED": (
        "a stream's dead letters must have a destination; got none for `{stream}`; add "
        "its .dead_letters.to(sink), give the pipeline dead_letters=sink for all of them, or discard them with "
        ".dead_letters.drop(): they are still counted"
    ),
    "DECODE_MISSING": (
        "a source of bytes must be decoded before its rows are used; got stream `{stream}` without decode; add "
        '.decode(sw.formats.json("id string, ts timestamp"))'
    ),
    "DECODE_TYPED": "only a source of bytes can be decoded, and only once; got `{step}` on typed rows; remove it",
    "DRIFT_ALONE": (
        "`max_drift` applies to streams that are combined in a step; stream `{stream}` is not combined with any other; "
        "remove it"
    ),
    "DRIFT_SOURCE": (
        "only a log or a Kafka topic can wait for other streams; got `max_drift` on stream `{stream}`, which reads "
        "{source}; remove it"
    ),
    "EVENT_TIME_MISSING": (
        "a keyed step needs rows with a time; got step `{step}` on stream `{stream}`, which has none; add "
        '.event_time("column"), .ingestion_time() or .processing_time()'
    ),
    "EVENT_TIME_TWICE": (
        "a stream has one time and one watermark; got a second time in `{stream}`; assign it once, before the stream "
        "branches"
    ),
    "EVENT_TIME_TYPE": (
        "an event time must be a timestamp, a date or epoch milliseconds as a whole number; got {got} of type "
        '{dtype} in `{step}`; convert it, for example with pl.from_epoch("ts", "s") or '
        'col.str.to_datetime("%Y-%m-%dT%H:%M:%S%#z")'
    ),
    "EXPLAIN_FORM": 'a plan is explained as "text" or "json"; got {got}; omit `form` for text, or use .svg()',
    "FINAL_UNAVAILABLE": (
        "`.final` emits the whole result of a window once, when it can no longer change; step `{step}` {reason}; use "
        "its results instead"
    ),
    "FOLDERS_NESTED": (
        "an output folder must not overlap the inputs or other outputs, or their files would mix; `{inner}` of {who} "
        "{how} `{outer}` of {other}; choose another folder for one of them"
    ),
    "GLOBAL_LATENESS": (
        "a global window never ends, so no row is late for it; got `allowed_lateness` in step `{step}`; remove it"
    ),
    "GLOBAL_NEEDS_TRIGGER": (
        "a global window never ends, so it needs a trigger to emit results; got the default trigger; add "
        'trigger=sw.after_count(100) or sw.every("10s")'
    ),
    "KEY_SPREAD": "`spread` must be a positive integer; got {got} on stream `{stream}`; omit it for no spread",
    "KEY_SPREAD_STEP": (
        "`spread` needs a step whose partial results can be merged; got a key with `spread` for step `{step}`, {what}; "
        "remove `spread`"
    ),
    "KEY_COLUMNS": (
        "`key_by` takes one or more distinct column names; got {got} on stream `{stream}`; compute a key first with "
        ".with_columns(name=...)"
    ),
    "KEY_GROUPS": (
        "`key_groups` must be a power of two from 1 to 4096; got {got}; omit it to use the default, and raise it "
        "only for large clusters"
    ),
    "KEY_MISSING": (
        "`{method}` works on the rows of each key; got stream `{stream}`, which has no key; add {remedy} before it"
    ),
    "KEY_TYPE": (
        "a key must be a plain value, and not have the name of a result column; got `{key}` of type {dtype} in step "
        "`{step}`; key by simple columns with other names"
    ),
    "LATE_COLUMN_TAKEN": (
        "late rows get the additional columns {added}; the rows of step `{step}` already have a column `{column}`; "
        "rename it with .select or .with_columns before key_by"
    ),
    "LATE_NEVER": (
        "step `{step}` takes rows no matter how late they are, so it has no late output; got `.late`; remove it"
    ),
    "LATE_UNHANDLED": (
        "late rows must have a destination; got none for step `{step}`; add results.late.to(sink), give the "
        "pipeline late=sink for those of all steps, or discard them with results.late.drop(): they are still counted"
    ),
    "MAP_EMPTY": (
        "a map function must accept an empty frame, or declare its columns; got {cause} in `{step}`; make it work "
        'without rows, or add output="column type, …"'
    ),
    "MAP_FUNCTION": "`map` takes a function from a Polars frame to a Polars frame; got {got}; pass the function itself",
    "MAP_RESULT": (
        "a map function must return a Polars DataFrame with the declared columns; got {got} in `{step}`; collect a "
        "LazyFrame before returning it, and make `output` match the result"
    ),
    "METADATA_COLUMN_TAKEN": (
        "metadata columns must not have the names of record fields; got `{column}` in both at `{step}`; rename the "
        "field, or request fewer `metadata` columns"
    ),
    "NOT_AN_AGGREGATE": (
        '`aggregate` takes aggregates; got {got} for `{alias}` in step `{step}`; use sw.count(), sw.sum("x"), … or '
        'sw.accumulator(Class, "x")'
    ),
    "NOT_A_FORMAT": (
        '`decode` takes a format; got {got} in stream `{stream}`; use, for example, sw.formats.json("id string, '
        'amount double")'
    ),
    "NOT_A_SINK": (
        "an output must end in a sink; got {got}; use sw.sinks.files(...), kafka(...), postgres(...), delta(...), "
        "redis(...), http(...), console(), memory() or foreach_batch(...)"
    ),
    "NOT_A_SOURCE": (
        "a stream must start with a source; got {got} for stream `{stream}`; use sw.sources.log(...), kafka(...) or "
        "another of sw.sources"
    ),
    "NOT_A_TRIGGER": (
        "`trigger` takes a trigger; got {got}; use sw.after_watermark(...), after_count, every, every_event_time, "
        "any_of or never"
    ),
    "NOT_A_WINDOW": (
        '`window` takes a window; got {got}; use sw.tumbling("1m"), hopping, sliding, session, cumulative, calendar, '
        "count_window or global_window, or an instance of your own kind"
    ),
    "NOT_SEMANTICS": "`semantics` takes sw.Semantics(...); got {got}; omit it to use the default",
    "NO_SUCH_CALL": "`.{name}` is not a method of {kind}; got it on `{stream}`; {remedy}",
    "OBJECT_COLUMN": (
        "a column must have a type that can be serialized; got `{name}` of type Object in `{step}`; make it a "
        "number, a string, a time, a list or a struct"
    ),
    "OUTPUT_NAME_TAKEN": ("the pipeline's default output is called `{name}`; got a step `{name}`; rename the step"),
    "OUTPUT_NOT_ENDED": ("a pipeline takes outputs that end in a sink; got a {got} in `{pipeline}`; {remedy}"),
    "PIPELINE_EMPTY": "a pipeline needs at least one output; got none in `{pipeline}`; add results.to(sink)",
    "RESERVED_COLUMN": "column names that start with `__` are reserved for Slackwater; got `{name}`; rename the column",
    "RESULTS_UNHANDLED": (
        "rows and results must have a destination; got none for {what}; add .to(sink) or another step, or remove it "
        "from the pipeline: nothing uses it"
    ),
    "SESSION_GAP_TYPE": (
        "a per-row session gap must be a whole number of milliseconds; got {got} of type {dtype} in `{step}`; cast "
        'it, as in pl.col("gap_s").cast(pl.Int64) * 1000'
    ),
    "SIDE_UNHANDLED": (
        "every output of a step must have a destination; got none for `{side}` of step `{step}`; add "
        '.output("{side}").to(sink), or discard its rows with .output("{side}").drop(): they are still counted'
    ),
    "SIDE_UNKNOWN": (
        "an output must be declared by its step; got `{side}` of step `{step}`{hint}, which declares {known}; declare "
        "it, or correct the name"
    ),
    "SINK_CANNOT_TAKE": (
        "a sink must support the changes that its output emits; `{output}` emits {need}, but {sink} accepts {takes}; "
        "use a sink that supports them{how}, or another `accumulation` of windows or `keep` of a deduplication"
    ),
    "SINK_KEEPS_LAST_PANE": (
        "a table with one row per key must not lose panes that add up; `{output}` emits discarding panes, and {sink} "
        'keeps only the last pane of each {key}; use accumulation="accumulating", or add pane_index to the key'
    ),
    "SINK_KEEPS_MERGED_SESSIONS": (
        "a table with one row per key must not keep sessions that have merged into others; `{output}` may merge "
        "sessions it has emitted, and {sink} would keep the old rows, one for each {key}; use "
        'accumulation="retracting", which deletes them'
    ),
    "SINK_PROMISE": (
        "a sink must declare `exactly_once`, `at_least_once` or `at_most_once`, and any of `append`, `update` and "
        "`retract`; {sink} of output `{output}` has {got}; correct `{what}` in its class"
    ),
    "SINK_SHARED": (
        "each output needs its own target, or their rows would mix; got `{place}` for both {first} and {second}; "
        "choose another target for one of them"
    ),
    "SINK_TWICE": (
        "an output can write to a target only once; output `{output}` has two sinks that are {sink}, and each would "
        "read the other's marks; remove one of them"
    ),
    "SLIDING_DISCARDING": (
        'sliding windows overlap, so their panes cannot be discarding; got accumulation="discarding"; use '
        '"accumulating" or "retracting"'
    ),
    "SLIDING_TRIGGER": (
        "a sliding window fires once per event, when the watermark passes it; got {got}; remove `trigger`"
    ),
    "STEP_NAME_TWICE": 'every keyed step needs a unique name; got `{name}` twice; add name="…" to one of them',
    "STEP_WITHOUT_COLUMNS": "a step must produce at least one column; got none in `{step}`; name at least one",
    "STREAM_NAME_TWICE": "every source stream needs a unique name; got `{name}` for two sources; rename one",
    "UNION_COLUMNS": (
        "streams of a union must have the same columns with the same types; at {place} one has {first} where the "
        "other has {other}; align them with .select(...) before the union"
    ),
    "UNION_DEAD_LETTERS": (
        "dead letters belong to the stream that a record came from; got `.dead_letters` of the union `{stream}`; use "
        "those of {streams}"
    ),
    "UNION_STREAMS": (
        "`union` takes one or more streams; got {got} for stream `{stream}`; write orders.union(refunds)"
    ),
    "UNION_TWICE": (
        "a union takes each stream once; got the same rows of `{got}` twice in `{stream}`; remove one, or make them "
        "differ with .where(...) or .with_columns(...)"
    ),
    "VALIDATE_EMPTY": (
        '`validate` needs at least one rule; got none in `{step}`; write, for example, .validate(positive="amount > 0")'
    ),
    "WHEN_ALL_IDLE": '`when_all_idle` must be "wait" or "advance"; got {got}; omit it to wait',
    "WHEN_ALL_IDLE_NEVER": (
        'the watermark can advance without events only if partitions become idle; got when_all_idle="advance" '
        'without `idle_after`; add idle_after="1m"'
    ),
}
