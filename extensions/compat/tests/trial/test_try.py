"""`armpy try` runs a program on its own engine and on armpy, and compares them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

pytest.importorskip("click")
pytest.importorskip("onnx")
pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")

import onnx.parser

from armpy.plugins.discovery.entry_point_cache import installed
from armpy_compat.trial.trial import try_program
from armpy_testing.command_line import armpy_output
from armpy_testing.installed import OLD_METADATA

if not any(entry.value == "armpy_compat.plugin" for entry in installed().entry_points):
    pytest.skip(OLD_METADATA, allow_module_level=True)

pytestmark = pytest.mark.slow

MODEL = """<ir_version: 8, opset_import: ["" : 17]>
g (float[n, 4] x) => (float[n, 4] y) { s = Sigmoid (x) y = Add (s, x) }"""

HEAD = """
import os, sys, threading
import numpy as np
import onnxruntime as ort

def opened():
    return ort.InferenceSession(os.path.join(os.path.dirname(__file__), "model.onnx"))

def rows(count, value=0.5):
    return {"x": np.full((count, 4), value, np.float32)}
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    onnx.save(onnx.parser.parse_model(MODEL), tmp_path / "model.onnx")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ARMPY_NUMBA_MACHINE", "typical")  # not measured for each new cache


def program(*lines: str) -> str:
    """A program of lines after `HEAD`."""
    Path("program.py").write_text(HEAD + "\n".join(lines) + "\n")
    return "program.py"


def tried(*arguments: str) -> tuple[int, str]:
    """Exit code and output of one round."""
    return armpy_output(["try", "--rounds", "1", *arguments])


def test_equal_answers_are_one_line_and_status_0() -> None:
    path = program(
        "session = opened()",
        "for value in range(5):",
        "    session.run(None, rows(2, value))",
        "print('done')",
        "assert sys.argv[1:] == ['--flag', 'word'], sys.argv",
    )
    code, output = tried(path, "--flag", "word")
    assert code == 0, output
    lines = [line for line in output.splitlines() if not line.startswith("run ")]
    assert lines[0].startswith("ONNX Runtime "), output
    assert lines[0].endswith("s a call; 5 of 5 answers equal within 1e-5")
    assert any(line.startswith("model.onnx on armpy: 2 layers: ") for line in lines)
    assert any(line.split()[-4:] == ["1", "1,", "the", "same"] for line in lines)


def test_first_calls_with_input_shapes_are_timed_apart() -> None:
    path = program("session = opened()", "for count in (1, 2, 1): session.run(None, rows(count))")
    result = try_program(path, rounds=1)
    (model,) = result.models
    assert model.num_shapes == 2
    for side in (result.own, result.armpy):
        assert [*side.call_us] == [*side.first_call_us] == [model.key]
        assert side.processor_s > 0
    assert " a call; 3 of 3 answers" in result.headline
    (remark,) = result.remarks()
    assert remark.startswith("model.onnx is called with 2 sets of input shapes: the first calls ")
    only_first = try_program(program("opened().run(None, rows(1))"), rounds=1)
    assert " for a first call; 1 of 1 answers" in only_first.headline
    assert only_first.armpy.call_us == {}


def test_a_program_that_a_signal_ends_on_armpy_alone_is_compared_with_nothing() -> None:
    path = program(
        "session = opened()",
        "session.run(None, rows(1))",
        "if session.__class__.__module__.startswith('armpy_compat'): os.kill(os.getpid(), 9)",
    )
    result = try_program(path, rounds=1)
    assert ", armpy computed nothing; 0 of 1 answers equal" in result.headline
    assert "On armpy the program was ended by signal 9." in result.remarks()


def test_threads_bindings_values_and_callbacks_are_recorded() -> None:
    path = program(
        "session = opened()",
        "work = lambda n: [session.run(['y'], rows(1 + n, k)) for k in range(10)]",
        "threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]",
        "[thread.start() for thread in threads]",
        "[thread.join() for thread in threads]",
        "done = threading.Event()",
        "session.run_async(['y'], rows(2), lambda *_: done.set(), None)",
        "done.wait()",
        "binding = session.io_binding()",
        "binding.bind_cpu_input('x', rows(3)['x'])",
        "binding.bind_output('y')",
        "session.run_with_iobinding(binding)",
        "value = ort.OrtValue.ortvalue_from_numpy(rows(3)['x'])",
        "session.run_with_ort_values(['y'], {'x': value})",
        "threading.Timer(0.1, session.run, (None, rows(1))).start()",
    )
    result = try_program(path, rounds=1)
    assert (result.total, result.equal) == (44, 44), [*result.remarks()]
    assert result.is_same


def test_what_armpy_lacks_is_named_and_status_1() -> None:
    path = program(
        "session = opened()",
        "session.run(None, rows(1))",
        "hasattr(ort, 'lacking_on_both') or hasattr(session, 'lacking_on_both')",
        "print(session.__class__.__module__.split('.')[0])",
        "import onnxruntime.quantization",
    )
    code, output = tried(path)
    assert code == 1
    assert "asked for what armpy lacks: onnxruntime.quantization." in output
    assert "On ONNX Runtime the program ended with status 0." in output
    assert "line 1 is 'armpy_compat', not 'onnxruntime'." in output
    assert "On armpy the program ended with ModuleNotFoundError: No module named" in output


def test_different_answers_are_status_1_and_shown() -> None:
    path = program(
        "session = opened()",
        "shift = 0.25 * session.__class__.__module__.startswith('armpy_compat')",
        "session.run(None, rows(1, 0.5 + shift))",
    )
    code, output = tried("--json", path)
    document = json.loads(output[output.index("{") :])
    assert code == 1
    assert document["is_same"] is False
    assert document["models"][0]["answers"]["equal"] == 0
    # 0.75 + sigmoid(0.75) less 0.5 + sigmoid(0.5), of the latter
    assert document["remarks"] == [
        "model.onnx: call 1: the difference is 0.27.",
        "model.onnx: 1 call had other inputs on armpy: earlier answers, the time or chance are in"
        " them.",
    ]


@pytest.mark.parametrize(
    ("read", "ending"),
    [
        ("input()", "EOFError: EOF when reading a line"),
        ("sys.stdin.buffer.read()", "ValueError: could not convert string to float: 'none'"),
    ],
)
def test_input_comes_from_a_file(read: str, ending: str) -> None:
    path = program(f"value = float({read} or 'none')", "opened().run(None, rows(1, value))")
    code, output = tried(path)
    assert code == 1
    assert f"ended with {ending}" in " ".join(output.split())
    Path("numbers.txt").write_text("3\n")
    code, output = tried("--stdin", "numbers.txt", path)
    assert code == 0, output
    assert "1 of 1 answers equal" in output


def test_a_program_finds_no_further_engines_on_armpy() -> None:
    path = program(
        "from importlib.util import find_spec",
        "engines = 'tflite_runtime', 'ai_edge_litert', 'pyarmnn', 'tensorflow'",
        "print([name for name in engines if find_spec(name)])",
        "opened().run(None, rows(1))",
    )
    result = try_program(path, rounds=1)
    assert (result.is_same, result.printed_difference) == (True, "")


def test_a_program_without_a_model_is_refused() -> None:
    code, output = tried(program("print(ort.get_available_providers())"))
    assert code == 1
    assert "program.py: the program loaded no model: it imported ONNX Runtime, and" in output


def test_a_program_that_never_ends_is_stopped_at_the_limit() -> None:
    code, output = tried("--timeout", "2", program("threading.Event().wait()"))
    assert code == 1
    assert "on its own engine the program was stopped at the time limit" in output


@pytest.mark.parametrize("content", [b"\x08\x08\x12\0\0", b"print 'text'\n"])
def test_a_file_that_is_not_a_python_program_is_refused(content: bytes) -> None:
    Path("digits.onnx").write_bytes(content)
    code, output = tried("digits.onnx")
    assert code == 1
    assert output.startswith("armpy: error: digits.onnx: it is not a Python program (")
    assert "Expected a Python file that runs a model of onnxruntime, ai_edge_litert," in output


def test_a_device_is_refused_before_it_is_read() -> None:
    assert tried(os.devnull)[1].startswith(f"armpy: error: {os.devnull}: it is not a regular file")
