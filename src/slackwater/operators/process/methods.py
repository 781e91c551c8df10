"""Validation of the methods that users write, when the pipeline is built."""

from __future__ import annotations

import inspect
from typing import Final

from slackwater.base.errors import refuse

_GIVEN: Final = {"on_event": ("event", "ctx"), "on_timer": ("when", "ctx"), "on_rows": ("rows", "state", "ctx")}
"""The arguments that each method is called with."""


def check_method(process: object, name: str) -> None:
    """Reject a method that cannot be called: one with other parameters, or an async one."""
    method, given, cls = getattr(process, name), _GIVEN[name], type(process).__qualname__
    wanted = f"def {name}(self, {', '.join(given)})"
    if not callable(method):
        raise refuse("PROCESS_PARAMETERS", cls=cls, wanted=wanted, got=f"{name} = {method!r:.80}")
    if inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method):
        raise refuse("PROCESS_ASYNC", cls=cls, name=name, wanted=wanted)
    try:
        signature = inspect.signature(method)
    except (TypeError, ValueError):
        return  # no signature available, such as for a compiled method
    try:
        signature.bind(*given)
    except TypeError:
        got = f"{name}({', '.join(signature.parameters)}) besides self"
        raise refuse("PROCESS_PARAMETERS", cls=cls, wanted=wanted, got=got) from None
