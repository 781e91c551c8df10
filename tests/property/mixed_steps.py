"""The steps of mixed chains as users write them; each gives rows of the same five columns, for any step after it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

import slackwater as sw
from slackwater.operators.joins.step import How
from slackwater.plan.streams import Results, Stream
from tests.property.mixed_code import Fussy, Picky, Timed, Walker
from tests.property.mixed_conditions import Condition, Pattern
from tests.property.mixed_values import KeyKind, number, picked

COLUMNS = ("tag", "a", "b", "v", "at")
_AT = pl.col("event_time").dt.epoch("ms")


@dataclass(frozen=True, kw_only=True)
class Step(ABC):
    """A keyed step: its inputs by number (the sources, then the steps before it), and its key."""

    inputs: tuple[int, ...]
    key: Literal["a", "b"]
    has_late: bool = True

    @property
    def other(self) -> str:
        """The key column that is not the key."""
        return "b" if self.key == "a" else "a"

    @abstractmethod
    def results(self, inputs: Sequence[Stream], name: str) -> Results:
        """Return the results of the step."""

    @abstractmethod
    def rows(self, results: Results, kind: KeyKind) -> Stream:
        """Return the results as rows of the five columns."""

    def _other(self, kind: KeyKind, at: pl.Expr) -> dict[str, pl.Expr]:
        """Return the other key, made from a number."""
        return {"b": at % 3} if self.key == "a" else {"a": picked(kind, at)}


def _select(results: Results, **columns: Any) -> Stream:  # noqa: ANN401  expressions
    return results.select(**{name: columns[name] for name in COLUMNS})


@dataclass(frozen=True, kw_only=True)
class Join(Step):
    """An interval join."""

    lower: int
    upper: int
    how: How = "inner"
    condition: Condition | None = None

    def results(self, inputs: Sequence[Stream], name: str) -> Results:
        left, right = inputs
        return left.key_by(self.key).join(
            right.key_by(self.key),
            between=(f"{self.lower}ms", f"{self.upper}ms"),
            how=self.how,
            on_match=None if self.condition is None else self.condition.sql,
            name=name,
        )

    def rows(self, results: Results, kind: KeyKind) -> Stream:
        return _joined(self, results)


@dataclass(frozen=True, kw_only=True)
class AsOf(Step):
    """An as-of join."""

    how: Literal["inner", "left"] = "inner"
    ttl: int | None = None
    deletes: bool = False

    def results(self, inputs: Sequence[Stream], name: str) -> Results:
        left, right = inputs
        return left.key_by(self.key).join_as_of(
            right.key_by(self.key),
            how=self.how,
            versions_ttl=sw.FOREVER if self.ttl is None else f"{self.ttl}ms",
            deleted="v = 3" if self.deletes else None,
            name=name,
        )

    def rows(self, results: Results, kind: KeyKind) -> Stream:
        return _joined(self, results)


def _joined(step: Step, results: Results) -> Stream:
    tags = [pl.col(name).fill_null("-") for name in ("tag", "tag_right")]
    return _select(
        results,
        tag=pl.format("({}+{})", *tags),
        v=(number("v") + number("v_right")) % 10,
        at=_AT,
        **{step.key: pl.col(step.key), step.other: pl.coalesce(step.other, f"{step.other}_right")},
    )


@dataclass(frozen=True, kw_only=True)
class Dedup(Step):
    """A deduplication that remembers all keys."""

    keep: Literal["first", "first_by_time", "last_by_time"] = "first_by_time"

    def results(self, inputs: Sequence[Stream], name: str) -> Results:
        return inputs[0].key_by(self.key).deduplicate(within=sw.FOREVER, keep=self.keep, name=name)

    def rows(self, results: Results, kind: KeyKind) -> Stream:
        if self.keep != "last_by_time":
            return results.select(*COLUMNS)
        return results.select("tag", "a", "b", "v", "at", "is_retraction")


@dataclass(frozen=True, kw_only=True)
class Match(Step):
    """A pattern."""

    pattern: Pattern

    def results(self, inputs: Sequence[Stream], name: str) -> Results:
        return inputs[0].key_by(self.key).match(self.pattern.defined(), name=name)

    def rows(self, results: Results, kind: KeyKind) -> Stream:
        parts, at_first = [], pl.lit(None, dtype=pl.Int64)
        for step in self.pattern.shown:
            tag, v = pl.col(f"{step.name}_tag"), pl.col(f"{step.name}_v")
            parts.append(tag.list.join(",") if step.is_repeated else tag.fill_null("-"))
            at_first = pl.coalesce(at_first, v.list.first() if step.is_repeated else v)
        v = at_first.fill_null(0)
        other = self._other(kind, v)
        tag = pl.format("m(" + "|".join("{}" for _ in parts) + ")", *parts)
        return _select(results, tag=tag, v=v, at=_AT, **{self.key: pl.col(self.key)}, **other)


@dataclass(frozen=True, kw_only=True)
class Process(Step):
    """A process."""

    order: Literal["arrival", "event_time"] = "event_time"
    has_timers: bool = True

    def results(self, inputs: Sequence[Stream], name: str) -> Results:
        code = Timed() if self.has_timers else Walker()
        return inputs[0].key_by(self.key).process(code, output="tag string, v long", order=self.order, name=name)

    def rows(self, results: Results, kind: KeyKind) -> Stream:
        other = self._other(kind, pl.col("v"))
        return _select(results, tag=pl.col("tag"), v=pl.col("v"), at=_AT, **{self.key: pl.col(self.key)}, **other)


@dataclass(frozen=True, kw_only=True)
class Windows(Step):
    """Tumbling windows, or sessions if there is a gap, with several aggregates."""

    size: int = 0
    gap: int = 0
    touching: Literal["merge", "separate"] = "merge"
    own: Literal["none", "fussy", "picky"] = "none"

    def results(self, inputs: Sequence[Stream], name: str) -> Results:
        window = sw.session(f"{self.gap}ms", touching=self.touching) if self.gap else sw.tumbling(f"{self.size}ms")
        own = {"fussy": Fussy, "picky": Picky}.get(self.own)
        aggregates = {"own": sw.accumulator(own, "v")} if own else {}
        return (
            inputs[0]
            .key_by(self.key)
            .window(window, name=name)
            .aggregate(
                tags=sw.collect_list("tag"), total=sw.sum("v"), first=sw.first("tag"), last=sw.last("v"), **aggregates
            )
        )

    def rows(self, results: Results, kind: KeyKind) -> Stream:
        own = number("own") if self.own != "none" else pl.lit(0)
        v = (number("total") + number("last") + own) % 10
        start = pl.col("window_start").dt.epoch("ms")
        tag = pl.format("[{} {}: {}]", start, "first", pl.col("tags").list.sort().list.join(" "))
        at = pl.col("window_end").dt.epoch("ms") - 1
        return _select(results, tag=tag, v=v, at=at, **{self.key: pl.col(self.key)}, **self._other(kind, v))
