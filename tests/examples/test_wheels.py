"""The examples that are wheels: built, installed, used with nothing named, removed again."""

from __future__ import annotations

import ast
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from armpy_testing.digits import MODEL as DIGITS
from armpy_testing.example_backends import EXAMPLES, install, own_tests, run_beside
from armpy_testing.models.tflite_writer import OptionValue, TfliteModel

pytestmark = pytest.mark.slow

for library in ("click", "PIL"):
    pytest.importorskip(library)

RUN = ("-m", "armpy", "run")


@pytest.fixture(scope="module")
def compiler_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install("compiler_style", tmp_path_factory.mktemp("compiler"))


@pytest.fixture(scope="module")
def device_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install("device", tmp_path_factory.mktemp("device"))


@pytest.fixture(scope="module")
def float_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """CONV_2D -> RELU -> ADD -> SOFTMAX on float32."""
    model = TfliteModel()
    graph = model.subgraph("main")
    shape = (1, 4, 4, 2)
    x, convolved, positive, total, y = (
        graph.tensor(name, shape, "FLOAT32") for name in ("x", "conv", "relu", "sum", "y")
    )
    weights = np.linspace(-1, 1, 2 * 3 * 3 * 2, dtype=np.float32).reshape(2, 3, 3, 2)
    kernel = graph.tensor("weights", (2, 3, 3, 2), "FLOAT32", data=weights)
    bias = graph.tensor("bias", (2,), "FLOAT32", data=np.array([0.5, -0.5], np.float32))
    options: dict[str, OptionValue] = {"padding": "SAME", "stride_h": 1, "stride_w": 1}
    graph.operator("CONV_2D", [x, kernel, bias], [convolved], options=options)
    graph.operator("RELU", [convolved], [positive])
    graph.operator("ADD", [positive, x], [total], options={})
    graph.operator("SOFTMAX", [total], [y], options={"beta": 1.0})
    graph.inputs(x)
    graph.outputs(y)
    path = tmp_path_factory.mktemp("model") / "float.tflite"
    path.write_bytes(model.to_bytes())
    return path


def placement(site: Path | None, model: Path, *options: str) -> str:
    """The line in which `armpy run` says what runs where."""
    done = run_beside(site, *RUN, str(model), *options)
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("placement: ")]
    return line.removeprefix("placement: ")


def outputs(site: Path | None, model: Path, folder: Path, *options: str) -> np.ndarray:
    """What `armpy run` computes from its random numbers."""
    done = run_beside(site, *RUN, str(model), "--output", str(folder), *options)
    assert done.returncode == 0, done.stderr
    result: np.ndarray = np.load(folder / "y.npy")
    return result


@pytest.mark.slow
def test_a_removed_wheel_leaves_everything_to_armpy_s_own_backends(tmp_path: Path) -> None:
    site = install("device", tmp_path)
    assert "ExampleDevice 9" in placement(site, DIGITS)
    shutil.rmtree(site)
    assert placement(site, DIGITS).startswith("10 layers: NumbaAcc 10;")
    done = run_beside(site, *RUN, str(DIGITS), "--backends", "ExampleDevice,CpuRef")
    assert done.returncode != 0
    assert "there is no backend 'ExampleDevice'" in done.stderr


def test_the_compiler_example_fuses_a_convolution_with_its_activation(
    compiler_site: Path, float_model: Path, tmp_path: Path
) -> None:
    line = placement(compiler_site, float_model)
    assert "ExampleCompiler 2" in line
    assert "NumbaAcc 2" in line
    assert "ElementwiseBinary x1 refused by ExampleCompiler" in line
    expected = outputs(None, float_model, tmp_path / "a")
    np.testing.assert_allclose(outputs(compiler_site, float_model, tmp_path / "b"), expected, 1e-5)


def test_the_device_example_runs_float_and_quantised_layers(
    device_site: Path, float_model: Path, tmp_path: Path
) -> None:
    assert placement(device_site, float_model).startswith("4 layers: ExampleDevice 4;")
    expected = outputs(None, float_model, tmp_path / "a")
    np.testing.assert_allclose(outputs(device_site, float_model, tmp_path / "b"), expected, 1e-5)
    assert "ExampleDevice 9" in placement(device_site, DIGITS)


@pytest.mark.slow
@pytest.mark.parametrize("project", ["compiler", "device"])
def test_an_example_passes_its_own_tests(project: str, request: pytest.FixtureRequest) -> None:
    site: Path = request.getfixturevalue(f"{project}_site")
    done = own_tests(site)
    assert done.returncode == 0, done.stdout + done.stderr


ALLOWED = ("backend", "errors", "graph", "ops", "tensor", "types")
FOR_THE_KIT = ("network", "testing")
"""What a module may import that applications never load."""


def example_sources() -> Sequence[Path]:
    """Every module of an example but tests, and the one that is no Python."""
    paths = EXAMPLES.rglob("*.py")
    return sorted(p for p in paths if "tests" not in p.parts and "SyntaxError" not in p.name)


def runtime_part(module: ast.Module) -> ast.Module:
    """A module without what only type checkers read."""
    module.body = [
        node
        for node in module.body
        if not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    ]
    return module


@pytest.mark.parametrize("path", example_sources(), ids=lambda path: path.stem)
def test_an_example_imports_the_contract_and_what_layers_are_made_of(path: Path) -> None:
    allowed = ALLOWED + FOR_THE_KIT if path.name == "patterns.py" else ALLOWED
    for node in ast.walk(runtime_part(ast.parse(path.read_text()))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        for name in names:
            room, *parts = name.split(".")
            assert room != "armpy_reference" or path.stem == "Arm_CpuRefDynamic_backend"
            assert room != "armpy" or (parts and parts[0] in allowed), name
