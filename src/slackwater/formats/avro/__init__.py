"""Avro: records in its binary encoding, with schemas of one"s own or a registry"s."""

from slackwater.formats.avro.definition import AvroDecoder, AvroFormat, AvroOutput, avro, read_schema
from slackwater.formats.avro.encoding import AvroEncoder

__all__ = ["AvroDecoder", "AvroEncoder", "AvroFormat", "AvroOutput", "avro", "read_schema"]
