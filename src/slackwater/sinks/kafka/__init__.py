"""Kafka as a sink: records of a topic, exactly once by transactions.

Read in this order: `definition` is what users write; `preparing` checks the cluster before the first batch;
`writing` is a slot that is open; `records` turns rows into keys, values and headers; `sending` is the
producer; `marks` is where a slot's last mark is kept; `troubles` says what an error of Kafka's means.
"""

from slackwater.sinks.kafka.definition import KafkaSink, kafka

__all__ = ["KafkaSink", "kafka"]
