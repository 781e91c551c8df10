"""Spark's JVM: its process is started early, and PySpark connects to it when it answers.

By itself, PySpark starts the JVM when a session is created, and waits. Started earlier, the JVM comes up while this
process is still importing what a job needs.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from slackwater.spark.home import spark_home

_LAUNCHER_OPTIONS: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"
"""Options of the small JVM that builds the command line of the large one."""
SHORT_OPTIONS: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"
"""Options for runs of seconds, which would end before the optimising compiler pays off.

With the quick compiler alone, Java reserves 48 MB for compiled code. Spark outgrows that within minutes, and Java would
discard compiled methods and compile them again.
"""
_NOISE: Final = (
    b"Streaming TransformWithState",
    b"WARNING: Using incubator modules",
    b"Using Spark's default log4j profile",
    b"Setting default log level",
    b"To adjust logging level",
    b"NativeCodeLoader",
    b" WARN ",
)
"""Lines of Spark's output that mean nothing to users; Slackwater itself raises the warnings that matter."""
_LOOK_EVERY_S: Final = 0.02
_ANSWER: Final = struct.Struct(">ii")
"""The JVM's answer: its port, and the length of the secret that follows."""


@dataclass(frozen=True, kw_only=True)
class Jvm:
    """A JVM that was started for a later session."""

    process: subprocess.Popen[bytes]
    answer: Path
    """The file where the JVM writes its port and secret."""

    @classmethod
    def start(cls, conf: Mapping[str, str], *, options: str = "") -> Jvm:
        """Start a JVM for a session with `conf`; `options` are Java options, placed before the user's."""
        answer = Path(tempfile.mkdtemp(prefix="slackwater-")) / "answer"
        home = spark_home(local=conf["spark.master"].startswith("local"))
        settings = [part for name, value in conf.items() for part in ("--conf", f"{name}={value}")]
        arguments = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell"))
        environment = {
            **os.environ,
            **utf8(),
            "PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON", sys.executable),
            "SPARK_HOME": str(home),
            "SPARK_CONNECT_MODE": "0",
            "SPARK_LAUNCHER_OPTS": os.environ.get("SPARK_LAUNCHER_OPTS", _LAUNCHER_OPTIONS),
            "SPARK_SUBMIT_OPTS": f"{options} {os.environ.get('SPARK_SUBMIT_OPTS', '')}".strip(),
            "_PYSPARK_DRIVER_CONN_INFO_PATH": str(answer),
        }
        reading, writing = os.pipe()
        threading.Thread(target=_forward, args=(reading,), daemon=True, name="spark-stderr").start()
        try:
            process = subprocess.Popen(  # noqa: S603  Spark's own script
                [str(home / "bin" / "spark-submit"), *settings, *arguments],
                stdin=subprocess.PIPE,  # the JVM exits when this closes, at the latest with this process
                stderr=writing,
                env=environment,
                preexec_fn=_ignore_ctrl_c,  # noqa: PLW1509  uses nothing that another thread may have locked
            )
        finally:
            os.close(writing)
        return cls(process=process, answer=answer)

    def connect(self) -> None:
        """Wait for the JVM, and connect PySpark to it."""
        from pyspark import SparkContext  # noqa: PLC0415  the JVM is started before PySpark is loaded
        from pyspark.errors import PySparkRuntimeError  # noqa: PLC0415  as above
        from pyspark.java_gateway import launch_gateway  # noqa: PLC0415  as above

        try:
            while not self.answer.exists():
                if self.process.poll() is not None:
                    raise PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={})
                time.sleep(_LOOK_EVERY_S)
            found = self.answer.read_bytes()
            port, length = _ANSWER.unpack_from(found)
            secret = found[_ANSWER.size : _ANSWER.size + length].decode()
        finally:
            shutil.rmtree(self.answer.parent, ignore_errors=True)
        with _environment({"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}):
            gateway: Any = launch_gateway()  # type: ignore[no-untyped-call]  # has no types
        gateway.proc = self.process
        SparkContext._ensure_initialized(gateway=gateway)  # noqa: SLF001  no public way


def is_jvm_there() -> bool:
    """Return whether PySpark is connected to a JVM."""
    context = sys.modules.get("pyspark.core.context")
    return context is not None and context.SparkContext._gateway is not None  # noqa: SLF001  no public way


def utf8() -> dict[str, str]:
    """Return variables that let a JVM read every path: under the C locale (cron, systemd) only ASCII names work."""
    named = next((os.environ[name] for name in ("LC_ALL", "LC_CTYPE", "LANG") if os.environ.get(name)), "")
    return {} if "utf8" in named.lower().replace("-", "") else {"LC_ALL": "C.UTF-8"}


def _ignore_ctrl_c() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def _environment(added: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in added}
    os.environ.update(added)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def _forward(reading: int) -> None:
    """Forward a JVM's standard error to this process's, without the lines that nobody needs.

    Spark prints a dozen lines at startup, and two more with every stateful query, before any log level can be set.
    Errors and everything else are forwarded.
    """
    with os.fdopen(reading, "rb") as lines:
        for line in lines:
            if line.strip() and not any(noise in line for noise in _NOISE):
                os.write(2, line)
