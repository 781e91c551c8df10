"""Errors of Kafka: connections, sources, sinks and tools, sorted by code."""

from __future__ import annotations

from typing import Final

MESSAGES: Final[dict[str, str]] = {
    "BROKER_FAILED": (
        "this command needs a local Kafka broker; the broker failed to start, and its log {log} ends with: {ending}; "
        "fix the cause, or delete the folder to start with an empty broker"
    ),
    "BROKER_PORT": (
        "the broker needs a free port; {port} is in use; stop the process that listens on it, or choose another port "
        "with `--port`"
    ),
    "EXPORT_FOLDER": (
        "a topic is exported to an empty folder; `{folder}` already contains {count}; choose another folder, or "
        "append to this one with `--append`"
    ),
    "KAFKA_ADDRESS": (
        "a Kafka address may have tls, ca, certificate, key, key_password, user, password and mechanism after `?`, "
        "with passwords given as names of secrets; {got}; write, for example, "
        "'localhost:9093?ca=ca.pem&user=orders&password=KAFKA_PASSWORD', with the password in that variable"
    ),
    "KAFKA_CLIENT_MISSING": (
        "reading Kafka's lag, groups and topics requires the package confluent-kafka; it is not installed; run `pip "
        "install 'slackwater[kafka]'`"
    ),
    "KAFKA_NO_TOPIC": (
        "a topic must exist before it is read or written; {servers} has no topic `{topic}`{near}; correct the name, "
        "or create it with `slackwater kafka topic {topic} --servers {servers}`"
    ),
    "KAFKA_PEM": "TLS requires its PEM files on the driver; got `{path}`: {cause}; check the path and its permissions",
    "KAFKA_REFUSED": (
        "Kafka must accept the request; {servers} replied: {cause}; check the name, the servers and your permissions"
    ),
    "KAFKA_SASL_MECHANISM": (
        "the SASL mechanism must be one of {known}; got {got}; use one of these, or TLS with a client certificate"
    ),
    "KAFKA_SECURITY": "`{what}` takes the result of sw.kafka.{what}(...); got {got}; write {what}=sw.kafka.{what}(...)",
    "KAFKA_SERVERS": 'Kafka servers must be given as "host:port,host:port"; got {got}; try "localhost:9092"',
    "KAFKA_SINK_CHANGES": (
        "a retraction is either a row of its own or a tombstone; got both `changelog` and `tombstones`; choose one"
    ),
    "KAFKA_SINK_COLUMN": (
        "`{what}` of a Kafka sink must name columns of its output; output `{output}` has no {got}{hint}; it has {known}"
    ),
    "KAFKA_SINK_CREATE": (
        "`create` is the number of partitions for a missing topic; got {got}; give a positive integer, or omit it to "
        "fail if the topic is missing"
    ),
    "KAFKA_SINK_DENIED": (
        "a Kafka sink needs permission to write; {servers} {what}, for output `{output}` to topic `{topic}`; grant "
        "the user WRITE and DESCRIBE on the topic, and for exactly once WRITE and DESCRIBE on its transactional ids "
        "and READ, WRITE, DESCRIBE and CREATE on its marks topic; or check the password"
    ),
    "KAFKA_SINK_HEADERS": (
        "`headers` must be a mapping of names to columns or Polars expressions; got {got}; try "
        'headers=dict(customer="customer", region=pl.lit("eu"))'
    ),
    "KAFKA_SINK_KEY": (
        '`key` of a Kafka sink must be a column or a list of distinct columns; got {got}; try key="customer"'
    ),
    "KAFKA_SINK_MARKS": (
        "`marks_topic` must be a separate topic, where an exactly-once sink keeps its marks; got {got}; omit it to "
        "use the default"
    ),
    "KAFKA_SINK_MARKS_POLICY": (
        "a marks topic must be compacted; `{topic}` has cleanup.policy={got}; set it to compact, or choose another "
        "`marks_topic`"
    ),
    "KAFKA_SINK_NO_ANSWER": (
        "a broker must reply to the client; {servers} accepts connections but does not reply, for output `{output}`: "
        "{cause}; check that `tls` and `sasl` match that listener (here: {security}), then the port and the broker's "
        "advertised.listeners; if all of them are right, restart when the broker is up"
    ),
    "KAFKA_SINK_OPTION": (
        "`options` are librdkafka producer settings, except those that the delivery guarantee depends on; got {got}; "
        "{why}"
    ),
    "KAFKA_SINK_PARTITIONER": (
        "`partitioner` must be one of {known}; got {got}; omit it to partition as Java clients do"
    ),
    "KAFKA_SINK_RECORD": (
        "a topic must accept the records sent to it; topic `{topic}` at {servers} rejected one of output `{output}`: "
        "{cause}; a compacted topic needs `key`, without nulls"
    ),
    "KAFKA_SINK_SETTING": (
        "`options` must be valid librdkafka settings; librdkafka replied: {cause}; correct the name or the value"
    ),
    "KAFKA_SINK_TIMEOUT": (
        "a transaction timeout must not exceed the broker's maximum; got transaction.timeout.ms={got}, and {servers} "
        "allows {limit}; lower it in `options`, or raise the broker's transaction.max.timeout.ms"
    ),
    "KAFKA_SINK_TOMBSTONE_KEY": (
        "a tombstone needs a key; got tombstones=True without `key`; name the columns that identify a result, such "
        'as key=["customer", "window_start"]'
    ),
    "KAFKA_SINK_TOO_LARGE": (
        "a record must not exceed Kafka's size limit; one of output `{output}` for topic `{topic}` is larger than "
        "{limit}; raise {remedy}, or make the row smaller"
    ),
    "KAFKA_SINK_TOO_SLOW": (
        "a batch must be written before its transaction times out; output `{output}` took {taken} for topic `{topic}`, "
        "and the broker aborted the transaction after {limit}, so no record of the batch is visible; use smaller "
        "batches, or raise transaction.timeout.ms in `options`"
    ),
    "KAFKA_SINK_TOPIC": (
        "`{what}` of a Kafka sink must consist of at most 249 letters, digits, `.`, `_` and `-`; got {got}; name one "
        "topic"
    ),
    "KAFKA_SINK_TOPIC_GONE": (
        "the topic of a sink must not be deleted while its checkpoint is in use; topic `{topic}`, which this run has "
        "written to, no longer exists at {servers}; correct `servers` if they belong to another cluster, start with "
        "a new checkpoint to write everything again, or restart with --take-over to continue in a new topic"
    ),
    "KAFKA_SINK_TOPIC_MISSING": (
        "the topic of a sink must exist; {servers} has no topic `{topic}`{hint}; create it, correct the name, or "
        "have it created with create=<number of partitions>"
    ),
    "KAFKA_SINK_VALUE": (
        '`value` of a Kafka sink must be "json" or a format that can encode; got {got}; omit it to write JSON, or '
        "try sw.formats.avro(...)"
    ),
    "KAFKA_TLS_PAIR": (
        "a client certificate and its key must be given together; got only `{got}`; give both, or neither"
    ),
    "KAFKA_UNREACHABLE": (
        "the Kafka cluster must be reachable; {servers} does not respond: {cause}; check servers, network, TLS and "
        "SASL, or start a local broker with `slackwater kafka up`"
    ),
    "KAFKA_WAITING": "no broker at {servers} responds; retrying (Ctrl-C stops)",
    "PLAY_EMPTY": (
        "a log must contain files to be played; `{path}` contains none; check the path, or write a log with "
        "slackwater.connectors.log.writing"
    ),
    "PLAY_KEY": (
        "the field of the key must be in the records; none of the first records of `{path}` has `{key}`{hint}; choose "
        "one of {known}, or omit --key"
    ),
    "PLAY_UNDELIVERED": (
        "every record of a log must reach its topic; {delivered} of {folder} did, then {servers} failed: {cause}; "
        "fix the cause and play the log into a new topic, because this one already has those records"
    ),
}
