"""Bad definitions of sources in Kafka."""

# ruff: noqa: E501  one definition a line, with its code and words

from __future__ import annotations

from datetime import datetime

from tests.plan.bad_definition import Bad, built, sw

KAFKA = [
    Bad("servers as a URL", "KAFKA_SERVERS", "got 'kafka://localhost:9092'", lambda: sw.sinks.kafka("kafka://localhost:9092", "t")),
    Bad("a promise with a dash", "SINK_OPTION", "got 'exactly-once' (did you mean `exactly_once`?)", lambda: sw.sinks.kafka("localhost:9092", "t", delivery="exactly-once")),
    Bad("servers without a port", "KAFKA_SERVERS", 'got \'localhost\'; try "localhost:9092"', lambda: sw.sources.kafka("localhost", topic="t")),
    Bad("no topic", "KAFKA_TOPICS", "got none of them", lambda: sw.sources.kafka("h:1")),
    Bad("a topic and a pattern", "KAFKA_TOPICS", "got `topic` and `pattern`; give exactly one", lambda: sw.sources.kafka("h:1", topic="t", pattern="t.*")),
    Bad("a topic that is a pattern", "KAFKA_TOPIC_NAME", "got 'orders.*'; use `pattern`", lambda: sw.sources.kafka("h:1", topic="orders.*")),
    Bad("a start in words", "KAFKA_START", "got 'yesterday'", lambda: sw.sources.kafka("h:1", topic="t", start="yesterday")),
    Bad("a start without a zone", "KAFKA_START", "a datetime with a time zone", lambda: sw.sources.kafka("h:1", topic="t", start=datetime(2026, 1, 1))),  # noqa: DTZ001  the point
    Bad("a start that is a number", "KAFKA_START", "got 5", lambda: sw.sources.kafka("h:1", topic="t", start=5)),
    Bad("offsets without a topic", "KAFKA_OFFSETS", 'got 0: 1; write, for example, start={"orders": {0: 120, 1: 95}}', lambda: sw.sources.kafka("h:1", topic="t", start={0: 1})),
    Bad("offsets of nothing", "KAFKA_OFFSETS", "got {}", lambda: sw.sources.kafka("h:1", topic="t", start={})),
    Bad("an offset below zero", "KAFKA_OFFSETS", "non-negative integers, by topic and partition; got 't': {0: -5}", lambda: sw.sources.kafka("h:1", topic="t", start={"t": {0: -5}})),
    Bad("a partition in words", "KAFKA_OFFSETS", "got 't': {'0': 5}", lambda: sw.sources.kafka("h:1", topic="t", start={"t": {"0": 5}})),
    Bad("offsets of another topic", "KAFKA_OFFSETS_TOPIC", "got `order` (did you mean `orders`?)", lambda: sw.sources.kafka("h:1", topic="orders", start={"order": {0: 5}})),
    Bad("offsets beside the pattern", "KAFKA_OFFSETS_TOPIC", "got `clicks`", lambda: sw.sources.kafka("h:1", pattern="orders.*", start={"orders-eu": {0: 5}, "clicks": {0: 5}})),
    Bad("a pattern that is none", "KAFKA_PATTERN", "got '[': unterminated character set", lambda: sw.sources.kafka("h:1", pattern="[")),
    Bad("a pattern that only Java reads", "KAFKA_PATTERN", "bad escape \\p at position 0; correct it, with character classes written out", lambda: sw.sources.kafka("h:1", pattern=r"\p{Lower}+")),
    Bad("a pattern that only Python reads", "KAFKA_PATTERN", "Java has no (?P", lambda: sw.sources.kafka("h:1", pattern="(?P<a>x)")),
    Bad("a pattern that is a number", "KAFKA_PATTERN", "got 5", lambda: sw.sources.kafka("h:1", pattern=5)),
    Bad("unknown metadata", "KAFKA_METADATA", "got 'colour'", lambda: sw.sources.kafka("h:1", topic="t", metadata=["key", "colour"])),
    Bad("a third way with lost records", "KAFKA_ON_LOSS", "got 'weep'", lambda: sw.sources.kafka("h:1", topic="t", on_data_loss="weep")),
    Bad("no records a batch", "RATE_LIMIT", "`max_records_per_batch` must be", lambda: sw.sources.kafka("h:1", topic="t", max_records_per_batch=0)),
    Bad("metadata with a field's name", "METADATA_COLUMN_TAKEN", "got `kafka_key` in both", lambda: built(sw.stream("purchases", sw.sources.kafka("h:1", topic="t", metadata="key")).decode(sw.formats.json("kafka_key string")))),
]  # fmt: skip
