"""A process on single events as the user defined it, and which kind of process an object is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

import polars as pl

from slackwater.base.errors import refuse
from slackwater.formats.schemas import SchemaSpec, as_schema
from slackwater.operators.late_rows import check_late_columns
from slackwater.operators.ports import ROWS, Port
from slackwater.operators.process.base import FrameProcess, Process
from slackwater.operators.process.declarations import declared_on_object, side_outputs_of, states_of
from slackwater.operators.process.frame_definition import FrameDefinition
from slackwater.operators.process.methods import check_method
from slackwater.operators.process.spec import ProcessSpec
from slackwater.operators.process.step import Order, check_added
from slackwater.operators.step import StepDefinition


@dataclass(frozen=True, kw_only=True, eq=False)
class ProcessDefinition(StepDefinition):
    """A user-defined process on single events."""

    process: Process
    output: pl.Schema
    adds: bool
    order: Order

    @classmethod
    def of(cls, process: Process, output: pl.Schema, order: Order, *, adds: bool, step: str) -> ProcessDefinition:
        """Return the definition, or reject an invalid class."""
        own = type(process)
        if own.on_event is Process.on_event:
            raise refuse("PROCESS_ON_EVENT", cls=own.__qualname__)
        check_method(process, "on_event")
        if own.on_timer is not Process.on_timer:
            check_method(process, "on_timer")
        for name in states_of(own):
            if name in vars(process):
                raise refuse("STATE_OVERWRITTEN", cls=own.__qualname__, name=name)
        for name in declared_on_object(process):
            raise refuse("STATE_ON_OBJECT", cls=own.__qualname__, name=name)
        for declared in (output, *side_outputs_of(own).values()):
            if "event_time" in declared:
                raise refuse("PROCESS_OUTPUT_COLUMN", step=step, column="event_time")
        return cls(process=process, output=output, adds=adds, order=order)

    def resolve(self, name: str, ports: Mapping[str, Port]) -> ProcessSpec:
        """Return the step for the columns of `ports`, or reject the definition."""
        port = ports[ROWS]
        if self.order == "event_time":
            check_late_columns(port, name)
        if "event_time" in port.keys:
            raise refuse("PROCESS_OUTPUT_COLUMN", step=name, column="event_time")
        if self.adds:
            check_added(name, self.output, port)
        return ProcessSpec(
            name=name,
            keys=port.keys,
            row_schema=port.schema,
            process=self.process,
            output=self.output,
            adds=self.adds,
            order=self.order,
            streams=port.streams,
            own=port.own,
        )


def process_definition(
    process: Any,  # noqa: ANN401  users may pass anything
    output: SchemaSpec | None,
    adds: SchemaSpec | None,
    order: Order,
    *,
    step: str,
) -> StepDefinition:
    """Return the definition for a user's object, on single events or on frames, or reject it."""
    if isinstance(process, type) and issubclass(process, Process | FrameProcess):
        raise refuse("PROCESS_CLASS", step=step, cls=process.__qualname__)
    if not isinstance(process, Process | FrameProcess):
        raise refuse("NOT_A_PROCESS", step=step, got=repr(process))
    if order not in get_args(Order):
        raise refuse("PROCESS_ORDER", step=step, got=repr(order))
    if output is not None and adds is not None:
        raise refuse("PROCESS_OUTPUT_TWICE", step=step)
    given = adds if output is None else output
    if given is None:
        raise refuse("PROCESS_OUTPUT", step=step)
    if isinstance(process, FrameProcess):
        return FrameDefinition.of(process, as_schema(given), order, adds=output is None, step=step)
    return ProcessDefinition.of(process, as_schema(given), order, adds=output is None, step=step)
