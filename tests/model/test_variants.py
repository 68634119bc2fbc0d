"""Variants of a model: inputs of other shapes, and any tensor as an output."""

from __future__ import annotations

import gc
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armpy
from armpy import Model, Network
from armpy.errors import InvalidArgumentError, ParserError
from armpy.model.related_models import MOST_KEPT
from armpy.ops import FullyConnected, Reshape, Shape
from armpy_testing.models.networks import ADD, MUL, RELU, f32, floats
from armpy_testing.systems import NEEDS_REPLACEABLE_FILES
from tests.support.prepared_models import inputs_of, save_two_inputs

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits_int8.tflite"
WEIGHTS = np.arange(8, dtype=np.float32).reshape(2, 4)


def on_reference(network: Any) -> Model:
    """A model that needs no compiler."""
    return Model(network, armpy.Runtime(armpy.RuntimeOptions(backends=["CpuRef"])))


def flattened(target: tuple[int, ...] = (1, 4)) -> Network:
    """``y = W flat(x)`` for one x of shape (1, 2, 2)."""
    net = Network("flattened")
    x = net.input("x", f32(1, 2, 2))
    flat = net.add(Reshape(target), x, name="flat")
    net.output("y", net.add(FullyConnected(), flat, net.constant(WEIGHTS), name="dense"))
    return net


@pytest.mark.parametrize("target", [(1, 4), (1, -1), (-1, 4)])
@pytest.mark.parametrize("rows", [4, None])
def test_the_batch_that_a_file_has_fixed_can_be_another(
    target: tuple[int, ...], rows: int | None
) -> None:
    x = np.random.default_rng(1).normal(size=(4, 2, 2)).astype(np.float32)
    with on_reference(flattened(target)) as model:
        several = model.reshape({"x": (rows, 2, 2)})
        assert several.inputs[0].shape == (rows, 2, 2)
        assert several.outputs[0].shape == (rows, 2)
        np.testing.assert_allclose(several(x), x.reshape(4, 4) @ WEIGHTS.T, rtol=1e-5)
        assert model.inputs[0].shape == (1, 2, 2)


def test_a_reshape_across_rows_does_not_follow_a_changed_batch() -> None:
    net = Network("across")
    x = net.input("x", f32(2, 4))
    net.output("y", net.add(Reshape((4, 2)), x, name="across"))
    with (
        on_reference(net) as model,
        pytest.raises(InvalidArgumentError, match=r"x \(3, 4\).*Reshape 'across'.*12 elements"),
    ):
        model.reshape({"x": (3, 4)})


def test_shapes_that_the_network_computes_follow() -> None:
    net = Network("computed")
    x, flat = net.input("x", f32(2, 3)), net.input("flat", f32(6))
    shape = net.add(Shape(), x)
    net.output("y", net.add(Reshape(), flat, shape, name="as x"))
    with on_reference(net) as model:
        other = model.reshape({"x": (3, 4), "flat": (12,)})
        assert other.outputs[0].shape == (3, 4)


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"y": (2, 2, 2)}, "no such input.*got 'y'"),
        ({"xx": (2, 2, 2)}, "Did you mean 'x'"),
        ({"x": 4}, "the shape cannot be used.*got 4"),
        ({"x": "4"}, "it is a text"),
        ({"x": (1.5, 2, 2)}, "the shape cannot be used"),
        ({"x": (-1, 2, 2)}, "negative"),
        ({"x": (1,) * 9}, "too many dimensions"),
        ([(1, 2, 2)], "not given by name"),
    ],
)
def test_a_shape_that_cannot_be_is_refused(shapes: Any, message: str) -> None:
    with (
        on_reference(flattened()) as model,
        pytest.raises(InvalidArgumentError, match=f"(?i){message}"),
    ):
        model.reshape(shapes)


def test_state_that_was_made_for_the_file_s_batch_is_named() -> None:
    net = Network("totals")
    total = net.variable("total", f32(2), key="total")
    net.assign(total, net.add(ADD, total, net.input("x", f32(2)), name="added"))
    net.output("y", total)
    with (
        on_reference(net) as model,
        pytest.raises(InvalidArgumentError, match=r"x \(5,\).*ElementwiseBinary 'added'"),
    ):
        model.reshape({"x": (5,)})


@NEEDS_REPLACEABLE_FILES
def test_a_file_is_reshaped_as_it_was_when_it_was_loaded(tmp_path: Path) -> None:
    path = tmp_path / "digits.tflite"
    path.write_bytes(DIGITS.read_bytes())
    with armpy.load(path, backends=["CpuRef"]) as model:
        name = model.inputs[0].name
        assert model.reshape({name: (3, 16, 16, 1)}).outputs[0].shape == (3, 10)
        os.utime(path, ns=(1, 1))
        with pytest.raises(ParserError, match=r"digits\.tflite: the model file has changed"):
            model.reshape({name: (3, 16, 16, 1)})
        path.unlink()
        with pytest.raises(ParserError, match="the model file is gone"):
            model.run({name: np.zeros((1, 16, 16, 1), np.int8)}, ["arith.constant"])


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("prepared") / "digits.armpy"
    with armpy.load(DIGITS, backends=["CpuRef"]) as model:
        model.save(path)
    return path


@pytest.mark.parametrize("is_bytes", [False, True])
def test_a_compiled_file_is_reshaped_and_shows_its_tensors(prepared: Path, is_bytes: bool) -> None:
    images = np.random.default_rng(1).integers(-128, 128, (3, 16, 16, 1)).astype(np.int8)
    source = prepared.read_bytes() if is_bytes else prepared
    with armpy.load(source, backends=["CpuRef"], code="never") as model:
        name, output = model.inputs[0].name, model.outputs[0].name
        single = [model(image[None])[0] for image in images]
        with model.reshape({name: (3, 16, 16, 1)}) as several:
            np.testing.assert_array_equal(several(images), single)
        outputs = model.run({name: images[:1]}, ["digits_1/edges_pool_1/MaxPool2d", output])
    assert outputs["digits_1/edges_pool_1/MaxPool2d"].shape == (1, 8, 8, 16)
    np.testing.assert_array_equal(outputs[output][0], single[0])


def two_steps() -> Network:
    """``y = relu(2 x + 1)``, with tensors "double", "sum" and "y"."""
    net = Network("two steps")
    x = net.input("x", f32(3))
    double = net.add(MUL, x, net.constant(np.float32(2), name="two"), name="double")
    total = net.add(ADD, double, net.constant(np.float32(1)), name="sum")
    net.output("y", net.add(RELU, total, name="relu"))
    return net


def test_any_tensor_is_an_output_by_its_name() -> None:
    with on_reference(two_steps()) as model:
        x = {"x": floats(-3, 0, 2)}
        outputs = model.run(x, ["sum", "x", "two", "relu"])
        assert [*outputs] == ["sum", "x", "two", "relu"]
        assert outputs["sum"].tolist() == [-5, 1, 5]
        assert outputs["x"].tolist() == [-3, 0, 2]
        assert outputs["two"] == 2
        assert outputs["relu"].tolist() == [0, 1, 5]
        assert model.run(x)["y"].tolist() == [0, 1, 5]


def counting(key: str | None = "count") -> Network:
    """``y = x + 1 + 1 + ...``, one more with each execution."""
    net = Network("counting")
    count = net.variable("count", f32(1), key=key)
    following = net.add(ADD, count, net.constant(np.float32(1)), name="following")
    net.assign(count, following)
    net.output("y", net.add(ADD, net.input("x", f32(1)), following))
    return net


def test_a_tensor_asked_for_by_name_goes_on_with_the_same_state() -> None:
    with on_reference(counting()) as model:
        x = {"x": floats(0)}
        assert model.run(x)["y"] == 1
        assert model.run(x, ["following"])["following"] == 2
        assert model.run(x)["y"] == 3
        model.reset_state()
        assert model.run(x, ["following"])["following"] == 1


def test_state_that_cannot_be_shared_is_an_error() -> None:
    with (
        on_reference(counting(key=None)) as model,
        pytest.raises(InvalidArgumentError, match="Give them keys"),
    ):
        model.run({"x": floats(0)}, ["following"])


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["doubel"], "no such tensor.*Did you mean 'double'"),
        (["zzzzz"], "Expected 'y', 'x', .*; got 'zzzzz'"),
        ("double", "outputs are not given by name.*got 'double'"),
        ([1], "got list"),
    ],
)
def test_a_name_that_no_tensor_has_is_refused(names: Any, message: str) -> None:
    with (
        on_reference(two_steps()) as model,
        pytest.raises(InvalidArgumentError, match=message),
    ):
        model.run({"x": floats(-3, 0, 2)}, names)


def test_variants_are_kept_while_they_are_lately_used_and_unloaded_after_that() -> None:
    net = Network("many")
    value = net.input("x", f32(1))
    for index in range(MOST_KEPT + 2):
        value = net.add(ADD, value, net.constant(np.float32(1)), name=f"add_{index}")
    net.output("y", value)
    with on_reference(net) as model:
        first = model.with_outputs(["add_0"])
        assert model.with_outputs(["add_0"]) is first
        for index in range(MOST_KEPT + 1):
            model.with_outputs([f"add_{index + 1}"])
        assert model.with_outputs([f"add_{MOST_KEPT}"]) is not first
        number = first.network_id
        assert first(floats(1)) == 2  # it is still held here
        del first
        gc.collect()
        with pytest.raises(InvalidArgumentError):
            model.runtime.get_network(number)
        variant = model.with_outputs(["add_5"])
    assert variant.is_closed


def test_a_light_model_has_variants(tmp_path: Path) -> None:
    path = save_two_inputs(tmp_path / "two.armpy")
    with armpy.load(path) as model:
        assert repr(model).startswith("Model('two': x FLOAT32 (?, 4), more FLOAT32 (?, 3) -> y")
        assert model.is_light
        outputs = model.run(inputs_of(), ["dense", "z"])
        np.testing.assert_array_equal(outputs["z"], np.maximum(outputs["dense"], 0))
        np.testing.assert_array_equal(outputs["z"], model.run(inputs_of())["z"])
