"""Redis as a sink: one hash per entity, with its newest values.

`definition` is what users write, and an open slot; `rows` turns rows into what the server's script takes.
"""

from slackwater.sinks.redis.definition import RedisSink, redis

__all__ = ["RedisSink", "redis"]
