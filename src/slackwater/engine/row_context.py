"""What accompanies a frame of rows on its way through row functions, in FRONT and in KEYED."""

from __future__ import annotations

from dataclasses import dataclass, field

import polars as pl

from slackwater.base.times import MIN_MS
from slackwater.connectors.shown_places import ShownPlaces
from slackwater.engine.enrichment.answers import Span
from slackwater.engine.enrichment.enrichment import Enrichment
from slackwater.eventtime.ages import AgeSketch
from slackwater.eventtime.measured_lateness import LatenessSketch
from slackwater.operators.whole_rows import without_stream


@dataclass(kw_only=True)
class RowContext:
    """The origin of a frame of rows, and the dead letters, counts and times collected while processing it."""

    source: str
    partition: str
    now_ms: int
    stream: str = ""
    """The stream or step that the rows come from."""
    dead: list[pl.DataFrame] = field(default_factory=list)
    filtered: int = 0
    """The number of rows that `where`, `map` or an inner table join removed."""
    added: int = 0
    """The number of rows that `map` produced in addition to its input."""
    max_ts_ms: int = MIN_MS
    """The largest usable event time, for the watermark."""
    newest_ms: int = MIN_MS
    """The largest time in the partition: before these rows, and including them once they have been processed."""
    lateness: LatenessSketch | None = None
    """The sketch of the rows' lateness; None for a stream without an event time."""
    ages: AgeSketch | None = None
    """The sketch of the rows' ages; None if their time is the processing time of the batch."""
    ahead: int = 0
    """The number of rows with a time after the processing time of the batch."""
    shown_offset: int = 0
    """What is added to a row's offset to get the one shown in dead letters."""
    places: ShownPlaces | None = None
    """Finds what is shown instead of `source` and offset; in KEYED, where rows of many files meet."""
    span: Span | None = None
    """The range of offsets in the partition that the rows come from."""
    enrichment: Enrichment | None = None
    """Stores and tables; None if rows are only inspected, outside of a job."""

    def shown_place(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return the columns `source`, `partition` and `offset` of rows, as users write them; or null."""
        part = without_stream("__part") if "__part" in rows.columns else pl.lit(None, dtype=pl.String)
        offset = pl.col("__off") + self.shown_offset if "__off" in rows.columns else pl.lit(None, dtype=pl.Int64)
        source = pl.repeat(self.source, pl.len(), dtype=pl.String).alias("source")
        own = rows.select(source, part.alias("partition"), offset.alias("offset"))
        if self.places is None or "__off" not in rows.columns:
            return own
        found = self.places(own["partition"], own["offset"])
        return own.with_columns(found[name].fill_null(own[name]) for name in found.columns)
