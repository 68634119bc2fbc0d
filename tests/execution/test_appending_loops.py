"""Loops that append to values which they do not read: each graph is planned once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from armpy.errors import MemoryLimitError
from armpy.graph import Graph, Value
from armpy.graph.network import Network
from armpy.model import Model
from armpy.ops import While
from armpy.tensor import TensorInfo
from armpy_testing.backends.fake_backends import runtime_of
from armpy_testing.models.control_flow import below, counting, graph_of, growing
from armpy_testing.models.networks import f32, i32, ints

MATRIX = f32(None, None)

Body = Callable[[Network, Value, Value], Value]
"""Adds what makes the next matrix of a counter and a matrix."""


def appending(body: Body, info: TensorInfo = MATRIX) -> Graph:
    """``while in0 < 4`` around a body."""
    operation = While(below(4, info), counting(info, body=lambda net, i, x: (body(net, i, x),)))
    return graph_of(
        [i32(1), info], lambda net, *inputs: net.add_layer(operation, inputs, name="loop").outputs
    )


def test_what_a_loop_appends_is_limited() -> None:
    model = Model(growing(1 << 20), runtime_of(memory_limit_bytes=4096, loop_timeout_s=None))
    with pytest.raises(
        MemoryLimitError,
        match=r"'grow' / body / Concat 'append': .* at most 4096 bytes .*after 1025 turns",
    ):
        model(ints(0), np.empty(0, np.float32))
