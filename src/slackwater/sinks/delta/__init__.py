"""Delta Lake tables as a sink, exactly once."""

from slackwater.sinks.delta.definition import DeltaSink, delta

__all__ = ["DeltaSink", "delta"]
