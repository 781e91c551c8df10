"""The FRONT part of a port that sends its rows to KEYED uncombined."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import polars as pl

from slackwater.eventtime.lateness import is_late
from slackwater.eventtime.step_time import StepTime
from slackwater.operators.late_rows import late_rows
from slackwater.operators.step import Guard, KeyedStep, PortFront, Taken

PLACE: Final = pl.Schema({"__ts": pl.Int64(), "__part": pl.String(), "__off": pl.Int64(), "__ingested": pl.Int64()})
"""The hidden columns of a row in KEYED: its event time, its place, and when it was ingested."""
STREAM: Final = "__stream"
"""The hidden column with the name of a row's stream, for unions."""
IN_ORDER: Final = ("__ts", "__part", "__off")
"""The columns that sort rows by event time; no two rows of a step are equal in all three."""
_OF_STREAM: Final = "\x00"
_OF_RESULT: Final = "\x02"
_THEN: Final = "\x01"
_DIGITS: Final = 19
"""The number of digits of the largest offset."""


def place_of_result(lineage: Mapping[str, pl.DataType], shown: str) -> pl.Expr:
    """Return the partition of results, which sorts them by `lineage` first: the places of the rows they follow from.

    So results with the same event time are in the same order however their rows were batched. `shown` is the partition
    that dead letters name.
    """
    texts = [
        (pl.col(name) if dtype == pl.String else pl.col(name).cast(pl.String).str.zfill(_DIGITS)).fill_null("")
        for name, dtype in lineage.items()
    ]
    return pl.concat_str(texts, separator=_THEN) + f"{_OF_RESULT}{shown}"


def with_stream(part: str, stream: str) -> pl.Expr:
    """Return the partition of rows of a union: those of two streams may have the same place but for this name."""
    return pl.col(part) + f"{_OF_STREAM}{stream}"


def stream_of(part: str) -> pl.Expr:
    """Return the stream that `with_stream` has added to a partition, or an empty string."""
    return pl.col(part).str.extract(f"{_OF_STREAM}([^{_OF_STREAM}{_OF_RESULT}]*)$").fill_null("")


def without_stream(part: str) -> pl.Expr:
    """Return the partition as the source names it, or, for results, as dead letters name it."""
    named = pl.col(part).str.replace(f"(?s){_OF_STREAM}[^{_OF_STREAM}{_OF_RESULT}]*$", "")
    return named.str.replace(f"(?s)^.*{_OF_RESULT}", "")


class WholeRows(PortFront):
    """Sends rows to the channel named after their port; rows behind the watermark are late.

    A row is late when its event time is before the watermark; with `judges=False`, every row passes. The others are
    counted as on time; with `counts=False`, KEYED counts them. `checked` are expressions that KEYED will evaluate: a
    row on which one of them fails becomes a dead letter here.
    """

    def __init__(
        self,
        step: KeyedStep,
        port: str,
        *,
        judges: bool = True,
        counts: bool = True,
        checked: tuple[pl.Expr, ...] = (),
        **more: pl.Expr,
    ) -> None:
        self.step = step
        self.port = port
        self.judges = judges
        self.counts = counts
        self.checked = checked
        self.more = more
        """The additional columns of this step's late rows."""

    def take(self, rows: pl.DataFrame, time: StepTime, guard: Guard) -> Taken:
        """Split off late rows, and keep the others with their places."""
        if self.checked:
            rows = guard(rows, self._evaluated)
        late = None
        if self.judges and rows.height:
            late_ones = is_late(rows["__ts"] + 1, time)
            if late_ones.any():
                assert self.step.late_types is not None
                types, name = self.step.late_types, self.step.name
                late = late_rows(rows.filter(late_ones), types, name, time.judge_ms, **self.more)
                rows = rows.filter(~late_ones)
        place = [*PLACE, STREAM] if STREAM in rows.columns else [*PLACE]
        kept = rows.select(*self.step.ports[self.port].schema.names(), *place, pl.col("__ts").alias("__end"))
        counts = {"on_time": kept.height if self.counts else 0, "late": 0 if late is None else late.height}
        return Taken(kept=kept, late=late, counts=counts)

    def merge(self, parts: list[pl.DataFrame], time: StepTime) -> dict[str, pl.DataFrame]:  # noqa: ARG002  judged before
        """Concatenate the rows of a file's chunks, in order."""
        return {self.port: pl.concat(parts)}

    def _evaluated(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return `rows`, or fail if a checked expression cannot be evaluated on one of them."""
        rows.select(expression.alias(str(number)) for number, expression in enumerate(self.checked))
        return rows
