"""The triggers that users write, and the flat `Schedule` that the operator follows."""

from __future__ import annotations

from dataclasses import dataclass, replace

from slackwater.base.durations import Duration, duration_ms, render_ms
from slackwater.base.errors import refuse


@dataclass(frozen=True, kw_only=True)
class AfterCount:
    """Fires when at least `n` rows have arrived since the last pane; with `once`, only the first time."""

    n: int
    once: bool = False


@dataclass(frozen=True, kw_only=True)
class Every:
    """Fires at an interval of processing time, counted from the window's first row, if there are new rows."""

    interval_ms: int


@dataclass(frozen=True, kw_only=True)
class EveryEventTime:
    """Fires whenever the watermark passes a multiple of the interval, even without new rows."""

    interval_ms: int


@dataclass(frozen=True, kw_only=True)
class Never:
    """Never fires."""


@dataclass(frozen=True, kw_only=True)
class AnyOf:
    """Fires whenever one of `parts` does."""

    parts: tuple[AfterCount | Every | EveryEventTime, ...]


@dataclass(frozen=True, kw_only=True)
class AfterWatermark:
    """Fires when the watermark reaches the window's end, and optionally before (`early`) and after (`late`).

    `late=None` finishes the window with its on-time pane: rows that arrive later, though within the
    allowed lateness, are counted as ignored.
    """

    early: AfterCount | Every | EveryEventTime | AnyOf | Never | None = None
    late: AfterCount | Never | None = AfterCount(n=1)
    repeat_unchanged: bool = True


Trigger = AfterWatermark | AfterCount | Every | EveryEventTime | AnyOf | Never


def after_watermark(
    *,
    early: AfterCount | Every | EveryEventTime | AnyOf | Never | None = None,
    late: AfterCount | Never | None = AfterCount(n=1),  # noqa: B008  frozen, so sharing it is safe
    repeat_unchanged: bool = True,
) -> AfterWatermark:
    """Fire when the window is complete: `after_watermark(early=every("10s"), late=after_count(1))`.

    With `repeat_unchanged=False` the on-time pane is omitted if no rows arrived after the last early pane.
    """
    if early is not None and not isinstance(early, AfterCount | Every | EveryEventTime | AnyOf | Never):
        raise refuse("TRIGGER_EARLY", got=early)
    if late is not None and not isinstance(late, AfterCount | Never):
        raise refuse("TRIGGER_LATE", got=late)
    if isinstance(late, AfterCount) and late.once:
        raise refuse("TRIGGER_LATE", got=late)
    if isinstance(early, AfterCount) and early.once:
        raise refuse("TRIGGER_EARLY", got=early)
    return AfterWatermark(early=early, late=late, repeat_unchanged=repeat_unchanged)


def after_count(n: int, *, once: bool = False) -> AfterCount:
    """Fire after every `n` rows of a window; with `once`, the window is finished after the first pane."""
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise refuse("TRIGGER_COUNT", got=repr(n))
    return AfterCount(n=n, once=once)


def every(interval: Duration) -> Every:
    """Fire every `interval` of processing time: `every("10s")`."""
    return Every(interval_ms=duration_ms(interval, what="trigger `every`"))


def every_event_time(interval: Duration) -> EveryEventTime:
    """Fire whenever the watermark passes a multiple of `interval`, and when the window is complete."""
    return EveryEventTime(interval_ms=duration_ms(interval, what="trigger `every_event_time`"))


def any_of(*parts: AfterCount | Every | EveryEventTime) -> AnyOf:
    """Fire whenever one of `parts` fires; each kind of trigger may appear once."""
    kinds = [type(part) for part in parts]
    usable = all(isinstance(part, AfterCount | Every | EveryEventTime) for part in parts)
    if len(parts) < 2 or not usable or len(set(kinds)) != len(kinds):  # noqa: PLR2004  any_of needs two
        raise refuse("TRIGGER_ANY_OF", got=_parts(parts))
    if any(isinstance(part, AfterCount) and part.once for part in parts):
        raise refuse("TRIGGER_ANY_OF", got=_parts(parts))
    return AnyOf(parts=parts)


def _parts(parts: tuple[object, ...]) -> str:
    return ", ".join(map(repr, parts)) or "nothing"


def never() -> Never:
    """Never fire: `after_watermark(late=never())` keeps late rows for the window's closing pane."""
    return Never()


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """A trigger as flat settings, which the operator evaluates for each window in every batch."""

    early_count: int | None = None
    early_every_ms: int | None = None
    early_event_time_ms: int | None = None
    on_time: bool = True
    repeat_unchanged: bool = True
    late_count: int | None = 1
    finish_on_time: bool = False
    """Whether the on-time pane is the last: rows after it are counted as ignored."""
    once: bool = False
    """Whether the first pane is the last."""

    @property
    def is_lazy(self) -> bool:
        """Whether nothing can fire before the watermark reaches the window's end, so that rows are only appended."""
        return self.early_count is None and self.early_every_ms is None and self.early_event_time_ms is None

    def __str__(self) -> str:
        early = [
            _every(self.early_count) if self.early_count else "",
            f"every {render_ms(self.early_every_ms)} of processing time" if self.early_every_ms else "",
            f"every {render_ms(self.early_event_time_ms)} of event time" if self.early_event_time_ms else "",
        ]
        text = [f"early panes {part}" for part in early if part]
        if self.on_time:
            text.append("a pane at the window's end")
        if self.late_count and self.on_time:
            text.append("late panes " + ("at once" if self.late_count == 1 else _every(self.late_count)))
        if self.finish_on_time or self.once:
            text.append("then finished")
        return ", ".join(text) or "no panes before the window closes"


def written(parts: Schedule) -> str:
    """Return a trigger with this schedule, in the notation that users write: `after_watermark(early=every("10s"))`."""
    count = f"after_count({parts.early_count}{', once=True' if parts.once else ''})" if parts.early_count else ""
    early = [
        count,
        f'every("{render_ms(parts.early_every_ms)}")' if parts.early_every_ms else "",
        f'every_event_time("{render_ms(parts.early_event_time_ms)}")' if parts.early_event_time_ms else "",
    ]
    asked = [part for part in early if part]
    some = f"any_of({', '.join(asked)})" if len(asked) > 1 else "".join(asked)
    if not parts.on_time:
        return some or "never()"
    options = [f"early={some}"] if some else []
    if parts.finish_on_time:
        options.append("late=None")
    elif parts.late_count != 1:
        options.append(f"late=after_count({parts.late_count})" if parts.late_count else "late=never()")
    if not parts.repeat_unchanged:
        options.append("repeat_unchanged=False")
    return f"after_watermark({', '.join(options)})"


def schedule(trigger: Trigger) -> Schedule:
    """Return the flat form of `trigger`."""
    match trigger:
        case AfterWatermark(early=early, late=late, repeat_unchanged=repeat):
            base = schedule(early) if early is not None else schedule(Never())
            late_count = late.n if isinstance(late, AfterCount) else None
            return replace(
                base,
                on_time=True,
                repeat_unchanged=repeat,
                late_count=late_count,
                finish_on_time=late is None,
                once=False,
            )
        case AfterCount(n=n, once=once):
            return Schedule(early_count=n, on_time=False, late_count=n, once=once)
        case Every(interval_ms=interval):
            return Schedule(early_every_ms=interval, on_time=False, late_count=None)
        case EveryEventTime(interval_ms=interval):
            return Schedule(early_event_time_ms=interval)
        case AnyOf(parts=parts):
            merged = schedule(parts[0])
            for part in map(schedule, parts[1:]):
                merged = Schedule(
                    early_count=merged.early_count or part.early_count,
                    early_every_ms=merged.early_every_ms or part.early_every_ms,
                    early_event_time_ms=merged.early_event_time_ms or part.early_event_time_ms,
                    on_time=merged.on_time or part.on_time,
                    late_count=min((n for n in (merged.late_count, part.late_count) if n), default=None),
                )
            return merged
        case Never():
            return Schedule(on_time=False, late_count=None)


def _every(rows: int) -> str:
    return "with every row" if rows == 1 else f"every {rows:,} rows"
