"""Lookups: stores that rows are enriched from, one key at a time or thousands."""

from slackwater.lookups.base import Lookup, LookupClient, Question, Refused, RefusedKeysError
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
    "function",
    "http",
    "postgres",
    "redis",
]
