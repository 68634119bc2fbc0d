"""Devices of older feature levels get the operations that their level has, with scripted ones."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from armpy_nnapi import (
    DURATION_UNAVAILABLE,
    Compilation,
    DeviceManager,
    DurationCode,
    Execution,
    FeatureLevel,
    Model,
    ModelBuilder,
    ModelOperand,
    OperandCode,
    OperandType,
    PaddingCode,
    ResultCode,
)
from armpy_nnapi.description.model_description import ModelDescription
from armpy_nnapi.extensions.extensions import no_extensions
from armpy_nnapi.lowering.lower_model import layer_levels
from armpy_nnapi.lowering.shapes import with_known_dimensions
from armpy_nnapi.validation.versions import operation_levels
from armpy_testing.backends.scripted_backend import ScriptedBackend, declaration

from .nnapi_models import counting_loop, devices_of, fails, floats

LEVELS = {27: "Oldest", 28: "Old", 29: "Recent", 30: "New"}


def of_level(level: int, backend_id: str = "") -> ScriptedBackend:
    """A device that does everything of a feature level."""
    return ScriptedBackend(backend_id or LEVELS[level], declared=declaration(feature_level=level))


@pytest.fixture
def manager() -> Iterator[DeviceManager]:
    """A device of each level, the oldest preferred, and the reference."""
    with devices_of(*map(of_level, LEVELS)) as device_manager:
        yield device_manager


def one_of_each(manager: DeviceManager) -> Model:
    """Operations of the levels 27, 28, 29 and 30."""
    builder = ModelBuilder(manager)
    x = builder.input(np.float32, (2,))
    added = builder.add(x, floats(1, 1))
    subtracted = builder.sub(added, floats(3, 3))
    return builder.finish(builder.elu(builder.abs(subtracted), alpha=1.0))


def levels_of(model: Model) -> list[tuple[int, ...]]:
    """The levels of the operations of all graphs, with the shapes that are known."""
    known = with_known_dimensions(model.description, no_extensions)
    return [*operation_levels(known)]


def backends_of(compilation: Compilation) -> dict[str, str]:
    """By the operation that a layer was made of, where it runs."""
    placement = compilation.network(()).placement
    assert placement is not None
    return {(layer.origins or (layer.layer,))[0]: layer.backend for layer in placement.layers}


@pytest.mark.parametrize(("said", "level"), [(27, 27), (29, 29), (30, 30), (33, 30)])
def test_a_device_says_its_level_and_none_above_armpy_s(said: int, level: int) -> None:
    with devices_of(of_level(said, "Npu")) as manager:
        assert manager.devices[0].feature_level is FeatureLevel(level)


@pytest.mark.parametrize("level", [26, 0, -1])
def test_a_level_that_there_is_not_is_bad_state(level: int) -> None:
    with devices_of(of_level(level, "Npu")) as manager:
        with fails(ResultCode.BAD_STATE, f"there is no feature level {level}"):
            _ = manager.devices[0].feature_level
        model = one_of_each(manager)
        assert manager.devices[0].get_supported_operations(model) == [False] * 4
        compilation = Compilation(model)
        compilation.finish()
        assert set(backends_of(compilation).values()) == {"CpuRef"}


def test_a_device_is_asked_about_the_slice_of_its_level(manager: DeviceManager) -> None:
    model = one_of_each(manager)
    answers = [device.get_supported_operations(model) for device in manager.devices[:4]]
    assert answers == [
        [True, False, False, False],
        [True, True, False, False],
        [True, True, True, False],
        [True, True, True, True],
    ]


def test_each_operation_runs_on_the_first_device_whose_level_has_it(
    manager: DeviceManager,
) -> None:
    for devices in (None, list(manager.devices[:4])):
        model = one_of_each(manager)
        unfinished = Compilation(model)
        if devices is not None:
            unfinished = Compilation.create_for_devices(model, devices)
        with unfinished as compilation:
            compilation.finish()
            assert compilation(floats(0, 5))[0].tolist() == [2, 3]
            assert list(backends_of(compilation).values()) == [*LEVELS.values()]


@pytest.mark.parametrize("level", LEVELS)
def test_results_of_devices_of_every_level_have_shapes_and_times(level: int) -> None:
    """Drivers of the first levels report no more than an error; the core knows the rest itself."""
    with devices_of(of_level(level)) as manager:
        builder, rows = ModelBuilder(manager), OperandType(OperandCode.TENSOR_FLOAT32, (0, 2))
        model = builder.finish(builder.add(builder.input(rows), floats(1, 1), outputs=rows))
        with Compilation.create_for_devices(model, [manager.devices[0]]) as compilation:
            compilation.finish()
            execution = Execution(compilation)
            execution.set_measure_timing(True)
            full = OperandType(OperandCode.TENSOR_FLOAT32, (3, 2))
            execution.set_input(0, np.ones((3, 2), np.float32), full)
            execution.set_output(0, np.zeros((3, 2), np.float32))
            execution.compute()
            assert execution.get_output_operand_dimensions(0) == (3, 2)
            assert 0 < execution.get_duration(DurationCode.IN_DRIVER) < DURATION_UNAVAILABLE


def test_the_placement_says_that_the_level_is_why(manager: DeviceManager) -> None:
    compilation = Compilation(one_of_each(manager))
    compilation.finish()
    placement = compilation.network(()).placement
    assert placement is not None
    texts = [(r.backend, r.text) for r in placement.refusals if r.layer.startswith("SUB")]
    assert texts == [("Oldest", "it has feature level 27, the operation is of 28")]


def test_what_an_old_form_says_too_does_not_need_a_newer_level() -> None:
    """An explicit layout needs level 29; NHWC says nothing, and is left out when it is finished."""
    with devices_of(of_level(27)) as manager:
        builder = ModelBuilder(manager)
        image = builder.input(np.float32, (1, 2, 2, 1))
        window = {"stride_width": 1, "stride_height": 1, "filter_width": 2, "filter_height": 2}
        pooled = [
            builder.max_pool_2d(image, padding=PaddingCode.VALID, nchw=layout, **window)
            for layout in (False, True)
        ]
        model = builder.finish(*pooled)
        assert manager.devices[0].get_supported_operations(model) == [True, False]


def less_2(builder: ModelBuilder, x: ModelOperand) -> ModelOperand:
    """x + 1 - 3, whose SUB is of level 28; the WHILE around it is of level 30."""
    difference: ModelOperand = builder.sub(builder.add(x, floats(1, 1)), floats(3, 3))
    return difference


def test_operations_in_the_models_of_control_flow_have_levels_of_their_own() -> None:
    with devices_of(of_level(27), of_level(28)) as manager:
        model = counting_loop(less_2, 2, manager=manager)
        assert sorted(levels_of(model), key=len) == [(30,), (29,), (27, 28, 30)]
        with Compilation(model) as compilation:
            compilation.finish()
            (output,) = compilation(floats(0, 1), np.array([0], np.int32))
            assert output.tolist() == [-4, -3]
            backends = backends_of(compilation)
    assert backends["LESS_0"] == backends["ADD_2"] == "CpuRef"
    assert (backends["ADD_0"], backends["SUB_1"]) == ("Oldest", "Old")


def test_of_layers_with_one_name_the_highest_level_counts() -> None:
    parts = []
    for code in (OperandCode.TENSOR_FLOAT32, OperandCode.TENSOR_FLOAT16):
        builder = ModelBuilder()
        x = builder.input(OperandType(code, (2,)))
        parts.append(builder.finish(builder.add(x, x, outputs=[OperandType(code, (2,))])))
    floats32, floats16 = (part.description.main for part in parts)
    both = ModelDescription(floats32, (floats16,))
    assert layer_levels(both, operation_levels(both)) == {"ADD_0": 29}
    alone = ModelDescription(floats32)
    assert layer_levels(alone, operation_levels(alone)) == {"ADD_0": 27}
