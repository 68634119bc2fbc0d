"""Programs' imports of LiteRT's modules are answered by armpy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from . import models

RUNS = """
interpreter = Interpreter(model_path={path!r})
assert len(interpreter.get_input_details()) == 1
assert Interpreter.__module__ == "armpy_compat.litert.interpreter"
print("done")
"""

IMPORTS = {
    "tflite_runtime": ["from tflite_runtime.interpreter import Interpreter, load_delegate"],
    "tflite_runtime as": [
        "import tflite_runtime.interpreter as tflite",
        "Interpreter = tflite.Interpreter",
    ],
    "ai_edge_litert": [
        "from ai_edge_litert.interpreter import Interpreter, OpResolverType, SignatureRunner",
        "import ai_edge_litert",
        "assert ai_edge_litert.__version__ >= '2'",
    ],
    "compiled model": [
        "from ai_edge_litert.compiled_model import CompiledModel",
        "from ai_edge_litert.hardware_accelerator import HardwareAccelerator",
        "from ai_edge_litert.tensor_buffer import TensorBuffer",
        "from ai_edge_litert.options import Options",
        "from ai_edge_litert.cpu_options import CpuOptions",
        "from ai_edge_litert.environment import Environment",
        "from ai_edge_litert.interpreter import Interpreter",
    ],
    "tensorflow": ["import tensorflow as tf", "Interpreter = tf.lite.Interpreter"],
    "tensorflow.lite": [
        "import tensorflow.lite as tflite",
        "from tensorflow.lite.python.interpreter import Interpreter",
        "assert tflite.Interpreter is Interpreter",
        "tflite.experimental.load_delegate",
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("lines", IMPORTS.values(), ids=IMPORTS)
def test_a_program_runs_unchanged(lines: list[str], tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(models.doubling())
    installs = "\n".join(
        (
            "import armpy_compat",
            "armpy_compat.install_as_tflite_runtime()",
            "armpy_compat.install_as_tensorflow()",
        )
    )
    program = "\n".join((installs, *lines, RUNS.format(path=str(path))))
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.stdout == "done\n", done.stderr
