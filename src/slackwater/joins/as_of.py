"""As-of joins: each row meets the version of its key that is valid at the row's time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import polars as pl

from slackwater.errors import refuse
from slackwater.formats.undecoded import Undecoded
from slackwater.ground.durations import Duration, Forever, duration_ms, render_ms
from slackwater.ground.expressions import Expression, as_expr, as_written, check_predicate
from slackwater.joins.as_of_operator import AsOfOperator
from slackwater.joins.columns import LEFT, RIGHT, SideName, join_columns
from slackwater.joins.front import JoinFront
from slackwater.joins.kept_rows import Kept
from slackwater.joins.step import How, JoinStep, checked_how, checked_late, checked_suffixes
from slackwater.joins.versions import GONE
from slackwater.state.late_rows import Late, check_late_columns, late_schema
from slackwater.state.step import Operator, Port, PortFront, StepDefinition

FOREVER_MS: Final = 1 << 59
"""Longer than any two times are apart, and so short that the end of time is after it."""


@dataclass(frozen=True, kw_only=True)
class AsOfJoin(JoinStep):
    """A join of rows with the versions that are valid at their times."""

    ttl_ms: int
    deleted: pl.Expr | None = None
    said: str = ""
    """What ends a version, as the user wrote it."""

    @property
    def late_types(self) -> pl.Schema | None:
        """The columns of the left side: versions are never late."""
        return late_schema(self.left.schema) if self.late == "output" else None

    def as_late(self, side: SideName, rows: pl.DataFrame) -> pl.DataFrame:  # noqa: ARG002  it is the left one
        """Return the rows as they are."""
        return rows

    @property
    def emission_delay_ms(self) -> int:
        """None: a row comes out when the watermark has passed it, and it has its own time."""
        return 0

    @property
    def layout(self) -> dict[str, str]:
        """What the state looks like."""
        return {**self._ports_text, "deletes": str(self.deleted is not None)}

    @property
    def rules(self) -> str:
        """What decides which version is valid, and what results are called."""
        return repr((self.how, self.late, self.ttl_ms, str(self.deleted), dict(self.result_types)))

    def kept(self, side: SideName) -> Kept:
        """Return what is kept of a side: rows until the watermark has passed them, versions until they are replaced."""
        if side == LEFT:
            return Kept(part=0, types=self.kept_types(LEFT), keys=self.left.keys, reach_ms=0, is_awaited=True)
        more = {} if self.deleted is None else {GONE: pl.Boolean()}
        return Kept(
            part=1,
            types=self.kept_types(RIGHT, **more),
            keys=self.right.keys,
            reach_ms=self.ttl_ms,
            is_numbered=True,
            is_cleaned=True,
        )

    def front(self, port: str, undecoded: Undecoded | None) -> PortFront:  # noqa: ARG002  all columns are read
        """Return what FRONT does to the rows of a side."""
        if port == LEFT:
            judges, keeps = self.late == "output", self.how == "left"
            return JoinFront(step=self, side=LEFT, judges=judges, keeps_null_keys=keeps)
        extra = () if self.deleted is None else (self.deleted.fill_null(value=False).alias(GONE),)
        return JoinFront(step=self, side=RIGHT, judges=False, keeps_null_keys=False, behind="on_time", extra=extra)

    def operator(self) -> Operator:
        """Return what keeps rows and versions of a key group, and joins them."""
        return AsOfOperator(self)

    def describe(self) -> list[tuple[str, str]]:
        """Return what `explain` shows."""
        keys = [f"{mine} = {other}" for mine, other in zip(self.left.keys, self.right.keys, strict=True)]
        lasts = "" if self.ttl_ms == FOREVER_MS else f", for {render_ms(self.ttl_ms)} at most"
        lines = [
            ("join", f"as of, {self.how}, {', '.join(keys)}"),
            ("version", f"the newest up to the row's time{lasts}"),
        ]
        lines += [("deleted", self.said)] if self.deleted is not None else []
        lines += [("keeps", "left rows until the watermark is past their time, when they come out")]
        older = "all others" if self.late == "process" else "later ones"
        lines += [("keeps", f"of each key the version valid at the watermark, and {older}{lasts}")]
        lines += [("late", "rows are joined with the versions that are still kept")] if self.late == "process" else []
        return lines


@dataclass(frozen=True, kw_only=True, eq=False)
class AsOfDefinition(StepDefinition):
    """What a user asks of an as-of join."""

    how: How
    ttl_ms: int
    deleted: pl.Expr | None
    said: str
    operation: str
    """The column of the versions that says which change each was, and that results do not have; empty without one."""
    suffixes: tuple[str, str]
    late: Late

    def resolve(self, name: str, ports: Mapping[str, Port]) -> AsOfJoin:
        """Return the step for rows as `ports` have them, or refuse it."""
        left, right = ports[LEFT], ports[RIGHT]
        if self.late == "output":
            check_late_columns(left, name)
        deleted = self.deleted
        if deleted is not None:
            check_predicate(right.schema, deleted, step=f"{name}, deleted")
        if self.operation:
            is_delete = pl.col(self.operation) == "delete"
            deleted = is_delete if deleted is None else is_delete | deleted
            shown = {column: dtype for column, dtype in right.schema.items() if column != self.operation}
            right = replace(right, schema=pl.Schema(shown))
        columns = join_columns(name, left, right, self.suffixes)
        return AsOfJoin(
            name=name,
            left=left,
            right=right,
            columns=columns,
            how=self.how,
            late=self.late,
            ttl_ms=self.ttl_ms,
            deleted=deleted,
            said=self.said,
        )


def as_of_join(
    *,
    how: How,
    versions_ttl: Duration | Forever | None,
    deleted: Expression | None,
    operation: str = "",
    suffixes: tuple[str, str],
    late: Late,
) -> AsOfDefinition:
    """Return an as-of join as its user defines it, or refuse it."""
    if versions_ttl is None:
        raise refuse("JOIN_VERSIONS_TTL")
    said = [f"{operation} = 'delete'"] if operation else []
    said += [] if deleted is None else [as_written(deleted)]
    return AsOfDefinition(
        how=checked_how(how, ("inner", "left")),
        ttl_ms=_ttl_ms(versions_ttl),
        deleted=None if deleted is None else as_expr(deleted),
        said=" or ".join(said),
        operation=operation,
        suffixes=checked_suffixes(suffixes),
        late=checked_late(late),
    )


def _ttl_ms(ttl: Duration | Forever) -> int:
    return FOREVER_MS if isinstance(ttl, Forever) else duration_ms(ttl, what="`versions_ttl`")
