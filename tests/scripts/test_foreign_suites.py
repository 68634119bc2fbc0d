"""Cases of other projects' suites become models, and wrong answers are found."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")

import onnx

import armpy
from scripts.suites import onnxruntime_operators, webnn
from scripts.suites.cases import Array, Case, Tolerance
from scripts.suites.engines import run_cases, run_pytest

JSONC = """[
  // a comment, and a trailing comma
  {
    "name": "adds",
    "operator": "Add",
    "opset": {"domain": "", "version": 14},
    "cases": [
      {
        "name": "two // elements",
        "inputs": [
          {"data": [1, 2], "dims": [2], "type": "float32"},
          {"data": [10, 20], "dims": [2], "type": "float32"},
        ],
        "outputs": [{"data": [11, EXPECTED], "dims": [2], "type": "float32"}]
      }
    ]
  }
]
"""


def _operator_checkout(folder: Path, expected: str = "22") -> Path:
    path = folder / onnxruntime_operators.FOLDER / "add.jsonc"
    path.parent.mkdir(parents=True)
    path.write_text(JSONC.replace("EXPECTED", expected), encoding="utf-8")
    return folder


def _webnn_checkout(
    folder: Path,
    inputs: Mapping[str, Mapping[str, object]],
    operator: Mapping[str, object],
    output: Mapping[str, object],
) -> Path:
    graph = {
        "inputs": inputs,
        "operators": [{**operator, "outputs": "y"}],
        "expectedOutputs": {"y": output},
    }
    path = folder / webnn.FOLDER / "operator.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"tests": [{"name": "case", "graph": graph}]}), encoding="utf-8")
    return folder


def _tensor(data: object, *shape: int, kind: str = "float32", **more: object) -> dict[str, object]:
    return {"data": data, "descriptor": {"shape": shape, "dataType": kind}, **more}


def _problems(case: Case) -> list[str]:
    with armpy.load(case.model.SerializeToString(), backends=["CpuRef"]) as model:
        return list(case.differences(model.run(dict(case.inputs))))


def test_an_operator_s_case_becomes_a_model(tmp_path: Path) -> None:
    (case,) = onnxruntime_operators.cases(_operator_checkout(tmp_path))
    assert case.name == "add/adds/two // elements"
    assert _problems(case) == []


def test_a_wrong_expectation_is_a_difference(tmp_path: Path) -> None:
    (case,) = onnxruntime_operators.cases(_operator_checkout(tmp_path, "23"))
    assert _problems(case) == ["output_0: expected [11.0, 23.0]; got [11.0, 22.0]"]


def test_another_type_or_shape_is_a_difference(tmp_path: Path) -> None:
    (case,) = onnxruntime_operators.cases(_operator_checkout(tmp_path))
    outputs: dict[str, Array] = {"output_0": np.array([11, 22])}
    assert list(case.differences(outputs)) == ["output_0: expected float32 (2,); got int64 (2,)"]
    wide = replace(case, expected={"output_0": np.array([[11, 22]], np.float32)})
    assert _problems(wide) == ["output_0: expected float32 (1, 2); got float32 (2,)"]


@pytest.mark.parametrize(
    ("inputs", "operator", "output"),
    [
        (
            {"x": _tensor(["-Infinity", 3], 2)},
            {"name": "clamp", "arguments": [{"input": "x"}, {"options": {"minValue": "NaN"}}]},
            _tensor(["-Infinity", 3], 2),
        ),
        (
            {"x": _tensor([1, 2, 3, 4], 2, 2)},
            {"name": "reduceSum", "arguments": [{"input": "x"}, {"options": {"axes": [1]}}]},
            _tensor([3, 7], 2),
        ),
        (
            {"x": _tensor([1, 2, 3], 3), "i": _tensor([7], 1, kind="uint32", constant=True)},
            {"name": "gather", "arguments": [{"input": "x"}, {"indices": "i"}]},
            _tensor([3], 1),
        ),
        (
            {"x": _tensor([1, 2], 1, 1, 2, 1), "f": _tensor([3], 1, 1, 1, 1, constant=True)},
            {
                "name": "conv2d",
                "arguments": [
                    {"input": "x"},
                    {"filter": "f"},
                    {"options": {"inputLayout": "nhwc", "padding": [0, 0, 1, 0]}},
                ],
            },
            _tensor([0, 3, 6], 1, 1, 3, 1),
        ),
    ],
    ids=["clamp", "reduce", "gather", "convolution"],
)
def test_a_case_of_webnn_becomes_a_model(
    inputs: dict[str, Any], operator: dict[str, Any], output: dict[str, Any], tmp_path: Path
) -> None:
    (case,) = webnn.cases(_webnn_checkout(tmp_path, inputs, operator, output))
    assert _problems(case) == []
    wrong = {name: array + 1 for name, array in case.expected.items()}
    assert len(_problems(replace(case, expected=wrong))) == 1


def test_steps_are_those_of_the_output_s_type() -> None:
    expected = np.array([1.0], np.float16)
    near, far = (expected + np.float16(n * 2.0**-10) for n in (2, 3))
    case = Case("one", onnx.ModelProto(), {}, {"y": expected}, Tolerance(steps=2))
    assert list(case.differences({"y": near})) == []
    assert len(list(case.differences({"y": far}))) == 1


@pytest.mark.slow
def test_a_suite_is_run_in_a_process_and_its_verdicts_are_counted(tmp_path: Path) -> None:
    right, wrong = (tmp_path / name for name in ("right", "wrong"))
    for folder, expected in ((right, "22"), (wrong, "23")):
        _operator_checkout(folder, expected)
    assert run_cases(sys.executable, "onnxruntime", right, "CpuRef").counts == {"passed": 1}
    results = run_cases(sys.executable, "onnxruntime", wrong, "CpuRef")
    assert results.counts == {"wrong": 1}
    assert "expected [11.0, 23.0]" in next(iter(results.problems.values()))


SUITE = """\
import os
import onnxruntime
import pytest

def test_passes(): assert onnxruntime.InferenceSession
def test_is_armpy(): assert "armpy" in onnxruntime.__name__, "the genuine one"
def test_ends(): os._exit(3)
def test_is_left_out(): pytest.skip("not here")
class TestClass:
    @pytest.fixture
    def prepared(self): raise ValueError("in preparation")
    def test_is_not_prepared(self, prepared): pass
    def test_after_it(self): pass
"""


@pytest.mark.slow
@pytest.mark.parametrize("sample", [None, 3])
def test_verdicts_of_pytest_survive_a_test_that_ends_the_process(
    sample: int | None, tmp_path: Path
) -> None:
    pytest.importorskip("onnxruntime")
    (tmp_path / "test_suite.py").write_text(SUITE, encoding="utf-8")
    (tmp_path / "test_damaged.py").write_text("import no_such_module", encoding="utf-8")
    genuine, ours = (
        run_pytest(sys.executable, tmp_path, engine, ["test_*.py"], {}, sample)
        for engine in ("onnxruntime", "armpy")
    )
    assert genuine.verdicts.keys() == ours.verdicts.keys()
    verdicts = {name.rpartition("::")[2]: verdict for name, verdict in ours.verdicts.items()}
    expected = {
        "test_damaged.py": "failed",
        "test_passes": "passed",
        "test_is_armpy": "passed",
        "test_ends": "died",
        "test_is_left_out": "skipped",
        "test_is_not_prepared": "failed",
        "test_after_it": "passed",
    }
    if sample is None:
        assert verdicts == expected
        assert genuine.verdicts["test_suite.py::test_is_armpy"] == "failed"
        assert "the genuine one" in genuine.problems["test_suite.py::test_is_armpy"]
        assert "in preparation" in ours.problems["test_suite.py::TestClass::test_is_not_prepared"]
        assert "No module named 'no_such_module'" in ours.problems["test_damaged.py"]
    else:
        assert len(verdicts) == 1 + sample  # and the file without tests
        assert verdicts.items() < expected.items()


@pytest.mark.slow
def test_a_suite_without_tests_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="pytest ran no test and ended with 4"):
        run_pytest(sys.executable, tmp_path, "armpy", ["test_none.py"], {})
