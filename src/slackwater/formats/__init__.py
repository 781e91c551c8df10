"""Formats: how the bytes of a record become columns."""

from slackwater.formats.avro import AvroFormat, avro
from slackwater.formats.base import Decoded, Decoder, Format
from slackwater.formats.csv import CsvFormat, csv
from slackwater.formats.debezium import DebeziumFormat, debezium
from slackwater.formats.json import JsonFormat, json
from slackwater.formats.protobuf import ProtobufFormat, protobuf
from slackwater.formats.registry import Registry, registry

__all__ = [
    "AvroFormat",
    "CsvFormat",
    "DebeziumFormat",
    "Decoded",
    "Decoder",
    "Format",
    "JsonFormat",
    "ProtobufFormat",
    "Registry",
    "avro",
    "csv",
    "debezium",
    "json",
    "protobuf",
    "registry",
]
