"""Muting the stack traces that PySpark and Py4J print when the JVM ends; the job's own error says it all."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkRuntimeError

_GONE = (EOFError, OSError, PySparkRuntimeError)
"""Errors of the accumulator server when the JVM's end of the connection is gone."""


def mute_py4j() -> None:
    """Keep Py4J from logging broken connections.

    It logs some of them through `logging` itself, which installs a handler on the root logger if there is none; from
    then on, the root logger would also print what Py4J's own loggers propagate.
    """
    logging.getLogger().addFilter(_is_not_py4js)
    logging.getLogger("py4j").propagate = False


def mute_accumulators(server: Any) -> None:  # noqa: ANN401  PySpark's socketserver, or None
    """Keep PySpark's accumulator server from printing broken connections; other errors are printed as usual."""
    if server is None:
        return
    report = server.handle_error

    def handle_error(request: object, client_address: object) -> None:
        if not isinstance(sys.exception(), _GONE):
            report(request, client_address)

    server.handle_error = handle_error


def _is_not_py4js(record: logging.LogRecord) -> bool:
    return "py4j" not in Path(record.pathname).parts
