"""Jobs that deliver rows to Redis, and what a server has after them."""

from __future__ import annotations

from typing import Any

import polars as pl

from slackwater.connectors.redis.sink import RedisSink, redis
from slackwater.testing import SinkHarness
from tests.connectors.redis.servers import RedisServer

SCHEMA = pl.Schema({"user": pl.String(), "orders": pl.Int64(), "is_retraction": pl.Boolean()})
MARK = "user:marks:test:results:0"


def rows(*users: tuple[str, int | None] | tuple[str, int | None, bool]) -> pl.DataFrame:
    """Return rows of (user, orders, is it a retraction)."""
    return pl.DataFrame([(*user, False)[:3] for user in users], schema=SCHEMA, orient="row")


ONE, TWO = rows(("ann", 1), ("bob", 2)), rows(("bob", 3), ("cleo", 4))
AFTER_BOTH = {"user:ann": {"orders": "1"}, "user:bob": {"orders": "3"}, "user:cleo": {"orders": "4"}}


def job(url: str, sink: RedisSink | None = None, **run: Any) -> SinkHarness:  # noqa: ANN401  a SinkHarness's own
    return SinkHarness(sink=sink or redis(url, key="user", prefix="user"), schema=SCHEMA, **run)


def scripts_run(server: RedisServer) -> int:
    with server.client() as client:
        return int(client.info("commandstats")["cmdstat_evalsha"]["calls"])
