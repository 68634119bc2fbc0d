"""The samples of ``armpy new-backend``, built with changes, and a network that they run."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from string import Template

import numpy as np
import pytest
from armpy_reference import ReferenceBackend

from armpy import Model, Network, Runtime, RuntimeOptions, TensorInfo
from armpy.graph import Graph, SubgraphView
from armpy.ops import (
    Activation,
    ActivationFunction,
    BinaryOperation,
    ElementwiseBinary,
    FullyConnected,
)
from armpy.ops.operation import Array
from armpy.plugins import BackendRegistry
from armpy.types import DataType

pytest.importorskip("armpy_native")
if shutil.which("cc") is None:
    pytest.skip("there is no C compiler", allow_module_level=True)

from armpy_native import HEADER, open_library
from armpy_native.backend import device_of

from armpy_conformance.cli import new_backend

TEMPLATES = Path(new_backend.__file__).parent / "templates"
STRICT = ["-pedantic", "-Wall", "-Wextra", "-Werror"]


def source(style: str = "c") -> str:
    """The source text of a sample, in C or C++."""
    words = {"title": "Acme Npu", "vendor": "Acme", "backend_id": "AcmeNpu"}
    template = TEMPLATES / style / f"library.{style}.template"
    return Template(template.read_text("utf-8")).substitute(words)


def build(folder: Path, text: str, name: str = "libacme.so", *flags: str, style: str = "c") -> Path:
    """Compile a library in C or C++."""
    if style == "cpp" and shutil.which("c++") is None:
        pytest.skip("there is no C++ compiler")
    file = folder / f"{name}.{style}"
    file.write_text(text, "utf-8")
    shutil.copy(TEMPLATES / "library" / "model.h.template", folder / "model.h")
    path = folder / name
    compiler = {"c": ["cc", "-std=c99"], "cpp": ["c++", "-std=c++17"]}[style]
    command = [*compiler, *STRICT, *flags, "-O2", "-shared", "-fPIC", "-fvisibility=hidden"]
    command += [f"-I{HEADER.parent}", "-o", str(path), str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return path


def network(size: int = 8) -> Graph:
    """A fully connected layer with Relu, an addition, and a layer that the sample lacks."""
    net = Network("small")
    x = net.input("x", TensorInfo((2, size), DataType.FLOAT32))
    weights = np.arange(4 * size, dtype=np.float32).reshape(4, size) / 10 - 1
    y = net.add(FullyConnected(), x, net.constant(weights), name="dense")
    y = net.add(Activation(ActivationFunction.RELU), y, name="relu")
    y = net.add(ElementwiseBinary(BinaryOperation.ADD), y, y, name="add")
    net.output("y", net.add(Activation(ActivationFunction.TANH, 1.0, 1.0), y, name="tanh"))
    return net.build()


def runtime_of(path: Path, **options: object) -> Runtime:
    registry = BackendRegistry()
    library = open_library(str(path))
    registry.register("AcmeNpu", library)
    registry.register("CpuRef", ReferenceBackend)
    chosen = RuntimeOptions(backends=["AcmeNpu", "CpuRef"], registry=registry, **options)  # type: ignore[arg-type]  # as given
    return Runtime(chosen)


def expected(x: np.ndarray) -> np.ndarray:
    with Model(network()) as model:
        answer = model(x)
    assert isinstance(answer, np.ndarray)
    return answer


def run_part(path: Path) -> Array:
    """Compile the layers that the sample has, and execute them on ones."""
    device_of(str(path), "{}")
    backend = open_library(str(path))()
    graph = network()
    view = SubgraphView.of(graph, graph.layers[:3])
    engine = backend.get_engine()
    program = engine.compile(backend.convert(view), engine.describe({}))
    result = np.empty((2, 4), np.float32)
    program.execute([np.ones((2, 8), np.float32)], [result])
    return result
