"""What the tensors of a .tflite file become."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from armpy.errors import ParserError
from armpy.graph import Value
from armpy.tensor import Quantization
from armpy.types import DataType
from armpy_testing.models.tflite_writer import (
    SparseDimension,
    Sparsity,
    TfliteModel,
    model_with_input,
)
from tests.support.tflite_files import network_of, parsed


def input_of(
    shape: tuple[int, ...] | None = (2, 3), type: str = "FLOAT32", **more: object
) -> Value:
    """The input of a model that has one tensor, its input and output."""
    model = TfliteModel()
    graph = model.subgraph()
    tensor = graph.tensor("x", shape, type, **more)  # type: ignore[arg-type]  # by each test
    graph.inputs(tensor)
    graph.outputs(tensor)
    return parsed(model).inputs[0]


def constant_of(
    shape: tuple[int, ...], type: str | int, data: object, **more: object
) -> npt.NDArray[np.generic]:
    """The elements of the constant that is a model's only tensor."""
    model = TfliteModel()
    graph = model.subgraph()
    tensor = graph.tensor("c", shape, type, data=data, **more)  # type: ignore[arg-type]  # as above
    graph.outputs(tensor)
    elements = parsed(model).outputs[0].data
    assert elements is not None
    return elements


@pytest.mark.parametrize(
    ("type", "data_type"),
    [
        ("FLOAT32", DataType.FLOAT32),
        ("FLOAT16", DataType.FLOAT16),
        ("FLOAT64", DataType.FLOAT64),
        ("BFLOAT16", DataType.BFLOAT16),
        ("BOOL", DataType.BOOLEAN),
        ("INT8", DataType.SIGNED8),
        ("INT16", DataType.SIGNED16),
        ("INT32", DataType.SIGNED32),
        ("INT64", DataType.SIGNED64),
        ("UINT8", DataType.UNSIGNED8),
        ("UINT16", DataType.UNSIGNED16),
        ("UINT32", DataType.UNSIGNED32),
        ("UINT64", DataType.UNSIGNED64),
    ],
)
def test_types_without_quantisation(type: str, data_type: DataType) -> None:
    info = input_of(type=type).info
    assert (info.data_type, info.quantization) == (data_type, None)


@pytest.mark.parametrize(
    ("type", "data_type"),
    [
        ("INT8", DataType.QASYMM_S8),
        ("UINT8", DataType.QASYMM_U8),
        ("INT16", DataType.QSYMM_S16),
        ("INT32", DataType.SIGNED32),
        ("INT64", DataType.SIGNED64),
    ],
)
def test_types_with_quantisation(type: str, data_type: DataType) -> None:
    info = input_of(type=type, scale=0.5, zero_point=3).info
    assert info.data_type is data_type
    assert info.quantization == Quantization.per_tensor(0.5, 3)


def test_axis_of_a_bias_is_its_own() -> None:
    quantization = input_of((3,), "INT32", scale=[1.0, 2.0, 4.0], axis=3).info.quantization
    assert quantization is not None
    assert quantization.axis == 0


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"scale": float("nan")}, "a scale is not positive and finite.*got nan"),
        ({"scale": float("inf")}, "a scale is not positive and finite.*got inf"),
        ({"scale": -0.5}, "a scale is not positive and finite.*got -0.5"),
        ({"scale": 0.5, "zero_point": 128}, "zero point is out of range.*-128 to 127; got 128"),
        ({"scale": 0.5, "zero_point": []}, "zero points differ.*1 zero points; got 0"),
        ({"scale": [0.5, 0.5], "zero_point": [0]}, "zero points differ"),
        ({"scale": [0.5, 0.5], "zero_point": [0, 1]}, "zero point is out of range.*got 1"),
        ({"scale": [0.5, 0.5], "axis": 2}, r"axis that does not exist.*\(2, 3\); got 2"),
        ({"scale": [0.5, 0.5], "axis": -1}, "axis that does not exist.*got -1"),
        ({"scale": [0.5, 0.5], "axis": 1}, "number of scales is wrong.*3, the size of axis 1"),
    ],
)
def test_quantisation_that_cannot_be_used_is_refused(
    more: Mapping[str, object], message: str
) -> None:
    with pytest.raises(ParserError, match=rf"tensor 0 'x': .*{message}"):
        input_of((2, 3), "INT8", **more)


def test_uint8_with_scales_along_an_axis_is_refused() -> None:
    with pytest.raises(ParserError, match=r"UINT8 is not supported with several scales"):
        input_of(type="UINT8", scale=[0.5, 0.5], axis=0)


@pytest.mark.parametrize("type", ["RESOURCE", "VARIANT", "COMPLEX128"])
def test_other_types_are_refused_by_name(type: str) -> None:
    with pytest.raises(ParserError, match=rf"tensor 0 'x': .*not supported. Got {type}"):
        input_of(type=type)


def test_unknown_type_is_refused_by_number() -> None:
    with pytest.raises(ParserError, match=r"not supported. Got 77"):
        input_of(type=77)  # type: ignore[arg-type]  # not a type of the schema


def test_open_dimensions_have_a_default() -> None:
    model, graph, x = model_with_input((1, 4), shape_signature=(-1, 4))
    graph.outputs(x)
    built = parsed(model)
    assert built.inputs[0].info.shape == (None, 4)
    assert built.default_shapes == ((1, 4),)


@pytest.mark.parametrize(
    ("shape", "signature", "declared"),
    [
        ((1, 3, 4), (-1, 3, 4), (None, 3, 4)),
        ((1, 3, 4), None, None),  # of the default input shape only
        ((1, 3, 4), (-1, 5, 4), None),  # the file contradicts itself
    ],
)
def test_an_output_has_the_shape_that_its_signature_declares(
    shape: tuple[int, ...],
    signature: tuple[int, ...] | None,
    declared: tuple[int | None, ...] | None,
) -> None:
    model, graph, x = model_with_input((1, 12), shape_signature=(-1, 12))
    y = graph.tensor("y", shape, shape_signature=signature)
    new_shape = graph.tensor("s", (3,), "INT32", data=np.array([-1, *shape[1:]], np.int32))
    graph.operator("RESHAPE", [x, new_shape], [y], None)
    graph.outputs(y)
    assert parsed(model).output_shapes == (declared,)


def test_an_input_without_a_rank_is_open() -> None:
    assert input_of(None).info.shape is None
    assert input_of(()).info.shape == ()


def test_scale_of_zero_is_none() -> None:
    info = input_of(type="INT8", scale=0.0).info
    assert (info.data_type, info.quantization) == (DataType.SIGNED8, None)


@pytest.mark.parametrize("scale", [float("nan"), -1.0])
def test_scale_of_int32_that_cannot_be_used_is_left_out(scale: float) -> None:
    assert input_of(type="INT32", scale=scale).info.quantization is None


@pytest.mark.parametrize("signature", [(-1, 3, 1), (3, -1), (-2, 3)])
def test_signature_that_does_not_fit_the_shape_is_not_looked_at(signature: tuple[int, ...]) -> None:
    assert input_of((2, 3), shape_signature=signature).info.shape == (2, 3)


def test_negative_dimension_is_refused() -> None:
    with pytest.raises(ParserError, match=r"dimension is negative. Got \(2, -3\)"):
        input_of((2, -3))


def test_too_many_dimensions_are_refused() -> None:
    with pytest.raises(ParserError, match=r"rank is too high. Expected at most 8; got 9"):
        input_of((1,) * 9)


@pytest.mark.parametrize(
    ("type", "stored", "expected"),
    [("INT4", [0xF1, 0x08], [1, -1, -8]), (19, [0b10011101, 0b1110], [1, -1, 1, -2, -2, -1])],
    ids=["INT4", "INT2"],
)
def test_elements_that_share_a_byte_begin_with_its_lowest_bits(
    type: str | int, stored: list[int], expected: list[int]
) -> None:
    elements = constant_of((len(expected),), type, bytes(stored), scale=0.5)
    np.testing.assert_array_equal(elements, np.array(expected, np.int8), strict=True)


def test_int4_input_is_refused() -> None:
    with pytest.raises(ParserError, match=r"INT4 is supported for constants only"):
        input_of(type="INT4")


def test_boolean_constant_is_true_where_a_byte_is_not_0() -> None:
    elements = constant_of((3,), "BOOL", b"\1\2\0")
    assert elements.view(np.uint8).tolist() == [1, 1, 0]


@pytest.mark.parametrize("size", [1, 23])
def test_constant_that_is_too_short_is_refused(size: int) -> None:
    with pytest.raises(ParserError, match=rf"too short. Expected 24 bytes.*got {size}"):
        constant_of((2, 3), "FLOAT32", bytes(size))


def test_bytes_after_the_elements_of_a_constant_are_padding() -> None:
    elements = constant_of((3,), "INT4", bytes([0x21, 0x03, 0xFF, 0xFF]), scale=0.5)
    assert elements.tolist() == [1, 2, 3]


def test_unaligned_constant_is_copied() -> None:
    model = TfliteModel()
    graph = model.subgraph()
    graph.outputs(graph.tensor("c", (4,), "FLOAT32", data=[1, 2, 3, 4]))
    file = model.to_bytes()
    elements = parsed(memoryview(b"\0" + file)[1:]).outputs[0].data
    assert elements is not None
    assert elements.flags.aligned
    np.testing.assert_array_equal(elements, [1, 2, 3, 4])


def csr(segments: tuple[int, ...], indices: tuple[int, ...]) -> SparseDimension:
    """A compressed dimension."""
    return SparseDimension(segments=segments, indices=indices)


@pytest.mark.parametrize(
    ("order", "blocks", "dimensions", "stored"),
    [
        ((0, 1), (), (SparseDimension(2), csr((0, 2, 3), (1, 3, 0))), [1, 2, 3]),
        # Columns first: column 0 holds row 1, column 1 row 0, column 3 row 0.
        ((1, 0), (), (SparseDimension(4), csr((0, 1, 2, 2, 3), (1, 0, 0))), [3, 1, 2]),
        # Blocks of 1 by 2 elements: (0, 0), (0, 1), (1, 0).
        (
            (0, 1, 2),
            (1,),
            (SparseDimension(2), csr((0, 2, 3), (0, 1, 0)), SparseDimension(2)),
            [0, 1, 0, 2, 3, 0],
        ),
    ],
)
def test_sparse_constant_has_all_of_its_elements(
    order: tuple[int, ...],
    blocks: tuple[int, ...],
    dimensions: tuple[SparseDimension, ...],
    stored: list[float],
) -> None:
    sparsity = Sparsity(order, dimensions, blocks)
    raw = np.array(stored, np.float32).tobytes()
    elements = constant_of((2, 4), "FLOAT32", raw, sparsity=sparsity).data
    np.testing.assert_array_equal(elements, [[0, 1, 0, 2], [3, 0, 0, 0]])


@pytest.mark.parametrize(
    ("order", "blocks", "dimensions"),
    [
        ((0,), (), (SparseDimension(2),)),
        ((0, 0), (), (SparseDimension(2), SparseDimension(4))),
        ((0, 1, 2), (1,), (SparseDimension(2), SparseDimension(1), SparseDimension(3))),
        ((0, 1), (), (SparseDimension(2), csr((0, 2, 3), (1, 4, 0)))),
        ((0, 1), (), (SparseDimension(2), csr((0, 2, 3), (1, -1, 0)))),
        ((0, 1), (), (SparseDimension(2), csr((0, 4, 3), (1, 3, 0)))),
        ((0, 1), (), (SparseDimension(2), csr((0, 3), (1, 3, 0)))),
        ((0, 1), (), (SparseDimension(2), SparseDimension(4))),
    ],
)
def test_damaged_sparse_constant_is_refused_by_name(
    order: tuple[int, ...], blocks: tuple[int, ...], dimensions: tuple[SparseDimension, ...]
) -> None:
    sparsity = Sparsity(order, dimensions, blocks)
    with pytest.raises(ParserError, match=r"tensor 0 'c': the sparse constant is damaged"):
        constant_of((2, 4), "FLOAT32", np.ones(3, np.float32).tobytes(), sparsity=sparsity)


def test_external_buffer_is_read_where_its_offset_says() -> None:
    model = TfliteModel()
    graph = model.subgraph()
    numbers: npt.NDArray[np.float32] = np.arange(4, dtype=np.float32)
    index = model.buffer(numbers.tobytes(), external=True)
    graph.outputs(graph.tensor("c", (4,), "FLOAT32", buffer=index))
    elements = parsed(model).outputs[0].data
    np.testing.assert_array_equal(elements, numbers)


def test_external_buffer_after_two_gigabytes_is_read(tmp_path: Path) -> None:
    place = 3 << 30
    model = TfliteModel()
    graph = model.subgraph()
    index = model.external_buffer(place, 16)
    graph.outputs(graph.tensor("c", (4,), "FLOAT32", buffer=index))
    path = tmp_path / "large.tflite"
    with path.open("wb") as file:  # with a hole, which takes no place on the disk
        file.write(model.to_bytes())
        file.seek(place)
        file.write(np.arange(4, dtype=np.float32).tobytes())
    elements = parsed(path).outputs[0].data
    np.testing.assert_array_equal(elements, np.arange(4, dtype=np.float32))


@pytest.mark.parametrize(("offset", "size"), [(1 << 40, 16), (64, 1 << 62), (2**63, 2**63)])
def test_external_buffer_outside_of_the_file_is_refused(offset: int, size: int) -> None:
    model = TfliteModel()
    graph = model.subgraph()
    index = model.external_buffer(offset, size)
    graph.outputs(graph.tensor("c", (4,), "FLOAT32", buffer=index))
    with pytest.raises(ParserError, match="data lies past its end"):
        network_of(model)


def test_buffer_that_does_not_exist_is_refused() -> None:
    model = TfliteModel()
    graph = model.subgraph()
    graph.outputs(graph.tensor("c", (4,), "FLOAT32", buffer=9))
    with pytest.raises(ParserError, match=r"there is no buffer 9"):
        network_of(model)


def test_tensor_above_the_memory_limit_is_refused() -> None:
    model, graph, x = model_with_input((1000, 1000, 1000, 1000))
    graph.outputs(x)
    with pytest.raises(
        ParserError,
        match=r"the tensor is larger than the memory limit. .* at most 4294967296",
    ):
        network_of(model)


def test_empty_constant_with_dimensions_that_numpy_cannot_hold_is_refused() -> None:
    with pytest.raises(ParserError, match=r"the tensor is larger than the memory limit"):
        constant_of((2**31 - 1, 0, 2**31 - 1, 8), "INT32", [])


def test_variables_count_together_against_the_memory_limit() -> None:
    model = TfliteModel()
    graph = model.subgraph()
    a = graph.tensor("a", (100,), "FLOAT32", variable=True)
    b = graph.tensor("b", (100,), "FLOAT32", variable=True)
    graph.outputs(a, b)
    assert len(parsed(model, memory_limit_bytes=800).variables) == 2
    with pytest.raises(ParserError, match=r"variables are larger than the memory limit.*got 800"):
        network_of(model, memory_limit_bytes=799)


def test_variable_begins_with_its_zero_point() -> None:
    model = TfliteModel()
    graph = model.subgraph()
    graph.outputs(graph.tensor("v", (2,), "INT8", scale=0.5, zero_point=-7, variable=True))
    (variable,) = parsed(model).variables
    np.testing.assert_array_equal(variable.initial, np.array([-7, -7], np.int8))
    assert variable.next_value is variable.value
