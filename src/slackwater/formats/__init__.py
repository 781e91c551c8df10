"""Formats: how the bytes of a record become columns."""

from typing import TYPE_CHECKING

from slackwater.base.foreign_names import hinting
from slackwater.formats.avro import AvroFormat, avro
from slackwater.formats.base import Decoded, Decoder, Flaw, Format
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
    "Flaw",
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

if not TYPE_CHECKING:  # a type checker reports missing names itself
    __getattr__ = hinting(__name__, __all__)
