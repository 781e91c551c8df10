"""TLS and SASL against a real broker, and a secret that is planted and then looked for everywhere."""

# ruff: noqa: E501  the job is a program of its own

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Producer

import slackwater as sw
from slackwater.base.errors import DefinitionError, RunError
from slackwater.base.secrets import Secret
from slackwater.connectors.kafka import broker
from slackwater.connectors.kafka.client import Cluster
from slackwater.connectors.kafka.connection import connection
from tests.conftest import Needs

pytestmark = pytest.mark.kafka
ROOT = Path(__file__).resolve().parents[3]
PLANTED: Final = 'pl4nted"\\passw0rd'
VARIABLE: Final = "SLACKWATER_TEST_PASSWORD"

JOB: Final = """
import os, sys, urllib.request
from pyspark.sql import SparkSession
import slackwater as sw
from slackwater.base.errors import RunError
from slackwater.connectors.kafka import client

servers, ca, home = sys.argv[1:]
spark = (
    SparkSession.builder.master("local[2,4]")
    .config("spark.eventLog.enabled", "true").config("spark.eventLog.dir", home + "/events")
    .config("spark.driver.extraJavaOptions", "-Dlog4j2.configurationFile=" + home + "/log4j2.properties")
    .config("spark.ui.port", "0").config("spark.driver.host", "127.0.0.1")
    .getOrCreate()
)
def pipeline(variable):
    source = sw.sources.kafka(servers, topic="safe", tls=sw.kafka.tls(ca=ca), sasl=sw.kafka.sasl("PLAIN", "orders", sw.secret(variable)))
    events = sw.stream("events", source).decode(sw.formats.json("id long"))
    return sw.Pipeline("safe", events.to(sw.sinks.files(home + "/out")), events.dead_letters.drop(), key_groups=2)
print(pipeline("SLACKWATER_TEST_PASSWORD").explain())
print(repr(pipeline("SLACKWATER_TEST_PASSWORD")))
pages = []
def look(report):
    for page in ("environment", "jobs", "SQL", "StreamingQuery", "api/v1/applications/" + spark.sparkContext.applicationId + "/environment"):
        with urllib.request.urlopen(spark.sparkContext.uiWebUrl + "/" + page) as answer:
            pages.append(answer.read().decode())
pipeline("SLACKWATER_TEST_PASSWORD").run(spark, bounded=True, checkpoint=home + "/checkpoint", trigger="0s", on_batch=look)
open(home + "/pages.html", "w").write("\\n".join(pages))
client._TIMEOUT_S = 2.0
try:
    pipeline("WRONG_PASSWORD").run(spark, bounded=True, checkpoint=home + "/other")
except RunError as error:
    print("REFUSED", error)
spark.stop()
"""

LOGGING: Final = """
rootLogger.level = info
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {home}/spark.log
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d %p %c: %m%n%ex
"""


@dataclass(frozen=True, kw_only=True)
class Safe:
    servers: str
    ca: Path


@pytest.fixture(scope="module")
def safe(tmp_path_factory: pytest.TempPathFactory, kafka_parts: None, needs: Needs) -> Iterator[Safe]:
    needs(shutil.which("keytool"), "certificates are made with the keytool of a JDK")
    home = tmp_path_factory.mktemp("safe")
    store, ca, port = home / "store.p12", home / "ca.pem", broker.free_port()
    made = "-genkeypair -alias b -keyalg RSA -dname CN=localhost -ext san=dns:localhost -storetype PKCS12 -validity 30"
    common = ["-keystore", str(store), "-storepass", "changeit"]
    subprocess.run(["keytool", *made.split(), *common], check=True, capture_output=True)
    exported = ["keytool", "-exportcert", "-rfc", "-alias", "b", "-file", str(ca), *common]
    subprocess.run(exported, check=True, capture_output=True)
    inner = broker.free_port()
    password = PLANTED.replace("\\", "\\\\").replace('"', '\\"')
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    jaas = f'{module} required user_orders="{password}";'.replace("\\", "\\\\")
    settings = {
        "listeners": f"SASL_SSL://localhost:{port},INNER://localhost:{inner},CONTROLLER://localhost:{{controller_port}}",
        "advertised.listeners": f"SASL_SSL://localhost:{port},INNER://localhost:{inner}",
        "listener.security.protocol.map": "SASL_SSL:SASL_SSL,INNER:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "INNER",
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(store),
        "ssl.keystore.password": "changeit",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": jaas,
    }
    started = broker.up(home / "kafka", port=port, heap_mb=256, settings=settings)
    yield Safe(servers=started.servers, ca=ca)
    broker.down(home / "kafka")


@pytest.mark.long
def test_secret_is_found_nowhere_though_the_job_logged_in_with_it(
    safe: Safe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, PLANTED)
    way = connection(
        safe.servers, tls=sw.kafka.tls(ca=safe.ca), sasl=sw.kafka.sasl("PLAIN", "orders", Secret(VARIABLE))
    )
    Cluster(connection=way).create_topic("safe")
    producer = Producer(way.for_librdkafka())
    producer.produce("safe", b'{"id": 7}')
    assert producer.flush(30) == 0
    (tmp_path / "job.py").write_text(JOB)
    (tmp_path / "log4j2.properties").write_text(LOGGING.format(home=tmp_path))
    (tmp_path / "events").mkdir()
    done = subprocess.run(
        [sys.executable, "job.py", safe.servers, str(safe.ca), str(tmp_path)],
        cwd=tmp_path,
        env={**os.environ, VARIABLE: PLANTED, "WRONG_PASSWORD": "wr0ng-" + VARIABLE},
        capture_output=True,
        text=True,
        check=False,
    )
    (tmp_path / "said.txt").write_text(done.stdout + done.stderr)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "(TLS, SASL)" in done.stdout
    assert "REFUSED [KAFKA_UNREACHABLE]" in done.stdout
    assert list((tmp_path / "out").glob("batch-*/*.parquet")), "the job read the topic"
    assert "ConsumerConfig" in (tmp_path / "spark.log").read_text(), "the client's own log is among what is searched"
    looked = 0
    for path in tmp_path.rglob("*"):
        if path.is_file():
            looked += 1
            content = path.read_bytes()
            for part in (b"pl4nted", b"passw0rd", b"wr0ng-"):
                assert part not in content or path.name == "job.py", f"{part!r} stands in {path}"
    assert looked > 20, "logs, pages, events, checkpoint and output are there to be searched"


def test_secret_comes_from_the_environment_a_named_file_or_a_mounted_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secret").write_text("from a file\n")
    monkeypatch.setenv("A", "from the environment")
    monkeypatch.setenv("B_FILE", str(tmp_path / "secret"))
    assert sw.secret("A").reveal() == "from the environment"
    assert sw.secret("B").reveal() == "from a file"
    assert sw.secret("A", file=tmp_path / "secret").reveal() == "from a file"
    with pytest.raises(RunError, match=r"SECRET_MISSING.*`C` is not in the environment.*set the variable `C`"):
        sw.secret("C").reveal()
    assert str(sw.secret("A")) == "secret A"


def test_plain_password_is_refused() -> None:
    with pytest.raises(DefinitionError, match=r"SECRET_EXPECTED.*`password` must be a secret") as caught:
        sw.kafka.sasl("PLAIN", "orders", "hunter2")  # type: ignore[arg-type]
    assert "hunter2" not in str(caught.value)
    with pytest.raises(DefinitionError, match="SECRET_EXPECTED"):
        sw.kafka.tls(certificate="a", key="b", key_password="hunter2")  # type: ignore[arg-type]  # noqa: S106  the point
    with pytest.raises(DefinitionError, match="SECRET_NAME"):
        sw.secret(5)  # type: ignore[arg-type]
    with pytest.raises(DefinitionError, match="KAFKA_SASL_MECHANISM"):
        sw.kafka.sasl("KERBEROS", "orders", sw.secret("A"))
    with pytest.raises(DefinitionError, match="KAFKA_TLS_PAIR"):
        sw.kafka.tls(certificate="a")
    with pytest.raises(DefinitionError, match="KAFKA_SECURITY"):
        sw.sources.kafka("h:1", topic="t", tls=True)  # type: ignore[arg-type]
    with pytest.raises(RunError, match="KAFKA_PEM"):
        connection("h:1", tls=sw.kafka.tls(ca="/nowhere.pem")).for_java()
