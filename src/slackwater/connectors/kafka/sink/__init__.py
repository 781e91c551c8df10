"""Kafka as a sink: one record per row in a topic, exactly once by transactions.

Read in this order: `definition` is the sink as users define it; `preparing` checks the cluster before the first batch;
`writing` is an open slot; `records` turns rows into keys, values and headers; `transactions` is the producer; `marks`
stores each slot's last mark; `errors` classifies Kafka's errors.
"""

from slackwater.connectors.kafka.sink.definition import KafkaSink, kafka

__all__ = ["KafkaSink", "kafka"]
