"""Operations are imported when they are used."""

from __future__ import annotations

import pickle
import subprocess
import sys

from armpy import ops


def test_operations_can_be_pickled() -> None:
    operation = ops.Convolution2d(stride=(2, 1), padding=ops.Padding.SAME)
    assert pickle.loads(pickle.dumps(operation)) == operation


def test_one_operation_imports_its_family_alone() -> None:
    code = "import sys; from armpy.ops import Softmax; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = {name for name in done.stdout.split() if name.startswith("armpy.ops.")}
    assert "armpy.ops.activation_layers" in modules
    assert not modules & {"armpy.ops.convolution", "armpy.ops.lstm", "armpy.ops.detection"}
