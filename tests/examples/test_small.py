"""The small examples: one file for one thing that a backend can do, and what they share."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from armpy.network import Network
from armpy.ops.operation import Operation
from armpy.runtime import Model, Runtime, RuntimeOptions
from armpy.tensor import TensorInfo
from armpy.testing import run_conformance
from armpy.types import DataType
from tests.support.compiled_modules import require_compiler
from tests.support.example_backends import EXAMPLES
from tests.support.networks import ADD, MUL, floats

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
    result = run_conformance("ExampleCompiled", runtime_options=options)
    assert not result.problems
    assert result.layers_run > 0


def test_its_kernel_refuses_arrays_that_do_not_fit(folder: Path) -> None:
    options = RuntimeOptions(["ExampleCompiled"], dynamic_backends_path=compiled(folder))
    runtime = Runtime(options)
    module = sys.modules[_module_of(runtime, "Compiled")]
    with pytest.raises(ValueError, match="different sizes"):
        module.multiply(floats(1, 2), floats(1, 2), floats(0))


def _module_of(runtime: Runtime, name: str) -> str:
    """The private name of a module."""
    runtime.registry.available()
    return next(n for n in sys.modules if n.endswith(f".Example_{name}_backend"))
