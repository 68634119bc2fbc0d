"""Operands of ONNX operators that decide: whatever they hold, an error is armpy's own."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import onnx
import pytest

import armpy
from armpy.errors import ArmpyError
from armpy.ops.operation import Array

pytestmark = pytest.mark.slow

OPSET = 21
MEMORY_LIMIT_BYTES = 1 << 29

X = np.arange(8, dtype=np.float32).reshape(4, 2)
IMAGE = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
AXIS, COUNT = np.array(0, np.int64), np.array([2], np.int64)
PAIR = np.array([1, 2], np.int64)
ONE = np.array(1, np.float32)
BOXES = np.array([[[0, 0, 1, 1], [0, 0, 1, 0.9], [2, 2, 3, 3]]], np.float32)
SIGNAL = np.ones((1, 8, 1), np.float32)


@dataclass(frozen=True)
class Line:
    """An operator, its inputs, and which of them decide."""

    inputs: tuple[Array | None, ...]
    places: tuple[int, ...]
    attributes: dict[str, object] = field(default_factory=dict)
    outputs: int = 1


_SIZES = np.array([1, 1, 8, 8], np.int64)
_SCALES = np.array([1, 1, 2, 2], np.float32)
LINES: dict[str, Line] = {
    "TopK": Line((X, COUNT), (1,), outputs=2),
    "Range": Line((AXIS, np.array(5, np.int64), np.array(1, np.int64)), (0, 1, 2)),
    "Range floats": Line((ONE * 0, ONE * 5, ONE), (0, 1, 2)),
    "Expand": Line((X, np.array([3, 4, 2], np.int64)), (1,)),
    "Tile": Line((X, PAIR), (1,)),
    "Reshape": Line((X, np.array([2, -1], np.int64)), (1,)),
    "Slice": Line((X, PAIR[:1] * 0, COUNT, PAIR[:1] * 0, PAIR[:1]), (1, 2, 3, 4)),
    "Pad": Line((X, np.array([1, 0, 0, 1], np.int64), ONE, PAIR - 1), (1, 2, 3)),
    "Resize sizes": Line((IMAGE, None, None, _SIZES), (3,)),
    "Resize scales": Line((IMAGE, None, _SCALES), (2,)),
    "Resize region": Line(
        (IMAGE, np.array([0, 0, 0, 0, 1, 1, 1, 1], np.float32), None, _SIZES),
        (1, 3),
        {"coordinate_transformation_mode": "tf_crop_and_resize"},
    ),
    "OneHot": Line((PAIR, np.array(3, np.int64), np.array([0, 1], np.float32)), (1, 2)),
    "ConstantOfShape": Line((PAIR,), (0,)),
    "NonMaxSuppression": Line(
        (BOXES, np.ones((1, 2, 3), np.float32), COUNT, ONE[None] / 2, ONE[None] / 2), (2, 3, 4)
    ),
    "CumSum": Line((X, AXIS), (1,)),
    "Trilu": Line((X, AXIS), (1,)),
    "Squeeze": Line((IMAGE, PAIR[:1]), (1,)),
    "Unsqueeze": Line((X, PAIR[:1]), (1,)),
    "Split": Line((X, np.array([1, 3], np.int64)), (1,), outputs=2),
    "ReduceSum": Line((X, PAIR[:1]), (1,)),
    "ReduceMax": Line((X, PAIR[:1]), (1,)),
    "Gather": Line((X, PAIR), (1,)),
    "GatherND": Line((X, PAIR[:1, None]), (1,)),
    "GatherElements": Line((X, PAIR[None, :]), (1,)),
    "ScatterND": Line((X, PAIR[:1, None], X[:1]), (1,)),
    "ReverseSequence": Line((X, np.array([1, 2], np.int64)), (1,)),
    "CenterCropPad": Line((X, PAIR), (1,)),
    "Dropout": Line((X, ONE / 2, np.array(False)), (1, 2)),
    "Clip": Line((X, ONE, ONE), (1, 2)),
    "DFT": Line((SIGNAL, np.array(8, np.int64), np.array(1, np.int64)), (1, 2)),
    "STFT": Line(
        (SIGNAL, np.array(2, np.int64), np.ones(4, np.float32), np.array(4, np.int64)), (1, 2, 3)
    ),
    "HannWindow": Line((np.array(8, np.int64),), (0,)),
    "HammingWindow": Line((np.array(8, np.int64),), (0,)),
    "BlackmanWindow": Line((np.array(8, np.int64),), (0,)),
    "MelWeightMatrix": Line(
        (
            np.array(8, np.int64),
            np.array(16, np.int64),
            np.array(8000, np.int64),
            ONE * 0,
            ONE * 4000,
        ),
        (0, 1, 2, 3, 4),
    ),
    "MaxUnpool": Line(
        (IMAGE[:, :, :2, :2], np.arange(4).reshape(1, 1, 2, 2), _SIZES // [1, 1, 2, 2]),
        (1, 2),
        {"kernel_shape": [2, 2], "strides": [2, 2]},
    ),
    "Col2Im": Line(
        (np.ones((1, 4, 4), np.float32), np.array([4, 4]), np.array([2, 2])),
        (1, 2),
        {"strides": [2, 2]},
    ),
    "AffineGrid": Line((np.ones((1, 2, 3), np.float32), np.array([1, 1, 4, 4])), (1,)),
    "SplitToSequence": Line((X, PAIR[:1]), (1,)),
    "ConvInteger": Line(
        (IMAGE.astype(np.uint8), np.ones((1, 1, 2, 2), np.uint8), *(np.array(1, np.uint8),) * 2),
        (2, 3),
    ),
    "MatMulInteger": Line(
        (X.astype(np.uint8), np.ones((2, 3), np.uint8), *(np.array(1, np.uint8),) * 2), (2, 3)
    ),
    "QuantizeLinear": Line((X, ONE, np.array(1, np.uint8)), (1, 2)),
    "DequantizeLinear": Line((X.astype(np.uint8), ONE, np.array(1, np.uint8)), (1, 2)),
    "Bernoulli": Line((X / 8,), (0,)),
    "Upsample": Line((IMAGE, _SCALES), (1,)),
}
_OPSETS = {"Upsample": 9, "DFT": 20}
ODD: dict[str, Array] = {
    "none": np.zeros(0, np.int64),
    "several": np.full(3, 2, np.int64),
    "a matrix": np.ones((3, 3), np.int64),
    "negative": np.array(-9, np.int64),
    "negatives": np.full(2, -9, np.int64),
    "lowest": np.array([-(2**63)], np.int64),
    "beyond all memory": np.array(2**62, np.int64),
    "many beyond all memory": np.full(4, 2**62, np.int64),
    "beyond int64": np.array(2**63 + 2048, np.uint64),
    "float beyond int64": np.array(1e38, np.float32),
    "negative double beyond int64": np.array(-1e300, np.float64),
    "not a number": np.array(np.nan, np.float32),
    "infinities": np.full(2, np.inf, np.float32),
    "scales that are none": np.array([1, 1, np.nan, -np.inf], np.float32),
}
"""Of the operand's own type where that can hold them, and as they are."""


def model_of(
    nodes: list[onnx.NodeProto],
    arrays: dict[str, Array],
    constant: frozenset[str],
    results: list[str],
    opset: int = OPSET,
) -> bytes:
    """A model whose outputs have no shapes."""
    inputs = [
        onnx.helper.make_tensor_value_info(
            name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
        )
        for name, array in arrays.items()
        if name not in constant
    ]
    constants = [onnx.numpy_helper.from_array(arrays[name], name) for name in constant]
    outputs = [
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in results
    ]
    graph = onnx.helper.make_graph(nodes, "g", inputs, outputs, constants)
    opsets = [onnx.helper.make_opsetid("", opset)]
    model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10)
    return bytes(model.SerializeToString())


@cache
def runtime() -> armpy.Runtime:
    """One for all models: making it takes as long as loading and running one of them."""
    return armpy.Runtime(
        armpy.RuntimeOptions(backends=["CpuRef"], memory_limit_bytes=MEMORY_LIMIT_BYTES)
    )


def attempt(content: bytes, arrays: dict[str, Array], constant: frozenset[str]) -> str:
    """Load and run a model; what else than an error of armpy's comes out."""
    feeds = {name: array for name, array in arrays.items() if name not in constant}
    try:
        with armpy.load(content, runtime=runtime()) as model:
            model.run(feeds)
    except ArmpyError as error:
        return repr(error) if "the front-end raised" in str(error) else ""
    except Exception as error:  # noqa: BLE001  # the test looks for any other error
        return repr(error)
    return ""


def odd_arrays(usual: Array) -> dict[str, Array]:
    """Odd arrays, as they are and of the operand's type."""
    arrays_found = dict(ODD)
    for name, odd in ODD.items():
        if odd.dtype != usual.dtype and np.isfinite(odd).all():
            with np.errstate(all="ignore"):  # values outside the type are odd as well
                arrays_found[f"{name} of its type"] = odd.astype(usual.dtype)
    if usual.dtype == np.float32:
        arrays_found["not a number alone"] = np.full(usual.shape, np.nan, np.float32)
        arrays_found["most alone"] = np.full(usual.shape, 3e38, np.float32)
        arrays_found["infinity alone"] = np.full(usual.shape, np.inf, np.float32)
    else:
        for number in (0, -1, -9, 2**31, 2**62, -(2**63)):
            if usual.dtype == np.int64:
                arrays_found[f"{number} alone"] = np.full(usual.shape, number, np.int64)
    return arrays_found


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", LINES)
def test_odd_numbers_work_or_are_refused(name: str) -> None:
    line, kind = LINES[name], name.partition(" ")[0]
    names = ["" if array is None else f"x{n}" for n, array in enumerate(line.inputs)]
    results = [f"y{number}" for number in range(line.outputs)]
    node = onnx.helper.make_node(kind, names, results, **line.attributes)
    wrong = {}
    for place in line.places:
        usual = line.inputs[place]
        assert usual is not None
        for label, odd in odd_arrays(usual).items():
            arrays = {
                names[number]: odd if number == place else array
                for number, array in enumerate(line.inputs)
                if array is not None
            }
            every = frozenset(arrays)
            for constant in (frozenset(), frozenset({names[place]}), every - {names[0]}):
                opset = _OPSETS.get(kind, OPSET)
                content = model_of([node], arrays, constant, results, opset)
                if error := attempt(content, arrays, constant):
                    wrong[place, label, tuple(sorted(constant))] = error
    assert wrong == {}, wrong


LOOP = """<ir_version: 9, opset_import: ["" : 18]>
graph (TYPE n, bool c, float[3] x) => (float[3] last) {
  last = Loop (n, c, x) <body = b (int64 i, bool go, float[3] v) => (bool on, float[3] w) {
    w = Add (v, x)
    on = Identity (go)
  }>
}"""
AT = """<ir_version: 9, opset_import: ["" : 18]>
graph (TYPE n, float[3] x) => (float[m] y) {
  s = SequenceConstruct (x, x)
  y = SequenceAt (s, n)
}"""
INSERT = AT.replace(
    "y = SequenceAt (s, n)",
    "t = SequenceInsert (s, x, n)\n y = ConcatFromSequence <axis = 0> (t)",
)
ERASE = AT.replace(
    "y = SequenceAt (s, n)",
    "t = SequenceErase (s, n)\n y = ConcatFromSequence <axis = 0> (t)",
)


@pytest.mark.parametrize("text", [LOOP, AT, INSERT, ERASE], ids=["loop", "at", "insert", "erase"])
def test_odd_counts_and_positions_work_or_are_refused(text: str) -> None:
    wrong = {}
    odd_counts = {**ODD, "few": np.array([2], np.int64)}
    for (label, odd), is_constant in itertools.product(odd_counts.items(), (False, True)):
        if text is LOOP and odd.size == 1 and odd.max() > 2**32:
            continue  # it runs until its time is over
        kind = "float" if odd.dtype == np.float32 else "int64"
        dimensions = ", ".join(map(str, odd.shape))
        typed = f"{kind}[{dimensions}]" if odd.shape else kind
        model = onnx.parser.parse_model(text.replace("TYPE", typed))
        arrays = {"n": odd, "x": np.ones(3, np.float32), "c": np.array(True)}
        if text is not LOOP:
            del arrays["c"]
        if is_constant:
            del model.graph.input[0]
            model.graph.initializer.append(onnx.numpy_helper.from_array(odd, "n"))
        constant = frozenset({"n"} if is_constant else ())
        if error := attempt(model.SerializeToString(), arrays, constant):
            wrong[label, is_constant] = error
    assert wrong == {}, wrong
