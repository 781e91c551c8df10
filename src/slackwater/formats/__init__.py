"""Formats: how the bytes of a record become columns."""

from slackwater.formats.base import Decoded, Decoder, Format
from slackwater.formats.json import JsonFormat, json

__all__ = ["Decoded", "Decoder", "Format", "JsonFormat", "json"]
