"""How long Spark took for the parts of a batch, by its own account."""

from __future__ import annotations

from typing import Any


def last_times_s(query: Any) -> dict[str, float]:  # noqa: ANN401  PySpark's StreamingQuery, and its private parts
    """Return the seconds of each part of the last batch that Spark has reported on: during a batch, the one before.

    In PySpark's own `lastProgress` every field is a call to the JVM of its own; these are three.
    """
    progress = None if query is None else query._jsq.lastProgress()  # noqa: SLF001  see above
    return {} if progress is None else parsed_times_s(progress.durationMs().toString())


def parsed_times_s(text: str) -> dict[str, float]:
    """Return what Java shows of a map from names to milliseconds, "{addBatch=12, walCommit=3}", in seconds."""
    pairs = (part.partition("=") for part in text.strip("{}").split(", ") if part)
    return {name: int(milliseconds) / 1_000 for name, _, milliseconds in pairs if milliseconds.isdigit()}
