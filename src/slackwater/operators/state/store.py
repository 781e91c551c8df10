"""The store of a key group: its blobs by name, and the index that says what they are.

Each blob is a piece or a chunk of a step's state (`pieces.py`). The index has the facts about all pieces, with their
checksums, and is itself sealed.
"""

from __future__ import annotations

import json
from typing import Any, Final, Protocol

from slackwater.base.errors import fault, fault_of_version
from slackwater.base.sealed import sealed, unsealed
from slackwater.base.stored import AnotherVersionError, DamageError

INDEX: Final = "index"
"""The key of a key group's index."""
INDEX_FORM: Final = 2


class Store(Protocol):
    """Where a key group keeps its blobs: Spark's map state, or a dictionary in memory."""

    def get(self, key: str) -> bytes | None:
        """Return a blob, or None."""

    def put(self, key: str, blob: bytes) -> None:
        """Store a blob."""

    def remove(self, key: str) -> None:
        """Remove a blob, if it exists."""


class DictStore:
    """Stores the blobs of a key group in a dictionary."""

    def __init__(self, blobs: dict[str, bytes] | None = None) -> None:
        self.blobs = {} if blobs is None else blobs

    def get(self, key: str) -> bytes | None:
        """Return a blob, or None."""
        return self.blobs.get(key)

    def put(self, key: str, blob: bytes) -> None:
        """Store a blob."""
        self.blobs[key] = blob

    def remove(self, key: str) -> None:
        """Remove a blob."""
        self.blobs.pop(key, None)


def read_index(store: Store, place: str | None, of: str | None) -> dict[str, Any]:
    """Return the index of a key group's state; `place` and `of` say whose it must be, None that it may be anyone's."""
    blob = store.get(INDEX)
    if blob is None:
        return {}
    what = f"the index of `{place or 'a key group'}`"
    try:
        index: dict[str, Any] = json.loads(unsealed(blob, place=place, of=of, form=INDEX_FORM))
    except AnotherVersionError as error:
        raise fault_of_version("STATE_DAMAGED", what=what, why=error) from error
    except DamageError as error:
        raise fault("STATE_DAMAGED", what=what, why=error) from error
    return index


def write_index(store: Store, index: dict[str, Any], place: str, of: str) -> None:
    """Store the index of a key group's state; a group without state stores nothing, not even an index."""
    if index:
        store.put(INDEX, sealed(json.dumps(index).encode(), place=place, of=of, form=INDEX_FORM))
    else:
        store.remove(INDEX)
