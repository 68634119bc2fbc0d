"""Runs of models: inputs, results, strings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from armpy.cli.inputs.complete import complete_inputs
from armpy.cli.inputs.request import InputRequest
from armpy.cli.pictures.labels import Labels
from armpy.cli.pictures.options import PictureOptions
from armpy.cli.run.results import (
    as_mask,
    is_classification,
    largest_regions,
    report_output,
    top_classes,
)
from armpy.cli.run.run_model import RunRequest, run_model
from armpy.errors import InvalidArgumentError
from armpy.graph.network import Network
from armpy.model import Model
from armpy.ops.operation import Array
from armpy.tensor import Quantization, Shape, TensorInfo
from armpy.types import DataType
from armpy_testing.models.networks import ADD, RELU, chain, f32


def relu_model(shape: Shape, data_type: DataType = DataType.FLOAT32) -> Model:
    """A model whose output is its input where that is positive."""
    quantization = Quantization.per_tensor(1.0, 0) if data_type.is_quantized else None
    net = Network("relu")
    net.output("y", net.add(RELU, net.input("x", TensorInfo(shape, data_type, quantization))))
    return Model(net)


def arrays_of(model: Model, request: InputRequest | None = None) -> dict[str, Array]:
    """Arrays for all inputs of a model."""
    return complete_inputs(model, request or InputRequest()).arrays


def save(folder: Path, array: object) -> str:
    path = folder / "x.npy"
    np.save(path, np.asarray(array))
    return f"x={path}"


def test_arrays_from_files_run(tmp_path: Path) -> None:
    option = save(tmp_path, np.array([[3, -1, 7]], np.float32))
    report = run_model(relu_model((1, 3)), RunRequest(inputs=InputRequest((option,))))
    (output,) = report.outputs
    assert (output.name, output.shape, output.min, output.max) == ("y", (1, 3), 0.0, 7.0)
    assert report.layers_by_backend == {"NumbaAcc": 1}
    assert report.inputs == option


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
    first, again, other = (arrays_of(model, InputRequest(seed=seed))["x"] for seed in (1, 1, 2))
    assert first.dtype == data_type.dtype
    assert first.shape == (4, 25)
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_random_indexes_are_0_or_1() -> None:
    net = Network("same")
    net.output("y", net.input("x", TensorInfo((100,), DataType.SIGNED32)))
    assert set(arrays_of(Model(net))["x"].tolist()) == {0, 1}


def test_repeated_runs_are_timed() -> None:
    report = run_model(Model(chain(shape=(2, 2))), RunRequest(repeat=3))
    timing = report.timing
    assert timing is not None
    assert timing.runs == 3
    assert 0 < timing.min_ms <= timing.median_ms
    assert timing.min_ms <= timing.mean_ms
    assert timing.min_ms <= timing.low_ms <= timing.median_ms <= timing.high_ms


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
        ({"picture": PictureOptions(value_range=(0, 1))}, "need --image"),
        ({"picture": PictureOptions(std=(0, 1))}, "need --image"),
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


ANIMALS = Labels({0: "ant", 1: "bee", 2: "cat"})


def test_a_classification_has_several_classes_and_nothing_else() -> None:
    assert is_classification(np.zeros((1, 1, 1, 5), np.float32))
    for shape in [(), (1,), (1, 1), (2, 5), (5, 1), (0,)]:
        assert not is_classification(np.zeros(shape, np.float32))
    assert not is_classification(np.zeros((1, 5), np.bool_))


def test_the_best_class_comes_first_and_of_equal_ones_the_first() -> None:
    classes = top_classes(np.array([[0.25, 0.5, 0.25]], np.float32), ANIMALS, 3)
    assert [(c.index, c.score, c.label) for c in classes] == [
        (1, 0.5, "bee"),
        (0, 0.25, "ant"),
        (2, 0.25, "cat"),
    ]


def test_nan_comes_last() -> None:
    classes = top_classes(np.array([np.nan, 1.0, -np.inf], np.float32), None, 3)
    assert [c.index for c in classes] == [1, 2, 0]


def test_a_classification_needs_a_label_per_class() -> None:
    with pytest.raises(InvalidArgumentError, match="Expected 4 labels; got 3"):
        top_classes(np.zeros((1, 4), np.float32), ANIMALS, 1)


def test_scores_are_dequantised() -> None:
    info = TensorInfo((1, 2), DataType.QASYMM_S8, Quantization.per_tensor(1 / 256, -128))
    report = report_output("y", info, np.array([[-128, 64]], np.int8))
    assert [(c.index, c.score) for c in report.classes] == [(1, 0.75), (0, 0.0)]
    assert (report.min, report.max, report.mean) == (0.0, 0.75, 0.375)


def test_rows_of_a_batch_are_classified_one_by_one() -> None:
    info = TensorInfo((2, 3), DataType.FLOAT32)
    scores = np.array([[1, 2, 0], [3, 6, 9]], np.float32)
    report = report_output("y", info, scores, batch=2, top=1, labels=ANIMALS)
    assert [row[0].label for row in report.rows] == ["bee", "cat"]
    assert not report_output("y", info, scores, batch=3).rows


def test_probabilities_at_every_pixel_are_a_mask_even_of_four_channels() -> None:
    info = TensorInfo((1, 8, 8, 4), DataType.FLOAT32)
    scores = np.full((1, 8, 8, 4), 0.1, np.float32)
    scores[..., 2] = 0.7
    mask = as_mask(scores, info)
    assert mask is not None
    assert (mask == 2).all()
    assert as_mask(scores * 2, info) is None  # a picture, for all that is known


def test_other_outputs_have_figures_only() -> None:
    info = TensorInfo((2, 2), DataType.FLOAT32)
    report = report_output("y", info, np.array([[1, 2], [3, 6]], np.float32))
    assert (report.min, report.max, report.mean) == (1.0, 6.0, 3.0)
    assert not report.classes
    assert not report.regions


def test_an_output_that_may_not_classify_does_not() -> None:
    info = TensorInfo((1, 3), DataType.FLOAT32)
    assert not report_output("y", info, np.ones((1, 3), np.float32), may_classify=False).classes


def test_an_empty_output_has_no_figures() -> None:
    report = report_output("y", TensorInfo((0, 4), DataType.FLOAT32), np.zeros((0, 4), np.float32))
    assert (report.min, report.max, report.mean) == (None, None, None)


@pytest.mark.parametrize("shape", [(1, 8, 9), (1, 8, 9, 1)])
def test_integers_over_an_image_are_a_mask(shape: tuple[int, ...]) -> None:
    mask = as_mask(np.full(shape, 3, np.uint8))
    assert mask is not None
    assert mask.shape == (8, 9)
    assert mask.dtype == np.int64
    assert (mask == 3).all()


def test_scores_per_pixel_become_a_mask_of_the_best_class() -> None:
    scores = np.zeros((1, 8, 8, 5), np.float32)
    scores[0, :4, :, 2] = 1
    mask = as_mask(scores)
    assert mask is not None
    assert mask[:4].tolist() == [[2] * 8] * 4
    assert not mask[4:].any()


def test_three_channels_are_a_picture_unless_there_are_labels() -> None:
    stored = np.zeros((1, 8, 8, 3), np.uint8)
    assert as_mask(stored) is None
    assert as_mask(stored, has_labels=True) is not None


@pytest.mark.parametrize(
    "stored",
    [
        np.zeros((1, 10), np.int32),
        np.zeros((2, 8, 8), np.int32),
        np.zeros((1, 7, 7, 1024), np.float32),
        np.zeros((1, 8, 8), np.float32),
        np.zeros((1, 8, 8, 1), np.float32),
        np.zeros((1, 8, 8), np.bool_),
    ],
    ids=lambda array: f"{array.dtype}{array.shape}",
)
def test_other_outputs_are_no_mask(stored: np.ndarray) -> None:
    assert as_mask(stored) is None


def test_regions_come_by_size_with_their_share() -> None:
    mask = np.array([[2, 2, 2], [0, 0, 255]], np.int64)
    regions = largest_regions(mask, ANIMALS, 3)
    assert [(r.index, r.pixels, r.label) for r in regions] == [
        (2, 3, "cat"),
        (0, 2, "ant"),
        (255, 1, ""),
    ]
    assert [r.share for r in regions] == pytest.approx([1 / 2, 1 / 3, 1 / 6])
    assert not any(r.label for r in largest_regions(mask, None, 3))


def test_a_mask_made_of_scores_needs_a_label_per_class() -> None:
    stored = np.zeros((1, 8, 8, 5), np.float32)
    info = TensorInfo(stored.shape, DataType.FLOAT32)
    with pytest.raises(InvalidArgumentError, match="Expected 5 labels; got 3"):
        report_output("y", info, stored, mask=as_mask(stored), labels=ANIMALS)
