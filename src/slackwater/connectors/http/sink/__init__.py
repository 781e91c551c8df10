"""HTTP as a sink: rows as JSON, each sent with a key by which the receiver can recognise it.

Read in this order: `definition` is the sink as users define it, and an open slot; `requests` turns rows into bodies
and their keys; `sending` delivers them to the receiver.
"""

from slackwater.connectors.http.sink.definition import HttpSink, http

__all__ = ["HttpSink", "http"]
