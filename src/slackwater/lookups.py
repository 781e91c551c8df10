"""Lookups: stores from which rows are enriched, by one key at a time or by thousands."""

from typing import TYPE_CHECKING

from slackwater.base.foreign_names import hinting
from slackwater.connectors.function.lookup import function
from slackwater.connectors.http.lookup import http
from slackwater.connectors.lookup import Lookup, LookupClient, Question, Refused, RefusedKeysError, Unavailable
from slackwater.connectors.postgres.lookup import postgres
from slackwater.connectors.redis.lookup import redis

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
