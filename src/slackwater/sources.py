"""Sources: where a stream's rows come from."""

from typing import TYPE_CHECKING

from slackwater.base.foreign_names import hinting
from slackwater.connectors.chunk import Chunk
from slackwater.connectors.dataframe.source import DataFrameSource, dataframe
from slackwater.connectors.delta.source.definition import DeltaSource, delta
from slackwater.connectors.kafka.source.definition import KafkaSource, kafka
from slackwater.connectors.log.source import LogSource, log
from slackwater.connectors.reading import Reading
from slackwater.connectors.source import Source, TaskFacts

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
