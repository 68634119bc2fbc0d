"""Without Numba, NumbaAcc is a candidate that cannot be loaded, and CpuRef does everything."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits_int8.tflite"

NO_NUMBA = "import sys; sys.modules['numba'] = sys.modules['llvmlite'] = None\n"

CANDIDATES = """
from armpy.runtime import Runtime
spec = Runtime().get_device_spec()
(found,) = (c for c in spec.candidates if c.backend_id == "NumbaAcc")
print(found.status.value, found.missing_module, *spec.supported_backends)
print(found.reason)
"""

OUTPUT = """
import numpy as np
import armpy
with armpy.load(sys.argv[1]) as model:
    print(*model.placement.layers_by_backend)
    np.save(sys.argv[2], model(np.arange(-128, 128, dtype=np.int8).reshape(1, 16, 16, 1)))
"""

NAMED = """
from armpy.runtime import Runtime, RuntimeOptions
Runtime(RuntimeOptions(backends=["NumbaAcc"]))
"""


@pytest.fixture(autouse=True)
def every_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment chooses no backends and brings none."""
    for name in ("ARMPY_BACKENDS", "ARMPY_DYNAMIC_BACKENDS_PATH", "ARMPY_TRUST_FILE"):
        monkeypatch.delenv(name, raising=False)


def python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process that cannot import Numba."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", NO_NUMBA + code, *arguments],
        env=dict(os.environ),
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_backend_is_listed_with_what_is_missing() -> None:
    done = python(CANDIDATES)
    assert done.returncode == 0, done.stderr
    first, reason = done.stdout.splitlines()
    status, missing, *supported = first.split()
    assert (status, missing) == ("failed", "numba")
    assert "NumbaAcc" not in supported
    assert supported[-1] == "CpuRef"
    assert "ModuleNotFoundError" in reason
    assert "backend 'NumbaAcc' from armpy" in done.stderr
    assert "is left out: ModuleNotFoundError" in done.stderr


def test_models_run_on_the_reference(tmp_path: Path) -> None:
    import armpy

    done = python(OUTPUT, str(DIGITS), str(tmp_path / "y.npy"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["CpuRef"]
    with armpy.load(DIGITS, backends=["CpuRef"]) as model:
        expected = model(np.arange(-128, 128, dtype=np.int8).reshape(1, 16, 16, 1))
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), expected)


def test_naming_the_backend_is_an_error_that_says_why() -> None:
    done = python(NAMED)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert "BackendUnavailableError: backend 'NumbaAcc' from armpy" in last
    assert "cannot be used: ModuleNotFoundError" in last
