"""Rules about the user's own code: what it must not call, and what it must not assign."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from slackwater.base.errors import listed
from slackwater.observe.checker.assignments import assignments
from slackwater.observe.checker.code_reading import Use
from slackwater.observe.checker.facts import Facts
from slackwater.observe.checker.rule import Rule, Violation, rule
from slackwater.observe.checker.user_code import UserCode, methods_of, user_code
from slackwater.operators.process.base import Process
from slackwater.operators.process.declarations import states_of
from slackwater.operators.process.step import ProcessStep
from slackwater.plan.plan import Plan

_CHANGING: Final = (
    "random", "numpy.random", "secrets", "uuid.uuid1", "uuid.uuid4", "uuid.getnode", "os.urandom", "os.getpid",
    "os.environ", "os.getenv", "time.time", "time.time_ns", "time.monotonic", "time.monotonic_ns",
    "time.clock_gettime", "time.clock_gettime_ns", "datetime.datetime.now", "datetime.datetime.utcnow",
    "datetime.datetime.today", "datetime.date.today", "builtins.hash", "builtins.id", "socket.gethostname",
    "platform.node", "builtins.input",
)  # fmt: skip
_GENERATORS: Final = (
    "random.Random", "numpy.random.default_rng", "numpy.random.Generator", "numpy.random.mtrand.RandomState",
    "numpy.random.RandomState", "numpy.random.SeedSequence", "numpy.random.bit_generator.SeedSequence",
    "numpy.random.PCG64", "numpy.random.PCG64DXSM", "numpy.random.Philox", "numpy.random.SFC64",
    "numpy.random.MT19937",
)  # fmt: skip
"""Random generators that can be seeded from the event; without an argument, they are not."""
_NOW: Final = {"time.localtime": 0, "time.gmtime": 0, "time.ctime": 0, "time.asctime": 0, "time.strftime": 1}
"""Functions of a time, with the number of arguments up to which that is the current one."""
_SHUFFLING: Final = (".sample", ".shuffle")
_BLOCKING: Final = (
    "time.sleep", "requests", "httpx", "urllib.request", "urllib3", "http.client", "socket.socket",
    "socket.create_connection", "socket.getaddrinfo", "socket.gethostbyname", "ssl", "smtplib", "ftplib", "imaplib",
    "telnetlib", "xmlrpc", "psycopg", "psycopg2", "pg8000", "asyncpg", "sqlite3", "pymysql", "mysql", "sqlalchemy",
    "redis", "pymongo", "cassandra", "elasticsearch", "boto3", "botocore", "google.cloud", "azure", "grpc", "aiohttp",
    "confluent_kafka", "kafka", "paho", "pika", "paramiko", "subprocess", "os.system", "os.popen", "builtins.input",
)  # fmt: skip
_FILES: Final = (
    "builtins.open", "io.open", "pathlib.Path.open", "pathlib.Path.read_text", "pathlib.Path.read_bytes",
    "pathlib.Path.write_text", "pathlib.Path.write_bytes",
)  # fmt: skip
_WAITS: Final = ("threading.Event.wait", "threading.Condition.wait", "threading.Barrier.wait")
_MOST_NAMED: Final = 3


@rule(
    "SW301",
    "error",
    title="A function that gives a different result when it runs again",
    why="After a crash, a batch runs again. Rows that differ the second time are lost or duplicated.",
    fix="take times from the event or ctx, ids from the event's columns, and settings when the pipeline is built",
)
def changing(plan: Plan, _facts: Facts) -> Iterator[Violation]:
    """Look for random numbers, clocks, generated identifiers and the environment in the user's code."""
    return _found(plan, lambda _code, use: _is_changing(use))


def _is_changing(use: Use) -> bool:
    if use.name in _GENERATORS:
        return use.args == 0
    if use.name in _NOW:
        return use.args is None or use.args <= _NOW[use.name]
    if use.name == "numpy.datetime64":
        return use.first in ("now", "today")
    if use.name.startswith("polars.") and use.name.endswith(_SHUFFLING):
        return "seed" not in use.keywords
    return "()" not in use.name and _is_in(use.name, _CHANGING)


@rule(
    "SW302",
    "warning",
    title="A blocking call",
    why="Every event waits for it, one after the other, while the task's core is idle; a slow server stalls the job.",
    fix="use stream.lookup(...), which requests many keys at once and keeps the answers, or a sink for writing",
)
def blocking(plan: Plan, _facts: Facts) -> Iterator[Violation]:
    """Look for sleeps, networks, databases, other programs, and files opened for every event."""
    return _found(plan, _is_blocking)


def _is_blocking(code: UserCode, use: Use) -> bool:
    name = use.name.replace("()", "")
    if name in _FILES:
        return code.is_per_event or use.is_in_loop
    return name in _WAITS or ("()" not in use.name and _is_in(name, _BLOCKING))


@rule(
    "SW303",
    "error",
    title="Declared state that is assigned",
    why="State is changed by its methods only. Every event on which it is assigned becomes a dead letter.",
    fix="call self.<name>.set(value), or another method of the state; to forget it, self.<name>.clear()",
)
def assigned(plan: Plan, _facts: Facts) -> Iterator[Violation]:
    """Look for `self.n = …`, `self.n += …` and `del self.n`, where `n` is declared state."""
    for step in plan.steps:
        if isinstance(step.spec, ProcessStep) and isinstance(step.spec.process, Process):
            cls = type(step.spec.process)
            states = states_of(cls)
            found = [each for method in methods_of(cls, (Process,)) for each in assignments(method, states)]
            named = [f"{each.function} {each.verb} self.{each.name} (line {each.line})" for each in found]
            if named:
                yield Violation(f"step `{step.name}`", listed(named, most=_MOST_NAMED))


def _found(plan: Plan, is_bad: Callable[[UserCode, Use], bool]) -> Iterator[Violation]:
    """Yield one finding for each place with bad calls."""
    places: dict[str, dict[str, Use]] = {}
    for code in user_code(plan):
        for use in code.uses:
            if is_bad(code, use):
                places.setdefault(code.where, {}).setdefault(f"{use.function} {use.name}", use)
    for where, bad in places.items():
        named = [f"{use.function} uses {_shown(use.name)} (line {use.line})" for use in bad.values()]
        yield Violation(where, listed(named, most=_MOST_NAMED))


def _is_in(name: str, known: tuple[str, ...]) -> bool:
    return any(name == each or name.startswith(f"{each}.") for each in known)


def _shown(name: str) -> str:
    return "open" if name.endswith("io.open") else name.removeprefix("builtins.")


RULES: Final[tuple[Rule, ...]] = (changing, blocking, assigned)
