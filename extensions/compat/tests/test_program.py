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


@pytest.mark.slow
def test_a_missing_program_is_one_line() -> None:
    done = run("no/such/program.py")
    assert done.returncode == 1
    assert done.stderr == (
        "armpy_compat: there is no file no/such/program.py. Check the path and the current folder."
        " usage: python -m armpy_compat PROGRAM.py [arguments]\n"
    )


@pytest.mark.slow
def test_a_misspelt_program_and_a_model_are_answered_with_what_was_meant(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("pass")
    near = tmp_path / "progam.py"
    assert f"Did you mean '{tmp_path / 'program.py'}'?" in run(str(near)).stderr
    model = tmp_path / "model.tflite"
    model.write_bytes(models.doubling())
    assert run(str(model)).stderr == (
        f"armpy_compat: {model} is no Python program. If it is a model: armpy run {model}\n"
    )


@pytest.mark.slow
def test_where_tensorflow_is_not_answered_the_error_says_how_it_is(tmp_path: Path) -> None:
    engine = tmp_path / "ai_edge_litert"
    engine.mkdir()
    (engine / "__init__.py").touch()
    program = tmp_path / "program.py"
    program.write_text("import tensorflow as tf; print(tf.lite.Interpreter.__module__)")
    paths = os.pathsep.join([str(tmp_path), *sys.path])
    done = run(str(program), PYTHONPATH=paths)
    lines = done.stderr.splitlines()
    assert "ModuleNotFoundError: No module named 'tensorflow'" in lines
    assert lines[-2:] == ["    import armpy_compat", "    armpy_compat.install_as_tensorflow()"]
    program.write_text("\n".join(line.strip() for line in lines[-2:]) + f"\n{program.read_text()}")
    done = run(str(program), PYTHONPATH=paths)
    assert done.stdout == "armpy_compat.litert.interpreter\n", done.stderr


@pytest.mark.slow
def test_a_module_that_an_engine_lacks_on_armpy_is_named(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import onnxruntime.quantization")
    last = run(str(program)).stderr.splitlines()[-1]
    assert last.startswith("armpy_compat stands in the place of onnxruntime, and has no quantizat")


@pytest.mark.slow
def test_without_a_program_the_usage_is_shown() -> None:
    done = run()
    assert done.returncode == 2
    assert done.stdout.startswith("usage: python -m armpy_compat PROGRAM.py [arguments]\n")
