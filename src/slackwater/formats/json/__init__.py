"""JSON: one object per record."""

from slackwater.formats.json.definition import MAX_BYTES, MAX_DEPTH, JsonDecoder, JsonFormat, json

__all__ = ["MAX_BYTES", "MAX_DEPTH", "JsonDecoder", "JsonFormat", "json"]
