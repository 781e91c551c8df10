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
    "STATUS_NOWHERE": (
        "status is read from the checkpoint of a job; `{path}` is none; run the pipeline first, or give its folder "
        "with --checkpoint"
    ),
    "STATUS_OF_NOTHING": (
        "`slackwater status` needs to know of which jobs; there is no checkpoint in `{path}`; give pipeline files, or "
        "folders with --checkpoint"
    ),
}
