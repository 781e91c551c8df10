"""Made-up mixed chains and rows: few times and keys, so that there are many ties; values on which users' code fails."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from tests.property.mixed_chains import Arrival, Batch, Chain
from tests.property.mixed_conditions import JOINS, Pattern, PatternStep, as_absence, own_steps, tied_steps
from tests.property.mixed_steps import AsOf, Dedup, Join, Match, Process, Step, Windows
from tests.property.mixed_values import KEY_TYPES, T0, KeyKind

_KEYS = st.sampled_from(["a", "b"])
_LIMITS = [(1, 1, False)] * 3 + [(1, 1, True), (1, None, False), (2, 2, False), (1, 2, True)]
KINDS = ["dedup", "match", "process", "process", "windows", "windows", "join", "join", "as_of"]
WIDTH_MS = 5
"""How far rows are out of order."""


@st.composite
def patterns(draw: st.DrawFn) -> Pattern:
    """Draw a pattern."""
    if draw(st.integers(0, 3)) == 0:
        after = draw(st.sampled_from(own_steps("after")))
        expect = draw(st.sampled_from([*own_steps("expect"), *tied_steps("expect", "after")]))
        return as_absence(after, expect, draw(st.sampled_from([1, 4, 10])))
    steps: list[PatternStep] = []
    for number in range(draw(st.integers(1, 3))):
        name = f"s{number}"
        known = own_steps(name) + (tied_steps(name, f"s{number - 1}") * 2 if number else [])
        least, most, is_optional = draw(st.sampled_from(_LIMITS))
        steps.append(replace(draw(st.sampled_from(known)), name=name, least=least, most=most, is_optional=is_optional))
    if all(step.is_optional for step in steps):
        steps.append(own_steps("end")[3])
    return Pattern(tuple(steps), draw(st.sampled_from([1, 4, 10, 100])), draw(st.booleans()), draw(st.booleans()))


@st.composite
def steps(  # noqa: PLR0911  one for each kind
    draw: st.DrawFn, known: list[int], *, is_last: bool, of_source: bool, joins: int
) -> Step:
    """Draw a step over the streams `known`; with `of_source`, the order in which rows of a source arrive is known."""
    kind = draw(st.sampled_from(KINDS if joins < 2 else [kind for kind in KINDS if kind not in ("join", "as_of")]))
    first = draw(st.sampled_from([known[-1]] * 3 + known))
    common: dict[str, Any] = {"inputs": (first,), "key": draw(_KEYS)}
    if kind in ("join", "as_of"):
        inputs = (first, draw(st.sampled_from(known)))
        common["inputs"] = inputs if draw(st.booleans()) else inputs[::-1]
    match kind:
        case "join":
            lower = draw(st.integers(-12, 8))
            return Join(
                **common,
                lower=lower,
                upper=lower + draw(st.sampled_from([0, 1, 5, 15])),
                how=draw(st.sampled_from(["inner", "left", "right", "full"])),
                condition=draw(st.sampled_from([None, *JOINS])),
            )
        case "as_of":
            return AsOf(
                **common,
                how=draw(st.sampled_from(["inner", "left"])),
                ttl=draw(st.sampled_from([None, 1, 10])),
                deletes=draw(st.booleans()),
            )
        case "dedup":
            keeps: list[Any] = ["first_by_time"] + ["last_by_time"] * is_last + ["first"] * of_source
            keep = draw(st.sampled_from(keeps))
            return Dedup(**common | ({"inputs": (0,)} if keep == "first" else {}), keep=keep)
        case "match":
            return Match(**common, pattern=draw(patterns()))
        case "process":
            order = draw(st.sampled_from(["event_time", "event_time", *["arrival"] * of_source]))
            if order == "arrival":
                return Process(**common | {"inputs": (0,)}, order="arrival", has_timers=False, has_late=False)
            return Process(**common, has_timers=draw(st.booleans()))
        case _:
            size, gap = draw(st.sampled_from([(10, 0), (4, 0), (0, 3), (0, 5), (0, 8)]))
            owns: list[Any] = ["none", "fussy", *["picky"] * (is_last and not gap)]
            return Windows(
                **common,
                size=size,
                gap=gap,
                touching=draw(st.sampled_from(["merge", "separate"])),
                own=draw(st.sampled_from(owns)),
            )


@st.composite
def chains(draw: st.DrawFn, *, one_partition: bool, may_idle: bool = False) -> Chain:
    """Draw a chain; with one partition, the first step may depend on the order of arrival."""
    sources, number = draw(st.integers(1, 2)), draw(st.integers(1, 4))
    found: list[Step] = []
    for at in range(number):
        joins = sum(isinstance(step, Join | AsOf) for step in found)
        is_last = at == number - 1
        known = [*range(sources), *(sources + at for at, step in enumerate(found) if not _is_loose(step))]
        found.append(draw(steps(known, is_last=is_last, of_source=one_partition, joins=joins)))
    used = {at for step in found for at in step.inputs}
    while sources > 1 and sources - 1 not in used:
        found = [replace(step, inputs=tuple(at - (at >= sources) for at in step.inputs)) for step in found]
        sources -= 1
    if 0 not in used:
        found.append(Windows(inputs=(0,), key="a", size=10))
    idle_after = draw(st.sampled_from([None, 10, 40])) if may_idle else None
    advances = idle_after is not None and draw(st.booleans())
    return Chain(draw(st.sampled_from(sorted(KEY_TYPES))), tuple(found), sources, WIDTH_MS, idle_after, advances)


def _is_loose(step: Step) -> bool:
    """Return whether no step may follow: results are withdrawn, or depend on batches."""
    return getattr(step, "keep", "") == "last_by_time" or getattr(step, "own", "") == "picky"


@st.composite
def arrivals(
    draw: st.DrawFn, kind: KeyKind, sources: int, *, one_partition: bool, most_late: int = WIDTH_MS
) -> list[Arrival]:
    """Draw rows in the order of their arrival, none of them later than `most_late`."""
    found, base = list[Arrival](), T0
    values = list(range(len(KEY_TYPES[kind].values)))
    every = range(sources)  # some of which may be silent all the time
    heard = draw(st.sampled_from([every, every, every, every[:1], every[-1:]]))

    for number in range(draw(st.sampled_from([1, 2, 3, *range(6, 15)]))):
        base += draw(st.sampled_from([0, 0, 1, 3, 5, 12]))
        found.append(
            Arrival(
                source=draw(st.sampled_from(heard)),
                partition="0" if one_partition else draw(st.sampled_from(["0", "1"])),
                tag=f"r{number}",
                a=KEY_TYPES[kind].values[draw(st.sampled_from(values))],
                b=draw(st.sampled_from([0, 1, 1, None])),
                v=draw(st.sampled_from([0, 1, 2, 3, 4, 5, 6, 7, 8, None])),
                at=base - draw(st.sampled_from([0, 0, 1, WIDTH_MS, most_late, most_late])),
            )
        )
    return found


def cut(rows: list[Arrival], ends: list[int], restarts: list[bool], later: list[int]) -> list[Batch]:
    """Return rows in batches, with restarts and processing time between them."""
    bounds = [0, *sorted({end % (len(rows) + 1) for end in ends}), len(rows)]
    parts = [tuple(rows[start:end]) for start, end in itertools.pairwise(bounds)]
    facts = [(later[at % len(later)], restarts[at % len(restarts)]) for at in range(len(parts))]
    return [Batch(part, *fact) for part, fact in zip(parts, facts, strict=True)]
