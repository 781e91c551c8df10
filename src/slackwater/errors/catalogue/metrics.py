"""Errors and notices of metrics and of the status of jobs, sorted by code."""

from __future__ import annotations

from typing import Final

MESSAGES: Final[dict[str, str]] = {
    "METRICS_CLIENT_MISSING": (
        "metrics for Prometheus require the package prometheus-client; it is not installed; run "
        "`pip install 'slackwater[monitor]'`"
    ),
    "METRICS_FILE": (
        "`--metrics-file` is a file in a folder that exists; `{path}` cannot be written: {cause}; choose another path"
    ),
    "METRICS_HOST": (
        "`--metrics-host` says on which address `--metrics-port` listens; got a host and no port; give both"
    ),
    "METRICS_PORT": (
        "`--metrics-port` is a port that is free; {host}:{port} cannot be used: {cause}; choose another port, or end "
        "what uses it"
    ),
    "METRICS_UNWRITTEN": (
        "the figures of batches cannot be written to `{path}`: {cause}; the job continues, and those of the batches "
        "until it can are missing"
    ),
    "MONITOR_OUT": ("`--out` is a folder that can be written to; `{path}` cannot: {cause}; choose another folder"),
    "OTLP_CLIENT_MISSING": (
        "metrics over OTLP require the packages opentelemetry-sdk and opentelemetry-exporter-otlp-proto-http; "
        "`{package}` is missing; run `pip install 'slackwater[otlp]'`"
    ),
    "OTLP_ENDPOINT": ("an OTLP endpoint is an address of HTTP; got `{got}`; write it as http://host:4318"),
    "OTLP_PROTOCOL": (
        "metrics are exported as http/protobuf; OTEL_EXPORTER_OTLP_PROTOCOL is `{got}`; unset it and name the "
        "endpoint's port for HTTP, most often 4318"
    ),
    "OTLP_SKIPPED": (
        "`OTEL_EXPORTER_OTLP_ENDPOINT` is set and cannot be used: {cause}; the job runs without exporting over OTLP"
    ),
    "OTLP_UNSENT": (
        "metrics cannot be sent to {endpoint}: {cause}; the job continues, and they are sent again every {interval}"
    ),
    "STATUS_NOWHERE": (
        "status is read from the checkpoint of a job; `{path}` is none; run the pipeline first, or give its folder "
        "with --checkpoint"
    ),
    "STATUS_OF_NOTHING": (
        "`slackwater status` needs to know of which jobs; there is no checkpoint in `{path}`; give pipeline files, or "
        "folders with --checkpoint"
    ),
}
