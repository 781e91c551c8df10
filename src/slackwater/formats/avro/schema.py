"""Avro schemas as trees: the types that a schema's JSON is parsed into."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Logical:
    """A logical type: `timestamp-millis`, `decimal` with its digits, and so on."""

    kind: str
    precision: int = 0
    scale: int = 0

    @property
    def family(self) -> str:
        """The kind without its unit: times in milliseconds and in microseconds are one family."""
        return self.kind.removeprefix("local-").partition("-")[0]

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})" if self.kind == "decimal" else self.kind


@dataclass(frozen=True, kw_only=True)
class Name:
    """The full name of a record, an enum or a fixed, and its aliases as full names."""

    full: str
    aliases: tuple[str, ...] = ()

    @property
    def simple(self) -> str:
        """The name without its namespace."""
        return self.full.rpartition(".")[2]

    def may_read(self, writer: Name) -> bool:
        """Return whether a writer's type with that name matches this one, by name or by an alias of this one."""
        return writer.simple == self.simple or any(
            writer.full == alias or writer.simple == alias.rpartition(".")[2] for alias in self.aliases
        )


@dataclass(frozen=True, kw_only=True)
class Primitive:
    """A primitive type: null, boolean, int, long, float, double, bytes or string."""

    kind: str
    logical: Logical | None = None

    def __str__(self) -> str:
        return f"{self.kind} ({self.logical})" if self.logical else self.kind


@dataclass(frozen=True, kw_only=True)
class Fixed:
    """A fixed number of bytes."""

    name: Name
    size: int
    logical: Logical | None = None

    def __str__(self) -> str:
        logical = f" ({self.logical})" if self.logical else ""
        return f"fixed `{self.name.full}` of {self.size} bytes{logical}"


@dataclass(frozen=True, kw_only=True)
class Enum:
    """One of several symbols; a reader replaces a symbol that it does not know by its `default`, if it has one."""

    name: Name
    symbols: tuple[str, ...]
    default: str | None = None

    def __str__(self) -> str:
        return f"enum `{self.name.full}`"


@dataclass(frozen=True, kw_only=True)
class Array:
    """A list of items of one type."""

    items: AvroType

    def __str__(self) -> str:
        return f"array of {self.items}"


@dataclass(frozen=True, kw_only=True)
class AvroMap:
    """A map from strings to values of one type."""

    values: AvroType

    def __str__(self) -> str:
        return f"map of {self.values}"

    @property
    def entry(self) -> AvroRecord:
        """The encoding of one entry: its key, then its value."""
        fields = (AvroField(name="key", type=STRING), AvroField(name="value", type=self.values))
        return AvroRecord(name=Name(full="entry"), fields=fields)


@dataclass(frozen=True, kw_only=True)
class AvroUnion:
    """One of several types; an index before the value says which."""

    branches: tuple[AvroType, ...]

    def __str__(self) -> str:
        return f"union of {', '.join(map(str, self.branches))}"

    @property
    def wanted(self) -> AvroType | None:
        """The only type besides null, or None if there are several or none."""
        others = [branch for branch in self.branches if branch != NULL]
        return others[0] if len(others) == 1 else None


@dataclass(frozen=True, kw_only=True)
class AvroField:
    """A field of a record; `default` is the JSON text of the reader's value for writers without this field."""

    name: str
    type: AvroType
    aliases: tuple[str, ...] = ()
    default: str | None = None


@dataclass(frozen=True, kw_only=True)
class AvroRecord:
    """A record: fields, one after another."""

    name: Name
    fields: tuple[AvroField, ...]

    def __str__(self) -> str:
        return f"record `{self.name.full}`"


AvroType = Primitive | Fixed | Enum | Array | AvroMap | AvroUnion | AvroRecord

NULL = Primitive(kind="null")
STRING = Primitive(kind="string")


def least_bytes(kind: AvroType) -> int:
    """Return the smallest number of bytes that a value can take."""
    match kind:
        case Primitive(kind=word):
            return {"null": 0, "float": 4, "double": 8}.get(word, 1)
        case Fixed(size=size):
            return size
        case AvroRecord(fields=fields):
            return sum(least_bytes(field.type) for field in fields)
        case _:
            return 1


def fixed_width(kind: AvroType) -> int | None:
    """Return the number of bytes of every value; None if it varies, or if not all bytes are valid values."""
    if isinstance(kind, Fixed):
        return kind.size
    return {"float": 4, "double": 8}.get(kind.kind) if isinstance(kind, Primitive) else None


def inside(path: str, name: str) -> str:
    """Return the path of a field within `path`, as shown in messages."""
    return f"{path}.{name}" if path else name
