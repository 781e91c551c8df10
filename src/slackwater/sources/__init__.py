"""Sources: where a stream's rows come from."""

from slackwater.sources.base import Source
from slackwater.sources.dataframe import DataFrameSource, dataframe
from slackwater.sources.log import LogSource, log

__all__ = ["DataFrameSource", "LogSource", "Source", "dataframe", "log"]
