"""The log that the killed jobs read: out-of-order, late, broken and future records, the same every time.

Event time goes on one minute a round; each round is one file in each of two partitions, and one batch.

    round        r-4        …        r-1         r
    on time                       [:52  :60)  [:00  :60)      out of order by less than the slack of 10 s
    corrects   [:15]                                          complete for long, within the lateness of 5 m
    late       an hour before the first round                 forgotten for long

The distances are wide on purpose: should a restart put two rounds into one batch (Spark's file source
may, if it is killed between its own two logs), every record still meets the same fate.
"""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any, Final

import polars as pl

ROUNDS: Final = 12
LARGE_ROUNDS: Final = 4
LARGE_USERS: Final = 260_000
"""More than 100,000 in each of two key groups, so that each group's output is cut into several packets."""
START_MS: Final = 1_767_225_600_000
MINUTE_MS: Final = 60_000
_PARTITIONS: Final = ("0", "1")
_USERS: Final = [f"u{number}" for number in range(8)]
_WRITTEN_S: Final = 1_767_000_000
_FUTURE_MS: Final = 7_258_118_400_000


def write_log(folder: Path, *, rounds: int = ROUNDS) -> int:
    """Write the log and return how many records it has; each holds its own number as `id`."""
    dice = random.Random(7)
    count = 0
    for round_ in range(rounds):
        for number, partition in enumerate(_PARTITIONS):
            lines = [_with_id(record, count + at) for at, record in enumerate(_records(round_, number, dice))]
            path = folder / partition / f"{round_:020d}.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(f"{line}\n" for line in lines))
            # Spark reads files by their time; equal times would leave the order to chance.
            written = _WRITTEN_S + 10 * round_ + number
            os.utime(path, (written, written))
            count += len(lines)
    return count


def write_large_log(folder: Path) -> int:
    """Write a log of few rounds, each with a record of every one of very many users; return how many records it has."""
    for round_ in range(LARGE_ROUNDS):
        rows = pl.DataFrame({"id": pl.int_range(LARGE_USERS, eager=True) + round_ * LARGE_USERS}).with_columns(
            user=pl.format("user-{}", pl.col("id") % LARGE_USERS),
            ts=START_MS + round_ * MINUTE_MS + pl.col("id") % MINUTE_MS,
            amount=pl.col("id") % 1_000 + 1,
        )
        path = folder / "0" / f"{round_:020d}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        rows.write_ndjson(path)
        os.utime(path, (_WRITTEN_S + 10 * round_, _WRITTEN_S + 10 * round_))
    return LARGE_ROUNDS * LARGE_USERS


def _records(round_: int, partition: int, dice: random.Random) -> list[dict[str, Any] | str]:
    begin = START_MS + round_ * MINUTE_MS
    users = _USERS[partition::2]
    records: list[dict[str, Any] | str] = []
    for user in users:
        # The first user of a partition never pauses, so its session spans the whole log.
        last = 59_000 if user == users[0] else 30_000
        records += [_record(user, begin + dice.randrange(0, last), dice) for _ in range(6)]
        if user == users[0]:
            records += [_record(user, begin + at, dice) for at in range(0, 60_000, 15_000)]
        if round_ >= 1:
            records.append(_record(user, begin - dice.randrange(1, 8_000), dice))
        if round_ >= 4:
            records.append(_record(user, begin - 4 * MINUTE_MS + 15_000, dice))
        if round_ >= 3:
            records.append(_record(user, START_MS - 3_600_000 + dice.randrange(1_800_000), dice))
    dice.shuffle(records)
    # The last record puts each partition's watermark to the same place, round by round.
    return [
        *records,
        _record(users[0], _FUTURE_MS, dice),
        {**_record(users[1], begin, dice), "amount": -1},
        {"user": users[2], "amount": 1},
        '"user": "no object"',
        '{"user": "cut',
        _record(users[0], begin + MINUTE_MS - 1, dice),
    ]


def _record(user: str, ts_ms: int, dice: random.Random) -> dict[str, Any]:
    return {"user": user, "ts": ts_ms, "amount": dice.randrange(1, 1_000)}


def _with_id(record: dict[str, Any] | str, number: int) -> str:
    if isinstance(record, str):
        return record.replace('"user"', f'"id": {number}, "user"')
    return json.dumps({"id": number, **record})
