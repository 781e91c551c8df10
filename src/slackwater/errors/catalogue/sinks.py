"""What errors and notices of sinks say, by code, sorted."""

from __future__ import annotations

from typing import Final

MESSAGES: Final[dict[str, str]] = {
    "CONSOLE_LIMIT": (
        "`limit` of the console sink must be a whole number of 1 or more; got {got}; leave it out for 20"
    ),
    "DELTA_APPEND_ONLY": (
        "a table that rows are merged into must allow changes; `{path}` has the property "
        "delta.appendOnly; take it off with ALTER TABLE … UNSET TBLPROPERTIES, or leave out "
        "`merge_on`"
    ),
    "DELTA_COLUMN_NAME": (
        "a column's name in a Delta table has no spaces, commas, semicolons, equals signs, braces or "
        "parentheses, and differs from the others in more than capital letters; `{column}` {why}; "
        "rename it in the pipeline"
    ),
    "DELTA_COLUMN_UNKNOWN": (
        "`{what}` of the Delta sink names columns that are written; `{column}` is not one of "
        "them{hint}; choose from {known}"
    ),
    "DELTA_KEYS_TWICE": (
        "a table with one row for each key must not have a key twice; `{path}` has {key} {times} "
        "times; delete the surplus rows, or choose other columns for `merge_on`"
    ),
    "DELTA_NOT_A_TABLE": (
        "a Delta sink writes to a Delta table, or to a place where nothing is; `{path}` holds "
        "something else; choose another path, or empty this one"
    ),
    "DELTA_NOT_COMPACTED": (
        "files of a table are put together every so often; {sink} could not be after batch {batch}: "
        "{why}; the rows are written, and the next time will do it: see to it only if this comes "
        "again"
    ),
    "DELTA_NO_PERMISSION": (
        "the job must be allowed to write to the table's folder and its log; {sink} was refused in "
        "{doing}: {why}; give the job's user the right or choose another path, and start again: "
        "nothing of it is visible, and it will be written once"
    ),
    "DELTA_PARTITIONS": (
        "a table's partitions are chosen when it is made; `{path}` is partitioned by {found}, and "
        "`partition_by` says {wanted}; leave `partition_by` out to keep the table's, or choose "
        "another path"
    ),
    "DELTA_REFUSED": (
        "a table must take what a sink writes; {sink} refused {doing}: {why}; mend the table or the "
        "rows, and start again: nothing of it is visible, and it will be written once"
    ),
    "DELTA_TABLE_GONE": (
        "a sink's table must stay, while a job runs and from one start to the next; there is no Delta "
        "table at `{path}` any more; put it back and start again, or start again with --take-over to "
        "make a new one"
    ),
    "DELTA_TABLE_UNFIT": (
        "a table's columns must be those of the rows; `{path}` does not fit: {problems}; mend the "
        "table or the rows, or choose another path"
    ),
    "FILES_BATCH_TAKEN": (
        "batches of a folder only ever get newer; `{path}` has batch {batch} or a later one already, "
        "from another run, so --take-over cannot add to it; choose another folder, or move this one away"
    ),
    "FILES_DAMAGED": (
        "a file of a files sink must be as it was written; `{path}` is damaged: {why}; restore `{home}` from a "
        "copy, or start with a new checkpoint and another folder"
    ),
    "FILES_FOREIGN": (
        "a folder holds one output of one pipeline; `{path}` belongs to {found}, this is {mine}; "
        "choose another folder, or delete this one"
    ),
    "FILES_FORMAT": ('`format` of the files sink must be "parquet" or "json"; got {got}; leave it out for Parquet'),
    "FILES_MANY": (
        "a files sink adds a folder for each batch with rows; `{path}` holds {count} of them; set "
        "merge_after=100 and read it with sw.sinks.read_files, or make batches larger with a longer trigger"
    ),
    "FILES_MERGE": (
        "`merge_after` of the files sink is a number of batches from {least} on; got {got}; write for "
        "example merge_after=100, or leave it out"
    ),
    "FILES_PLACE": (
        "a files sink writes into a folder, and makes it if there is none; `{path}` cannot be one: "
        "{why}; choose another path, or make it a folder that the job's user may write to"
    ),
    "FILES_UNMARKED": (
        "a folder with batches must say whose they are; `{path}` has batches but no owner's mark; "
        "choose another folder or delete this one"
    ),
    "FOREACH_BATCH_FUNCTION": (
        "`foreach_batch` takes a function of (DataFrame, batch number); got {got}; pass the function itself"
    ),
    "FOREACH_BATCH_NEEDS_SPARK": (
        "`foreach_batch` hands over PySpark DataFrames; output `{output}` runs in memory; use sinks.memory() in tests"
    ),
    "FOREACH_BATCH_SIGNATURE": (
        "`foreach_batch` calls its function with a DataFrame and a batch number; {got} cannot take "
        "the two; write it as in def write(df, batch)"
    ),
    "HTTP_CLIENT_MISSING": (
        "the HTTP sink needs the package urllib3; it is not installed; run `pip install 'slackwater[http]'`"
    ),
    "HTTP_COLUMN": (
        "`key` of the HTTP sink must name columns of its output; output `{output}` has no column "
        "`{name}`{hint}; name other columns"
    ),
    "HTTP_DENIED": (
        "the HTTP sink must be let in; {sink} answered with status {status}: {said}; mend the "
        "credentials in `headers`, then start again: the batch is delivered then"
    ),
    "HTTP_HEADER_VALUE": (
        "the value of a header is one line of Latin letters; got something else for `{name}` in "
        "{secret}, which is not shown; mend the secret"
    ),
    "HTTP_REDIRECT": (
        "requests with rows are not sent on to another address; {sink} answered with status {status} "
        "and the address {location}; give the sink the address that takes the rows"
    ),
    "HTTP_REJECTED": (
        "what a receiver refuses goes to `rejected`; {sink} refused {count} of the {rows} rows of "
        "batch {batch}, one with: {why}; look at them there, and mend the address if it refuses "
        "everything"
    ),
    "HTTP_REJECTED_PROMISE": (
        "rows that are refused are delivered by the promise of the HTTP sink; got {rejected} as "
        '`rejected`, which is exactly once, and delivery="{delivery}"; leave `delivery` out: the '
        "requests are the same, and a receiver that does not know Idempotency-Key gets them at least "
        "once"
    ),
    "REDIS_CLIENT_MISSING": (
        "the Redis sink needs the package redis; it is not installed; run `pip install 'slackwater[redis]'`"
    ),
    "REDIS_COLUMN": (
        "`{what}` of the Redis sink must name columns of its output, and a key's are neither "
        "fractions nor nested; output `{output}` has {got}; name other columns, or cast them before "
        "the sink"
    ),
    "REDIS_FENCED": (
        "a slot of a sink has one writer at a time; slot {slot} of output `{output}` of {sink} was "
        "taken over by another one, so this one has stopped writing; see that the pipeline runs only "
        "once, and start it again if it is not running"
    ),
    "REDIS_KEY_RESERVED": (
        "keys that begin with `{reserved}` are where the Redis sink keeps its marks; got a row of "
        "output `{output}` with the key `{key}`; give the sink another `prefix`"
    ),
    "REDIS_REFUSED": (
        "the Redis sink must be allowed to read, write and run scripts; {sink} said: {cause}; mend "
        "the password or the user's rights, and name one server: a cluster cannot be written to"
    ),
    "REDIS_WINDOWS": (
        "where windows share a hash, its field `window_end` tells which is the newest; output "
        '`{output}` is keyed by {key} alone, and `columns` is {got}; add "window_end" to `columns`, '
        'or "window_start" to `key` for a hash per window'
    ),
    "REDIS_WRONG_TYPE": (
        "the Redis sink writes hashes; {sink} has something else under the key `{key}`; remove it, or "
        "give the sink another `prefix`"
    ),
    "SECRET_EXPECTED": (
        "`{what}` must be a secret, so that it is shown nowhere; got a plain value; write "
        'sw.secret("NAME") and set the variable NAME'
    ),
    "SINK_BACK": (
        "a batch that waits goes on when its sink is back; {sink} of output `{output}` is, after "
        "{waited}; nothing to do, batch {batch} is delivered"
    ),
    "SINK_FENCED": (
        "a slot of a sink has one writer, the one that opened it last; {sink} was opened by another "
        "for slot {slot} of output `{output}`, so this one may write no more; see that the pipeline "
        "runs only once, and start it again if this was the right one; nothing was doubled"
    ),
    "SINK_GAVE_UP": (
        "a batch waits for a sink that is gone, but not forever; {sink} of output `{output}` did not "
        "take batch {batch} for {waited}, at last: {why}; mend the sink and start again: the batch is "
        "delivered then, once"
    ),
    "SINK_KEYS_OVERWRITE": (
        "the key of a table of window results must tell windows apart; {option}={got} leaves out "
        "{missing}, so results would overwrite one another; write {option}={whole}"
    ),
    "SINK_KEY_NULL": (
        "a row that is found or replaced by its key has a value in every key column; output `{output}` has a row with "
        "null in `{column}`; fill it with .with_columns(...), or choose other key columns"
    ),
    "SINK_LOST": (
        "rows that a sink promises at most once are not sent again; {sink} of output `{output}` "
        "failed in batch {batch}: {why}; what it had not taken by then is lost, choose "
        'delivery="at_least_once" if that must not be'
    ),
    "SINK_MARK": (
        "a slot tells its last mark as a `Mark`, or None if it has none; {sink} of output `{output}` "
        "gave {got}; return Mark.from_dict(...) of what was stored"
    ),
    "SINK_MARK_DAMAGED": (
        "the mark that a sink keeps beside its rows must be as it was written; {sink} has a damaged one for "
        "output `{output}`: {why}; restore the sink from a copy, or start with a new checkpoint and another place"
    ),
    "SINK_MARK_MISSING": (
        "a sink keeps the mark of the last batch it was given; {sink} has {last} in slot {slot} of "
        "output `{output}` of pipeline `{pipeline}`, and this run wrote batch {before} there; put "
        "back what was removed or restored, or go on with --take-over, which writes from here on and "
        "leaves what is there"
    ),
    "SINK_OF_ANOTHER_RUN": (
        "a sink holds the output of one run, and each new checkpoint is a new run; {sink} has rows of "
        "run {found} for output `{output}` of pipeline `{pipeline}` in slot {slot}, this is run "
        "{mine}; start from the checkpoint that wrote them, or {remedy}"
    ),
    "SINK_OF_A_COPY": (
        "a sink is written by one copy of a checkpoint; {sink} has batch {found} of output `{output}` "
        "of pipeline `{pipeline}` in slot {slot}, which this checkpoint did not write: it is a copy "
        "or an old one, now at batch {batch}; start from the newest checkpoint, give the copy a place "
        "of its own, or go on with --take-over, which may double rows"
    ),
    "SINK_OPTION": "`{what}` of {sink} must be {rule}; got {got}; {remedy}",
    "SINK_UNREACHABLE": (
        "a sink must be there when a job starts; {sink} of output `{output}` is not: {why}; start it, "
        "or mend its address"
    ),
    "SINK_VALUE": (
        "a sink writes values that have a text; {sink} of output `{output}` cannot write {columns} in batch {batch}: "
        "{cause}; send such rows to the dead letters with .validate(...), or cast the column, and start again with "
        "--accept-changes"
    ),
    "SINK_WAITING": (
        "a batch waits for a sink that is gone; {sink} of output `{output}` said: {why}; it is tried "
        "again for {patience}, nothing to do if it comes back by then"
    ),
}
