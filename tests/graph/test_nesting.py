"""Which graphs lie in which."""

from __future__ import annotations

import pytest

from armpy import ops
from armpy.errors import GraphValidationError
from armpy.graph import Graph, Layer, Value, nested_graphs
from armpy_testing.models.networks import chain, f32


def looping(condition: Graph, body: Graph) -> Graph:
    """A graph with one loop."""
    x, y = Value(0, f32(2), "x"), Value(1, f32(2), "y")
    return Graph((x,), (y,), ("y",), (Layer(0, "l", ops.While(condition, body), (x,), (y,)),))


def test_a_graph_that_several_run_is_named_once_and_before_them() -> None:
    shared = chain()
    middle = looping(shared, shared)
    outer = looping(middle, looping(shared, middle))
    graphs = nested_graphs(outer)
    assert len(graphs) == len(set(graphs)) == 3
    assert graphs.index(shared) < graphs.index(middle)


def test_a_graph_that_lies_in_itself_is_refused() -> None:
    inner = looping(chain(), chain())
    outer = looping(chain(), inner)
    loop = Layer(0, "l", ops.While(chain(), outer), outer.inputs, outer.outputs)
    object.__setattr__(inner, "layers", (loop,))  # no caller can make one otherwise
    with pytest.raises(GraphValidationError, match="control flow runs a graph that it is in"):
        nested_graphs(outer)
