"""Converts JSON values to declared types, one value at a time; exact, without any coercion.

A number is never read as a string, `1.0` never as an integer, and a string as a number only on request
(`numbers_as_strings`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import polars as pl

from slackwater.formats.json.numbers import Convert, number_converter
from slackwater.formats.json.parsed import Huge, JsonObject, Real, Unfit, excerpt
from slackwater.formats.json.texts import read_base64, read_date, read_string, read_time
from slackwater.formats.schemas import whole_type

__all__ = ["Huge", "JsonObject", "Real", "Unfit", "converter", "excerpt", "is_map", "map_value"]


def converter(dtype: pl.DataType, *, numbers_as_strings: bool = False) -> Convert:
    """Return a function that converts a parsed JSON value to a Python value for `dtype`, or raises `Unfit`.

    With `numbers_as_strings`, a number of any type, at any depth, may be a string that holds a JSON number.
    """
    convert = _converter(dtype, lenient=numbers_as_strings)
    return lambda value: None if value is None else convert(value)


def _converter(dtype: pl.DataType, *, lenient: bool) -> Convert:
    if isinstance(dtype, pl.Struct):
        return _struct(dtype, lenient=lenient)
    if isinstance(dtype, pl.List):
        return _list(dtype, lenient=lenient)
    if isinstance(dtype, pl.Boolean):
        return _boolean
    return number_converter(dtype, lenient=lenient) or _text(dtype)


def _boolean(value: object) -> bool:
    if type(value) is bool:
        return value
    raise Unfit("wrong_type", pl.Boolean(), value)


def _text(dtype: pl.DataType) -> Convert:
    """Return the converter for a type that JSON writes as a string."""
    if isinstance(dtype, pl.Datetime):
        read: Callable[[str], object] = read_time
    elif isinstance(dtype, pl.Date):
        read = read_date
    elif isinstance(dtype, pl.Binary):
        read = read_base64
    else:
        read = read_string

    def convert(value: object) -> object:
        if type(value) is not str:
            raise Unfit("wrong_type", dtype, value)
        try:
            return read(value)
        except UnicodeEncodeError:
            raise Unfit("malformed", dtype, value, "half of a surrogate pair") from None
        except OverflowError:
            raise Unfit("out_of_range", dtype, value) from None
        except ValueError as error:
            raise Unfit("wrong_type", dtype, value, str(error)) from None

    return convert


def _list(dtype: pl.List, *, lenient: bool) -> Convert:
    convert_item = converter(whole_type(dtype.inner), numbers_as_strings=lenient)
    convert_entries = _entries(dtype, lenient=lenient) if is_map(dtype) else None

    def convert(value: object) -> list[Any]:
        if type(value) is JsonObject and convert_entries is not None:
            return convert_entries(value)
        if type(value) is not list:
            raise Unfit("wrong_type", dtype, value)
        at = 0
        try:
            items = []
            for at, item in enumerate(value):  # noqa: B007  the message names it
                items.append(convert_item(item))
        except Unfit as unfit:
            raise unfit.within(f"[{at}]") from None
        return items

    return convert


def is_map(dtype: pl.List) -> bool:
    """Return whether `dtype` is the type of a declared map, which may also be an object in JSON."""
    inner = whole_type(dtype.inner)
    if not isinstance(inner, pl.Struct) or [field.name for field in inner.fields] != ["key", "value"]:
        return False
    return whole_type(inner.fields[0].dtype) == pl.String


def map_value(dtype: pl.List) -> pl.DataType:
    """Return the type of a map's values."""
    entry = cast("pl.Struct", dtype.inner)
    return whole_type(entry.fields[1].dtype)


def _entries(dtype: pl.List, *, lenient: bool) -> Callable[[JsonObject], list[Any]]:
    convert_value = converter(map_value(dtype), numbers_as_strings=lenient)

    def convert(pairs: JsonObject) -> list[Any]:
        entries = {}
        for key, value in pairs:
            if key in entries:
                raise Unfit("malformed", dtype, pairs, f"key {excerpt(key)} is given twice")
            try:
                entries[read_string(key)] = convert_value(value)
            except Unfit as unfit:
                raise unfit.within(f".{key}") from None
            except UnicodeEncodeError:
                raise Unfit("malformed", dtype, pairs, "a key with half of a surrogate pair") from None
        return [{"key": key, "value": value} for key, value in entries.items()]

    return convert


def _struct(dtype: pl.Struct, *, lenient: bool) -> Convert:
    fields = {field.name: converter(whole_type(field.dtype), numbers_as_strings=lenient) for field in dtype.fields}
    types = {field.name: whole_type(field.dtype) for field in dtype.fields}
    missing = dict.fromkeys(fields)

    def convert(value: object) -> dict[str, Any]:
        if type(value) is not JsonObject:
            raise Unfit("wrong_type", dtype, value)
        found: dict[str, Any] = {}
        for key, inner in value:
            if key not in fields:
                continue
            if key in found:
                raise Unfit("malformed", types[key], inner, "the field is given twice").within(f".{key}")
            try:
                found[key] = fields[key](inner)
            except Unfit as unfit:
                raise unfit.within(f".{key}") from None
        return {**missing, **found}

    return convert
