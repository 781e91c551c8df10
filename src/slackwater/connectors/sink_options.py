"""Options shared by several sinks, checked the same way and with the same errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import polars as pl

from slackwater.base.errors import DefinitionError, near_miss, refuse, row_error
from slackwater.connectors.sink import Slot

_DELIVERIES: Final = ("exactly_once", "at_least_once", "at_most_once")


def bad_option(sink: str, what: str, *, rule: str, got: str, remedy: str) -> DefinitionError:
    """Return the error for an invalid option of a sink, for the caller to raise."""
    return refuse("SINK_OPTION", sink=sink, what=what, rule=rule, got=got, remedy=remedy)


def check_delivery(sink: str, delivery: object) -> None:
    """Reject an unknown delivery guarantee."""
    if delivery not in _DELIVERIES:
        rule, remedy = f"one of {', '.join(_DELIVERIES)}", "omit it to use exactly once"
        raise bad_option(
            sink, "delivery", rule=rule, got=f"{delivery!r}{near_miss(str(delivery), _DELIVERIES)}", remedy=remedy
        )


def check_flags(sink: str, **flags: object) -> None:
    """Reject flags that are not booleans: the text "no" would count as true."""
    for what, given in flags.items():
        if not isinstance(given, bool):
            remedy = f"write {what}=True, or omit it"
            raise bad_option(sink, what, rule="True or False", got=repr(given), remedy=remedy)


def column_names(sink: str, what: str, given: object) -> tuple[str, ...]:
    """Return one name, a list of names or None as a tuple of distinct names."""
    if given is None:
        return ()
    names = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, list | tuple) else (None,)
    texts = tuple(name for name in names if isinstance(name, str) and name)
    if len(texts) < len(names) or len(set(texts)) < len(texts):
        rule, remedy = "a column name, or a list of distinct names", "name columns of the output, each once"
        raise bad_option(sink, what, rule=rule, got=repr(given), remedy=remedy)
    return texts


def check_result_keys(option: str, keys: Sequence[str], slot: Slot) -> None:
    """Reject table keys by which different results would overwrite each other.

    Rows without an identity are not checked.
    """
    identity = slot.identity
    if not keys or identity is None or not {identity.bounds[0], identity.version} <= slot.schema.keys():
        return
    missing = [key for key in identity.keys if key not in keys]
    if not {*identity.bounds} & {*keys}:
        missing.append(identity.bounds[0])
    if missing:
        whole = [*keys, *missing]
        raise refuse("SINK_KEYS_OVERWRITE", option=option, got=list(keys), missing=missing, whole=whole)


def check_key_values(rows: pl.DataFrame, keys: Sequence[str], slot: Slot) -> None:
    """Raise if a row has a null in a key: it could be neither found nor replaced."""
    for name in keys:
        if rows[name].null_count():
            raise row_error("SINK_KEY_NULL", column=name, output=slot.output)
