"""Sinks: where an output's rows go, and what each promises."""

from slackwater.sinks.base import Sink, SinkBatch, SinkWriter
from slackwater.sinks.console import console
from slackwater.sinks.files import files
from slackwater.sinks.foreach_batch import foreach_batch
from slackwater.sinks.memory import MemorySink, memory

__all__ = ["MemorySink", "Sink", "SinkBatch", "SinkWriter", "console", "files", "foreach_batch", "memory"]
