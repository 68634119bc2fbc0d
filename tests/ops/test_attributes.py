"""Attributes of the wrong form are refused when a layer is added, by name."""

from __future__ import annotations

import numpy as np
import pytest

from armpy import DataType, LayerValidationError, Network, TensorInfo, ops
from armpy.ops.attributes import check_attributes
from armpy.ops.operation import Operation


@pytest.mark.parametrize(
    ("operation", "match"),
    [
        (ops.Convolution2d(stride=2), "'stride' has the wrong form. Expected tuple.*; got 2"),  # type: ignore[arg-type]
        (ops.Convolution2d(stride=(1,)), r"'stride' .*got \(1,\)"),  # type: ignore[arg-type]
        (ops.Convolution2d(stride=(True, True)), "'stride'"),
        (ops.Convolution2d(stride=(2**70, 1)), "'stride'"),
        (ops.Convolution2d(padding=3), "'padding'"),  # type: ignore[arg-type]
        (ops.Convolution2d(data_layout="NHWC"), "'data_layout' .*got 'NHWC'"),  # type: ignore[arg-type]
        (ops.Convolution2d(activation="RELU"), "'activation' .*Expected FusedActivation"),  # type: ignore[arg-type]
        (ops.Softmax(beta="a"), "'beta' .*Expected float"),  # type: ignore[arg-type]
        (ops.Activation("RELU"), "'function'"),  # type: ignore[arg-type]
        (ops.Reduce(axes=(0.0,)), "'axes'"),  # type: ignore[arg-type]
    ],
    ids=str,
)
def test_an_attribute_of_the_wrong_form_is_named(operation: Operation, match: str) -> None:
    net = Network()
    x = net.input("x", TensorInfo((1, 4, 4, 1), DataType.FLOAT32))
    with pytest.raises(LayerValidationError, match=match):
        net.add(operation, x, x)


def test_numbers_of_numpy_and_integers_for_floats_are_taken() -> None:
    check_attributes(ops.Convolution2d(stride=(np.int64(2), 1)))  # type: ignore[arg-type]
    check_attributes(ops.Softmax(beta=np.float32(1)))  # type: ignore[arg-type]
    check_attributes(ops.Softmax(beta=2))
    with pytest.raises(LayerValidationError, match="'axis'"):
        check_attributes(ops.Softmax(axis=1.0))  # type: ignore[arg-type]
