"""Debezium: change events, as its connectors write them."""

from slackwater.formats.debezium.definition import DebeziumFormat, debezium

__all__ = ["DebeziumFormat", "debezium"]
