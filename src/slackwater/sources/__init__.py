"""Sources: where a stream's rows come from."""

from typing import TYPE_CHECKING

from slackwater.ground.foreign_names import hinting
from slackwater.sources.base import Source, TaskFacts
from slackwater.sources.chunk import Chunk
from slackwater.sources.dataframe import DataFrameSource, dataframe
from slackwater.sources.delta.definition import DeltaSource, delta
from slackwater.sources.kafka.definition import KafkaSource, kafka
from slackwater.sources.log.definition import LogSource, log
from slackwater.sources.reading import Reading

__all__ = [
    "Chunk",
    "DataFrameSource",
    "DeltaSource",
    "KafkaSource",
    "LogSource",
    "Reading",
    "Source",
    "TaskFacts",
    "dataframe",
    "delta",
    "kafka",
    "log",
]

if not TYPE_CHECKING:  # type checkers report missing names themselves
    __getattr__ = hinting(__name__, __all__)
