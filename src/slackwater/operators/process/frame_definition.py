"""A process on frames as the user defined it, and its validation against the rows it receives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from slackwater.base.durations import Forever, duration_ms
from slackwater.base.errors import refuse
from slackwater.formats.schemas import as_schema
from slackwater.operators.late_rows import check_late_columns
from slackwater.operators.ports import ROWS, Port
from slackwater.operators.process.base import FrameProcess
from slackwater.operators.process.declarations import declared_on_object, side_outputs_of, states_of
from slackwater.operators.process.frame_spec import FrameSpec
from slackwater.operators.process.methods import check_method
from slackwater.operators.process.state import NEVER_MS, Clock
from slackwater.operators.process.step import Order, check_added
from slackwater.operators.step import StepDefinition


@dataclass(frozen=True, kw_only=True, eq=False)
class FrameDefinition(StepDefinition):
    """A user-defined process on frames."""

    process: FrameProcess
    output: pl.Schema
    adds: bool
    order: Order
    state: pl.Schema
    ttl_ms: int
    clock: Clock

    @classmethod
    def of(cls, process: FrameProcess, output: pl.Schema, order: Order, *, adds: bool, step: str) -> FrameDefinition:
        """Return the definition, or reject an invalid class."""
        own = type(process)
        place = f"class {own.__qualname__}"
        if own.on_rows is FrameProcess.on_rows:
            raise refuse("PROCESS_ON_ROWS", cls=own.__qualname__)
        check_method(process, "on_rows")
        events = [name for name in ("on_event", "on_timer") if hasattr(own, name)]
        for name in (*events, *states_of(own), *side_outputs_of(own), *declared_on_object(process)):
            raise refuse("PROCESS_OF_FRAMES", cls=own.__qualname__, name=name)
        if process.state is None:
            raise refuse("PROCESS_STATE", cls=own.__qualname__)
        if process.ttl is None:
            raise refuse("STATE_TTL", call=place)
        if process.clock not in ("event", "processing"):
            raise refuse("STATE_CLOCK", call=place, got=repr(process.clock))
        if "event_time" in output:
            raise refuse("PROCESS_OUTPUT_COLUMN", step=step, column="event_time")
        return cls(
            process=process,
            output=output,
            adds=adds,
            order=order,
            state=as_schema(process.state),
            ttl_ms=NEVER_MS if isinstance(process.ttl, Forever) else duration_ms(process.ttl, what="`ttl`"),
            clock=process.clock,
        )

    def resolve(self, name: str, ports: Mapping[str, Port]) -> FrameSpec:
        """Return the step for the columns of `ports`, or reject the definition."""
        port = ports[ROWS]
        if "event_time" in port.keys:
            raise refuse("PROCESS_OUTPUT_COLUMN", step=name, column="event_time")
        if "event_time" in port.schema and "event_time" not in port.own:
            raise refuse("PROCESS_ROWS_COLUMN", step=name)
        if self.order == "event_time":
            check_late_columns(port, name)
        if self.adds:
            check_added(name, self.output, port)
        for key in port.keys:
            if key in self.state:
                raise refuse("PROCESS_STATE_COLUMN", step=name, column=key)
            if self.output.get(key, port.schema[key]) != port.schema[key]:
                raise refuse("PROCESS_OUTPUT_COLUMN", step=name, column=key)
        return FrameSpec(
            name=name,
            keys=port.keys,
            row_schema=port.schema,
            process=self.process,
            output=self.output,
            adds=self.adds,
            order=self.order,
            streams=port.streams,
            own=port.own,
            state=self.state,
            ttl_ms=self.ttl_ms,
            clock=self.clock,
        )
