"""Operations that move elements, against CpuRef, on every instruction set of this processor."""

from __future__ import annotations

import numpy as np
import pytest
from armpy_numba_acc.passes.region import lower_region

from armpy import DataLayout, DataType, Network, Quantization, TensorInfo, ops
from armpy.errors import InvalidArgumentError
from armpy.graph import SubgraphView, Value
from armpy.ops.operation import Operation

from .support import (
    ISA_NAMES,
    ISAS,
    check_against_reference,
    random_array,
    run_compiled,
)

F32 = TensorInfo((1,), DataType.FLOAT32)
U8 = TensorInfo((1,), DataType.QASYMM_U8, quantization=Quantization.per_tensor(0.5, 3))
S8 = TensorInfo((1,), DataType.QASYMM_S8, quantization=Quantization.per_tensor(0.5, 3))
S16 = TensorInfo((1,), DataType.QSYMM_S16, quantization=Quantization.per_tensor(0.5))
I64 = TensorInfo((1,), DataType.SIGNED64)
BOOL = TensorInfo((1,), DataType.BOOLEAN)

KINDS = (F32, U8, S8, S16, I64, BOOL)

NCHW = DataLayout.NCHW

CASES = (
    (ops.Reshape(target_shape=(4, -1)), (2, 6, 7)),
    (ops.ExpandDims(axis=1), (2, 6, 7)),
    (ops.Squeeze(), (1, 6, 1, 7)),
    (ops.Transpose(perm=(0, 2, 3, 1)), (1, 3, 22, 17)),
    (ops.Transpose(perm=(0, 3, 1, 2)), (2, 22, 17, 3)),
    (ops.Transpose(perm=(0, 2, 1)), (5, 33, 40)),
    (ops.Transpose(perm=(1, 0)), (67, 129)),
    (ops.Transpose(perm=(3, 1, 0, 2)), (3, 40, 35, 7)),
    (ops.Transpose(perm=(4, 2, 0, 1, 3)), (2, 3, 4, 5, 6)),
    (ops.Transpose(perm=(1, 0, 2, 3)), (4, 3, 5, 2)),
    (ops.Slice(begin=(1, 2, 0), size=(2, 3, -1)), (4, 6, 5)),
    (ops.Slice(begin=(1, 0), size=(2, -1)), (4, 67)),
    (ops.StridedSlice(begin=(5, 0, 1), end=(0, 6, 5), stride=(-2, 1, 2)), (6, 7, 5)),
    (ops.StridedSlice((1, 2), (2, 3), (1, 1), shrink_axis_mask=3), (3, 4)),
    (ops.Splitter(num_splits=3, axis=-1), (2, 5, 12)),
    (ops.Splitter(axis=0, sizes=(1, 3, 2)), (6, 5)),
    (ops.Unstack(num=3, axis=1), (4, 3, 5)),
    (ops.Unstack(num=4), (4, 3)),
    (ops.Tile(multiples=(2, 1, 3)), (3, 4, 5)),
    (ops.BroadcastTo(broadcast_to_shape=(3, 4, 5)), (4, 1)),
    (ops.ReverseV2(axes=(0, 2)), (3, 4, 5)),
    (ops.ChannelShuffle(num_groups=3, axis=-1), (2, 5, 12)),
    (ops.ChannelShuffle(num_groups=2, axis=1), (2, 6, 5)),
    (ops.DepthToSpace(block_size=2), (2, 3, 4, 20)),
    (ops.DepthToSpace(block_size=3, data_layout=NCHW), (1, 18, 3, 4)),
    (ops.SpaceToDepth(block_size=2), (2, 4, 6, 5)),
    (ops.SpaceToDepth(block_size=2, data_layout=NCHW), (2, 3, 4, 6)),
    (ops.SpaceToBatchNd(block_shape=(2, 3), pad_list=((1, 0), (2, 1))), (2, 5, 6, 3)),
    (ops.SpaceToBatchNd((4, 4), ((5, 1), (0, 0)), data_layout=NCHW), (1, 3, 6, 8)),
    (ops.BatchToSpaceNd(block_shape=(2, 3), crops=((1, 0), (2, 1))), (12, 3, 4, 5)),
    (ops.BatchToSpaceNd(block_shape=(2,), crops=((0, 1),)), (4, 3, 5)),
    (ops.Pad(pad_list=((0, 0), (1, 2), (3, 0), (0, 0))), (2, 5, 6, 3)),
    (ops.Pad(pad_list=((0, 0), (0, 0), (2, 5)), pad_value=1.5), (2, 5, 6)),
    (ops.Pad(pad_list=((1, 1), (0, 0), (2, 5)), pad_value=1.0), (2, 5, 6)),
    (ops.Pad(pad_list=((0, 0), (0, 0), (0, 4))), (2, 9, 28)),
    (ops.Pad(pad_list=((1, 2), (0, 0))), (2, 9)),
    (ops.Pad(((2, 1), (0, 0), (3, 2)), padding_mode=ops.PaddingMode.REFLECT), (4, 3, 5)),
    (ops.Pad(((2, 1), (1, 3), (0, 0)), padding_mode=ops.PaddingMode.SYMMETRIC), (4, 3, 5)),
    (ops.Pad(((2, 1), (0, 0), (3, 2)), padding_mode=ops.PaddingMode.EDGE), (4, 3, 5)),
    (ops.Pad(((2, 7), (1, 0), (9, 2)), padding_mode=ops.PaddingMode.WRAP), (4, 1, 3)),
)


def _network(operation: ops.Operation, *infos: TensorInfo) -> Network:
    """A network of one layer."""
    network = Network()
    values = [network.input(f"x{number}", info) for number, info in enumerate(infos)]
    for number, value in enumerate(network.add_layer(operation, values).outputs):
        network.output(f"y{number}", value)
    return network


def _check(operation: ops.Operation, infos: list[TensorInfo], isa: str) -> None:
    """Compare one layer with CpuRef."""
    inputs = {f"x{number}": random_array(info, number) for number, info in enumerate(infos)}
    check_against_reference(_network(operation, *infos), inputs, ISAS[ISA_NAMES.index(isa)])


@pytest.mark.slow
@pytest.mark.parametrize("isa", ISA_NAMES)
@pytest.mark.parametrize(("operation", "shape"), CASES, ids=str)
def test_elements_are_moved_as_cpuref_moves_them(
    operation: Operation, shape: tuple[int, ...], isa: str
) -> None:
    has_all = isa == ISA_NAMES[0] or isinstance(operation, ops.Transpose)
    for kind in KINDS if has_all else (F32, S8):
        _check(operation, [kind.with_shape(shape)], isa)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("isa", ISA_NAMES)
@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_tensors_are_joined_along_any_axis(axis: int, isa: str) -> None:
    for kind in KINDS if isa == ISA_NAMES[0] else (F32, S8):
        shapes = [[2, 5, 7], [2, 5, 7], [2, 5, 7]]
        shapes[1][axis] = 3
        infos = [kind.with_shape(tuple(shape)) for shape in shapes]
        _check(ops.Concat(axis=axis), infos, isa)
        _check(ops.Stack(axis=axis), [kind.with_shape((3, 5, 2))] * 4, isa)


@pytest.mark.parametrize("isa", ISA_NAMES)
@pytest.mark.parametrize("data_type", [DataType.QASYMM_U8, DataType.QASYMM_S8])
@pytest.mark.parametrize("axis", [0, 1])
def test_joined_tensors_are_requantised_like_the_output(
    data_type: DataType, axis: int, isa: str
) -> None:
    network = Network()
    infos = [
        TensorInfo((3, 50), data_type, quantization=Quantization.per_tensor(scale, zero_point))
        for scale, zero_point in ((0.5, 3), (0.071, 100), (1.3, 17))
    ]
    inputs = [network.input(f"x{number}", info) for number, info in enumerate(infos)]
    output = TensorInfo(None, data_type, quantization=Quantization.per_tensor(0.11, 60))
    network.output("y", network.add(ops.Concat(axis=axis), *inputs, output=output))
    arrays = {f"x{number}": random_array(info, number) for number, info in enumerate(infos)}
    check_against_reference(network, arrays, ISAS[ISA_NAMES.index(isa)])


@pytest.mark.parametrize("isa", ISA_NAMES)
def test_parts_of_a_joined_tensor_are_written_in_place(isa: str) -> None:
    network = Network()
    x = network.input("x", TensorInfo((1, 4, 6), DataType.QASYMM_S8, quantization=U8.quantization))
    turned = network.add(ops.Transpose(perm=(0, 2, 1)), x)
    padded = network.add(ops.Pad(pad_list=((0, 0), (1, 1), (0, 0))), turned)
    joined = network.add(ops.Concat(axis=1), turned, padded)
    network.output("y", network.add(ops.ReverseV2(axes=(1,)), joined))
    network.output("turned", network.add(ops.Tile(multiples=(1, 2, 1)), turned))
    inputs = {"x": random_array(x.info)}
    check_against_reference(network, inputs, ISAS[ISA_NAMES.index(isa)])
    graph = network.build()
    program = lower_region(SubgraphView.of(graph, graph.layers), ISAS[ISA_NAMES.index(isa)])
    labels = [info.label for info in program.infos]
    assert not any(label.startswith("Concat") for label in labels), labels


@pytest.mark.parametrize("isa", ISA_NAMES)
def test_parts_that_lie_side_by_side_are_read_and_written_where_they_are(isa: str) -> None:
    network = Network()
    x = network.input("x", TensorInfo((4, 6), DataType.QASYMM_S8, quantization=U8.quantization))

    def index(*indices: int) -> Value:
        return network.constant(np.array(indices, np.int64))

    from_end = ops.Gather(axis=0, wraps_negative=True)
    parts = [
        network.add(from_end, x, network.constant(np.array(-3, np.int32))),
        network.add(from_end, x, index(-3, -2)),
        network.add(ops.Gather(axis=1), network.add(ops.Reshape((1, 24)), x), index(7)),
        network.add(ops.GatherNd(), x, index(2, 5)),
        network.add(ops.Slice((1, 0), (2, 6)), x),
        network.add(ops.StridedSlice((3, 1), (4, 5), (1, 1)), x),
        network.add(ops.Transpose((1, 2, 0)), network.add(ops.Reshape((1, 4, 6)), x)),
    ]
    flat = [network.add(ops.Reshape((-1,)), part) for part in parts]
    network.output("y", network.add(ops.ReverseV2(axes=(0,)), network.add(ops.Concat(0), *flat)))
    moved = [
        network.add(from_end, x, index(-1, 0)),
        network.add(ops.Gather(axis=1), x, index(2)),
        network.add(ops.Slice((1, 0), (2, 5)), x),
    ]
    for part in moved:
        network.output(part.name, part)
    turned = network.add(ops.Transpose((1, 0)), x)
    reshaped = [network.add(ops.Reshape((1, 24)), value) for value in (turned, x)]
    network.output(
        "z", network.add(ops.ReverseV2(axes=(1,)), network.add(ops.Concat(0), *reshaped))
    )
    check_against_reference(network, {"x": random_array(x.info)}, ISAS[ISA_NAMES.index(isa)])
    graph = network.build()
    program = lower_region(SubgraphView.of(graph, graph.layers), ISAS[ISA_NAMES.index(isa)])
    owners = [info.title.partition(" ")[0] for info in program.infos if not info.part]
    # Each part once into the joined tensor, and of the reshaped ones what the caller gave.
    assert sorted(owners) == sorted(
        ["Concat"] * (len(parts) + 1) + ["ReverseV2"] * 2 + ["Gather"] * 2 + ["Slice", "Transpose"]
    )


@pytest.mark.parametrize("isa", ISA_NAMES)
@pytest.mark.parametrize(("axis", "batch_dims"), [(0, 0), (1, 0), (2, 1), (-1, 2)])
def test_slices_are_gathered_by_constant_indices(axis: int, batch_dims: int, isa: str) -> None:
    for kind in KINDS:
        network = Network()
        x = network.input("x", kind.with_shape((3, 4, 5)))
        shape = (*(3, 4, 5)[:batch_dims], 2, 3)
        indices = np.random.default_rng(0).integers(0, 3, shape).astype(np.int32)
        operation = ops.Gather(axis=axis, batch_dims=batch_dims)
        network.output("y", network.add(operation, x, network.constant(indices)))
        inputs = {"x": random_array(x.info)}
        check_against_reference(network, inputs, ISAS[ISA_NAMES.index(isa)])


@pytest.mark.parametrize("isa", ISA_NAMES)
def test_slices_are_gathered_by_constant_coordinates(isa: str) -> None:
    network = Network()
    x = network.input("x", F32.with_shape((3, 4, 5)))
    indices = np.array([[[2, 1], [0, 3]], [[1, 1], [0, 0]]], np.int64)
    network.output("y", network.add(ops.GatherNd(), x, network.constant(indices)))
    check_against_reference(network, {"x": random_array(x.info)}, ISAS[ISA_NAMES.index(isa)])


def test_constant_index_out_of_range_is_an_error_that_names_the_layer() -> None:
    network = Network()
    x = network.input("x", F32.with_shape((3, 4)))
    indices = network.constant(np.array([0, 3], np.int32))
    network.output("y", network.add(ops.Gather(), x, indices, name="lookup"))
    with pytest.raises(InvalidArgumentError, match=r"lookup.*Expected 0 to 2; got 3"):
        run_compiled(network, {"x": np.zeros((3, 4), np.float32)}, ISAS[0])


@pytest.mark.parametrize("isa", ISA_NAMES)
def test_shape_and_rank_are_constants(isa: str) -> None:
    network = Network()
    x = network.input("x", F32.with_shape((3, 4)))
    network.output("shape", network.add(ops.Shape(output_type=DataType.SIGNED64), x))
    network.output("rank", network.add(ops.Rank(), x))
    check_against_reference(network, {"x": random_array(x.info)}, ISAS[ISA_NAMES.index(isa)])


@pytest.mark.parametrize("isa", ISA_NAMES)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.data_type.name)
def test_element_fills_a_tensor_constant_or_not(kind: TensorInfo, isa: str) -> None:
    network = Network()
    x = network.input("x", kind.with_shape(()))
    constant = network.constant(
        random_array(kind.with_shape(()), 3), quantization=kind.quantization
    )
    network.output("y", network.add(ops.Fill(shape=(3, 23)), x))
    network.output("z", network.add(ops.Fill(shape=(5, 13)), constant))
    check_against_reference(network, {"x": random_array(x.info)}, ISAS[ISA_NAMES.index(isa)])
