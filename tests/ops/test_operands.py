"""Operands by name."""

from __future__ import annotations

import numpy as np
import pytest

from armpy.errors import InvalidArgumentError
from armpy.graph import Layer, Value
from armpy.ops import FullyConnected
from armpy.ops.operands import Operands
from armpy.tensor import TensorInfo
from armpy.types import DataType


def value(number: int, *shape: int, data: bool = False) -> Value:
    info = TensorInfo(shape, DataType.FLOAT32)
    return Value(number, info, f"v{number}", np.ones(shape, np.float32) if data else None)


@pytest.fixture
def layer() -> Layer:
    inputs = (value(0, 2, 3), value(1, 4, 3, data=True))
    return Layer(0, "dense", FullyConnected(), inputs, (value(2, 2, 4),))


def test_operands_are_found_by_the_definition_s_names(layer: Layer) -> None:
    assert layer["input"] is layer.inputs[0]
    assert layer["weights"] is layer.inputs[1]
    assert layer.output is layer.outputs[0]


@pytest.mark.parametrize("inputs", [(), (None,)])
def test_an_operand_that_is_left_out_is_none_or_refused(
    layer: Layer, inputs: tuple[None, ...]
) -> None:
    left_out = Layer(0, "dense", layer.operation, (*layer.inputs, *inputs), layer.outputs)
    assert left_out.operand("bias") is None
    assert left_out.constant("bias") is None
    with pytest.raises(InvalidArgumentError, match="operand 'bias' is left out"):
        left_out["bias"]


def test_only_constants_have_elements(layer: Layer) -> None:
    assert layer.constant("input") is None
    weights = layer.constant("weights")
    assert weights is not None
    assert weights.shape == (4, 3)


def test_a_name_that_no_operand_has_is_refused_with_those_there_are(layer: Layer) -> None:
    with pytest.raises(InvalidArgumentError, match="Expected input, weights, bias; got kernel"):
        layer["kernel"]


def test_infos_are_found_by_the_same_names(layer: Layer) -> None:
    infos = Operands(layer.operation, layer.input_infos)
    assert infos["weights"].shape == (4, 3)
    assert infos.get("bias") is None
