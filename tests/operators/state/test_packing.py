"""Packed frames carry the name of their step, so that no step reads another's state."""

from __future__ import annotations

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import slackwater as sw
from slackwater.base.errors import RunError
from slackwater.operators.state.packing import pack, unpack
from tests.operators.windows.windowed import Windowed

FRAME = pl.DataFrame({"key": ["a", None], "__end": [1, 2], "__ids.values": [[1, 2], []]})


@pytest.mark.parametrize("frame", [FRAME, FRAME.clear()], ids=["rows", "no rows"])
def test_what_is_packed_comes_out_again(frame: pl.DataFrame) -> None:
    assert_frame_equal(unpack(pack(frame, "orders.window"), "orders.window"), frame)


@pytest.mark.parametrize("owner", ["orders.window2", "orders", "clicks.window", "bestellungen·fenster"])
def test_a_blob_of_another_step_is_refused_by_name(owner: str) -> None:
    with pytest.raises(RunError, match=r"step `orders\.window` found state of `" + owner) as refused:
        unpack(pack(FRAME, owner), "orders.window")
    assert refused.value.code == "STATE_OF_ANOTHER_STEP"


@pytest.mark.parametrize("blob", [b"", b"SW", b"ARROW1\x00\x00", b"SW1\xff\xff"], ids=repr)
def test_bytes_that_were_never_packed_are_refused(blob: bytes) -> None:
    with pytest.raises(RunError) as refused:
        unpack(blob, "orders.window")
    assert refused.value.code == "STATE_OF_ANOTHER_STEP"


def test_a_step_that_is_handed_another_steps_state_does_not_go_on() -> None:
    step = Windowed(sw.tumbling("10ms"))
    step.add(("a", 1, 0))
    for blobs in step.harness.engine.state.values():
        for name in blobs:
            if name != "index":
                blobs[name] = pack(FRAME, "clicks.window")
    with pytest.raises(RunError) as refused:
        step.advance(10)
    assert refused.value.code == "STATE_DAMAGED"


def test_blob_of_another_layout_is_refused_with_what_to_do() -> None:
    blob = pack(pl.DataFrame({"a": [1]}), "step")
    with pytest.raises(RunError, match=r"STATE_VERSION.*step `step` found layout '9' and reads layout 1"):
        unpack(blob[:2] + b"9" + blob[3:], "step")
