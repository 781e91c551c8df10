"""Avro: records in its binary encoding, with a declared schema or those of a registry."""

from slackwater.formats.avro.definition import AvroDecoder, AvroFormat, AvroOutput, avro, read_schema
from slackwater.formats.avro.encoding import AvroEncoder

__all__ = ["AvroDecoder", "AvroEncoder", "AvroFormat", "AvroOutput", "avro", "read_schema"]
