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
from armpy_testing.models.tflite_writer import OptionValue, TfliteModel

pytest.importorskip("click")
pytest.importorskip("rich")
pytest.importorskip("PIL")

from armpy_tools.cli.quantize.page import write_page
from armpy_tools.cli.quantize.quantize_file import QuantizeResult
from armpy_tools.quantize import LayerAccuracy, OutputAccuracy, QuantizeReport


@pytest.fixture(scope="module")
def float_model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A convolution over 4 by 4 pixels."""
    generator = np.random.default_rng(5)
    model = TfliteModel()
    graph = model.subgraph("main")
    image = graph.tensor("image", (1, 4, 4, 3))
    weights = graph.tensor("w", (2, 3, 3, 3), data=generator.normal(0, 1, (2, 3, 3, 3)))
    bias = graph.tensor("b", (2,), data=[0.5, -0.5])
    features = graph.tensor("features", (1, 4, 4, 2))
    wave = graph.tensor("wave", (1, 4, 4, 2))
    options: dict[str, OptionValue] = {"padding": "SAME", "stride_w": 1, "stride_h": 1}
    graph.operator("CONV_2D", [image, weights, bias], [features], options=options)
    graph.operator("SIN", [features], [wave])
    graph.inputs(image)
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


def test_one_picture_is_taken_and_few_samples_are_warned_of(
    float_model: str, pictures: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = str(tmp_path / "small.armpy")
    arguments = ["--data", f"{pictures}/0.png", "--backends", "CpuRef", "-o", output]
    assert armpy_command(["quantize", float_model, *arguments]) == 0
    captured = capsys.readouterr()
    assert "from 1 sample\n" in captured.out
    warning = (
        "armpy: warning: ranges are from 1 sample; other inputs will leave them. Give some 100"
    )
    assert captured.err.count(f"{warning} typical inputs as data.\n") == 1


def test_an_unknown_layer_is_answered_with_the_option_that_lists_all(
    float_model: str, pictures: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--data", pictures, "--keep-float", "conv1", "-o", "y.armpy"]
    assert armpy_command(["quantize", float_model, *arguments]) == 2
    error = capsys.readouterr().err
    assert "armpy: error: --keep-float: there is no such layer. Expected " in error


def test_a_file_that_is_neither_a_picture_nor_arrays_is_refused(
    float_model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes.txt").write_text("none")
    arguments = ["--data", str(tmp_path / "notes.txt"), "-o", str(tmp_path / "small.armpy")]
    assert armpy_command(["quantize", float_model, *arguments]) == 2
    assert "notes.txt: not a picture that can be read" in capsys.readouterr().err


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


def flat_output(
    sqnr_db: float, num_rows: int, span: float, step: float | None, error: float = 1e-6
) -> OutputAccuracy:
    best = 0.0 if num_rows else None
    return OutputAccuracy("y", sqnr_db, error, error, 0.9, best, num_rows, "a b", span, step)


@pytest.mark.parametrize(
    ("scheme", "output", "texts"),
    [
        (
            "int8",
            flat_output(0.0, 0, 0.0, 1 / 256),
            [
                "all numbers of the float model's output 'y' are the same on 4 samples, so that "
                "the accuracy of this output says nothing. Check that the model is trained",
                "those of output 'y' differ among themselves by 0 at most on 4 samples, less than "
                "a step of the quantised output, 0.00391. Quantise with --scheme int16x8, or keep "
                "the output's layer with --keep-float 'a b'",
            ],
        ),
        (
            "int16x8",
            flat_output(40.0, 4, 1e-5, 2**-15),
            [
                "by 1e-05 at most on 4 samples, less than a step of the quantised output, "
                "3.05e-05. Keep the output's layer with --keep-float 'a b'"
            ],
        ),
        ("int8", flat_output(40.0, 0, 0.003, 1 / 256), []),
        ("int8", flat_output(5.0, 0, 0.004, 1 / 256), ["ratio of 5.0 dB"]),
        ("int8", flat_output(5.0, 0, 0.0, None), ["same", "ratio of 5.0 dB"]),
        ("int8", flat_output(math.inf, 0, 0.0, None), ["output 'y' are the same on 4 samples"]),
        ("int8", flat_output(40.0, 0, 0.05, None), []),
        (
            "int8",
            flat_output(40.0, 0, 0.05, None, error=0.1),
            ["by 0.05 at most on 4 samples, less than the greatest error, 0.1."],
        ),
    ],
)
def test_answers_that_differ_by_less_than_a_step_are_the_cause(
    scheme: str, output: OutputAccuracy, texts: list[str]
) -> None:
    report = QuantizeReport(scheme, "mse", 100, 4, (), (output,), 8, 2)
    warnings = QuantizeResult("m", "o", 8, 2, report).warnings
    assert len(warnings) == len(texts)
    assert all(text in warning for text, warning in zip(texts, warnings, strict=True))


@pytest.fixture(scope="module")
def flat_model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A classifier of a thousand classes whose weights are next to nothing."""
    model = TfliteModel()
    graph = model.subgraph("main")
    image = graph.tensor("image", (1, 4, 4, 3))
    weights = graph.tensor("w", (1000, 48), data=np.full((1000, 48), 1e-12, np.float32))
    logits = graph.tensor("logits", (1, 1000))
    scores = graph.tensor("scores", (1, 1000))
    graph.operator("FULLY_CONNECTED", [image, weights], [logits])
    graph.operator("SOFTMAX", [logits], [scores], options={"beta": 1.0})
    graph.inputs(image)
    graph.outputs(scores)
    path = tmp_path_factory.mktemp("flat") / "flat.tflite"
    path.write_bytes(model.to_bytes())
    return str(path)


def test_flat_answers_are_no_class_and_no_fault_of_the_range_and_more_bits_keep_them(
    flat_model: str, pictures: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--data", pictures, "--backends", "CpuRef", "-o", str(tmp_path / "small.tflite")]
    assert armpy_command(["quantize", flat_model, *arguments]) == 0
    captured = capsys.readouterr()
    assert "output 'scores' differ among themselves by 0 at most on 3 samples" in captured.err
    assert "less than a step of the quantised output, 0.00391" in captured.err
    assert "--range" not in captured.err
    assert re.search(r"^scores +0\.0 .* -$", captured.out, re.MULTILINE)
    fix = re.search(
        r"Quantise with (--scheme int16x8), or .* (--keep-float scores)\.", captured.err
    )
    assert fix is not None
    for option in fix.groups():
        assert armpy_command(["quantize", flat_model, *arguments, *option.split()]) == 0
        captured = capsys.readouterr()
        assert "apart" not in captured.err
        assert "are the same on 3 samples" in captured.err  # no option makes a model trained
        assert not re.search(r"^scores +0\.0 ", captured.out, re.MULTILINE)


@pytest.mark.parametrize(
    ("ending", "bits", "options", "reason"),
    [
        ("tflite", 32, [], "whose weights are few (1.25 KiB as floats): each output channel gets"),
        ("tflite", 32, ["--per-tensor"], None),
        ("tflite", 8, [], "whose weights have 8 or 16 bits already (1.25 KiB as floats): each"),
        ("armpy", 32, [], ": a compiled model also holds a plan and code. -o NAME.tflite"),
    ],
)
def test_a_result_that_is_not_smaller_is_explained(
    ending: str,
    bits: int,
    options: list[str],
    reason: str | None,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    values = np.random.default_rng(3).integers(-127, 128, (64, 4))
    scale = None if bits == 32 else 0.01
    model = TfliteModel()
    graph = model.subgraph("main")
    x, y = graph.tensor("x", (1, 4)), graph.tensor("y", (1, 64))
    kind = "FLOAT32" if bits == 32 else "INT8"
    weights = graph.tensor("w", (64, 4), kind, scale=scale, data=values)
    bias = graph.tensor("b", (64,), data=np.ones(64))
    graph.operator("FULLY_CONNECTED", [x, weights, bias], [y])
    graph.inputs(x)
    graph.outputs(y)
    path, data = tmp_path / "model.tflite", tmp_path / "data.npy"
    path.write_bytes(model.to_bytes())
    np.save(data, np.random.default_rng(4).normal(size=(20, 4)).astype(np.float32))
    output = tmp_path / f"made.{ending}"
    arguments = [str(path), "--data", str(data), "-o", str(output), "--backends", "CpuRef"]
    assert armpy_command(["quantize", *arguments, *options]) == 0
    error = capsys.readouterr().err
    assert (output.stat().st_size >= path.stat().st_size) is (reason is not None)
    if reason is None:
        assert "not smaller" not in error
    else:
        assert "hint: the result is not smaller than the model" in error
        assert reason in error


def test_an_assumed_range_is_a_hint_where_answers_differ(
    float_model: str, pictures: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--data", pictures, "--backends", "CpuRef", "-o", str(tmp_path / "small.armpy")]
    assert armpy_command(["quantize", float_model, *arguments]) == 0
    assert "pixels are given as numbers from 0 to 1" in capsys.readouterr().err


def test_a_page_has_the_whole_names_by_which_layers_are_kept_float(tmp_path: Path) -> None:
    names = ("net/a/Conv2D;net/a/BiasAdd", "net/b/Conv2D;net/b/BiasAdd")
    layers = tuple(
        LayerAccuracy(name, "Convolution2d", name, "int8", "", 30.0, 0.1, 0.1, 0.9, name[4])
        for name in names
    )
    report = QuantizeReport("int8", "mse", 100, 4, layers, (), 8, 2)
    write_page(str(tmp_path / "page.html"), QuantizeResult("m", "o", 8, 2, report))
    text = (tmp_path / "page.html").read_text("utf-8").replace("<wbr>", "")
    assert all(name in text for name in names)


def test_no_ranges_are_no_reason_to_warn_of_few_samples() -> None:
    report = QuantizeReport("float16", "none", 0, 0, (), (), 8, 4)
    assert QuantizeResult("m", "o", 8, 4, report).warnings == ()


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


def test_a_folder_without_pictures_is_refused(
    float_model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes.txt").write_text("none")
    arguments = ["--data", str(tmp_path), "-o", str(tmp_path / "small.armpy")]
    assert armpy_command(["quantize", float_model, *arguments]) == 2
    assert "neither pictures nor arrays" in capsys.readouterr().err


def test_integers_without_data_say_what_to_give(
    float_model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert armpy_command(["quantize", float_model, "-o", str(tmp_path / "small.armpy")]) == 2
    assert "ranges of activations need data" in capsys.readouterr().err


def test_a_tflite_file_and_a_page_are_written(float_model: str, tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
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


def test_two_outputs_cannot_be_one_file(
    float_model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = str(tmp_path / "both")
    arguments = ["--data", str(tmp_path), "-o", output, "--html", output]
    assert armpy_command(["quantize", float_model, *arguments]) == 2
    assert "is what --output writes" in capsys.readouterr().err


def test_a_missing_folder_is_reported_before_the_data_are_read(
    float_model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "data.npz").write_bytes(b"none")
    arguments = ["--data", str(tmp_path / "data.npz"), "-o", str(tmp_path / "no" / "x.tflite")]
    assert armpy_command(["quantize", float_model, *arguments]) == 2
    assert f"there is no folder '{tmp_path / 'no'}'" in capsys.readouterr().err


def test_a_folder_of_both_pictures_and_arrays_is_refused(
    float_model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(tmp_path / "x.npy", np.zeros((1, 4, 4, 3), np.float32))
    (tmp_path / "x.png").write_bytes(b"")
    arguments = ["--data", str(tmp_path), "-o", str(tmp_path / "small.armpy")]
    assert armpy_command(["quantize", float_model, *arguments]) == 2
    assert "both pictures and arrays" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["deeper/x.npy", "x.npz", "._x.png"])
def test_missing_data_are_reported(
    name: str, float_model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "deeper").mkdir()
    (tmp_path / name).write_bytes(b"")
    arguments = ["--data", str(tmp_path), "-o", str(tmp_path / "small.armpy")]
    assert armpy_command(["quantize", float_model, *arguments]) == 2
    assert "neither pictures nor arrays" in capsys.readouterr().err


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
