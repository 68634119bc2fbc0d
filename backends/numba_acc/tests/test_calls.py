"""What native code takes from the arrays of a call."""

from __future__ import annotations

import gc
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest
from armpy_numba_acc.llvm.host import host_isas
from armpy_numba_acc.native import python_function
from armpy_numba_acc.passes.region import lower_region
from armpy_numba_acc.runtime.instance import Instance, LoadedCode

from armpy import Model, Network
from armpy.errors import BackendError, BackendUnavailableError
from armpy.graph import Graph, SubgraphView
from armpy_testing.changed_arrays import HARMLESS, HARMLESS_FOR_INPUTS
from armpy_testing.models.networks import ADD, chain, f32, floats
from armpy_testing.threads import in_threads

from .networks import convolutions, runtime_of, small

ISA = host_isas()[0]


def code_of(network: Network | Graph) -> LoadedCode:
    graph = network.build() if isinstance(network, Network) else network
    return LoadedCode(lower_region(SubgraphView.of(graph, graph.layers), ISA), ISA)


@pytest.fixture
def model() -> Model:
    """``y = x + 3`` on vectors of 4."""
    return Model(chain(3), runtime_of())


@pytest.mark.parametrize("name", [*HARMLESS, *HARMLESS_FOR_INPUTS])
def test_arrays_are_used_where_they_are_now(model: Model, name: str) -> None:
    x, y = floats(1, 2, 3, 4), floats(0, 0, 0, 0)
    model.run({"x": x}, {"y": y})
    assert y.tolist() == [4, 5, 6, 7]
    (HARMLESS | HARMLESS_FOR_INPUTS)[name](x)
    if name in HARMLESS:
        HARMLESS[name](y)
    model.run({"x": x}, {"y": y})
    np.testing.assert_array_equal(y, x.astype(np.float32) + 3)


def test_arrays_of_a_class_of_their_own_are_read_and_written(model: Model, tmp_path: Path) -> None:
    y = np.memmap(tmp_path / "y", np.float32, "w+", shape=(4,))
    results = model.run({"x": np.ma.masked_array([1, 2, 3, 4], dtype=np.float32)}, {"y": y})
    assert results["y"] is y
    assert y.tolist() == [4, 5, 6, 7]


def test_arrays_are_gone_as_soon_as_the_caller_drops_them(model: Model) -> None:
    x, y = floats(1, 2, 3, 4), floats(0, 0, 0, 0)
    model.run({"x": x}, {"y": y})
    gone = [weakref.ref(x), weakref.ref(y)]
    gc.disable()
    try:
        del x, y
        assert [array() for array in gone] == [None, None]
    finally:
        gc.enable()


def test_no_execution_adds_a_reference(model: Model) -> None:
    x, y = floats(1, 2, 3, 4), floats(0, 0, 0, 0)
    before = sys.getrefcount(x), sys.getrefcount(y), sys.getrefcount(np.ndarray)
    for _ in range(100):
        model.run({"x": x}, {"y": y})
    assert (sys.getrefcount(x), sys.getrefcount(y), sys.getrefcount(np.ndarray)) == before


def test_a_program_is_not_run_on_anything_but_its_arrays() -> None:
    instance = Instance(code_of(chain(3)))
    x, y = floats(1, 2, 3, 4), floats(0, 0, 0, 0)
    for tensors in ([x], [x, y, y], []):
        with pytest.raises(BackendError, match=f"Expected 2; got {len(tensors)}"):
            instance.run(tensors)
    with pytest.raises(AttributeError):
        instance.run([x, [0, 0, 0, 0]])  # type: ignore[list-item]  # wrong on purpose
    assert y.tolist() == [0, 0, 0, 0]
    instance.run([x, y])
    assert y.tolist() == [4, 5, 6, 7]


def test_a_tensor_may_be_read_and_written_in_many_places() -> None:
    net = Network()
    inputs = [net.input(f"x{number}", f32(4)) for number in range(12)]
    total = inputs[0]
    for value in (*inputs[1:], *inputs):
        total = net.add(ADD, total, value)
        net.output(f"y{total.id}", total)
    arrays = [np.full(4, number, np.float32) for number in range(12)]
    graph = net.build()
    outputs = [np.zeros(4, np.float32) for _ in graph.outputs]
    Instance(code_of(graph)).run([*arrays, *outputs])
    sums = np.cumsum([*range(12), *range(12)])[1:]
    assert [array.tolist() for array in outputs] == [[number] * 4 for number in sums]


def test_only_long_programs_let_other_threads_run_meanwhile() -> None:
    assert code_of(convolutions()).is_long
    assert not code_of(small()).is_long


@pytest.mark.parametrize("network", [small, convolutions])
def test_threads_run_programs_side_by_side(network: object) -> None:
    net = network()  # type: ignore[operator]
    model = Model(net, runtime_of(1))
    (spec,) = model.inputs
    x = np.random.default_rng(0).normal(size=spec.info.known_shape).astype(np.float32)
    expected = model(x)

    def work(number: int) -> None:
        y = np.zeros_like(expected)
        for _ in range(5):
            y[:] = 0
            model.run({spec.name: x}, {model.outputs[0].name: y})
            np.testing.assert_array_equal(y, expected)

    assert in_threads(work, 4) == []


def test_the_function_that_python_calls_has_a_name_and_goes_with_its_owner() -> None:
    instance = Instance(code_of(chain(3)))
    assert "program" in repr(instance.function)
    owner = weakref.ref(instance._call.obj)
    assert owner() is not None
    del instance
    assert owner() is None


def test_an_interpreter_with_other_objects_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    python_function.check_layout()
    monkeypatch.setattr(python_function, "HEADER_BYTES", 8 + python_function.HEADER_BYTES)
    with pytest.raises(BackendUnavailableError, match="arrays are not laid out as"):
        python_function.check_layout()
