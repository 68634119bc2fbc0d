"""3x3 convolutions of bytes with fewer multiplications: exactly the results of CpuRef."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from armpy_numba_acc.lowering import weighted_u8
from armpy_numba_acc.machine.cost_model.figures import HASWELL, ZEN4
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.packing.winograd import pack_winograd_u8
from armpy_numba_acc.passes.region import lower_region
from armpy_numba_acc.program.choices import Choices

from armpy import Network, ops
from armpy.graph import SubgraphView
from armpy.ops.operation import Array
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType

from .support import (
    ISAS as ALL_ISAS,
)
from .support import (
    check_against_reference,
    random_array,
    run_in_turn,
    run_reference,
)
from .test_sorted_steps import kernels_of
from .test_weighted_u8 import (
    BOTH_U8,
    RELU6,
    S8,
    SAME,
    SYMM,
    Case,
    convolution,
)

ISAS = [isa for isa in ALL_ISAS if isa.has_saturating_bytes]
by_isa = pytest.mark.parametrize("isa", ISAS, ids=[isa.name for isa in ISAS])

LAYER = Case((1, 8, 8, 32), 32, (3, 3), padding=SAME)
CASES = {
    "whole tiles": LAYER,
    "tiles beyond the image": replace(LAYER, shape=(2, 9, 7, 32), filters=48, activation=RELU6),
    "no padding": replace(LAYER, shape=(1, 13, 11, 64), padding=((0, 0), (0, 0))),
    "own borders": replace(LAYER, shape=(1, 9, 8, 64), padding=((0, 2), (1, 0))),
    "many batches": replace(LAYER, shape=(1, 26, 30, 64), filters=64),
    "u8 weights": replace(LAYER, types=BOTH_U8, weights_zero_point=255),
    "signed weights with a zero point": replace(LAYER, types=(S8, S8), weights_zero_point=-7),
    "no bias": replace(LAYER, has_bias=False),
    "gaps": replace(LAYER, shape=(2, 9, 13, 32), dilation=(2, 3)),
}


@pytest.fixture(autouse=True)
def _all_layers_may(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Small layers gain nothing, but are tested in less time."""
    if "chosen" not in request.node.name:
        monkeypatch.setattr(weighted_u8, "is_winograd_u8", lambda *_: True)


@pytest.mark.sampled(4)
@by_isa
@pytest.mark.parametrize("name", CASES)
def test_results_are_exact(name: str, isa: Isa) -> None:
    net, inputs = convolution(CASES[name])
    assert "winograd_u8" in kernels_of(net, isa)
    check_against_reference(net, inputs, isa)


@by_isa
@pytest.mark.parametrize("kind", [S8, DataType.QASYMM_U8], ids=lambda kind: kind.name)
def test_the_largest_sums_are_exact(kind: DataType, isa: Isa) -> None:
    """All weights are the least or the largest ones, and so are elements: at every place."""
    random, low = np.random.default_rng(5), -128 if kind is S8 else 0
    unit, weights_kind = Quantization.per_tensor(1.0, low), SYMM if kind is S8 else kind
    stored = random.choice([low + (kind is S8), low + 255], (32, 3, 3, 256))
    stored[0], stored[1] = low + (kind is S8), low + 255
    net = Network()
    x = net.input("x", TensorInfo((1, 8, 6, 256), kind, unit))
    weights = net.constant(
        stored.astype(kind.dtype),
        data_type=weights_kind,
        quantization=Quantization.per_tensor(1.0, 0),
    )
    output = TensorInfo(None, kind, Quantization.per_tensor(600000.0, low + 128))
    operation = ops.Convolution2d(padding=SAME)
    net.output("y", net.add(operation, x, weights, output=output))
    elements = random.choice([low, low + 255], (1, 8, 6, 256))
    elements[:, :3, :3], elements[:, 4:, :3] = low, low + 255
    assert "winograd_u8" in kernels_of(net, isa)
    check_against_reference(net, {"x": elements.astype(kind.dtype)}, isa)


def _with_sum() -> tuple[Network, dict[str, Array]]:
    """A layer to whose output another tensor is added."""
    net, inputs = convolution(replace(LAYER, shape=(1, 9, 7, 32)))
    y = net.build().outputs[0]
    other = net.input("r", y.info)
    addition = ops.ElementwiseBinary(ops.BinaryOperation.ADD, activation=RELU6)
    net.output("z", net.add(addition, y, other, output=y.info))
    return net, {**inputs, "r": random_array(other.info, 1)}


@by_isa
def test_another_tensor_is_added(isa: Isa) -> None:
    net, inputs = _with_sum()
    check_against_reference(net, inputs, isa)


@by_isa
@pytest.mark.parametrize("num_threads", [2, 5])
def test_threads_share_the_tiles(num_threads: int, isa: Isa) -> None:
    net, inputs = convolution(CASES["tiles beyond the image"])
    graph = net.build()
    program = lower_region(SubgraphView.of(graph, graph.layers), isa, num_threads)
    output = np.zeros(graph.output_infos[0].known_shape, np.int8)
    run_in_turn(program, isa, [inputs["x"], output], num_threads)
    np.testing.assert_array_equal(output, run_reference(net, inputs)["y"])


def test_weights_are_transformed() -> None:
    weights = np.zeros((1, 3, 3, 2), np.int64)
    weights[0, :, :, 0] = [[1, 2, 3], [4, 5, 6], [7, 8, 9]]
    packed = pack_winograd_u8(weights, 1).reshape(4, 4, 2)
    # By hand: 2 w0, w0 + w1 + w2, w0 - w1 + w2, 2 w2, in both directions.
    expected = [[4, 12, 4, 12], [24, 45, 15, 36], [8, 15, 5, 12], [28, 48, 16, 36]]
    np.testing.assert_array_equal(packed[..., 0], expected)


def _chosen(isa: Isa, case: Case) -> bool:
    """Whether a layer is computed so, by the figures of a processor with the instruction set."""
    graph = convolution(case)[0].build()
    choices = Choices(isa, HASWELL if isa.vector_bytes == 32 else ZEN4)
    program = lower_region(SubgraphView.of(graph, graph.layers), isa, 1, choices)
    return "winograd_u8" in {kernel.name for kernel in program.kernels}


def test_only_layers_that_gain_are_chosen() -> None:
    gaining = replace(LAYER, shape=(1, 32, 32, 64), filters=64)
    for isa in ISAS:
        assert _chosen(isa, gaining)
        assert isa.vector_bytes > 32 or _chosen(
            isa, replace(LAYER, shape=(1, 64, 64, 16), filters=16)
        )
        for other in (
            replace(gaining, stride=(2, 2)),
            replace(gaining, kernel=(5, 5)),
            replace(gaining, shape=(1, 8, 8, 8)),
            replace(gaining, shape=(1, 1, 1, 64)),
            # Bytes are added in 16 bits.
            replace(gaining, shape=(1, 32, 32, 32), filters=32, weights_spread=2),
        ):
            assert not _chosen(isa, other), other
    for isa in set(ALL_ISAS) - set(ISAS):
        assert not _chosen(isa, gaining)
