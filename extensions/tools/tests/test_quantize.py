"""`armpy quantize`: files in, files and a report out."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest

import armpy
from armpy_testing.command_line import armpy_command
from armpy_testing.models.tflite_writer import OptionValue, model_with_input

pytest.importorskip("click")
pytest.importorskip("PIL")

from armpy_tools.cli.quantize.quantize_file import QuantizeResult
from armpy_tools.quantize import OutputAccuracy, QuantizeReport


@pytest.fixture(scope="module")
def float_model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A convolution over 4 by 4 pixels."""
    generator = np.random.default_rng(5)
    model, graph, image = model_with_input((1, 4, 4, 3), name="image")
    weights = graph.tensor("w", (2, 3, 3, 3), data=generator.normal(0, 1, (2, 3, 3, 3)))
    bias = graph.tensor("b", (2,), data=[0.5, -0.5])
    features = graph.tensor("features", (1, 4, 4, 2))
    wave = graph.tensor("wave", (1, 4, 4, 2))
    options: dict[str, OptionValue] = {"padding": "SAME", "stride_w": 1, "stride_h": 1}
    graph.operator("CONV_2D", [image, weights, bias], [features], options=options)
    graph.operator("SIN", [features], [wave])
    graph.outputs(wave)
    path = tmp_path_factory.mktemp("model") / "float.tflite"
    path.write_bytes(model.to_bytes())
    return str(path)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> str:
    from PIL import Image

    folder = tmp_path_factory.mktemp("pictures")
    generator = np.random.default_rng(6)
    for number in range(3):
        pixels = generator.integers(0, 256, (6, 6, 3), np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.png")
    return str(folder)


def test_a_folder_of_pictures_makes_a_model_and_a_report(
    float_model: str, pictures: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = str(tmp_path / "small.armpy")
    arguments = ["--data", pictures, "--range=-1,1", "--backends", "CpuRef", "-o", output]
    assert armpy_command(["quantize", float_model, *arguments]) == 0
    out = capsys.readouterr().out
    assert "int8, ranges by mse from 3 samples" in out
    assert "1 layer stays float" in out
    assert "has no integer form" in out
    image = np.random.default_rng(1).uniform(-0.5, 0.5, (1, 4, 4, 3)).astype(np.float32)
    with (
        armpy.load(output, backends=["CpuRef"]) as quantized,
        armpy.load(float_model, backends=["CpuRef"]) as model,
    ):
        np.testing.assert_allclose(quantized(image), model(image), atol=0.15)


@pytest.mark.parametrize(
    ("sqnr_db", "num_samples", "texts"),
    [
        (30.0, 100, []),
        (0.2, 100, ["output 'y' has a signal to noise ratio of 0.2 dB. Expected 10 dB or more"]),
        (-math.inf, 100, ["ratio of -inf dB"]),
        (math.nan, 100, ["ratio of nan dB"]),
        (math.inf, 9, ["ranges are from 9 samples"]),
        (3.0, 1, ["ranges are from 1 sample;", "--scheme int16x8"]),
    ],
)
def test_results_of_no_use_are_warned_of(
    sqnr_db: float, num_samples: int, texts: list[str]
) -> None:
    outputs = [
        OutputAccuracy(name, ratio, 0.1, 0.1, 0.9, None, 0)
        for name, ratio in (("x", 40.0), ("y", sqnr_db))
    ]
    report = QuantizeReport("int8", "mse", num_samples, 4, (), tuple(outputs), 8, 2)
    warnings = QuantizeResult("m", "o", 8, 2, report).warnings
    assert len(warnings) == len(texts)
    assert all(text in warning for text, warning in zip(texts, warnings, strict=True))


def test_json_has_every_layer_and_the_files(
    float_model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, output = tmp_path / "data.npz", str(tmp_path / "small.armpy")
    np.savez(data, image=np.random.default_rng(0).normal(0, 1, (5, 4, 4, 3)).astype(np.float32))
    arguments = [
        "--data",
        str(data),
        "--backends",
        "CpuRef",
        "-o",
        output,
        "--json",
        "--limit",
        "4",
    ]
    assert armpy_command(["quantize", float_model, *arguments]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["scheme"], document["num_samples"]) == ("int8", 4)
    assert [row["operation"] for row in document["layers"]] == ["Convolution2d", "ElementwiseUnary"]
    assert [row["precision"] for row in document["layers"]] == ["int8", "float32"]
    assert document["output_bytes"] == Path(output).stat().st_size


def test_a_tflite_file_and_a_page_are_written(float_model: str, tmp_path: Path) -> None:
    output, page = tmp_path / "small.tflite", tmp_path / "page.html"
    arguments = ["--data", str(tmp_path), "--backends", "CpuRef", "-o", str(output)]
    np.save(tmp_path / "data.npy", np.random.default_rng(0).normal(0, 1, (3, 4, 4, 3)).astype("f4"))
    assert armpy_command(["quantize", float_model, *arguments, "--html", str(page)]) == 0
    with armpy.load(output, backends=["CpuRef"]) as model:
        assert model.inputs[0].name == "image"
        assert "Convolution2d" in [layer.operation.name for layer in model.graph.layers]
    text = page.read_text("utf-8")
    assert "has no integer form" in text
    assert "Quantisation of float.tflite to int8" in text
    assert re.search(
        r'"lead">small.tflite has [\d.]+ KiB, \d+ % of the float model; its output has \d+ dB', text
    )
    assert 'class="dots"' in text
    assert ">20</text>" in text  # axes begin there


def test_a_model_is_not_written_over_and_neither_is_the_data(
    float_model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, before = tmp_path / "data.npz", Path(float_model).read_bytes()
    np.savez(data, image=np.zeros((1, 4, 4, 3), np.float32))
    link = tmp_path / "link.tflite"
    link.symlink_to(float_model)
    for output in (float_model, str(link), str(data)):
        assert armpy_command(["quantize", float_model, "--data", str(data), "-o", output]) == 2
        assert "--output" in (err := capsys.readouterr().err)
        assert "this file is read from" in err
    assert Path(float_model).read_bytes() == before


def test_open_shapes_are_those_of_the_arrays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("armpy_onnx")
    onnx = pytest.importorskip("onnx")
    text = """
    <ir_version: 8, opset_import: ["" : 13]>
    spectrum (float[batch, 1, samples] x) => (float[batch, 1, frames] y)
    <float[1, 1, 16] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}>
    { y = Conv(x, w) }"""
    model, data = tmp_path / "open.onnx", tmp_path / "data.npz"
    onnx.save(onnx.parser.parse_model(text), model)
    np.savez(data, x=np.random.default_rng(0).normal(0, 1, (20, 1, 1, 64)).astype(np.float32))
    output = tmp_path / "small.armpy"
    arguments = ["--data", str(data), "--backends", "CpuRef", "-o", str(output)]
    assert armpy_command(["quantize", str(model), *arguments]) == 0, capsys.readouterr().err
    with armpy.load(str(output), backends=["CpuRef"]) as quantized:
        assert quantized.inputs[0].shape == (1, 1, 64)
    # What the command says comes first.
    assert armpy_command(["quantize", str(model), *arguments, "--shape", "x=1,1,32"]) != 0
