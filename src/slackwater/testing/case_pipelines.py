"""Choosing the pipeline of a conformance case by its operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol

import polars as pl

from slackwater.base.times import MAX_MS
from slackwater.pipeline import Pipeline
from slackwater.plan.streams import Results
from slackwater.sinks import MemorySink
from slackwater.sources import Source
from slackwater.testing.cases import Case, CasePipeline, Event, Row
from slackwater.testing.dedup_cases import DedupPipeline
from slackwater.testing.harness import rows_source
from slackwater.testing.join_cases import JoinPipeline

_END_OF_TIME_MS: Final = 10**18
"""The end of time in the cases; Slackwater's own is slightly later."""


class ReplayedPipeline(Protocol):
    """A case as a pipeline: input rows, results and late rows all have the form used in the case file."""

    pipeline: Pipeline
    kept: tuple[MemorySink, MemorySink, MemorySink]
    """The sinks of the results, late rows and dead letters."""

    @property
    def results(self) -> Results:
        """The results that the case checks."""

    def rows(self, events: Sequence[Event]) -> list[Row]:
        """Return `events` as rows of the source."""

    def shown(self, results: pl.DataFrame) -> list[Row]:
        """Return result rows in the form of the case file."""

    def late(self, rows: pl.DataFrame) -> list[Row]:
        """Return rows of the late output in the form of the case file."""


_PIPELINES: Final[dict[str, Callable[[Case, Callable[[pl.Schema], Source]], ReplayedPipeline]]] = {
    "dedup": DedupPipeline,
    "interval_join": JoinPipeline,
    "temporal_join": JoinPipeline,
    "window_agg": CasePipeline,
}


def case_pipeline(case: Case, source: Callable[[pl.Schema], Source] = rows_source) -> ReplayedPipeline:
    """Return the pipeline of `case`, which reads from the source that `source` creates for its columns."""
    return _PIPELINES[case["operator"]](case, source)


def stream_watermark(replayed: ReplayedPipeline, watermark_ms: int) -> int:
    """Return the watermark of the stream at which the step works by the watermark `watermark_ms` of its case.

    To the cases, every window is complete when the watermark reaches its end. A session that takes a row exactly at
    its end is complete when the watermark is past it.
    """
    if watermark_ms >= _END_OF_TIME_MS:
        return MAX_MS
    return watermark_ms + replayed.pipeline.plan().by_name[replayed.results.name].spec.trails_ms
