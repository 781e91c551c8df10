"""Metrics over OTLP, received by a collector of a few lines."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

import slackwater as sw
from slackwater.observe.metrics.exposed import shown
from slackwater.observe.metrics.merging import merged
from slackwater.observe.metrics.monitor import Live
from slackwater.observe.metrics.otlp import OtlpExport, OtlpWarning, endpoint_in, metrics_url
from slackwater.observe.metrics.runs import Run
from slackwater.observe.page.recording import recording
from tests.conftest import Needs
from tests.observe.metrics.made_records import START_MS, record
from tests.tools.cli.test_run_options import PLAN

RECORDS = [record(0, rows=60), record(1)]
LIVE = Live(
    pipeline="shop", run=Run(starts=3, since_ms=START_MS), last=RECORDS[-1], total=merged(RECORDS), export_failures=7
)
NEVER_MS = 3_600_000
PATIENT_S = 30.0


class Received:
    """A collector: keeps the requests it gets, and answers with `status`."""

    def __init__(self) -> None:
        self.status, self.requests = 200, list[tuple[str, Any]]()
        self.answers = threading.Event()
        self.answers.set()
        self.address = ""
        self.arrived = threading.Semaphore(0)


@pytest.fixture
def collector(needs: Needs, monkeypatch: pytest.MonkeyPatch) -> Iterator[Received]:
    needs(installed(), "metrics over OTLP need the extra `otlp`")
    for name in ("OTEL_SERVICE_NAME", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    with receiving() as received:
        yield received


def installed() -> bool:
    try:
        import opentelemetry.exporter.otlp.proto.http.metric_exporter
        import opentelemetry.sdk.metrics.export  # noqa: F401  whether it is there
    except ModuleNotFoundError:
        return False
    return True


@contextmanager
def receiving() -> Iterator[Received]:
    received = Received()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.requests.append((self.path, ExportMetricsServiceRequest.FromString(body)))
            received.arrived.release()
            received.answers.wait(30)
            self.send_response(received.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  as the base class has it
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    received.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield received
    finally:
        received.answers.set()
        server.shutdown()
        server.server_close()
        thread.join()


def samples(request: Any) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:  # noqa: ANN401  protobuf
    found: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for metric in request.resource_metrics[0].scope_metrics[0].metrics:
        for point in getattr(metric, metric.WhichOneof("data")).data_points:
            labels = tuple((each.key, each.value.string_value) for each in point.attributes)
            found.setdefault(metric.name, {})[labels] = getattr(point, point.WhichOneof("value"))
    return found


def test_collector_gets_every_family_with_the_labels_and_figures_that_prometheus_gets(collector: Received) -> None:
    with OtlpExport(endpoint=collector.address, interval_ms=NEVER_MS, end_s=PATIENT_S) as export:
        export.note(LIVE)
    [(path, request)] = collector.requests
    assert path == "/v1/metrics"
    expected = {
        each.name: {tuple(zip(each.labels, labels, strict=True)): value for labels, value in each.samples}
        for each in shown(LIVE)
    }
    assert samples(request) == expected
    assert export.failures == 0


def test_counters_are_cumulative_since_the_start_of_the_run_and_the_service_is_the_pipeline(
    collector: Received,
) -> None:
    with OtlpExport(endpoint=collector.address, interval_ms=NEVER_MS, end_s=PATIENT_S) as export:
        export.note(LIVE)
    [(_, request)] = collector.requests
    attributes = {each.key: each.value.string_value for each in request.resource_metrics[0].resource.attributes}
    assert attributes["service.name"] == "shop"
    metrics = {each.name: each for each in request.resource_metrics[0].scope_metrics[0].metrics}
    rows, state = metrics["slackwater_rows_total"], metrics["slackwater_state_bytes"]
    assert (rows.sum.is_monotonic, rows.sum.aggregation_temporality) == (True, 2)
    assert rows.sum.data_points[0].start_time_unix_nano == START_MS * 1_000_000
    assert (state.WhichOneof("data"), state.unit) == ("gauge", "By")


def test_figures_are_sent_again_every_interval(collector: Received) -> None:
    with OtlpExport(endpoint=collector.address, interval_ms=10, end_s=PATIENT_S) as export:
        export.note(LIVE)
        assert all(collector.arrived.acquire(timeout=10) for _ in range(3))


def test_refused_export_is_counted_with_one_notice_and_the_next_one_is_sent(
    collector: Received, recwarn: pytest.WarningsRecorder
) -> None:
    collector.status = 400
    with OtlpExport(endpoint=collector.address, interval_ms=10, end_s=PATIENT_S) as export:
        export.note(LIVE)
        assert all(collector.arrived.acquire(timeout=10) for _ in range(3))
        collector.status = 200
    assert export.failures >= 2
    [notice] = [each for each in recwarn if issubclass(each.category, OtlpWarning)]
    assert f"[OTLP_UNSENT] metrics cannot be sent to {collector.address}" in str(notice.message)
    assert "the job continues" in str(notice.message)


def test_notice_has_the_cause_and_no_secret_of_the_address(
    needs: Needs, recwarn: pytest.WarningsRecorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs(installed(), "metrics over OTLP need the extra `otlp`")
    with receiving() as gone:
        pass
    # Long enough for a second try, before which the client tells why the first one failed.
    monkeypatch.setattr("slackwater.observe.metrics.otlp._EXPORT_S", 2.0)
    address = f"{gone.address}/?token=hunter2"
    with OtlpExport(endpoint=address, interval_ms=NEVER_MS, end_s=PATIENT_S) as export:
        export.note(LIVE)
    [notice] = [str(each.message) for each in recwarn if issubclass(each.category, OtlpWarning)]
    assert "Connection refused" in notice
    assert "hunter2" not in notice
    assert export.failures == 1


def test_failures_are_a_figure_of_the_run(collector: Received) -> None:
    with recording(PLAN, otlp=collector.address, say=lambda _: None) as takers:
        assert takers.export is not None
        takers.export.failures = 4
        assert takers.on_record is not None
        takers.on_record(LIVE)
    [(_, request)] = collector.requests
    assert samples(request)["slackwater_export_failures_total"] == {(("pipeline", "shop"),): 4}


def test_collector_that_does_not_answer_delays_neither_batches_nor_the_end_for_long(collector: Received) -> None:
    collector.answers.clear()
    export = OtlpExport(endpoint=collector.address, interval_ms=10, end_s=0.1)
    with export:
        export.note(LIVE)
        assert collector.arrived.acquire(timeout=10)
        began = time.monotonic()
        for _ in range(1_000):
            export.note(LIVE)
    assert time.monotonic() - began < 2
    collector.answers.set()
    export._thread.join(PATIENT_S)
    assert not export._thread.is_alive()


@pytest.mark.parametrize(
    "given, sent_to",
    [
        ("http://host:4318", "http://host:4318/v1/metrics"),
        ("http://host:4318/", "http://host:4318/v1/metrics"),
        ("https://host/otlp", "https://host/otlp/v1/metrics"),
        ("https://host/v1/metrics", "https://host/v1/metrics"),
    ],
)
def test_path_of_metrics_is_added_to_the_endpoint(given: str, sent_to: str) -> None:
    assert metrics_url(given) == sent_to


@pytest.mark.parametrize("given", ["host:4318", "grpc://host:4317", "http://", ""])
def test_endpoint_that_is_no_address_of_http_is_refused(given: str) -> None:
    with pytest.raises(sw.RunError, match="write it as http://host:4318") as raised:
        metrics_url(given)
    assert raised.value.code == "OTLP_ENDPOINT"


@pytest.mark.parametrize(
    "environ, found",
    [
        ({}, None),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a:4318"}, "http://a:4318"),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://b/v1/metrics"},
            "http://b/v1/metrics",
        ),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a", "OTEL_SDK_DISABLED": "true"}, None),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a", "OTEL_METRICS_EXPORTER": "none"}, None),
    ],
)
def test_endpoint_is_found_in_the_standard_variables(environ: dict[str, str], found: str | None) -> None:
    assert endpoint_in(environ) == found


def test_variable_is_used_without_the_option(collector: Received, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.address)
    with recording(PLAN, say=lambda _: None) as takers:
        assert takers.on_record is not None
        takers.on_record(LIVE)
    assert len(collector.requests) == 1


def test_variables_that_cannot_be_followed_are_a_notice_and_the_job_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4317")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    with (
        pytest.warns(OtlpWarning, match=r"\[OTLP_SKIPPED\].*exported as http/protobuf"),
        recording(PLAN, say=print) as takers,
    ):
        assert takers.on_record is None


def test_missing_packages_are_an_error_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "opentelemetry.exporter.otlp.proto.http.metric_exporter", None)
    wanted = r"pip install 'slackwater\[otlp\]'"
    with pytest.raises(sw.RunError, match=wanted) as raised, recording(PLAN, otlp="http://127.0.0.1:1", say=print):
        pass
    assert raised.value.code == "OTLP_CLIENT_MISSING"
