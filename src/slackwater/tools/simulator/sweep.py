"""A sweep: the same simulation with several values of one setting."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from slackwater.base.durations import duration_ms, render_ms
from slackwater.base.errors import SlackwaterError, fault, near_miss
from slackwater.tools.simulator.account import SimulationAccount
from slackwater.tools.simulator.control import Control
from slackwater.tools.simulator.controls import CONTROLS
from slackwater.tools.simulator.running import simulate
from slackwater.tools.simulator.settings import Settings

_DEFAULT: Final = 7
_MOST: Final = 60
_FORM: Final = re.compile(r"\s*([a-z0-9_-]{1,40})\s*=\s*(\w{1,20})\s*\.\.\s*(\w{1,20})\s*(?:,\s*(\w{1,20})\s*)?")


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """The values of one setting, all durations."""

    control: Control
    values_ms: tuple[int, ...]

    @classmethod
    def parse(cls, text: str) -> Sweep:
        """Parse "out_of_orderness=0s..60s", with a step (",10s") or a number of values (",13") after a comma."""
        match = _FORM.fullmatch(text)
        if match is None:
            raise _refused(text, "it does not have this form")
        name = match[1].replace("-", "_")
        durations = [each.name for each in CONTROLS.values() if each.kind == "duration"]
        if name not in durations:
            raise _refused(text, f"`{name}` is not a duration of a simulation{near_miss(name, durations)}")
        control = CONTROLS[name]
        first, last = _value(control, match[2]), _value(control, match[3])
        if first >= last:
            raise _refused(text, "its end is not after its start")
        return cls(control=control, values_ms=tuple(_between(text, first, last, match[4])))


@dataclass(frozen=True, kw_only=True)
class Swept:
    """One value of a sweep, and what became of the events."""

    value_ms: int
    account: SimulationAccount


def swept(settings: Settings, sweep: Sweep) -> Iterator[Swept]:
    """Run the simulation for each value, from the first to the last."""
    for value_ms in sweep.values_ms:
        changed = replace(settings, **{sweep.control.field: value_ms})  # type: ignore[arg-type]  # all are durations
        yield Swept(value_ms=value_ms, account=simulate(changed).account)


def _value(control: Control, text: str) -> int:
    value = control.value(text)
    if not isinstance(value, int):
        raise fault("SIMULATE_SETTING", name=control.name, rule=control.rule, got=repr(text), example=control.steps[-1])
    return value


def _between(text: str, first: int, last: int, how: str | None) -> list[int]:
    """Return the values from `first` to `last`; `how` is their number or a step."""
    if how is None or how.isdecimal():
        count = _DEFAULT if how is None else int(how)
        if not 2 <= count <= _MOST:  # noqa: PLR2004  a sweep has two ends
            raise _refused(text, f"it must have 2 to {_MOST} values, not {count}")
        return sorted({first + round((last - first) * number / (count - 1)) for number in range(count)})
    try:
        step = duration_ms(how, what="step")
    except SlackwaterError as error:
        raise _refused(text, f"`{how}` is neither a duration above zero nor a number") from error
    values = [*range(first, last, step), last]
    if len(values) > _MOST:
        raise _refused(text, f"it must have at most {_MOST} values; a step of {render_ms(step)} gives {len(values):,}")
    return values


def _refused(text: str, cause: str) -> SlackwaterError:
    return fault("SIMULATE_SWEEP", got=repr(text[:80]), cause=cause)
