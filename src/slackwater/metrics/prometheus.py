"""Metrics for Prometheus: a collector for the last record of a job and the totals of its run.

Counters start at 0 with each run, as Prometheus expects of a process. Durations are in seconds, sizes in bytes.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from slackwater.errors import cause_of, fault
from slackwater.metrics.exposed import shown
from slackwater.metrics.monitor import Live

if TYPE_CHECKING:
    from prometheus_client.core import Metric

LOCAL: Final = "127.0.0.1"


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
                metric.add_metric(labels, value)
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
        raise fault("METRICS_CLIENT_MISSING") from error
    return prometheus_client


@contextmanager
def serving(collector: Collector, *, port: int, host: str = LOCAL) -> Iterator[int]:
    """Serve `http://<host>:<port>/metrics` in a thread; yield the port, a free one if `port` is 0."""
    client = check_client()
    registry = client.CollectorRegistry(auto_describe=False)
    registry.register(collector)
    try:
        server, thread = client.start_http_server(port, addr=host, registry=registry)
    except OSError as error:
        raise fault("METRICS_PORT", host=host, port=port, cause=cause_of(error)) from error
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
