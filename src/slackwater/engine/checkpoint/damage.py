"""Detection of damaged checkpoint files; Spark's own are checked only after a failure, so a start costs nothing."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from slackwater.base.errors import RunError
from slackwater.base.stored import DamageError, damaged, readable, shaped

_STATE: Final = re.compile(
    r"CANNOT_LOAD_STATE_STORE|STREAMING_STATEFUL_OPERATOR_MISSING_STATE_DIRECTORY|org\.rocksdb\.RocksDBException"
)
_CAUSE: Final = re.compile(r"^Caused by: (?:[\w.$]+\.)?(\w+)(?:: (.*))?$", re.MULTILINE)
_FILE: Final = re.compile(r"file:(/\S+)")
_LOGS: Final = ("metadata", "offsets/*", "commits/*", "sources/*/*", "state/*/_metadata/**/*")
_LONGEST: Final = 150


def damage_of(checkpoint: Path, error: BaseException) -> RunError | None:
    """Return an error naming the damaged file of the checkpoint; None if damage is not why Spark failed."""
    try:
        for path in _logs(checkpoint):
            _check(path, checkpoint)
    except RunError as damage:
        return damage
    text = str(error)
    if _STATE.search(text) is None:
        return None
    files = [Path(found) for found in _FILE.findall(text)]
    state = next((file for file in files if file.is_relative_to(checkpoint)), checkpoint / "state")
    snapshots = sorted(
        checkpoint.glob("state/*/*/*.zip"), key=lambda path: -int(path.stem) if path.stem.isdigit() else 0
    )
    if broken := next((path for path in snapshots if not zipfile.is_zipfile(path)), None):
        # Spark falls back to older and older snapshots, and names the last one it did not find.
        return damaged(checkpoint)(broken, "it is not a snapshot of state")
    return damaged(checkpoint)(state, _why(text, state))


def _logs(checkpoint: Path) -> Iterator[Path]:
    for pattern in _LOGS:
        yield from sorted(
            path for path in checkpoint.glob(pattern) if path.is_file() and not path.name.startswith((".", "_"))
        )


def _check(path: Path, checkpoint: Path) -> None:
    """Raise if one of Spark's logs cannot be read: a version line, then lines of which many are JSON."""
    with readable(path, damaged(checkpoint)):
        # The Kafka connector starts its file with a zero byte.
        first, *lines = path.read_text(encoding="utf-8").lstrip("\0").splitlines() or [""]
        if path.name == "metadata":
            shaped(json.loads(first), dict)
            return
        if re.fullmatch(r"v\d+", first) is None:
            raise DamageError("it is empty" if not first else "it does not start with a version")
        for line in lines:
            if line.startswith("{"):
                json.loads(line)


def _why(text: str, state: Path) -> str:
    if not state.exists():
        return "it is missing"
    causes = [f"{kind} {words or ''}" for kind, words in _CAUSE.findall(text) if kind != "InterruptedException"]
    return f"the state cannot be loaded ({causes[-1].strip()[:_LONGEST]})" if causes else "the state cannot be loaded"
