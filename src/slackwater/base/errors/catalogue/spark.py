"""Errors of checkpoints and of running on Spark, sorted by code."""

from __future__ import annotations

from typing import Final

MESSAGES: Final[dict[str, str]] = {
    "BATCH_HALF_DELIVERED": (
        "a partly delivered batch must be completed by the version of the pipeline that started it; batch {batch} in "
        "`{path}` was started by a different version, or with other --skip-rows; run that once more, or pass "
        "--accept-changes if the batch's rows may differ"
    ),
    "BATCH_INPUT_CHANGED": (
        "the files of a planned batch must not change; {path} of stream `{stream}`, which batch {batch} must read, "
        "is {found}; restore the file, or pass --accept-changes if rows may be lost or duplicated"
    ),
    "CHECKPOINT_FINISHED": (
        "a bounded run advances the watermark to the end of time, so any later row would be late; the run of `{path}` "
        "is finished; pass a new checkpoint{outputs}"
    ),
    "CHECKPOINT_FINISHING": (
        "a bounded run advances the watermark to the end of time, so an unbounded run cannot continue from it; "
        "`{path}` was stopped in the final batch of a bounded run, batch {batch}; run it once more with --bounded to "
        "deliver that batch, then pass a new checkpoint{outputs}"
    ),
    "CHECKPOINT_FOREIGN": (
        "a checkpoint must have been created by Slackwater; `{path}` is the checkpoint of another Spark query; "
        "choose another folder"
    ),
    "CHECKPOINT_FORMAT": (
        "a checkpoint must be in a format that this version can read; `{path}` is in format {got}, this version "
        "reads format {known}; use the version of Slackwater that wrote it"
    ),
    "CHECKPOINT_IN_USE": (
        "only one driver can use a checkpoint at a time; `{path}` is in use by {owner} since {since}, last heartbeat "
        "{silent} ago; keep that driver, or stop it and start again; if its machine is gone, start again after "
        "{stale} without a heartbeat"
    ),
    "CHECKPOINT_KEY_GROUPS": (
        "the number of key groups is fixed when a checkpoint is created; `{path}` has {found}, the pipeline has "
        "{mine}; set key_groups={found}, or start with a new checkpoint"
    ),
    "CHECKPOINT_LOST": (
        "a driver delivers only while it holds the lock on its checkpoint; this driver lost `{path}`: {how}; keep "
        "the other driver, or stop it and restart this one; no row was delivered twice"
    ),
    "CHECKPOINT_MOVED": (
        "a checkpoint must stay where it was created, because Spark stores absolute paths in it; `{path}` was created "
        "at `{found}`; move it back, or make `{found}` a link to it"
    ),
    "CHECKPOINT_OF_ANOTHER": (
        "a checkpoint belongs to one pipeline; `{path}` belongs to `{found}`, this is `{mine}`; choose another folder"
    ),
    "CHECKPOINT_SOURCES": (
        "the sources of a checkpoint cannot change; `{path}` has {found}, the pipeline has {mine}; start with a new "
        "checkpoint"
    ),
    "CHECKPOINT_STEP_CHANGED": (
        "a step must match its saved state; step `{step}` differs from what was saved in `{path}`: {changes}; revert "
        "the change, or start with a new checkpoint"
    ),
    "CHECKPOINT_STEP_GONE": (
        "a step with saved state cannot be removed; `{path}` has state of step `{step}`, which is not in the "
        "pipeline; restore the step, give a renamed step its old name, or start with a new checkpoint"
    ),
    "CHECKPOINT_STEP_NEW": (
        "a step cannot be added to an existing checkpoint; step `{step}` is not in `{path}`; give a renamed step its "
        "old name, or start with a new checkpoint"
    ),
    "CHECKPOINT_UNSHARED": (
        "the driver and all executors must see the same checkpoint; some executors do not see `{path}`; put it on a "
        "shared file system"
    ),
    "CLOCK_NOT_HANDED_OVER": (
        "every task needs the clock of its batch; batch {batch} has none; start Spark jobs of a pipeline on the "
        "stream's own thread"
    ),
    "CODE_NOT_PORTABLE": (
        "your own code, and what it holds, must be picklable, so that Spark's workers can load it; got {got} in "
        "{where}: {cause}; open locks, connections and clients on first use in the worker, not in `__init__` and not "
        "where the pipeline is defined"
    ),
    "DEAD_LETTERS_EXCEEDED": (
        "at most {most} of the records of a stream may be dead letters (--fail-if-dead); got {dead} of {rows} {whose} "
        "({share}), most of them `{reason}`, for example: {sample}; all rows and dead letters are delivered: correct "
        "the schema, the producer or your own code, and send the dead letters again with `slackwater dead-letters "
        "retry`"
    ),
    "DEAD_LETTERS_MANY": (
        "{dead} of {rows} {whose} ({share}) are dead letters, most of them `{reason}`, for example: {sample}; compare "
        "the schema, the event time and your own code with the records: `slackwater dead-letters list` shows those "
        "that are kept"
    ),
    "HOT_KEY": (
        "key `{key}` of step `{step}` has {share} of the {rows} rows of a batch, and a single task processes all of "
        "them; add a column to the key, aggregate before the step, or filter the key out if it is a bot or a default "
        "value"
    ),
    "JAVA_MISSING": (
        "Spark requires Java 17 or newer; none was found on PATH or in JAVA_HOME; install it, for example with "
        "`apt-get install openjdk-17-jre-headless`"
    ),
    "JVM_ENDED": (
        "Spark's JVM exited while the job was running: {how}; restart with the same checkpoint, nothing is lost; if "
        "memory ran out, give it more with `spark.driver.memory`"
    ),
    "LATENESS_ABOVE_SLACK": (
        "stream `{stream}` has an out-of-orderness of {slack}, but {share} of its rows arrive later than that (p99 is "
        "{measured}); raise it, or compare the choices with `slackwater lateness FILE`"
    ),
    "LOG_FOLDER_UNSHARED": (
        "the driver and all executors must see the same log; some executors do not see `{path}` of stream "
        "`{stream}`; put it on a shared file system"
    ),
    "LOG_LEFT": (
        "{count} of `{path}` arrived after this bounded run started and will not be read: {files}; a run with a new "
        "checkpoint reads them"
    ),
    "LOG_STRAYS": "{count} of `{path}` will never be read ({why}): {files}; {remedy}",
    "MAP_LOST_ROWS": (
        "a map function that adds or removes rows must keep the columns that start with `__`; in `{step}` {before} "
        "rows became {after}, and {lost} were dropped; use filter, explode or with_columns instead of select or a "
        "new frame"
    ),
    "OPEN_FILES": (
        "a job with Spark needs at least {needed} open files; the limit of this process is {got}; run `ulimit -n "
        "65536` first, or set LimitNOFILE=65536 in its systemd unit"
    ),
    "PARTITIONS": (
        "`partitions` must divide the number of key groups ({key_groups}); got {got}; use a smaller power of two"
    ),
    "PARTITION_UNUSABLE": (
        "stream `{stream}` had no row with an event time for {idle_after} in partition {partitions}, only dead "
        "letters or rows filtered before event_time; the watermark no longer waits for it; check its dead letters, "
        "or call event_time before where"
    ),
    "PIPELINE_RUNNING": (
        "a pipeline can run only once at a time in a Spark session; `{name}` is already running; stop it first, or "
        "give this one another name and another checkpoint"
    ),
    "SCHEMA_INCOMPATIBLE": (
        "stream `{stream}` cannot read records with an incompatible schema: {cause}; they are in the dead letters; "
        "fix the producer or the reader schema, and send them again with `slackwater dead-letters retry`"
    ),
    "SKIP_ROWS": (
        "rows to skip are STREAM/PARTITION:FIRST-LAST, both offsets included; got {got}; try orders/0:1200-1300"
    ),
    "SKIP_ROWS_PARTITION": (
        "rows to skip belong to a partition of their stream; got {got}{hint}; `{stream}` has the partitions {known}; "
        "write the place as dead letters and `slackwater status` show it"
    ),
    "SKIP_ROWS_STREAM": ("rows to skip belong to a stream of the pipeline; got {got}{hint}; the streams are {known}"),
    "SKIP_ROWS_UNMET": (
        "{count} that --skip-rows names are not among those that this run read: {rows}; an earlier run has read them, "
        "or they are beyond the end, or there is no record with such an offset; compare them with what dead letters "
        "and `slackwater status` show"
    ),
    "SOURCE_COLUMN_TYPE": (
        "a column of a typed source must match its declared type; `{column}` of {place} is {found}, and {value} is "
        "not a valid {declared}; declare the column's actual type, or write it as declared"
    ),
    "SPARK_CONNECT": (
        "a job must run alongside its Spark driver; got a Spark Connect session; pass a session from "
        "SparkSession.builder.master(...), or pass `master` and no session"
    ),
    "SPARK_MASTER": (
        "a Spark master must be local[*], local[N], spark://HOST:PORT, yarn or k8s://URL; got `{got}`; correct "
        "--master, or omit it to use all local cores"
    ),
    "SPARK_START": (
        "Spark failed to start on master {master}: {cause}; check the master's address and the settings in "
        "SPARK_CONF_DIR; Java must be version 17 or newer"
    ),
    "SPARK_WITHOUT_RETRIES": (
        "Spark does not retry a task on master {master}: if a worker is killed, the job ends; start the session on "
        "{better}"
    ),
    "SPECULATION": (
        "a batch must not be computed twice at the same time; the Spark session has spark.speculation enabled; start "
        "it with spark.speculation=false"
    ),
    "STATE_DAMAGED": (
        "stored state must not be modified; {what} is damaged: {why}; restore all of the checkpoint from a backup, or "
        "start with a new checkpoint and new output locations"
    ),
    "STATE_OF_ANOTHER_STEP": (
        "state must belong to the step that reads it; step `{step}` found state of `{got}`; start from this "
        "pipeline's checkpoint, or from a new one"
    ),
    "STATE_VERSION": (
        "state must have been written by a version with the same layout; step `{step}` found layout {got} and reads "
        "layout {known}; run the version that wrote the checkpoint, or start with a new one"
    ),
    "STEP_FAILED": (
        "a step must not fail where no row is to blame; step `{step}` failed with {cause}; correct the computation and "
        "restart: the state before this batch is intact"
    ),
    "WORKER_CRASHED": (
        "a Python worker must survive a batch; the workers of batch {batch} ended without an error on every attempt, "
        "as code that crashes or takes more memory than there is makes them; restart, and if the batch fails again, "
        "leave out the rows to blame with --skip-rows STREAM/PARTITION:FIRST-LAST: they become dead letters"
    ),
}
