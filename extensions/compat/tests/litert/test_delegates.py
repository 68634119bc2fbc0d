"""Arm NN's delegate chooses armpy's backends."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from armpy_compat.litert.delegate_options import read_delegate_options
from armpy_compat.litert.interpreter import Interpreter, load_delegate

from . import models

LIBRARY = "/usr/lib/libarmnnDelegate.so"


def backends(**options: object) -> object:
    """The backends that `armpy.load` gets."""
    named = {name.replace("_", "-"): value for name, value in options.items()}
    return read_delegate_options(named).load_options().get("backends")


def test_arm_nns_backends_are_armpys() -> None:
    assert backends(backends="CpuRef", disable_tflite_runtime_fallback=True) == ["CpuRef"]
    assert backends(backends="CpuAcc,CpuRef") == ["NumbaAcc", "CpuRef"]
    assert backends(backends="CpuRef") == ["CpuRef", "NumbaAcc"]  # in place of TFLite's kernels
    assert backends() is None


def test_backends_that_are_not_installed_are_left_out_with_a_warning() -> None:
    with pytest.warns(UserWarning, match="not installed: GpuAcc"):
        assert backends(backends="GpuAcc, CpuAcc") == ["NumbaAcc", "CpuRef"]
    with pytest.raises(ValueError, match="None of the preferred backends"):
        backends(backends="GpuAcc")


def test_threads_are_counted() -> None:
    options = read_delegate_options({"number-of-threads": 4}).load_options()
    assert options == {"num_threads": 4}
    for wrong in (0, 65, "many"):
        with pytest.raises(ValueError, match=f"cannot be '{wrong}'. Expected 1 to 64"):
            read_delegate_options({"number-of-threads": wrong})


def test_the_library_is_not_loaded_and_runs_the_model() -> None:
    delegate = load_delegate(LIBRARY, {"backends": "CpuRef", "logging-severity": "info"})
    interpreter = Interpreter(model_content=models.doubling(), experimental_delegates=[delegate])
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.ones((1, 2), np.float32))
    interpreter.invoke()
    np.testing.assert_array_equal(interpreter.get_tensor(2), [[3.0, 3.0]])


def test_a_path_of_backends_is_searched(tmp_path: Path) -> None:
    delegate = load_delegate(LIBRARY, {"dynamic-backends-path": str(tmp_path)})
    interpreter = Interpreter(model_content=models.doubling(), experimental_delegates=[delegate])
    interpreter.allocate_tensors()
    interpreter.invoke()
    np.testing.assert_array_equal(interpreter.get_tensor(2), [[1.0, 1.0]])


@pytest.mark.parametrize(
    ("library", "options", "text"),
    [
        (LIBRARY, {"backend": "CpuAcc"}, "Unknown option 'backend'. Known are allow-expanded-dims"),
        (LIBRARY, {"backends": ""}, "'backends' cannot be ''"),
        ("libedgetpu.so.1", None, "libedgetpu.so.1 is not Arm NN's delegate"),
    ],
)
def test_delegates_that_cannot_be_had_are_value_errors(
    library: str, options: dict[str, object] | None, text: str
) -> None:
    with pytest.raises(ValueError, match=f"Failed to load delegate from {library}\n.*{text}"):
        load_delegate(library, options)
