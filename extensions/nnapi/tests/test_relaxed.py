"""Relaxed models: backends that can compute float32 less exactly may do so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from armpy.backend import BackendOption, OptionScope, OptionValues
from armpy_nnapi import Compilation, ModelBuilder
from armpy_testing.backends.scripted_backend import ScriptedBackend, declaration

from .nnapi_models import FLOAT_2, devices_of, floats

FAST = BackendOption("fast_math_enabled", False, "May be quick.", OptionScope.MODEL)


class WithOptions(ScriptedBackend):
    """Declares options; those of each network are in its calls."""

    def __init__(self, options: Sequence[BackendOption] = (), feature_level: int = 30) -> None:
        super().__init__(declared=declaration(feature_level=feature_level))
        self._options = options

    @property
    def options(self) -> Sequence[BackendOption]:
        return self._options


def compile_sum(
    backend: WithOptions,
    *,
    is_relaxed: bool,
    given: Mapping[str, object] | None = None,
    by_device: bool = False,
) -> None:
    """Compile a model of one sum and run it."""
    options = {"Scripted": given} if given else {}
    with devices_of(backend, backend_options=options) as manager:
        builder = ModelBuilder(manager)
        total = builder.add(builder.input(FLOAT_2), builder.input(FLOAT_2))
        builder.model.relax_computation_float32_to_float16(is_relaxed)
        model = builder.finish(total)
        devices = manager.devices[:1]
        compilation = (
            Compilation.create_for_devices(model, devices) if by_device else Compilation(model)
        )
        compilation.finish()
        assert compilation(floats(1, 2), floats(3, 4))[0].tolist() == [4, 6]


def options_received(
    *options: BackendOption,
    is_relaxed: bool,
    given: Mapping[str, object] | None = None,
    by_device: bool = False,
) -> list[OptionValues]:
    """Options that a backend receives for a model with one sum."""
    backend = WithOptions(options)
    compile_sum(backend, is_relaxed=is_relaxed, given=given, by_device=by_device)
    return [call.arguments["request"].model_options for call in backend.calls_of("optimize")]


@pytest.mark.parametrize("by_device", [False, True])
def test_the_option_is_set_for_relaxed_models_only(by_device: bool) -> None:
    assert options_received(FAST, is_relaxed=True, by_device=by_device) == [
        {"fast_math_enabled": True}
    ]
    for options in options_received(FAST, is_relaxed=False, by_device=by_device):
        assert not options.get("fast_math_enabled", False)


def test_what_the_managers_options_say_is_kept() -> None:
    options = {"fast_math_enabled": False}
    assert options_received(FAST, is_relaxed=True, given=options) == [options]
    other = BackendOption("depth", 3, "How deep.", OptionScope.MODEL)
    expected = {"fast_math_enabled": True, "depth": 5}
    assert options_received(FAST, other, is_relaxed=True, given={"depth": 5}) == [expected]


@pytest.mark.parametrize("is_relaxed", [False, True])
@pytest.mark.parametrize("level", [27, 28, 30])
def test_every_backend_has_the_field_from_the_level_that_defines_it(
    is_relaxed: bool, level: int
) -> None:
    backend = WithOptions(feature_level=level)
    compile_sum(backend, is_relaxed=is_relaxed)
    received = {call.arguments["request"].relaxed for call in backend.calls_of("optimize")}
    received |= {c.arguments["network"].relaxed for c in backend.calls_of("create_factory")}
    assert received == {is_relaxed and level > 27}
