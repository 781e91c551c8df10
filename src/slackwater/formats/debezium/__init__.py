"""Debezium: change events as written by its connectors."""

from slackwater.formats.debezium.definition import DebeziumFormat, debezium

__all__ = ["DebeziumFormat", "debezium"]
