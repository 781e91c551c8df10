"""Chunks of a few entries, so that small states are stored as large ones are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch


@contextmanager
def tiny_chunks(rows: int = 4) -> Iterator[None]:
    """Store more than three entries of a cell, or more than one timer, in chunks of at most `rows`."""
    with (
        patch("slackwater.operators.process.chunks.INLINE_ROWS", 3),
        patch("slackwater.operators.process.chunks.CHUNK_ROWS", rows),
        patch("slackwater.operators.process.timers_of_a_key.INLINE_TIMERS", 1),
    ):
        yield
