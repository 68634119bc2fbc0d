"""`python -m armpy_compat` runs a program on armpy without a line in it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from armpy.plugins import install_line

from .litert import models

PROGRAM = """
import sys
import threading
from beside import NAME
from tflite_runtime.interpreter import Interpreter

class Answer:
    pass

def finish():
    print(sys.modules["__main__"].Answer is Answer, NAME)

if __name__ == "__main__":
    interpreter = Interpreter(sys.argv[1])
    print(type(interpreter).__module__, sys.argv[2:], __file__)
    threading.Timer(0.1, finish).start()
    sys.exit(3)
"""


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run `armpy_compat` with arguments, and with more variables of the environment."""
    command = [sys.executable, "-m", "armpy_compat", *arguments]
    environment = os.environ | variables
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


@pytest.mark.slow
def test_a_program_is_the_main_module_with_its_arguments_folder_and_exit_status(
    tmp_path: Path,
) -> None:
    program, model = tmp_path / "program.py", tmp_path / "model.tflite"
    program.write_text(PROGRAM)
    (tmp_path / "beside.py").write_text("NAME = 'beside'\n")
    model.write_bytes(models.doubling())
    done = run(str(program), str(model), "a", "--help")
    assert done.stdout.splitlines() == [
        f"armpy_compat.litert.interpreter ['a', '--help'] {program}",
        "True beside",
    ]
    assert (done.returncode, done.stderr) == (3, "")


@pytest.mark.slow
def test_a_symbolic_link_to_a_program_has_the_modules_beside_the_program(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("from beside import NAME; print(NAME, __file__)")
    (tmp_path / "beside.py").write_text("NAME = 'beside'\n")
    link = tmp_path / "commands" / "program"
    link.parent.mkdir()
    link.symlink_to(tmp_path / "program.py")
    python = subprocess.run([sys.executable, str(link)], capture_output=True, text=True, check=True)
    assert python.stdout == f"beside {link}\n"
    assert run(str(link)).stdout == python.stdout


@pytest.mark.slow
@pytest.mark.parametrize("module", ["armpy_onnx", "onnx"])
def test_without_what_reads_onnx_files_the_last_line_installs_it(
    module: str, tmp_path: Path
) -> None:
    program = tmp_path / "program.py"
    program.write_text(f"import sys; sys.modules['{module}'] = None; import onnxruntime")
    done = run(str(program))
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("ModuleNotFoundError: onnxruntime on armpy needs armpy-onnx (")
    assert last.endswith(f"Run: {install_line('armpy-onnx')}")
