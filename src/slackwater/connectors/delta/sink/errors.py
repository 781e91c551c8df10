"""Classifies the errors of Spark and Delta as transient or permanent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from slackwater.base.errors import fault
from slackwater.connectors.sink import Sink, Unavailable

_SPARK_ERRORS: Final = (PySparkException, Py4JError)
_CONFLICT: Final = (
    "io.delta.exceptions.DeltaConcurrentModificationException",
    "org.apache.spark.sql.delta.DeltaConcurrentModificationException",
)
_FORBIDDEN: Final = (
    "java.nio.file.AccessDeniedException",
    "java.security.AccessControlException",
    "org.apache.hadoop.security.AccessControlException",
)
NO_FOLDER: Final = (
    "org.apache.hadoop.fs.FileAlreadyExistsException",
    "org.apache.hadoop.fs.ParentNotDirectoryException",
)
"""Errors for creating a folder where a file is, or below a file."""
_LASTING: Final = ("java.io.FileNotFoundException", "java.io.NotSerializableException")
_PASSING: Final = ("java.io.IOException", "java.io.UncheckedIOException", "java.util.concurrent.TimeoutException")
_MOST_CAUSES: Final = 12
_MOST_WORDS: Final = 300


class ConflictError(Unavailable):
    """Another writer committed to the table at the same time, so Delta rejected this commit."""


@contextmanager
def explained(sink: Sink, *, doing: str, forbidden: Sequence[str] = ()) -> Iterator[None]:
    """Translate Spark's and Delta's exceptions into those of the delivery protocol.

    `forbidden` are exceptions that mean, only here, that the path is not writable.
    """
    try:
        yield
    except _SPARK_ERRORS as error:
        raise _meaning(error, sink, doing, (*_FORBIDDEN, *forbidden)) from error


@dataclass(frozen=True)
class _Cause:
    kinds: frozenset[str]
    """The exception's class and its superclasses."""
    words: str

    def is_one_of(self, kinds: Iterable[str]) -> bool:
        return not self.kinds.isdisjoint(kinds)


def _meaning(error: Exception, sink: Sink, doing: str, forbidden: Sequence[str]) -> Exception:
    causes = list(_causes(error))
    why = causes[0].words if causes else _words(str(error))
    if any(cause.is_one_of(_CONFLICT) for cause in causes):
        return ConflictError(f"another writer changed the table concurrently: {why}")
    for cause in causes:
        if cause.is_one_of(forbidden) or "Permission denied" in cause.words:
            return fault("DELTA_NO_PERMISSION", sink=sink, doing=doing, why=cause.words)
    for cause in causes:
        if cause.is_one_of(_PASSING) and not cause.is_one_of(_LASTING):
            return Unavailable(cause.words)
    return fault("DELTA_REFUSED", sink=sink, doing=doing, why=why)


def _causes(error: Exception) -> Iterator[_Cause]:
    """Yield the Java exceptions that caused `error`, from the outermost inwards."""
    java: Any = error.java_exception if isinstance(error, Py4JJavaError) else getattr(error, "_origin", None)
    for _ in range(_MOST_CAUSES):
        if java is None:
            return
        kinds, kind = [], java.getClass()
        while kind is not None:
            kinds.append(kind.getName())
            kind = kind.getSuperclass()
        yield _Cause(frozenset(kinds), _words(str(java.getMessage() or kinds[0])))
        java = java.getCause()


def _words(message: str) -> str:
    """Return the first line of a message, which in Spark has everything that a user can act on."""
    return message.strip().splitlines()[0][:_MOST_WORDS] if message.strip() else "no details"
