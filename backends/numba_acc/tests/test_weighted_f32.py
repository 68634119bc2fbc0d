"""Convolutions of float32: fewer multiplications, and the choice of tiles."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from armpy_numba_acc.lowering.patches import Patches
from armpy_numba_acc.lowering.tiles import F32, Tile, tile_of
from armpy_numba_acc.machine.cost_model.figures import BUILT_IN, SAPPHIRE_RAPIDS, ZEN4
from armpy_numba_acc.machine.cost_model.model import FinishCost, MachineModel
from armpy_numba_acc.machine.isa import Isa, make_isa
from armpy_numba_acc.machine.memory import Buffer
from armpy_numba_acc.machine.space import Space
from armpy_numba_acc.packing.winograd import pack_winograd_f32
from armpy_numba_acc.passes.region import lower_region
from armpy_numba_acc.program.choices import Choices

from armpy import DataType, Network, TensorInfo, ops
from armpy.graph import SubgraphView
from armpy.ops.operation import Array
from armpy.ops.shapes import PaddingSpec

from .support import (
    ISAS,
    check_against_reference,
    program_of,
    random_array,
    run_in_turn,
    run_reference,
)

FLOAT32 = DataType.FLOAT32
SAME, VALID = ops.Padding.SAME, ops.Padding.VALID
NONE, RELU, RELU6 = (getattr(ops.FusedActivation, name) for name in ("NONE", "RELU", "RELU6"))


class Case(NamedTuple):
    """A convolution; weights are small where they are to be."""

    image: tuple[int, ...]  # or a volume
    filters: int
    kernel: tuple[int, ...] = (3, 3)
    stride: tuple[int, ...] = (1, 1)
    padding: PaddingSpec = SAME
    activation: ops.FusedActivation = NONE
    has_residual: bool = False
    scale: float = 1.0
    dilation: tuple[int, ...] = (1, 1)


FEWER_PRODUCTS = {
    "whole tiles": Case((1, 8, 8, 16), 64),
    "tiles beyond the image": Case((2, 9, 7, 32), 48, activation=RELU, has_residual=True),
    "no padding": Case((1, 13, 11, 64), 32, padding=VALID, has_residual=True),
    "a clamp that cuts large sums": Case((1, 9, 12, 64), 32, activation=RELU6),
    "many channels": Case((1, 10, 16, 128), 64, scale=0.05),
    "channels that fill no register": Case((1, 12, 9, 21), 43, has_residual=True),
    "gaps": Case((2, 21, 26, 24), 32, padding=((3, 1), (0, 2)), dilation=(2, 3), has_residual=True),
    "slices": Case(
        (2, 3, 8, 12, 32), 24, (1, 3, 3), (1, 1, 1), has_residual=True, dilation=(1, 1, 1)
    ),
    "volumes with gaps": Case(
        (2, 9, 8, 9, 20), 32, (3, 3, 3), (2, 1, 1), ((3, 1), (2, 0), (1, 3)), dilation=(2, 1, 2)
    ),
}


def network_of(case: Case) -> tuple[Network, dict[str, Array]]:
    """A network with the layer, and inputs for it."""
    random = np.random.default_rng(3)
    network = Network()
    x = network.input("x", TensorInfo(case.image, FLOAT32))
    shape = (case.filters, *case.kernel, case.image[-1])
    weights = network.constant((case.scale * random.normal(size=shape)).astype(np.float32))
    bias = network.constant(random.normal(size=case.filters).astype(np.float32))
    kind: Any = ops.Convolution2d if len(case.kernel) == 2 else ops.Convolution3d
    operation = kind(
        stride=case.stride,
        dilation=case.dilation,
        padding=case.padding,
        activation=case.activation,
    )
    y = network.add(operation, x, weights, bias)
    inputs = {"x": random_array(x.info)}
    if case.has_residual:
        other = network.input("r", y.info)
        inputs["r"] = random_array(y.info, 1)
        y = network.add(ops.ElementwiseBinary(ops.BinaryOperation.ADD), y, other)
    network.output("y", y)
    return network, inputs


def isas_for(name: str) -> list[Isa]:
    """The best instruction set and one of the others: making kernels takes long."""
    others = ISAS[1:]
    number = [*FEWER_PRODUCTS].index(name)
    return [ISAS[0], *others[number % max(1, len(others)) :][:1]]


def kernels_of(network: Network, isa: Isa) -> set[str]:
    """Families of kernels that a network is computed by."""
    program = program_of(network, isa)
    return {kernel.name for kernel in program.kernels}


@pytest.mark.slow
@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", FEWER_PRODUCTS)
def test_convolutions_with_fewer_multiplications(name: str) -> None:
    network, inputs = network_of(FEWER_PRODUCTS[name])
    expected = run_reference(network, inputs)
    for isa in isas_for(name):
        assert "winograd_f32" in kernels_of(network, isa)
        check_against_reference(network, inputs, isa, expected)


@pytest.mark.parametrize("num_threads", [2, 5])
def test_threads_share_the_tiles(num_threads: int) -> None:
    network, inputs = network_of(FEWER_PRODUCTS["tiles beyond the image"])
    graph = network.build()
    program = lower_region(SubgraphView.of(graph, graph.layers), ISAS[0], num_threads)
    output = np.full(graph.output_infos[0].known_shape, np.nan, np.float32)
    run_in_turn(program, ISAS[0], [inputs["x"], inputs["r"], output], num_threads)
    expected = run_reference(network, inputs)["y"]
    np.testing.assert_allclose(output, expected, rtol=1e-6, atol=1e-5 * np.abs(expected).max())


def test_layers_that_would_gain_nothing_are_multiplied_one_by_one() -> None:
    for case in (
        Case((1, 8, 8, 16), 16, stride=(2, 2)),
        Case((1, 8, 8, 16), 16, (5, 5)),
        Case((1, 8, 8, 8), 16),
        Case((1, 1, 1, 16), 16),
        Case((1, 4, 4, 256), 512),
    ):
        assert "winograd_f32" not in kernels_of(network_of(case)[0], ISAS[0])


def test_weights_are_transformed_exactly_where_they_can_be() -> None:
    weights = np.zeros((1, 3, 3, 1), np.float32)
    weights[0, :, :, 0] = [[1, 2, 3], [4, 5, 6], [7, 8, 9]]
    packed = pack_winograd_f32(weights, (1, 1), 1).reshape(4, 4)
    # By hand: w0 over -1, half of (w0 + w1 + w2), half of (w0 - w1 + w2), w2, in both directions.
    expected = [[1, -3, -1, -3], [-6, 11.25, 3.75, 9], [-2, 3.75, 1.25, 3], [-7, 12, 4, 9]]
    np.testing.assert_array_equal(packed, expected)


def tile_for(model: MachineModel, columns: int, steps: int = 144) -> Tile:
    features = frozenset(("sse4.2", "avx", "avx2", "fma", "f16c", "bmi", "bmi2", "popcnt"))
    isa = make_isa("avx512", "x86_64-pc-linux-gnu", "generic", features)
    patches = Patches(Buffer(Space.ARENA, 0), 1, 1, 3136, 0, 0, steps * 4, (0,), steps)
    return tile_of(Choices(isa, model), F32, patches, columns)


def test_half_registers_are_used_where_the_processor_splits_them() -> None:
    for model, halves in ((ZEN4, 3), (SAPPHIRE_RAPIDS, 0)):
        assert tile_for(model, 24).half_vectors == halves


def test_tiles_are_as_large_as_the_processor_needs_them() -> None:
    """Zen 4 stores small tiles while it computes the next ones; Intel's wants more sums at once."""
    assert tile_for(ZEN4, 128)[:2] == (7, 1)
    assert tile_for(SAPPHIRE_RAPIDS, 512, steps=512)[:2] == (14, 2)


def test_a_machine_on_which_another_tile_is_cheap_gets_that_one() -> None:
    cheap = FinishCost("f32", tile_ns=0.0, register_ns=0.0, turn_ns=50.0)
    model = replace(ZEN4, finishes=(cheap,))
    tile = tile_for(model, 1024)
    assert tile.rows * tile.vectors > 20
    slow_broadcasts = tuple(replace(width, broadcast_ns=10.0) for width in ZEN4.widths)
    assert tile_for(replace(ZEN4, widths=slow_broadcasts), 1024).vectors > 2


@pytest.mark.parametrize("model", BUILT_IN.values(), ids=str)
@pytest.mark.parametrize("size", [(6, 6), (14, 14), (28, 28)], ids=str)
def test_the_way_does_not_depend_on_how_many_images_there_are(
    size: tuple[int, int], model: MachineModel
) -> None:
    """Sums in another order differ in their last bits."""
    ways = set()
    for images in (1, 2, 7):
        network, _ = network_of(Case((images, *size, 64), 64, activation=RELU))
        graph = network.build()
        view, isa = SubgraphView.of(graph, graph.layers), ISAS[0]
        program = lower_region(view, isa, 1, Choices(isa, model))
        # Of Winograd's algorithm, the pixels of its tiles.
        ways.add(next((k.parameters[:2] for k in program.kernels if "winograd" in k.name), None))
    assert len(ways) == 1
