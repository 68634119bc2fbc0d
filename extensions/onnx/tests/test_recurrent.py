"""Recurrent networks of ONNX files, held against ONNX Runtime."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from armpy.errors import ParserError

from .onnx_nodes import Array, NodeCase, assert_agree, run_armpy

_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
_TIMES, _BATCHES, _DEPTH, _UNITS = 6, 3, 4, 5


def _case(
    kind: str, lengths: Array | None = None, whole: bool = True, **attributes: Any
) -> NodeCase:
    """A node with all its operands, or those only that it must have."""
    rng = np.random.default_rng(7)
    directions = 2 if attributes.get("direction") == "bidirectional" else 1
    layout = attributes.get("layout", 0)

    def reals(*shape: int) -> Array:
        return rng.uniform(-1, 1, shape).astype(np.float32)

    gates = _GATES[kind] * _UNITS
    sequence = reals(_TIMES, _BATCHES, _DEPTH)
    states = [reals(directions, _BATCHES, _UNITS) for _ in range(2)]
    if layout:
        sequence, states = sequence.swapaxes(0, 1), [state.swapaxes(0, 1) for state in states]
    weights, recurrent = reals(directions, gates, _DEPTH), reals(directions, gates, _UNITS)
    inputs: list[Array | None] = [np.ascontiguousarray(sequence), weights, recurrent]
    if whole:
        inputs += [reals(directions, 2 * gates), lengths, np.ascontiguousarray(states[0])]
        if kind == "LSTM":
            inputs += [np.ascontiguousarray(states[1]), reals(directions, 3 * _UNITS)]
    elif lengths is not None:
        inputs += [None, lengths]
    attributes = {"hidden_size": _UNITS, **attributes}
    outputs = 3 if kind == "LSTM" else 2
    return NodeCase(kind, inputs, attributes, constants=(1, 2, 3, 7), outputs=outputs)


def _cases() -> Iterator[NodeCase]:
    lengths = np.array([6, 2, 4], np.int32)
    directions = ("forward", "reverse", "bidirectional")
    for kind, direction, whole in itertools.product(_GATES, directions, (True, False)):
        yield _case(kind, whole=whole, direction=direction)
        yield _case(kind, lengths, whole, direction=direction)
    for kind in _GATES:
        count = {"RNN": 1, "GRU": 2, "LSTM": 3}[kind]
        yield _case(kind, clip=0.4)
        yield _case(kind, activations=["Sigmoid", "Relu", "Relu"][:count])
        yield _case(kind, activations=["HardSigmoid"] * count)
        yield _case(
            kind,
            activations=["ScaledTanh"] * count,
            activation_alpha=[1.5] * count,
            activation_beta=[0.5] * count,
        )
        yield _case(kind, activations=["LeakyRelu", "Softsign", "Tanh"][:count])
        yield _case(kind, activations=["Sigmoid", "Elu", "Softplus"][:count])
    yield _case("GRU", linear_before_reset=1)
    yield _case("GRU", lengths, linear_before_reset=1, direction="bidirectional")
    yield _case("LSTM", input_forget=1)


@pytest.mark.slow
@pytest.mark.parametrize("case", list(_cases()), ids=lambda case: f"{case.kind}-{case.attributes}")
@pytest.mark.parametrize("backend", ["CpuRef", "NumbaAcc"])
def test_networks_agree_with_onnx_runtime(case: NodeCase, backend: str) -> None:
    assert_agree(case, (backend, "CpuRef"))


def test_batches_can_come_first() -> None:
    for kind in _GATES:
        for direction in ("forward", "bidirectional"):
            first = run_armpy(_case(kind, layout=1, direction=direction))
            second = run_armpy(_case(kind, direction=direction))
            order = [(2, 0, 1, 3), (1, 0, 2), (1, 0, 2)]
            for own, other, axes in zip(first, second, order, strict=False):
                np.testing.assert_allclose(own, other.transpose(axes), rtol=1e-6)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"direction": "sideways"}, "'direction' has an unknown value"),
        ({"activations": ["Tanh"]}, "number of activations"),
        ({"activations": ["Sigmoid", "Cosine"]}, "an activation is unknown"),
        ({"direction": "bidirectional"}, "a part for each direction"),
    ],
)
def test_wrong_attributes_name_the_node(attributes: dict[str, Any], message: str) -> None:
    case = _case("GRU")
    wrong = NodeCase("GRU", case.inputs, attributes, constants=case.constants, outputs=2)
    with pytest.raises(ParserError, match=f"GRU.*{message}"):
        run_armpy(wrong)
