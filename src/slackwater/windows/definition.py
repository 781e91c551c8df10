"""A windowed aggregation as the user defined it, and its validation against the rows it receives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from slackwater.aggregates.base import Aggregate
from slackwater.errors import refuse
from slackwater.ground.call_sites import blame
from slackwater.ground.expressions import check_clear, check_column_name, unknown_column
from slackwater.state.late_rows import check_late_columns
from slackwater.state.step import ROWS, KeyedStep, Port, StepDefinition
from slackwater.triggers import Trigger
from slackwater.windows.base import Window
from slackwater.windows.spec import Accumulation, Semantics

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
        for alias, aggregate in self.aggregates.items():
            _check_aggregate(name, alias, aggregate, port)
        with blame(self):
            spec = self.window.specify(self, name, port)
        assert spec.result_types  # computing it validates the types of all aggregates
        return spec


def _check_aggregate(step: str, alias: str, aggregate: Aggregate, port: Port) -> None:
    check_column_name(alias, place=f" in step `{step}`")
    if alias.startswith("__"):
        raise refuse("RESERVED_COLUMN", name=alias)
    if alias in _RESERVED or alias in port.keys:
        raise refuse("AGGREGATE_NAME_TAKEN", step=step, alias=alias)
    check_clear(port.schema, aggregate.inputs(), step=f"{step}, aggregate {alias}")
    for expression in aggregate.inputs():
        for column in expression.meta.root_names():
            if column and column not in port.schema:  # the empty name is an element of a list
                raise unknown_column(column, port.schema, step=f"{step}, aggregate {alias}")
