"""Rows that an operator skips by name, `--skip-rows orders/0:1200-1300`: the way out when a batch can never succeed.

A row that crashes its worker, or needs more memory than there is, fails its batch on every attempt. Skipped rows are
not decoded; they become dead letters with their original bytes and the reason `skipped`, so they can be retried.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from slackwater.base.errors import near_miss, refuse
from slackwater.plan.plan import Plan, SkippedRows

_WRITTEN: Final = re.compile(r"(?P<place>.+):(?P<first>\d{1,18})(?:-(?P<last>\d{1,18}))?")


def skipping(plan: Plan, written: Sequence[str]) -> Plan:
    """Return the plan without the rows in `written`, or reject what does not name rows of its streams."""
    found = [_parsed(text, plan) for text in written]
    sources = tuple(
        replace(source, skipped=tuple(rows for rows in found if rows.stream == source.name)) for source in plan.sources
    )
    return replace(plan, sources=sources)


def _parsed(text: str, plan: Plan) -> SkippedRows:
    match = _WRITTEN.fullmatch(text)
    if match is None:
        raise refuse("SKIP_ROWS", got=repr(text))
    first = int(match["first"])
    last = first if match["last"] is None else int(match["last"])
    names = sorted((source.name for source in plan.sources), key=len, reverse=True)
    stream = next((name for name in names if match["place"].startswith(f"{name}/")), None)
    if stream is None:
        known, wanted = sorted(names), match["place"].partition("/")[0]
        raise refuse("SKIP_ROWS_STREAM", got=repr(text), known=", ".join(known), hint=near_miss(wanted, known))
    if last < first:
        raise refuse("SKIP_ROWS", got=repr(text))
    return SkippedRows(stream, match["place"].removeprefix(f"{stream}/"), first, last)
