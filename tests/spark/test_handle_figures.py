"""The figures of a job as a notebook shows them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from slackwater.spark.handle import figures

KNOWN: dict[str, Any] = {
    "pipeline": "shop <b>",
    "checkpoint": "/jobs/shop",
    "state": "running",
    "error": None,
    "page": "http://127.0.0.1:8000/",
    "batch": 41,
    "batches": 42,
    "watermark": datetime(2026, 3, 1, 12, 0, 5, tzinfo=UTC),
    "watermark_lag": timedelta(seconds=12),
    "rows": 12_345,
    "rows_out": 99,
    "late": 1,
    "dead_letters": 3,
}


def cells(html: str) -> dict[str, str]:
    return dict(re.findall(r"<tr><th>(.*?)</th><td>(.*?)</td></tr>", html))


def test_figures_are_those_of_the_status() -> None:
    shown = figures(KNOWN)
    assert "<caption>shop &lt;b&gt;</caption>" in shown
    assert cells(shown) == {
        "state": "running",
        "batches": "42, last 41",
        "rows": "12,345 in, 99 out",
        "watermark": "2026-03-01 12:00:05 UTC, 12s behind",
        "late": "1 row",
        "dead letters": "3",
        "checkpoint": "/jobs/shop",
        "page": '<a href="http://127.0.0.1:8000/" target="_blank">http://127.0.0.1:8000/</a>',
    }


@pytest.mark.parametrize("state", ["failed", "stopped", "finished"])
def test_job_that_has_ended_has_no_page(state: str) -> None:
    error = "<no>" if state == "failed" else None
    found = cells(figures({**KNOWN, "state": state, "error": error, "watermark": None, "watermark_lag": None}))
    assert "page" not in found
    assert found["watermark"] == ("end of time" if state == "finished" else "none yet")
    assert found["state"] == ("failed: &lt;no&gt;" if error else state)
