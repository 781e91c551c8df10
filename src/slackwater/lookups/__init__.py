"""Lookups: stores from which rows are enriched, by one key at a time or by thousands."""

from typing import TYPE_CHECKING

from slackwater.ground.foreign_names import hinting
from slackwater.lookups.base import Lookup, LookupClient, Question, Refused, RefusedKeysError, Unavailable
from slackwater.lookups.function import function
from slackwater.lookups.http import http
from slackwater.lookups.postgres import postgres
from slackwater.lookups.redis import redis

__all__ = [
    "Lookup",
    "LookupClient",
    "Question",
    "Refused",
    "RefusedKeysError",
    "Unavailable",
    "function",
    "http",
    "postgres",
    "redis",
]

if not TYPE_CHECKING:  # type checkers report missing names themselves
    __getattr__ = hinting(__name__, __all__)
