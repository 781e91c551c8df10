"""The shares of a listing: text files that name the files of a log which one task reads.

A share is called `<listing>-<number>`, in the folder `<listing>`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from slackwater.base.stored import DamageError
from slackwater.connectors.log.listing import ListedFile

END: Final = "end"
"""The number of the only share of a listing without files."""


def text_of(file: ListedFile) -> str:
    """Return a file as text, for the record and for a share."""
    return json.dumps(asdict(file))


def write_shares(shares: Sequence[Path], files: Iterable[ListedFile], time_ms: int) -> None:
    """Divide files into shares of about equal size, all with one modification time."""
    dealt: list[list[ListedFile]] = [[] for _ in shares]
    sizes = [0] * len(shares)
    for file in sorted(files, key=lambda file: -file.length):
        smallest = sizes.index(min(sizes))
        dealt[smallest].append(file)
        sizes[smallest] += file.length + 1
    for path, share in zip(shares, dealt, strict=True):
        write_share(path, "".join(f"{text_of(file)}\n" for file in share), time_ms)


def write_share(path: Path, lines: str, time_ms: int) -> None:
    """Write a share, which Spark orders by its modification time."""
    path.write_text(lines, encoding="ascii")
    os.utime(path, ns=(time_ms * 1_000_000,) * 2)


def differing_share(shares: Sequence[Path], files: Iterable[ListedFile]) -> Path | None:
    """Return a share that is not as written, if the shares of a listing do not name exactly `files`."""
    missing = {text_of(file) for file in files}
    suspect = None
    for path in shares:
        try:
            lines = path.read_text(encoding="ascii", errors="replace").splitlines()
        except FileNotFoundError:
            return path
        for line in filter(None, lines):
            if line not in missing:
                suspect = suspect or path
            missing.discard(line)
    return suspect or (next(iter(shares), None) if missing else None)


def listing_of(path: str) -> int:
    """Return the listing that a share belongs to, which its folder and its name both state."""
    listing, share = Path(path).parent.name, Path(path).name
    if not share.startswith(f"{listing}-"):
        raise DamageError(f"it names `{listing}/{share}`, which is not part of a listing")
    return int(listing)


def is_after(listing: int, path: str) -> bool:
    """Return whether a share belongs to a later listing."""
    return listing_of(path) > listing


def share_name(listing: int, number: str) -> str:
    """Return the name of a share."""
    return f"{listing:012d}-{number}"


def is_end(path: str) -> bool:
    """Return whether a share is that of the listing without files."""
    return Path(path).name.endswith(END)
