"""Tensors that are joined and cut where they lie, and a wrong constant index."""

from __future__ import annotations

import numpy as np
import pytest

from armpy import DataType, Network, Quantization, TensorInfo, ops
from armpy.errors import InvalidArgumentError
from armpy.graph import Value

from .support import (
    ISA_NAMES,
    ISAS,
    check_against_reference,
    program_of,
    random_array,
    run_compiled,
)

F32 = TensorInfo((1,), DataType.FLOAT32)
U8 = TensorInfo((1,), DataType.QASYMM_U8, quantization=Quantization.per_tensor(0.5, 3))


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
    program = program_of(network, ISAS[ISA_NAMES.index(isa)])
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
    program = program_of(network, ISAS[ISA_NAMES.index(isa)])
    owners = [info.title.partition(" ")[0] for info in program.infos if not info.part]
    # Each part once into the joined tensor, and of the reshaped ones what the caller gave.
    assert sorted(owners) == sorted(
        ["Concat"] * (len(parts) + 1) + ["ReverseV2"] * 2 + ["Gather"] * 2 + ["Slice", "Transpose"]
    )


def test_constant_index_out_of_range_is_an_error_that_names_the_layer() -> None:
    network = Network()
    x = network.input("x", F32.with_shape((3, 4)))
    indices = network.constant(np.array([0, 3], np.int32))
    network.output("y", network.add(ops.Gather(), x, indices, name="lookup"))
    with pytest.raises(InvalidArgumentError, match=r"lookup.*Expected 0 to 2; got 3"):
        run_compiled(network, {"x": np.zeros((3, 4), np.float32)}, ISAS[0])
