"""Tensors: shapes, descriptions, and whose memory it is."""

from __future__ import annotations

import numpy as np

import armpy_compat.pyarmnn as ann


def _info(data_type: int, *shape: int) -> ann.TensorInfo:
    return ann.TensorInfo(ann.TensorShape(shape), data_type, 0.5, 3, True)


def test_the_shape_of_an_info_is_the_info_itself() -> None:
    info = _info(ann.DataType_Float32, 2, 3)
    info.GetShape()[0] = 7
    assert info.GetNumElements() == 21
    assert [*ann.TensorInfo(info).GetShape()] == [7, 3]


def test_types_match_by_quantisation_where_there_is_one() -> None:
    first, second = _info(ann.DataType_QAsymmU8, 1), _info(ann.DataType_QAsymmU8, 2)
    assert first.IsTypeSpaceMatch(second)
    second.SetQuantizationOffset(4)
    assert not first.IsTypeSpaceMatch(second)
    first.SetDataType(ann.DataType_Float32)
    second.SetDataType(ann.DataType_Float32)
    assert first.IsTypeSpaceMatch(second)


def test_a_method_can_be_called_on_the_class() -> None:
    assert ann.TensorInfo.IsQuantized(_info(ann.DataType_QAsymmS8, 1))


def test_a_constant_keeps_the_array_and_makes_it_read_only() -> None:
    image = np.zeros((28, 28), np.uint8)
    tensor = ann.ConstTensor(_info(ann.DataType_QAsymmU8, 1, 28, 28, 1), image)
    assert tensor.get_memory_area() is image
    assert not image.flags.writeable


def test_results_are_views_of_a_tensors_memory() -> None:
    pairs = ann.make_output_tensors([(7, _info(ann.DataType_Signed32, 2, 2))])
    (result,) = ann.workload_tensors_to_ndarray(pairs)
    pairs[0][1].get_memory_area()[:] = [1, 2, 3, 4]
    assert result.tolist() == [[1, 2], [3, 4]]


def test_quantising_rounds_halves_away_from_zero_and_saturates() -> None:
    values = (0.5, 1.5, -0.5, -1.5, 2.5, 1e9, -1e9, float("inf"))
    stored = [ann.quantize(value, 1.0, 0, "int8") for value in values]
    assert stored == [1, 2, -1, -2, 3, 127, -128, 127]  # 20.08's, but for the infinity
    assert ann.quantize(1e12, 1.0, 0, "int32") == 2147483647
    assert ann.dequantize(3, 0.1, 1, "int8") == 0.20000000298023224
