"""Sizes, counts and times that callers give: each is used, or refused with armpy's own error."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import armpy
from armpy import IsolationLimits, NetworkProperties, Runtime, RuntimeOptions
from armpy.backend import ExternalMemory
from armpy.compiler import OptimizerOptions
from armpy.errors import InvalidArgumentError, names_unknown_arguments
from armpy.model import Model
from armpy_testing.digits import MODEL as DIGITS
from armpy_testing.models.networks import chain
from armpy_testing.odd_arguments import ODD, refuses_or_uses

X = {"x": np.ones(4, np.float32)}
FIELDS = [
    *((RuntimeOptions(), name) for name in ("program_cache_size", "memory_limit_bytes")),
    *((RuntimeOptions(), name) for name in ("num_threads", "execution_threads", "loop_timeout_s")),
    *((RuntimeOptions(), name) for name in ("backend_options", "memory_strategies")),
    *((RuntimeOptions(), name) for name in ("custom_allocators", "probe_timeout_s")),
    *((IsolationLimits(), name) for name in ("timeout_s", "grace_s", "start_timeout_s")),
    *((IsolationLimits(), name) for name in ("max_failures", "memory_bytes", "quarantine_s")),
    *((IsolationLimits(), name) for name in ("preparation_timeout_s", "failure_window_s")),
    *((OptimizerOptions(), name) for name in ("preparation_timeout_s", "passes")),
]


@pytest.mark.parametrize(
    ("options", "name"), FIELDS, ids=[f"{type(o).__name__}.{n}" for o, n in FIELDS]
)
def test_options_are_checked_when_they_are_made(options: RuntimeOptions, name: str) -> None:
    refuses_or_uses(lambda argument: replace(options, **{name: argument}))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "call",
    [
        ExternalMemory.shared,
        ExternalMemory.of_array,
        lambda argument: ExternalMemory.of_file_descriptor(argument, 4).map(),
        lambda argument: ExternalMemory.of_file_descriptor(0, argument).map(),
        lambda argument: ExternalMemory.of_file_descriptor(0, 4, offset_bytes=argument).map(),
    ],
    ids=["shared", "of_array", "descriptor", "size", "offset"],
)
def test_memory_of_odd_sizes_is_refused(call: Callable[[object], object]) -> None:
    refuses_or_uses(call)


def test_sizes_of_numpy_are_sizes() -> None:
    memory = ExternalMemory.shared(np.int64(8))  # type: ignore[arg-type]
    assert type(memory.size_bytes) is int
    assert memory.map().shape == (8,)


def test_executions_with_odd_deadlines_and_priorities_are_refused() -> None:
    with Runtime(RuntimeOptions(backends=["CpuRef"], execution_threads=1)) as runtime:
        model = Model(chain(1), runtime)
        refuses_or_uses(lambda argument: model.run(X, deadline_s=argument))  # type: ignore[arg-type]
        refuses_or_uses(lambda argument: model.bind(X, deadline_s=argument)())  # type: ignore[arg-type]
        for argument in (*ODD, 0):
            with pytest.raises(InvalidArgumentError, match="there is no such priority"):
                model.start(X, priority=argument)  # type: ignore[arg-type]
        for number in (90, 100, np.int64(110)):
            future = model.start(X, priority=number)  # type: ignore[arg-type]
            np.testing.assert_array_equal(future.result(30)["y"], X["x"] + 1)


def test_networks_of_odd_ids_are_not_there() -> None:
    with Runtime(RuntimeOptions(backends=["CpuRef"])) as runtime:
        for argument in ODD:
            with pytest.raises(InvalidArgumentError, match="no network is loaded under the id"):
                runtime.enqueue_workload(argument, X)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("call", "name", "text"),
    [
        (armpy.load, "backend", "armpy.load: .*Expected affinity, .*Did you mean 'backends'"),
        (armpy.load, "threads", "Did you mean 'num_threads'"),
        (armpy.load, "providers", "Did you mean 'backends'"),
        (armpy.load, "shapes", r"Leave it out, and call model.reshape\({"),
        (armpy.load, "quantize_input", "Did you mean 'quantize_inputs'"),
        (NetworkProperties, "profile", "NetworkProperties: .*Did you mean 'profiling'"),
        (OptimizerOptions, "fallback", "OptimizerOptions: .*Did you mean 'on_fallback'"),
        (Model.start, "deadline", "Model.start: .*Did you mean 'deadline_s'"),
        (Model.bind, "cancelable", "Model.bind: .*Did you mean 'cancellable'"),
        (Model.prepare, "shape", "Model.prepare: .*Did you mean 'shapes'"),
        (Model.prepare, "colour", "Expected shapes. Leave it out"),
    ],
)
def test_a_misspelt_argument_is_named_with_the_one_that_was_meant(
    call: Callable[..., object], name: str, text: str
) -> None:
    own = [None] * ("self" in inspect.signature(call).parameters)  # is not reached
    with pytest.raises(InvalidArgumentError, match=f"there is no argument '{name}'") as caught:
        call(*own, **{name: 1})
    assert re.search(text, str(caught.value))
    assert isinstance(caught.value.__cause__, TypeError)
    assert name not in inspect.signature(call).parameters
    assert not {"args", "kwargs"} & inspect.signature(call).parameters.keys()


def test_names_in_calls_of_a_model_are_answered_with_the_form() -> None:
    with Model(chain(1)) as model:
        with pytest.raises(InvalidArgumentError, match="Did you mean 'deadline_s'"):
            model.run(X, deadline=1)  # type: ignore[arg-type]
        with pytest.raises(InvalidArgumentError, match=r"Got the names x\. .* model.run\({'x'"):
            model(x=X["x"])  # type: ignore[arg-type]


@pytest.mark.parametrize("is_light", [False, True])
@pytest.mark.parametrize("method", ["warm_up", "prepare"])
def test_a_shape_alone_is_not_one_to_prepare_for(
    method: str, is_light: bool, tmp_path: Path
) -> None:
    with armpy.load(DIGITS, backends=["NumbaAcc", "CpuRef"]) as model:
        model.save(tmp_path / "light.armpy")
    path = tmp_path / "light.armpy" if is_light else DIGITS
    with armpy.load(path, backends=["NumbaAcc", "CpuRef"]) as model:
        assert model.is_light is is_light
        with pytest.raises(InvalidArgumentError, match=r"^shapes: .*Write {'name': \(1, 3\)}"):
            getattr(model, method)([(1, 16, 16, 1)])


def test_an_array_for_a_model_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match=r"an array is no model.*call the model with"):
        armpy.load(np.zeros((2, 3), np.float32))  # type: ignore[arg-type]
    with armpy.load(np.fromfile(DIGITS, np.uint8), backends=["CpuRef"]) as model:  # type: ignore[arg-type]
        assert model.inputs[0].shape == (1, 16, 16, 1)


def test_a_type_error_of_the_function_itself_stays() -> None:
    @names_unknown_arguments()
    def halved(number: float) -> float:
        return number / 2

    assert halved(number=4) == 2
    with pytest.raises(TypeError, match="unsupported operand"):
        halved(number="4")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="missing 1 required"):
        halved()  # type: ignore[call-arg]


def test_none_in_the_place_of_inputs_by_name_is_answered_with_the_form() -> None:
    with (
        Model(chain(1)) as model,
        pytest.raises(
            InvalidArgumentError,
            match=r"got NoneType\. Pass \{'NAME': array\} as the first argument, or call the model",
        ),
    ):
        model.run(None, X)  # type: ignore[arg-type]  # as ONNX Runtime takes them


def test_a_coroutine_function_is_known_as_one() -> None:
    assert inspect.iscoroutinefunction(Model.run_async)
