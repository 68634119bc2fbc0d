"""A call is looked at anew each time, however much it is like the one before."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from armpy.errors import ArmpyError, InvalidArgumentError
from armpy.execution.arrays.conversion import may_overlap
from armpy.execution.arrays.slots import InputSlot, OutputSlot
from armpy.graph.network import Network
from armpy.model import Model
from armpy.ops.operation import Array
from armpy_testing.backends.fake_backends import (
    runtime_of,
)
from armpy_testing.changed_arrays import (
    HARMLESS,
    HARMLESS_FOR_INPUTS,
    WRONG_FOR_INPUTS,
    Change,
)
from armpy_testing.models.networks import ADD, chain, f32, floats
from armpy_testing.threads import in_threads

_NEW = 93  # PyArray_New's number in NumPy's table of functions
_WRITABLE_CARRAY = 0x0501


def borrowed(owner: Array, start: int, stop: int) -> Array:
    """Some elements of a vector, as an array that does not say whose they are."""
    core: Any = np._core if hasattr(np, "_core") else np.core  # Any: not typed
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    functions = pointer_of(core._multiarray_umath._ARRAY_API, None)
    address = ctypes.cast(functions, ctypes.POINTER(ctypes.c_void_p))[_NEW]
    number, pointer = ctypes.c_int, ctypes.c_void_p
    sizes = ctypes.POINTER(ctypes.c_ssize_t)
    kind = ctypes.py_object
    signature = (kind, number, sizes, number, pointer, pointer, number, number, pointer)
    new = ctypes.PYFUNCTYPE(ctypes.py_object, *signature)(address or 0)
    shape = (ctypes.c_ssize_t * 1)(stop - start)
    data = owner.ctypes.data + start * owner.itemsize
    last = owner.itemsize, _WRITABLE_CARRAY, None
    array: Array = new(np.ndarray, 1, shape, owner.dtype.num, None, data, *last)
    return array


@pytest.fixture
def model() -> Model:
    """``y = x + 3`` on vectors of 4."""
    return Model(chain(3), runtime_of())


def called(model: Model) -> tuple[Array, Array]:
    """An input and an output that a call was made with."""
    x, y = floats(1, 2, 3, 4), floats(0, 0, 0, 0)
    model.run({"x": x}, {"y": y})
    assert y.tolist() == [4, 5, 6, 7]
    return x, y


@pytest.mark.parametrize("name", [*HARMLESS, *HARMLESS_FOR_INPUTS])
def test_an_input_that_was_changed_in_place_is_read_as_it_is_now(model: Model, name: str) -> None:
    x, y = called(model)
    (HARMLESS | HARMLESS_FOR_INPUTS)[name](x)
    model.run({"x": x}, {"y": y})
    np.testing.assert_array_equal(y, x.astype(np.float32) + 3)


@pytest.mark.parametrize("name", HARMLESS)
def test_an_output_that_was_changed_in_place_is_written_where_it_is_now(
    model: Model, name: str
) -> None:
    x, y = called(model)
    HARMLESS[name](y)
    model.run({"x": x}, {"y": y})
    assert y.tolist() == [4, 5, 6, 7]


@pytest.mark.parametrize(("change", "text"), WRONG_FOR_INPUTS.values(), ids=WRONG_FOR_INPUTS)
def test_an_input_that_does_not_fit_any_more_is_an_error(
    model: Model, change: Change, text: str
) -> None:
    x, y = called(model)
    change(x)
    with pytest.raises(InvalidArgumentError, match=text):
        model.run({"x": x}, {"y": y})
    called(model)


@pytest.mark.parametrize("count", [1, 2])
def test_names_where_arrays_are_to_be_given_in_order_are_an_error_that_says_what_to_call(
    count: int,
) -> None:
    """Whether the network has one input or several."""
    net = Network()
    for name in "ab"[:count]:
        net.output(f"{name}_sum", net.add(ADD, net.input(name, f32(2)), net.constant(floats(1))))
    arrays = dict.fromkeys("ab"[:count], floats(1, 2))
    with pytest.raises(
        InvalidArgumentError, match=r"are given by name.*got dict\. Call model\.run"
    ):
        Model(net, runtime_of())(arrays)


def test_arrays_that_do_not_say_whose_memory_they_have_may_overlap(model: Model) -> None:
    block = floats(1, 2, 3, 4, 5)
    x, y = borrowed(block, 0, 4), borrowed(block, 1, 5)
    assert (x.base, y.base, y.flags.owndata) == (None, None, False)
    assert may_overlap(x, y)
    model.run({"x": x}, {"y": y})
    assert block.tolist() == [1, 4, 5, 6, 7]


def test_an_input_that_borrows_the_memory_of_an_output_is_read_as_it_was() -> None:
    net = Network()
    x = net.input("x", f32(4))
    for name in ("first", "second"):
        net.output(name, net.add(ADD, x, net.constant(floats(3))))
    model = Model(net, runtime_of())
    first, second = floats(1, 2, 3, 4), floats(0, 0, 0, 0)
    overlapping = borrowed(first, 0, 4)
    assert (overlapping.base, overlapping.flags.owndata, first.flags.owndata) == (None, False, True)
    model.run({"x": overlapping}, {"first": first, "second": second})
    assert first.tolist() == second.tolist() == [4, 5, 6, 7]


BLOCK = floats(1, 2, 3, 4, 0, 0, 0, 0)

ODD_CALLS: dict[str, Callable[[], tuple[object, object]]] = {
    "no input": lambda: ({}, None),
    "another name": lambda: ({"z": floats(1, 2)}, None),
    "one too many": lambda: ({"a": floats(1, 2), "b": floats(1, 2), "c": 1}, None),
    "inputs in order": lambda: ([floats(1, 2), floats(1, 2)], None),
    "outputs in order": lambda: (two(), [floats(0, 0)]),
    "no outputs in order": lambda: (two(), []),
    "a list": lambda: (two(a=[1, 2]), None),
    "another type": lambda: (two(a=np.array([1.0, 2.0])), None),
    "a subclass": lambda: (two(a=np.ma.masked_array([1, 2], dtype=np.float32)), None),
    "an output of a subclass": lambda: (
        two(),
        {"sum": floats(0, 0).view(np.ma.MaskedArray), "double": floats(0, 0)},
    ),
    "every second element": lambda: (two(a=floats(1, 2, 3, 4)[::2]), None),
    "read-only": lambda: (two(a=np.broadcast_to(np.float32(1), (2,))), None),
    "one output": lambda: (two(), {"double": floats(0, 0)}),
    "another output": lambda: (two(), {"double": floats(0, 0), "half": floats(0, 0)}),
    "too many outputs": lambda: (
        two(),
        {"sum": floats(0, 0), "double": floats(0, 0), "half": floats(0, 0)},
    ),
    "the same output twice": lambda: (two(), dict.fromkeys(("sum", "double"), floats(0, 0))),
    "an output that is None": lambda: (two(), {"sum": floats(0, 0), "double": None}),
    "parts of one array": lambda: (
        {"a": BLOCK[0:2], "b": BLOCK[2:4]},
        {"sum": BLOCK[4:6], "double": BLOCK[6:8]},
    ),
    "outputs that overlap": lambda: (two(), {"sum": BLOCK[4:6], "double": BLOCK[5:7]}),
    "an output over an input": lambda: (
        {"a": BLOCK[0:2], "b": BLOCK[2:4]},
        {"sum": BLOCK[1:3], "double": BLOCK[6:8]},
    ),
}


def two(**given: object) -> dict[str, object]:
    """Inputs for ``sum = a + b`` and ``double = a + a``."""
    return {"a": floats(1, 2), "b": floats(10, 20)} | given


@pytest.mark.parametrize("name", ODD_CALLS)
def test_a_call_has_the_same_outcome_whether_arrays_that_fit_are_known_to_or_not(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = Network()
    a, b = net.input("a", f32(2)), net.input("b", f32(2))
    net.output("sum", net.add(ADD, a, b))
    net.output("double", net.add(ADD, a, a))
    model = Model(net, runtime_of())

    def outcome() -> object:
        BLOCK[:] = [1, 2, 3, 4, 0, 0, 0, 0]
        inputs, outputs = ODD_CALLS[name]()
        try:
            results = model.run(inputs, outputs)  # type: ignore[arg-type]  # wrong on purpose
        except ArmpyError as error:
            return str(error)
        arrays: Mapping[str, object] = outputs if isinstance(outputs, dict) else {}
        is_in_place = [results[key] is array for key, array in arrays.items() if array is not None]
        return [(key, array.tolist()) for key, array in results.items()], is_in_place

    as_they_are = outcome()
    monkeypatch.setattr(InputSlot, "fits", lambda *_: False)
    assert outcome() == as_they_are
    monkeypatch.setattr(OutputSlot, "fits", lambda *_: False)
    assert outcome() == as_they_are


@pytest.mark.slow
def test_threads_may_call_with_the_same_arrays(model: Model) -> None:
    x, shared = called(model)

    def work(number: int) -> None:
        mine = floats(0, 0, 0, 0)
        for turn in range(200):
            mine[:] = 0
            source = x if turn % 3 else np.full(4, number, np.float32)
            model.run({"x": source}, {"y": mine})
            np.testing.assert_array_equal(mine, source + 3)
            model.run({"x": x}, {"y": shared})

    assert in_threads(work) == []
    np.testing.assert_array_equal(shared, x + 3)
