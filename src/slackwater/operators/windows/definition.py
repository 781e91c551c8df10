"""A windowed aggregation as the user defined it, and its validation against the rows it receives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import polars as pl

from slackwater.base.call_sites import blame
from slackwater.base.errors import refuse
from slackwater.base.expressions import check_clear, check_column_name, unknown_column
from slackwater.operators.aggregates.base import Aggregate
from slackwater.operators.aggregates.own import inputs_of, tried
from slackwater.operators.late_rows import check_late_columns
from slackwater.operators.ports import ROWS, Port
from slackwater.operators.step import KeyedStep, StepDefinition
from slackwater.operators.windows.base import Window
from slackwater.operators.windows.spec import Accumulation, Semantics
from slackwater.operators.windows.triggers import Trigger

_RESERVED: Final = ("window_start", "window_end", "pane", "pane_index", "is_retraction", "watermark")
"""The columns of a result other than its key and aggregates."""


@dataclass(frozen=True, kw_only=True, eq=False)
class WindowDefinition(StepDefinition):
    """The windows of a keyed stream, their aggregates, and when they fire."""

    window: Window
    lateness_ms: int
    trigger: Trigger
    accumulation: Accumulation
    semantics: Semantics
    aggregates: Mapping[str, Aggregate]

    def resolve(self, name: str, ports: Mapping[str, Port]) -> KeyedStep:
        """Return the step for the columns of `ports`, or reject the definition."""
        port = ports[ROWS]
        for key in port.keys:
            if key in _RESERVED:
                raise refuse("KEY_TYPE", step=name, key=key, dtype=port.schema[key])
        check_late_columns(port, name, "windows")
        with blame(self):
            self.window.check(port.schema, step=name)
        aggregates = {alias: _checked(name, alias, each, port) for alias, each in self.aggregates.items()}
        with blame(self):
            spec = self.window.specify(replace(self, aggregates=aggregates), name, port)
        assert spec.result_types  # computing it validates the types of all aggregates
        return spec


def _checked(step: str, alias: str, aggregate: Aggregate, port: Port) -> Aggregate:
    check_column_name(alias, place=f" in step `{step}`")
    if alias.startswith("__"):
        raise refuse("RESERVED_COLUMN", name=alias)
    if alias in _RESERVED or alias in port.keys:
        raise refuse("AGGREGATE_NAME_TAKEN", step=step, alias=alias)
    inputs = inputs_of(aggregate, alias, step=step)
    check_clear(port.schema, inputs, step=f"{step}, aggregate {alias}")
    read = {*port.keys}
    for expression in inputs:
        for column in expression.meta.root_names():
            if column and column not in port.schema:  # the empty name is an element of a list
                raise unknown_column(column, port.schema, step=f"{step}, aggregate {alias}")
        read |= {*expression.meta.root_names()}
    return tried(aggregate, alias, pl.Schema({n: t for n, t in port.schema.items() if n in read}), step=step)
