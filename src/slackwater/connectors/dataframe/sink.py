"""Any Spark writer: a function that takes a PySpark DataFrame and a batch number."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from slackwater.base.errors import fault, refuse
from slackwater.connectors.sink import EVERYTHING, Change, Mark, Sink, SinkBatch, SinkWriter, Slot, Trial
from slackwater.formats.schemas import check_arrow


@dataclass(frozen=True, kw_only=True, eq=False)
class ForeachBatchSink(Sink):
    """Calls a function with each batch's rows: at least once, or exactly once if the function is idempotent."""

    function: Callable[[Any, int], None]
    takes: frozenset[Change] = EVERYTHING

    def trial(self, slot: Slot) -> Trial:  # noqa: ARG002  the rows carry their types
        """Return the check for rows that Spark cannot represent."""
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
    """Reject a function that cannot be called with two arguments; one without a known signature is accepted."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # mostly functions written in C
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
        """Call the function; after a crash the same rows may be passed again."""
        if batch.spark_frame is None:
            raise fault("FOREACH_BATCH_NEEDS_SPARK", output=self.output)
        self.function(batch.spark_frame(), batch.batch)
