"""HTTP as a sink: rows as JSON, each sent under a key that a receiver can know it by.

Read in this order: `definition` is what users write, and an open slot; `requests` turns rows into bodies and
their keys; `sending` gets them to the receiver.
"""

from slackwater.sinks.http.definition import HttpSink, http

__all__ = ["HttpSink", "http"]
