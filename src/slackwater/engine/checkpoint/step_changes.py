"""How a step has changed since its state was stored, in the notation users write."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from slackwater.base.durations import render_ms
from slackwater.operators.step import KeyedStep

_STATE: Final = "state"
"""The part of a layout that holds the state's columns; they follow from everything else."""
_MILLISECONDS: Final = re.compile(r"(\w+)_ms=(-?\d+)")
_NOT_SET: Final = re.compile(r"(?<=\()\w+=None, |, \w+=None")
_ALIAS: Final = re.compile(r"(?<=[{ ])'(\w+)': ")


@dataclass(frozen=True, kw_only=True)
class Definition:
    """A stored step: its layout, which must not change, and its rules, one per line, which may."""

    layout: Mapping[str, str]
    rules: str

    def changes(self, now: Definition, step: KeyedStep) -> str:
        """Return the differences in `now`, for `step`; state columns only if nothing else explains them."""
        parts = _changed(_written(self.layout, step), _written(now.layout, step))
        state = parts.pop(_STATE, None)
        parts = parts or _changed(_lines(self.rules), _lines(now.rules)) or ({_STATE: state} if state else {})
        texts = [f"{part}: {was} -> {text}" for part, (was, text) in parts.items()]
        return ", ".join(texts) or "its state was stored by another version of Slackwater"


def _lines(rules: str) -> dict[str, str]:
    return {name: text for name, _, text in (line.partition(": ") for line in rules.splitlines())}


def _changed(before: Mapping[str, str], now: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    return {name: (before[name], text) for name, text in now.items() if before.get(name, text) != text}


def _written(layout: Mapping[str, str], step: KeyedStep) -> dict[str, str]:
    """Return a layout in the notation users write: the step's, with readable durations and aggregates by name."""
    return {part: text if part == _STATE else _as_written(step.written(part, text)) for part, text in layout.items()}


def _as_written(text: str) -> str:
    in_units = _MILLISECONDS.sub(lambda found: f"{found[1]}={render_ms(int(found[2]))}", _NOT_SET.sub("", text))
    return _ALIAS.sub(r"\1=", in_units)
