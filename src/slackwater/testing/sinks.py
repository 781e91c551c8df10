"""Testing sinks without Spark: batches are delivered by a job's protocol, and redelivered as after a crash."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import polars as pl

from slackwater.connectors.delivery import Expected, OpenSlot
from slackwater.connectors.sink import Mark, Sink, SinkBatch, Slot
from slackwater.operators.identity import Identity


@dataclass(kw_only=True)
class SinkHarness:
    """Delivers frames to a sink as a job would: `with SinkHarness(sink=..., schema=...) as job: job.deliver(frame)`.

    To simulate a redelivery after a crash, pass the batch number as `batch=`, after `restart()` if the process died
    too. Another `incarnation` is another run; `token` distinguishes copies of a checkpoint.
    """

    sink: Sink
    schema: pl.Schema
    identity: Identity | None = None
    """The identity of the rows, if they stand for the results of windows."""
    pipeline: str = "test"
    output: str = "results"
    incarnation: str = "first"
    slot: int = 0
    token: str = "token"  # noqa: S105  not a secret
    take_over: bool = False
    marked: list[int] = field(default_factory=list)
    """The batches that this run has recorded as delivered."""
    _open_slot: OpenSlot | None = None
    _behind: int | None = None

    def deliver(self, *frames: pl.DataFrame, batch: int | None = None) -> None:
        """Deliver the rows as the next batch, or as batch number `batch`."""
        number = batch if batch is not None else self.marked[-1] + 1 if self.marked else 0
        expected = self._expected(number)
        rows = SinkBatch(
            batch=number,
            schema=self.schema,
            rows=sum(frame.height for frame in frames),
            frames=lambda: iter(frames),
        )
        open_slot = self.start(number)
        open_slot.deliver(rows, expected)
        self._behind = open_slot.behind()
        self.marked = [*(noted for noted in self.marked if noted < number), number]

    def start(self, batch: int = 0) -> OpenSlot:
        """Prepare and open the sink, as a job does before its first batch."""
        if self._open_slot is None:
            slot = Slot(
                pipeline=self.pipeline,
                output=self.output,
                schema=self.schema,
                identity=self.identity,
                number=self.slot,
            )
            open_slot = OpenSlot(sink=self.sink, slot=slot)
            open_slot.check(self._expected(batch))
            self._open_slot = open_slot
        return self._open_slot

    def restart(self) -> Self:
        """Abandon the open sink without closing it, like a killed process."""
        self._open_slot = None
        return self

    def close(self) -> None:
        """Close the sink."""
        if self._open_slot is not None:
            self._open_slot.close()

    def _expected(self, batch: int) -> Expected:
        before = [noted for noted in self.marked if noted < batch]
        mark = Mark(incarnation=self.incarnation, batch=batch, token=f"{self.token}-{batch}")
        last = before[-1] if before else None
        return Expected(mark=mark, before=last, takes_over=self.take_over, behind=self._behind)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
