"""Sinks: where the rows of an output are written, each with its delivery guarantee."""

from typing import TYPE_CHECKING

from slackwater.base.foreign_names import hinting
from slackwater.connectors.console.sink import console
from slackwater.connectors.dataframe.sink import foreach_batch
from slackwater.connectors.delivery import StoppedWaitingError
from slackwater.connectors.delta.sink import delta
from slackwater.connectors.files.sink import files, read_files
from slackwater.connectors.http.sink import http
from slackwater.connectors.kafka.sink import kafka
from slackwater.connectors.memory.sink import MemorySink, memory
from slackwater.connectors.postgres.sink import postgres
from slackwater.connectors.redis.sink import redis
from slackwater.connectors.sink import DamagedMarkError, Mark, Sink, SinkBatch, SinkWriter, Slot, Trial, Unavailable
from slackwater.operators.identity import Identity

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
