"""Errors and notices of metrics and of the status of jobs, sorted by code."""

from __future__ import annotations

from typing import Final

MESSAGES: Final[dict[str, str]] = {
    "HISTORY_UNREADABLE": (
        "the history in `{path}` cannot be read: {cause}; {lost} cannot be shown; the job, its state and its results "
        "do not depend on it"
    ),
    "METRICS_CLIENT_MISSING": (
        "metrics for Prometheus require optional packages; `{package}` is missing; run "
        "`pip install 'slackwater[monitor]'`"
    ),
    "METRICS_FILE": (
        "`--metrics-file` must be a file in an existing folder; `{path}` cannot be written: {cause}; choose another "
        "path"
    ),
    "METRICS_HOST": (
        "`--metrics-host` is the address that `--metrics-port` listens on; got a host but no port; give both"
    ),
    "METRICS_PORT": (
        "`--metrics-port` must be a free port; {host}:{port} cannot be used: {cause}; choose another port, or stop the "
        "process that uses it"
    ),
    "METRICS_UNWRITTEN": (
        "the metrics of a batch cannot be written to `{path}`: {cause}; the job continues, but batches will be missing "
        "there until the path is writable again"
    ),
    "MONITOR_OUT": "`--out` must be a writable folder; `{path}` is not: {cause}; choose another folder",
    "OTLP_CLIENT_MISSING": (
        "metrics over OTLP require the packages opentelemetry-sdk and opentelemetry-exporter-otlp-proto-http; "
        "`{package}` is missing; run `pip install 'slackwater[otlp]'`"
    ),
    "OTLP_ENDPOINT": "an OTLP endpoint must be an HTTP URL; got `{got}`; write it as http://host:4318",
    "OTLP_PROTOCOL": (
        "metrics are exported as http/protobuf; OTEL_EXPORTER_OTLP_PROTOCOL is `{got}`; unset it, and give the "
        "endpoint's HTTP port, usually 4318"
    ),
    "OTLP_SKIPPED": (
        "`OTEL_EXPORTER_OTLP_ENDPOINT` is set but cannot be used: {cause}; the job runs without exporting over OTLP"
    ),
    "OTLP_UNSENT": "metrics cannot be sent to {endpoint}: {cause}; the job continues and retries every {interval}",
    "STATUS_NOWHERE": (
        "status is read from the checkpoint of a job; `{path}` is not one; run the pipeline first, or give its folder "
        "with --checkpoint"
    ),
    "STATUS_OF_NOTHING": (
        "this command needs at least one job; there is no checkpoint in `{path}`; give pipeline files, or "
        "folders with --checkpoint"
    ),
    "STATUS_URL": (
        "`--url` takes the address of a page, as `slackwater run --page` prints it; `{url}` does not serve one: "
        "{cause}; check the address and its token"
    ),
}
