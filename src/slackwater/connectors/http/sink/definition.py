"""HTTP: rows as JSON, to a receiver that identifies each request by its key; rejected rows go to another sink.

The receiver stores no marks for us. A replayed batch is sent again, with the same `Idempotency-Key` on each request,
and a receiver that honours the key takes each row once. Rejected rows are written to the sink `rejected` after every
row was answered, by the same protocol as all sinks and with the batch's mark.
"""

from __future__ import annotations

import socket
import ssl
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar, Final, Literal
from urllib.parse import SplitResult, urlsplit
from uuid import uuid4

import polars as pl

from slackwater.base.crash_points import crash_point
from slackwater.base.durations import Duration, duration_ms, render_ms
from slackwater.base.errors import counted, near_miss, notice, refuse
from slackwater.base.folders import given_path
from slackwater.base.secrets import Secret, shown_url
from slackwater.connectors.delivery import Expected, OpenSlot, SinkWarning
from slackwater.connectors.http.connection import (
    check_url,
    checked_headers,
    hidden_values,
    http_library,
    revealed_headers,
)
from slackwater.connectors.http.sink.requests import LANES, Requests
from slackwater.connectors.http.sink.sending import Rejection, RequestSender, Unaccepted
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
from slackwater.formats.dead_letter_columns import DEAD_LETTER_SCHEMA, dead_letters
from slackwater.formats.row_json import check_json

_SINK: Final = "the HTTP sink"
_METHODS: Final = ("POST", "PUT", "PATCH")
_MOST_ROWS: Final = 10_000


@dataclass(frozen=True, kw_only=True, eq=False)
class HttpSink(Sink):
    """A sink that sends rows to an HTTP receiver, and those it rejects to another sink."""

    shown_options: ClassVar[tuple[str, ...]] = (
        "key",
        "headers",
        "concurrency",
        "timeout_ms",
        "batch_rows",
        "ca",
        "rejected",
    )
    url: str = field(repr=False)
    rejected: Sink
    key: tuple[str, ...] = ()
    headers: Mapping[str, str | Secret] = field(default_factory=dict)
    method: str = "POST"
    concurrency: int = 8
    timeout_ms: int = 10_000
    batch_rows: int = 1
    ca: str | None = None
    takes: frozenset[Change] = EVERYTHING
    delivery: Delivery = "exactly_once"
    keeps_marks: bool = False

    @property
    def place(self) -> str | None:
        """The place of the sink for rejected rows; a receiver may be shared."""
        return self.rejected.place

    @property
    def needs_spark(self) -> bool:
        """Whether the sink for rejected rows needs Spark."""
        return self.rejected.needs_spark

    def session_conf(self) -> dict[str, str]:
        """Return the Spark settings of the sink for rejected rows."""
        return self.rejected.session_conf()

    @property
    def promise(self) -> str:
        """The delivery guarantee; exactly once depends on the receiver."""
        needs = " if the receiver honours Idempotency-Key" if self.delivery == "exactly_once" else ""
        return f"{super().promise}{needs}"

    def check(self, slot: Slot) -> None:
        """Reject an output without the columns of the key."""
        for name in self.key:
            if name not in slot.schema:
                raise refuse("HTTP_COLUMN", output=slot.output, name=name, hint=near_miss(name, slot.schema))
        self.rejected.check(_rejected_slot(slot))

    def trial(self, slot: Slot) -> Trial:  # noqa: ARG002  the same for any output
        """Return the check for rows that cannot be encoded as JSON."""
        return Trial(rule="json", check=check_json)

    def prepare(self, slot: Slot) -> None:
        """Check that the receiver accepts connections, and prepare the sink for rejected rows."""
        http_library()
        revealed_headers(self.headers)
        _connect(urlsplit(self.url), self.timeout_ms, self.ca)
        self.rejected.prepare(_rejected_slot(slot))

    def open(self, slot: Slot) -> SinkWriter:
        """Return a writer with its connection pool and threads."""

        def waiting(why: str) -> str:
            return notice("SINK_WAITING", sink=self, output=slot.output, why=why, patience=render_ms(self.retry_for_ms))

        revealed = revealed_headers(self.headers)
        sender = RequestSender(
            name=str(self),
            url=self.url,
            method=self.method,
            headers={"Content-Type": "application/json", "User-Agent": "slackwater"} | revealed,
            hidden=hidden_values(
                [value for name, value in revealed.items() if isinstance(self.headers[name], Secret)], self.url
            ),
            concurrency=self.concurrency,
            timeout_ms=self.timeout_ms,
            patience_ms=self.retry_for_ms,
            sends_once=self.delivery == "at_most_once",
            ca=self.ca,
            say_waiting=waiting,
        )
        sender.open()
        return _HttpWriter(
            sink=self,
            slot=slot,
            sender=sender,
            rejects=OpenSlot(sink=self.rejected, slot=_rejected_slot(slot)),
            last_rejected=slot.behind,
        )

    def __str__(self) -> str:
        return f"http {self.method} {shown_url(self.url)} (refused rows to {self.rejected})"


@dataclass(kw_only=True)
class _HttpWriter(SinkWriter):
    sink: HttpSink
    slot: Slot
    sender: RequestSender
    rejects: OpenSlot
    run: str = field(default_factory=lambda: uuid4().hex)
    """Stands in for the incarnation if there is no mark: then only retries by this writer have the same keys."""
    last_rejected: int | None = None
    """The last batch of this run with rejected rows, as far as known."""
    has_reported_rejected: bool = False

    def behind(self) -> int | None:
        """Return the last batch with rejected rows."""
        return self.last_rejected

    def write(self, batch: SinkBatch, mark: Mark | None) -> None:
        """Send every row, then write the rejected ones."""
        known = mark or Mark(incarnation=self.run, batch=batch.batch, token="")
        requests = Requests(
            slot=self.slot,
            run=known.incarnation,
            batch=batch.batch,
            key=self.sink.key,
            batch_rows=self.sink.batch_rows,
        )
        self.sender.is_stopping = batch.is_stopping
        self.rejects.check_owner = batch.check_owner
        outcome = Unaccepted()
        for lanes in requests.lanes(batch):
            batch.check_owner()
            self.sender.send(lanes, outcome)
        crash_point("written", batch.batch)
        if outcome.rejections:
            self._say_rejected(outcome.rejections, batch)
            letters = self._letters(outcome.rejections, batch.batch)
            refused = SinkBatch(
                batch=batch.batch, schema=DEAD_LETTER_SCHEMA, rows=letters.height, frames=lambda: iter([letters])
            )
            self.rejects.deliver(refused, _Following(mark=known, before=self.last_rejected))
            self.last_rejected = batch.batch
        if outcome.lost:
            raise Unavailable(f"{counted(len(outcome.lost), 'request')} failed, one with: {outcome.lost[0]}")

    def close(self) -> None:
        """Release connections and threads."""
        self.sender.close()
        self.rejects.close()

    def _say_rejected(self, rejections: list[Rejection], batch: SinkBatch) -> None:
        count = sum(len(rejection.request.bodies) for rejection in rejections)
        if self.has_reported_rejected and count < batch.rows:
            return  # only some rejected, as before; a wholly rejected batch is always reported
        self.has_reported_rejected = True
        facts = {"sink": self.sink, "count": count, "rows": batch.rows, "batch": batch.batch}
        warnings.warn(notice("HTTP_REJECTED", why=rejections[0].message, **facts), SinkWarning, stacklevel=2)

    def _letters(self, rejections: list[Rejection], batch: int) -> pl.DataFrame:
        refused = [
            (body.encode(), rejection.request.key.encode(), number, rejection.message)
            for rejection in rejections
            for body, number in zip(rejection.request.bodies, rejection.request.numbers, strict=True)
        ]
        schema = {"payload": pl.Binary(), "key": pl.Binary(), "number": pl.Int64(), "message": pl.String()}
        rows = pl.DataFrame(refused, schema=schema, orient="row").sort("number")
        return dead_letters(
            payload=rows["payload"],
            key=rows["key"],
            partition=f"{self.slot.number}/{batch}",
            offset=rows["number"],
            reason="http_rejected",
            message=rows["message"],
            source=self.slot.output,
            step=self.slot.output,
            ingestion_time_ms=None,
            processed_at_ms=time.time_ns() // 1_000_000,
        )


class _Following(Expected):
    """Accepts any mark of this run since the last recorded one: an interrupted batch may have left one unrecorded."""

    def is_there(self, found: Mark | None, sink: Sink, slot: Slot) -> bool:
        """Return whether the slot already has the batch; raises if its mark is another run's, or newer."""
        is_earlier = found is not None and found.incarnation == self.mark.incarnation and found.batch < self.mark.batch
        before = self.before
        if found is not None and is_earlier:
            before = found.batch if before is None else max(found.batch, before)
        return Expected(mark=self.mark, before=before).is_there(found, sink, slot)


def http(
    url: str,
    *,
    rejected: Sink,
    key: str | list[str] | tuple[str, ...] | None = None,
    headers: Mapping[str, str | Secret] | None = None,
    method: Literal["POST", "PUT", "PATCH"] = "POST",
    concurrency: int = 8,
    timeout: Duration = "10s",
    delivery: Delivery = "exactly_once",
    retry_for: Duration = "5m",
    batch_rows: int = 1,
    ca: str | Path | None = None,
) -> HttpSink:
    """Send each row as JSON: `http("https://host/results", key="user", rejected=sw.sinks.files("out/refused"))`.

    Exactly once if the receiver honours the header `Idempotency-Key`. Rows of one `key` are sent in order; without
    `key`, in any order. With `batch_rows` above 1, requests are arrays of up to that many rows. Rows that the
    receiver rejects with 4xx go to `rejected` as dead letters, except that 401 and 407 stop the job, as does a
    redirect. Other failures, and 408, 425 and 429, are retried for `retry_for`.
    """
    if not isinstance(rejected, Sink):
        remedy = 'write, for example, rejected=sw.sinks.files("out/refused")'
        raise bad_option(_SINK, "rejected", rule="a sink for rejected rows", got=repr(rejected), remedy=remedy)
    check_delivery(_SINK, delivery)
    if delivery != "exactly_once" and rejected.delivery == "exactly_once":
        raise refuse("HTTP_REJECTED_PROMISE", rejected=rejected, delivery=delivery)
    check_url(url, has_ca=ca is not None, option=_option)
    if method not in _METHODS:
        raise bad_option(_SINK, "method", rule=f"one of {', '.join(_METHODS)}", got=repr(method), remedy="use POST")
    for what, given, most in (("concurrency", concurrency, LANES), ("batch_rows", batch_rows, _MOST_ROWS)):
        if type(given) is not int or not 1 <= given <= most:
            rule = f"a whole number from 1 to {most}"
            raise bad_option(_SINK, what, rule=rule, got=repr(given), remedy="omit it to use the default")
    return HttpSink(
        url=url,
        rejected=rejected,
        key=column_names(_SINK, "key", key),
        headers=checked_headers(headers, option=_option),
        method=method,
        concurrency=concurrency,
        timeout_ms=duration_ms(timeout, what="timeout"),
        batch_rows=batch_rows,
        ca=None if ca is None else str(given_path(ca)),
        delivery=delivery,
        retry_for_ms=duration_ms(retry_for, what="retry_for", least_ms=0),
    )


def _option(what: str, rule: str, got: str, remedy: str) -> Exception:
    return bad_option(_SINK, what, rule=rule, got=got, remedy=remedy)


def _connect(parts: SplitResult, timeout_ms: int, ca: str | None) -> None:
    """Connect to the receiver once, without a request, so that a wrong address is found before the first row."""
    host, port = str(parts.hostname), parts.port or (443 if parts.scheme == "https" else 80)
    try:
        with socket.create_connection((host, port), timeout_ms / 1_000) as connection:
            if parts.scheme == "https":
                ssl.create_default_context(cafile=ca).wrap_socket(connection, server_hostname=host).close()
    except ssl.SSLCertVerificationError as error:
        raise Unavailable(f"its certificate is not trusted ({error.verify_message}); give its root as `ca`") from error
    except OSError as error:
        raise Unavailable(f"{error.strerror or error}") from error


def _rejected_slot(slot: Slot) -> Slot:
    return replace(slot, output=f"{slot.output}.rejected", schema=DEAD_LETTER_SCHEMA, identity=None)
