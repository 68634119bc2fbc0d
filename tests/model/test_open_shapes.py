"""Shapes of inputs whose sizes a model leaves open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from armpy import DataType, Model, Network, TensorInfo
from armpy.errors import Argument, InvalidArgumentError, LayerValidationError
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
            InvalidArgumentError,
            match=r"^input 'x' / shapes: .*no shape yet\. Expected sizes for \(\?, 3\)",
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
        assert (caught.value.argument == Argument("shapes")) is is_guessed
        assert ("of the form (?, ?) for input 'input'" in caught.value.fix) is is_guessed


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
