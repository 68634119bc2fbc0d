"""Without Numba, NumbaAcc runs only what was compiled elsewhere; CpuRef does everything else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits_int8.tflite"

NO_NUMBA = "import sys; sys.modules['numba'] = sys.modules['llvmlite'] = None\n"


OUTPUT = """
import numpy as np
import armpy
with armpy.load(sys.argv[1]) as model:
    print(*model.placement.layers_by_backend)
    print(model.placement.to_json().count(sys.argv[3]) > 0)
    np.save(sys.argv[2], model(np.arange(-128, 128, dtype=np.int8).reshape(1, 16, 16, 1)))
"""

REASON = "no compiler: pip install numba"


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


@pytest.mark.slow
@pytest.mark.parametrize("backends", ["", "NumbaAcc,CpuRef"], ids=["default", "named"])
def test_models_run_on_the_reference(
    backends: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import armpy
    from armpy import backend_registry

    with armpy.load(DIGITS, backends=["CpuRef"]) as model:
        expected = model(np.arange(-128, 128, dtype=np.int8).reshape(1, 16, 16, 1))
    if backends:
        monkeypatch.setenv("ARMPY_BACKENDS", backends)
    elif others := set(backend_registry().backend_ids) - {"NumbaAcc", "CpuRef"}:
        pytest.skip(f"needs that no other backends are installed: {', '.join(sorted(others))}")
    done = python(OUTPUT, str(DIGITS), str(tmp_path / "y.npy"), REASON)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["CpuRef", "True"]
    assert done.stderr.count(f"NumbaAcc takes no layers: {REASON}") == 1
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), expected)
