"""Inputs of models as commands take them: arrays, numbers, shapes, sizes, batches, pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from armpy import DataType, Model, Network, Quantization, TensorInfo
from armpy.cli.inputs.complete import complete_inputs, prepare_requested
from armpy.cli.inputs.request import InputRequest
from armpy.errors import InvalidArgumentError
from armpy.ops.operation import Array
from armpy.tensor import Shape
from armpy_testing.models.networks import f32


def model_of(**infos: TensorInfo) -> Model:
    """A model that returns its inputs."""
    network = Network("same")
    for name, info in infos.items():
        network.output(f"{name}_out", network.input(name, info))
    return Model(network)


def given(model: Model, *arrays: str, **options: Any) -> dict[str, Array]:
    with model:
        return complete_inputs(model, InputRequest(arrays, **options)).arrays


def info(data_type: DataType, *shape: int | None) -> TensorInfo:
    return TensorInfo(shape, data_type)


AUDIO = {"audio": f32(None, 512), "sr": info(DataType.SIGNED64), "state": f32(2, None, 3)}


def test_a_number_fills_an_input_and_the_others_are_random() -> None:
    arrays = given(model_of(**AUDIO), "sr=16000", "state=0", shape_sets=({"audio": (2, 512)},))
    assert list(arrays) == ["audio", "sr", "state"]
    assert arrays["sr"].dtype == np.int64
    assert arrays["sr"].tolist() == 16000
    assert arrays["state"].tolist() == np.zeros((2, 1, 3)).tolist()
    assert arrays["audio"].shape == (2, 512)
    assert len(set(arrays["audio"].ravel().tolist())) > 1000


@pytest.mark.parametrize(
    ("spec", "value", "expected"),
    [
        (f32(2), "-0.5", [-0.5, -0.5]),
        (f32(2), "nan", [np.nan, np.nan]),
        (f32(None), "1,2.5,3", [1, 2.5, 3]),
        (f32(None, None), "1,2,3", [[1, 2, 3]]),
        (f32(None, 2), "1,2,3,4", [[1, 2], [3, 4]]),
        (f32(2, 2), "1,2,3,4", [[1, 2], [3, 4]]),
        (TensorInfo(None, DataType.FLOAT32), "1,2", [1, 2]),
        (info(DataType.SIGNED32, 3), "4,5,6", [4, 5, 6]),
        (info(DataType.UNSIGNED64, 1), "18446744073709551615", [2**64 - 1]),
        (info(DataType.BOOLEAN, 2), "true", [True, True]),
        (info(DataType.BOOLEAN, 2), "1,0", [True, False]),
        (info(DataType.SIGNED4, 2), "-8,7", [-8, 7]),
        (info(DataType.STRING, 2), "hello, world", ["hello, world"] * 2),
        (info(DataType.STRING, 1), "", [""]),
    ],
)
def test_values_have_the_type_of_their_input(
    spec: TensorInfo, value: str, expected: list[object]
) -> None:
    array = given(model_of(x=spec), f"x={value}")["x"]
    assert array.dtype == spec.data_type.dtype
    np.testing.assert_array_equal(array, np.array(expected, array.dtype))


@pytest.mark.parametrize(
    ("spec", "value", "words"),
    [
        (info(DataType.SIGNED32, 1), "1.5", "x=1.5.*Expected whole numbers"),
        (info(DataType.UNSIGNED8, 1), "256", "Expected whole numbers from 0 to 255"),
        (info(DataType.BOOLEAN, 1), "2", "Expected whole numbers from 0 to 1"),
        (f32(1), "soon", "Expected numbers, or a file FILE.npy, for FLOAT32"),
        (f32(1), "absent.npy", "absent.npy: cannot be read"),
    ],
)
def test_values_that_are_none_of_an_input_are_refused(
    spec: TensorInfo, value: str, words: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=words):
        given(model_of(x=spec), f"x={value}")


def test_real_numbers_are_quantised_if_asked_for() -> None:
    quantised = TensorInfo((2,), DataType.QASYMM_S8, Quantization.per_tensor(0.5, 3))
    assert given(model_of(x=quantised), "x=7")["x"].tolist() == [7, 7]
    with pytest.raises(InvalidArgumentError, match=r"input 'x': .*--quantize-inputs"):
        given(model_of(x=quantised), "x=0.5")
    assert given(model_of(x=quantised), "x=0.5", quantize_inputs=True)["x"].tolist() == [4, 4]


def test_seeds_count_for_what_is_random() -> None:
    first, again, other = (given(model_of(**AUDIO), "sr=1", seed=seed) for seed in (1, 1, 2))
    for name in ("audio", "state"):
        np.testing.assert_array_equal(first[name], again[name])
        assert (first[name] != other[name]).any()


def test_an_array_says_shapes_as_the_option_does(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones((2, 3), np.float32))
    value = f"x={tmp_path / 'x.npy'}"
    with pytest.raises(InvalidArgumentError, match=r"input 'x': .*--shape.*\(2, 4\); got \(2, 3\)"):
        given(model_of(x=f32(None, None)), value, shape_sets=({"x": (2, 4)},))
    with pytest.raises(InvalidArgumentError, match=r"input 'x': .*--batch.*Expected 5; got"):
        given(model_of(x=f32(None, None)), value, batch=5)
    assert given(model_of(x=f32(None, None)), value, batch=2)["x"].shape == (2, 3)


def test_a_batch_is_the_first_size_where_it_is_open() -> None:
    shapes: dict[str, Shape] = {"x": (None, None, 3), "y": (None, 2), "z": (7, None), "s": ()}
    model = model_of(**{name: f32(*shape) for name, shape in shapes.items()})
    arrays = given(model, batch=4, shape_sets=({"x": (4, 9, 3)},))
    assert {n: array.shape for n, array in arrays.items()} == {
        "x": (4, 9, 3),
        "y": (4, 2),
        "z": (7, 1),
        "s": (),
    }
    with pytest.raises(InvalidArgumentError, match=r"batch=2: no input leaves.*'x' \(1, 2\)"):
        given(model_of(x=f32(1, 2)), batch=2)


def test_a_model_is_prepared_for_the_sizes() -> None:
    with model_of(x=f32(None, None, None, 3), y=f32(None, 2)) as model:
        prepare_requested(model, InputRequest(size=(6, 7), batch=2))
        latest = model.handle.loaded.latest
        assert latest is not None
        assert latest.shapes == ((2, 6, 7, 3), (2, 2))


def test_a_batch_alone_leaves_other_sizes_to_be_said() -> None:
    with model_of(x=f32(None, None)) as model:
        with pytest.raises(InvalidArgumentError, match="no shape yet"):
            prepare_requested(model, InputRequest(batch=2))
        prepare_requested(model, InputRequest(batch=2, shape_sets=({"x": (2, 5)},)))


def test_random_inputs_are_named_beside_those_that_are_given() -> None:
    with model_of(**AUDIO) as model:
        inputs = complete_inputs(model, InputRequest(("sr=16000",), seed=3))
        sizes = "open sizes taken for 'audio' (1, 512), 'state' (2, 1, 3)"
        assert inputs.origin == f"sr=16000, random numbers for 'audio', 'state', seed 3, {sizes}"
        said = InputRequest(shape_sets=({"audio": (4, 512), "state": (2, 4, 3)},))
        assert complete_inputs(model, said).origin == "random numbers, seed 0"
    with model_of(**{name: f32(None) for name in "abcde"}) as model:
        origin = complete_inputs(model, InputRequest()).origin
        assert origin.endswith("open sizes taken for 'a' (1,), 'b' (1,), 'c' (1,), 2 more")


def test_a_picture_is_for_the_input_that_is_left(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    path = str(tmp_path / "x.png")
    image.new("RGB", (5, 4)).save(path)
    infos = {"picture": f32(None, None, None, 3), "scale": f32(1)}
    with model_of(**infos) as model:
        inputs = complete_inputs(model, InputRequest(("scale=2",), size=(8, 9)), path)
        assert inputs.arrays["picture"].shape == (1, 8, 9, 3)
        assert inputs.arrays["scale"].tolist() == [2]
        assert inputs.origin.startswith(path)
        assert inputs.origin.endswith(", scale=2")
        with pytest.raises(InvalidArgumentError, match=r"got 2: 'picture', 'scale'.*--input"):
            complete_inputs(model, InputRequest(), path)
