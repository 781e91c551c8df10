"""Errors and notices of lookups and tables, sorted by code."""

from __future__ import annotations

from typing import Final

MESSAGES: Final[dict[str, str]] = {
    "CHECKPOINT_READ_ONLY": (
        "lookups write their answers to the checkpoint, from every executor; some executors cannot write to `{path}`; "
        "grant their user write access to the folder"
    ),
    "ENRICHED_BEFORE_TIME": (
        "lateness is measured from the log alone, without stores and tables; got `{step}` before the event time; call "
        ".event_time before .lookup and .join_table"
    ),
    "ENRICHED_RETRACTIONS": (
        "a retraction must repeat the row that it withdraws, and a store or table may have changed since; got `{step}` "
        "on the results of `{before}`, which emits retractions; enrich the rows before key_by, or use "
        'accumulation="accumulating"'
    ),
    "ENRICHMENT_NAME_TWICE": (
        'every lookup and every join with a table needs a unique name; got `{step}` twice; add name="…" to one of them'
    ),
    "LOOKUP_CLIENT": (
        "`open` of a lookup must return a `LookupClient`; got {got} from {lookup} in `{step}`; correct the class, and "
        "restart"
    ),
    "LOOKUP_COLUMN_TAKEN": (
        "a lookup must not replace columns; got the output column `{column}` in `{step}`, which the rows already have; "
        "rename or drop it first with .select"
    ),
    "LOOKUP_FUNCTION": (
        "a function lookup needs an asynchronous function; got {got}; write `async def fetch(key): ...`, and run "
        "blocking calls with asyncio.to_thread"
    ),
    "LOOKUP_KEY_TYPE": (
        "the key of a lookup must be text, a whole number or a date; got `{key}` of type {dtype} in `{step}`; convert "
        "it first with .with_columns"
    ),
    "LOOKUP_OPTION": "`{what}` of {lookup} must be {rule}; got {got}; {remedy}",
    "LOOKUP_REDIS_NESTED": (
        'only values="json" can hold nested columns; got `{column}` with values="{values}" in `{step}`; store JSON, or '
        "choose other columns"
    ),
    "LOOKUP_REDIS_TEXT": (
        'values="text" holds the value of one output column; got {columns} in `{step}`; use values="hash" or '
        'values="json"'
    ),
    "LOOKUP_REFUSED": (
        "a store must be able to answer a lookup; {lookup} refused the request of `{step}`: {why}; {remedy}, and "
        "restart"
    ),
    "LOOKUP_UNAVAILABLE": (
        "a batch waits until every lookup is answered; {lookup} of `{step}` did not answer for {count}, last error: "
        '{why}; fix the store or the function, or use on_error="dead_letter" or on_error="null"'
    ),
    "LOOKUP_WAITING": "batch {batch} is waiting for a lookup, {waited} so far: {why}; retrying (Ctrl-C stops)",
    "LOOKUP_WITHOUT_PLACES": (
        "a lookup stores each answer by the position of its row, so that a replayed batch gets the same answers; "
        "{source} gives rows no stable positions, in `{step}`; read from a log or from Kafka, join a table with "
        ".join_table, or look up the results of a window"
    ),
    "NOT_A_LOOKUP": (
        "`.lookup` takes a store to look up in; got {got} in stream `{stream}`; use, for example, "
        'sw.lookups.redis("redis://localhost:6379/0")'
    ),
    "NOT_A_TABLE": (
        "`.join_table` takes a table; got {got} in stream `{stream}`; use, for example, "
        'sw.table("rates.parquet", refresh="5m")'
    ),
    "STORE_BACK": (
        "the lookup or table that batch {batch} waited for is available again after {waited}; the batch continues"
    ),
    "TABLE_CHANGED": (
        "a table must keep the columns that it had when the pipeline was built; {place} now has {got}; restore it, or "
        "rebuild the pipeline and restart"
    ),
    "TABLE_COLUMN": (
        "a join must name columns of its table; {place} has no column `{name}`{hint}; its columns are {known}"
    ),
    "TABLE_COLUMNS": (
        "`columns` must be a list of distinct columns of the table; got {got} in stream `{stream}`; omit it to add all "
        "of them"
    ),
    "TABLE_COLUMN_TAKEN": (
        "a join must not replace columns; got `{column}` of {table} in `{step}`, which the rows already have; choose "
        'others with `columns`, or add suffix="_table"'
    ),
    "TABLE_COLUMN_TYPE": (
        "`schema` must agree with the table; {place} has {got}, declared {declared}; correct the schema, or omit it"
    ),
    "TABLE_DELTA_FEATURE": (
        "a Delta table is joined by reading its files; `{place}` uses {feature}, which needs Spark; write it without "
        "that feature, or export it as Parquet"
    ),
    "TABLE_HOW": '`how` must be "left" or "inner"; got {got} in stream `{stream}`; omit it to use "left"',
    "TABLE_KEY_TWICE": (
        "a joined table must have one row per key; {table} has more than one for {key}, in `{step}`; remove the "
        "others, or aggregate them in the table, and restart"
    ),
    "TABLE_KEY_TYPE": (
        "the columns of a join must have the same type, and be neither floating-point nor nested; got `{left}` of type "
        "{left_type} and the table's `{right}` of type {right_type} in `{step}`; convert one of them"
    ),
    "TABLE_KIND": (
        "a table is a .parquet file, a .csv file, the folder of a Delta table, or a Postgres server; got {got}; write, "
        'for example, sw.table("rates.parquet")'
    ),
    "TABLE_MISSING": (
        "the columns of a table are read when the pipeline is built; {place} cannot be read: {why}; create it, or "
        "correct its address"
    ),
    "TABLE_NO_COLUMNS": (
        "a join must add at least one column; {table} has only the key in `{step}`; choose a table with more columns"
    ),
    "TABLE_ON": (
        "`on` must name key columns: one, a list, or a mapping of the stream's to the table's; got {got} in stream "
        '`{stream}`; write, for example, on="currency" or on=dict(currency="code")'
    ),
    "TABLE_POSTGRES_TYPE": (
        "the columns of a query must have distinct names, and types that rows can have; {place} gives `{column}` "
        "{kind}; name it with AS, or cast it in the query, for example ::text or ::numeric(18,2)"
    ),
    "TABLE_QUERY": (
        "a table on Postgres needs `query`, and no other table takes it; got {got} for {place}; write, for example, "
        'sw.table("postgresql://host/db", query="SELECT code, rate FROM rates")'
    ),
    "TABLE_SCHEMA": (
        'a CSV table needs declared types; got no `schema` for {place}; write, for example, schema="code string, rate '
        'double"'
    ),
    "TABLE_SUFFIX": (
        '`suffix` must be a string; got {got} in stream `{stream}`; write, for example, suffix="_table", or omit it'
    ),
    "TABLE_TOO_LARGE": (
        "every worker holds a joined table in memory; {table} has {size} in `{step}`, more than {most}; choose fewer "
        "`columns`, or use .lookup"
    ),
    "TABLE_UNREADABLE": (
        "a batch never joins with a stale table; {table} of `{step}` cannot be read: {why}; make it readable and "
        "restart"
    ),
    "TABLE_VALUE": (
        "the values of a table must have the declared types; {place} has {value} in column `{column}`, row {row}, "
        "which is declared as {dtype}; correct the value, or the schema"
    ),
    "TABLE_WAITING": (
        "batch {batch} is waiting for {table} of `{step}`, {waited} so far; it cannot be read: {why}; retrying (Ctrl-C "
        "stops)"
    ),
}
