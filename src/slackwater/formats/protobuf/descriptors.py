"""Message descriptors in a picklable form: the message's name and the files it needs.

Descriptors of `google.protobuf` belong to a pool of their process and cannot be pickled; the files that they were
built from can.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from google.protobuf import (  # type: ignore[import-untyped]  # no stubs
    descriptor_pb2,
    descriptor_pool,
    duration_pb2,
    timestamp_pb2,
    wrappers_pb2,
)
from google.protobuf.descriptor import Descriptor  # type: ignore[import-untyped]  # no stubs
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # no stubs

from slackwater.base.errors import listed, near_miss, refuse
from slackwater.base.folders import given_path

DescriptorSet = bytes | str | os.PathLike[str]
"""The output of `protoc --include_imports --descriptor_set_out`: its bytes, or the path of the file."""

_WELL_KNOWN: Final = {
    module.DESCRIPTOR.name: module.DESCRIPTOR for module in (duration_pb2, timestamp_pb2, wrappers_pb2)
}


@dataclass(frozen=True, kw_only=True)
class Described:
    """A message's full name and the files that describe it, imported files first."""

    name: str
    files: tuple[bytes, ...] = field(repr=False)

    def descriptor(self) -> Any:  # noqa: ANN401  google.protobuf has no types
        """Return the message's descriptor, in a new pool."""
        pool = descriptor_pool.DescriptorPool()
        for file in self.files:
            pool.AddSerializedFile(file)
        return pool.FindMessageTypeByName(self.name)

    def path(self) -> tuple[int, ...]:
        """Return the message's path in its file: the indexes of the enclosing messages, then its own.

        Indexes count messages as written in the .proto file; generated map entries are skipped.
        """
        file = descriptor_pb2.FileDescriptorProto.FromString(self.files[-1])
        inner = self.name[len(file.package) + 1 :] if file.package else self.name
        indexes, messages = [], file.message_type
        for part in inner.split("."):
            written = [message for message in messages if not message.options.map_entry]
            at = [message.name for message in written].index(part)
            indexes.append(at)
            messages = written[at].nested_type
        return tuple(indexes)


def describe_message(message: object, *, descriptor_set: DescriptorSet | None, name: str | None) -> Described:
    """Return the message given by a generated class, by a descriptor, or by a descriptor set and a name."""
    if message is None and descriptor_set is not None and isinstance(name, str):
        return _from_set(descriptor_set, name)
    descriptor = message if isinstance(message, Descriptor) else getattr(message, "DESCRIPTOR", None)
    if not isinstance(descriptor, Descriptor) or descriptor_set is not None or name is not None:
        given = {"message": message, "descriptor_set": descriptor_set, "name": name}
        got = ", ".join(f"{key}={value!r:.60}" for key, value in given.items() if value is not None)
        raise refuse("PROTOBUF_MESSAGE", got=got or "nothing")
    files: dict[str, bytes] = {}
    _collect(descriptor.file, files)
    return Described(name=descriptor.full_name, files=tuple(files.values()))


def _collect(file: Any, into: dict[str, bytes]) -> None:  # noqa: ANN401  google.protobuf has no types
    """Add a file after the files it imports."""
    if file.name not in into:
        for imported in file.dependencies:
            _collect(imported, into)
        into[file.name] = file.serialized_pb


def _from_set(given: DescriptorSet, name: str) -> Described:
    try:
        content = given if isinstance(given, bytes) else given_path(given).read_bytes()
        files = descriptor_pb2.FileDescriptorSet.FromString(content).file
    except (OSError, DecodeError, TypeError, ValueError) as error:
        raise refuse("PROTOBUF_DESCRIPTOR_SET", cause=f"{error} ({given!r:.60})") from error
    by_name = {file.name: file for file in files}
    of_message = {known: file.name for file in files for known in _messages(file.message_type, file.package)}
    if name not in of_message:
        known = listed(sorted(of_message), near=name)
        raise refuse("PROTOBUF_NAME", name=name, hint=near_miss(name, of_message), known=known)
    needed: dict[str, bytes] = {}
    _collect_given(of_message[name], by_name, needed, within=())
    described = Described(name=name, files=tuple(needed.values()))
    try:
        described.descriptor()
    except (TypeError, KeyError) as error:
        raise refuse("PROTOBUF_DESCRIPTOR_SET", cause=error) from error
    return described


def _collect_given(name: str, given: dict[str, Any], into: dict[str, bytes], *, within: tuple[str, ...]) -> None:
    """Add a file of the set after the files it imports; the well-known ones need not be in the set."""
    if name in into:
        return
    if name in within:
        raise refuse("PROTOBUF_DESCRIPTOR_SET", cause=f"{name} imports itself")
    if name in given:
        file = given[name]
        file.ClearField("source_code_info")
    elif name in _WELL_KNOWN:
        file = descriptor_pb2.FileDescriptorProto.FromString(_WELL_KNOWN[name].serialized_pb)
    else:
        raise refuse("PROTOBUF_DESCRIPTOR_SET", cause=f"{within[-1]} imports {name}, which is not in the set")
    for imported in file.dependency:
        _collect_given(imported, given, into, within=(*within, name))
    into[name] = file.SerializeToString(deterministic=True)


def _messages(messages: Any, outer: str) -> Iterator[str]:  # noqa: ANN401  google.protobuf has no types
    """Yield the full names of `messages` and of the messages nested in them."""
    for message in messages:
        name = f"{outer}.{message.name}" if outer else message.name
        yield name
        yield from _messages(message.nested_type, name)
