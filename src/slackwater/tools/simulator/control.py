"""One setting as users change it: a label, a sentence, bounds, and how it is parsed from text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

from slackwater.base.durations import duration_ms, render_ms
from slackwater.base.errors import DefinitionError, RunError, fault
from slackwater.tools.simulator.settings import Settings

Group = Literal["pipeline", "events", "trouble"]
NONE: Final = "none"
"""The text that switches off an optional setting."""
_LONGEST_TEXT: Final = 20
_WHOLE: Final = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, kw_only=True)
class Control:
    """The description of one setting."""

    name: str
    help: str
    """One sentence about the setting."""
    kind: Literal["duration", "whole", "choice"]
    steps: tuple[str, ...]
    """The choices; for a number or a duration, the positions of its slider."""
    least: int = 0
    most: int = 0
    label: str = ""
    """How users see the name; without one, the name with spaces."""
    unit: str = ""
    group: Group = "pipeline"
    is_optional: bool = False
    only: tuple[str, tuple[str, ...]] | None = None
    """Another setting, and the values of it with which this one applies; None if it always applies."""

    @property
    def field(self) -> str:
        """The name of the field in `Settings`."""
        return f"{self.name}_ms" if self.kind == "duration" else self.name

    def shown(self, settings: Settings) -> str:
        """Return the setting as text."""
        value = getattr(settings, self.field)
        if value is None:
            return NONE
        return render_ms(value) if self.kind == "duration" else str(value)

    def value(self, text: str) -> int | str | None:
        """Parse `text`; raise an error if it is not a value of this setting."""
        text = text.strip()
        if self.is_optional and text == NONE:
            return None
        if len(text) > _LONGEST_TEXT:
            raise self._refused(f"{text[:_LONGEST_TEXT]}…")
        if self.kind == "choice":
            if text not in self.steps:
                raise self._refused(text)
            return text
        try:
            number = duration_ms(text, what=self.name, least_ms=0) if self.kind == "duration" else _whole(text)
        except (DefinitionError, ValueError) as error:
            raise self._refused(text) from error
        if not self.least <= number <= self.most:
            raise self._refused(text)
        return number

    @property
    def rule(self) -> str:
        """The rule for valid values, for messages."""
        if self.kind == "choice":
            return f"one of {', '.join(self.steps)}"
        ends = (render_ms(self.least), render_ms(self.most)) if self.kind == "duration" else (self.least, self.most)
        kind = "a duration" if self.kind == "duration" else "a whole number"
        return f"{kind} from {ends[0]} to {ends[1]}" + (f", or `{NONE}`" if self.is_optional else "")

    def _refused(self, got: str) -> RunError:
        return fault("SIMULATE_SETTING", name=self.name, rule=self.rule, got=repr(got), example=self.steps[-1])


def _whole(text: str) -> int:
    if not _WHOLE.fullmatch(text):
        raise ValueError(text)
    return int(text)
