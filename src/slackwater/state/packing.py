"""Packing: a frame as bytes and back, headed by the name of the step it belongs to.

Spark numbers stateful operators by position, so a changed pipeline could be handed another step's
state. The header makes that an error instead of a wrong result.
"""

from __future__ import annotations

import io
from typing import Final

import polars as pl

from slackwater.errors import fault

_MAGIC: Final = b"SW1"


def pack(frame: pl.DataFrame, owner: str) -> bytes:
    """Return `frame` as an Arrow IPC stream behind a header that names its `owner`."""
    name = owner.encode()
    out = io.BytesIO()
    out.write(_MAGIC + len(name).to_bytes(2, "little") + name)
    frame.write_ipc_stream(out, compression="lz4")
    return out.getvalue()


def unpack(blob: bytes, owner: str) -> pl.DataFrame:
    """Return the frame in `blob`; fails if it was packed for another step."""
    size = int.from_bytes(blob[3:5], "little")
    found = blob[5 : 5 + size].decode(errors="replace") if blob[:3] == _MAGIC else "(not a Slackwater blob)"
    if found != owner:
        raise fault("STATE_OF_ANOTHER_STEP", step=owner, got=found)
    return pl.read_ipc_stream(blob[5 + size :])
