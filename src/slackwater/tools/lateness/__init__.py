"""Measured lateness: how late the events of a stream arrive, and which out-of-orderness they require."""

from slackwater.tools.lateness.measure import (
    StreamToRead,
    Watch,
    chunks_of,
    measure_plan,
    measure_source,
    measure_stream,
)
from slackwater.tools.lateness.one_log import measure_log, measure_topic
from slackwater.tools.lateness.report import DEFAULT_TARGET, LatenessReport, MeasuredStream, StreamReport, make_report
from slackwater.tools.lateness.text import percent, print_report, report_text

__all__ = [
    "DEFAULT_TARGET",
    "LatenessReport",
    "MeasuredStream",
    "StreamReport",
    "StreamToRead",
    "Watch",
    "chunks_of",
    "make_report",
    "measure_log",
    "measure_plan",
    "measure_source",
    "measure_stream",
    "measure_topic",
    "percent",
    "print_report",
    "report_text",
]
