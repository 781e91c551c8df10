"""Any Spark writer: a function of a PySpark DataFrame and a batch number."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from slackwater.errors import fault, refuse
from slackwater.formats.schemas import check_arrow
from slackwater.sinks.base import EVERYTHING, Change, Mark, Sink, SinkBatch, SinkWriter, Slot, Trial


@dataclass(frozen=True, kw_only=True, eq=False)
class ForeachBatchSink(Sink):
    """Calls a function with each batch's rows; at least once, unless the function itself is idempotent."""

    function: Callable[[Any, int], None]
    takes: frozenset[Change] = EVERYTHING

    def trial(self, slot: Slot) -> Trial:  # noqa: ARG002  the types are in the rows
        """Return what finds rows that Spark cannot take."""
        return Trial(rule="arrow", check=check_arrow)

    def open(self, slot: Slot) -> SinkWriter:
        """Open the function for one output."""
        return _Caller(function=self.function, output=slot.output)

    def __str__(self) -> str:
        return f"foreach_batch {getattr(self.function, '__name__', 'function')}"


def foreach_batch(function: Callable[[Any, int], None]) -> ForeachBatchSink:
    """Call `function(dataframe, batch)` for every batch with rows, like Spark's own `foreachBatch`."""
    if not callable(function):
        raise refuse("FOREACH_BATCH_FUNCTION", got=repr(function))
    _check_signature(function)
    return ForeachBatchSink(function=function)


def _check_signature(function: Callable[..., Any]) -> None:
    """Refuse a function that cannot be called as it will be; one that does not tell its parameters is tried."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # written in C, mostly
    try:
        signature.bind(None, 0)
    except TypeError as error:
        name = getattr(function, "__name__", type(function).__name__)
        raise refuse("FOREACH_BATCH_SIGNATURE", got=f"`{name}{signature}`") from error


@dataclass(kw_only=True)
class _Caller(SinkWriter):
    function: Callable[[Any, int], None]
    output: str

    def write(self, batch: SinkBatch, mark: Mark | None) -> None:  # noqa: ARG002  keeps no marks
        """Call the function; the same rows may come again after a crash."""
        if batch.spark_frame is None:
            raise fault("FOREACH_BATCH_NEEDS_SPARK", output=self.output)
        self.function(batch.spark_frame(), batch.batch)
