"""Formats: how the bytes of a record become columns."""

from slackwater.formats.json import JsonFormat, json

__all__ = ["JsonFormat", "json"]
