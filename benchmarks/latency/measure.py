"""One latency case: a side in a process of its own, under load, and what its reader saw."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from benchmarks.latency.load import Feed, Results, make_topics
from slackwater.connectors.kafka import broker

Case = Literal["filter", "process", "window", "join"]
Side = Literal["ours", "Spark's"]
CASES: Final[tuple[Case, ...]] = ("filter", "process", "window", "join")
SIDES: Final[tuple[Side, ...]] = ("ours", "Spark's")
QUANTILES: Final = (0.5, 0.95, 0.99, 0.999)
WARM_UP_S: Final = 20.0
_PATIENCE_S: Final = 180.0
_HERE: Final = Path(__file__).resolve().parent


@dataclass(frozen=True, kw_only=True)
class Latency:
    """What the reader of one side's results saw."""

    case: Case
    side: Side
    rate: int
    quantiles_s: tuple[float, ...]
    results: int
    """Results that were measured."""
    lost: int
    doubled: int
    """Of the events of a case with one result each; Spark's Kafka sink promises not to lose, and may double."""

    @property
    def entry(self) -> dict[str, Any]:
        """What is kept of it."""
        named = {f"p{100 * share:g}": round(value, 3) for share, value in zip(QUANTILES, self.quantiles_s, strict=True)}
        facts = {"results": self.results, "lost": self.lost, "doubled": self.doubled}
        return {"case": self.case, "side": self.side, "rate": self.rate, **named, **facts}


def measure(case: Case, side: Side, *, rate: int, seconds: float, home: Path, say: Callable[[str], None]) -> Latency:
    """Run one side of a case under load for `seconds`, after it has warmed up."""
    started = broker.up(home / "broker", port=broker.free_port())
    sources = ("events", "others") if case == "join" else ("events",)
    make_topics(started.servers, (*sources, "results"))
    feed = Feed(servers=started.servers, topics=sources, rate=rate)
    results = Results(servers=started.servers, feed=feed)
    results.start()
    job = _start(case, side, started.servers, home)
    try:
        say("waiting for the first result")
        feed.start()
        _until(lambda: len(results.ids) > 0, job, home)
        say("warming up")
        time.sleep(WARM_UP_S)
        results.since = time.monotonic()
        results.until = results.since + seconds
        say(f"measuring for {seconds:.0f} s")
        time.sleep(seconds)
        sent = feed.stop()
        _until(lambda: _is_complete(results), job, home)
    finally:
        _stop(job)
        results.stop()
        broker.down(home / "broker")
    lost, doubled = _account(case, results, sent)
    quantiles = tuple(float(value) for value in np.quantile(np.asarray(results.latencies), QUANTILES))
    return Latency(
        case=case,
        side=side,
        rate=rate,
        quantiles_s=quantiles,
        results=len(results.latencies),
        lost=lost,
        doubled=doubled,
    )


def _start(case: Case, side: Side, servers: str, home: Path) -> subprocess.Popen[bytes]:
    script = str(_HERE / ("pipelines.py" if side == "ours" else "plain_spark.py"))
    command = [sys.executable, script, case, servers, str(home)]
    if side == "ours":
        command = [sys.executable, "-m", "slackwater", "run", script, "--checkpoint", str(home / "checkpoint")]
        command += ["--trigger", "0s"]
    variables = {**os.environ, "LATENCY_CASE": case, "LATENCY_SERVERS": servers, "PYSPARK_PYTHON": sys.executable}
    log = (home / "log.txt").open("wb")
    return subprocess.Popen(command, env=variables, cwd=home, stdout=log, stderr=log, start_new_session=True)


def _stop(job: subprocess.Popen[bytes]) -> None:
    job.terminate()
    try:
        job.wait(60)
    except subprocess.TimeoutExpired:
        os.killpg(job.pid, signal.SIGKILL)
        job.wait()


def _until(is_so: Callable[[], bool], job: subprocess.Popen[bytes], home: Path) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not is_so():
        if job.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"the job did not get on: {(home / 'log.txt').read_text()[-6_000:]}")
        time.sleep(0.1)


def _is_complete(results: Results) -> bool:
    """Return whether nothing has come for a while; the last events have long been sent."""
    before = len(results.ids)
    time.sleep(5)
    return len(results.ids) == before


def _account(case: Case, results: Results, sent: int) -> tuple[int, int]:
    """Return how many of the expected results are missing, and how many came twice, after the first one seen."""
    if case == "window":  # it has the events of several in one result
        return 0, 0
    seen = Counter(results.ids)
    # A job reads a topic from the end at its first start, so the events before its first result do not count.
    first = max(results.ids[:1_000], default=0)
    wanted = [number for number in range(first, sent) if case != "filter" or number % 10]
    return sum(not seen[number] for number in wanted), sum(count > 1 for count in seen.values())
