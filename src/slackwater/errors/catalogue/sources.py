"""What errors and notices of sources say, by code, sorted."""

from __future__ import annotations

from typing import Final

MESSAGES: Final[dict[str, str]] = {
    "DATAFRAME_NOT_STREAMING": (
        "`sources.dataframe` takes a streaming PySpark DataFrame; got {got}; make it with spark.readStream"
    ),
    "DELTA_NO_SPARK": (
        "a Delta table is written and read by Spark; there is no session in this process; run the "
        "pipeline with `slackwater run`, or make a session first"
    ),
    "DELTA_PATH": (
        '{what} takes the path of a table; got {got}; write it as in "lake/totals" or "s3a://bucket/totals"'
    ),
    "DELTA_PATH_CREDENTIALS": (
        "the path of a table is shown and logged, so {what} takes one without credentials; got {got}; give them to "
        "Spark, for S3 as spark.hadoop.fs.s3a.access.key and spark.hadoop.fs.s3a.secret.key"
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
    "KAFKA_AWAY": (
        "Kafka must answer for the lag to be known; {servers} does not: {cause}; the job waits and "
        "goes on when it is back"
    ),
    "KAFKA_BACK": (
        "Kafka should answer all the time; {servers} does so again; nothing is to be done, what waited goes on"
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
    "KAFKA_START": (
        '`start` must be "earliest", "latest", a datetime with a time zone, or offsets by topic and '
        'partition; got {got}; leave it out for "earliest"'
    ),
    "KAFKA_TOPICS": ("a Kafka source reads one of `topic`, `topics` or `pattern`; got {got}; give exactly one"),
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
    "LOG_FILE_CHANGED": (
        "a file of a log must never change once it has its final name; {path} was listed with "
        "{listed} and now has {found}; put the file back, and write new records to new files: under a "
        "name that begins with a dot, renamed when complete"
    ),
    "LOG_FORMAT": (
        '`format` of a log must be "json" (lines), "parquet" or "avro"; got {got}; leave it out for JSON lines'
    ),
    "LOG_LINK": (
        "a link in a log must lead out of it, or its records would be read again and again; {path} leads "
        "to {target}; remove the link, or move it out of the log"
    ),
    "LOG_SCHEMA_UNKNOWN": (
        "a Parquet log's columns must be known when the pipeline is built; `{path}` has no file yet; "
        'give schema="id string, ts timestamp"'
    ),
    "LOG_SCHEMA_UNREADABLE": (
        "a typed log's columns are those of its first file; `{path}` cannot be read: {cause}; mend or "
        "remove it, or give schema="
    ),
    "LOG_WRITER_OPTION": "`{what}` of a log writer must be {rule}; got {got}; {remedy}",
    "RATE_LIMIT": "`{what}` must be a whole number of 1 or more; got {got}; leave it out for the default",
}
