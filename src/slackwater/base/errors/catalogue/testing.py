"""Errors of the test harness, sorted by code."""

from __future__ import annotations

from typing import Final

MESSAGES: Final[dict[str, str]] = {
    "NOT_A_PIPELINE": "the harness takes a pipeline; got {got}; pass the sw.Pipeline itself",
    "OUTPUT_UNKNOWN": "an output must exist; got `{name}`{hint}; the pipeline has {known}",
    "STEP_UNKNOWN": "a keyed step must exist; got `{name}`{hint}; the pipeline has {known}",
    "STREAM_UNKNOWN": "rows must be sent to a source stream; got `{name}`{hint}; the pipeline has {known}",
    "TEST_FINISHED": (
        "a finished run takes no more rows; got rows for stream `{stream}` after finish(); send them earlier, or "
        "create a new sw.testing.Harness"
    ),
    "TEST_INPUTS": (
        "`run` takes the rows of each source stream by name; got {got}; write, for example, run(pipeline, "
        "dict(orders=[...]))"
    ),
    "TEST_ROWS": "stream `{stream}` takes a list of {takes}, or a Polars frame; got {got}; see sw.testing.Harness.send",
    "TEST_ROW_TYPES": "rows must match the schema of stream `{stream}`; got {got}; its columns are {known}",
    "TEST_SOURCE_ON_SPARK": (
        "the rows of a test are processed in memory only; got sw.testing.rows_source for stream `{stream}`; read a "
        "log, Kafka, Delta or a DataFrame, or use sw.testing.run(...)"
    ),
    "TEST_TIME": (
        "{what} takes a datetime with a time zone or milliseconds since the epoch; got {got}; try datetime(2026, 1, "
        "1, tzinfo=UTC)"
    ),
    "TEST_WATERMARK_STREAM": "a watermark belongs to a source stream; got `{name}`{hint}; the pipeline has {known}",
}
