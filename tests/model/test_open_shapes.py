"""Shapes of inputs whose sizes a model leaves open."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from armpy import DataType, Model, Network, TensorInfo, ops
from armpy.core.units import shell_word
from armpy.errors import InvalidArgumentError, LayerValidationError, arguments_written
from armpy.execution import TensorSpec
from armpy.model import InputShapes, choose_shapes, prepare_for
from armpy.tensor import Shape
from armpy_testing.models.networks import RELU, f32

INPUTS: Mapping[str, Shape | None] = {
    "input": (None, None),
    "state": (2, None, 128),
    "rate": (),
    "any": None,
}
NAMES = {"input": ("batch", "sequence"), "state": ("", "batch", "")}


def specs(shapes: Mapping[str, Shape | None]) -> list[TensorSpec]:
    return [TensorSpec(name, TensorInfo(s, DataType.FLOAT32)) for name, s in shapes.items()]


def chosen(
    shapes: Mapping[str, Sequence[int]],
    names: Mapping[str, Sequence[str]] = NAMES,
    defaults: Sequence[tuple[int, ...] | None] = (None,) * 4,
) -> InputShapes:
    return choose_shapes(specs(INPUTS), defaults, shapes, lambda: names)


def test_other_inputs_have_the_sizes_of_dimensions_with_the_same_name() -> None:
    found = chosen({"input": (3, 512)})
    assert found.by_name == {"input": (3, 512), "state": (2, 3, 128), "rate": (), "any": ()}
    assert [spec.name for spec in found.guessed] == ["any"]
    assert chosen({"state": (2, 5, 128)}).by_name["input"] == (5, 1)


def test_defaults_of_the_file_come_before_names() -> None:
    found = chosen({"input": (3, 512)}, defaults=(None, (2, 9, 128), None, (4,)))
    assert found.by_name == {"input": (3, 512), "state": (2, 9, 128), "rate": (), "any": (4,)}
    assert not found.unknown
    assert [spec.name for spec in found.guessed] == ["state", "any"]


@pytest.mark.parametrize(
    "names",
    [
        {},
        {"input": ("batch", "sequence"), "state": ("batch",)},  # of another rank
        {"input": ("n", "n"), "state": ("", "n", "")},  # one name for two sizes
        {"input": ("", ""), "state": ("", "", "")},
    ],
)
def test_names_that_say_no_size_leave_1(names: Mapping[str, Sequence[str]]) -> None:
    found = chosen({"input": (3, 512)}, names)
    assert found.by_name["state"] == (2, 1, 128)
    assert [spec.name for spec in found.guessed] == ["state", "any"]


def test_names_are_not_read_where_nothing_follows_from_them() -> None:
    def refuse() -> Mapping[str, Sequence[str]]:
        raise AssertionError("the names were read")

    inputs = specs({"input": (None, None)})
    assert choose_shapes(inputs, [None], {}, refuse).by_name == {"input": (1, 1)}
    assert choose_shapes(inputs, [None], {"input": (2, 3)}, refuse).by_name == {"input": (2, 3)}


@pytest.mark.parametrize(
    ("shape", "example"),
    [
        ((None, None), (1, 128)),
        ((None, 3, None, None), (1, 3, 224, 224)),
        ((None, 10), (1, 10)),
        ((2, None, 7), (2, 128, 7)),
        (None, (1, 128)),
    ],
)
def test_the_fix_has_an_example_that_fits(shape: Shape | None, example: tuple[int, ...]) -> None:
    fix = choose_shapes(specs({"x": shape}), [None], {}, dict).fix
    assert fix.endswith(f"choose one, for example with shapes={{'x': {example}}}")


@pytest.mark.parametrize(
    ("least", "most", "size"), [(0, 9000, 128), (129, 9000, 256), (6000, 9000, 8192), (0, 60, 32)]
)
def test_an_example_is_a_size_that_is_taken(least: int, most: int, size: int) -> None:
    def fits(shapes: Mapping[str, tuple[int, ...]]) -> bool:
        return least <= shapes["x"][1] <= most

    shapes = choose_shapes(specs({"x": (None, None)}), [None], {}, dict)
    assert replace(shapes, fits=fits).fix.endswith(f"shapes={{'x': (1, {size})}}")


def test_where_no_size_is_taken_the_fix_says_what_was_tried() -> None:
    shapes = choose_shapes(specs({"x": (None, None)}), [None], {}, dict)
    fix = replace(shapes, fits=lambda _: False).fix
    assert "of input 'x' none that was tried ((1, 1) to (1, 16384))" in fix


@pytest.mark.parametrize(
    ("called", "least", "most", "example"),
    [
        ({"x": (1, 128)}, 501, 9000, "'x' (1, 512)"),
        ({"x": (1, 1024)}, 0, 600, "'x' (1, 512)"),
        ({"x": (1, 1000)}, 0, 600, "'x' (1, 512)"),
        ({"x": (3, 300)}, 0, 100, "'x' (3, 64)"),
        ({"x": (1, 128)}, 99999, 99999, ""),
        ({}, 0, 9000, ""),  # the error is not about a call
    ],
)
def test_the_nearest_shape_that_is_taken_follows_on_one_that_is_not(
    called: dict[str, tuple[int, ...]], least: int, most: int, example: str
) -> None:
    several = choose_shapes(specs({"x": (None, None)}), [None], {"x": (1, 1)}, dict)
    found = replace(several, fits=lambda shapes: least <= shapes["x"][1] <= most)
    refusal = LayerValidationError("no", fix="Choose others")
    refusal.call_shapes = called
    with pytest.raises(LayerValidationError) as caught, found.explained():
        raise refusal
    assert caught.value.fix == "Choose others" + (f", for example {example}" if example else "")
    assert not caught.value.call_shapes
    with pytest.raises(LayerValidationError) as again, found.explained():
        raise refusal
    assert again.value.fix.count("for example") == bool(example)


def test_shapes_are_tried_once_for_an_error() -> None:
    tried = []

    def fits(shapes: Mapping[str, tuple[int, ...]]) -> bool:
        tried.append(shapes["x"])
        return shapes["x"] == (1, 512)

    guessed = replace(choose_shapes(specs({"x": (None, None)}), [None], {}, dict), fits=fits)
    with pytest.raises(LayerValidationError, match=r"\(1, 512\)"), guessed.explained():
        raise LayerValidationError("no")
    assert tried == [(1, 128), (1, 256), (1, 512)]


def test_a_command_is_told_its_option_for_the_shapes_of_a_call() -> None:
    several = choose_shapes(specs({"x": (None, None)}), [None], {"x": (1, 1)}, dict)
    refusal = LayerValidationError("no", fix="Choose others")
    refusal.call_shapes = {"x": (1, 1024)}
    with arguments_written("armpy.cli.written_option:written_option"):
        replace(several, fits=lambda shapes: shapes["x"][1] == 512).name_example(refusal)
    assert refusal.fix == "Choose others, for example with --shape x=1,512"


def masked_model() -> Model:
    """Two inputs of the same open size, of which only 512 fits."""
    network = Network("masked")
    product = ops.ElementwiseBinary(ops.BinaryOperation.MUL)
    inputs = (network.input(name, f32(None, None)) for name in ("x", "mask"))
    network.output("y", network.add(ops.Reshape((4, 128)), network.add(product, *inputs)))
    return Model(network)


@pytest.mark.parametrize("size", [1024, 65])
def test_calls_with_a_shape_that_is_not_taken_name_one_that_is(size: int) -> None:
    given = {name: np.zeros((1, size), np.float32) for name in ("x", "mask")}
    shapes = {name: array.shape for name, array in given.items()}
    fitting = {name: np.zeros((1, 512), np.float32) for name in ("x", "mask")}
    with masked_model() as model:
        calls: list[Callable[[], object]] = [
            lambda: model(*given.values()),
            lambda: model.run(given),
            lambda: model.run(given, deadline_s=60),
            lambda: model.bind(given),
            lambda: model.prepare(shapes),
            lambda: model.warm_up(shapes),
            lambda: model.create_working_memory(shapes),
        ]
        words = (
            rf"the call, 'x' \(1, {size}\), 'mask' \(1, {size}\): choose others, "
            r"for example 'x' \(1, 512\), 'mask' \(1, 512\)\.$"
        )
        for call in calls:
            with pytest.raises(LayerValidationError, match=words):
                call()
        assert model.run(fitting)["y"].shape == (4, 128)


def test_examples_are_written_as_the_caller_writes_them() -> None:
    shapes = choose_shapes(specs({"a b": (None,)}), [None], {}, dict)
    assert shapes.fix.endswith("for example with shapes={'a b': (1,)}")
    with arguments_written("armpy.cli.written_option:written_option"):
        assert shapes.fix.endswith(f"for example with --shape {shell_word('a b=1')}")


def test_an_input_that_there_is_not_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match=r"got 'inputs'. Did you mean"):
        chosen({"inputs": (1, 2)})


def open_model() -> Model:
    network = Network("open")
    network.output("y", network.add(RELU, network.input("x", f32(None, 3))))
    return Model(network)


def test_missing_shapes_are_an_error_that_names_the_option() -> None:
    with (
        open_model() as model,
        pytest.raises(
            InvalidArgumentError, match=r"^input 'x': .*no shape yet.*shapes={'x': \(1, 3\)}\.$"
        ),
    ):
        prepare_for(model, {})


def test_a_model_is_prepared_for_the_shapes() -> None:
    with open_model() as model:
        prepare_for(model, {"x": (4, 3)})
        assert model.handle.loaded.latest is not None
        assert model.handle.loaded.latest.shapes == ((4, 3),)


def test_errors_of_layers_name_the_option_only_where_a_size_was_guessed() -> None:
    for shapes, is_guessed in ((chosen({}), True), (InputShapes(), False)):
        with pytest.raises(LayerValidationError) as caught, shapes.explained():
            raise LayerValidationError("the window does not fit")
        assert ("shapes={'input': (1, 128)}" in str(caught.value)) is is_guessed


def test_a_batch_is_the_first_open_size_and_that_of_dimensions_with_its_name() -> None:
    inputs = specs(INPUTS)
    found = choose_shapes(inputs, [None] * 4, {}, lambda: NAMES, batch=7)
    assert found.by_name == {"input": (7, 1), "state": (2, 7, 128), "rate": (), "any": ()}
    assert [spec.name for spec in found.guessed] == ["input", "any"]
    found = choose_shapes(inputs, [(3, 9), None, None, None], {}, lambda: NAMES, batch=7)
    assert found.by_name["input"] == (7, 9)


def test_a_shape_that_is_given_goes_before_the_batch() -> None:
    found = choose_shapes(specs(INPUTS), [None] * 4, {"input": (3, 5)}, lambda: NAMES, batch=7)
    assert found.by_name["input"] == (3, 5)
    assert found.by_name["state"] == (2, 3, 128)


def test_a_batch_that_no_input_takes_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match=r"batch=7: no input leaves.*'x' \(1, 2\)"):
        choose_shapes(specs({"x": (1, 2), "y": ()}), [None, None], {}, dict, batch=7)
