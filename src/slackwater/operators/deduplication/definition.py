"""A deduplication as the user defined it, and its validation against the rows it receives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import get_args

from slackwater.base.durations import Duration, Forever, duration_ms
from slackwater.base.errors import refuse
from slackwater.base.times import MAX_MS
from slackwater.operators.deduplication.spec import DeduplicateSpec, Keep
from slackwater.operators.late_rows import Late, check_late_columns
from slackwater.operators.ports import ROWS, Port
from slackwater.operators.step import StepDefinition


@dataclass(frozen=True, kw_only=True, eq=False)
class DeduplicateDefinition(StepDefinition):
    """A deduplication as the user defined it: which row of a key is kept, and how long the key is remembered."""

    within_ms: int
    keep: Keep
    late: Late

    @classmethod
    def of(cls, within: Duration | Forever | None, keep: Keep, late: Late, *, step: str) -> DeduplicateDefinition:
        """Return the definition, or reject invalid options."""
        if within is None:
            raise refuse("DEDUPLICATE_WITHIN", step=step)
        if keep not in get_args(Keep):
            raise refuse("DEDUPLICATE_KEEP", step=step, got=repr(keep))
        if late not in get_args(Late):
            raise refuse("DEDUPLICATE_LATE", step=step, got=repr(late))
        within_ms = MAX_MS if isinstance(within, Forever) else duration_ms(within, what="`within`", least_ms=0)
        return cls(within_ms=within_ms, keep=keep, late=late)

    def resolve(self, name: str, ports: Mapping[str, Port]) -> DeduplicateSpec:
        """Return the step for the columns of `ports`, or reject the definition."""
        port = ports[ROWS]
        check_late_columns(port, name)
        if self.keep == "last_by_time" and "is_retraction" in port.schema and "is_retraction" not in port.own:
            raise refuse("RETRACTION_COLUMN_TAKEN", step=name)
        return DeduplicateSpec(
            name=name,
            keys=port.keys,
            row_schema=port.schema,
            keep=self.keep,
            within_ms=self.within_ms,
            late=self.late,
        )
