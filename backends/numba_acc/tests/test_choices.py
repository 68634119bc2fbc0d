"""What lowerings choose, and that everything they could choose is right."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from armpy_numba_acc.lowering.winograd_f32 import _Decision
from armpy_numba_acc.machine.cost_model.figures import ZEN4
from armpy_numba_acc.machine.cost_model.model import MachineModel
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.passes.region import lower_region
from armpy_numba_acc.program.choices import Choices
from armpy_numba_acc.runtime.instance import Instance, LoadedCode

from armpy import Network
from armpy.graph import SubgraphView, Value
from armpy.ops import Convolution2d, DepthwiseConvolution2d, Padding, Pooling2d
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType
from armpy_testing.effort import IS_CAMPAIGN

from .support import ISAS, random_array, run_reference

SHAPE = (3, 4)
STEP = 1 if IS_CAMPAIGN else 5
"""Each way takes half a second to compile; some are tried unless all are asked for."""


def cost(option: tuple[int, ...]) -> float:
    return option[0]


def test_without_measurements_the_cheapest_is_chosen_and_the_first_of_equal_ones() -> None:
    choices = Choices(ISAS[0], ZEN4)
    assert choices.choose("tile", SHAPE, [(3, 1), (2, 9), (2, 1)], cost, [(1, 1)]) == (2, 9)


def test_what_was_measured_is_chosen_among_all_ways() -> None:
    key = f"tile {ISAS[0].name} 3x4"
    for measured in ((3, 1), (1, 1)):
        choices = Choices(ISAS[0], ZEN4, {key: measured})
        assert choices.choose("tile", SHAPE, [(3, 1), (2, 9)], cost, [(1, 1)]) == measured
        assert choices.choose("tile", (3, 5), [(3, 1), (2, 9)], cost) == (2, 9)


def test_what_does_not_fit_is_not_used_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    key = f"tile {ISAS[0].name} 3x4"
    choices = Choices(ISAS[0], ZEN4, {key: (7, 7)})
    with caplog.at_level(logging.INFO, "armpy.NumbaAcc"):
        assert choices.choose("tile", SHAPE, [(3, 1), (2, 9)], cost) == (2, 9)
    assert f"the measured choice for {key} does not fit" in caplog.text


def test_decisions_are_kept_once_with_the_layers_they_are_about() -> None:
    graph = network(DataType.FLOAT32).build()
    view = SubgraphView.of(graph, graph.layers)
    choices = Choices(ISAS[0], ZEN4)
    lower_region(view, ISAS[0], 1, choices)
    decisions = {key.split(" tile")[0]: d for key, d in choices.made.items() if " tile" in key}
    assert decisions["convolution_f32"].layers == (graph.layers[0],)
    assert decisions["depthwise_f32"].layers == (graph.layers[1],)
    assert all(d.chosen == d.modelled for d in decisions.values())


def info_of(shape: tuple[int, ...], data_type: DataType, scale: float) -> TensorInfo:
    if data_type is DataType.FLOAT32:
        return TensorInfo(shape, data_type)
    return TensorInfo(shape, data_type, Quantization.per_tensor(scale, 0))


def network(data_type: DataType) -> Network:
    """A convolution, a depthwise one and a pooling, all with more than one way to do them."""
    random = np.random.default_rng(0)
    is_float = data_type is DataType.FLOAT32
    net = Network()
    value = net.input("x", info_of((1, 9, 10, 14), data_type, 0.05))

    def constant(shape: tuple[int, ...]) -> Value:
        if is_float:
            return net.constant(random.normal(size=shape).astype(np.float32))
        weights = random.integers(-127, 128, shape).astype(np.int8)
        quantization = Quantization.per_tensor(0.02, 0)
        return net.constant(weights, data_type=DataType.QSYMM_S8, quantization=quantization)

    def output(shape: tuple[int, ...], scale: float) -> TensorInfo:
        return info_of(shape, data_type, scale)

    convolution = Convolution2d(padding=Padding.VALID)
    value = net.add(convolution, value, constant((70, 3, 3, 14)), output=output((1, 7, 8, 70), 1))
    depthwise = DepthwiseConvolution2d(padding=Padding.SAME)
    value = net.add(depthwise, value, constant((1, 3, 3, 70)), output=output((1, 7, 8, 70), 2))
    pooling = Pooling2d(pool_size=(2, 2), stride=(1, 1))
    net.output("y", net.add(pooling, value, output=output((1, 6, 7, 70), 2)))
    return net


@pytest.mark.slow
@pytest.mark.parametrize(
    ("data_type", "isa"), [(DataType.FLOAT32, ISAS[-2 % len(ISAS)]), (DataType.QASYMM_S8, ISAS[0])]
)
def test_every_way_gives_the_same(data_type: DataType, isa: Isa) -> None:
    net = network(data_type)
    graph = net.build()
    view = SubgraphView.of(graph, graph.layers)
    (source,) = view.inputs
    elements = random_array(source.info)
    (expected,) = run_reference(net, {source.name: elements}).values()
    choices = Choices(isa, ZEN4)
    lower_region(view, isa, 1, choices)
    decisions = [decision for decision in choices.made.values() if len(decision.options) > 1]
    assert len(decisions) >= 2
    for number in range(0, max(len(decision.options) for decision in decisions), STEP):
        chosen = {d.key: d.options[number % len(d.options)] for d in decisions}
        output = np.zeros(expected.shape, expected.dtype)
        Instance(LoadedCode(lower_region(view, isa, 1, Choices(isa, ZEN4, chosen)), isa)).run(
            [elements, output]
        )
        allowed = 1e-5 * np.abs(expected).max() if output.dtype.kind == "f" else 1
        difference = np.abs(output.astype(np.float64) - expected)
        assert difference.max() <= allowed, chosen


def test_costs_of_tiles_are_reckoned_once_for_all_sizes_of_images(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A new size of a loaded model asks about them again."""
    choices = Choices(ISAS[0], ZEN4)
    decision = _Decision(choices, columns=64, depth=64, is_cut=False)
    decision(32, 32)
    monkeypatch.setattr(MachineModel, "finish", None)
    assert decision(64, 256) == _Decision(choices, 64, 64, is_cut=False)(64, 256)


def test_large_weights_are_transformed_where_they_are_used_often() -> None:
    """Some are read from memory each time, and take up to twice their memory."""
    choices = Choices(ISAS[0], ZEN4)
    plain = _Decision(choices, columns=512, depth=512, is_cut=False)
    for image, is_used_often in ((28, True), (14, True), (7, False)):
        assert (plain(image, image) >= 0) == is_used_often
    assert _Decision(choices, 512, 512, is_cut=False, steps=(4, 4))(28, 28) >= 0
    # Larger tiles would take more memory.
    assert plain(28, 28) == 0
    assert _Decision(choices, 64, 64, is_cut=False)(28, 28) > 0
