"""How long the parts of a batch took, as reported by Spark."""

from __future__ import annotations

from typing import Any


def last_times_s(query: Any) -> dict[str, float]:  # noqa: ANN401  PySpark's StreamingQuery, and its private parts
    """Return the seconds of each part of the last batch that Spark has reported: during a batch, the previous one.

    PySpark's own `lastProgress` calls the JVM once per field; this takes three calls.
    """
    progress = None if query is None else query._jsq.lastProgress()  # noqa: SLF001  see above
    return {} if progress is None else parsed_times_s(progress.durationMs().toString())


def parsed_times_s(text: str) -> dict[str, float]:
    """Parse Java's text of a map from names to milliseconds, "{addBatch=12, walCommit=3}", into seconds."""
    pairs = (part.partition("=") for part in text.strip("{}").split(", ") if part)
    return {name: int(milliseconds) / 1_000 for name, _, milliseconds in pairs if milliseconds.isdigit()}
