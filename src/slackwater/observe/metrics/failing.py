"""A batch that fails, in `<checkpoint>/slackwater/history/failing.json`: how often, why, and the rows it reads."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from slackwater.base.errors import counted, listed
from slackwater.base.stored import shaped
from slackwater.base.times import render_time
from slackwater.engine.checkpoint.checkpoint import Checkpoint
from slackwater.observe.metrics.history import history_folder
from slackwater.observe.metrics.job_facts import read_facts, write_facts

FAILING: Final = "failing.json"
_MOST_RANGES: Final = 1_000
_SHOWN: Final = 5


@dataclass(frozen=True, kw_only=True)
class FailingBatch:
    """A batch that failed and has not been committed since."""

    batch: int
    failures: int
    """How often it has failed."""
    since_ms: int
    """When it failed first."""
    at_ms: int
    """When it failed last."""
    code: str
    """The code of the last error; of an error that is not Slackwater's, its type."""
    rows: list[str] = field(default_factory=list)
    """The rows it reads, as `--skip-rows` takes them: a range for each partition, as far as it is known."""
    more: int = 0
    """How many more ranges there are."""

    def __str__(self) -> str:
        since = f" since {render_time(self.since_ms)[:19]} UTC" if self.failures > 1 else ""
        reads = f"; it reads {listed(self.rows, most=_SHOWN)}" if self.rows else ""
        return f"batch {self.batch:,} has failed {counted(self.failures, 'time')}{since}, last with {self.code}{reads}"


def note_failure(checkpoint: Path, *, batch: int, code: str, rows: Sequence[str], now_ms: int) -> None:
    """Record that a batch has failed; the caller must hold the checkpoint's lock."""
    before = failing_batch(checkpoint)
    is_again = before is not None and before.batch == batch
    failed = FailingBatch(
        batch=batch,
        failures=before.failures + 1 if before is not None and is_again else 1,
        since_ms=before.since_ms if before is not None and is_again else now_ms,
        at_ms=now_ms,
        code=code,
        rows=[*rows[:_MOST_RANGES]],
        more=max(0, len(rows) - _MOST_RANGES),
    )
    write_facts(history_folder(checkpoint) / FAILING, asdict(failed))


def failing_batch(checkpoint: Path) -> FailingBatch | None:
    """Return the batch that failed last, unless it was committed later; None if there is none, or it is unreadable."""
    facts = read_facts(history_folder(checkpoint) / FAILING)
    try:
        found: FailingBatch = shaped(json.loads(json.dumps(facts)), FailingBatch)
    except ValueError:
        return None
    committed = Checkpoint(path=checkpoint, incarnation="", partitions=0).committed_batch()
    return found if found.batch > committed else None
