"""What `slackwater check` asks a real broker."""

from __future__ import annotations

import pytest

import slackwater as sw
from slackwater.observe.checker import Facts, facts_of_topics
from tests.connectors.kafka.topics import Topics
from tests.observe.checker.pipelines import rows, windowed

pytestmark = pytest.mark.kafka
DAY_MS = 86_400_000


def kept_ms(topics: Topics, **settings: str) -> dict[str, int]:
    """Return what is found out about a topic with some settings."""
    plan = windowed(rows(source=sw.sources.kafka(topics.servers, topic=topics.make(1, **settings)))).plan()
    return dict(facts_of_topics(plan, facts=Facts()).retention_ms)


def test_retention_of_a_topic_is_what_its_broker_says(topics: Topics) -> None:
    assert kept_ms(topics, retention_ms=str(DAY_MS)) == {"rows": DAY_MS}
    assert kept_ms(topics) == {"rows": 7 * DAY_MS}, "Kafka's own default"
    assert kept_ms(topics, retention_ms="-1") == {}
    assert kept_ms(topics, cleanup_policy="compact", retention_ms="1000") == {}


def test_topic_that_is_not_there_keeps_nothing_to_speak_of(topics: Topics) -> None:
    plan = windowed(rows(source=sw.sources.kafka(topics.servers, topic="none"))).plan()
    assert facts_of_topics(plan, facts=Facts()).retention_ms == {}
