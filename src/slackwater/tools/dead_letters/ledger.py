"""The retry ledger: which letters have been retried, when and to which target; a file of JSON lines next to them.

A batch of letters has two lines. The first is the intent, written before anything is sent:

    {"batch": "5c1…", "state": "intent", "at": "2026-03-01T12:00:00Z", "to": "…", "ids": ["…"], …}

The second is the outcome: `sent`, or `withdrawn` if a crash prevented sending. Each line is synced to disk before the
next step. An incomplete last line is ignored: no step relied on it.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Final, Literal

import polars as pl

from slackwater.base.durable import flush_folder
from slackwater.base.errors import fault
from slackwater.base.times import TIMESTAMP
from slackwater.tools.dead_letters.places import Folder, Where

LEDGER: Final = "_retried.jsonl"
_STATES: Final = ("intent", "sent", "withdrawn")
_SHOWN: Final = 60

Outcome = Literal["sent", "withdrawn"]


@dataclass(frozen=True, kw_only=True)
class Intent:
    """A batch that was sent or is about to be; `facts` are the target's, to find the batch there."""

    batch: str
    to: str
    ids: tuple[str, ...]
    facts: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Book:
    """The content of a ledger: the letters that were sent, and the batches whose outcome is unknown."""

    retried: pl.DataFrame
    """The columns `id` and `retried`, the time at which the letter was sent."""
    open: tuple[Intent, ...]
    last: Intent | None

    @property
    def unsettled(self) -> list[str]:
        """The letters that may or may not have been sent."""
        return [letter for intent in self.open for letter in intent.ids]


def ledger_path(where: Where, given: Path | None = None) -> Path:
    """Return the path of the ledger: in the folder of the letters or, for a topic, in the working folder."""
    if given is not None:
        return given.absolute()
    if isinstance(where, Folder):
        return where.path / LEDGER
    return Path(".slackwater").absolute() / f"retried-{where.name}.jsonl"


def read_ledger(path: Path) -> Book:
    """Read a ledger; one that does not exist is empty."""
    intents: dict[str, Intent] = {}
    times: dict[str, str] = {}
    outcomes: dict[str, str] = {}
    for number, line in enumerate(_complete_lines(path), start=1):
        entry = _entry(path, number, line)
        batch = entry["batch"]
        if entry["state"] == "intent":
            known = ("batch", "state", "at", "to", "ids")
            facts = {name: value for name, value in entry.items() if name not in known}
            intents[batch] = Intent(batch=batch, to=entry["to"], ids=tuple(entry["ids"]), facts=facts)
            times[batch] = entry["at"]
        elif batch not in intents:
            raise _unreadable(path, number, line)
        else:
            outcomes[batch] = entry["state"]
    sent = [batch for batch in intents if outcomes.get(batch) == "sent"]
    retried = pl.DataFrame(
        {"id": [intents[batch].ids for batch in sent], "retried": [times[batch] for batch in sent]},
        schema={"id": pl.List(pl.String), "retried": pl.String},
    )
    return Book(
        retried=retried.explode("id", empty_as_null=False)
        .with_columns(pl.col("retried").str.to_datetime("%+", time_unit="us", time_zone="UTC").cast(TIMESTAMP))
        .unique("id", keep="last"),
        open=tuple(intent for batch, intent in intents.items() if batch not in outcomes),
        last=next(reversed(intents.values()), None),
    )


@dataclass(frozen=True, kw_only=True)
class Ledger:
    """A ledger that only this process may write to."""

    path: Path
    _file: IO[bytes]

    def intend(self, intent: Intent) -> None:
        """Record a batch that is about to be sent."""
        facts = {"to": intent.to, "ids": intent.ids, **intent.facts}
        self._append({"batch": intent.batch, "state": "intent", "at": _now(), **facts})

    def settle(self, intent: Intent, outcome: Outcome, **facts: object) -> None:
        """Record the outcome of a batch."""
        self._append({"batch": intent.batch, "state": outcome, "at": _now(), **facts})

    def _append(self, entry: Mapping[str, object]) -> None:
        self._file.write(json.dumps(entry).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())


@contextmanager
def open_ledger(path: Path) -> Iterator[Ledger]:
    """Open a ledger for writing, and lock out other writers."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise fault("RETRY_BUSY", path=path) from error
        # Otherwise a line that a crash left incomplete would become the beginning of the next one.
        file.truncate(sum(len(line) + 1 for line in _complete_lines(path)))
        flush_folder(path.parent)
        yield Ledger(path=path, _file=file)


def _complete_lines(path: Path) -> list[bytes]:
    try:
        return path.read_bytes().split(b"\n")[:-1]
    except FileNotFoundError:
        return []


def _entry(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except ValueError as error:
        raise _unreadable(path, number, line) from error
    is_ours = isinstance(entry, dict) and isinstance(entry.get("batch"), str) and entry.get("state") in _STATES
    if is_ours and entry["state"] == "intent":
        is_ours = isinstance(entry.get("ids"), list) and all(isinstance(entry.get(name), str) for name in ("at", "to"))
    if not is_ours:
        raise _unreadable(path, number, line)
    return dict(entry)


def _unreadable(path: Path, number: int, line: bytes) -> Exception:
    return fault("RETRY_LEDGER", path=path, line=number, got=f"{line!r:.{_SHOWN}}")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
