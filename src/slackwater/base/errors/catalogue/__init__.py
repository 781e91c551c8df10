"""The catalogue: every error and notice by its stable code, a file for each page of errors.

An error states the rule that was broken, what was found, and what to do. A notice states what is happening.
"""

from __future__ import annotations

from typing import Final

from slackwater.base.errors.catalogue import (
    enrichment,
    formats,
    ground,
    joins,
    kafka,
    patterns,
    postgres_sink,
    sinks,
    sources,
    spark,
    state,
    streams,
    tools,
    windows,
)

_PARTS: Final = (
    enrichment.MESSAGES,
    formats.MESSAGES,
    ground.MESSAGES,
    joins.MESSAGES,
    kafka.MESSAGES,
    patterns.MESSAGES,
    postgres_sink.MESSAGES,
    sinks.MESSAGES,
    sources.MESSAGES,
    spark.MESSAGES,
    state.MESSAGES,
    streams.MESSAGES,
    tools.MESSAGES,
    windows.MESSAGES,
)
CATALOGUE: Final[dict[str, str]] = dict(sorted((code, text) for part in _PARTS for code, text in part.items()))
assert len(CATALOGUE) == sum(map(len, _PARTS)), "a code is in two files"

OF_ANOTHER_VERSION: Final = (
    "a stored form must be one that this version of Slackwater reads; {what} was written by another version: {why}; "
    "use the version that wrote it"
)
"""The message of a code of `VERSIONED` if what is stored is intact, and another version of Slackwater wrote it."""
VERSIONED: Final = ("CHECKPOINT_DAMAGED", "FILES_DAMAGED", "SINK_MARK_DAMAGED", "STATE_DAMAGED")
