"""Errors and notices of sinks, sorted by code."""

from __future__ import annotations

from typing import Final

MESSAGES: Final[dict[str, str]] = {
    "CONSOLE_LIMIT": "`limit` of the console sink must be a positive integer; got {got}; omit it to print 20 rows",
    "DELTA_APPEND_ONLY": (
        "a table that is merged into must allow updates and deletes; `{path}` has the property delta.appendOnly; "
        "remove it with ALTER TABLE … UNSET TBLPROPERTIES, or omit `merge_on`"
    ),
    "DELTA_COLUMN_NAME": (
        "a Delta column name must not contain spaces, commas, semicolons, equals signs, braces or parentheses, and "
        "must be unique, ignoring case; `{column}` {why}; rename it in the pipeline"
    ),
    "DELTA_COLUMN_UNKNOWN": (
        "`{what}` of the Delta sink must name columns that are written; `{column}` is not one of them{hint}; choose "
        "from {known}"
    ),
    "DELTA_KEYS_TWICE": (
        "a table with one row per key must not contain duplicate keys; `{path}` has {key} {times} times; delete the "
        "duplicates, or choose other columns for `merge_on`"
    ),
    "DELTA_NOT_A_TABLE": (
        "a Delta sink writes to a Delta table or an empty path; `{path}` contains something else; choose another "
        "path, or empty this one"
    ),
    "DELTA_NOT_COMPACTED": (
        "compaction of {sink} failed after batch {batch}: {why}; the rows are written, and a later compaction "
        "includes them; investigate only if this repeats"
    ),
    "DELTA_NO_PERMISSION": (
        "the job needs permission to write to the table's folder and its log; {sink} was denied access during {doing}: "
        "{why}; grant the job's user access or choose another path, and restart: none of it is visible, and it will be "
        "written once"
    ),
    "DELTA_PARTITIONS": (
        "the partitioning of a table is fixed when it is created; `{path}` is partitioned by {found}, `partition_by` "
        "is {wanted}; omit `partition_by` to keep the table's, or choose another path"
    ),
    "DELTA_REFUSED": (
        "a table must accept what the sink writes; {sink} rejected {doing}: {why}; fix the table or the rows, and "
        "restart: none of it is visible, and it will be written once"
    ),
    "DELTA_TABLE_GONE": (
        "the table of a sink must not be deleted while its checkpoint is in use; the Delta table at `{path}` no "
        "longer exists; restore it and restart, or restart with --take-over to create a new one"
    ),
    "DELTA_TABLE_UNFIT": (
        "the columns of a table must match the rows; `{path}` does not: {problems}; fix the table or the rows, or "
        "choose another path"
    ),
    "FILES_BATCH_TAKEN": (
        "each batch in a folder must be newer than the last; `{path}` already contains batch {batch} or a later one, "
        "from another run, so --take-over cannot append to it; choose another folder, or move this one away"
    ),
    "FILES_DAMAGED": (
        "the files of a files sink must not be modified; `{path}` is damaged: {why}; restore `{home}` from a backup, "
        "or start with a new checkpoint and another folder"
    ),
    "FILES_FOREIGN": (
        "a folder holds one output of one pipeline; `{path}` belongs to {found}, this is {mine}; choose another "
        "folder, or delete this one"
    ),
    "FILES_FORMAT": '`format` of the files sink must be "parquet" or "json"; got {got}; omit it to write Parquet',
    "FILES_MANY": (
        "`{path}` contains {count} batch folders, one per batch with rows; set merge_after=100 and read it with "
        "sw.sinks.read_files, or use a longer trigger for larger batches"
    ),
    "FILES_MERGE": (
        "`merge_after` of the files sink must be a number of batches of {least} or more; got {got}; write, for "
        "example, merge_after=100, or omit it"
    ),
    "FILES_PLACE": (
        "a files sink writes to a folder and creates it if it is missing; `{path}` cannot be used: {why}; choose "
        "another path, or make it a folder that the job's user can write to"
    ),
    "FILES_UNMARKED": (
        "a folder with batches must have an owner file; `{path}` has batches but no owner file; choose another "
        "folder, or delete this one"
    ),
    "FOREACH_BATCH_FUNCTION": (
        "`foreach_batch` takes a function of (DataFrame, batch number); got {got}; pass the function itself"
    ),
    "FOREACH_BATCH_NEEDS_SPARK": (
        "`foreach_batch` passes PySpark DataFrames, so it needs Spark; output `{output}` runs in memory; use "
        "sinks.memory() in tests"
    ),
    "FOREACH_BATCH_SIGNATURE": (
        "`foreach_batch` calls its function with a DataFrame and a batch number; {got} cannot take both; write, for "
        "example, def write(df, batch)"
    ),
    "HTTP_CLIENT_MISSING": (
        "the HTTP sink requires the package urllib3; it is not installed; run `pip install 'slackwater[http]'`"
    ),
    "HTTP_COLUMN": (
        "`key` of the HTTP sink must name columns of its output; output `{output}` has no column `{name}`{hint}; "
        "name other columns"
    ),
    "HTTP_DENIED": (
        "the HTTP sink must be authorized; {sink} responded with status {status}: {response}; correct the "
        "credentials in `headers` and restart: the batch will then be delivered"
    ),
    "HTTP_HEADER_VALUE": (
        "a header value must be one line of Latin-1 text; got other characters for `{name}` in {secret}, which is "
        "not shown; correct the secret"
    ),
    "HTTP_REDIRECT": (
        "the HTTP sink does not follow redirects; {sink} responded with status {status} and the address {location}; "
        "give the sink the final address"
    ),
    "HTTP_REJECTED": (
        "{sink} rejected {count} of the {rows} rows of batch {batch}, for example: {why}; they are in `rejected`; "
        "check the URL if it rejects everything"
    ),
    "HTTP_REJECTED_PROMISE": (
        "`rejected` cannot promise more than the HTTP sink; got {rejected} as `rejected`, which is exactly once, and "
        'delivery="{delivery}"; omit `delivery`: the requests are the same, and a receiver that ignores '
        "Idempotency-Key gets them at least once"
    ),
    "REDIS_CLIENT_MISSING": (
        "the Redis sink requires the package redis; it is not installed; run `pip install 'slackwater[redis]'`"
    ),
    "REDIS_COLUMN": (
        "`{what}` of the Redis sink must name columns of its output, and key columns must not be floating-point or "
        "nested; output `{output}` has {got}; name other columns, or cast them before the sink"
    ),
    "REDIS_FENCED": (
        "a sink slot has one writer at a time; slot {slot} of output `{output}` of {sink} was taken over by another "
        "writer, so this one has stopped; make sure that the pipeline runs only once, and restart it if it is not "
        "running"
    ),
    "REDIS_KEY_RESERVED": (
        "keys that start with `{reserved}` are reserved for the marks of the Redis sink; got a row of output "
        "`{output}` with the key `{key}`; give the sink another `prefix`"
    ),
    "REDIS_REFUSED": (
        "the Redis sink needs permission to read, write and run scripts; {sink} replied: {cause}; check the password "
        "and the user's ACL, and use a single server: Redis Cluster is not supported"
    ),
    "REDIS_WINDOWS": (
        "windows that share a hash need the field `window_end` to tell which is the newest; output `{output}` is "
        'keyed by {key} alone, and `columns` is {got}; add "window_end" to `columns`, or "window_start" to `key` for '
        "one hash per window"
    ),
    "REDIS_WRONG_TYPE": (
        "the Redis sink writes hashes; {sink} has a value of another type at key `{key}`; delete it, or give the "
        "sink another `prefix`"
    ),
    "SECRET_EXPECTED": (
        '`{what}` must be a secret, so that it is never shown; got a plain value; write sw.secret("NAME") and set '
        "the variable NAME"
    ),
    "SINK_BACK": "{sink} of output `{output}` is available again after {waited}; batch {batch} delivered",
    "SINK_FENCED": (
        "only the writer that opened a sink slot last can write to it; {sink} was opened by another writer for slot "
        "{slot} of output `{output}`, so this one is fenced off; make sure that the pipeline runs only once, and "
        "restart it if this was the right one; no row was written twice"
    ),
    "SINK_GAVE_UP": (
        "a batch waits only so long for an unavailable sink; {sink} of output `{output}` did not accept batch {batch} "
        "for {waited}, last error: {why}; fix the sink and restart: the batch will then be delivered, once"
    ),
    "SINK_KEYS_OVERWRITE": (
        "the key of a table of window results must distinguish windows; {option}={got} omits {missing}, so results "
        "would overwrite one another; write {option}={whole}"
    ),
    "SINK_KEY_NULL": (
        "a key column must not be null; output `{output}` has a row with null in `{column}`; fill it with "
        ".with_columns(...), or choose other key columns"
    ),
    "SINK_LOST": (
        "{sink} of output `{output}` failed in batch {batch}: {why}; rows it had not accepted are lost, because its "
        'delivery is at most once; use delivery="at_least_once" to have them sent again'
    ),
    "SINK_MARK": (
        "a sink must return the last mark of a slot as a `Mark`, or None if there is none; {sink} of output "
        "`{output}` returned {got}; return Mark.from_dict(...) of the stored mark"
    ),
    "SINK_MARK_DAMAGED": (
        "the mark that a sink stores with its rows must not be modified; {sink} has a damaged mark for output "
        "`{output}`: {why}; restore the sink from a backup, or start with a new checkpoint and another target"
    ),
    "SINK_MARK_MISSING": (
        "a sink keeps the mark of the last batch written; {sink} has {last} in slot {slot} of output `{output}` of "
        "pipeline `{pipeline}`, but this run wrote batch {before}; restore what was deleted or overwritten, or "
        "restart with --take-over to keep what is there and continue from here"
    ),
    "SINK_OF_ANOTHER_RUN": (
        "a sink holds the output of one run, and each new checkpoint starts a new run; {sink} has rows of run "
        "{found} for output `{output}` of pipeline `{pipeline}` in slot {slot}, this is {mine}; start from the "
        "checkpoint that wrote them if its run has not finished, or {remedy}"
    ),
    "SINK_OF_A_COPY": (
        "only one copy of a checkpoint can write to a sink; {sink} has batch {found} of output `{output}` of pipeline "
        "`{pipeline}` in slot {slot}, which this checkpoint did not write: it is a copy or outdated, now at batch "
        "{batch}; start from the newest checkpoint, give the copy another target, or restart with --take-over, which "
        "may duplicate rows"
    ),
    "SINK_OPTION": "`{what}` of {sink} must be {rule}; got {got}; {remedy}",
    "SINK_UNREACHABLE": (
        "a sink must be available when a job starts; cannot connect to {sink} for output `{output}`: {why}; start it, "
        "or correct its address"
    ),
    "SINK_VALUE": (
        "a sink must be able to represent every value; {sink} of output `{output}` cannot write {columns} in batch "
        "{batch}: {cause}; send these rows to the dead letters with .validate(...) or cast the column, and restart "
        "with --accept-changes"
    ),
    "SINK_WAITING": "{sink} of output `{output}` is unavailable: {why}; retrying for {patience}",
    "SINK_WRITER": (
        "`open` of a sink must return a `SinkWriter`; got {got} from {sink} of output `{output}`; correct the class"
    ),
}
