"""What the tests of the aggregates share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from slackwater.operators.aggregates import combine


@pytest.fixture(autouse=True, scope="session")
def _small_frames_stream_too() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(combine, "STREAM_FROM", 0)
        yield
