"""The command as a process, and the progress that it shows."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from armpy.core.installation import install_command
from armpy_testing.backends.dynamic_modules import module_source, write_module

for library in ("click", "PIL"):
    pytest.importorskip(library)

MODEL = str(Path(__file__).parents[2] / "examples" / "digits" / "digits_int8.tflite")
ARMPY = [sys.executable, "-W", "error", "-m", "armpy"]


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_the_module_is_the_command() -> None:
    done = subprocess.run([*ARMPY, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("armpy ")


def test_importing_armpy_imports_no_library_of_the_command() -> None:
    code = "import armpy, armpy.execution, armpy.model.load, sys; print(sorted(sys.modules))"
    modules = run_python(code).stdout
    for library in ("click", "PIL"):
        assert f"'{library}'" not in modules


def test_help_imports_neither_pillow_nor_a_backend() -> None:
    code = (
        "import sys; from armpy.cli.__main__ import main; "
        "main(['run', '--help']); print(sorted(sys.modules))"
    )
    modules = run_python(code).stdout.splitlines()[-1]
    for name in ("PIL", "armpy_reference", "armpy.execution"):
        assert f"'{name}'" not in modules


def test_a_missing_library_is_reported_with_its_installation() -> None:
    done = run_python(
        "import sys; sys.modules['click'] = None; from armpy.cli.__main__ import main; "
        "sys.exit(main(['backends']))"
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        f"armpy: error: click not found. Run: {install_command({'armpy[cli]': '.'})}"
    ]


@pytest.mark.slow
def test_only_pictures_need_pillow() -> None:
    def run(command: list[str]) -> subprocess.CompletedProcess[str]:
        return run_python(
            "import sys; sys.modules['PIL'] = None; from armpy.cli.__main__ import main; "
            f"sys.exit(main({command!r}))"
        )

    assert run(["run", MODEL]).returncode == 0
    picture = str(Path(MODEL).parent / "pictures" / "seven.png")
    done = run(["run", MODEL, picture])
    assert done.returncode == 1
    assert "Pillow, which reads pictures, is not installed" in done.stderr
    assert "pip install pillow" in done.stderr


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="pipes close differently")
def test_a_closed_pipe_ends_the_command_silently() -> None:
    process = subprocess.Popen(
        [*ARMPY, "inspect", MODEL, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    with process.stderr:
        assert process.stderr.read() == b""
    assert process.wait() == 1


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals differ")
def test_an_interrupt_ends_the_command_silently() -> None:
    process = subprocess.Popen(
        [*ARMPY, "-v", "run", MODEL, "--backends", "NumbaAcc,CpuRef", "--repeat", "100000000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stderr is not None
    process.stderr.readline()  # the model is loaded
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (130, b"", b"")


@pytest.mark.slow
def test_an_encoding_without_a_character_does_not_stop_the_output(tmp_path: Path) -> None:
    labels = tmp_path / "labels.txt"
    labels.write_text("\n".join(["Käfer"] * 10), "utf-8")
    done = subprocess.run(
        [*ARMPY, "run", MODEL, "--labels", str(labels)],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "K\\xe4fer" in done.stdout


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_is_reported_in_one_line() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*ARMPY, "backends"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr.splitlines()[0].startswith("armpy: error: ")
    assert len(done.stderr.splitlines()) == 1


NOISY = """
import ctypes
import os


def say(self, *options):
    print("spoken by Python")
    os.write(1, b"spoken by a library\\n")
    ctypes.CDLL(None).puts(b"spoken by a library in C")


say(None)
Backend.create_backend_context = say
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="C's library has another name")
def test_a_document_is_alone_on_stdout_whatever_backends_print(tmp_path: Path) -> None:
    command = ["inspect", MODEL]
    write_module(tmp_path / "m", "acme_npu_backend", module_source("AcmeNpu", extra=NOISY))
    options = ["--json", "--dynamic-backends-path", str(tmp_path / "m")]
    done = subprocess.run([*ARMPY, *command, *options], capture_output=True, text=True, check=True)
    assert "AcmeNpu" in json.dumps(json.loads(done.stdout))
    for speaker in ("Python", "a library", "a library in C"):
        assert done.stderr.count(f"spoken by {speaker}\n") >= 2
