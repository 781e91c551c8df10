"""Metrics for Prometheus: a collector for the last record of a job and the totals of its run.

Counters start at 0 with each run, as Prometheus expects of a process. Durations are in seconds, sizes in bytes.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from slackwater.base.errors import cause_of, fault
from slackwater.observe.metrics.exposed import shown
from slackwater.observe.metrics.monitor import Live

if TYPE_CHECKING:
    from prometheus_client.core import Metric

LOCAL: Final = "127.0.0.1"
TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"
"""The media type of `exposition`."""


@dataclass(kw_only=True, eq=False)
class Collector:
    """Exposes the last batch it was given, or the start of a run; nothing before that."""

    _live: Live | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, live: Live) -> None:
        """Record a batch, or the start of a run."""
        with self._lock:
            self._live = live

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics; `prometheus_client` calls this for each scrape."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily  # noqa: PLC0415  optional

        with self._lock:
            live = self._live
        if live is None:
            return
        for family in shown(live):
            kind = CounterMetricFamily if family.is_counter else GaugeMetricFamily
            metric = kind(family.name, family.help, labels=family.labels)
            for labels, value in family.samples:
                # Bytes in a file's name that are no text would make every scrape fail.
                metric.add_metric([each.encode(errors="replace").decode() for each in labels], value)
            yield metric


def exposition(collector: Collector) -> bytes:
    """Return the metrics in Prometheus' text format."""
    client = check_client()
    registry = client.CollectorRegistry(auto_describe=False)
    registry.register(collector)
    text: bytes = client.generate_latest(registry)
    return text


def check_client() -> Any:  # noqa: ANN401  a module
    """Return the module `prometheus_client`, or raise an error that says how to install it."""
    try:
        import prometheus_client  # noqa: PLC0415  an optional dependency
    except ModuleNotFoundError as error:
        raise fault("METRICS_CLIENT_MISSING", package="prometheus-client") from error
    return prometheus_client


@contextmanager
def serving(collector: Collector, *, port: int, host: str = LOCAL) -> Iterator[int]:
    """Serve `http://<host>:<port>/metrics` in a thread; yield the port, a free one if `port` is 0."""
    check_client()
    try:
        from slackwater.observe.metrics.http_server import HttpServer, listening  # noqa: PLC0415  optional
        from slackwater.observe.metrics.scraping import scraped  # noqa: PLC0415  optional
    except ModuleNotFoundError as error:
        raise fault("METRICS_CLIENT_MISSING", package=error.name) from error
    try:
        listener = listening(host, port)
    except (OSError, OverflowError) as error:
        raise fault("METRICS_PORT", host=host, port=port, cause=cause_of(error)) from error
    server = HttpServer(scraped(collector), listener, name="slackwater-metrics")
    try:
        yield listener.getsockname()[1]
    finally:
        server.close()
