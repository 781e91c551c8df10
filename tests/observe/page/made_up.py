"""A job that is made up, for tests of the page: phones whose purchases come late, with a stalled partition."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any, Final

import numpy as np

from slackwater.eventtime.measured_lateness import LatenessSketch
from slackwater.observe.page.job_feed import JobFeed

SLACK_MS: Final = 10_000
MINUTE_MS: Final = 60_000


def job(**more: Any) -> dict[str, Any]:  # noqa: ANN401  as the browser takes it
    """Return the description of the job."""
    return {
        "pipeline": "purchases",
        "state": "running",
        "starts": 1,
        "streams": [{"name": "purchases", "slack_ms": SLACK_MS}],
        "steps": [{"name": "per_minute", "size_ms": MINUTE_MS, "offset_ms": 0, "lateness_ms": 2 * MINUTE_MS}],
        "outputs": {"per_minute": "files at out"},
        "sinks": {"per_minute to files": {"output": "per_minute", "sink": "files at out", "promise": "exactly once"}},
        "svg": None,
        **more,
    }


class MadeUp:
    """Makes the records of one batch after another."""

    def __init__(self, start_ms: int, seed: int = 1) -> None:
        self.dice = random.Random(seed)
        self.now = start_ms
        self.batch = -1
        self.watermark: int | None = None
        self.newest = {"0": start_ms - 5_000, "1": start_ms - 5_000}
        self.sketch = LatenessSketch.empty()
        self.bytes = 20_000

    def record(self) -> dict[str, Any]:
        """Return the next batch, two seconds after the last one."""
        self.batch += 1
        self.now += 2_000
        before = self.watermark
        ages: Counter[int] = Counter()
        late = ahead = refired = 0
        rows = self.dice.randrange(300, 500)
        times: dict[str, list[int]] = {"0": [], "1": []}
        for _ in range(rows):
            age = round(self.dice.expovariate(1 / 2_500))
            if self.dice.random() < 0.02:
                age = round(self.dice.uniform(15_000, 150_000))
            part = self.dice.choice("01")
            at = self.now - age
            times[part].append(at)
            late += before is not None and at < before - 2 * MINUTE_MS
            refired += before is not None and before - 2 * MINUTE_MS <= at < before - MINUTE_MS
            ages[1 << age.bit_length()] += 1
        for part, of_part in times.items():
            self.newest[part] = self.sketch.observe(np.array(of_part, dtype=np.int64), self.newest[part])
        self.watermark = max(self.watermark or 0, min(self.newest.values()) - SLACK_MS)
        broken = self.dice.randrange(4) if self.batch % 5 == 0 else 0
        ahead = self.batch % 17 == 8
        self.bytes += self.dice.randrange(-2_000, 2_300)
        return {
            "batch": self.batch,
            "run": 1,
            "at": self.now + 600,
            "now": self.now,
            "seconds": 0.5 + self.dice.random() / 3,
            "phases": {"front": 0.3 + self.dice.random() / 5, "keyed": 0.1, "sinks": 0.1, "clock": 0.02},
            "rows": rows,
            "late": late,
            "streams": {
                "purchases": {
                    "rows": rows,
                    "watermark": self.watermark,
                    "ages": [[low // 2, low, count] for low, count in sorted(ages.items())],
                    "ahead": int(ahead),
                    "dead": {"malformed": broken, "ahead_of_clock": int(ahead)} if broken or ahead else {},
                    "held_by": min(self.newest, key=self.newest.__getitem__),
                    "waits": None,
                    "partitions": {
                        name: {"max_ts": ts, "rows": rows // 2, "idle": False, "lag": None}
                        for name, ts in self.newest.items()
                    },
                }
            },
            "steps": {
                "per_minute": {
                    "late": late,
                    "refired": refired,
                    "dead": {},
                    "bytes": self.bytes,
                    "rows": 900,
                    "keys": 640,
                    "share": None,
                    "ports": {},
                }
            },
            "outputs": {"per_minute": {"rows": 40, "p50": 11_000, "p99": 14_000}},
            "sinks": {
                "per_minute to files": {"rows": 40, "seconds": 0.1, "waited": 0.5, "retries": 1, "last": self.batch}
            },
            "lookups": {},
        }

    def samples(self) -> list[dict[str, Any]]:
        """Return a dead letter and a late row of the last batch."""
        place = {"batch": self.batch, "at": self.now, "source": "purchases", "partition": "1"}
        return [
            {**place, "kind": "dead", "step": "decode", "reason": "malformed", "offset": 10 * self.batch},
            {**place, "kind": "late", "step": "per_minute", "reason": "late", "offset": 7, "late_by_ms": 61_000},
        ]

    def lateness(self) -> dict[str, Any]:
        """Return how late rows were so far."""
        ends, shares = self.sketch.curve()
        points = [[int(end), float(share)] for end, share in zip(ends, shares, strict=True)]
        return {"purchases": {"points": points, "p99_ms": self.sketch.covering(0.99), "rows": self.sketch.count}}


def made_up_feed(start_ms: int, batches: int) -> tuple[JobFeed, MadeUp]:
    """Return a feed with some batches, and what makes the next ones."""
    made = MadeUp(start_ms)
    records = [made.record() for _ in range(batches)]
    return JobFeed(job(), records, made.lateness(), made.samples()), made
