"""A process as users define it, and its checks against the rows it gets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

import polars as pl

from slackwater.errors import refuse
from slackwater.formats.schemas import SchemaSpec, as_schema
from slackwater.process.base import Process
from slackwater.process.declarations import side_outputs_of, states_of
from slackwater.process.spec import Order, ProcessSpec
from slackwater.state.late_rows import check_late_columns
from slackwater.state.step import ROWS, Port, StepDefinition


@dataclass(frozen=True, kw_only=True, eq=False)
class ProcessDefinition(StepDefinition):
    """A user's own process on the events of a key."""

    process: Process
    output: pl.Schema
    order: Order

    @classmethod
    def of(cls, process: Any, output: SchemaSpec | None, order: Order, *, step: str) -> ProcessDefinition:  # noqa: ANN401  users may pass anything
        """Return what a user asks for, or refuse it."""
        if isinstance(process, type) and issubclass(process, Process):
            raise refuse("PROCESS_CLASS", step=step, cls=process.__qualname__)
        if not isinstance(process, Process):
            raise refuse("NOT_A_PROCESS", step=step, got=repr(process))
        own = type(process)
        if own.on_event is Process.on_event:
            raise refuse("PROCESS_ON_EVENT", cls=own.__qualname__)
        if output is None:
            raise refuse("PROCESS_OUTPUT", step=step)
        if order not in get_args(Order):
            raise refuse("PROCESS_ORDER", step=step, got=repr(order))
        for name in states_of(own):
            if name in vars(process):
                raise refuse("STATE_OVERWRITTEN", cls=own.__qualname__, name=name)
        for declared in (schema := as_schema(output), *side_outputs_of(own).values()):
            if "event_time" in declared:
                raise refuse("PROCESS_OUTPUT_COLUMN", step=step, column="event_time")
        return cls(process=process, output=schema, order=order)

    def resolve(self, name: str, ports: Mapping[str, Port]) -> ProcessSpec:
        """Return the step for rows as `ports` have them, or refuse it."""
        port = ports[ROWS]
        if self.order == "event_time":
            check_late_columns(port, name)
        if "event_time" in port.keys:
            raise refuse("PROCESS_OUTPUT_COLUMN", step=name, column="event_time")
        return ProcessSpec(
            name=name,
            keys=port.keys,
            row_schema=port.schema,
            process=self.process,
            output=self.output,
            order=self.order,
        )
