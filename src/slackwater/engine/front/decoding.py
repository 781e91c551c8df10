"""Running a decoder and validating its result, because formats may be user-defined."""

from __future__ import annotations

from typing import Final

import polars as pl

from slackwater.base.errors import RunError, SlackwaterError, cause_of, counted, fault
from slackwater.base.expressions import FAILURES
from slackwater.formats.base import Decoded, Decoder, Format
from slackwater.formats.undecoded import decoder_of
from slackwater.plan.plan import RowNode

_FLAWS: Final = ("index", "reason", "message")


def decoded(node: RowNode, form: Format, payload: pl.Series) -> Decoded:
    """Decode `payload` with `form`: return the columns that are decoded here, and the records that failed.

    An exception of the decoder is left to the caller. A result of the wrong shape raises `DECODER_RESULT`, because
    no record is to blame for it.
    """
    left_out = () if node.undecoded is None else node.undecoded.names
    wanted = pl.Schema({name: dtype for name, dtype in form.schema.items() if name not in left_out})
    if payload.is_empty():  # a decoder need not support empty input
        return Decoded.of(wanted.to_frame(), {})
    made = _decoder(node, form).decode(payload)
    if not isinstance(made, Decoded):
        raise _misshapen(node, form, f"`{type(made).__name__}`")
    for name, part in (("frame", made.frame), ("bad", made.bad)):
        if not isinstance(part, pl.DataFrame):
            raise _misshapen(node, form, f"`{name}` of type `{type(part).__name__}`")
    frame = _frame(node, form, made.frame, wanted, len(payload))
    _check_flaws(node, form, made.bad, len(payload))
    return Decoded(frame=frame, bad=made.bad)


def _decoder(node: RowNode, form: Format) -> Decoder:
    try:
        return decoder_of(form) if node.undecoded is None else node.undecoded.decoder()
    except SlackwaterError:
        raise
    except FAILURES as error:
        raise fault("DECODER_FAILED", step=node.step, form=form, cause=cause_of(error)) from error


def _frame(node: RowNode, form: Format, frame: pl.DataFrame, wanted: pl.Schema, height: int) -> pl.DataFrame:
    if frame.schema == wanted and frame.height == height:
        return frame
    if frame.height != height:
        raise _misshapen(node, form, f"{counted(frame.height, 'row')} for {counted(height, 'record')}")
    if missing := [name for name in wanted if name not in frame.columns]:
        raise _misshapen(node, form, f"a frame without {_listed(missing)}")
    if foreign := [name for name in frame.columns if name not in form.schema]:
        raise _misshapen(node, form, f"a frame with {_listed(foreign)}, which the format does not declare")
    for name, dtype in wanted.items():
        if frame.schema[name] not in (dtype, pl.Null):
            raise _misshapen(node, form, f"`{name}` of type {frame.schema[name]} where {dtype} is declared")
    return frame.select(wanted.names()).cast(wanted)


def _check_flaws(node: RowNode, form: Format, bad: pl.DataFrame, height: int) -> None:
    if missing := [name for name in _FLAWS if name not in bad.columns]:
        raise _misshapen(node, form, f"`bad` without {_listed(missing)}")
    if bad.is_empty():
        return
    for name in _FLAWS:
        dtype = bad.schema[name]
        if not (dtype.is_integer() if name == "index" else dtype == pl.String):
            raise _misshapen(node, form, f"`{name}` of type {dtype} in `bad`")
        if bad[name].null_count():
            raise _misshapen(node, form, f"`{name}` None in `bad`")
    places = bad["index"]
    if places.is_duplicated().any() or not places.is_between(0, height - 1).all():
        raise _misshapen(node, form, f"`index` {places.to_list()[:5]} in `bad` for {counted(height, 'record')}")


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _misshapen(node: RowNode, form: Format, got: str) -> RunError:
    return fault("DECODER_RESULT", step=node.step, form=form, got=got)
