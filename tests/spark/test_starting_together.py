"""Jobs of one Spark session that are started at the same time."""

from __future__ import annotations

import threading
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from slackwater.engine.checkpoint.checkpoint import Checkpoint
from slackwater.spark import streaming_query
from slackwater.spark.processor import PlanHandle
from slackwater.spark.session import QUERY_CONF

SETTING = "spark.sql.streaming.stateStore.providerClass"


class Conf(dict[str, str]):
    """The settings of a session."""

    def set(self, key: str, value: str) -> None:
        """As a session's."""
        self[key] = value

    def unset(self, key: str) -> None:
        """As a session's."""
        self.pop(key, None)


def test_each_job_has_its_settings_until_it_has_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spark, plan, seen = MagicMock(conf=Conf()), MagicMock(), list[str | None]()
    never = threading.Event()

    def packets(*_plan: object, **_options: object) -> MagicMock:
        never.wait(0.1)  # the others are on their way, and would set the settings back
        seen.append(spark.conf.get(SETTING))
        return MagicMock()

    monkeypatch.setattr(streaming_query, "packets", packets)
    monkeypatch.setattr(PlanHandle, "of", lambda _plan: MagicMock())
    checkpoint = Checkpoint(path=tmp_path, incarnation="i", partitions=1)

    def start() -> None:
        streaming_query.start_query(
            spark, plan, checkpoint=checkpoint, intakes={}, trigger_ms=None, on_batch=lambda _frame, _number: None
        )

    jobs = [threading.Thread(target=start) for _ in range(3)]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join(30)
    assert seen == [QUERY_CONF[SETTING]] * 3
    assert not spark.conf, "the session is as it was"
