"""What can be done to an array in place, and what a call with it is then to do."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from armpy.ops.operation import Array

Change = Callable[[Array], object]


def change(array: Array, attribute: str, value: object) -> None:
    """Assign to an array's attribute; NumPy advises against it, and allows it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        setattr(array, attribute, value)


def move(array: Array) -> None:
    """Let an array's elements be elsewhere."""
    copied, size = array.copy(), array.size
    blocker = []
    for _ in range(3):
        array.resize(1 << 20, refcheck=False)
        array.resize(size, refcheck=False)
        blocker.append(np.empty(size, array.dtype))
    array[:] = copied


def take_over(array: Array) -> None:
    """Let an array have new memory, as it has when it is unpickled."""
    state: Any = array.copy().__reduce__()[2]  # Any: what pickle keeps
    array.__setstate__(state)


def go_there_and_back(array: Array) -> None:
    """Let an array of four have another shape for a moment."""
    change(array, "shape", (2, 2))
    change(array, "shape", (4,))


HARMLESS: dict[str, Change] = {
    "nothing": lambda array: None,
    "other elements": lambda array: array.__setitem__(slice(None), array * 2),
    "moved": move,
    "unpickled": take_over,
    "there and back": go_there_and_back,
}
"""What any array of four may go through and still be used."""

HARMLESS_FOR_INPUTS: dict[str, Change] = {
    "read-only": lambda array: array.setflags(write=False),
    "strides": lambda array: change(array, "strides", (0,)),
    "byte order": lambda array: change(array, "dtype", np.dtype(">f4")),
    "said to be unaligned": lambda array: array.setflags(align=False),
}

WRONG_FOR_INPUTS: dict[str, tuple[Change, str]] = {
    "type": (lambda array: change(array, "dtype", np.dtype(np.int32)), "the wrong type"),
    "shape": (lambda array: change(array, "shape", (2, 2)), r"input 'x'.*got \(2, 2\)"),
    "length": (lambda array: array.resize(5, refcheck=False), r"input 'x'.*got \(5,\)"),
}

WRONG_FOR_OUTPUTS: dict[str, tuple[Change, str]] = {
    "type": (lambda array: change(array, "dtype", np.dtype(np.int32)), "int32"),
    "byte order": (lambda array: change(array, "dtype", np.dtype(">f4")), ">f4"),
    "shape": (lambda array: change(array, "shape", (2, 2)), r"float32 \(2, 2\)"),
    "length": (lambda array: array.resize(5, refcheck=False), r"float32 \(5,\)"),
    "read-only": (lambda array: array.setflags(write=False), "a read-only array"),
    "strides": (lambda array: change(array, "strides", (0,)), "not contiguous"),
    "said to be unaligned": (lambda array: array.setflags(align=False), "not aligned"),
}
