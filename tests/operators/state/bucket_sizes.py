"""Buckets so small that a handful of rows fills several."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

from slackwater.operators.state import buckets


@contextmanager
def tiny_buckets() -> Iterator[None]:
    """Make buckets split, and pieces, portions and the inbox fill, from a few rows on."""
    with mock.patch.multiple(buckets, BUCKET_BYTES=300, INBOX_BYTES=(200, 400), PORTION_BYTES=500, SOON=1):
        yield
