"""Avro: records in its binary encoding, with schemas of one"s own or a registry"s."""

from slackwater.formats.avro.definition import AvroDecoder, AvroFormat, avro, read_schema

__all__ = ["AvroDecoder", "AvroFormat", "avro", "read_schema"]
