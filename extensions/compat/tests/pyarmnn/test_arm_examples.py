"""Arm's examples for PyArmNN, run from where they are and unchanged."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from armpy_testing.shared import shared_file

_RUN = (
    "import armpy_compat, runpy, sys; armpy_compat.install_as_pyarmnn(); sys.argv = sys.argv[1:];"
    " sys.path.insert(0, sys.argv.pop(0)); runpy.run_path(sys.argv[0], run_name='__main__')"
)

_EXECUTOR = """
import numpy as np
from network_executor import ArmnnNetworkExecutor

executor = ArmnnNetworkExecutor({model!r}, ["CpuAcc", "CpuRef"])
image = np.zeros(executor.get_shape(), executor.get_data_type())
(scores,) = executor.run([image])
print(scores.shape, executor.is_output_quantized(0), executor.get_input_quantization_offset(0))
"""


def _run_example(folder: Path, script: Path, *arguments: str, cwd: Path) -> str:
    """What a script prints that imports modules beside it."""
    done = subprocess.run(
        [sys.executable, "-c", _RUN, str(folder), str(script), *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(cwd), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def workplace(tmp_path: Path) -> Path:
    """A folder with a photograph, and with a stand-in for `requests` that downloads nothing."""
    (tmp_path / "requests.py").write_text("")
    (tmp_path / "images").mkdir()
    # Pictures are recognised by their contents.
    shutil.copy(shared_file("images", "cat.bmp"), tmp_path / "images" / "cat.jpg")
    return tmp_path


@pytest.mark.slow
def test_the_tflite_classification_example_runs(workplace: Path) -> None:
    pytest.importorskip("PIL")
    script = shared_file(
        "armnn_tests", "examples", "image_classification", "tflite_mobilenetv1_quantized.py"
    )
    model = shared_file("models", "coral", "mobilenet_v2_1.0_224_quant.tflite")
    (workplace / "mobilenet_v1_1.0_224_quant.tflite").symlink_to(model)
    labels = shared_file("models", "coral", "imagenet_labels.txt")
    (workplace / "labels_mobilenet_quant_v1_224.txt").symlink_to(labels)
    folders = ["--data-dir", "images", "--model-dir", str(workplace)]
    printed = _run_example(script.parent, script, *folders, cwd=workplace)
    assert "Running inference(0)" in printed
    classes = [line for line in printed.splitlines() if line.startswith("class=")]
    assert len(classes) == 5
    assert "cat" in classes[0]


@pytest.mark.slow
def test_the_onnx_classification_example_runs(workplace: Path) -> None:
    pytest.importorskip("PIL")
    parser = pytest.importorskip("onnx.parser")
    script = shared_file("armnn_tests", "examples", "image_classification", "onnx_mobilenetv2.py")
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]>
        small (float[1, 3, 224, 224] data) => (float[1, 3] mobilenetv20_output_flatten0_reshape0)
        {
            means = GlobalAveragePool(data)
            mobilenetv20_output_flatten0_reshape0 = Flatten(means)
        }"""
    )
    (workplace / "mobilenetv2-1.0.onnx").write_bytes(model.SerializeToString())
    (workplace / "synset.txt").write_text("red\ngreen\nblue\n")
    folders = ["--data-dir", "images", "--model-dir", str(workplace)]
    printed = _run_example(script.parent, script, *folders, cwd=workplace)
    classes = [line for line in printed.splitlines() if line.startswith("class=")]
    assert {line.partition(" ")[0] for line in classes} == {
        "class=red",
        "class=green",
        "class=blue",
    }


@pytest.mark.slow
def test_the_examples_executor_runs_a_model(workplace: Path) -> None:
    folder = shared_file("armnn_tests", "examples", "common", "network_executor.py").parent
    model = shared_file("armnn_tests", "pyarmnn", "testdata", "shared", "mock_model.tflite")
    (workplace / "run.py").write_text(_EXECUTOR.format(model=str(model)))
    printed = _run_example(folder, workplace / "run.py", cwd=workplace)
    assert "Preferred backends: ['CpuAcc', 'CpuRef']" in printed
    assert "Optimization warnings: ()" in printed
    assert printed.splitlines()[-1] == "(1, 10) True 128"
