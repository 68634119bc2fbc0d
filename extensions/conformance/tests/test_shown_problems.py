"""What a run shows of failures: the author's line, what the process wrote, and each cause once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from armpy_conformance.raised import described
from armpy_testing.backends.dynamic_modules import module_source, write_module
from armpy_testing.command_line import armpy_command

RAISING = """
import ctypes
import sys

from armpy.backend import IWorkload, IWorkloadFactory


class Raising(IWorkloadFactory, IWorkload):
    def create_workload(self, operation, info):
        return self

    def execute(self, inputs, outputs):
        ctypes.CDLL(None).printf(b"driver: error 17\\n")
        sys.stderr.write("npu: bad command\\n")
        raise KeyError(len(inputs))


class RaisingBackend(Backend):
    def create_workload_factory(self, network):
        return Raising()


def backend_factory():
    return RaisingBackend()
"""


@pytest.mark.slow
def test_exceptions_are_shown_once_with_their_line_and_the_process_s_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_module(tmp_path, "Test_Raising_backend", module_source("Raising", extra=RAISING))
    line = path.read_text("utf-8").split("\n").index("        raise KeyError(len(inputs))") + 1
    options = ["--dynamic-backends-path", str(tmp_path), "--filter", "/by-hand-add"]
    options += ["--filter", "Activation/by-hand-relu"]
    assert armpy_command(["conformance", "Raising", *options]) == 1
    text = capsys.readouterr().out
    problems = text.partition("Problems")[2].splitlines()
    assert sum(problem.startswith("failed: ") for problem in problems) == 1
    assert f"KeyError(2) at Test_Raising_backend.py:{line} in execute" in text
    assert "npu: bad command" in text
    assert "driver: error 17" in text
    assert "other cases of ElementwiseBinary, Activation like this one" in text
    assert "crashed" not in text


def test_the_line_of_an_exception_is_the_innermost_one_of_the_author_s_code() -> None:
    def convert(elements: list[str]) -> object:
        return np.array(elements, np.float32)

    with pytest.raises(ValueError, match="could not convert") as caught:
        convert(["no number"])
    name = Path(__file__).name
    assert f"(raised at {name}:" in described(caught.value)
    assert described(caught.value).endswith("in convert)")
