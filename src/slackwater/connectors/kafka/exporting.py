"""Exports a topic as a log of JSON lines."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from slackwater.base.errors import counted, fault
from slackwater.connectors.kafka.client import partition_name
from slackwater.connectors.kafka.connection import Connection
from slackwater.connectors.kafka.playing import OnProgress
from slackwater.connectors.kafka.reading import topic_messages
from slackwater.connectors.log.listing import list_log
from slackwater.connectors.log.writing import LogWriter

_NAMED: Final = 5


@dataclass(kw_only=True)
class Exported:
    """The outcome of an export: counts of a topic's records."""

    written: int = 0
    empty: int = 0
    """Records without a value, which delete others with their key in a compacted topic."""
    not_lines: int = 0
    """Records that a line cannot hold; they are not written."""
    named: str = ""
    """The positions of the first of these."""


def export(
    connection: Connection, topic: str, folder: Path, *, append: bool = False, on_progress: OnProgress = lambda _: None
) -> Exported:
    """Write the current content of `topic` to a log of JSON lines, which must be new unless `append`.

    Each partition becomes a partition of the log. A log has no keys and headers, so they are left out.
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
            on_progress(done.written)
    return done


def one_line(value: bytes) -> bytes | None:
    """Return a record as an equivalent line: unchanged, or its JSON without line breaks; None if neither is possible.

    JSON strings contain no raw line breaks, so all line breaks of a valid document are between its values.
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
