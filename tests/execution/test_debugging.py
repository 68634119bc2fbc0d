"""Errors of arrays and backends, and what debugging shows."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from armpy_numba_acc import NumbaBackend

import armpy
from armpy import DebugValue, Model, Network, Runtime, RuntimeOptions
from armpy.backend import IBackendInternal
from armpy.errors import (
    ArmpyError,
    BackendError,
    InvalidArgumentError,
    LayerValidationError,
    MemoryLimitError,
)
from armpy.graph import Graph
from armpy.ops.operation import Array
from armpy.plugins.proxy.guarded_call import (
    LONGEST_DESCRIPTION,
    ask_method,
    call_backend,
    call_method,
    describe,
)
from armpy_testing.backends.fake_backends import CompilingBackend, runtime_of
from armpy_testing.models.networks import ADD, MUL, RELU, chain, diamond, f32, floats

BACKENDS = pytest.mark.parametrize(
    "backends", [(), (CompilingBackend(),), (NumbaBackend(),)], ids=["CpuRef", "compiled", "Numba"]
)
X = floats(-1, 0, 1, 2)


def values_and_outputs(
    graph: Graph | Network,
    inputs: dict[str, Array],
    backends: Sequence[IBackendInternal] = (),
    **options: object,
) -> tuple[list[DebugValue], dict[str, Array]]:
    """Values that a callback received, and the outputs."""
    values: list[DebugValue] = []
    with runtime_of(*backends, **options) as runtime:
        outputs = Model(graph, runtime).run(inputs, debug=values.append)
    return values, outputs


@BACKENDS
def test_every_layer_is_passed_in_order_with_its_values(
    backends: Sequence[IBackendInternal],
) -> None:
    values_seen, outputs = values_and_outputs(diamond(), {"x": X}, backends)
    assert [
        (debug_value.layer, debug_value.operation, debug_value.index) for debug_value in values_seen
    ] == [
        ("top", "Activation", 0),
        ("left", "ElementwiseBinary", 0),
        ("right", "ElementwiseBinary", 0),
        ("bottom", "ElementwiseBinary", 0),
    ]
    # x clamped; +1; *3; their sum.
    expected = [[0, 0, 1, 2], [1, 1, 2, 3], [0, 0, 3, 6], [1, 1, 5, 9]]
    for debug_value, values in zip(values_seen, expected, strict=True):
        np.testing.assert_array_equal(debug_value.values, floats(*values))
        assert debug_value.info.shape == debug_value.values.shape
    np.testing.assert_array_equal(outputs["y"], floats(1, 1, 5, 9))


def test_values_are_copies_that_cannot_be_written_to() -> None:
    values_seen, outputs = values_and_outputs(chain(1), {"x": X})
    assert not np.shares_memory(values_seen[0].values, outputs["y"])
    with pytest.raises(ValueError, match="read-only"):
        values_seen[0].values[0] = 3


def test_the_callers_arrays_are_written_as_without_a_callback() -> None:
    y = np.zeros(4, np.float32)
    with runtime_of() as runtime:
        got = Model(chain(2), runtime).run({"x": X}, {"y": y}, debug=lambda debug_value: None)
    assert got["y"] is y
    np.testing.assert_array_equal(y, X + 2)


def accumulating() -> Network:
    net = Network()
    state = net.variable("state", f32(4))
    total = net.add(ADD, net.input("x", f32(4)), state, name="total")
    net.assign(state, total)
    net.output("y", net.add(MUL, total, net.constant(np.float32(2)), name="double"))
    return net


def raising(error: BaseException) -> Callable[[DebugValue], None]:
    def callback(debug_value: DebugValue) -> None:
        raise error

    return callback


def test_what_the_callback_raises_is_the_callers_and_leaves_the_state() -> None:
    mine = ZeroDivisionError("mine")
    with runtime_of() as runtime:
        model = Model(accumulating(), runtime)
        with pytest.raises(ZeroDivisionError, match="mine") as caught:
            model.run({"x": X}, debug=raising(mine))
        assert caught.value is mine
        np.testing.assert_array_equal(model.run({"x": X})["y"], X * 2)


def test_every_value_counts_against_the_memory_limit() -> None:
    with runtime_of(memory_limit_bytes=200) as runtime:
        model = Model(chain(20), runtime)
        model.run({"x": X})
        with pytest.raises(MemoryLimitError, match="one execution of the network needs too much"):
            model.run({"x": X}, debug=lambda debug_value: None)


def test_working_memory_and_callbacks_do_not_go_together() -> None:
    with runtime_of() as runtime:
        model = Model(chain(2), runtime)
        memory = model.create_working_memory()
        with pytest.raises(InvalidArgumentError, match="no room for every value"):
            model.run({"x": X}, memory=memory, debug=lambda debug_value: None)


def test_something_that_cannot_be_called_is_refused() -> None:
    with runtime_of() as runtime, pytest.raises(InvalidArgumentError, match="cannot be called"):
        Model(chain(2), runtime).run({"x": X}, debug=3)  # type: ignore[arg-type]


# Other misbehaviour of backends at the plugin boundary


class Plugin:
    """Something a backend made."""

    size = 5

    def right(self, number: int = 1) -> int:
        return number

    def wrong(self) -> None:
        raise ValueError("oops")

    @property
    def gone(self) -> int:
        raise SystemExit(3)


def wrapped() -> int:
    """A method under the name of its decorator's wrapper."""
    return 1


class Renamed(Plugin):
    right = staticmethod(wrapped)  # type: ignore[assignment]  # as decorators do


def test_errors_name_the_backend_and_the_contracts_method() -> None:
    with pytest.raises(BackendError, match=r"^A / wrong: the backend raised ValueError\('oops'\)"):
        call_backend("A", Plugin().wrong)
    with pytest.raises(BackendError, match=r"^A / right: .* type\. Expected str or None; got 1"):
        ask_method("A", (str, type(None)), Renamed(), "right")
    with pytest.raises(BackendError, match=r"^A / gone: the backend raised SystemExit\(3\)"):
        call_method("A", Plugin(), "gone")
    with pytest.raises(BackendError, match=r"^A / missing: .*AttributeError"):
        call_method("A", Plugin(), "missing")


def test_a_backends_own_error_keeps_its_kind_and_its_cause() -> None:
    cause = OSError("device")

    def fails() -> None:
        raise LayerValidationError("rank 9", where="gather") from cause

    with pytest.raises(LayerValidationError, match=r"^A / fails / gather: rank 9\.$") as caught:
        call_backend("A", fails)
    assert caught.value.__cause__ is cause


class HalfError(ArmpyError):
    """Does not call its base's ``__init__``."""

    def __init__(self) -> None:
        return


def test_an_error_that_is_not_whole_becomes_one_that_is() -> None:
    def fails() -> None:
        raise HalfError

    with pytest.raises(BackendError, match=r"^A / fails: the backend raised HalfError, .*damaged"):
        call_backend("A", fails)


def test_long_answers_are_shortened() -> None:
    text = describe("x" * 1000)
    assert text.endswith("xxx...")
    assert len(text) == LONGEST_DESCRIPTION + 3


# What is no array for an input is refused with words that say what it is and what to do


def relu(*shape: int | None) -> Model:
    net = Network("relu")
    net.output("y", net.add(RELU, net.input("x", f32(*shape))))
    return Model(net, Runtime(RuntimeOptions(backends=["CpuRef"])))


@pytest.fixture(scope="module")
def model() -> Model:
    return relu(2, 3)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (None, "the model has the wrong type.*got None"),
        (5, "got int"),
        ([], "got list"),
        ("", "the path is empty"),
        ("https://example.org/a.tflite", "not a path.*Download it"),
        (Network("a"), r"got Network\..*armpy\.Model takes networks"),
        (np.zeros((2, 3), np.float32), "got ndarray"),
        (io.StringIO("text"), r"opened as a text.*open\(path, 'rb'\)"),
        (io.BytesIO(b""), r"nothing is left to read.*file\.seek\(0\)"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_model_is_named(source: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        armpy.load(source)


def test_integers_that_would_wrap_are_distinguished_from_those_of_another_type() -> None:
    net = Network("bytes")
    info = armpy.TensorInfo((1, 2), armpy.DataType.QASYMM_S8, armpy.Quantization((1.0,), (0,)))
    net.output("y", net.add(RELU, net.input("x", info)))
    model = Model(net, Runtime(RuntimeOptions(backends=["CpuRef"])))
    with pytest.raises(InvalidArgumentError, match="values of 0 to 200 do not fit -128 to 127"):
        model(np.array([[0, 200]], np.uint8))
    with pytest.raises(InvalidArgumentError, match="Convert it to int8, whose values are -128"):
        model(np.array([[0, 100]], np.uint8))
