"""Shape rules of look-ups, orderings, random numbers and normalisations."""

from __future__ import annotations

import numpy as np
import pytest

from armpy.errors import LayerValidationError
from armpy.execution import Runtime, RuntimeOptions
from armpy.graph.network import Network
from armpy.ops import (
    ChannelShuffle,
    HashtableLookup,
    InstanceNormalization,
    LshProjection,
    LshProjectionType,
    Normalization,
    Operation,
    RandomMultinomial,
    TopkV2,
)
from armpy.tensor import Shape, TensorInfo
from armpy.types import DataType
from armpy_testing.labels import operation_label

FLOATS, INTEGERS = DataType.FLOAT32, DataType.SIGNED32
DENSE = LshProjection(LshProjectionType.DENSE)


def info(data_type: DataType, *shape: int | None) -> TensorInfo:
    """A tensor without quantisation."""
    return TensorInfo(shape, data_type)


@pytest.mark.parametrize(
    ("operation", "inputs", "expected"),
    [
        (
            HashtableLookup(),
            [info(INTEGERS, 5), info(INTEGERS, 3), info(FLOATS, None, 2, 4)],
            [(5, 2, 4), (5,)],
        ),
        (LshProjection(), [info(FLOATS, 3, 4), info(INTEGERS, 7)], [(3,)]),
        (DENSE, [info(FLOATS, 3, 4), info(FLOATS, 7, 2), info(FLOATS, 7)], [(12,)]),
        (DENSE, [info(FLOATS, 3, None), info(FLOATS, 7, 2)], [(None,)]),
        (RandomMultinomial(9), [info(FLOATS, None, 3), info(INTEGERS, 2)], [(None, 9)]),
        (TopkV2(3), [info(FLOATS, 2, 5)], [(2, 3), (2, 3)]),
        (TopkV2((3,)), [info(FLOATS, 2, None)], [(2, 3), (2, 3)]),  # type: ignore[arg-type]  # as files have it
        (TopkV2(), [info(FLOATS, 2, 5), info(INTEGERS)], [(2, None), (2, None)]),
        (ChannelShuffle(3), [info(FLOATS, 2, 6)], [(2, 6)]),
        (ChannelShuffle(3, 0), [info(FLOATS, None, 5)], [(None, 5)]),
        (Normalization(axes=(0, -1)), [info(FLOATS, 2, 3)], [(2, 3)]),
        (InstanceNormalization(), [info(FLOATS, 1, 2, 3, None)], [(1, 2, 3, None)]),
    ],
    ids=operation_label,
)
def test_shapes(operation: Operation, inputs: list[TensorInfo], expected: list[Shape]) -> None:
    assert [result.shape for result in operation.infer(inputs)] == expected


@pytest.mark.parametrize(
    ("operation", "inputs", "message"),
    [
        (
            HashtableLookup(),
            [info(INTEGERS, 5), info(INTEGERS, 3), info(FLOATS, 4, 2)],
            r"values does not match.*3; got 4",
        ),
        (LshProjection(), [info(FLOATS, 3, 33), info(INTEGERS, 7)], r"1 to 32; got 33"),
        (
            DENSE,
            [info(FLOATS, 3, 4), info(FLOATS, 7, 2), info(FLOATS, 6)],
            r"weight does not match.*7; got 6",
        ),
        (RandomMultinomial(-1), [info(FLOATS, 1, 3), info(INTEGERS, 2)], r"negative.*got -1"),
        (RandomMultinomial(), [info(FLOATS, 1, 3), info(INTEGERS, 3)], r"not two seeds.*got 3"),
        (RandomMultinomial(), [info(FLOATS, 1, 0), info(INTEGERS, 2)], r"no classes"),
        (TopkV2(6), [info(FLOATS, 2, 5)], r"0 to 5; got 6"),
        (TopkV2(), [info(FLOATS, 2, 5)], r"neither an attribute nor an operand gives k"),
        (ChannelShuffle(4), [info(FLOATS, 2, 6)], r"multiple of 4.*got 6"),
        (ChannelShuffle(0), [info(FLOATS, 2, 6)], r"1 or more"),
        (ChannelShuffle(1, 2), [info(FLOATS, 2, 6)], r"axis is out of range"),
        (Normalization(-1), [info(FLOATS, 2, 3)], r"radius is negative.*got -1"),
        (Normalization(axes=(2,)), [info(FLOATS, 2, 3)], r"axis is out of range"),
    ],
    ids=operation_label,
)
def test_shapes_that_do_not_fit_are_refused(
    operation: Operation, inputs: list[TensorInfo], message: str
) -> None:
    with pytest.raises(LayerValidationError, match=message):
        operation.infer(inputs)


def test_shuffling_one_group_changes_nothing() -> None:
    infos = [info(FLOATS, 2, 6)]

    assert ChannelShuffle(1).identity_of(infos, infos) == 0
    assert ChannelShuffle(2).identity_of(infos, infos) is None


def test_random_numbers_of_constants_are_drawn_anew_each_time() -> None:
    net = Network("dice")
    logits = net.constant(np.zeros((1, 1000), np.float32))
    seeds = net.constant(np.zeros(2, np.int32))
    net.output("samples", net.add(RandomMultinomial(40), logits, seeds))
    runtime = Runtime(RuntimeOptions(backends=["CpuRef"]))
    network_id = runtime.load_network(net.build())

    first, second = (runtime.enqueue_workload(network_id, {}, {})["samples"] for _ in range(2))

    assert (first != second).any()
