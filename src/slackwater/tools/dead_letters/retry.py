"""Retries dead letters: sends each record exactly once, even across crashes.

1. Lock the ledger, and settle batches that an earlier run left open: ask the target whether it holds the batch, and
   record `sent` or `withdrawn`.
2. Choose the letters that match the filters and have not been sent. Repair them. Nothing has been written so far.
3. Write the intent of a batch to the ledger: the letters' ids, and the facts by which the target can find the batch.
4. Publish the batch atomically: a file linked into a log, or a transaction on a topic.
5. Write `sent` to the ledger. Clean up. Continue with 3 for the next batch.

The effect of a crash, and what the next run does:

- after 1 or 2: none; the letters are unchanged.
- after 3: the target does not hold the batch. It is withdrawn, and its letters are sent with the next ones.
- during 4: a log has a file that no reader sees, a topic has an open transaction. Neither has any effect: the file is
  removed and the transaction aborted when the batch is withdrawn, before anything else is sent.
- after 4: the target holds the batch. The ledger gets its `sent`, and nothing is sent again.
- after 5: none; the next run finishes the cleanup.

A record may have several letters, from several steps. It is sent once, and all of them count as retried.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import polars as pl

from slackwater.base.errors import fault
from slackwater.tools.dead_letters.ledger import Intent, Ledger, open_ledger, read_ledger
from slackwater.tools.dead_letters.places import Folder, Where, where_of
from slackwater.tools.dead_letters.reading import check_letters, scan_letters
from slackwater.tools.dead_letters.repair import Left, Repair, repair_letters
from slackwater.tools.dead_letters.selecting import Filters
from slackwater.tools.dead_letters.targets import RetryTarget, UnsureError
from slackwater.tools.dead_letters.to_kafka import RetriesToTopic
from slackwater.tools.dead_letters.to_log import RetriesToLog


@dataclass(frozen=True, kw_only=True)
class RetryPlan:
    """The effect that a retry would have."""

    letters: pl.DataFrame
    """The letters to send: one per record, repaired; `ids` are those of all letters of the record."""
    before: int
    """The number of matching letters that have been sent before, or may have been."""
    siblings: int
    """The number of letters about a record of which another letter is sent."""
    declined: int
    """The number of letters that the repair skipped on purpose."""
    left: tuple[Left, ...]
    """The letters that match but cannot be sent."""


@dataclass(frozen=True, kw_only=True)
class Retry:
    """A retry in progress: it has settled open batches, and holds the ledger's lock."""

    where: Where
    target: RetryTarget
    to: str
    ledger: Ledger

    def plan(self, filters: Filters, repair: Repair | None = None) -> RetryPlan:
        """Choose and repair the letters: step 2."""
        return plan_retry(self.where, self.target, self.ledger.path, filters, repair)

    def send(self, plan: RetryPlan, *, on_progress: Callable[[int], None] = lambda _: None) -> int:
        """Send the planned letters and return their number: steps 3 to 5, batch by batch."""
        sent = 0
        for letters in self.target.batches(plan.letters):
            batch = uuid4().hex
            ids = tuple(letters["ids"].explode().to_list())
            intent = Intent(batch=batch, to=self.to, ids=ids, facts=self.target.facts(batch, letters))
            self.ledger.intend(intent)  # 3
            place = self.target.publish(intent, letters)  # 4
            self.ledger.settle(intent, "sent", **place)  # 5
            self.target.tidy(intent)
            sent += letters.height
            on_progress(sent)
        return sent


@contextmanager
def open_retry(where: Where, to: Where, ledger: Path) -> Iterator[Retry]:
    """Start a retry: step 1."""
    target = target_of(to)
    target.check()
    check_letters(where)
    with open_ledger(ledger) as opened:
        settle_open(opened)
        yield Retry(where=where, target=target, to=str(to), ledger=opened)


def plan_retry(
    where: Where, target: RetryTarget, ledger: Path, filters: Filters, repair: Repair | None = None
) -> RetryPlan:
    """Determine what a retry would do, without writing anything."""
    book = read_ledger(ledger)
    gone = pl.concat([book.retried["id"], pl.Series("id", book.unsettled, dtype=pl.String)])
    known = scan_letters(where)
    ids = known.group_by("record").agg(ids=pl.col("id").unique(maintain_order=True))
    meant = known.filter(filters.expression()).join(ids, on="record", how="left", maintain_order="left").collect()
    fresh = meant.filter(~pl.col("id").is_in(gone.implode()))
    records, left = _records(fresh)
    letters, declined = records, 0
    if repair is not None:
        repaired = repair_letters(records, repair)
        letters, declined, left = repaired.letters, repaired.declined, (*left, *repaired.left)
    unsendable = target.unsendable(letters)
    sendable = letters.filter(~pl.col("id").is_in([each.id for each in unsendable]))
    chosen = sendable.unique("record", keep="first", maintain_order=True)
    return RetryPlan(
        letters=chosen,
        before=meant.height - fresh.height,
        siblings=sendable.height - chosen.height,
        declined=declined,
        left=(*left, *unsendable),
    )


def _records(letters: pl.DataFrame) -> tuple[pl.DataFrame, tuple[Left, ...]]:
    """Return the letters that are records of a source, and why the others, results of keyed steps, are not sent."""
    is_of_step = pl.col("partition").str.replace(r"/\d{6}$", "") == pl.col("source")
    is_result = letters.select(
        is_of_step.fill_null(value=False) & (pl.col("partition") != pl.col("source"))
    ).to_series()
    why = "it is a result of step `{}`, not a record of a source; fix the cause, and compute it from its records again"
    results = letters.filter(is_result).select("id", "source").iter_rows()
    return letters.filter(~is_result), tuple(Left(id=id_, why=why.format(step)) for id_, step in results)


def settle_open(ledger: Ledger) -> None:
    """Determine the outcome of the batches that are open in the ledger, and record it."""
    book = read_ledger(ledger.path)
    for intent in book.open:
        target = target_of(where_of(intent.to, what="--to"))
        try:
            is_there = target.holds(intent)
        except UnsureError as error:
            line = json.dumps({"batch": intent.batch, "state": "sent"})
            facts = {"batch": intent.batch, "to": intent.to, "cause": error, "line": line, "path": ledger.path}
            raise fault("RETRY_UNSURE", **facts) from error
        ledger.settle(intent, "sent" if is_there else "withdrawn")
        target.tidy(intent)
    if book.last is not None and not book.open:
        target_of(where_of(book.last.to, what="--to")).tidy(book.last)


def target_of(to: Where) -> RetryTarget:
    """Return the target that sends to `to`."""
    return RetriesToLog(folder=to.path) if isinstance(to, Folder) else RetriesToTopic(topic=to)
