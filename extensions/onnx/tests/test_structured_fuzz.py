"""No .onnx file of odd structure does anything but run, within limits, or give armpy's errors.

Nodes of sound models are put into branches, loops, scans and functions, several times one in the
other; sizes, types, attributes and places of elements become odd; operands become many. Each file
takes less than 2 seconds of the processor and 1 GiB of memory. A failure names the number of the
file, which always gives the same bytes.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

pytest.importorskip("onnx")

import armpy
from armpy.errors import ArmpyError, BackendError
from armpy.execution import Runtime, RuntimeOptions
from armpy_testing.effort import effort
from armpy_testing.models.small_runs import run_if_small

from .onnx_mutations import EXTERNAL_FILE, structured_model

COUNT = effort(60)
MEMORY_LIMIT_BYTES = 64 << 20
DATA_LIMIT_BYTES = 1 << 30
TIME_LIMIT_S = 2.0


def try_one(number: int, folder: Path, runtime: Runtime) -> str:
    """Load a file and run it if it is small: what came of it, after a ``!`` if that is wrong."""
    path = folder / "model.onnx"
    path.write_bytes(structured_model(number))
    started = time.process_time()
    outcome = "refused"
    try:
        with armpy.load(
            path, front_end="onnx", memory_limit_bytes=MEMORY_LIMIT_BYTES, runtime=runtime
        ) as model:
            outcome = run_if_small(model)
    except ArmpyError as error:
        if isinstance(error, BackendError) or not error.where:
            return f"! {error!r}"
    except Exception as error:  # noqa: BLE001  # the test looks for any other error
        return f"! {type(error).__name__}: {error}"
    duration = time.process_time() - started
    return outcome if duration < TIME_LIMIT_S else f"! it took {duration:.1f} s, {outcome}"


def main() -> None:
    """Try the files that the command line names, in a process with little memory."""
    start, stop = map(int, sys.argv[1:])
    resource.setrlimit(resource.RLIMIT_DATA, (DATA_LIMIT_BYTES, DATA_LIMIT_BYTES))
    runtime = Runtime(
        RuntimeOptions(
            backends=["CpuRef"], memory_limit_bytes=MEMORY_LIMIT_BYTES, loop_timeout_s=0.01
        )
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / EXTERNAL_FILE).write_bytes(bytes(range(256)) * 16)
        try_one(0, folder, runtime)  # one-time imports and results do not belong to a file
        for number in range(start, stop):
            print(number, flush=True)
            print(number, try_one(number, folder, runtime).replace("\n", " "), flush=True)


@pytest.mark.slow
def test_files_of_odd_structure_run_or_are_refused_within_limits() -> None:
    process = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-m", __name__, "0", str(COUNT)],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[__name__.count(".")],  # from which the module is imported
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
        check=False,
    )
    lines = process.stdout.splitlines()
    assert process.returncode == 0, f"{lines[-1:]}: {process.stderr[-2000:]}"
    assert [line for line in lines if " ! " in line] == []
    outcomes = {line.split(" ", 1)[1] for line in lines if " " in line}
    assert {"refused", "ran"} <= outcomes


if __name__ == "__main__":
    main()
