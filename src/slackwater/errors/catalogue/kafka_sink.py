"""What errors and notices of the Kafka sink say, by code, sorted."""

from __future__ import annotations

from typing import Final

MESSAGES: Final[dict[str, str]] = {
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
}
