"""Files of an export, models that it refuses, and that no incomplete export is visible."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armpy
from armpy import DataType, InvalidArgumentError, Quantization, TensorInfo
from armpy_serving.triton.config import TritonOptions
from armpy_serving.triton.ensemble import EnsembleOptions
from armpy_serving.triton.export import TritonExport, export_model
from armpy_serving.triton.step_settings import StepSettings, best_of
from armpy_testing.command_line import armpy_command, armpy_output

from .exports import REAL, export, network, settings_of

SCALE = Quantization.per_tensor(0.5, -3)


def test_configuration_says_what_the_model_is(tmp_path: Path) -> None:
    text = export(network(TensorInfo((1, 4), DataType.QASYMM_S8, SCALE)), tmp_path)
    assert text.splitlines()[:18] == [
        'name: "m"',
        'backend: "python"',
        "max_batch_size: 0",
        "input {",
        '  name: "x"',
        "  data_type: TYPE_INT8",
        "  dims: 1",
        "  dims: 4",
        "}",
        "output {",
        '  name: "y"',
        "  data_type: TYPE_INT8",
        "  dims: 1",
        "  dims: 4",
        "}",
        "instance_group {",
        "  kind: KIND_CPU",
        "  count: 1",
    ]
    assert "dynamic_batching" not in text
    compile((tmp_path / "m" / "1" / "model.py").read_text(), "model.py", "exec")
    with armpy.load(tmp_path / "m" / "1" / "model.armpy") as prepared:
        assert prepared.is_light


def test_batch_is_opened_and_left_to_the_server(tmp_path: Path) -> None:
    text = export(
        network(REAL),
        tmp_path,
        max_batch=4,
        queue_delay_us=100,
        max_queue=9,
        timeout_us=5000,
        timeout_action="delay",
        own_timeout=True,
        instances=3,
    )
    lines = [line.strip() for line in text.splitlines()]
    assert lines.count("dims: 4") == 2
    assert "dims: 1" not in lines
    for line in (
        "max_batch_size: 4",
        "max_queue_delay_microseconds: 100",
        "timeout_action: DELAY",
        "default_timeout_microseconds: 5000",
        "allow_timeout_override: true",
        "max_queue_size: 9",
        "count: 3",
    ):
        assert line in lines
    assert settings_of(tmp_path / "m")["sizes"] == [1, 2, 4]
    for size in (1, 2, 4):
        with armpy.load(tmp_path / "m" / "1" / f"model.{size}.armpy") as prepared:
            prepared.run({"x": np.ones((size, 4), np.float32)})
            assert prepared.is_light, "instances share all of it"


@pytest.mark.parametrize(
    ("model", "options", "text"),
    [
        (lambda: network(TensorInfo(None, DataType.FLOAT32)), {}, "number of dimensions"),
        (lambda: network(REAL, "a\nb"), {}, "of this name"),
        (lambda: network(TensorInfo((), DataType.FLOAT32)), {"max_batch": 2}, "no batch dimension"),
        (lambda: network(REAL), {"queue_delay_us": 5}, "only models with batches"),
    ],
)
def test_what_triton_cannot_have_is_refused(
    tmp_path: Path, model: Any, options: dict[str, Any], text: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=text):
        export(model(), tmp_path / "repository", **options)
    assert not (tmp_path / "repository").exists()


def test_version_that_is_there_is_replaced_by_force_alone(tmp_path: Path) -> None:
    with network(REAL) as model:
        export_model(model, tmp_path, TritonExport(TritonOptions("m")))
        with pytest.raises(InvalidArgumentError, match="already"):
            export_model(model, tmp_path, TritonExport(TritonOptions("m")))
        before = os.stat(tmp_path / "m" / "1" / "model.armpy").st_ino
        export_model(model, tmp_path, TritonExport(TritonOptions("m", version=2)))
        assert os.stat(tmp_path / "m" / "1" / "model.armpy").st_ino == before
        assert sorted(os.listdir(tmp_path / "m")) == ["1", "2", "config.pbtxt"]
        export_model(model, tmp_path, TritonExport(TritonOptions("m"), force=True))
        assert os.stat(tmp_path / "m" / "1" / "model.armpy").st_ino != before
        assert sorted(os.listdir(tmp_path / "m")) == ["1", "2", "config.pbtxt"]


@pytest.mark.slow
def test_command_exports_several_models_and_their_labels(tmp_path: Path) -> None:
    for name in ("one", "two"):
        with network(REAL) as model:
            model.save(tmp_path / f"{name}.armpy")
    labels = tmp_path / "labels.txt"
    labels.write_text("a\nb\nc\nd\n")
    repository = tmp_path / "repository"
    command = ["export-triton", f"{tmp_path}/one.armpy", f"{tmp_path}/two.armpy"]
    code, output = armpy_output(
        [*command, "-o", str(repository), "--labels", str(labels), "--backends", "CpuRef"]
    )
    assert code == 0, output
    assert sorted(os.listdir(repository)) == ["one", "two"]
    text = (repository / "one" / "config.pbtxt").read_text()
    assert 'label_filename: "labels.txt"' in text
    assert (repository / "one" / "labels.txt").read_text() == "a\nb\nc\nd\n"
    assert settings_of(repository / "one")["load_options"] == {"backends": ["CpuRef"]}
    policies = [
        "--backends",
        "NumbaAcc,CpuRef",
        "--spread",
        "calls",
        "--affinity",
        "*=CpuRef",
        "--force",
    ]
    assert armpy_command([*command, "-o", str(repository), *policies]) == 0
    options = {"backends": ["NumbaAcc", "CpuRef"], "spread": "calls", "affinity": {"*": "CpuRef"}}
    assert settings_of(repository / "one")["load_options"] == options
    assert armpy_command([*command, "-o", str(repository)]) != 0
    assert armpy_command([*command, "-o", str(repository), "--name", "x"]) == 2


def test_ensemble_has_a_step_on_each_side(tmp_path: Path) -> None:
    info = TensorInfo((1, 4), DataType.QASYMM_S8, SCALE)
    options = TritonOptions("m", max_batch=2)
    with network(info) as model:
        around = EnsembleOptions(mean=(1.0,), top=2)
        made = export_model(model, tmp_path, TritonExport(options, ensemble=around))
    assert [place.name for place in made] == ["m_model", "m_preprocess", "m_postprocess", "m"]
    text = (tmp_path / "m" / "config.pbtxt").read_text()
    assert 'platform: "ensemble"' in text
    assert "TYPE_UINT8" in text
    assert 'name: "classes"' in text
    five = TritonExport(options, ensemble=EnsembleOptions(top=5))
    with network(info) as model, pytest.raises(InvalidArgumentError, match="best classes"):
        export_model(model, tmp_path / "b", five)
    assert not (tmp_path / "b").exists()


def test_steps_quantise_and_select_the_best() -> None:
    spec = network(TensorInfo((1, 4), DataType.QASYMM_S8, SCALE)).inputs[0]
    settings = StepSettings((spec,), (1.0,), (2.0,))
    again = StepSettings.of(json.loads(json.dumps(settings.document())))
    pixels = np.array([[1, 3, 5, 9]], np.uint8)  # 0, 1, 2, 4 in real numbers
    assert again.prepared(again.tensors[0], pixels).tolist() == [[-3, -1, 1, 5]]
    scores, classes = best_of(np.array([[1, 3, 2, 3]], np.float32), 3)
    assert scores.tolist() == [[3, 3, 2]]
    assert classes.tolist() == [[1, 3, 2]]
