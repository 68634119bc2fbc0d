"""Nodes of half precision that become several layers are computed in FLOAT32 and rounded once."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")

import onnx
from onnx import TensorProto, helper

import armpy
import armpy_onnx.node
import armpy_onnx.structures.walking
from armpy.ops.composite import LayerBuilder
from armpy_onnx.node import NodeData, Operator

from .onnx_nodes import Array, NodeCase

_HALF = np.float16


@dataclass(frozen=True)
class _Case:
    """A node, and its result in float64."""

    kind: str
    inputs: tuple[Array, ...]
    definition: Callable[..., Array]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    opset: int = 22


def _channels(*values: float) -> Array:
    return np.array(values, np.float64)


def _normalized(x: Array, scale: Array, bias: Array, mean: Array, variance: Array) -> Array:
    return np.asarray((x - mean) / np.sqrt(variance + np.float32(1e-5)) * scale + bias)


def _lp_pool(x: Array) -> Array:
    windows = np.lib.stride_tricks.sliding_window_view(x, (2, 2), (2, 3))
    return np.asarray(np.sqrt((windows**2).sum((-2, -1))))


def _softsign(x: Array) -> Array:
    return np.asarray(x / (1 + np.abs(x)))


def _sampled(line: Array, places: Array) -> Array:
    """A line whose elements are their positions less 350, sampled along it."""
    return np.asarray((((places[..., 0] + 1) * line.size - 1) / 2 - 350)[:, None])


_IMAGE = np.array([1000, 1000.5, 1001, 999]).reshape(1, 1, 2, 2)
_WIDE = np.linspace(200, 800, 16).reshape(1, 1, 4, 4)
_ROW = np.linspace(1000, 60000, 32).reshape(1, 32)
_SMALL = np.linspace(-6e-5, 6e-5, 32).reshape(1, 32)  # subnormal in float16
_LINE = (np.arange(400.0) - 350).reshape(1, 1, 1, 400)
_PLACES = np.stack([np.linspace(-0.9, 0.9, 32), np.zeros(32)], -1).reshape(1, 1, 32, 2)
_CASES = (
    _Case("GridSample", (_LINE, _PLACES), _sampled),
    _Case(
        "BatchNormalization",
        (_IMAGE, *(_channels(v) for v in (1, 0, 1000, 1e-4))),
        _normalized,
    ),
    _Case("LpPool", (_WIDE,), _lp_pool, {"kernel_shape": [2, 2], "p": 2}),
    _Case("GlobalLpPool", (_WIDE,), lambda x: np.sqrt((x * x).sum((2, 3), keepdims=True))),
    _Case("LpNormalization", (_ROW,), lambda x: x / np.abs(x).sum(-1, keepdims=True), {"p": 1}),
    _Case("LpNormalization", (_ROW * 0,), lambda x: x, {"p": 1}),
    _Case("LpNormalization", (_SMALL,), lambda x: x / np.abs(x).sum(-1, keepdims=True), {"p": 1}),
    _Case("Mean", (_ROW, _ROW, _ROW), lambda x, y, z: (x + y + z) / 3),
    _Case("Sum", (_ROW, _ROW, -_ROW), lambda x, y, z: x + y + z),
    _Case("Softsign", (_ROW,), _softsign),
    _Case("Softsign", (_SMALL,), _softsign),
    _Case(
        "Gemm",
        (_ROW, np.ones((32, 2)), _channels(1, 2)),
        lambda a, b, c: 1e-3 * (a @ b) + c,
        {"alpha": 1e-3},
    ),
    _Case(
        "com.microsoft.QuickGelu",
        (_SMALL * 1e5,),
        lambda x: x / (1 + np.exp(-np.float32(1.702) * x)),
    ),
)


def _run(case: _Case, element_type: int, backend: str) -> tuple[Array, Array]:
    """The output of armpy, and the exact one for the same inputs."""
    dtype = helper.tensor_dtype_to_np_dtype(element_type)
    inputs = [array.astype(dtype) for array in case.inputs]
    node = NodeCase(case.kind, inputs, case.attributes, case.opset, tuple(range(1, len(inputs))))
    with armpy.load(node.model.SerializeToString(), backends=[backend, "CpuRef"]) as loaded:
        fed = inputs[0].view(np.uint16) if element_type == TensorProto.BFLOAT16 else inputs[0]
        output = np.asarray(loaded(fed))
    exact = case.definition(*(array.astype(np.float64) for array in inputs))
    if element_type == TensorProto.BFLOAT16:
        output = output.view(dtype)
    return output.astype(np.float64), np.asarray(exact)


@pytest.mark.parametrize("backend", ["CpuRef", "NumbaAcc"])
@pytest.mark.parametrize("element_type", [TensorProto.FLOAT16, TensorProto.BFLOAT16])
@pytest.mark.parametrize("case", _CASES, ids=lambda case: case.kind)
def test_large_and_small_numbers_are_rounded_once(
    case: _Case, element_type: int, backend: str
) -> None:
    output, exact = _run(case, element_type, backend)
    is_float16 = element_type == TensorProto.FLOAT16
    digits, smallest = (10, -24) if is_float16 else (7, -133)
    magnitude = np.maximum(np.abs(exact), 2.0 ** (smallest + digits))
    step = 2.0 ** (np.floor(np.log2(magnitude)) - digits)
    assert np.isfinite(output).all()
    assert (np.abs(output - exact) <= step).all()


# Every operator


_MOVES = frozenset(
    (
        *("Reshape", "Transpose", "Cast", "Concat", "Slice", "StridedSlice", "Gather", "Pad"),
        *("BroadcastTo", "Splitter", "Stack", "Fill", "ReverseV2", "ChannelShuffle"),
        *("DepthToSpace", "SpaceToDepth", "OneHot", "Select"),
    )
)
"""Operations that move elements and round none."""

_EXACT = {
    "Clip": "compares",
    "Max": "compares",
    "MaxPool": "compares",
    "Min": "compares",
    "MaxUnpool": "moves",
    "Shrink": "each element is that of one of two layers",
    "GRU": "a layer for each direction",
    "LSTM": "adds two biases ahead of the layer, as NNAPI's layer has one",
    "RNN": "a layer for each direction",
}
"""Operators of several layers without FLOAT32 between them, and why that is right."""


class _Recorder:
    """Builds as another builder does, and notes layers that compute in half precision."""

    def __init__(self, build: LayerBuilder) -> None:
        self.build = build
        self.layers: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.build, name)

    def add_layer(self, operation: Any, inputs: Any, outputs: Any = (), name: str = "") -> Any:
        values = self.build.add_layer(operation, inputs, outputs, name)
        is_half = any(v.info.data_type in armpy_onnx.node.HALVES for v in values)
        if is_half and operation.name not in _MOVES:
            self.layers.append(operation.name)
        return values


def _half_models() -> Iterator[tuple[str, onnx.ModelProto, dict[str, Array]]]:
    """ONNX's own cases of one node, in float16."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's, while expected results are computed
        from onnx.backend.test.case.node import collect_testcases

        cases = collect_testcases(None)
    for case in cases:
        if case.model is None or len(case.model.graph.node) != 1 or not case.data_sets:
            continue
        if any(isinstance(value, list) for value in case.data_sets[0][0]):
            continue  # a sequence
        model = onnx.ModelProto()
        model.CopyFrom(case.model)
        infos = [info.type.tensor_type for info in (*model.graph.input, *model.graph.output)]
        floats = [info for info in infos if info.elem_type == TensorProto.FLOAT]
        for info in floats:
            info.elem_type = TensorProto.FLOAT16
        arrays = [np.asarray(array) for array in case.data_sets[0][0]]
        with np.errstate(over="ignore"):
            halves = [a.astype(_HALF) if a.dtype == np.float32 else a for a in arrays]
        names = [info.name for info in model.graph.input]
        if floats and len(names) == len(halves):
            yield case.name, model, dict(zip(names, halves, strict=True))


@pytest.mark.slow
def test_every_operator_of_several_layers_computes_in_float32(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Found from ONNX's cases, so that a new converter cannot be left out."""
    several: dict[str, set[str]] = {}
    convert = armpy_onnx.node.convert

    def recorded(build: Any, data: NodeData, operator: Operator, inputs: Any) -> Any:
        recorder = _Recorder(build)
        outputs = convert(recorder, data, operator, inputs)
        if len(recorder.layers) > 1:
            several.setdefault(data.kind, set()).add("+".join(recorder.layers))
        return outputs

    for module in (armpy_onnx.node, armpy_onnx.structures.walking):
        monkeypatch.setattr(module, "convert", recorded)
    num_run = 0
    for _, model, inputs in _half_models():
        try:
            with armpy.load(model.SerializeToString(), backends=["CpuRef"]) as loaded:
                loaded.run(inputs)
        except armpy.ArmpyError:
            continue  # an operator, or a form of it, that has no half precision
        num_run += 1
    assert num_run > 300
    assert {kind: layers for kind, layers in several.items() if kind not in _EXACT} == {}
