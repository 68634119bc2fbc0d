"""Saved parts are taken if their backend takes them, and made anew with the reason if not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armpy
from armpy import Model
from armpy.backend import (
    OptimizationViews,
    ProgramCheck,
    ProgramFit,
    SavedProgram,
    Substitution,
)
from armpy.errors import BackendError
from armpy.graph import SubgraphView
from armpy.ops import PreCompiled
from armpy_testing.backends.fake_backends import runtime_of
from armpy_testing.backends.scripted_backend import Call, ScriptedBackend, declaration
from armpy_testing.models.networks import chain
from tests.support.prepared_models import inputs_of, prepared_model, save_two_inputs, two_inputs

files = pytest.importorskip("armpy_numba_acc.files", reason="Numba is not installed")
pytest.importorskip("numba", reason="Numba is not installed")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_two_inputs(tmp_path_factory.mktemp("parts") / "two.armpy")


@pytest.fixture(scope="module")
def expected() -> dict[str, bytes]:
    return outputs(prepared_model(two_inputs()))


def outputs(model: Model) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in model.run(inputs_of()).items()}


def raising(error: BaseException) -> Callable[..., Any]:
    def fail(*_: object) -> Any:
        raise error

    return fail


def answering(answer: object) -> Callable[..., Any]:
    return lambda *_: answer


@pytest.mark.parametrize(
    ("member", "faulty"),
    [
        ("check", answering(ProgramCheck(ProgramFit.FOREIGN, "it is for the moon"))),
        ("check", answering(ProgramCheck(ProgramFit.REBUILD, "it is old"))),
        ("check", answering(ProgramCheck("accepted", "no fit"))),  # type: ignore[arg-type]
        ("check", raising(BackendError("no check"))),
        ("check", raising(RuntimeError("no check"))),
        ("load", raising(OSError("no program"))),
        ("load", raising(BackendError("no program"))),
        ("load", raising(armpy.ParserError("no program"))),
    ],
)
def test_what_its_backend_does_not_take_is_made_anew(
    member: str,
    faulty: Callable[..., Any],
    path: Path,
    expected: dict[str, bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(files.NumbaPrograms, member, faulty)
    model = armpy.load(path)
    assert not model.is_light
    assert outputs(model) == expected
    placement = model.placement
    assert placement is not None
    assert {layer.backend for layer in placement.layers} == {"NumbaAcc"}


@pytest.mark.parametrize(
    ("member", "faulty"),
    [
        ("check", answering(5)),
        ("check", raising(ZeroDivisionError())),
        ("load", raising(ZeroDivisionError())),
        ("load", raising(SystemExit())),
        ("load", answering(None)),
    ],
)
def test_a_fault_in_what_takes_programs_stays_its_own(
    member: str,
    faulty: Callable[..., Any],
    path: Path,
    expected: dict[str, bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On the ordinary path, which a front-end's absence and other options lead to."""
    monkeypatch.setattr(files.NumbaPrograms, member, faulty)
    model = armpy.load(path, on_fallback="warn")
    assert outputs(model) == expected


def test_programs_are_checked_before_they_are_read(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    check, load = files.NumbaPrograms.check, files.NumbaPrograms.load

    def checked(self: Any, about: Mapping[str, object], options: Any) -> ProgramCheck:
        calls.append("check")
        return check(self, about, options)  # type: ignore[no-any-return]

    def loaded(self: Any, saved: SavedProgram) -> object:
        calls.append("load")
        assert all(isinstance(saved.parts[name], bytes) for name in saved.code)
        return load(self, saved)

    monkeypatch.setattr(files.NumbaPrograms, "check", checked)
    monkeypatch.setattr(files.NumbaPrograms, "load", loaded)
    assert armpy.load(path).is_light
    assert calls[0] == "check"
    assert calls.count("load") == calls.count("check")


def all_but_the_last_layer(call: Call) -> OptimizationViews:
    """Compile a part without its last layer, which stays as it is."""
    view = call.arguments["view"]
    assert isinstance(view, SubgraphView)
    *most, last = view.layers
    views = OptimizationViews(untouched=[view.part([last])])
    compiled = view.part(most)
    shapes = tuple(value.info.known_shape for value in compiled.outputs)
    program = PreCompiled(compiled, shapes)
    views.substitutions.append(Substitution.by_operation(compiled, program))
    return views


def test_layers_that_a_backend_left_as_they_are_are_so_from_the_file(tmp_path: Path) -> None:
    declared = declaration(keeps_programs=True)
    backend = ScriptedBackend("Npu", {"optimize": all_but_the_last_layer}, declared=declared)
    x = np.ones(4, np.float32)
    with Model(chain(3), runtime_of(backend)) as model:
        right = model.run({"x": x})["y"]
        model.save(tmp_path / "chain.armpy")
    backend.forget()
    with armpy.load(tmp_path / "chain.armpy", runtime=runtime_of(backend)) as model:
        np.testing.assert_array_equal(model.run({"x": x})["y"], right)
        placement = model.placement
    assert backend.calls_of("optimize") == []
    assert len(backend.calls_of("load")) == 1
    assert placement is not None
    assert [use.is_hit for use in placement.cache_uses] == [True]
