"""Packing: frames to bytes and back, with a header that names the step that owns the frame.

Spark numbers stateful operators by position, so a changed pipeline could be handed another step's
state. The header makes that an error instead of a wrong result.
"""

from __future__ import annotations

import io
from typing import Final

import polars as pl

from slackwater.base.errors import fault

_MAGIC: Final = b"SW"
_VERSION: Final = b"1"
"""The version of the blob format; any other version is rejected."""
_HEAD: Final = len(_MAGIC + _VERSION)


def pack(frame: pl.DataFrame, owner: str) -> bytes:
    """Return `frame` as an Arrow IPC stream after a header that names its `owner`."""
    name = owner.encode()
    out = io.BytesIO()
    out.write(_MAGIC + _VERSION + len(name).to_bytes(2, "little") + name)
    frame.write_ipc_stream(out, compression="lz4")
    return out.getvalue()


def unpack(blob: bytes, owner: str) -> pl.DataFrame:
    """Return the frame in `blob`; fails if it was packed for another step."""
    version = blob[len(_MAGIC) : _HEAD]
    is_ours = blob.startswith(_MAGIC) and bool(version)
    if is_ours and version != _VERSION:
        raise fault("STATE_VERSION", step=owner, got=repr(version.decode("latin-1")), known=_VERSION.decode())
    start = _HEAD + 2 + int.from_bytes(blob[_HEAD : _HEAD + 2], "little")
    found = blob[_HEAD + 2 : start].decode(errors="replace") if is_ours else "(not a Slackwater blob)"
    if found != owner:
        raise fault("STATE_OF_ANOTHER_STEP", step=owner, got=found)
    return pl.read_ipc_stream(blob[start:])
