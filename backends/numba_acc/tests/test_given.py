"""Code from files takes the compiler's place; without either, NumbaAcc takes no layers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from armpy_numba_acc import ahead, backend, options
from armpy_numba_acc.machine import compiler
from armpy_numba_acc.machine.kernel import Kernel
from armpy_numba_acc.machine.targets import Target, named_target
from armpy_numba_acc.program.program import Program
from armpy_numba_acc.runtime.instance import PYTHON_CALL, Code, Instance
from armpy_numba_acc.runtime.threads import WORKER
from armpy_numba_acc.store import given, host, objects
from armpy_numba_acc.store.given import Origin, addresses_of, offer

from armpy import Model, Runtime, RuntimeOptions
from armpy.errors import BackendUnavailableError, InvalidArgumentError
from armpy.graph import SubgraphView
from armpy.ops.operation import Array

from .networks import convolutions, image

NO_COMPILER = "no compiler: pip install numba llvmlite"
X = image(size=8, channels=4)


@pytest.fixture(autouse=True)
def nothing_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither code from files nor loaded code is there."""
    for name, empty in (("_OFFERED", {}), ("_ISAS", [])):
        monkeypatch.setattr(given, name, empty)
    monkeypatch.setattr(objects, "_ADDRESSES", {})


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
    caches = (compiler.missing_compiler, host.known_isas, options._known_isa, backend._warn_once)
    for each in caches:
        each.cache_clear()
    yield
    monkeypatch.undo()
    for each in caches:
        each.cache_clear()


def runtime_on(*backends: str) -> Runtime:
    return Runtime(RuntimeOptions(backends=backends))


def expected() -> Array:
    with Model(convolutions(8, 4), runtime_on("CpuRef")) as model:
        return model.run(X)["y"]


def test_a_program_runs_with_the_code_that_it_came_with(
    compiled: tuple[Target, Program, dict[Kernel, bytes]], no_compiler: None
) -> None:
    aim, program, codes = compiled
    code = Code(program, aim.isa, addresses=addresses_of(codes))
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
    with pytest.raises(BackendUnavailableError, match="python_call_16 missing"):
        Code(program, aim.isa, addresses=addresses)


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
        code = Code(program, isa, addresses=addresses, most_threads=most)
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
    with pytest.raises(BackendUnavailableError, match=r"cannot be loaded.*Compile the model again"):
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


def test_a_network_is_lowered_and_runs_with_code_from_a_file(
    compiled: tuple[Target, Program, dict[Kernel, bytes]],
    no_compiler: None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    aim, _, codes = compiled
    assert offer(aim.isa, codes, Origin.here()) == ""
    result, layers, _ = run_on_both()
    assert layers == {"NumbaAcc"}
    np.testing.assert_allclose(result, expected(), rtol=1e-5, atol=1e-6)
    assert not caplog.records


def test_a_kernel_that_is_missing_moves_its_layers_elsewhere(
    compiled: tuple[Target, Program, dict[Kernel, bytes]], no_compiler: None
) -> None:
    aim, program, codes = compiled
    kernel = next(k for k in program.kernels if k.name.startswith("convolution"))
    offer(aim.isa, {k: code for k, code in codes.items() if k != kernel}, Origin.here())
    result, layers, report = run_on_both()
    assert layers == {"CpuRef"}
    assert NO_COMPILER in report
    assert kernel.symbol in report
    np.testing.assert_array_equal(result, expected())


def test_code_from_a_file_is_used_before_the_compiler_is(
    compiled: tuple[Target, Program, dict[Kernel, bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    aim, _, codes = compiled
    offer(aim.isa, codes, Origin.here())

    def fail(*_: object) -> None:
        raise AssertionError("object code was looked for")

    monkeypatch.setattr(objects, "object_codes", fail)
    assert objects.kernel_addresses([*codes], aim.isa).keys() == codes.keys()


@pytest.mark.parametrize(
    ("changed", "reason"),
    [({"abi": "0"}, "in another way"), ({"sources": "0"}, "from other sources")],
)
def test_code_of_another_armpy_is_not_shared(changed: dict[str, str], reason: str) -> None:
    assert len(Origin.here().sources) == 32
    isa = ahead.target("host").isa
    assert reason in offer(isa, {}, replace(Origin.here(), **changed))
    assert given.offered_isa() is None


def test_code_is_not_shared_where_its_sources_are_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(given, "sources_digest", lambda: "")
    assert "from other sources" in offer(ahead.target("host").isa, {}, Origin.here())


def test_the_first_code_decides_what_is_lowered_for(no_compiler: None) -> None:
    first, second = (named_target(name).isa for name in ("x86-64-v3", "x86-64-v4"))
    for isa in (first, second):
        assert offer(isa, {}, Origin.here()) == ""
    assert options.Settings.of().isa == first
    with pytest.raises(InvalidArgumentError, match="cannot be used"):
        options.Settings.of({"isa": "amx-emulated-or-not"})


def test_a_compiler_is_used_for_what_the_processor_has() -> None:
    best = options.Settings.of().isa
    offer(named_target("x86-64-v2").isa, {}, Origin.here())
    assert options.Settings.of().isa == best
