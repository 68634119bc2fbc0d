"""Writes .onnx files of single operators, with inputs in the sizes that networks have.

Usage::

    python -m lab.benchmarks.operators FOLDER [OPERATOR]...

`lab/build_kernels.py` takes kernels from them that the usual networks do not need, and ``armpy
benchmark FILE --peer onnxruntime --threads 1`` measures one beside ONNX Runtime.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from armpy.ops.operation import Array
from lab.benchmarks.common import description

_RANDOM = np.random.default_rng(11)


@dataclass(frozen=True, slots=True)
class Case:
    """A node with its inputs.

    Parameters
    ----------
    name : str
    operator : str
    inputs : mapping of str to ndarray
        In the node's order; those of `constants` are initialisers, and None is left out.
    attributes : mapping of str to object
        Of the node.
    num_outputs : int
    constants : tuple of str
    """

    name: str
    operator: str
    inputs: Mapping[str, Array | None]
    attributes: Mapping[str, Any] = field(default_factory=dict)  # Any: as the node has them
    num_outputs: int = 1
    constants: tuple[str, ...] = ()

    def model(self) -> bytes:
        """The model file."""
        arrays = {name: array for name, array in self.inputs.items() if array is not None}
        names = [name if name in arrays else "" for name in self.inputs]
        outputs = [f"y{number}" for number in range(self.num_outputs)]
        graph = helper.make_graph(
            [helper.make_node(self.operator, names, outputs, **self.attributes)],
            self.operator,
            [
                helper.make_tensor_value_info(
                    name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
                )
                for name, array in arrays.items()
                if name not in self.constants
            ],
            [helper.make_empty_tensor_value_info(name) for name in outputs],
            [numpy_helper.from_array(arrays[name], name) for name in self.constants],
        )
        opsets = [helper.make_opsetid("", 20)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
        model = onnx.shape_inference.infer_shapes(model)
        return bytes(model.SerializeToString())


def _floats(*shape: int) -> Array:
    return _RANDOM.normal(size=shape).astype(np.float32)


def _integers(end: int, *shape: int) -> Array:
    return _RANDOM.integers(0, end, shape)


def _cumulative_sums() -> Iterator[Case]:
    """Along the last axis and another one."""
    for name, array in (("f32", _floats(64, 1024)), ("i64", _integers(9, 64, 1024))):
        for axis in (0, 1):
            yield _cumulative_sum(f"{name} axis {axis}", array, axis)
    yield _cumulative_sum("i32 mask", _integers(2, 8, 512).astype(np.int32), 1)


def _cumulative_sum(name: str, array: Array, axis: int) -> Case:
    inputs: dict[str, Array | None] = {"x": array, "axis": np.array(axis, np.int64)}
    return Case(name, "CumSum", inputs, constants=("axis",))


def _reductions(operator: str) -> Iterator[Case]:
    """Of rows, of columns, and of everything."""
    arrays: dict[str, Array] = {
        "f32": _floats(128, 1024),
        "i32": _integers(2, 128, 1024).astype(np.int32),
        "i64": _integers(9, 128, 1024),
    }
    if operator in ("ReduceMax", "ReduceMin"):
        arrays["u8"] = _integers(256, 128, 1024).astype(np.uint8)
        arrays["i8"] = _integers(127, 128, 1024).astype(np.int8)
        arrays["bool"] = _integers(2, 128, 1024).astype(bool)
    for name, array in arrays.items():
        for axes in ([0], [1], [0, 1]):
            inputs: dict[str, Array | None] = {"x": array, "axes": np.array(axes, np.int64)}
            yield Case(f"{name} axes {axes}", operator, inputs, constants=("axes",))


def _scattered(operator: str) -> Iterator[Case]:
    """Updates to a table, as those of embeddings and of graph networks."""
    for reduction in ("none", "add", "mul", "max", "min"):
        for name, dtype in (("f32", np.float32), ("i64", np.int64)):
            table = _integers(9, 500, 64).astype(dtype)
            updates = _integers(9, 2000, 64).astype(dtype)
            rows = _integers(500, 2000, 1)
            places = rows if operator == "ScatterND" else np.repeat(rows, 64, 1)
            inputs: dict[str, Array | None] = {"x": table, "places": places, "updates": updates}
            yield Case(f"{name} {reduction}", operator, inputs, {"reduction": reduction})


def _samples() -> Iterator[Case]:
    """Of an image, everywhere and beyond its border."""
    image = _floats(1, 16, 48, 64)
    grid = _RANDOM.uniform(-1.2, 1.2, (1, 40, 50, 2)).astype(np.float32)
    inputs: dict[str, Array | None] = {"x": image, "grid": grid}
    for mode in ("linear", "nearest", "cubic"):
        for padding in ("zeros", "border", "reflection"):
            attributes = {"mode": mode, "padding_mode": padding, "align_corners": 0}
            yield Case(f"{mode} {padding}", "GridSample", inputs, attributes)
    volume: dict[str, Array | None] = {
        "x": _floats(1, 4, 8, 16, 16),
        "grid": _RANDOM.uniform(-1.1, 1.1, (1, 8, 12, 12, 3)).astype(np.float32),
    }
    yield Case("linear volume", "GridSample", volume, {"mode": "linear"})


def _recurrent(operator: str) -> Iterator[Case]:
    """Sequences in each direction."""
    gates = {"GRU": 3, "LSTM": 4, "RNN": 1}[operator]
    for direction, count in (("forward", 1), ("reverse", 1), ("bidirectional", 2)):
        for batch, units in ((1, 128), (8, 64)):
            for after in (0, 1) if operator == "GRU" else (0,):
                inputs: dict[str, Array | None] = {
                    "x": _floats(50, batch, 96),
                    "w": _floats(count, gates * units, 96) / 10,
                    "r": _floats(count, gates * units, units) / 10,
                    "b": _floats(count, 2 * gates * units) / 10,
                }
                attributes = {"hidden_size": units, "direction": direction}
                if operator == "GRU":
                    attributes["linear_before_reset"] = after
                name = f"{direction} {batch}x{units}{' after' * after}"
                num_outputs = 3 if operator == "LSTM" else 2
                yield Case(name, operator, inputs, attributes, num_outputs, ("w", "r", "b"))
                if operator == "LSTM" and batch == 1:
                    hard = ["HardSigmoid", "Softsign", "Tanh"] * count
                    attributes = {**attributes, "activations": hard}
                    name = f"{name} hard"
                    yield Case(name, operator, inputs, attributes, num_outputs, ("w", "r", "b"))


def _largest() -> Iterator[Case]:
    """Few and many of short and long rows, and the smallest ones."""
    for rows, size, k in ((1, 100_000, 10), (200, 1000, 5), (200, 1000, 500), (1000, 80, 1)):
        for largest in (1, 0):
            inputs: dict[str, Array | None] = {"x": _floats(rows, size), "k": np.array([k])}
            name = f"{k} {'largest' if largest else 'smallest'} of {rows}x{size}"
            yield Case(name, "TopK", inputs, {"largest": largest}, 2, ("k",))
    inputs = {"x": _integers(10_000, 100, 1000), "k": np.array([5])}
    yield Case("5 of 100x1000 i64", "TopK", inputs, {}, 2, ("k",))
    inputs = {"x": _floats(100, 1000), "k": np.array([5])}
    yield Case("computed 5 of 100x1000", "TopK", inputs, {}, 2)


def _mapped(operator: str) -> Iterator[Case]:
    """Of each element."""
    yield Case("f32", operator, {"x": _floats(64, 1024)})


_OPERANDS: Mapping[str, tuple[Sequence[int], Sequence[int]]] = {
    "elements": ((64, 1024), (64, 1024)),
    "and a number": ((64, 1024), (1,)),
    "of a number": ((1,), (64, 1024)),
}


def _combined(operator: str) -> Iterator[Case]:
    """Elements with others, and with one number."""
    for kind in ("float32",) if operator == "Pow" else ("float32", "int32", "int64"):
        for name, shapes in _OPERANDS.items():
            x, y = ((1 + _integers(9, *shape)).astype(kind) for shape in shapes)
            yield Case(f"{kind} {name}", operator, {"x": x, "y": y})


def _conversions() -> Iterator[Case]:
    """Between numbers of all sorts."""
    dtypes = [np.dtype(name) for name in ("f4", "f2", "i4", "i8", "u1", "i1", "?")]
    for one, other in permutations(dtypes, 2):
        to = helper.np_dtype_to_tensor_dtype(other)
        x = _integers(2, 64, 1024).astype(one)
        yield Case(f"{one} to {other}", "Cast", {"x": x}, {"to": to})


def _choices() -> Iterator[Case]:
    """Of elements and numbers."""
    is_first = _integers(2, 64, 1024).astype(bool)
    for dtype in (np.float32, np.int32, np.int64):
        for name, shapes in _OPERANDS.items():
            x, y = (_integers(9, *shape).astype(dtype) for shape in shapes)
            yield Case(f"{dtype.__name__} {name}", "Where", {"c": is_first, "x": x, "y": y})


def _normalizations(operator: str) -> Iterator[Case]:
    """Of rows, or of images."""
    # One channel of many pixels: exporters write group normalisation so.
    shapes = ((64, 768),) if operator == "LayerNormalization" else ((2, 32, 28, 28), (1, 1, 65536))
    for shape in shapes:
        scale, b = (_floats(shape[1]) for _ in range(2))
        yield Case(f"f32 {shape}", operator, {"x": _floats(*shape), "scale": scale, "b": b})


def _narrow_transpositions() -> Iterator[Case]:
    """Of two to four columns or rows."""
    for dtype in (np.float32, np.int64, np.uint8):
        for count in (2, 3, 4):
            for shape in ((count, 4096), (4096, count)):
                x = _integers(99, *shape).astype(dtype)
                name = f"{dtype.__name__} {shape}"
                yield Case(name, "Transpose", {"x": x}, {"perm": [1, 0]})


_MAPPED = (
    *("Abs", "Ceil", "Cos", "Elu", "Erf", "Exp", "Floor", "HardSigmoid", "HardSwish", "LeakyRelu"),
    *("Log", "Mish", "Neg", "Reciprocal", "Round", "Selu", "Sigmoid", "Sign", "Sin", "Softplus"),
    *("Softsign", "Sqrt", "Tanh"),
)
_COMBINED = (
    *("Add", "Div", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Min"),
    *("Mul", "Pow", "Sub"),
)

CASES: Mapping[str, Callable[[], Iterator[Case]]] = {
    "CumSum": _cumulative_sums,
    **{
        name: partial(_reductions, name)
        for name in ("ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin", "ReduceMean")
    },
    **{name: partial(_scattered, name) for name in ("ScatterElements", "ScatterND")},
    "GridSample": _samples,
    **{name: partial(_recurrent, name) for name in ("GRU", "LSTM", "RNN")},
    "TopK": _largest,
    **{name: partial(_mapped, name) for name in _MAPPED},
    **{name: partial(_combined, name) for name in _COMBINED},
    "Cast": _conversions,
    "Where": _choices,
    **{
        name: partial(_normalizations, name)
        for name in ("LayerNormalization", "InstanceNormalization")
    },
    "Transpose": _narrow_transpositions,
}
"""By operator."""


def write_models(operators: Iterable[str], folder: Path) -> None:
    """Write the model of each case, named after it."""
    folder.mkdir(parents=True, exist_ok=True)
    for operator in operators:
        for case in CASES[operator]():
            (folder / f"{operator} {case.name}.onnx").write_bytes(case.model())


def main() -> None:
    """Write models of the operators that the command line names; of all if it names none."""
    parser = argparse.ArgumentParser(description=description(__doc__))
    parser.add_argument("folder", type=Path)
    parser.add_argument("operators", nargs="*", choices=[*CASES, []], metavar="OPERATOR")
    options = parser.parse_args()
    write_models(options.operators or CASES, options.folder)


if __name__ == "__main__":
    main()
