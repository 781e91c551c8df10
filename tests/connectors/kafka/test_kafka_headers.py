"""Headers of Kafka records, on their way through Spark as JSON."""

from __future__ import annotations

import polars as pl

import slackwater as sw
from slackwater.connectors.kafka.source.chunks import kafka_headers
from slackwater.formats.dead_letter_columns import HEADERS


def test_headers_keep_their_order_their_doubles_and_their_nulls() -> None:
    written = pl.Series(['[{"key":"h","value":"MQ=="},{"key":"h","value":null}]', None, "[]"])
    read = kafka_headers(written)
    assert read.dtype == HEADERS
    assert read.to_list() == [[{"name": "h", "value": b"1"}, {"name": "h", "value": None}], None, []]


def test_no_headers_at_all_are_nulls() -> None:
    read = kafka_headers(pl.Series([None, None], dtype=pl.String))
    assert (read.dtype, read.to_list()) == (HEADERS, [None, None])


def test_metadata_can_be_tried_in_memory_where_it_is_null_or_counted() -> None:
    source = sw.sources.kafka(
        "h:1", topic="t", metadata=["key", "headers", "topic", "partition", "offset", "timestamp"]
    )
    rows = sw.stream("rows", source).decode(sw.formats.json("id long"))
    harness = sw.testing.Harness(sw.Pipeline("p", rows.to(sw.sinks.memory()), rows.dead_letters.to(sw.sinks.memory())))
    harness.send("rows", [{"id": 1}, "{"], partition="t/3")
    harness.run_batch()
    [row] = harness.output(rows).rows(named=True)
    assert (row["kafka_key"], row["kafka_headers"]) == (None, None)
    assert (row["kafka_topic"], row["kafka_partition"], row["kafka_offset"]) == ("t", 3, 0)
    assert harness.output(rows.dead_letters)["offset"].to_list() == [1]
