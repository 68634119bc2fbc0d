"""Models in sub-interpreters."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import armpy

MODEL = Path(__file__).parents[2] / "examples" / "digits" / "digits_int8.tflite"

SCRIPT = """
import sys
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
interpreter = interpreters.create()
interpreters.run_string(interpreter, f'''
import sys
sys.path[:] = {sys.path!r}
import numpy as np
import armpy
model = armpy.load({sys.argv[1]!r}, backends=[{sys.argv[2]!r}])
scores = model(np.zeros((1, 16, 16, 1), np.int8))
with open({sys.argv[3]!r}, "wb") as file:
    np.save(file, scores)
''')
"""


@pytest.mark.skipif(
    not any(importlib.util.find_spec(n) for n in ("_interpreters", "_xxsubinterpreters")),
    reason="this Python has no sub-interpreters",
)
@pytest.mark.skipif(sys.version_info >= (3, 13), reason="NumPy refuses isolated interpreters")
@pytest.mark.parametrize("backend", ["CpuRef", "NumbaAcc"])
def test_a_model_left_open_in_a_sub_interpreter_lets_the_process_end(
    tmp_path: Path, backend: str
) -> None:
    answer = tmp_path / "scores.npy"
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT, str(MODEL), backend, str(answer)]
    ended = subprocess.run(command, timeout=120, capture_output=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, b"")
    with armpy.load(MODEL, backends=["CpuRef"]) as model:
        expected = model(np.zeros((1, 16, 16, 1), np.int8))
    assert np.array_equal(np.load(answer), expected)
