"""The findings of the checker, for people and for programs."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Final

from slackwater.base.errors import counted
from slackwater.base.html import facts_table, rows_table
from slackwater.observe.checker.rule import SEVERITIES, Severity

_WIDTH: Final = 100


@dataclass(frozen=True, kw_only=True, repr=False)
class Finding:
    """One place that breaks a rule, and what to do about it."""

    code: str
    """The code of the rule, such as "SW402"."""
    severity: Severity
    where: str
    """The stream, step or output, as in "step `velocity`"."""
    what: str
    why: str
    fix: str
    accepted: str | None = None
    """The reason for which the pipeline accepts the finding; None if it does not."""

    @property
    def line(self) -> str:
        """The finding in one line."""
        return f"[{self.code}] {self.where}: {self.what}; {self.fix}"

    def __repr__(self) -> str:
        return f"<{self.severity} {self.line}>"


@dataclass(frozen=True, kw_only=True, repr=False)
class Findings:
    """All findings in one pipeline, the worst first; iterating gives those that it does not accept."""

    pipeline: str
    all: tuple[Finding, ...]
    """The findings, including accepted ones."""

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.open)

    @property
    def open(self) -> tuple[Finding, ...]:
        """The findings that the pipeline does not accept."""
        return tuple(finding for finding in self.all if finding.accepted is None)

    def fails(self, *, strict: bool = False) -> bool:
        """Return whether there is an error that is not accepted; with `strict`, any finding that is not."""
        return any(strict or finding.severity == "error" for finding in self.open)

    @property
    def summary(self) -> str:
        """The number of findings of each severity."""
        numbers = {each: sum(finding.severity == each for finding in self.open) for each in SEVERITIES}
        parts = [counted(number, severity) for severity, number in numbers.items() if number]
        accepted = len(self.all) - len(self.open)
        return ", ".join([*(parts or ["no findings"]), *([f"{accepted} accepted"] if accepted else [])])

    def to_json(self) -> str:
        """Return the findings as JSON."""
        return json.dumps({"pipeline": self.pipeline, "findings": [asdict(each) for each in self.all]}, indent=2)

    def __str__(self) -> str:
        parts = [f"pipeline {self.pipeline}: {self.summary}"]
        for (severity, code, accepted), group in groupby(
            self.all, key=lambda each: (each.severity, each.code, each.accepted)
        ):
            found = list(group)
            lines = [f"{severity} {code} {each.where}: {each.what}" for each in found]
            if accepted is not None:
                lines += _wrapped("accepted", accepted)
            else:
                lines += [*_wrapped("why", found[0].why), *_wrapped("fix", found[0].fix)]
            parts.append("\n".join(lines))
        return "\n\n".join(parts)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return the findings as a table for display in a notebook."""
        head = ("severity", "code", "where", "what", "fix, or the reason to accept it")
        rows = [(each.severity, each.code, each.where, each.what, each.accepted or each.fix) for each in self.all]
        caption = f"{self.pipeline}: {self.summary}"
        return rows_table(caption, head, rows) if rows else facts_table(caption, {})


def _wrapped(label: str, text: str) -> list[str]:
    head = f"  {label} "
    return textwrap.wrap(text, _WIDTH, initial_indent=head, subsequent_indent=" " * len(head), break_on_hyphens=False)
