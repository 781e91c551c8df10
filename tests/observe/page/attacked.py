"""A job with a page and metrics in a process of its own, for tests that attack them.

`python -m tests.observe.page.attacked` runs it.

It has few descriptors, opens a file for each batch, as jobs do, and shows what hostile rows leave on a page. It prints
its ports, then its figures for each line that it reads.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import slackwater as sw
from slackwater.engine.front.samples import readable
from slackwater.observe.metrics.merging import merged
from slackwater.observe.metrics.monitor import Live
from slackwater.observe.metrics.prometheus import Collector, serving
from slackwater.observe.metrics.runs import Run
from slackwater.observe.page.live import LivePage
from tests.observe.metrics.made_records import START_MS, record

MOST_DESCRIPTORS: Final = 1_024
HOSTILE: Final = '</script><script>hacked = 1</script>\x00\x1b[31m\u202e\ud800 "\r\n'
_PAUSE_S: Final = 0.005


def main() -> None:
    """Run until the input ends."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (MOST_DESCRIPTORS, MOST_DESCRIPTORS))
    rows = sw.stream("orders", sw.testing.rows_source("k string, t long")).event_time("t", out_of_orderness="5s")
    counts = rows.key_by("k").window(sw.tumbling("1m"), name="per_minute").aggregate(n=sw.count())
    ends = counts.to(sw.sinks.memory()), counts.late.drop(), rows.dead_letters.drop()
    collector, done = Collector(), threading.Event()
    with (
        tempfile.TemporaryDirectory(prefix="slackwater-attacked-") as folder,
        LivePage(sw.Pipeline("shop", *ends).plan()) as page,
        serving(collector, port=0) as metrics,
    ):
        job = _Job(Path(folder), page, collector)
        print(json.dumps([urlsplit(page.address).port, metrics]), flush=True)
        job.batch()
        thread = threading.Thread(target=job.run, args=(done,))
        thread.start()
        for _ in sys.stdin:
            print(json.dumps(job.figures()), flush=True)
        done.set()
        thread.join()


class _Job:
    def __init__(self, folder: Path, page: LivePage, collector: Collector) -> None:
        self._folder, self._page, self._collector = folder, page, collector
        self._batches = 0
        self._failure = ""

    def run(self, done: threading.Event) -> None:
        while not done.wait(_PAUSE_S) and not self._failure:
            try:
                self.batch()
            except OSError as error:
                self._failure = str(error)

    def batch(self) -> None:
        made = record(self._batches)
        orders = made.streams["orders"]
        made = replace(
            made,
            streams={"orders": replace(orders, dead={HOSTILE: 3}, partitions={HOSTILE: orders.partitions["orders-0"]})},
        )
        names = dict.fromkeys(("kind", "step", "reason", "source", "partition"), HOSTILE)
        samples = [{**names, "data": readable(HOSTILE + "x" * 1_000_000), "at": made.at_ms, "batch": made.batch}]
        run = Run(starts=1, since_ms=START_MS)
        live = Live(pipeline="shop", run=run, last=made, total=merged([made]), samples=samples)
        (self._folder / "state").write_text(str(made))
        self._page.note(live)
        self._collector.note(live)
        self._batches += 1

    def figures(self) -> dict[str, Any]:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return {
            "batches": self._batches,
            "failure": self._failure,
            "descriptors": sum(1 for _ in Path("/proc/self/fd").iterdir()),
            "threads": threading.active_count(),
            "megabytes": pages * resource.getpagesize() / 1e6,
        }


if __name__ == "__main__":
    main()
