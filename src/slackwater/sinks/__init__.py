"""Sinks: where the rows of an output are written, each with its delivery guarantee."""

from typing import TYPE_CHECKING

from slackwater.ground.foreign_names import hinting
from slackwater.sinks.base import DamagedMarkError, Mark, Sink, SinkBatch, SinkWriter, Slot, Trial, Unavailable
from slackwater.sinks.console import console
from slackwater.sinks.delivery import StoppedWaitingError
from slackwater.sinks.delta import delta
from slackwater.sinks.files import files, read_files
from slackwater.sinks.foreach_batch import foreach_batch
from slackwater.sinks.http import http
from slackwater.sinks.kafka import kafka
from slackwater.sinks.memory import MemorySink, memory
from slackwater.sinks.postgres import postgres
from slackwater.sinks.redis import redis
from slackwater.state.identity import Identity

__all__ = [
    "DamagedMarkError",
    "Identity",
    "Mark",
    "MemorySink",
    "Sink",
    "SinkBatch",
    "SinkWriter",
    "Slot",
    "StoppedWaitingError",
    "Trial",
    "Unavailable",
    "console",
    "delta",
    "files",
    "foreach_batch",
    "http",
    "kafka",
    "memory",
    "postgres",
    "read_files",
    "redis",
]

if not TYPE_CHECKING:  # type checkers report missing names themselves
    __getattr__ = hinting(__name__, __all__)
