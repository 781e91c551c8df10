"""A topic written down as a log of JSON lines."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from slackwater.errors import counted, fault
from slackwater.kafka.client import partition_name
from slackwater.kafka.connection import Connection
from slackwater.kafka.reading import topic_messages
from slackwater.sources.log.listing import list_log
from slackwater.sources.log.writing import LogWriter
from slackwater.topics.playing import Told

_NAMED: Final = 5


@dataclass(kw_only=True)
class Exported:
    """What came of the records of a topic."""

    written: int = 0
    empty: int = 0
    """Records without a value: they take back others of their key, where Kafka compacts."""
    not_lines: int = 0
    """Records that no line can hold; they are written nowhere."""
    named: str = ""
    """Where the first of those are."""


def export(
    connection: Connection, topic: str, folder: Path, *, append: bool = False, told: Told = lambda _: None
) -> Exported:
    """Write what `topic` holds now into a log of JSON lines, which is a new one unless `append`.

    Each partition becomes one of the log. Keys and headers have no place in a log and are left out.
    """
    if not append and (files := list_log(folder)):
        raise fault("EXPORT_FOLDER", folder=folder, count=counted(len(files), "file"))
    done = Exported()
    held = topic_messages(connection, [topic])
    with LogWriter(folder) as log:
        for messages in held:
            for message in messages:
                value = message.value()
                if value is None:
                    done.empty += 1
                elif (line := one_line(value)) is None:
                    _note(done, f"{partition_name((topic, message.partition()))} offset {message.offset():,}")
                else:
                    log.append(line, str(message.partition()))
                    done.written += 1
            told(done.written)
    return done


def one_line(value: bytes) -> bytes | None:
    """Return a record as a line that means the same: itself, or its JSON without line breaks; None if neither will do.

    Within strings JSON has no raw line breaks, so that those of a valid document are all between its parts.
    """
    if b"\n" not in value and not value.endswith(b"\r"):
        return value
    try:
        json.loads(value.decode("utf-8"))
    except (ValueError, RecursionError):
        return None
    return value.replace(b"\r", b" ").replace(b"\n", b" ").rstrip(b" ")


def _note(done: Exported, place: str) -> None:
    done.not_lines += 1
    if done.not_lines <= _NAMED:
        done.named += f", {place}" if done.named else place
    elif done.not_lines == _NAMED + 1:
        done.named += ", …"
