"""The catalogue: every error and notice by its stable code, one file per part of the system.

An error states the rule that was broken, what was found, and what to do. A notice states what is happening.
"""

from __future__ import annotations

from typing import Final

from slackwater.base.errors.catalogue import (
    checkpoint,
    enrichment,
    formats,
    ground,
    joins,
    kafka,
    kafka_sink,
    metrics,
    patterns,
    postgres_sink,
    simulator,
    sinks,
    sources,
    spark,
    state,
    state_reading,
    streams,
    testing,
    tools,
    windows,
)

_PARTS: Final = (
    checkpoint.MESSAGES,
    enrichment.MESSAGES,
    formats.MESSAGES,
    ground.MESSAGES,
    joins.MESSAGES,
    kafka.MESSAGES,
    kafka_sink.MESSAGES,
    metrics.MESSAGES,
    patterns.MESSAGES,
    postgres_sink.MESSAGES,
    simulator.MESSAGES,
    sinks.MESSAGES,
    sources.MESSAGES,
    spark.MESSAGES,
    state.MESSAGES,
    state_reading.MESSAGES,
    streams.MESSAGES,
    testing.MESSAGES,
    tools.MESSAGES,
    windows.MESSAGES,
)
CATALOGUE: Final[dict[str, str]] = dict(sorted((code, text) for part in _PARTS for code, text in part.items()))
assert len(CATALOGUE) == sum(map(len, _PARTS)), "a code is in two files"
