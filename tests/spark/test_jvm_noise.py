"""When the JVM ends, PySpark and Py4J print nothing: the job's error is one sentence."""

from __future__ import annotations

import io
import logging
import socket
import socketserver
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.accumulators import _start_update_server

from slackwater.spark.jvm_noise import mute_accumulators, mute_py4j


@pytest.fixture
def logs(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """Give what the root logger prints, and leave all loggers as they were."""
    root, py4j, text = logging.getLogger(), logging.getLogger("py4j"), io.StringIO()
    handler = logging.StreamHandler(text)
    monkeypatch.setattr(root, "filters", list(root.filters))
    monkeypatch.setattr(py4j, "propagate", True)
    root.addHandler(handler)
    yield text
    root.removeHandler(handler)


def broken_off(capfd: pytest.CaptureFixture[str], *, muted: bool) -> str:
    """Let a JVM connect to a server of accumulators and be gone; return what is printed."""
    server: Any = _start_update_server("secret", is_unix_domain_sock=False)
    if muted:
        mute_accumulators(server)
    handled, close = threading.Event(), server.shutdown_request

    def closed(request: Any) -> None:  # noqa: ANN401  a socket
        close(request)
        handled.set()

    server.shutdown_request = closed
    with socket.create_connection(server.server_address) as jvm:
        jvm.sendall(b"secret")
    assert handled.wait(10)
    server.shutdown()
    return capfd.readouterr().err


def test_jvm_that_is_gone_is_no_stack_of_calls_of_the_server_of_accumulators(capfd: pytest.CaptureFixture[str]) -> None:
    assert "Traceback" in broken_off(capfd, muted=False)
    assert broken_off(capfd, muted=True) == ""


def test_other_error_of_the_server_of_accumulators_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    server = socketserver.BaseServer(("", 0), socketserver.BaseRequestHandler)
    mute_accumulators(server)
    try:
        int("the wrong token")
    except ValueError:
        server.handle_error(None, "the JVM")  # type: ignore[arg-type]
    assert "the wrong token" in capfd.readouterr().err


def test_py4j_logs_nothing_once_the_root_logger_has_a_handler(logs: io.StringIO) -> None:
    logger = logging.getLogger("py4j.clientserver")
    logger.error("before")
    mute_py4j()
    logger.error("a connection has broken")
    logging.getLogger("mine").error("my own")
    assert logs.getvalue() == "before\nmy own\n"
