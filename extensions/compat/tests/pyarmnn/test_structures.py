"""Members of structures are checked and converted as SWIG does; texts are those of 20.08."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import armpy_compat.pyarmnn as ann

_NO_NUMBERS: tuple[object, ...] = (None, [1, 2], {}, np.zeros(2), 1j)
_ASSIGNMENTS: list[tuple[Any, str, Any, type[Exception], str]] = [
    (
        ann.Convolution2dDescriptor,
        "m_PadLeft",
        -1,
        OverflowError,
        "in method 'Convolution2dDescriptor_m_PadLeft_set', argument 2 of type 'uint32_t'",
    ),
    (ann.Convolution2dDescriptor, "m_PadLeft", 1.5, TypeError, "argument 2 of type 'uint32_t'"),
    (ann.Convolution2dDescriptor, "m_BiasEnabled", 1, TypeError, "argument 2 of type 'bool'"),
    (
        ann.Convolution2dDescriptor,
        "m_DataLayout",
        "NHWC",
        TypeError,
        "argument 2 of type 'armnn::DataLayout'",
    ),
    (ann.ActivationDescriptor, "m_A", "6", TypeError, "argument 2 of type 'float'"),
    (ann.ActivationDescriptor, "m_A", 1e50, OverflowError, "argument 2 of type 'float'"),
    *(
        (ann.SoftmaxDescriptor, "m_Beta", value, TypeError, "argument 2 of type 'float'")
        for value in _NO_NUMBERS
    ),
    (ann.StridedSliceDescriptor, "m_Begin", 5, TypeError, "does not provide sequence protocol"),
    (
        ann.StridedSliceDescriptor,
        "m_Begin",
        [1.5],
        TypeError,
        "Failed to convert python input value 1.5 of type 'float' to C type 'i'",
    ),
    (
        ann.BatchToSpaceNdDescriptor,
        "m_Crops",
        [(1, -2)],
        TypeError,
        r"Failed to convert python input value \(1, -2\) of type 'tuple' to C type 'St4pairIjjE'",
    ),
    (ann.ReshapeDescriptor, "m_TargetShape", (1,), TypeError, "argument 2 of type 'armnn::Tensor"),
    (ann.LstmInputParams, "m_CellBias", 1, TypeError, "of type 'armnn::ConstTensor const \\*'"),
]


@pytest.mark.parametrize(("structure", "member", "value", "error", "text"), _ASSIGNMENTS)
def test_a_wrong_value_is_refused(
    structure: Callable[[], object], member: str, value: object, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        setattr(structure(), member, value)


@pytest.mark.parametrize("value", [None, [1], "x", {}, 1j])
def test_numbers_of_other_types_are_type_errors(value: object) -> None:
    info = ann.TensorInfo(ann.TensorShape((1, 4)), ann.DataType_QAsymmS8, 0.5, 3)
    with pytest.raises(TypeError, match="argument 2 of type 'float'"):
        info.SetQuantizationScale(value)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="overloaded function 'new_FillDescriptor'"):
        ann.FillDescriptor(value)
    with pytest.raises(TypeError, match="overloaded function 'new_TensorInfo'"):
        ann.TensorInfo(ann.TensorShape((1,)), ann.DataType_QAsymmU8, value, 0)
    with pytest.raises(TypeError, match="argument 2 of type 'float'"):
        ann.quantize(1.0, value, 0, "int8")  # type: ignore[arg-type]


def test_only_inputs_are_connected_to_outputs() -> None:
    network = ann.INetwork()
    source, target = network.AddInputLayer(0), network.AddOutputLayer(0)
    output = source.GetOutputSlot(0)
    for wrong in (None, 3, target, output):
        with pytest.raises(TypeError, match=r"'IOutputSlot_Connect', .* 'armnn::IInputSlot &'"):
            output.Connect(wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="not connected to this output slot"):
        output.Disconnect(target.GetInputSlot(0))


def test_numpy_numbers_are_taken_and_floats_are_rounded_to_float32() -> None:
    convolution, activation = ann.Convolution2dDescriptor(), ann.ActivationDescriptor()
    convolution.m_PadLeft, activation.m_A = np.int64(3), 0.1
    assert (convolution.m_PadLeft, activation.m_A) == (3, 0.10000000149011612)


def test_a_list_is_a_copy_each_time() -> None:
    descriptor = ann.MeanDescriptor([1, 2], True)
    descriptor.m_Axis.append(3)
    assert descriptor.m_Axis == [1, 2]


def test_structures_of_equal_members_are_equal() -> None:
    first, second = ann.PadDescriptor([(1, 2)], 3.0), ann.PadDescriptor([(1, 2)], 3.0)
    assert first == second
    second.m_PaddingMode = ann.PaddingMode_Reflect
    assert first != second
    assert first != ann.FillDescriptor()


def test_a_star_import_gives_classes_and_functions_as_pyarmnn_does() -> None:
    assert {"IRuntime", "Optimize", "Conv2d"} & {*ann.__all__} <= {"IRuntime", "Optimize"}
    assert {"TensorInfo", "quantize", "PadDescriptor"} <= {*ann.__all__}
    assert "DataType_Float32" not in ann.__all__
