"""No model, however damaged, does anything but run or raise an `NnapiError`.

A failure names the number of the model, which always gives the same one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from armpy.execution import RuntimeOptions
from armpy_nnapi import NnapiError
from armpy_nnapi.compile.compilation import Compilation
from armpy_nnapi.conformance.random_graphs.generator import RandomModel
from armpy_nnapi.description.model_description import ModelDescription
from armpy_nnapi.devices import DeviceManager
from armpy_nnapi.model.model import Model
from armpy_nnapi.run.execution import Execution
from armpy_testing.effort import effort

from .damaged_models import damaged_model
from .model_building import build_model

COUNT = effort(300)
MEMORY_LIMIT_BYTES = 64 << 20
LOOP_TIMEOUT_NS = 50_000_000
PARTS = 10

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def manager() -> Iterator[DeviceManager]:
    options = RuntimeOptions(backends=["CpuRef"], memory_limit_bytes=MEMORY_LIMIT_BYTES)
    with DeviceManager(options) as device_manager:
        yield device_manager


def refusal(build: Callable[[ModelDescription], Model], description: ModelDescription) -> str:
    """The code with which a way to build refuses a model; empty if it does not."""
    try:
        build(description)
    except NnapiError as error:
        return error.code.name
    return ""


def test_both_ways_to_build_a_model_take_the_same_ones() -> None:
    differences = {}
    for number in range(COUNT // PARTS):
        description = damaged_model(number).description
        codes = [refusal(build, description) for build in (build_model, Model.from_description)]
        if codes[0] != codes[1]:
            differences[number] = codes
    assert differences == {}


def try_one(model: RandomModel, manager: DeviceManager) -> str:
    """Run a model if it can be run; return the fault in the outcome, or nothing."""
    try:
        built = Model.from_description(model.description, manager)
        with Compilation.create_for_devices(built, manager.devices) as compilation:
            compilation.finish()
            execution = Execution(compilation)
            execution.set_loop_timeout(LOOP_TIMEOUT_NS)
            execution.run(model.inputs)
    except NnapiError as error:
        return "" if str(error) else "an error without a text"
    except Exception as error:  # noqa: BLE001  # the test looks for any other error
        return f"{type(error).__name__}: {error}"
    return ""


@pytest.mark.parametrize("part", range(PARTS))
def test_damaged_models_run_or_raise_nnapi_errors(part: int, manager: DeviceManager) -> None:
    outcomes = {
        number: try_one(damaged_model(number), manager) for number in range(part, COUNT, PARTS)
    }
    assert {number: text for number, text in outcomes.items() if text} == {}
