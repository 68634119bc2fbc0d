"""The foremost elements, and positions marked by indices: like CpuRef on every instruction set."""

from __future__ import annotations

import numpy as np
import pytest

from armpy import Network, Quantization, ops
from armpy.ops.operation import Array
from armpy.ops.tolerance import EXACT
from armpy.tensor import TensorInfo
from armpy.types import DataType

from .support import (
    ISA_NAMES,
    ISAS,
    check_against_reference,
    random_array,
    run_compiled,
)

F32 = TensorInfo((1,), DataType.FLOAT32)
S8 = TensorInfo((1,), DataType.QASYMM_S8, quantization=Quantization.per_tensor(0.5, 3))
S16 = TensorInfo((1,), DataType.QSYMM_S16, quantization=Quantization.per_tensor(0.5))
KINDS = (
    F32,
    S8,
    TensorInfo((1,), DataType.QASYMM_U8, quantization=Quantization.per_tensor(0.5, 3)),
    S16,
    *(
        TensorInfo((1,), data_type)
        for data_type in (
            DataType.FLOAT16,
            DataType.SIGNED8,
            DataType.UNSIGNED8,
            DataType.SIGNED16,
            DataType.UNSIGNED16,
            DataType.SIGNED32,
            DataType.UNSIGNED32,
            DataType.SIGNED64,
            DataType.UNSIGNED64,
        )
    ),
)


def top_network(operation: ops.TopkV2, info: TensorInfo) -> Network:
    """One layer."""
    network = Network()
    values, indices = network.add_layer(operation, [network.input("x", info)]).outputs
    network.output("values", values)
    network.output("indices", indices)
    return network


@pytest.mark.slow
@pytest.mark.sampled(3)
@pytest.mark.parametrize("isa", ISA_NAMES)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.data_type.name)
def test_foremost_elements_are_those_of_the_reference(kind: TensorInfo, isa: str) -> None:
    cases = (((2, 3, 41), 5), ((300,), 300), ((4, 1), 1), ((7, 9), 1), ((3, 997), 70), ((2, 64), 1))
    for number, (shape, k) in enumerate(cases):
        operation = ops.TopkV2(k, bool(number % 2), largest=number % 3 > 0)
        info = kind.with_shape(shape)
        given = {"x": random_array(info, number)}
        network = top_network(operation, info)
        check_against_reference(network, given, ISAS[ISA_NAMES.index(isa)], tolerance=EXACT)


@pytest.mark.parametrize("isa", ISA_NAMES)
@pytest.mark.parametrize("larger_index_first", [False, True])
def test_ties_zeros_and_what_is_no_number_have_an_order(larger_index_first: bool, isa: str) -> None:
    nan, tiny = np.nan, 1e-45
    row = [0.0, -0.0, 1, nan, -1, 1, -np.inf, -nan, np.inf, tiny, -tiny]
    falling = [3, 7, 8, 2, 5, 9, 0, 1, 10, 4, 6]
    if larger_index_first:
        falling = [7, 3, 8, 5, 2, 9, 1, 0, 10, 4, 6]
    values = np.array([row, row], np.float32)
    network = top_network(
        ops.TopkV2(k=11, larger_index_first=larger_index_first), F32.with_shape(values.shape)
    )
    got = run_compiled(network, {"x": values}, ISAS[ISA_NAMES.index(isa)])
    assert got["indices"].tolist() == [falling] * 2
    expected = values[:, falling].view(np.uint32)
    np.testing.assert_array_equal(got["values"].view(np.uint32), expected)
    check_against_reference(network, {"x": values}, ISAS[ISA_NAMES.index(isa)], tolerance=EXACT)


@pytest.mark.parametrize("isa", ISA_NAMES)
@pytest.mark.parametrize("size", [32, 33, 64, 80])
@pytest.mark.parametrize("largest", [False, True])
def test_the_foremost_element_alone_is_the_first_of_equal_ones(
    size: int, largest: bool, isa: str
) -> None:
    best = np.inf if largest else -np.inf
    values = np.random.default_rng(size).normal(size=(2 * size + 2, size)).astype(np.float32)
    for place in range(size):
        values[place, place] = best
        values[size + place, place:] = best
    values[-2, size // 2 :], values[-1] = np.nan, np.nan
    network = top_network(ops.TopkV2(k=1, largest=largest), F32.with_shape(values.shape))
    got = run_compiled(network, {"x": values}, ISAS[ISA_NAMES.index(isa)])
    assert got["indices"][: 2 * size, 0].tolist() == [*range(size)] * 2
    check_against_reference(network, {"x": values}, ISAS[ISA_NAMES.index(isa)], tolerance=EXACT)


def one_hot_case(
    values: TensorInfo, indices: Array, axis: int, depth: int
) -> tuple[Network, dict[str, Array]]:
    """One layer with computed values, and its inputs."""
    network = Network()
    data_type = {4: DataType.SIGNED32, 8: DataType.SIGNED64}[indices.itemsize]
    places = network.input("places", TensorInfo(indices.shape, data_type))
    on, off = (network.input(name, values.with_shape(())) for name in ("on", "off"))
    shape = list(indices.shape)
    shape.insert(axis % (indices.ndim + 1), depth)
    made = values.with_shape(tuple(shape))
    operation = ops.OneHot(depth=depth, axis=axis)
    network.output("y", network.add(operation, places, on, off, output=made))
    given = {"on": random_array(on.info, 1), "off": random_array(off.info, 2)}
    return network, {**given, "places": indices}


@pytest.mark.slow
@pytest.mark.sampled(5)
@pytest.mark.parametrize("isa", ISA_NAMES)
@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_positions_are_marked_along_any_axis(dtype: type, axis: int, isa: str) -> None:
    limits = np.iinfo(dtype)
    indices: Array = np.array([[0, 5, -1], [4, limits.max, limits.min]], dtype)
    for kind in (F32, S8, S16, F32.with_shape(()), TensorInfo((1,), DataType.SIGNED64)):
        network, given = one_hot_case(kind, indices, axis, 5)
        check_against_reference(network, given, ISAS[ISA_NAMES.index(isa)], tolerance=EXACT)


def test_marked_positions_by_hand() -> None:
    network, given = one_hot_case(F32, np.array([2, 0, 3, -1], np.int32), -1, 3)
    given["on"], given["off"] = np.array(7, np.float32), np.array(-1, np.float32)
    got = run_compiled(network, given, ISAS[0])["y"]
    assert got.tolist() == [[-1, -1, 7], [7, -1, -1], [-1, -1, -1], [-1, -1, -1]]
