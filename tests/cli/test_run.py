"""Running models that are built by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from armpy.cli.pictures.options import PictureOptions
from armpy.cli.run.run_model import RunRequest, random_inputs, run_model
from armpy.errors import InvalidArgumentError
from armpy.graph.network import Network
from armpy.model import Model
from armpy.tensor import Quantization, Shape, TensorInfo
from armpy.types import DataType
from tests.support.networks import ADD, RELU, chain, f32


def relu_model(shape: Shape, data_type: DataType = DataType.FLOAT32) -> Model:
    """A model whose output is its input where that is positive."""
    quantization = Quantization.per_tensor(1.0, 0) if data_type.is_quantized else None
    net = Network("relu")
    net.output("y", net.add(RELU, net.input("x", TensorInfo(shape, data_type, quantization))))
    return Model(net)


def save(folder: Path, array: object) -> str:
    path = folder / "x.npy"
    np.save(path, np.asarray(array))
    return f"x={path}"


def test_arrays_from_files_run(tmp_path: Path) -> None:
    option = save(tmp_path, np.array([[3, -1, 7]], np.float32))
    report = run_model(relu_model((1, 3)), RunRequest(inputs=(option,)))
    (output,) = report.outputs
    assert (output.name, output.shape, output.min, output.max) == ("y", (1, 3), 0.0, 7.0)
    assert report.layers_by_backend == {"NumbaAcc": 1}
    assert report.inputs == option


def test_an_output_of_the_input_s_shape_is_no_classification(tmp_path: Path) -> None:
    option = save(tmp_path, np.array([[3, -1, 7]], np.float32))
    report = run_model(relu_model((1, 3)), RunRequest(inputs=(option,)))
    assert not report.outputs[0].classes


def test_a_picture_over_an_image_input_gives_a_mask_and_a_file(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    picture = np.zeros((8, 8), np.uint8)
    picture[:2] = 2
    image.fromarray(picture).save(tmp_path / "picture.png")
    (tmp_path / "labels.txt").write_text("sea\nisland\nship\n")
    model = relu_model((1, 8, 8, 1), DataType.QASYMM_U8)
    report = run_model(
        model,
        RunRequest(
            image=str(tmp_path / "picture.png"),
            labels=str(tmp_path / "labels.txt"),
            output=str(tmp_path / "out"),
        ),
    )
    regions = report.outputs[0].regions
    assert [(r.label, r.pixels) for r in regions] == [("sea", 48), ("ship", 16)]
    assert [Path(path).name for path in report.files] == ["y.npy"]


def test_real_numbers_for_a_quantised_input_need_a_word(tmp_path: Path) -> None:
    option = save(tmp_path, np.array([[3]], np.float32))
    model = relu_model((1, 1), DataType.QASYMM_U8)
    with pytest.raises(InvalidArgumentError, match=r"input 'x': .*--quantize-inputs"):
        run_model(model, RunRequest(inputs=(option,)))
    model.quantize_inputs = True
    assert run_model(model, RunRequest(inputs=(option,))).outputs[0].max == 3.0


def test_a_picture_needs_a_model_with_one_input(tmp_path: Path) -> None:
    net = Network("two")
    x, y = (net.input(name, f32(1, 8, 8, 1)) for name in ("x", "y"))
    net.output("z", net.add(ADD, x, y))
    with pytest.raises(InvalidArgumentError, match=r"--image: .*Got 2: 'x', 'y'.*--input"):
        run_model(Model(net), RunRequest(image=str(tmp_path / "x.png")))


@pytest.mark.parametrize(
    "data_type",
    [t for t in DataType if not t.is_bit_pattern and not t.is_string],  # strings are empty
    ids=lambda t: t.name,
)
def test_random_inputs_have_the_type_and_are_the_same_each_time(data_type: DataType) -> None:
    quantization = Quantization.per_tensor(1.0, 0) if data_type.is_quantized else None
    net = Network("same")
    value = net.input("x", TensorInfo((4, 25), data_type, quantization))
    net.output("y", value)
    model = Model(net)
    first, again, other = (random_inputs(model, seed)["x"] for seed in (1, 1, 2))
    assert first.dtype == data_type.dtype
    assert first.shape == (4, 25)
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_random_indexes_are_0_or_1() -> None:
    net = Network("same")
    net.output("y", net.input("x", TensorInfo((100,), DataType.SIGNED32)))
    assert set(random_inputs(Model(net), 0)["x"].tolist()) == {0, 1}


def test_open_dimensions_get_the_default_the_size_or_1() -> None:
    net = Network("open")
    x = net.input("x", f32(None, None, None, 3))
    y = net.input("y", f32(None, 2), default_shape=(5, 2))
    z = net.input("z", f32(None, 2))
    for name, value in (("a", x), ("b", y), ("c", z)):
        net.output(name, net.add(RELU, value))
    model = Model(net)
    shapes = [array.shape for array in random_inputs(model, 0, (6, 7)).values()]
    assert shapes == [(1, 6, 7, 3), (5, 2), (1, 2)]
    assert random_inputs(model, 0)["x"].shape == (1, 1, 1, 3)


def test_repeated_runs_are_timed() -> None:
    report = run_model(Model(chain(shape=(2, 2))), RunRequest(repeat=3))
    timing = report.timing
    assert timing is not None
    assert timing.runs == 3
    assert 0 < timing.min_ms <= timing.median_ms
    assert timing.min_ms <= timing.mean_ms


def test_outputs_are_those_of_the_first_run_where_there_is_state() -> None:
    net = Network("counter")
    state = net.variable("state", f32(1))
    total = net.add(ADD, net.input("x", f32(1)), state)
    net.assign(state, total)
    net.output("y", total)
    (output,) = run_model(Model(net), RunRequest(repeat=5)).outputs
    assert output.max is not None
    assert abs(output.max) <= 1.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"image": "a", "inputs": ("b",)}, "--image and --input do not go together"),
        ({"picture": PictureOptions(value_range=(0, 1))}, "need --image"),
        ({"picture": PictureOptions(std=(0, 1))}, "need --image"),
        ({"inputs": ("b",), "picture": PictureOptions((1, 1))}, "--size does not go with --input"),
    ],
)
def test_options_that_do_not_go_together_are_rejected(
    options: dict[str, object], message: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        RunRequest(**options)  # type: ignore[arg-type]  # checked by the test itself


def test_ways_to_normalise_that_do_not_go_together_are_rejected() -> None:
    with pytest.raises(InvalidArgumentError, match="--range does not go with --mean"):
        PictureOptions(value_range=(0, 1), mean=(1,))
