"""The pipeline of a conformance case, by its operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol

import polars as pl

from slackwater.pipeline import Pipeline
from slackwater.sinks import MemorySink
from slackwater.sources import Source
from slackwater.streams import Results
from slackwater.testing.cases import Case, CasePipeline, Event, Row
from slackwater.testing.dedup_cases import DedupPipeline
from slackwater.testing.harness import rows_source
from slackwater.testing.join_cases import JoinPipeline


class ReplayedPipeline(Protocol):
    """A case as a pipeline: rows in as the case writes them, results and late rows out the same way."""

    pipeline: Pipeline
    kept: tuple[MemorySink, MemorySink, MemorySink]
    """Results, late rows and dead letters."""

    @property
    def results(self) -> Results:
        """What the case looks at."""

    def rows(self, events: Sequence[Event]) -> list[Row]:
        """Return `events` as rows of the source."""

    def shown(self, results: pl.DataFrame) -> list[Row]:
        """Return result rows as the case writes them."""

    def late(self, rows: pl.DataFrame) -> list[Row]:
        """Return rows of the late output as the case writes them."""


_PIPELINES: Final[dict[str, Callable[[Case, Callable[[pl.Schema], Source]], ReplayedPipeline]]] = {
    "dedup": DedupPipeline,
    "interval_join": JoinPipeline,
    "temporal_join": JoinPipeline,
    "window_agg": CasePipeline,
}


def case_pipeline(case: Case, source: Callable[[pl.Schema], Source] = rows_source) -> ReplayedPipeline:
    """Return the pipeline of `case`, which reads from what `source` makes of its columns."""
    return _PIPELINES[case["operator"]](case, source)
