"""What PySpark and Py4J print when the JVM ends: stacks of calls, beside the job's own error, which has it all."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkRuntimeError

_GONE = (EOFError, OSError, PySparkRuntimeError)
"""What the server of accumulators meets when the JVM's end of its connection is gone."""


def mute_py4j() -> None:
    """Let Py4J log nothing of a connection that breaks.

    It logs some of that as the root logger, which gives this one a handler if it has none; from then on the root
    logger would print what Py4J's own loggers pass on as well.
    """
    logging.getLogger().addFilter(_is_not_py4js)
    logging.getLogger("py4j").propagate = False


def mute_accumulators(server: Any) -> None:  # noqa: ANN401  a socketserver of PySpark's, or None
    """Let PySpark's server of accumulators print nothing of a connection that breaks, and any other error as ever."""
    if server is None:
        return
    report = server.handle_error

    def handle_error(request: object, client_address: object) -> None:
        if not isinstance(sys.exception(), _GONE):
            report(request, client_address)

    server.handle_error = handle_error


def _is_not_py4js(record: logging.LogRecord) -> bool:
    return "py4j" not in Path(record.pathname).parts
