"""Pauses between attempts, and the wait that ends early, under a manual clock."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from itertools import islice

import pytest

from slackwater.base.backoff import Backoff, came_true


@dataclass
class Time:
    now: float = 0.0
    sleeps: list[float] = field(default_factory=list)

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.now += seconds


def test_pauses_double_up_to_the_longest() -> None:
    pauses = Backoff(first_s=1.0, longest_s=30.0, jitter=0.0).pauses()
    assert list(islice(pauses, 7)) == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]


def test_pause_after_many_failures_is_the_longest() -> None:
    assert Backoff(first_s=0.25, longest_s=30.0, jitter=0.0).pause_s(100_000) == 30.0


def test_jitter_shortens_a_pause_by_at_most_its_share() -> None:
    pauses = [Backoff(first_s=8.0, longest_s=30.0, jitter=0.5).pause_s(1) for _ in range(200)]
    assert 4.0 <= min(pauses) < 5.0
    assert 7.0 < max(pauses) <= 8.0


def test_attempts_pause_before_every_one_but_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    time = Time()
    monkeypatch.setattr("slackwater.base.backoff.time.sleep", time.sleep)
    registry = Backoff(first_s=0.2, longest_s=2.0, factor=4.0, jitter=0.0)
    assert list(registry.attempts(4)) == [0, 1, 2, 3]
    assert time.sleeps == [0.2, 0.8, 2.0]


def test_wait_ends_when_its_time_is_over() -> None:
    time = Time()
    assert not came_true(lambda: False, within_s=0.25, clock=time, sleep=time.sleep)
    assert time.sleeps == pytest.approx([0.1, 0.1, 0.05])


def test_wait_ends_at_the_next_look_after_a_request_to_stop() -> None:
    time = Time()
    assert came_true(lambda: time.now > 0.3, within_s=60.0, every_s=0.25, clock=time, sleep=time.sleep)
    assert time.now == 0.5


def test_condition_that_holds_at_once_is_not_waited_for() -> None:
    time = Time()
    assert came_true(lambda: True, within_s=60.0, clock=time, sleep=time.sleep)
    assert time.sleeps == []


def test_condition_is_checked_once_when_there_is_no_time_to_wait() -> None:
    time = Time()
    assert came_true(lambda: True, within_s=0.0, clock=time, sleep=time.sleep)
    assert not came_true(lambda: False, within_s=0.0, clock=time, sleep=time.sleep)
    assert time.sleeps == []


def test_event_ends_the_wait_at_once() -> None:
    over = threading.Event()
    over.set()
    assert came_true(over.is_set, within_s=60.0, sleep=over.wait)
