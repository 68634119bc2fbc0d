"""Operands of .tflite operators that decide: whatever they hold, no error is a backend's."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import armpy
from armpy.errors import ArmpyError, BackendError
from armpy.ops.operation import Array
from armpy_testing.models.tflite_writer import TfliteModel

X = ((4, 2), "FLOAT32")
IDS = ((4,), "INT32")
BOXES, SCORES = ((3, 4), "FLOAT32"), ((3,), "FLOAT32")
COUNT, SHARE = ((), "INT32"), ((), "FLOAT32")
Operands = tuple[tuple[tuple[int, ...], str], ...]
OPERATORS: dict[str, tuple[Operands, tuple[int, ...], int, dict[str, int] | None]] = {
    **{
        f"UNSORTED_SEGMENT_{name}": ((X, IDS, COUNT), (2,), 1, {})
        for name in ("SUM", "PROD", "MAX", "MIN")
    },
    "SEGMENT_SUM": ((X, IDS), (1,), 1, {}),
    "MULTINOMIAL": ((X, COUNT), (1,), 1, None),
    "ONE_HOT": ((IDS, COUNT, SHARE, SHARE), (1, 2, 3), 1, {}),
    "TOPK_V2": ((X, COUNT), (1,), 2, {}),
    "RANGE": ((COUNT, COUNT, COUNT), (0, 1, 2), 1, {}),
    "FILL": ((((1,), "INT32"), SHARE), (0, 1), 1, {}),
    "TILE": ((X, ((2,), "INT32")), (1,), 1, {}),
    "BROADCAST_TO": ((X, ((2,), "INT32")), (1,), 1, {}),
    "SLICE": ((X, ((2,), "INT32"), ((2,), "INT32")), (1, 2), 1, {}),
    "RESHAPE": ((X, ((2,), "INT32")), (1,), 1, {}),
    "EXPAND_DIMS": ((X, COUNT), (1,), 1, {}),
    "CUMSUM": ((X, COUNT), (1,), 1, {}),
    "ARG_MAX": ((X, COUNT), (1,), 1, {}),
    "REDUCE_MAX": ((X, COUNT), (1,), 1, {}),
    "SPLIT": ((COUNT, X), (0,), 2, {"num_splits": 2}),
    "SPLIT_V": ((X, ((2,), "INT32"), COUNT), (1, 2), 2, {"num_splits": 2}),
    "PAD": ((X, ((2, 2), "INT32")), (1,), 1, {}),
    "PADV2": ((X, ((2, 2), "INT32"), SHARE), (1, 2), 1, {}),
    "SCATTER_ND": ((((4, 1), "INT32"), X, ((2,), "INT32")), (2,), 1, {}),
    "REVERSE_V2": ((X, ((1,), "INT32")), (1,), 1, {}),
    "TRANSPOSE": ((X, ((2,), "INT32")), (1,), 1, {}),
    "GATHER": ((X, COUNT), (1,), 1, {}),
    "SPARSE_TO_DENSE": ((((1, 2), "INT32"), ((2,), "INT32"), SHARE, SHARE), (1, 3), 1, {}),
    "NON_MAX_SUPPRESSION_V4": ((BOXES, SCORES, COUNT, SHARE, SHARE), (2, 3, 4), 2, {}),
    "NON_MAX_SUPPRESSION_V5": (
        (BOXES, SCORES, COUNT, SHARE, SHARE, SHARE),
        (2, 3, 4, 5),
        3,
        {},
    ),
}
ODD: dict[str, Array] = {
    "none": np.zeros(0, np.int32),
    "several": np.full(3, 2, np.int32),
    "a matrix": np.ones((3, 3), np.int32),
    "negative": np.array(-9, np.int32),
    "lowest": np.array([-(2**31)], np.int32),
    "beyond all memory": np.array(2**62, np.int64),
    "not a number": np.array(np.nan, np.float32),
    "infinities": np.full(2, np.inf, np.float32),
}
_NAMES = {"int32": "INT32", "int64": "INT64", "float32": "FLOAT32"}


def model_of(name: str, place: int, odd: Array, *, is_constant: bool) -> bytes:
    """A model of one operator, with an operand as it should not be."""
    operands, _, num_outputs, options = OPERATORS[name]
    model = TfliteModel()
    graph = model.subgraph("main")
    tensors = []
    inputs = []
    for number, (shape, kind) in enumerate(operands):
        is_odd = number == place
        form = (odd.shape, _NAMES[odd.dtype.name]) if is_odd else (shape, kind)
        data = odd if is_constant and is_odd else None
        tensors.append(graph.tensor(f"x{number}", *form, data=data))
        if data is None:
            inputs.append(tensors[-1])
    outputs = [graph.tensor(f"y{number}", None, "FLOAT32") for number in range(num_outputs)]
    graph.operator(name, tensors, outputs, options)
    graph.inputs(*inputs)
    graph.outputs(*outputs)
    return model.to_bytes()


@cache
def runtime_of(*backends: str) -> armpy.Runtime:
    """One for all models: making it takes as long as loading and running one of them."""
    return armpy.Runtime(armpy.RuntimeOptions(backends=backends))


@pytest.mark.slow
@pytest.mark.parametrize("name", OPERATORS)
def test_odd_numbers_work_or_are_refused(name: str) -> None:
    operands, places, _, _ = OPERATORS[name]
    for place in places:
        for odd in ODD.values():
            for is_constant in (False, True):
                feeds = {
                    f"x{number}": odd if number == place else np.ones(shape, kind.lower())
                    for number, (shape, kind) in enumerate(operands)
                    if not (is_constant and number == place)
                }
                content = model_of(name, place, odd, is_constant=is_constant)
                for runtime in (runtime_of("CpuRef"), runtime_of("NumbaAcc", "CpuRef")):
                    try:
                        with armpy.load(content, runtime=runtime) as model:
                            model.run(feeds)
                    except BackendError:
                        raise
                    except ArmpyError:
                        continue


@pytest.mark.parametrize(("name", "place"), [("ONE_HOT", 2), ("ONE_HOT", 3), ("PADV2", 2)])
def test_one_value_is_not_several(name: str, place: int) -> None:
    content = model_of(name, place, np.ones(3, np.float32), is_constant=False)
    with pytest.raises(ArmpyError, match=r"_value' is not one element.*got \(3,\)"):
        armpy.load(content)


@pytest.mark.parametrize(
    ("operator", "shapes", "text"),
    [
        ("MATRIX_DIAG", [()], "diagonal is a scalar"),
        ("MATRIX_SET_DIAG", [(), ()], "not a matrix.*got 0"),
        ("MATRIX_SET_DIAG", [(3,), (3,)], "not a matrix.*got 1"),
    ],
)
def test_diagonals_of_too_few_axes_are_refused(
    operator: str, shapes: list[tuple[int, ...]], text: str
) -> None:
    """The file does not say the ranks."""
    model = TfliteModel()
    graph = model.subgraph("main")
    inputs = [graph.tensor(f"x{n}", shape, "FLOAT32") for n, shape in enumerate(shapes)]
    between = [graph.tensor(f"t{n}", None, "FLOAT32") for n in range(len(shapes))]
    for source, target in zip(inputs, between, strict=True):
        graph.operator("ABS", [source], [target], None)
    output = graph.tensor("y", None, "FLOAT32")
    graph.operator(operator, between, [output], {})
    graph.inputs(*inputs)
    graph.outputs(output)
    with pytest.raises(ArmpyError, match=text):
        armpy.load(model.to_bytes(), backends=["CpuRef"])
