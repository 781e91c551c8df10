"""Redis: one hash per entity, its newest values as text; replays are harmless, and the mark is written last.

Each chunk of rows is written by one script, which the server runs atomically. The script first checks that the slot is
still this writer's: a writer that was replaced writes nothing more. Rows contain absolute values, so a replayed batch
leaves the same result; the last chunk carries the mark.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final
from uuid import uuid4

from slackwater.base.crash_points import crash_point
from slackwater.base.durations import Duration, duration_ms
from slackwater.base.errors import RunError, fault, refuse
from slackwater.base.folders import given_path
from slackwater.base.secrets import Secret
from slackwater.connectors.redis.connection import (
    check_url,
    client_library,
    error_prefix,
    passing,
    server_words,
    way_in,
)
from slackwater.connectors.redis.sink.rows import RedisHashes
from slackwater.connectors.sink import (
    EVERYTHING,
    Change,
    Delivery,
    Mark,
    Sink,
    SinkBatch,
    SinkWriter,
    Slot,
    Trial,
    Unavailable,
)
from slackwater.connectors.sink_options import bad_option, check_delivery, column_names

_TIMEOUT_S: Final = 10.0

_WRITE: Final = """
local epoch = redis.call('GET', KEYS[1])
if epoch ~= ARGV[1] then return epoch and 'fenced' or 'lost' end
local ttl, fields, rows = tonumber(ARGV[2]), cjson.decode(ARGV[3]), cjson.decode(ARGV[4])
local order = tonumber(ARGV[6])
local failed
local function ask(...)
    local reply = redis.pcall(...)
    if type(reply) == 'table' and reply.err then failed = reply.err end
    return reply
end
local function run(...)
    ask(...)
    return not failed
end
local function is_older(key, i)
    if order == 0 then return false end
    local known, new = ask('HGET', key, fields[order]), rows[ARGV[6]][i]
    return type(known) == 'string' and type(new) == 'string' and known > new
end
for i, key in ipairs(rows.key) do
    if is_older(key, i) or failed then
        -- The hash has newer values, and keeps them; or its values are unknown.
    elseif rows.gone[i] then
        if run('HLEN', key) then run('DEL', key) end
    else
        local set, unset = {}, {}
        for n, field in ipairs(fields) do
            local value = rows[tostring(n)][i]
            if value == cjson.null then
                unset[#unset + 1] = field
            else
                set[#set + 1] = field
                set[#set + 1] = value
            end
        end
        if #set > 0 then run('HSET', key, unpack(set)) end
        if #unset > 0 and not failed then run('HDEL', key, unpack(unset)) end
        if ttl > 0 and not failed then run('PEXPIRE', key, ttl) end
    end
    if failed then return {key, failed} end
end
if ARGV[5] ~= '' then
    local mark = cjson.decode(ARGV[5])
    for name, value in pairs(mark) do redis.call('HSET', KEYS[2], name, value) end
end
return 'written'
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class RedisSink(Sink):
    """A sink that writes hashes on one server."""

    shown_options: ClassVar[tuple[str, ...]] = ("columns", "ttl_ms", "ca")
    url: str
    hashes: RedisHashes
    ttl_ms: int | None = None
    password: Secret | None = None
    ca: str | None = None
    takes: frozenset[Change] = EVERYTHING
    delivery: Delivery = "exactly_once"
    has_slots: bool = True

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The columns that become fields; None means all except the key."""
        return self.hashes.columns

    @property
    def place(self) -> str:
        """The hashes with this prefix: a retraction deletes a whole hash."""
        return f"{self.url} {self.hashes.prefix or ''}".rstrip()

    def replaced_by(self, slot: Slot) -> tuple[str, ...]:  # noqa: ARG002  the same for any rows
        """Return the columns that identify a hash."""
        return self.hashes.key

    def check(self, slot: Slot) -> None:
        """Reject an output without the columns."""
        self.hashes.check(slot)

    def trial(self, slot: Slot) -> Trial:
        """Return the check for rows that cannot become a hash."""
        return Trial(
            rule=f"{self.hashes} {self.reserved}",
            check=partial(self.hashes.try_out, slot=slot, reserved=self.reserved),
        )

    @property
    def reserved(self) -> str:
        """The prefix of the marks' keys."""
        return f"{self.hashes.prefix or 'slackwater'}:marks:"

    def prepare(self, slot: Slot) -> None:
        """Check that the server lets us read and write."""
        self.open(slot).close()

    def open(self, slot: Slot) -> SinkWriter:
        """Take over the slot: from now on the script rejects its earlier writers."""
        writer = _RedisWriter(sink=self, slot=slot, client=self._client(), epoch=uuid4().hex)
        with _troubles(self):
            writer.client.set(writer.epoch_key, writer.epoch)
        return writer

    def _client(self) -> Any:  # noqa: ANN401  the library's class, known only where it is installed
        redis_module = client_library()
        from redis.backoff import NoBackoff  # noqa: PLC0415  as above
        from redis.retry import Retry  # noqa: PLC0415  as above

        return redis_module.Redis.from_url(
            self.url,
            decode_responses=True,
            protocol=2,
            retry=Retry(NoBackoff(), 0),
            socket_connect_timeout=_TIMEOUT_S,
            socket_timeout=_TIMEOUT_S,
            **way_in(self.url, self.password, self.ca),
        )

    def __str__(self) -> str:
        named = ":".join([*filter(None, [self.hashes.prefix]), *(f"<{name}>" for name in self.hashes.key)])
        return f"redis {self.url} (hashes {named})"


@dataclass(kw_only=True)
class _RedisWriter(SinkWriter):
    sink: RedisSink
    slot: Slot
    client: Any
    epoch: str

    @property
    def mark_key(self) -> str:
        """The key of the slot's mark."""
        return f"{self.sink.reserved}{self.slot.pipeline}:{self.slot.output}:{self.slot.number}"

    @property
    def epoch_key(self) -> str:
        """The key of the slot's current owner."""
        return f"{self.mark_key}:epoch"

    def mark(self) -> Mark | None:
        """Return the mark of the last batch that was fully written."""
        with _troubles(self.sink):
            stored = self.client.hgetall(self.mark_key)
        return Mark.from_dict(stored) if stored else None

    def write(self, batch: SinkBatch, mark: Mark | None) -> None:
        """Write the chunks in order, the mark with the last one."""
        chunks = self.sink.hashes.chunks(batch, self.slot, reserved=self.sink.reserved)
        last = next(chunks)
        for chunk in chunks:
            self._write(last, None)
            last = chunk
        crash_point("written", batch.batch)
        self._write(last, mark)

    def close(self) -> None:
        """Release the connection."""
        self.client.close()

    def _write(self, rows: str, mark: Mark | None) -> None:
        fields = json.dumps(self.sink.hashes.fields(self.slot.schema))
        stored = "" if mark is None else json.dumps({name: str(value) for name, value in mark.as_dict().items()})
        order = self.sink.hashes.order(self.slot)
        script = self.client.register_script(_WRITE)
        with _troubles(self.sink):
            result = script(
                keys=[self.epoch_key, self.mark_key],
                args=[self.epoch, self.sink.ttl_ms or 0, fields, rows, stored, order],
            )
        if result == "fenced":
            raise fault("REDIS_FENCED", sink=self.sink, output=self.slot.output, slot=self.slot.number)
        if result == "lost":
            raise Unavailable("it has lost the data of this slot: it was flushed, or restarted without its data")
        if result != "written":
            key, cause = result
            raise _refusal(self.sink, cause, key)


def redis(
    url: str,
    *,
    key: str | list[str] | tuple[str, ...],
    prefix: str | None = None,
    ttl: Duration | None = None,
    columns: list[str] | tuple[str, ...] | None = None,
    delivery: Delivery = "exactly_once",
    password: Secret | None = None,
    ca: str | Path | None = None,
    retry_for: Duration = "5m",
) -> RedisSink:
    """Write one hash per entity: `redis("redis://host:6379/0", key="user_id", prefix="user", ttl="30d")`.

    `key` names the columns that identify the entity, `columns` those that become fields (all others by default).
    Only the last row of a key in a batch is written; a retraction deletes the hash. A null removes its field.
    If the results of several windows share a hash, the newest window wins, whatever the order of arrival.
    """
    if password is not None and not isinstance(password, Secret):
        raise refuse("SECRET_EXPECTED", what="password")
    check_delivery("the Redis sink", delivery)
    if prefix is not None and (not isinstance(prefix, str) or not prefix):
        raise _option("prefix", "a string", repr(prefix), 'write, for example, prefix="user", or omit it')
    check_url(url, has_ca=ca is not None, option=_option)
    named = RedisHashes(
        key=column_names("the Redis sink", "key", key),
        columns=column_names("the Redis sink", "columns", columns) or None,
        prefix=prefix,
    )
    both = sorted({*named.key} & {*(named.columns or ())})
    if not named.key:
        raise _option("key", "at least one column", repr(key), 'write, for example, key="user_id"')
    if both:
        raise _option("columns", "columns other than the key", f"`{both[0]}` in both", "the key names the hash")
    return RedisSink(
        url=url,
        hashes=named,
        ttl_ms=None if ttl is None else duration_ms(ttl, what="ttl"),
        password=password,
        ca=None if ca is None else str(given_path(ca)),
        delivery=delivery,
        retry_for_ms=duration_ms(retry_for, what="retry_for", least_ms=0),
    )


def _option(what: str, rule: str, got: str, remedy: str) -> Exception:
    return bad_option("the Redis sink", what, rule=rule, got=got, remedy=remedy)


@contextmanager
def _troubles(sink: RedisSink) -> Iterator[None]:
    """Translate the client's exceptions into those of the delivery protocol."""
    errors = client_library().exceptions
    try:
        yield
    except (errors.AuthenticationError, errors.AuthorizationError, errors.ResponseError) as error:
        raise _refusal(sink, server_words(error, sink.password)) from error
    except errors.TimeoutError as error:
        raise Unavailable(f"no response within {_TIMEOUT_S:.0f} s") from error
    except errors.ConnectionError as error:
        raise Unavailable(str(error).rstrip(".")) from error


def _refusal(sink: RedisSink, cause: str, key: str = "") -> Unavailable | RunError:
    if (away := passing(cause)) is not None:
        return away
    if error_prefix(cause) == "WRONGTYPE":
        return fault("REDIS_WRONG_TYPE", sink=sink, key=key)
    return fault("REDIS_REFUSED", sink=sink, cause=cause.strip().rstrip("."))
