"""Protobuf: messages, with or without Confluent's header."""

from slackwater.formats.protobuf.definition import ProtobufDecoder, ProtobufFormat, protobuf

__all__ = ["ProtobufDecoder", "ProtobufFormat", "protobuf"]
