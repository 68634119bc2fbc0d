"""Libraries in C++: what ``armpy_backend.hpp`` makes of exceptions, objects and overrides."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import pytest

from armpy.backend import IEngineProgram
from armpy.errors import (
    ArmpyError,
    BackendError,
    DeadObjectError,
    DeviceNotFoundError,
    ExecutionCancelledError,
    MemoryLimitError,
    UnimplementedError,
)
from armpy.graph import SubgraphView
from armpy.ops.operation import Array

from .sample_library import build, network, run_part, source

pytest.importorskip("armpy_native")

from armpy_native import NativeBackend, open_library

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=[(), ("-fno-rtti",)], ids=["rtti", "no-rtti"])
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library whose functions throw on request, and that saves its programs."""
    text = Path(__file__).with_name("throwing_library.cpp").read_text("utf-8")
    folder = tmp_path_factory.mktemp("cpp")
    return build(folder, text, "libthrows.so", *request.param, style="cpp")


def compiled(library: Path, options: str = "{}") -> tuple[NativeBackend, IEngineProgram]:
    """The layers that the sample has, as a program of a device with options."""
    backend = open_library(str(library))()
    graph = network()
    view = SubgraphView.of(graph, graph.layers[:3])
    engine = backend.get_engine()
    return backend, engine.compile(backend.convert(view), engine.describe({"options": options}))


def result_of(program: IEngineProgram) -> Array:
    """The result of an execution on ones."""
    result = np.empty((2, 4), np.float32)
    program.execute([np.ones((2, 8), np.float32)], [result])
    return result


@pytest.mark.sampled(11)
@pytest.mark.parametrize(
    ("kind", "error", "text"),
    [
        ("lost", DeadObjectError, "no power"),
        ("refused", UnimplementedError, "too small"),
        ("no device", DeviceNotFoundError, "nothing there"),
        ("cancelled", ExecutionCancelledError, "stopped"),
        ("memory", MemoryLimitError, "no memory"),
        ("too large", MemoryLimitError, "no memory"),
        ("standard", BackendError, "index 7"),
        ("long", BackendError, r"x{1007}\.?$"),
        ("number", BackendError, "an exception that is not a std::exception"),
    ],
)
@pytest.mark.parametrize("function", ["open", "describe", "supported", "compile", "execute"])
def test_an_exception_becomes_the_error_of_its_function(
    library: Path, function: str, kind: str, error: type[ArmpyError], text: str
) -> None:
    with pytest.raises(error, match=f"AcmeNpu / {function}: {text}"):
        result_of(compiled(library, f'{{"{function}": "{kind}"}}')[1])


def test_answers_that_are_too_few_and_programs_that_are_nothing_are_named(library: Path) -> None:
    with pytest.raises(BackendError, match="supported: there is not one answer for each operator"):
        compiled(library, '{"short": ""}')
    with pytest.raises(BackendError, match="AcmeNpu / compile: returned no program"):
        compiled(library, '{"nothing": ""}')


def test_programs_and_devices_are_deleted_once_in_order(
    library: Path, caplog: pytest.LogCaptureFixture
) -> None:
    gc.collect()  # devices of other tests
    with caplog.at_level("INFO", logger="armpy.native"):
        options = '{"order": ""}'
        backend, program = compiled(library, options)
        saved = backend.get_engine().save(program, {"options": options})
        again = backend.get_engine().load(saved)
        del backend
        assert caplog.messages == []
        del program, again
        gc.collect()
    assert caplog.messages == ["released", "released", "closed"]


def test_a_program_is_loaded_from_its_saved_form(library: Path) -> None:
    backend, program = compiled(library)
    saved = backend.get_engine().save(program, {})
    assert set(saved.parts) == {"compiled"}
    loaded = backend.get_engine().load(saved)
    np.testing.assert_array_equal(result_of(loaded), result_of(program))


@pytest.mark.parametrize("function", ["save", "load"])
def test_an_exception_of_save_or_load_is_named(library: Path, function: str) -> None:
    options = f'{{"{function}": "standard"}}'
    backend, program = compiled(library, options)
    engine = backend.get_engine()
    with pytest.raises(BackendError, match=f"AcmeNpu / {function}: index 7"):
        engine.load(engine.save(program, {"options": options}))


def test_a_device_that_loads_nothing_has_no_saved_form(tmp_path: Path) -> None:
    path = build(tmp_path, source("cpp"), "libplain.so", style="cpp")
    table = open_library(str(path)).library.table
    assert not table.save
    assert not table.load
    np.testing.assert_array_equal(run_part(path), run_part(build(tmp_path, source())))
