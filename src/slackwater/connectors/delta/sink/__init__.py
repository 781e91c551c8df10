"""Delta Lake tables as a sink, exactly once."""

from slackwater.connectors.delta.sink.definition import DeltaSink, delta

__all__ = ["DeltaSink", "delta"]
