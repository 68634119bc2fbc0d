"""The small examples: one file for one thing that a backend can do, and what they share."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from armpy.backend import (
    Cancellation,
    cancellable,
)
from armpy.errors import (
    BackendError,
    ExecutionCancelledError,
)
from armpy.execution import Runtime, RuntimeOptions
from armpy.graph.network import Network
from armpy.model import Model
from armpy.ops.operation import Operation
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_conformance import run_conformance
from armpy_testing.effort import part_of_kit
from armpy_testing.example_backends import EXAMPLES
from armpy_testing.models.networks import ADD, MUL, floats
from tests.support.compiled_modules import require_compiler

pytestmark = pytest.mark.slow

SMALL = EXAMPLES / "small"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A directory with the examples that need not be compiled."""
    place = tmp_path / "plugins"
    place.mkdir()
    for path in SMALL.glob("Example_*_backend.py"):
        shutil.copy(path, place)
    shutil.copytree(SMALL / "Example_common", place / "Example_common")
    return place


def compiled(folder: Path) -> Path:
    """The same directory with the compiled example."""
    require_compiler()
    done = subprocess.run(
        [sys.executable, str(SMALL / "build.py"), str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


def load(runtime: Runtime, operation: Operation = ADD, num_elements: int = 4) -> Model:
    """One layer of two inputs."""
    net = Network("one layer")
    info = TensorInfo((num_elements,), DataType.FLOAT32)
    net.output("y", net.add(operation, net.input("a", info), net.input("b", info)))
    return Model(net, runtime)


def test_the_compiled_one_multiplies_with_its_own_kernel(folder: Path) -> None:
    options = RuntimeOptions(["ExampleCompiled"], dynamic_backends_path=compiled(folder))
    model = load(Runtime(options), MUL)
    assert model.placement is not None
    assert model.placement.layers_by_backend == {"ExampleCompiled": 1}
    answer = model(floats(1, 2, 3, 4), floats(5, 6, 7, 8))
    np.testing.assert_array_equal(answer, floats(5, 12, 21, 32))


def test_the_compiled_one_passes_the_conformance_kit(folder: Path) -> None:
    options = RuntimeOptions(dynamic_backends_path=compiled(folder))
    part = part_of_kit("contract/threads", "contract/graphs", "ElementwiseBinary")
    result = run_conformance("ExampleCompiled", runtime_options=options, filter=part)
    assert not result.problems
    assert result.layers_run > 0


RULES = {
    "Capabilities": ("executions", "support", "graphs"),
    "MemoryManager": ("memory", "arenas", "tensors"),
}
"""Of the contract, what each is an example of; all rules are tried in the full form."""

NAMES = [*RULES]


def test_every_module_is_tested() -> None:
    assert [path.stem.split("_")[1] for path in sorted(SMALL.glob("*_backend.py"))] == NAMES


@pytest.mark.parametrize(
    "name", [pytest.param("Capabilities", marks=pytest.mark.nightly), "MemoryManager"]
)
def test_each_passes_the_conformance_kit(folder: Path, name: str) -> None:
    options = RuntimeOptions(dynamic_backends_path=folder)
    rules = (f"contract/{area}/" for area in RULES[name])
    parts = part_of_kit(*rules, "ElementwiseBinary")
    result = run_conformance(f"Example{name}", runtime_options=options, filter=parts)
    assert not result.problems
    assert result.layers_run > 0


def test_all_of_them_share_one_module(folder: Path) -> None:
    runtime = Runtime(RuntimeOptions(dynamic_backends_path=compiled(folder)))
    backends = {b for b in runtime.get_device_spec().supported_backends if b.startswith("Example")}
    assert backends == {f"Example{name}" for name in [*NAMES, "Compiled"]}
    group = type(runtime.registry.get("ExampleCapabilities")).__module__.partition(".")[0]
    parts = {n.removeprefix(f"{group}.") for n in sys.modules if n.startswith(f"{group}.")}
    assert {part for part in parts if part.endswith("_backend")} == {
        f"Example_{name}_backend" for name in [*NAMES, "Compiled"]
    }
    assert {"Example_common", "Example_common.elementwise"} <= parts


def chain_of(length: int, num_elements: int = 1024) -> Network:
    """Doublings one after the other, which need two tensors at a time."""
    net = Network("chain")
    value = net.input("x", TensorInfo((num_elements,), DataType.FLOAT32))
    for _ in range(length):
        value = net.add(ADD, value, value)
    net.output("y", value)
    return net


def test_the_manager_has_memory_only_while_networks_run(folder: Path) -> None:
    runtime = Runtime(RuntimeOptions(["ExampleMemoryManager"], dynamic_backends_path=folder))
    module = sys.modules[_module_of(runtime, "MemoryManager")]
    instances: list[Any] = []
    watched = [module.Manager, module.Pool]
    with pytest.MonkeyPatch.context() as patch:
        for kind in watched:

            def remember(self: Any, *arguments: Any, init: Any = kind.__init__) -> None:
                instances.append(self)
                init(self, *arguments)

            patch.setattr(kind, "__init__", remember)
        model = Model(chain_of(9), runtime)
        (manager,) = instances  # memory is made by the first execution
        assert isinstance(manager, module.Manager)
        x = np.arange(1024, dtype=np.float32)
        np.testing.assert_array_equal(model(x), x * 2**9)
    (pool,) = (instance for instance in instances if isinstance(instance, module.Pool))
    assert pool.size_bytes == 2 * 4096  # ten tensors, two at a time
    assert pool.memory is None
    assert not manager.is_acquired
    handle = pool.create_tensor_handle(TensorInfo((1,), DataType.FLOAT32), (0, 0), 0)
    with pytest.raises(BackendError, match="no memory between executions"):
        handle.map()


def test_an_execution_is_stopped_between_two_pieces(folder: Path) -> None:
    options = RuntimeOptions(["ExampleCapabilities"], dynamic_backends_path=folder)
    model = load(Runtime(options), num_elements=1 << 20)
    big = np.ones(1 << 20, np.float32)
    cancellation = Cancellation()
    cancellation.cancel()
    with cancellable(cancellation), pytest.raises(ExecutionCancelledError):
        model(big, big)
    np.testing.assert_array_equal(model(big, big), big * 2)


def _module_of(runtime: Runtime, name: str) -> str:
    """The private name of a module."""
    runtime.registry.available()
    return next(n for n in sys.modules if n.endswith(f".Example_{name}_backend"))
