"""A job over a log whose names are in five encodings: `python -m tests.on_spark.log_names HOME` runs it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

import slackwater as sw
from slackwater.spark.session import spark_session

NAMES: Final = {"utf-8": "münchen", "latin-1": "zürich", "cp1251": "москва", "shift-jis": "東京", "gb18030": "北京"}


def write_log(root: Path) -> int:
    """Write a folder and a file for each name, with two records each; returns the number of records."""
    for encoding, name in NAMES.items():
        folder = os.fsencode(root) + b"/" + name.encode(encoding)
        os.makedirs(folder)  # noqa: PTH103  the name is bytes
        for number in range(2):
            with open(folder + b"/" + f"{name}-{number}".encode(encoding) + b".jsonl", "wb") as file:  # noqa: PTH123
                file.write(b'{"id": %d, "k": "a", "ts": 0}\n' % number)
    return 2 * len(NAMES)


def main(home: Path) -> None:
    """Count the records, in a log and a checkpoint whose own path is not ASCII."""
    source = sw.sources.log(home / "lög")
    events = sw.stream("events", source).decode(sw.formats.json("id long, k string, ts long")).event_time("ts")
    results = events.key_by("k").window(sw.tumbling("1m")).aggregate(n=sw.count())
    kept, dead = sw.sinks.memory(), sw.sinks.memory()
    pipeline = sw.Pipeline("names", results.to(kept), results.late.drop(), events.dead_letters.to(dead), key_groups=2)
    spark = spark_session(master="local[1]", name="names", conf={"spark.driver.memory": "512m"})
    pipeline.run(spark, checkpoint=home / "chéckpoint", bounded=True, partitions=2)
    sys.stdout.write(f"counted {kept.rows()['n'].sum()}, dead {dead.rows().height}\n")
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
