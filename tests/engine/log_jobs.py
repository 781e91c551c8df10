"""A job over one log without Spark, and the files of its log."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import slackwater as sw
from slackwater.connectors.intake import Look, StreamPlace
from slackwater.connectors.log.intake import LogIntake
from slackwater.connectors.log.listing import ListedFile
from slackwater.engine.checkpoint.checkpoint import open_checkpoint

TIME_S = 1_767_000_000


class Job:
    """A job over one log without Spark: its batches take listings as Spark's would, and are over at once."""

    def __init__(self, home: Path, *, accept_changes: bool = False, **limits: Any) -> None:  # noqa: ANN401  as log's
        (home / "log").mkdir(exist_ok=True)
        events = sw.stream("events", sw.sources.log(home / "log", **limits)).decode(sw.formats.json("id long"))
        self.plan = sw.Pipeline("p", events.to(sw.sinks.memory()), events.dead_letters.drop()).plan()
        self.home = home / "checkpoint"
        self.checkpoint = open_checkpoint(self.home, self.plan, partitions=1, accept_changes=accept_changes)
        source = self.plan.sources[0].source
        place = StreamPlace(pipeline="p", stream="events", number=0, progress=self.checkpoint, slots=2)
        made = source.intake(place)
        assert isinstance(made, LogIntake)
        self.intake = made
        self.intake.open()

    def offer(self, most: int | None = None) -> list[Path]:
        """Return the shares that Spark finds and no batch has, oldest first."""
        taken = {share for path in (self.home / "sources" / "0").glob("*") for share in path.read_text().split("\n")}
        shares = sorted(self.intake.listings.glob("[0-9]*/*"), key=lambda share: (share.stat().st_mtime_ns, share))
        return [share for share in shares if not any(str(share) in line for line in taken)][:most]

    def begin(self, most: int | None = None) -> int:
        """Begin a batch as Spark does: write down which shares it has."""
        log, offsets = self.home / "sources" / "0", self.home / "offsets"
        for folder in (log, offsets, self.home / "commits"):
            folder.mkdir(parents=True, exist_ok=True)
        batch = len(list(offsets.iterdir()))
        entry = 1 + max((int(path.stem) for path in log.iterdir() if path.stem.isdigit()), default=-1)
        if shares := self.offer(most):
            lines = [json.dumps({"path": f"file://{s}", "timestamp": 0, "batchId": entry}) for s in shares]
            (log / str(entry)).write_text("\n".join(["v1", *lines]))
            entry += 1
        offset = json.dumps({"logOffset": entry - 1}) if entry else "-"
        (offsets / str(batch)).write_text(f'v1\n{{"batchTimestampMs":0}}\n{offset}\n0')
        return batch

    def batch(self, most: int | None = None) -> list[str]:
        """Run a batch; returns the names of its files, in the order in which they are read."""
        number = self.begin(most)
        files = self.taken(number)
        self.intake.take(number)
        (self.home / "commits" / str(number)).touch()
        return files

    def taken(self, number: int) -> list[str]:
        """Return the names of a batch's files."""
        lines = (self.home / "offsets" / str(number)).read_text().splitlines()
        before = (self.home / "offsets" / str(number - 1)).read_text().splitlines()[2] if number else "-"
        if lines[2] in ("-", before):
            return []
        entry = (self.home / "sources" / "0" / str(json.loads(lines[2])["logOffset"])).read_text().splitlines()[1:]
        shares = [Path(json.loads(line)["path"].removeprefix("file://")) for line in entry]
        listed = [ListedFile(**json.loads(line)) for share in shares for line in share.read_text().splitlines()]
        return [Path(file.place).name for file in sorted(listed, key=lambda file: (file.partition, file.number))]

    def look(self) -> Look:
        """Compare the log with what batches have taken."""
        return self.intake.look(0, ())

    @property
    def strays(self) -> list[str]:
        """What is never read."""
        return self.intake.unread()[0].strays

    @property
    def left(self) -> list[str]:
        """What no batch has."""
        return [file.path for file in self.intake.unread()[0].files]


def write(home: Path, name: str, *, time_s: int = TIME_S, text: str = "{}\n") -> Path:
    """Write a file of the log."""
    path = home / "log" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (time_s, time_s))
    return path
