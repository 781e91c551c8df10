"""Rows that an operator skips by name, `--skip-rows orders/0:1200-1300`: the way out when a batch can never succeed.

A row that crashes its worker, or needs more memory than there is, fails its batch on every attempt. Skipped rows are
not decoded; they become dead letters with their original bytes and the reason `skipped`, so they can be retried.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final

from slackwater.base.errors import listed, near_miss, refuse
from slackwater.plan.plan import Plan, SkippedRows, SourcePlan

_SHOWN: Final = 5
_WRITTEN: Final = re.compile(r"(?P<place>.+):(?P<first>\d{1,18})(?:-(?P<last>\d{1,18}))?")


def skipping(plan: Plan, written: Sequence[str]) -> Plan:
    """Return the plan without the rows in `written`, or reject what does not name rows of its streams."""
    found = [_parsed(text, plan) for text in written]
    sources = tuple(
        replace(source, skipped=tuple(rows for rows in found if rows.stream == source.name)) for source in plan.sources
    )
    return replace(plan, sources=sources)


def check_partitions(source: SourcePlan, known: Collection[str]) -> None:
    """Reject rows to skip of a partition that their source does not have."""
    for rows in source.skipped:
        if rows.partition not in known:
            alike = [name for name in sorted(known) if name.endswith(f"/{rows.partition}")]
            hint = near_miss(f"{source.name}/{rows.partition}", [f"{source.name}/{name}" for name in alike or known])
            if alike and not hint:
                hint = f" (did you mean `{source.name}/{alike[0]}`?)"
            names = listed([f"{source.name}/{name}" for name in sorted(known)], near=str(rows), most=_SHOWN)
            raise refuse("SKIP_ROWS_PARTITION", got=repr(str(rows)), stream=source.name, hint=hint, known=names)


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
