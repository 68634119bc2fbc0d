"""Backends that end their process: the case is named, and the others go on."""

from __future__ import annotations

from pathlib import Path

import pytest

from armpy_testing.backends.dynamic_modules import module_source, write_module
from armpy_testing.command_line import armpy_command

pytestmark = pytest.mark.slow


def write_ending(folder: Path, statement: str) -> Path:
    """Write a backend that runs a statement in every subtraction that it executes."""
    factory = f"""
    import os

    from armpy.backend import IWorkload, IWorkloadFactory


    class Ending(IWorkloadFactory):
        def __init__(self, right):
            self._right = right

        def create_workload(self, operation, info):
            workload = self._right.create_workload(operation, info)
            kind = operation.attributes().get("operation")
            return Subtraction() if getattr(kind, "name", "") == "SUB" else workload


    class Subtraction(IWorkload):
        def execute(self, inputs, outputs):
            {statement}


    class EndingBackend(Backend):
        def create_workload_factory(self, network):
            return Ending(super().create_workload_factory(network))


    def backend_factory():
        return EndingBackend()
    """
    write_module(folder, "Test_Ending_backend", module_source("Ending", extra=factory))
    return folder


def test_a_case_that_ends_its_process_is_named_and_the_others_go_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_ending(tmp_path, "os._exit(0)")
    options = ["--dynamic-backends-path", str(folder), "--filter", "ElementwiseBinary/by-hand"]
    assert armpy_command(["conformance", "Ending", *options]) == 1
    text = capsys.readouterr().out
    (problem,) = [line for line in text.splitlines() if line.startswith("crashed: ")]
    assert "ElementwiseBinary/by-hand-sub" in problem
    assert "ended with code 0" in problem
    assert "Ending: 9 passed, 1 crashed" in text


GROWS = {
    # What Python raises, and what a C++ library writes before it ends its process.
    "failed": "self.kept = bytearray(3 << 30)",
    "crashed": """
            try:
                self.kept = bytearray(3 << 30)
            except MemoryError:
                os.write(2, b"terminate called: std::bad_alloc")
                os.abort()""",
}


@pytest.mark.parametrize("outcome", GROWS)
def test_a_case_whose_process_reaches_its_memory_limit_says_so(
    outcome: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_ending(tmp_path, GROWS[outcome])
    command = ["conformance", "Ending", "--dynamic-backends-path", str(folder)]
    command += ["--filter", "ElementwiseBinary/by-hand-sub"]
    for megabytes, is_reached in ((2048, True), (8192, False)):
        armpy_command([*command, "--memory-limit-mb", str(megabytes)])
        lines = [line for line in capsys.readouterr().out.splitlines() if ": Elementwise" in line]
        said = "; memory was refused in a process with a limit of 2 GiB"
        # With enough memory nothing but the answer is wrong.
        assert [line.endswith(said) for line in lines] == [is_reached], lines
        assert lines[0].startswith(f"{outcome if is_reached else 'failed'}: ")


ENGINE = """
import os

import numpy as np

from armpy.backend import IEngineBackend, IEngineProgram, IEnginePrograms
from armpy.errors import UnimplementedError


class Relu(IEngineProgram):
    model = b"RELU"

    def execute(self, inputs, outputs):
        np.maximum(inputs[0], 0, out=outputs[0])  # which is wrong for quantised tensors


class Programs(IEnginePrograms):
    def describe(self, options):
        return {}

    def compile(self, model, about):
        if model == b"ABS":
            os.abort()
        return Relu()


class Engine(IEngineBackend):
    def get_id(self):
        return "Ending"

    def get_api_version(self):
        return "2.8"

    def get_engine(self):
        return Programs()

    def convert(self, view):
        operation = view.layers[0].operation
        kind = getattr(operation, "operation", getattr(operation, "function", None))
        name = getattr(kind, "name", "")
        if len(view.layers) > 1 or name not in ("ABS", "RELU"):
            raise UnimplementedError("only an ABS or a RELU is supported")
        return name.encode()


def backend_factory():
    return Engine()
"""


def test_a_crash_in_an_engine_s_compilation_is_the_first_problem(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_module(tmp_path, "Test_Ending_backend", module_source("Ending", extra=ENGINE))
    line = path.read_text("utf-8").split("\n").index("            os.abort()") + 1
    options = ["--dynamic-backends-path", str(tmp_path), "--filter", "Activation/by-hand-relu"]
    options += ["--filter", "ElementwiseUnary/abs/float32"]
    assert armpy_command(["conformance", "Ending", *options]) == 1
    crash, failure = [
        line
        for line in capsys.readouterr().out.splitlines()
        if line.startswith(("crashed: ", "failed: "))
    ]
    place = f"crash in compilation (Test_Ending_backend.py:{line})"
    end = "the process was ended by SIGABRT"
    assert crash == f"crashed: ElementwiseUnary/abs/float32: {place}: {end}"
    assert failure.startswith("failed: Activation/by-hand-relu-quantized/qasymm_s8: ")
