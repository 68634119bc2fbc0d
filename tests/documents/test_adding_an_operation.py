"""The code blocks of adding_an_operation.md do what the page says, in the files it names."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from armpy_testing.models.tflite_writer import model_with_input

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "how_to" / "adding_an_operation.md").read_text("utf-8")
DEFINITION, WORKLOAD, *ENTRIES = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
FILES = re.findall(r"^\|.*\| `([\w/]+\.py)` \|$", TEXT, re.MULTILINE)
PACKAGES = (
    "armpy",
    "backends/reference/armpy_reference",
    "backends/numba_acc/armpy_numba_acc",
    "extensions/conformance/armpy_conformance",
    "extensions/nnapi/armpy_nnapi",
    "extensions/onnx/armpy_onnx",
)

DEFINITION_IMPORTS = """
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar
from armpy.ops.operation import Operation, TypeRule, same
from armpy.tensor import Shape, TensorInfo
from armpy.types import DataType
"""
WORKLOAD_IMPORTS = """
from __future__ import annotations
from collections.abc import Sequence
import numpy as np
from armpy.ops import LeakyClip
from armpy.ops.operation import Array
from armpy_reference.workload import ReferenceWorkload
"""
ENTRY_IMPORTS = "from armpy.ops import LeakyClip\n"

BUILT = """
import sys
import numpy as np
from armpy import DataType, Model, Network, Runtime, RuntimeOptions, TensorInfo
from armpy.ops import LeakyClip
net = Network()
x = net.input("x", TensorInfo((3,), DataType.FLOAT32))
net.output("y", net.add(LeakyClip(low=1.0, slope=0.5), x))
model = Model(net, Runtime(RuntimeOptions(backends=sys.argv[1:])))
print({layer.backend for layer in model.placement.layers}, *model(np.array([-1, 1, 4], np.float32)))
"""
LOADED = """
import sys
import numpy as np
import armpy
model = armpy.load(sys.argv[2], backends=sys.argv[1:2])
print({layer.backend for layer in model.placement.layers}, *model(np.array([-1, 1, 4], np.float32)))
"""
NNAPI = """
import numpy as np
from armpy_nnapi import Compilation, Model, OperandCode, OperandType, OperationCode
from armpy_nnapi.conformance.random_graphs.recipes import recipes
with Model() as model:
    x, y = (model.add_operand(OperandType(OperandCode.TENSOR_FLOAT32, (3,))) for _ in range(2))
    model.add_operation(OperationCode.LEAKY_CLIP, [x], [y])
    model.identify_inputs_and_outputs([x], [y])
with Compilation(model) as compilation:
    compilation.finish()
    print(*compilation(np.float32([-1, 1, 4]))[0], recipes()[102].__name__)
"""
REFUSED = """
from armpy import DataType, Network, TensorInfo
from armpy.ops import LeakyClip
net = Network()
net.add(LeakyClip(), net.input("x", TensorInfo((3,), DataType.SIGNED32)), name="clip")
"""


def with_entry(module: str, block: str) -> str:
    """A module's text with a block's code ahead of its table, and with the block's entry in it."""
    if block.startswith("class"):
        header, entry = block.split("\n", 1)
        before, after = module.split("    OEM_OPERATION", 1)
        assert header in before
        return f"{before}{entry}    OEM_OPERATION{after}"
    code, header, entries = re.split(r"^(\w+\b.* = [{(]\n)", block, flags=re.MULTILINE)
    table = header.split()[0].rstrip(":")
    before, place, after = re.split(
        rf"^({table}\b.* = [{{(]\n)", module, maxsplit=1, flags=re.MULTILINE
    )
    return before + ENTRY_IMPORTS + code + place + entries[: -len("}\n")] + after


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project's packages with the page's blocks in the files that the page names."""
    folder = tmp_path_factory.mktemp("project")
    for package in PACKAGES:
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("*.pyc"))
    definition, workload, *others = (folder / name for name in FILES)
    text = definition.read_text("utf-8").replace("__all__ = [", '__all__ = ["LeakyClip", ', 1)
    definition.write_text(text + DEFINITION_IMPORTS + DEFINITION, "utf-8")
    workload.write_text(WORKLOAD_IMPORTS + WORKLOAD, "utf-8")
    for path, block in zip(others, ENTRIES, strict=True):
        path.write_text(with_entry(path.read_text("utf-8"), block), "utf-8")
    return folder


@pytest.fixture
def onnx_file(tmp_path: Path) -> Path:
    """A model of one operator that has no converter outside the copy."""
    pytest.importorskip("armpy_onnx")
    onnx = pytest.importorskip("onnx")
    x, y = (onnx.helper.make_tensor_value_info(name, 1, (3,)) for name in "xy")
    node = onnx.helper.make_node("Inverse", ["x"], ["y"], domain="com.microsoft")
    graph = onnx.helper.make_graph([node], "one", [x], [y])
    sets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("com.microsoft", 1)]
    path = tmp_path / "model.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=sets, ir_version=8), path)
    return path


@pytest.fixture
def tflite_file(tmp_path: Path) -> Path:
    """A model of one operator that has no converter outside the copy."""
    model, graph, x = model_with_input((3,))
    y = graph.tensor("y", (3,), "FLOAT32")
    graph.operator("STABLEHLO_CBRT", [x], [y])
    graph.outputs(y)
    path = tmp_path / "model.tflite"
    path.write_bytes(model.to_bytes())
    return path


def run(copy: Path, code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run code that imports the copy."""
    places = [str((copy / package).parent) for package in PACKAGES]
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(places)},
        cwd=copy,
        capture_output=True,
        text=True,
        check=False,
    )


def test_an_operation_touches_one_file_per_door_and_no_index(copy: Path) -> None:
    touched = {
        str(path.relative_to(copy))
        for path in copy.rglob("*")
        if path.suffix in {".py", ".pyi"}
        and not (
            (ROOT / path.relative_to(copy)).exists()
            and path.read_bytes() == (ROOT / path.relative_to(copy)).read_bytes()
        )
    }
    assert touched == set(FILES)
    assert len(touched) == 8


@pytest.mark.parametrize("backend", ["CpuRef", "NumbaAcc"])
def test_the_operation_runs_in_a_network_made_in_python(copy: Path, backend: str) -> None:
    done = run(copy, BUILT, backend)
    assert done.stdout.split() == [f"{{'{backend}'}}", "0.0", "1.0", "4.0"], done.stderr


@pytest.mark.parametrize("backend", ["CpuRef", "NumbaAcc"])
def test_the_operation_runs_in_a_model_from_a_file(
    copy: Path, backend: str, tflite_file: Path
) -> None:
    done = run(copy, LOADED, backend, str(tflite_file))
    assert done.stdout.split() == [f"{{'{backend}'}}", "0.0", "1.0", "4.0"], done.stderr


@pytest.mark.parametrize("backend", ["CpuRef", "NumbaAcc"])
def test_the_operation_runs_in_an_onnx_model(copy: Path, backend: str, onnx_file: Path) -> None:
    done = run(copy, LOADED, backend, str(onnx_file))
    assert done.stdout.split() == [f"{{'{backend}'}}", "0.0", "1.0", "4.0"], done.stderr


def test_the_operation_runs_in_a_model_of_nnapi(copy: Path) -> None:
    done = run(copy, NNAPI)
    assert done.stdout.split() == ["0.0", "1.0", "4.0", "activation"], done.stderr


def test_the_pages_type_rules_are_checked_by_the_builder(copy: Path) -> None:
    assert re.search(
        r"LayerValidationError: .*LeakyClip 'clip'.*SIGNED32", run(copy, REFUSED).stderr
    )
