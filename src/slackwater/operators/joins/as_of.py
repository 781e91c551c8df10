"""As-of joins: each row is joined with the version of its key that is valid at the row's time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import polars as pl

from slackwater.base.durations import Duration, Forever, duration_ms, render_ms
from slackwater.base.errors import refuse
from slackwater.base.expressions import Expression, as_expr, as_written, check_predicate
from slackwater.formats.undecoded import Undecoded
from slackwater.operators.joins.as_of_operator import AsOfOperator
from slackwater.operators.joins.columns import IN_LOG, LEFT, RIGHT, SideName, join_columns
from slackwater.operators.joins.front import JoinFront
from slackwater.operators.joins.kept_rows import Kept
from slackwater.operators.joins.step import How, JoinStep, checked_how, checked_late, checked_suffixes
from slackwater.operators.joins.versions import GONE
from slackwater.operators.late_rows import Late, check_late_columns, late_schema
from slackwater.operators.ports import Port
from slackwater.operators.step import PortFront, StepDefinition

FOREVER_MS: Final = 1 << 59
"""A duration longer than the distance between any two times, but before the end of time."""


@dataclass(frozen=True, kw_only=True)
class AsOfJoin(JoinStep):
    """A join of rows with the versions that are valid at their times."""

    ttl_ms: int
    deleted: pl.Expr | None = None
    condition_text: str = ""
    """The condition that ends a version, as the user wrote it."""

    @property
    def late_types(self) -> pl.Schema | None:
        """The columns of the left side: versions are never late."""
        return late_schema(self.left.schema) if self.late == "output" else None

    def as_late(self, side: SideName, rows: pl.DataFrame) -> pl.DataFrame:  # noqa: ARG002  only left rows can be late
        """Return the rows unchanged."""
        return rows

    @property
    def emission_delay_ms(self) -> int:
        """Zero: a result has the time of its row, and is emitted when the watermark has passed it."""
        return 0

    @property
    def layout(self) -> dict[str, str]:
        """The columns of both sides, and whether versions can be deleted."""
        return {**self._ports_text, "deletes": str(self.deleted is not None)}

    @property
    def rules(self) -> str:
        """The settings that decide which version is valid, and the columns of results."""
        return repr((self.how, self.late, self.ttl_ms, str(self.deleted), dict(self.result_types)))

    def kept(self, side: SideName) -> Kept:
        """Return how a side is stored: rows until the watermark has passed them, versions until they are replaced."""
        if side == LEFT:
            return Kept(part=0, types=self.kept_types(LEFT), keys=self.left.keys, reach_ms=0, is_awaited=True)
        more: dict[str, pl.DataType] = dict(IN_LOG)
        more |= {} if self.deleted is None else {GONE: pl.Boolean()}
        return Kept(
            part=1,
            types=self.kept_types(RIGHT, **more),
            keys=self.right.keys,
            reach_ms=self.ttl_ms,
            width_ms=self.ttl_ms,
            is_ranked=True,
            is_cleaned=True,
        )

    def front(self, port: str, undecoded: Undecoded | None) -> PortFront:  # noqa: ARG002  all columns are read
        """Return the FRONT part of a side."""
        if port == LEFT:
            judges, keeps = self.late == "output", self.how == "left"
            return JoinFront(step=self, side=LEFT, judges=judges, keeps_null_keys=keeps)
        extra: tuple[pl.Expr, ...] = (pl.col("__part"), pl.col("__off"))
        extra += () if self.deleted is None else (self.deleted.fill_null(value=False).alias(GONE),)
        return JoinFront(step=self, side=RIGHT, judges=False, keeps_null_keys=False, behind="on_time", extra=extra)

    def operator(self) -> AsOfOperator:
        """Return the KEYED part."""
        return AsOfOperator(self)

    def describe(self) -> list[tuple[str, str]]:
        """Return the lines of the step in `explain`."""
        keys = [f"{mine} = {other}" for mine, other in zip(self.left.keys, self.right.keys, strict=True)]
        lasts = "" if self.ttl_ms == FOREVER_MS else f", for {render_ms(self.ttl_ms)} at most"
        lines = [
            ("join", f"as of, {self.how}, {', '.join(keys)}"),
            ("version", f"the newest up to the row's time{lasts}"),
        ]
        lines += [("deleted", self.condition_text)] if self.deleted is not None else []
        lines += [("keeps", "left rows until the watermark is past their time, when they come out")]
        older = "all others" if self.late == "process" else "later ones"
        lines += [("keeps", f"of each key the version valid at the watermark, and {older}{lasts}")]
        lines += [("late", "rows are joined with the versions that are still kept")] if self.late == "process" else []
        return lines


@dataclass(frozen=True, kw_only=True, eq=False)
class AsOfDefinition(StepDefinition):
    """An as-of join as the user defined it."""

    how: How
    ttl_ms: int
    deleted: pl.Expr | None
    condition_text: str
    operation: str
    """The column of the versions with the kind of change, which results do not have; empty if there is none."""
    suffixes: tuple[str, str]
    late: Late

    def resolve(self, name: str, ports: Mapping[str, Port]) -> AsOfJoin:
        """Return the step for the columns of `ports`, or reject the definition."""
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
            condition_text=self.condition_text,
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
    """Return the definition of an as-of join, or reject its options."""
    if versions_ttl is None:
        raise refuse("JOIN_VERSIONS_TTL")
    condition_text = [f"{operation} = 'delete'"] if operation else []
    condition_text += [] if deleted is None else [as_written(deleted)]
    return AsOfDefinition(
        how=checked_how(how, ("inner", "left")),
        ttl_ms=_ttl_ms(versions_ttl),
        deleted=None if deleted is None else as_expr(deleted),
        condition_text=" or ".join(condition_text),
        operation=operation,
        suffixes=checked_suffixes(suffixes),
        late=checked_late(late),
    )


def _ttl_ms(ttl: Duration | Forever) -> int:
    return FOREVER_MS if isinstance(ttl, Forever) else duration_ms(ttl, what="`versions_ttl`")
