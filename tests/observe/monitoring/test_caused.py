"""The seven incidents, caused in a job: what it shows of itself makes the alert fire, and no other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from slackwater.observe.monitoring.rules_file import RULES, rules_file
from slackwater.observe.monitoring.thresholds import MINUTE_MS, Thresholds
from tests.conftest import Needs
from tests.observe.monitoring.caused import Caused
from tests.observe.monitoring.promtool import Series, fired, needs_promtool

LIMITS = Thresholds(state_over_ms=12 * MINUTE_MS, state_bytes=1_000)
"""Those of the command, but for state: it need not grow for hours to be seen growing."""
BEFORE = 4


def healthy(folder: Path) -> Series:
    job = Caused(folder)
    for _ in range(18):
        job.minute(late_s=5)
    return job.end()


def stalled_partition(folder: Path) -> Series:
    job = Caused(folder)
    for at in range(BEFORE + 15):
        job.minute(partitions="01" if at < BEFORE else "0")
    return job.end()


def slow_sink(folder: Path) -> Series:
    job = Caused(folder)
    for at in range(BEFORE + 11):
        job.sink_s = 0.1 if at < BEFORE else 90.0
        job.minute()
    return job.end()


def leaking_state(folder: Path) -> Series:
    job = Caused(folder, leaks=True)
    for _ in range(20):
        job.minute()
    return job.end()


def clock_ahead(folder: Path) -> Series:
    job = Caused(folder)
    for at in range(BEFORE + 14):
        job.minute(ahead_s=1_200 if at == BEFORE else 0)
    return job.end()


def guarded_clock_ahead(folder: Path) -> Series:
    job = Caused(folder, max_ahead="1m")
    for at in range(BEFORE + 4):
        job.minute(ahead_s=0 if at < BEFORE else 1_200)
    return job.end()


def bad_bytes(folder: Path) -> Series:
    job = Caused(folder)
    for at in range(BEFORE + 3):
        job.minute(bad=40 if at == BEFORE else 0)
    return job.end()


def crash_loop(folder: Path) -> Series:
    job = Caused(folder)
    for _ in range(BEFORE):
        job.minute()
    for _ in range(4):
        job.crash()
    return job.end()


def late_rows(folder: Path) -> Series:
    job = Caused(folder)
    for _ in range(14):
        job.minute(late_s=40)
    return job.end()


INCIDENTS: dict[Callable[[Path], Series], set[str]] = {
    healthy: set(),
    stalled_partition: {"SlackwaterWatermarkStalled"},
    slow_sink: {"SlackwaterSinkSlow"},
    leaking_state: {"SlackwaterStateGrows"},
    clock_ahead: {"SlackwaterClockAhead"},
    guarded_clock_ahead: {"SlackwaterClockAhead"},
    bad_bytes: {"SlackwaterDeadLetters"},
    crash_loop: {"SlackwaterCrashLoop"},
    late_rows: {"SlackwaterLatenessAboveAllowance"},
}


@pytest.fixture(scope="module")
def alerts(tmp_path_factory: pytest.TempPathFactory, needs: Needs) -> dict[str, set[str]]:
    needs_promtool(needs)
    folder = tmp_path_factory.mktemp("caused")
    rules = folder / RULES
    rules.write_text(rules_file(pipeline=None, checkpoints=".slackwater", limits=LIMITS))
    runs = {cause.__name__: cause(folder / cause.__name__) for cause in INCIDENTS}
    return fired(rules, runs, minutes=24)


@pytest.mark.parametrize("cause", INCIDENTS, ids=lambda cause: cause.__name__)
def test_incident_that_is_caused_fires_its_alert_and_no_other(
    cause: Callable[[Path], Series], alerts: dict[str, set[str]]
) -> None:
    assert alerts[cause.__name__] == INCIDENTS[cause]
