"""Redis as a sink: one hash per entity, holding its newest values.

`definition` is the sink as users define it, and an open slot; `rows` encodes rows for the script on the server.
"""

from slackwater.connectors.redis.sink.definition import RedisSink, redis

__all__ = ["RedisSink", "redis"]
