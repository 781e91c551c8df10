"""Rules about running: how much a batch reads, and whether a restart was ever tried."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from slackwater.observe.checker.facts import Facts
from slackwater.observe.checker.rule import Rule, Violation, rule
from slackwater.plan.plan import Plan


@rule(
    "SW501",
    "warning",
    title="A batch without a limit",
    why="After an outage, one batch takes the whole backlog and may be too large for the executors' memory.",
    fix="limit what the DataFrame's reader takes, such as maxFilesPerTrigger, or use one of Slackwater's own sources",
)
def rate_limit(plan: Plan, _facts: Facts) -> Iterator[Violation]:
    """Look for sources that do not limit the size of a batch."""
    for source in plan.sources:
        if not source.source.limits_batches:
            yield Violation(
                f"stream `{source.name}`", f"nothing here limits how many rows of {source.source} a batch takes"
            )


@rule(
    "SW502",
    "note",
    title="A restart that was never tried",
    why="What a restart needs (paths, credentials, sinks that still exist) is then first tested in an outage.",
    fix="kill the job once (kill -9) and restart it on its checkpoint; harness.restart() does the same in a test",
)
def recovery(plan: Plan, facts: Facts) -> Iterator[Violation]:
    """Check whether a driver has ever resumed from the checkpoint; jobs that never ran are skipped."""
    if facts.starts == 1:
        yield Violation(f"pipeline `{plan.name}`", "it has run but was never restarted from its checkpoint")


RULES: Final[tuple[Rule, ...]] = (rate_limit, recovery)
