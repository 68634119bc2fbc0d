"""Programs run with the code that they came with; without a compiler, NumbaAcc takes no layers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from armpy_numba_acc import ahead, backend, options
from armpy_numba_acc.machine import compiler
from armpy_numba_acc.machine.kernel import Kernel
from armpy_numba_acc.machine.processors.targets import Target
from armpy_numba_acc.native import elf
from armpy_numba_acc.program.program import Program
from armpy_numba_acc.runtime.instance import PYTHON_CALL, Instance, LoadedCode
from armpy_numba_acc.runtime.threads import WORKER
from armpy_numba_acc.store import host, objects

from armpy import Model, Runtime, RuntimeOptions
from armpy.errors import BackendUnavailableError
from armpy.graph import SubgraphView
from armpy.ops.operation import Array
from armpy_testing.digits import MODEL

from .networks import convolutions, image
from .support import addresses_of

NO_COMPILER = "no compiler: pip install numba"
X = image(size=8, channels=4)


@pytest.fixture(scope="module")
def compiled() -> tuple[Target, Program, dict[Kernel, bytes]]:
    """A network, compiled for this machine on two threads as if it was another one."""
    isa = ahead.target("host").isa
    aim = Target("like-this", isa, frozenset(), 2)
    graph = convolutions(8, 4).build()
    return aim, *ahead.compile_for(SubgraphView.of(graph, graph.layers), aim)


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Neither Numba nor LLVM can be found, and nothing is on disk."""
    monkeypatch.setattr(compiler, "find_spec", lambda _: None)
    monkeypatch.setenv("ARMPY_NUMBA_CACHE", "off")
    caches = (compiler.missing_compiler, host.known_isas, options._isa_named, backend._warn_once)
    for cache in caches:
        cache.cache_clear()
    yield
    monkeypatch.undo()
    for cache in caches:
        cache.cache_clear()


def runtime_on(*backends: str) -> Runtime:
    return Runtime(RuntimeOptions(backends=backends))


def expected() -> Array:
    with Model(convolutions(8, 4), runtime_on("CpuRef")) as model:
        return model.run(X)["y"]


def test_a_program_runs_with_the_code_that_it_came_with(
    compiled: tuple[Target, Program, dict[Kernel, bytes]],
    no_compiler: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(objects, "_ADDRESSES", {})
    aim, program, codes = compiled
    code = LoadedCode(program, aim.isa, addresses=addresses_of(codes))
    result = np.empty_like(X["x"])
    Instance(code).run([X["x"], result])
    np.testing.assert_allclose(result, expected(), rtol=1e-5, atol=1e-6)
    assert objects._ADDRESSES == {}


def test_a_program_without_all_of_its_code_is_refused(
    compiled: tuple[Target, Program, dict[Kernel, bytes]],
) -> None:
    aim, program, codes = compiled
    addresses = addresses_of(codes)
    del addresses[PYTHON_CALL]
    with pytest.raises(BackendUnavailableError, match=f"{PYTHON_CALL.symbol} missing"):
        LoadedCode(program, aim.isa, addresses=addresses)


def test_a_program_for_more_threads_runs_on_those_that_there_are() -> None:
    graph = convolutions(48, 40).build()
    isa = ahead.target("host").isa
    program, codes = ahead.compile_for(
        SubgraphView.of(graph, graph.layers), Target("like-this", isa, frozenset(), 8)
    )
    addresses = addresses_of(codes)
    assert WORKER in addresses
    x = image(size=48, channels=40)["x"]
    results = []
    for most in (1, 2, None):
        code = LoadedCode(program, isa, addresses=addresses, most_threads=most)
        assert code.num_threads == (most or 8)
        result = np.empty_like(x)
        Instance(code).run([x, result])
        results.append(result)
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])


def test_damaged_code_is_refused_and_never_shown_to_llvm(
    compiled: tuple[Target, Program, dict[Kernel, bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    from armpy_numba_acc.llvm import loader

    monkeypatch.delattr(loader, "load_by_llvm")
    _, _, codes = compiled
    with pytest.raises(elf.UnsupportedError, match="table of sections is damaged"):
        addresses_of({**codes, PYTHON_CALL: codes[PYTHON_CALL][:-100]})


def run_on_both() -> tuple[Array, set[str], str]:
    """Output of a network, where its layers run, and why."""
    with Model(convolutions(8, 4), runtime_on("NumbaAcc", "CpuRef")) as model:
        placement = model.placement
        assert placement is not None
        return model.run(X)["y"], {*placement.layers_by_backend}, placement.to_json()


def test_without_a_compiler_layers_run_elsewhere_and_placement_says_why(
    no_compiler: None, caplog: pytest.LogCaptureFixture
) -> None:
    result, layers, report = run_on_both()
    assert layers == {"CpuRef"}
    assert NO_COMPILER in report
    assert [r.getMessage() for r in caplog.records] == [f"NumbaAcc takes no layers: {NO_COMPILER}"]
    np.testing.assert_array_equal(result, expected())


_FROM_A_DELETED_DIRECTORY = """
import os, sys, tempfile
import armpy
place = tempfile.mkdtemp()
os.chdir(place)
os.rmdir(place)
try:
    armpy.load(sys.argv[1], backends=["NumbaAcc"])
except armpy.ArmpyError as error:
    print(error)
os.chdir("/")
armpy.load(sys.argv[1], backends=["NumbaAcc"]).close()
print("loaded")
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="others keep directories that are used")
def test_a_deleted_working_directory_is_named_by_the_error(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _FROM_A_DELETED_DIRECTORY, str(MODEL)],
        env={**os.environ, "ARMPY_CACHE_DIR": str(tmp_path), "ARMPY_KERNELS": "off"},
        check=True,
        capture_output=True,
        text=True,
    )
    assert "FileNotFoundError" not in ended.stdout
    assert "a working directory, which Numba asks for" in ended.stdout
    assert "Change to a directory that exists" in ended.stdout
    assert ended.stdout.endswith("loaded\n")
