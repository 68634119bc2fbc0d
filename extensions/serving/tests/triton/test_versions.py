"""Versions of a model: one configuration for all, and settings of their own."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from armpy import DataType, InvalidArgumentError, Model, TensorInfo
from armpy_serving.triton.config import TritonOptions
from armpy_serving.triton.export import TritonExport, export_model
from armpy_serving.triton.settings import InstanceSettings
from armpy_serving.triton.version_file import VersionFile

from .exports import REAL, export, network
from .instances import arguments, doubling, request, values

OTHERS = [
    (lambda: network(REAL, "z"), {}),
    (lambda: network(REAL, output="z"), {}),
    (lambda: network(TensorInfo((1, 4), DataType.SIGNED32)), {}),
    (lambda: network(TensorInfo((1, 5), DataType.FLOAT32)), {}),
    (lambda: network(REAL), {"max_batch": 4}),
    (lambda: network(REAL), {"max_batch": 0}),
]
"""Models, and how they are exported, that are not what `test_version_of_another` has put."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("model", "options"), OTHERS)
def test_version_of_another_model_is_refused(
    tmp_path: Path, model: Any, options: dict[str, Any]
) -> None:
    export(network(REAL), tmp_path, max_batch=2)
    before = (tmp_path / "m" / "config.pbtxt").read_text()
    triton_options = TritonOptions("m", **{"version": 2, "max_batch": 2, **options})
    with model() as other:
        with pytest.raises(InvalidArgumentError, match="version 1") as error:
            export_model(other, tmp_path, TritonExport(triton_options))
        assert error.value.expected != error.value.actual
        assert sorted(os.listdir(tmp_path / "m")) == ["1", "config.pbtxt"]
        assert (tmp_path / "m" / "config.pbtxt").read_text() == before
        export_model(other, tmp_path, TritonExport(triton_options, force=True))
    assert (tmp_path / "m" / "config.pbtxt").read_text() != before


def test_what_was_written_into_the_configuration_stays(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    export(network(REAL), tmp_path, instances=2, labels=("a", "b", "c", "d"))
    config = tmp_path / "m" / "config.pbtxt"
    edited = config.read_text() + "version_policy { all {} }\n"
    config.write_text(edited)
    with network(REAL) as model:
        export_model(model, tmp_path, TritonExport(TritonOptions("m", 2)))
        assert config.read_text() == edited
        assert (tmp_path / "m" / "labels.txt").read_text() == "a\nb\nc\nd\n"
        assert "config.pbtxt stays as it is" in caplog.text
        export_model(model, tmp_path, TritonExport(TritonOptions("m", 2), force=True))
    assert "version_policy" not in config.read_text()


def test_each_version_has_settings_of_its_own(adapter: ModuleType, tmp_path: Path) -> None:
    with Model(doubling(None, 2)) as model:
        for version, settings in enumerate(({"num_threads": 1}, {}), 1):
            triton_export = TritonExport(
                TritonOptions("m", version, max_batch=2), InstanceSettings("", settings)
            )
            export_model(model, tmp_path, triton_export)
    by_version = [VersionFile.of(str(tmp_path / "m" / version)).settings for version in "12"]
    assert [settings.get("load_options") for settings in by_version] == [{"num_threads": 1}, None]
    for version in (1, 2):
        instance = adapter.TritonModel()
        instance.initialize(arguments(tmp_path, 2, version))
        (answer,) = instance.execute([request([1, 2])])
        assert values(answer) == [[2, 4]]
        instance.finalize()


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"input": [{"name": "z", "data_type": "TYPE_FP32", "dims": [2]}]}, "z TYPE_FP32"),
        ({"input": [{"name": "x", "data_type": "TYPE_INT32", "dims": [2]}]}, "x TYPE_INT32"),
        ({"output": [{"name": "x", "data_type": "TYPE_FP32", "dims": [2]}]}, "x TYPE_FP32"),
        ({"max_batch_size": 0}, "max_batch_size 0"),
        ({"max_batch_size": 4}, "max_batch_size 4"),
    ],
)
def test_configuration_that_is_not_the_model_s_is_refused(
    adapter: ModuleType, tmp_path: Path, changes: dict[str, Any], text: str
) -> None:
    with Model(doubling(None, 2)) as model:
        export_model(model, tmp_path, TritonExport(TritonOptions("m", max_batch=2)))
    instance_arguments = arguments(tmp_path, 2)
    instance_arguments["model_config"] = json.dumps(
        json.loads(instance_arguments["model_config"]) | changes
    )
    with pytest.raises(InvalidArgumentError, match="not the model's") as error:
        adapter.TritonModel().initialize(instance_arguments)
    assert text in error.value.actual


def test_version_without_settings_is_refused(adapter: ModuleType, tmp_path: Path) -> None:
    with Model(doubling(2)) as model:
        export_model(model, tmp_path, TritonExport(TritonOptions("m")))
    instance_arguments = arguments(tmp_path, 0)
    (tmp_path / "m" / "1" / "armpy.json").write_text('{"config": {}}')
    with pytest.raises(InvalidArgumentError, match=r"armpy\.json cannot be read"):
        adapter.TritonModel().initialize(instance_arguments)
