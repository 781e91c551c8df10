"""Headers of Kafka records, on their way through Spark as JSON."""

from __future__ import annotations

import polars as pl

from slackwater.formats.dead_letters import HEADERS
from slackwater.runtime.worker import kafka_headers


def test_headers_keep_their_order_their_doubles_and_their_nulls() -> None:
    written = pl.Series(['[{"key":"h","value":"MQ=="},{"key":"h","value":null}]', None, "[]"])
    read = kafka_headers(written)
    assert read.dtype == HEADERS
    assert read.to_list() == [[{"name": "h", "value": b"1"}, {"name": "h", "value": None}], None, []]


def test_no_headers_at_all_are_nulls() -> None:
    read = kafka_headers(pl.Series([None, None], dtype=pl.String))
    assert (read.dtype, read.to_list()) == (HEADERS, [None, None])
