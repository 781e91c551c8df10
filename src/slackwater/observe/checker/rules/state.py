"""Rules about state: what is kept, for how long, and how evenly it is distributed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from slackwater.base.durations import render_ms, roughly
from slackwater.base.errors import counted
from slackwater.base.times import MAX_MS
from slackwater.observe.checker.facts import Facts
from slackwater.observe.checker.rule import Rule, Violation, rule
from slackwater.operators.aggregates.collected import CollectList, CollectSet, CountDistinct, Median
from slackwater.operators.deduplication.spec import DeduplicateSpec
from slackwater.operators.joins.as_of import FOREVER_MS, AsOfJoin
from slackwater.operators.joins.interval import IntervalJoin
from slackwater.operators.joins.windowed import WindowedJoin
from slackwater.operators.process.state import NEVER_MS
from slackwater.operators.process.step import ProcessStep
from slackwater.operators.step import KeyedStep
from slackwater.operators.windows.counted import CountSpec
from slackwater.operators.windows.session import SessionWindow
from slackwater.operators.windows.spec import WindowSpec
from slackwater.plan.plan import Plan

_DAY_MS: Final = 86_400_000
_LONG_JOIN_MS: Final = 7 * _DAY_MS
_LONG_WINDOW_MS: Final = 2 * _DAY_MS
_LONG_MS: Final = 90 * _DAY_MS
_MUCH: Final = 10
"""How many times longer than the job has run counts as far longer."""
_HOT: Final = 0.25
"""The share of one key from which its key group is the bottleneck of most jobs."""
_GROWING: Final = (CollectList, CollectSet, CountDistinct, Median)
"""Aggregates that keep values: their state grows with the rows of a window."""


@rule(
    "SW201",
    "error",
    title="Unbounded state",
    why="Every key ever seen stays in the state: it grows until the job runs out of memory or disk.",
    fix="give it a duration instead of sw.FOREVER, or a window with an end; accept it if keys will always be few",
)
def without_end(plan: Plan, _facts: Facts) -> Iterator[Violation]:
    """Look for state that nothing ever removes."""
    for step in plan.steps:
        for what in _endless(step.spec):
            yield Violation(f"step `{step.name}`", what)


def _endless(spec: KeyedStep) -> Iterator[str]:
    match spec:
        case DeduplicateSpec() if spec.within_ms >= MAX_MS:
            yield "it remembers every key forever"
        case ProcessStep():
            yield from (f"its {name} is kept forever" for name, life_ms in spec.lives.items() if life_ms >= NEVER_MS)
        case CountSpec():
            yield "count windows remember how many rows each key had, forever"
        case WindowSpec() if not spec.window.has_end:
            yield f"a {spec.window} window never ends, and is kept for every key"


@rule(
    "SW202",
    "warning",
    title="A join without a tight bound",
    why="Rows are kept until no partner can arrive, so the state holds everything within the bound.",
    fix="narrow between=..., give versions_ttl a duration, or look the rows up in a store",
)
def loose_join(plan: Plan, _facts: Facts) -> Iterator[Violation]:
    """Look for joins whose rows are kept for more than a week, or forever."""
    for step in plan.steps:
        match step.spec:
            case IntervalJoin(lower_ms=lower_ms, upper_ms=upper_ms) if upper_ms - lower_ms > _LONG_JOIN_MS:
                yield Violation(f"step `{step.name}`", f"it joins rows over {render_ms(upper_ms - lower_ms)}")
            case WindowedJoin(window=window) if (length_ms := window.longest_ms() or 0) > _LONG_JOIN_MS:
                yield Violation(f"step `{step.name}`", f"it joins rows over windows of {render_ms(length_ms)}")
            case AsOfJoin(ttl_ms=ttl_ms) if ttl_ms >= FOREVER_MS:
                yield Violation(f"step `{step.name}`", "it keeps the last version of every key forever")


@rule(
    "SW203",
    "warning",
    title="State that is kept for long",
    why="It grows with every key, or every value of a window, while it is kept, and is rewritten as it grows.",
    fix="shorten it, give sessions a max_length, use approx_distinct, quantile or top, or chain a second window",
)
def kept_for_long(plan: Plan, _facts: Facts) -> Iterator[Violation]:
    """Look for sessions without a maximum, values kept for more than two days, and state for more than 90."""
    for step in plan.steps:
        for what in _long(step.spec):
            yield Violation(f"step `{step.name}`", what)


def _long(spec: KeyedStep) -> Iterator[str]:
    match spec:
        case DeduplicateSpec() if _LONG_MS < spec.within_ms < MAX_MS:
            yield f"it remembers every key for {render_ms(spec.within_ms)}"
        case ProcessStep():
            long = {name: life_ms for name, life_ms in spec.lives.items() if _LONG_MS < life_ms < NEVER_MS}
            yield from (f"its {name} is kept for {render_ms(life_ms)}" for name, life_ms in long.items())
        case WindowSpec(window=SessionWindow(max_length_ms=None)):
            yield "a key that never pauses keeps its session open, because there is no max_length"
        case WindowSpec() if (length_ms := spec.window.longest_ms()) is not None and length_ms < MAX_MS:
            yield from _long_window(spec, length_ms)


def _long_window(spec: WindowSpec, length_ms: int) -> Iterator[str]:
    windows = f"windows of {render_ms(length_ms)}"
    if spec.lateness_ms > length_ms:
        windows += f", with {render_ms(spec.lateness_ms)} of allowed lateness,"
    growing = [alias for alias, each in spec.aggregates.items() if isinstance(each, _GROWING)]
    if growing and length_ms + spec.lateness_ms >= _LONG_WINDOW_MS:
        values = ", ".join(f"{alias} ({spec.aggregates[alias].name})" for alias in growing)
        yield f"{windows} keep all values of {values}"
    elif length_ms + spec.lateness_ms > _LONG_MS:
        yield f"{windows} are kept for more than {render_ms(_LONG_MS)}"


@rule(
    "SW204",
    "warning",
    title="Few keys, or one hot key",
    why="One task processes all rows of a key; the others wait for it, and more cores do not help.",
    fix="key by a finer column, or merge in two stages with key_by(..., spread=16) where a window allows it",
)
def hot_key(plan: Plan, facts: Facts) -> Iterator[Violation]:
    """Look at the distribution of keys in the last run, if known."""
    for step in plan.steps:
        if step.spec.combines or step.spread > 1:
            continue  # FRONT combines the rows of a key before the shuffle
        hot, keys = facts.hot_keys.get(step.name), facts.keys.get(step.name)
        if hot is not None and hot.share >= _HOT:
            yield Violation(f"step `{step.name}`", f"key {hot.key} has {hot.share:.0%} of its rows")
        elif keys is not None and keys < (facts.cores or 0):
            yield Violation(
                f"step `{step.name}`", f"it has {counted(keys, 'key')} for {counted(facts.cores or 0, 'core')}"
            )


@rule(
    "SW205",
    "note",
    title="Fewer key groups than cores",
    why="A stage has at most one task for each key group: the other cores stay idle.",
    fix="raise key_groups before the first start; it is fixed for the life of a checkpoint",
)
def key_groups(plan: Plan, facts: Facts) -> Iterator[Violation]:
    """Compare the number of key groups with the cores of the master."""
    if plan.steps and facts.cores is not None and plan.key_groups < facts.cores:
        yield Violation(
            f"pipeline `{plan.name}`",
            f"it has {counted(plan.key_groups, 'key group')} for {counted(facts.cores, 'core')}",
        )


@rule(
    "SW206",
    "note",
    title="A window far longer than the job has run",
    why="Its first results lack events from before the job started, unless the source still had them.",
    fix="start from a log that reaches back to the start of the window, or discard the first results",
)
def young_job(plan: Plan, facts: Facts) -> Iterator[Violation]:
    """Compare windows of a day or more with how long the checkpoint has been in use."""
    for step in plan.steps:
        if not isinstance(step.spec, WindowSpec | WindowedJoin):
            continue
        length_ms = step.spec.window.longest_ms() or 0
        if facts.age_ms is not None and _DAY_MS <= length_ms < MAX_MS and length_ms > _MUCH * facts.age_ms:
            age = roughly(max(1, facts.age_ms // 60_000) * 60_000)
            what = f"its windows are {render_ms(length_ms)} long, the job has run for {age}"
            yield Violation(f"step `{step.name}`", what)


RULES: Final[tuple[Rule, ...]] = (without_end, loose_join, kept_for_long, hot_key, key_groups, young_job)
