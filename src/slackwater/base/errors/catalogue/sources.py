"""Errors and notices of sources, sorted by code."""

from __future__ import annotations

from typing import Final

MESSAGES: Final[dict[str, str]] = {
    "DATAFRAME_NOT_STREAMING": (
        "`sources.dataframe` takes a streaming PySpark DataFrame; got {got}; create it with spark.readStream"
    ),
    "DELTA_NO_SPARK": (
        "reading and writing a Delta table requires Spark; there is no Spark session in this process; run the "
        "pipeline with `slackwater run`, or create a session first"
    ),
    "DELTA_PATH": (
        '{what} takes the path of a table; got {got}; write, for example, "lake/totals" or "s3a://bucket/totals"'
    ),
    "DELTA_PATH_CREDENTIALS": (
        "a table's path is shown and logged, so {what} takes a path without credentials; got {got}; give them to "
        "Spark, for S3 as spark.hadoop.fs.s3a.access.key and spark.hadoop.fs.s3a.secret.key"
    ),
    "DELTA_SESSION": (
        "a Delta table needs a Spark session with the Delta extension; this session lacks {lacking}; let Slackwater "
        "create the session, or create it with{lines}"
    ),
    "DELTA_SOURCE_CHANGED": (
        "a Delta source reads appended rows only; `{path}` has a commit that updated or deleted rows: {why}; read "
        "the changes with read_changes=True, or skip these commits with ignore_changes=True"
    ),
    "DELTA_SOURCE_CHANGES": (
        "changes are either read or skipped; got both read_changes=True and ignore_changes=True; remove one of them"
    ),
    "DELTA_SOURCE_COLUMNS": (
        "the columns of a stream must match its table; {problems} of `{path}`; rebuild the pipeline if the table has "
        "changed, or correct `schema`"
    ),
    "DELTA_SOURCE_FILES": (
        "`max_files_per_batch` is the largest number of files that a batch reads; got {got}; give a positive integer, "
        "or omit it"
    ),
    "DELTA_SOURCE_MISSING": (
        "the table of a Delta source must exist; there is none at `{path}`; correct the path, or give the columns of "
        'a table that is created later with schema="..."'
    ),
    "DELTA_SOURCE_SCHEMA": (
        "a table that only Spark can reach needs an explicit schema; `{path}` is not a local path; write, for "
        'example, schema="id bigint, at timestamp"'
    ),
    "DELTA_SOURCE_START": (
        '`start` of the Delta source must be "earliest", "latest", a version or a time with a time zone; got {got}; '
        'write start=12 or start="2026-03-01T00:00:00Z"'
    ),
    "KAFKA_AWAY": (
        "{servers} does not respond, so the lag is unknown: {cause}; the job waits and continues when Kafka is "
        "available"
    ),
    "KAFKA_BACK": "{servers} responds again; processing continues",
    "KAFKA_DATA_LOSS": (
        "records must not be deleted before they are read; stream `{stream}` lost {count}: {facts}; find the cause "
        '(short retention, a job stopped for too long), then set on_data_loss="continue" on the source to continue '
        "with the records that are left, or start with a new checkpoint"
    ),
    "KAFKA_LOST": (
        "stream `{stream}` lost {count} before they were read: {facts}; the job continues without them "
        '(on_data_loss="continue")'
    ),
    "KAFKA_METADATA": "`metadata` must name record metadata: {known}; got {got}; remove or correct it",
    "KAFKA_NEW_PARTITIONS": "stream `{stream}` has new partitions: {partitions}; reading them from the beginning",
    "KAFKA_OFFSETS": (
        "start offsets must be non-negative integers, by topic and partition; got {got}; write, for example, "
        "start={like}"
    ),
    "KAFKA_OFFSETS_PARTITION": (
        "start offsets must refer to existing partitions; {servers} has no {partitions}; correct or remove them in "
        "`start` of stream `{stream}`"
    ),
    "KAFKA_OFFSETS_RANGE": (
        "start offsets must lie within a partition's range; got for stream `{stream}`: {facts}; correct `start`, or "
        "remove a partition from it to read it from the beginning"
    ),
    "KAFKA_OFFSETS_TOPIC": (
        "start offsets must refer to topics that the source reads; got `{got}`{near}; correct or remove it"
    ),
    "KAFKA_ON_LOSS": '`on_data_loss` must be "stop" or "continue"; got {got}; omit it to stop when records are lost',
    "KAFKA_PATTERN": (
        "a topic pattern must be a regular expression that is valid in both Java and Python; got {got}: {cause}; "
        "correct it, with character classes written out, such as [a-z]"
    ),
    "KAFKA_START": (
        '`start` must be "earliest", "latest", a datetime with a time zone, or offsets by topic and partition; got '
        '{got}; omit it to use "earliest"'
    ),
    "KAFKA_TOPICS": "a Kafka source reads one of `topic`, `topics` or `pattern`; got {got}; give exactly one",
    "KAFKA_TOPIC_MISSING": (
        "topics must exist before a job reads them; {servers} has no {topics}; create them, correct the name, or, if "
        "they were deleted on purpose, start with a new checkpoint"
    ),
    "KAFKA_TOPIC_NAME": (
        "a topic name must consist of at most 249 letters, digits, `.`, `_` and `-`; got {got}; use `pattern` for "
        "several topics"
    ),
    "KAFKA_TOPIC_RECREATED": (
        "a topic must not be recreated between runs; `{topic}` of stream `{stream}` was deleted and recreated, so "
        "the offsets in the checkpoint refer to other records; start with a new checkpoint, or, if the records are "
        "the same, delete {notes}"
    ),
    "LOG_FILE_CHANGED": (
        "a log file must not change once it has its final name; {path} was listed with {listed} and now has {found}; "
        "restore the file, and write new records to new files: under a name that starts with a dot, renamed when "
        "complete"
    ),
    "LOG_FORMAT": (
        '`format` of a log must be "json" (lines), "parquet" or "avro"; got {got}; omit it to read JSON lines'
    ),
    "LOG_LINK": (
        "a symbolic link in a log must not point into the log or to a folder that contains it, or records would be "
        "read repeatedly; {path} points to {target}; remove the link, or move it out of the log"
    ),
    "LOG_SCHEMA_UNKNOWN": (
        "the columns of a Parquet log must be known when the pipeline is built; `{path}` has no files yet; write, "
        'for example, schema="id string, ts timestamp"'
    ),
    "LOG_SCHEMA_UNREADABLE": (
        "the columns of a typed log are those of its first file; `{path}` cannot be read: {cause}; repair or delete "
        "it, or give schema="
    ),
    "LOG_WRITER_OPTION": "`{what}` of a log writer must be {rule}; got {got}; {remedy}",
    "RATE_LIMIT": "`{what}` must be a positive integer; got {got}; omit it to use the default",
    "SOURCE_SCHEMA": (
        "`schema` of a source must be a Polars schema, or None for a source of bytes; got {got} of {source} for stream "
        "`{stream}`; write, for example, pl.Schema(dict(user=pl.String()))"
    ),
}
