"""Programs for LiteRT and PyArmNN are recorded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any  # JSON

import pytest

from armpy_compat.trial.trial import try_program

from ..litert import models

pytestmark = pytest.mark.slow

INTERPRETER = """
import sys
import numpy as np
from ai_edge_litert.interpreter import Interpreter

interpreter = Interpreter(sys.argv[1], num_threads=1)
interpreter.allocate_tensors()
x = interpreter.get_input_details()[0]["index"]
for value in range(3):
    interpreter.set_tensor(x, np.full((1, 2), value, np.float32))
    interpreter.invoke()
signatures = Interpreter(sys.argv[2])
add = signatures.get_signature_runner("add")
for value in range(4):
    add(a=np.ones(2, np.float32), b=np.full(2, value, np.float32))
"""

COMPILED = """
import sys
import numpy as np
from ai_edge_litert.compiled_model import CompiledModel
from ai_edge_litert.hardware_accelerator import HardwareAccelerator

model = CompiledModel.from_file(sys.argv[1], HardwareAccelerator.CPU)
inputs, outputs = model.create_input_buffers(0), model.create_output_buffers(0)
for value in range(3):
    inputs[0].write(np.full((1, 2), value, np.float32))
    model.run_by_index(0, inputs, outputs)
key = model.get_signature_by_index(0)["key"]
model.run_by_name(key, {"x": inputs[0]}, {"y": outputs[0]})
"""

ARM = """
import sys
import numpy as np
import pyarmnn as ann

parser = ann.ITfLiteParser()
network = parser.CreateNetworkFromBinaryFile(sys.argv[1])
runtime = ann.IRuntime(ann.CreationOptions())
backends = [ann.BackendId("CpuAcc"), ann.BackendId("CpuRef")]
optimized, _ = ann.Optimize(network, backends, runtime.GetDeviceSpec())
network_id, _ = runtime.LoadNetwork(optimized)
inputs = [parser.GetNetworkInputBindingInfo(0, "x")]
outputs = ann.make_output_tensors([parser.GetNetworkOutputBindingInfo(0, "y")])
image = np.ones((1, 2), np.float32)
tensors = ann.make_input_tensors(inputs, [image])
runtime.EnqueueWorkload(network_id, tensors, outputs)
runtime.EnqueueWorkload(networkId=network_id, inputTensors=tensors, outputTensors=outputs)
"""

FAKE_PYARMNN = """
import numpy as np

class BackendId:
    def __init__(self, name): pass

class CreationOptions: pass

class Memory:
    def __init__(self, array): self.array = array
    def get_memory_area(self): return self.array

class IRuntime:
    def __init__(self, options): pass
    def GetDeviceSpec(self): return None
    def LoadNetwork(self, *args): return 7, ""
    def EnqueueWorkload(self, networkId, inputTensors, outputTensors):
        (_, x), = inputTensors
        (_, y), = outputTensors
        y.array[...] = x.array + 1 + x.array

def Optimize(network, backends, spec): return network, ()
def make_input_tensors(bindings, arrays): return [(0, Memory(arrays[0]))]
def make_output_tensors(bindings): return [(0, Memory(np.zeros((1, 2), np.float32)))]
"""
"""What `ARM` uses of PyArmNN, in the module in which PyArmNN has it; it computes y = x + 1 + x."""

FAKE_PARSER = """
class ITfLiteParser:
    def CreateNetworkFromBinaryFile(self, graphFile): return graphFile
    def GetNetworkInputBindingInfo(self, graphId, name): return name
    def GetNetworkOutputBindingInfo(self, graphId, name): return name
"""


@pytest.fixture(autouse=True)
def _machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARMPY_NUMBA_MACHINE", "typical")  # not measured for each new cache


@pytest.fixture
def doubling(tmp_path: Path) -> str:
    """A model of two additions."""
    path = tmp_path / "doubling.tflite"
    path.write_bytes(models.doubling())
    return str(path)


def test_interpreters_and_signatures_are_compared(tmp_path: Path, doubling: str) -> None:
    pytest.importorskip("ai_edge_litert", reason="LiteRT is not installed")
    (tmp_path / "program.py").write_text(INTERPRETER)
    (tmp_path / "two.tflite").write_bytes(models.two_signatures())
    paths = [doubling, str(tmp_path / "two.tflite")]
    result = try_program(str(tmp_path / "program.py"), paths, rounds=1)
    assert [(m.name, m.answers.total, m.answers.equal) for m in result.models] == [
        ("doubling.tflite", 3, 3),
        ("two.tflite", 4, 4),
    ]
    assert [model.placement[:8] for model in result.models] == ["2 layers", "1 layer:"]
    assert result.headline.startswith("LiteRT ")
    assert " for 7 calls of 2 models; 7 of 7 answers equal" in result.headline
    assert result.is_same


def test_compiled_models_are_compared(tmp_path: Path, doubling: str) -> None:
    pytest.importorskip("ai_edge_litert", reason="LiteRT is not installed")
    (tmp_path / "program.py").write_text(COMPILED)
    result = try_program(str(tmp_path / "program.py"), [doubling], rounds=1)
    assert (result.total, result.equal) == (4, 4), [*result.remarks()]


def test_networks_of_pyarmnn_are_recorded_on_armpy(
    tmp_path: Path, doubling: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Only engines that are installed are replaced.
    (tmp_path / "packages").mkdir()
    (tmp_path / "packages" / "pyarmnn.py").touch()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "packages"), prepend=os.pathsep)
    (tmp_path / "program.py").write_text(ARM)
    command = [sys.executable, "-P", "-m", "armpy_compat.trial", "armpy", str(tmp_path)]
    program = str(tmp_path / "program.py")
    subprocess.run([*command, str(time.time()), program, doubling], check=True)
    record: dict[str, Any] = json.loads((tmp_path / "record.json").read_text())
    assert [model["name"] for model in record["models"]] == ["doubling.tflite"]
    assert record["models"][0]["placement"].startswith("2 layers: ")
    assert [call["model"] for call in record["calls"]] == [0, 0]
    for call in record["calls"]:
        assert call["shapes"] == "2"
        assert [dtype for dtype, _, _ in call["arrays"]] == ["<f4"]


def test_networks_of_pyarmnn_are_compared(
    tmp_path: Path, doubling: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    generated = tmp_path / "packages" / "pyarmnn" / "_generated"
    generated.mkdir(parents=True)
    (generated / "__init__.py").touch()
    (generated / "pyarmnn.py").write_text(FAKE_PYARMNN)
    (generated / "pyarmnn_tfliteparser.py").write_text(FAKE_PARSER)
    (generated.parent / "__init__.py").write_text(
        "from ._generated.pyarmnn import *\nfrom ._generated.pyarmnn_tfliteparser import *\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "packages"), prepend=os.pathsep)
    (tmp_path / "program.py").write_text(ARM)
    result = try_program(str(tmp_path / "program.py"), [doubling], rounds=1)
    assert result.headline.startswith("PyArmNN ")
    assert [(m.name, m.answers.total, m.answers.equal) for m in result.models] == [
        ("doubling.tflite", 2, 2)
    ], [*result.remarks()]
