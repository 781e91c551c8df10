"""Metrics over OTLP: the same metrics as for Prometheus, sent to a collector by a separate thread.

Names, labels and figures are the same. An export that fails or hangs does not affect the job: it is counted, the first
of several consecutive failures is a warning, and the next export follows at the next interval. Headers, certificates,
compression and the interval follow OpenTelemetry's own environment variables.
"""

from __future__ import annotations

import importlib
import logging
import os
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import urlsplit, urlunsplit

from slackwater.base.durations import render_ms
from slackwater.base.errors import SlackwaterWarning, cause_of, fault, render
from slackwater.base.secrets import shown_url
from slackwater.base.version import VERSION
from slackwater.observe.metrics.exposed import Shown, shown
from slackwater.observe.metrics.monitor import Live

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import MetricsData

_PATH: Final = "/v1/metrics"
_ENDPOINT: Final = "OTEL_EXPORTER_OTLP_ENDPOINT"
_METRICS_ENDPOINT: Final = "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"
_PROTOCOLS: Final = ("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_SPOKEN: Final = "http/protobuf"
_INTERVAL: Final = "OTEL_METRIC_EXPORT_INTERVAL"
_INTERVAL_MS: Final = 60_000
_EXPORT_S: Final = 10.0
_NOTICE_S: Final = 0.2
"""How long an export that is aborted at the end has to issue its warning."""
_LONGEST_CAUSE: Final = 200
_UNITS: Final = {"seconds": "s", "bytes": "By"}
_LOGGER: Final = "opentelemetry.exporter.otlp.proto.http.metric_exporter"


class OtlpWarning(SlackwaterWarning):
    """The figures of a job cannot be exported."""


def metrics_url(endpoint: str) -> str:
    """Return the URL for metrics of an endpoint; the path for metrics is added if it is missing."""
    parts = urlsplit(endpoint)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise fault("OTLP_ENDPOINT", got=shown_url(endpoint))
    path = parts.path.rstrip("/")
    return urlunsplit(parts._replace(path=path if path.endswith(_PATH) else path + _PATH))


def endpoint_in(environ: Mapping[str, str]) -> str | None:
    """Return the endpoint in OpenTelemetry's environment variables; None if there is none or the export is off."""
    if environ.get("OTEL_SDK_DISABLED", "").lower() == "true" or environ.get("OTEL_METRICS_EXPORTER") == "none":
        return None
    found = environ.get(_METRICS_ENDPOINT) or environ.get(_ENDPOINT)
    protocol = next((environ[name] for name in _PROTOCOLS if environ.get(name)), _SPOKEN)
    if found and protocol != _SPOKEN:
        raise fault("OTLP_PROTOCOL", got=protocol)
    return found or None


@dataclass(kw_only=True, eq=False)
class OtlpExport:
    """Sends the figures of the last batch at every interval, and once more at the end."""

    endpoint: str
    interval_ms: int = field(default_factory=lambda: _interval_ms(os.environ))
    end_s: float = 3.0
    """How long a job that ends waits for the last export."""
    failures: int = 0
    """The number of failed exports."""
    _exporter: Any = None
    _live: Live | None = None
    _is_away: bool = False
    _ending: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread = field(init=False)

    def __post_init__(self) -> None:
        url = metrics_url(self.endpoint)
        self._exporter = _client("exporter.otlp.proto.http.metric_exporter").OTLPMetricExporter(
            endpoint=url, timeout=_EXPORT_S
        )
        _client("sdk.metrics.export")
        self._thread = threading.Thread(target=self._run, name="slackwater-otlp", daemon=True)

    def note(self, live: Live) -> None:
        """Record a batch, or the start of a run."""
        self._live = live

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join(self.end_s)
        self._exporter.shutdown()
        self._thread.join(_NOTICE_S)

    def _run(self) -> None:
        with _overheard() as overheard:
            while not self._ending.wait(self.interval_ms / 1_000):
                self._send(overheard)
            self._send(overheard)

    def _send(self, overheard: list[str]) -> None:
        live = self._live
        if live is None:
            return
        overheard.clear()
        try:
            is_sent = self._exporter.export(metrics_data(live, now_ns=time.time_ns())).name == "SUCCESS"
        except Exception as error:  # noqa: BLE001  whatever it is, it must not affect the job
            is_sent = False
            overheard.append(cause_of(error))
        if not is_sent:
            self.failures += 1
            if not self._is_away:
                self._warn(_cause(overheard[0]) if overheard else "no answer")
        self._is_away = not is_sent

    def _warn(self, cause: str) -> None:
        facts = {"endpoint": shown_url(self.endpoint), "interval": render_ms(self.interval_ms)}
        words = render("OTLP_UNSENT", cause=cause, **facts)
        with suppress(OtlpWarning):  # where warnings are errors, this thread must still continue
            warnings.warn(f"[OTLP_UNSENT] {words}", OtlpWarning, stacklevel=2)


def metrics_data(live: Live, *, now_ns: int) -> MetricsData:
    """Return the metrics of a job as OpenTelemetry's data structures."""
    sdk, resources = _client("sdk.metrics.export"), _client("sdk.resources")
    scope = _client("sdk.util.instrumentation").InstrumentationScope("slackwater", VERSION)
    named = {} if os.environ.get("OTEL_SERVICE_NAME") else {"service.name": live.pipeline}
    metrics = [_metric(sdk, each, since_ns=live.run.since_ms * 1_000_000, now_ns=now_ns) for each in shown(live)]
    scoped = sdk.ScopeMetrics(scope=scope, metrics=metrics, schema_url="")
    of_job = sdk.ResourceMetrics(resource=resources.Resource.create(named), scope_metrics=[scoped], schema_url="")
    data: MetricsData = sdk.MetricsData(resource_metrics=[of_job])
    return data


def _metric(sdk: Any, family: Shown, *, since_ns: int, now_ns: int) -> Any:  # noqa: ANN401  a module, a part of it
    points = [
        sdk.NumberDataPoint(
            attributes=dict(zip(family.labels, labels, strict=True)),
            start_time_unix_nano=since_ns if family.is_counter else 0,
            time_unix_nano=now_ns,
            value=value,
        )
        for labels, value in family.samples
    ]
    data = sdk.Gauge(data_points=points)
    if family.is_counter:
        cumulative = sdk.AggregationTemporality.CUMULATIVE
        data = sdk.Sum(data_points=points, aggregation_temporality=cumulative, is_monotonic=True)
    unit = _UNITS.get(family.name.rpartition("_")[2], "")
    return sdk.Metric(name=family.name, description=family.help, unit=unit, data=data)


def _client(name: str) -> Any:  # noqa: ANN401  a module
    """Return a module of OpenTelemetry, or raise an error that says how to install it."""
    try:
        return importlib.import_module(f"opentelemetry.{name}")
    except ModuleNotFoundError as error:
        raise fault("OTLP_CLIENT_MISSING", package=error.name) from error


def _interval_ms(environ: Mapping[str, str]) -> int:
    try:
        return max(1, round(float(environ.get(_INTERVAL, _INTERVAL_MS))))
    except ValueError:
        return _INTERVAL_MS


def _cause(logged: str) -> str:
    """Return why an export failed; for a failed connection only the reason, because the address may hold a secret."""
    reason = logged.partition("Caused by ")[2].rpartition('"))')[0] or logged
    return reason.partition("\n")[0][:_LONGEST_CAUSE]


class _LogCollector(logging.Handler):
    """Collects log messages."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Collect one message."""
        self.heard.append(record.getMessage())


@contextmanager
def _overheard() -> Iterator[list[str]]:
    """Collect the exporter's log messages instead of showing them; the cause of a failure is only there."""
    handler = _LogCollector()
    logger = logging.getLogger(_LOGGER)
    propagates, logger.propagate = logger.propagate, False
    logger.addHandler(handler)
    try:
        yield handler.heard
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagates
