r"""Regular expressions that prove a JSON record valid: well-formed, and every declared field of its type.

A schema without recursion is a regular language, so one linear scan over a whole column of records can prove most of
them valid at once. A proven record can be read by a lenient parser without further checks; an unproven one is not
invalid, only unknown. A pattern must therefore never match a record that `records` would refuse or read differently.
There is one exception, because the parser refuses it: an item may follow either the opening bracket or a comma, which
keeps patterns short. (The parser would accept a trailing comma, `NaN`, and `"12"` or `1.5` for an integer; no pattern
here matches any of those.)
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Final

import polars as pl

from slackwater.formats.json.parsed import JsonObject
from slackwater.formats.json.values import is_map, map_value
from slackwater.formats.schemas import whole_type

MAX_FIELDS: Final = 64
"""With more fields, the automaton no longer fits in its cache and matching becomes very slow."""

LEVELS_OF_UNKNOWN: Final = 4
"""The levels of nested objects and arrays that the patterns follow in an undeclared field."""

_W: Final = r"[ \t\n\r]*"
_CHARACTER: Final = r'[^"\\\x00-\x1f]'
_HEX: Final = "[0-9a-fA-F]"
_SURROGATES: Final = rf"[dD][89abAB]{_HEX}{{2}}\\u[dD][c-fC-F]{_HEX}{{2}}"
_ESCAPE: Final = rf'\\(?:["\\/bfnrt]|u(?:[0-9a-cA-CefEF]{_HEX}{{3}}|[dD][0-7]{_HEX}{{2}}|{_SURROGATES}))'
_STRING: Final = rf'"(?:{_CHARACTER}|{_ESCAPE})*"'
_NUMBER: Final = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?"
_SCALAR: Final = f"{_STRING}|{_NUMBER}|true|false|null"

_CLOCK: Final = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]"
_DAY: Final = (
    "(?:[12][0-9]{3}-(?:"
    "(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
    "|(?:[12][0-9](?:0[48]|[2468][048]|[13579][26])|(?:12|16|20|24|28)00)-02-29)"
)
_OFFSET: Final = r"(?:Z|[-+](?:[01][0-9]|2[0-3])(?::?[0-5][0-9])?)"
_TIME: Final = rf"{_DAY}[T ]{_CLOCK}(?::[0-5][0-9](?:\.[0-9]{{1,9}})?)?{_OFFSET}?"
_BASE64: Final = "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?"
# Only numbers of a form that fits whatever the digits; the few larger ones that also fit are left unproven.
_NUMBERS: Final[dict[type[pl.DataType], str]] = {
    pl.Int8: r"-?(?:0|[1-9][0-9]?|1[01][0-9])",
    pl.Int16: r"-?(?:0|[1-9][0-9]{0,3}|[12][0-9]{4})",
    pl.Int32: r"-?(?:0|[1-9][0-9]{0,8}|1[0-9]{9})",
    pl.Int64: r"-?(?:0|[1-9][0-9]{0,17}|[1-8][0-9]{18})",
    pl.UInt8: r"(?:0|[1-9][0-9]?|1[0-9]{2})",
    pl.UInt16: r"(?:0|[1-9][0-9]{0,3}|[1-5][0-9]{4})",
    pl.UInt32: r"(?:0|[1-9][0-9]{0,8}|[1-3][0-9]{9})",
    pl.UInt64: r"(?:0|[1-9][0-9]{0,18})",
    pl.Float32: r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,40})?(?:[eE][-+]?0?[0-9])?",
    pl.Float64: r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,40})?(?:[eE][-+]?[0-9]{1,2})?",
}
_TEXTS: Final[dict[type[pl.DataType], str]] = {pl.Binary: _BASE64, pl.Date: _DAY, pl.Datetime: _TIME}
_EXACT_DIGITS: Final = 15
_LONGEST_PATTERN: Final = 1 << 18
_HALF_PAIR: Final = re.compile(r"\\x\{d[89a-f]")
_MOST_FRACTION_DIGITS: Final = 9


def is_provable(schema: pl.Schema, *, max_depth: int) -> bool:
    """Return whether patterns can prove records of `schema` valid at all."""
    return (
        1 + max(_depth(dtype) for dtype in schema.values()) + LEVELS_OF_UNKNOWN <= max_depth
        and _count(pl.Struct(dict(schema))) <= MAX_FIELDS
        and not any(_hides_flaws(dtype, is_top=True) for dtype in schema.values())
    )


def plain_pattern(dtype: pl.DataType) -> str:
    """Return the pattern of a value as text, without quotes, for types that are neither nested nor strings."""
    if isinstance(dtype, pl.Boolean):
        return "true|false"
    return _NUMBERS[type(dtype)] if type(dtype) in _NUMBERS else _TEXTS[type(dtype)]


def ordered_pattern(schema: pl.Schema, sample: JsonObject, *, lenient: bool = False) -> str | None:
    """Return the pattern of records with exactly the keys of `sample` in its order, or None if there is none.

    Most producers write the keys of every record in the same order, so a pattern learned from one record proves the
    others. A lenient pattern also accepts numbers in strings.
    """
    keys = [key for key, _ in sample]
    if len(set(keys)) < len(keys) or len(keys) > MAX_FIELDS:
        return None
    pattern = f"^{_W}{_ordered(pl.Struct(dict(schema)), sample, lenient=lenient)}{_W}$"
    return None if len(pattern) > _LONGEST_PATTERN or _HALF_PAIR.search(pattern) else pattern


@dataclass(frozen=True, kw_only=True)
class UnknownField:
    """The position of an undeclared field in records of one shape.

    `before` is the pattern of everything between the previous such field and the value of this one, `value` that of the
    value; each matches at the start of the rest of a proven record.
    """

    name: str
    before: str
    value: str


def unknown_fields(schema: pl.Schema, sample: JsonObject, *, lenient: bool = False) -> tuple[UnknownField, ...]:
    """Return the undeclared fields of `sample`, in order."""
    found = []
    before = rf"^{_W}\{{{_W}"
    for at, (key, value) in enumerate(sample):
        before += f"{_W},{_W}" if at else ""
        if key in schema:
            before += _field(key, _value(schema[key], value, lenient=lenient))
        else:
            pattern = f"^(?:{_unknown(_levels(value))}|null)"
            found.append(UnknownField(name=key, before=f"{before}{_name(key)}", value=pattern))
            before = "^"
    return tuple(found)


def any_order_pattern(schema: pl.Schema, *, lenient: bool = False, unknown: bool = True) -> str:
    """Return the pattern of records with keys in any order; keys may be missing and, with `unknown`, undeclared.

    It does not detect duplicate keys: count the `key_literals`.
    """
    fields = [_field(name, _value(whole_type(dtype), None, lenient=lenient)) for name, dtype in schema.items()]
    if unknown:
        fields.append(f"{_other_key(schema.names())}{_W}:{_W}(?:{_unknown(LEVELS_OF_UNKNOWN)})")
    return "".join(["^", _W, _object("|".join(fields)), _W, "$"])


def key_literals(schema: pl.Schema) -> list[str]:
    """Return each declared key as written in a record."""
    return [f'"{_literal(name)}"' for name in schema.names()]


def map_is_given(name: str) -> str:
    """Return the pattern that finds a field whose value is an object."""
    return rf'"{_escape(_literal(name))}"{_W}:{_W}\{{'


def _ordered(dtype: pl.Struct, sample: JsonObject, *, lenient: bool) -> str:
    declared = {field.name: whole_type(field.dtype) for field in dtype.fields}
    fields = [
        _field(key, _value(declared[key], value, lenient=lenient) if key in declared else _unknown(_levels(value)))
        for key, value in sample
    ]
    return rf"\{{{_W}" + f"{_W},{_W}".join(fields) + rf"{_W}\}}"


def _value(dtype: pl.DataType, sample: Any, *, lenient: bool) -> str:  # noqa: ANN401  any JSON value
    """Return the pattern of one value; keys of nested objects are in the order of `sample`."""
    if isinstance(dtype, pl.Struct):
        if isinstance(sample, JsonObject) and len({key for key, _ in sample}) == len(sample):
            return _ordered(dtype, sample, lenient=lenient)
        values = {field.name: _value(whole_type(field.dtype), None, lenient=lenient) for field in dtype.fields}
        fields = (_field(name, value) for name, value in values.items())
        some = "".join(rf"(?:[\{{,]{_W}{field}{_W})?" for field in fields)
        return rf"(?:\{{{_W}|{some})\}}"
    if isinstance(dtype, pl.List):
        first = sample[0] if isinstance(sample, list) and sample else None
        if is_map(dtype):
            value = _value(map_value(dtype), first[1] if isinstance(first, tuple) else None, lenient=lenient)
            return _object(f"{_STRING}{_W}:{_W}(?:{value}|null)")
        return _array(f"{_value(whole_type(dtype.inner), first, lenient=lenient)}|null")
    return _plain(dtype, lenient=lenient)


def _plain(dtype: pl.DataType, *, lenient: bool) -> str:
    if isinstance(dtype, pl.String):
        return _STRING
    if type(dtype) in _TEXTS:
        return f'"(?:{_TEXTS[type(dtype)]})"'
    pattern = _decimal(dtype) if isinstance(dtype, pl.Decimal) else plain_pattern(dtype)
    return f'{pattern}|"(?:{pattern})"' if lenient and not isinstance(dtype, pl.Boolean) else pattern


def _decimal(dtype: pl.Decimal) -> str:
    # The parser converts via a double, which is exact only up to this many digits.
    fraction = min(dtype.scale, _MOST_FRACTION_DIGITS)
    whole = min((dtype.precision or 38) - dtype.scale, _EXACT_DIGITS - fraction)
    digits = f"(?:0|[1-9][0-9]{{0,{whole - 1}}})" if whole else "0"
    return f"-?{digits}" + (rf"(?:\.[0-9]{{1,{fraction}}})?" if fraction else "")


def _field(name: str, value: str) -> str:
    return f"{_name(name)}(?:{value}|null)"


def _name(name: str) -> str:
    return f'"{_escape(_literal(name))}"{_W}:{_W}'


def _unknown(levels: int) -> str:
    """Return the pattern of any value with at most `levels` nested objects or arrays."""
    if levels == 0:
        return _SCALAR
    inner = _unknown(levels - 1)
    return "|".join([_SCALAR, _array(inner), _object(f"{_STRING}{_W}:{_W}(?:{inner})")])


def _array(item: str) -> str:
    return rf"(?:\[{_W}|(?:[\[,]{_W}(?:{item}){_W})+)\]"


def _object(field: str) -> str:
    return rf"(?:\{{{_W}|(?:[\{{,]{_W}(?:{field}){_W})+)\}}"


def _levels(sample: Any) -> int:  # noqa: ANN401  any JSON value
    """Return how many levels to follow in a value like `sample`: one more than it has, if it is nested."""
    if not isinstance(sample, list):
        return 0
    inner = [_levels(item[1] if isinstance(sample, JsonObject) else item) for item in sample]
    return min(1 + max(1, *inner), LEVELS_OF_UNKNOWN) if inner else 1


def _other_key(names: list[str]) -> str:
    """Return the pattern of a key, written without escapes, that is not one of `names`."""
    return f'"{_none_of([name for name in names if _literal(name) == name])}"'


def _none_of(words: list[str]) -> str:
    if not words:
        return f"{_CHARACTER}*"
    heads = sorted({word[0] for word in words if word})
    others = "".join(_escape(head) for head in heads)
    ways = [rf'[^"\\\x00-\x1f{others}]{_CHARACTER}*']
    ways += [_escape(head) + _none_of([word[1:] for word in words if word[:1] == head]) for head in heads]
    return f"(?:{'|'.join(ways)})" + ("" if "" in words else "?")


def _literal(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)[1:-1]


def _escape(text: str) -> str:
    """Escape `text` for a pattern; Rust does not accept the output of Python's `re.escape`."""
    return re.sub(r"[^0-9A-Za-z_]", lambda match: rf"\x{{{ord(match[0]):x}}}", text)


def _depth(dtype: pl.DataType) -> int:
    if isinstance(dtype, pl.Struct):
        return 1 + max(_depth(whole_type(field.dtype)) for field in dtype.fields)
    if isinstance(dtype, pl.List):
        return _depth(whole_type(dtype.inner)) + (0 if is_map(dtype) else 1)
    return 0


def _count(dtype: pl.DataType) -> int:
    if isinstance(dtype, pl.Struct):
        return sum(_count(whole_type(field.dtype)) for field in dtype.fields)
    return _count(whole_type(dtype.inner)) if isinstance(dtype, pl.List) else 1


def _hides_flaws(dtype: pl.DataType, *, is_top: bool) -> bool:
    """Return whether a lenient parser may lose a value inside `dtype` undetectably.

    A map with a duplicate key becomes null, which is detected in columns but not inside them; binary values, too, are
    decoded only as columns.
    """
    if isinstance(dtype, pl.Struct):
        return any(_hides_flaws(whole_type(field.dtype), is_top=False) for field in dtype.fields)
    if isinstance(dtype, pl.List):
        if is_map(dtype):
            return not is_top or _hides_flaws(map_value(dtype), is_top=False)
        return _hides_flaws(whole_type(dtype.inner), is_top=False)
    return isinstance(dtype, pl.Binary) and not is_top
