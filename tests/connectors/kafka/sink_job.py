"""A job that delivers numbered rows to a topic, to be killed and started again.

    python -m tests.connectors.kafka.sink_job SERVERS TOPIC NOTES BATCHES ROWS

The file NOTES stands for the checkpoint: it gets a line when a batch was delivered.
"""

from __future__ import annotations

import sys
from pathlib import Path

from slackwater.connectors.kafka.sink import kafka
from slackwater.testing import SinkHarness
from tests.connectors.kafka.sinks import SCHEMA, rows


def main(servers: str, topic: str, notes: str, batches: str, count: str) -> None:
    """Deliver what is not delivered yet."""
    book, each = Path(notes), int(count)
    done = [int(line) for line in book.read_text().split()] if book.exists() else []
    with SinkHarness(sink=kafka(servers, topic, key="name"), schema=SCHEMA, marked=done) as job:
        for batch in range(len(done), int(batches)):
            halves = [rows(*range(start, start + each // 2)) for start in (batch * each, batch * each + each // 2)]
            job.deliver(*halves, batch=batch)
            with book.open("a") as out:
                out.write(f"{batch}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
