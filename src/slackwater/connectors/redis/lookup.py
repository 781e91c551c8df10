"""Redis as a store: a hash, a JSON text or a plain value for each key, thousands in one request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import polars as pl

from slackwater.base.durations import render_ms
from slackwater.base.errors import cause_of, fault, refuse
from slackwater.base.secrets import Secret
from slackwater.connectors.lookup import Answer, Lookup, LookupClient, Question, Refused, Unavailable, bad_option
from slackwater.connectors.redis.connection import check_url, client_library, passing, server_words, way_in
from slackwater.connectors.threads import CONNECT_S, ThreadedClient
from slackwater.formats.base import Format
from slackwater.formats.csv import csv
from slackwater.formats.json import json

Values = Literal["hash", "json", "text"]
_KEYS: Final = 2_000
"""Keys per request: the server is blocked while it answers."""
_CONNECTIONS: Final = 4


@dataclass(frozen=True, kw_only=True, eq=False)
class RedisLookup(Lookup):
    """Keys on one server."""

    most_at_once = _CONNECTIONS
    url: str
    prefix: str | None
    values: Values
    password: Secret | None
    ca: str | None

    def check(self, question: Question) -> None:
        """Reject output columns that the stored values cannot have."""
        nested = [name for name, dtype in question.output.items() if dtype.is_nested()]
        if self.values != "json" and nested:
            raise refuse("LOOKUP_REDIS_NESTED", step=question.step, column=nested[0], values=self.values)
        if self.values == "text" and len(question.output) > 1:
            raise refuse("LOOKUP_REDIS_TEXT", step=question.step, columns=", ".join(question.output))

    def format(self, output: pl.Schema) -> Format:
        """Return JSON, or CSV for text values: one value per column."""
        return json(output) if self.values == "json" else csv(output)

    def open(self, question: Question) -> LookupClient:
        """Return a client that connects when first used."""
        client_library()
        return _RedisClient(self, question)

    def __str__(self) -> str:
        what = {"hash": "hashes", "json": "JSON", "text": "values"}[self.values]
        return f"redis {self.url} ({what} {'' if self.prefix is None else self.prefix + ':'}<key>)"


class _RedisClient(ThreadedClient):
    keys_per_request = _KEYS

    def __init__(self, lookup: RedisLookup, question: Question) -> None:
        from redis.backoff import NoBackoff  # noqa: PLC0415  only Redis users need it
        from redis.retry import Retry  # noqa: PLC0415  as above

        super().__init__(_CONNECTIONS)
        self._lookup = lookup
        self._question = question
        self._fields = question.output.names()
        seconds = question.timeout_ms / 1_000
        self._client: Any = client_library().Redis.from_url(
            lookup.url,
            protocol=2,
            retry=Retry(NoBackoff(), 0),
            # Connecting may take longer than a request: after a timeout, the next request finds the connection open.
            socket_connect_timeout=max(seconds, CONNECT_S),
            socket_timeout=seconds,
            **way_in(lookup.url, lookup.password, lookup.ca),
        )

    def ask(self, keys: Sequence[Any]) -> Mapping[Any, Answer]:
        errors = client_library().exceptions
        prefix = "" if self._lookup.prefix is None else f"{self._lookup.prefix}:"
        names = [f"{prefix}{key}" for key in keys]
        try:
            found = self._hashes(names) if self._lookup.values == "hash" else self._client.mget(names)
        except (errors.AuthenticationError, errors.AuthorizationError, errors.ResponseError) as error:
            raise self._refusal(error) from error
        except errors.TimeoutError as error:
            raise Unavailable(f"no answer within {render_ms(self._question.timeout_ms)}") from error
        except errors.ConnectionError as error:
            raise Unavailable(str(error).rstrip(".")) from error
        except (errors.RedisError, ValueError, AttributeError, TypeError, RecursionError) as error:
            raise Unavailable(f"it does not answer as Redis does: {cause_of(error)}") from error
        return dict(zip(keys, map(self._answer, _listed(found, len(keys))), strict=True))

    def _hashes(self, names: list[str]) -> list[Any]:
        pipeline = self._client.pipeline(transaction=False)
        for name in names:
            pipeline.hmget(name, self._fields)
        found: list[Any] = pipeline.execute(raise_on_error=False)
        return found

    def _answer(self, found: Any) -> Answer:  # noqa: ANN401  whatever the server returns
        if isinstance(found, Exception):
            refusal = self._refusal(found)
            if str(found).startswith("WRONGTYPE"):
                return Refused("the key holds another type than a hash")
            raise refusal from found
        if self._lookup.values == "hash":
            values = [_text(value) for value in _listed(found, len(self._fields))]
            return None if all(value is None for value in values) else b",".join(map(_quoted, values))
        value = _text(found)
        return _quoted(value) if self._lookup.values == "text" and value is not None else value

    def _refusal(self, error: Exception) -> Exception:
        words = server_words(error, self._lookup.password)
        remedy = "check the password and the user's ACL"
        facts = {"lookup": self._lookup, "step": self._question.step, "why": words.rstrip("."), "remedy": remedy}
        return passing(words) or fault("LOOKUP_REFUSED", **facts)

    async def close(self) -> None:
        await super().close()
        self._client.close()


def _listed(found: Any, size: int) -> list[Any]:  # noqa: ANN401  whatever the server returns
    if not isinstance(found, list) or len(found) != size:
        raise _strange(f"a list of {size}", f"a list of {len(found)}" if isinstance(found, list) else found)
    return found


def _text(found: Any) -> bytes | None:  # noqa: ANN401  as above
    if found is not None and not isinstance(found, bytes):
        raise _strange("a text", found)
    return found


def _strange(expected: str, got: object) -> Unavailable:
    """Return the error for a reply that no Redis sends: to make an answer of it would be to invent one."""
    shown = got if isinstance(got, str) else f"a {type(got).__name__}"
    return Unavailable(f"it does not answer as Redis does: expected {expected}, got {shown}")


def _quoted(value: bytes | None) -> bytes:
    """Return a value as CSV; null is an empty field."""
    return b"" if value is None else b'"' + value.replace(b'"', b'""') + b'"'


def redis(
    url: str,
    *,
    prefix: str | None = None,
    values: Values = "hash",
    password: Secret | None = None,
    ca: str | Path | None = None,
) -> RedisLookup:
    """Look up in Redis: `redis("redis://host:6379/0", prefix="user")` reads the hash `user:<key>`.

    This is the layout that the Redis sink writes. The output columns are fields of the hash; a hash with none of them
    is missing. With `values="json"` the key holds a JSON object, with `values="text"` the value of the one output
    column.
    """
    if password is not None and not isinstance(password, Secret):
        raise refuse("SECRET_EXPECTED", what="password")
    check_url(url, has_ca=ca is not None, option=_option)
    if prefix is not None and (not isinstance(prefix, str) or not prefix):
        raise _option("prefix", "a string", repr(prefix), 'write, for example, prefix="user", or omit it')
    if values not in ("hash", "json", "text"):
        raise _option("values", 'one of "hash", "json", "text"', repr(values), "omit it to read hashes")
    return RedisLookup(url=url, prefix=prefix, values=values, password=password, ca=None if ca is None else str(ca))


def _option(what: str, rule: str, got: str, remedy: str) -> Exception:
    return bad_option("the Redis lookup", what, rule=rule, got=got, remedy=remedy)
