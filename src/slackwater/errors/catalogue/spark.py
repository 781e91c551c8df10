"""What errors and notices of running on Spark say, by code, sorted."""

from __future__ import annotations

from typing import Final

MESSAGES: Final[dict[str, str]] = {
    "BATCH_INPUT_CHANGED": (
        "a batch that Spark has begun must find its files as they were; {path} of stream `{stream}`, "
        "which batch {batch} is to read, is {found}; put it back as it was, or accept that rows may "
        "be lost or doubled with --accept-changes"
    ),
    "CHECKPOINT_FINISHING": (
        "a bounded run ends time for its checkpoint, and an unbounded one cannot follow it; `{path}` was "
        "stopped in the final batch of a bounded run, batch {batch}; run it once more with --bounded to "
        "deliver that batch, then start with a new checkpoint, and new folders for the outputs{outputs}"
    ),
    "CHECKPOINT_UNSHARED": (
        "driver and executors must see the same checkpoint; some executors do not see `{path}`; put "
        "it on a shared file system"
    ),
    "CLOCK_NOT_HANDED_OVER": (
        "every task needs the clock of its batch; none was handed over for batch {batch}; Spark jobs "
        "of a pipeline must be started on the stream's own thread"
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
    "JAVA_MISSING": (
        "Spark needs Java 17 or newer; none was found on PATH or in JAVA_HOME; install it, for "
        "example `apt-get install openjdk-17-jre-headless`"
    ),
    "JVM_ENDED": (
        "Spark's JVM must run as long as the job; it has ended: {how}; start again with the same checkpoint, nothing "
        "is lost; if memory ran out, give it more with `spark.driver.memory`"
    ),
    "LATENESS_ABOVE_SLACK": (
        "the out-of-orderness should cover 99 % of the rows; stream `{stream}` allows {slack}, and "
        "{share} of its rows are further behind (p99 is {measured}); raise it, or see what each "
        "choice costs with `slackwater lateness FILE`"
    ),
    "LOG_FOLDER_UNSHARED": (
        "driver and executors must see the same log; some executors do not see `{path}` of stream "
        "`{stream}`; put it on a shared file system"
    ),
    "LOG_LEFT": (
        "a bounded run takes what is there when it starts; it leaves {count} of `{path}` that came later "
        "unread: {files}; a run with a new checkpoint reads them"
    ),
    "LOG_STRAYS": ("every file of a log must be read; {count} of `{path}` never will be ({why}): {files}; {remedy}"),
    "MAP_LOST_ROWS": (
        "a map function that adds or removes rows must keep the columns that begin with `__`; in "
        "`{step}` {before} rows became {after} and {lost} are gone; use filter, explode or "
        "with_columns rather than select or a new frame"
    ),
    "PARTITIONS": (
        "`partitions` must divide the number of key groups ({key_groups}); got {got}; take a smaller power of two"
    ),
    "PARTITION_UNUSABLE": (
        "a partition should bring rows with an event time; of stream `{stream}`, {partitions} brought "
        "none for {idle_after}, only dead letters, or rows that are filtered before their time is "
        "taken; it no longer holds the watermark: look at its dead letters, or call event_time before "
        "where"
    ),
    "PIPELINE_RUNNING": (
        "a pipeline runs once at a time in a Spark session; `{name}` is running already; stop it "
        "first, or give this one another name and another checkpoint"
    ),
    "SCHEMA_INCOMPATIBLE": (
        "a writer's schema must be readable as the stream's; in stream `{stream}`: {words}; its "
        "records are in the dead letters: mend the producer, or the reader's schema, and send them "
        "again with `slackwater dead-letters retry`"
    ),
    "SOURCE_COLUMN_TYPE": (
        "a column of a typed source must hold values of its declared type; `{column}` of {place} is "
        "{found}, and {value} is no {declared}; declare the column as what it is, or write it as "
        "declared"
    ),
    "SPARK_MASTER": (
        "a Spark master is local[*], local[N], spark://HOST:PORT, yarn or k8s://URL; got `{got}`; correct --master, or "
        "leave it out for all local cores"
    ),
    "SPARK_START": (
        "Spark must start; it did not on master {master}: {cause}; check the master's address, that Java is 17 or "
        "newer, and the settings in SPARK_CONF_DIR"
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
}
