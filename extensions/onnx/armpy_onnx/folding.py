"""Folds operators between DequantizeLinear and QuantizeLinear into operators on quantised tensors.

Notes
-----
A file in QDQ form says with these pairs which tensors are quantised, and leaves it to the reader
to compute with integers in between. What ONNX Runtime makes of it is made here, too: of
``DequantizeLinear, Conv, Relu, QuantizeLinear`` one QLinearConv. Other operators, such as
AveragePool, LeakyRelu and Mul, stay: layers on quantised tensors would round their results twice.

References
----------
ONNX Runtime, "Quantize ONNX models", and its QDQ transformations.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from armpy.core.dataclass import dataclass
from armpy.ops.activations import FusedActivation
from armpy.ops.operation import Array

DOMAIN = "armpy"
"""Domain of the operators that are written here, see `armpy_onnx.operators.quantized_layers`."""

_BYTES = (TensorProto.INT8, TensorProto.UINT8)
_MOST_SCALE_BYTES = 1 << 20
_MOVING = (
    "DepthToSpace",
    "Flatten",
    "MaxPool",
    "Reshape",
    "Slice",
    "SpaceToDepth",
    "Squeeze",
    "Transpose",
    "Unsqueeze",
)
_BINARY = ("Add", "Sub")
_OTHERS = ("Concat", "GlobalAveragePool", "Sigmoid")
_WEIGHTED = ("Conv", "Gemm", "MatMul")
_CLAMPED = ("Add", "Conv", "Gemm", "Sub")
"""Operators that Relu or Clip can be a part of."""

_BOUNDS = {activation.bounds: activation for activation in FusedActivation}


@dataclass(frozen=True, eq=False, slots=True)
class _Group:
    """An operator with what quantises its output."""

    node: onnx.NodeProto
    activation: FusedActivation
    quantize: onnx.NodeProto  # reads what comes out


def fold_pairs(graph: onnx.GraphProto, version: int) -> list[onnx.NodeProto]:
    """Nodes of a graph with quantised operators for what lies between pairs.

    Parameters
    ----------
    graph : onnx.GraphProto
        Is not changed.
    version : int
        Version of ONNX's own operator set.

    Returns
    -------
    list of onnx.NodeProto
        Nodes of pairs that others read stay; unused ones are dropped later.
    """
    if not any(node.op_type == "DequantizeLinear" for node in graph.node):
        return list(graph.node)
    return list(_Folder(graph, version).nodes())


class _Folder:
    """One walk over a graph's nodes."""

    def __init__(self, graph: onnx.GraphProto, version: int) -> None:
        self._nodes, self._version = list(graph.node), version
        self._constants = {tensor.name: tensor for tensor in graph.initializer}
        self._producers: dict[str, onnx.NodeProto] = {}
        self._readers: dict[str, list[onnx.NodeProto]] = defaultdict(list)
        self._kept = {value.name for value in graph.output}
        for node in self._nodes:
            self._producers.update((name, node) for name in node.output if name)
            for name in node.input:
                self._readers[name].append(node)
            self._kept.update(_captured(node))
            value = next(
                (attribute for attribute in node.attribute if attribute.name == "value"), None
            )
            if node.op_type == "Constant" and value is not None and value.HasField("t"):
                self._constants[node.output[0]] = value.t

    def nodes(self) -> Iterator[onnx.NodeProto]:
        """The graph's nodes; a folded operator is where the output was quantised."""
        folded_nodes: dict[int, onnx.NodeProto] = {}
        gone: set[int] = set()
        for node in self._nodes:
            group = self._group(node)
            folded = None if group is None else self._folded(group)
            if group is not None and folded is not None:
                folded_nodes[id(group.quantize)] = folded
                gone.update((id(node), id(self._readers[node.output[0]][0])))
        for node in self._nodes:
            if id(node) in folded_nodes:
                yield folded_nodes[id(node)]
            elif id(node) not in gone:
                yield node

    # What belongs together

    def _group(self, node: onnx.NodeProto) -> _Group | None:
        """A node whose only output is quantised, maybe after an activation function."""
        if node.domain not in ("", "ai.onnx") or len(node.output) != 1:
            return None
        if node.op_type not in (*_MOVING, *_BINARY, *_WEIGHTED, *_OTHERS):
            return None
        reader = self._only_reader(node.output[0])
        activation = FusedActivation.NONE
        if reader is not None and reader.op_type in ("Relu", "Clip") and node.op_type in _CLAMPED:
            activation_found = _BOUNDS.get(self._bounds(reader) or (0.0, 0.0))
            if activation_found is None or len(reader.output) != 1:
                return None
            activation, reader = activation_found, self._only_reader(reader.output[0])
        if reader is None or reader.op_type != "QuantizeLinear" or not self._is_simple(reader):
            return None
        return _Group(node, activation, reader)

    def _only_reader(self, name: str) -> onnx.NodeProto | None:
        readers = self._readers.get(name, ())
        return readers[0] if len(readers) == 1 and name not in self._kept else None

    def _bounds(self, node: onnx.NodeProto) -> tuple[float | None, float | None] | None:
        """Bounds of Relu or Clip; None if they are not known."""
        if node.op_type == "Relu":
            return 0.0, None
        bounds: list[float | None] = []
        for place, name in enumerate(("min", "max"), 1):
            attribute = next(
                (attribute for attribute in node.attribute if attribute.name == name), None
            )
            if attribute is not None:
                bounds.append(float(attribute.f))
            elif place < len(node.input) and node.input[place]:
                array = self._array(node.input[place])
                if array is None or array.size != 1:
                    return None
                bounds.append(float(array.reshape(())))
            else:
                bounds.append(None)
        return bounds[0], bounds[1]

    def _array(self, name: str) -> Array | None:
        """A small constant; None if it is none."""
        tensor = self._constants.get(name)
        if tensor is None or tensor.data_location == TensorProto.EXTERNAL:
            return None
        if int(np.prod(tensor.dims, dtype=np.int64)) * 8 > _MOST_SCALE_BYTES:
            return None
        try:
            return np.asarray(numpy_helper.to_array(tensor))
        except Exception:  # noqa: BLE001  # the node's converter names the fault
            return None

    def _is_simple(self, node: onnx.NodeProto, axis: int | None = None) -> bool:
        """Return whether a pair's end has one scale for bytes, or several along an axis.

        Parameters
        ----------
        axis : int, optional
            Axis of weights; others may not have several scales.
        """
        if len(node.input) < 3 or _number(node, "block_size", 0):
            return False
        scale, point = (self._array(name) for name in node.input[1:3])
        if scale is None or point is None or scale.dtype.kind != "f" or scale.shape != point.shape:
            return False
        if not np.all((scale > 0) & np.isfinite(scale)) or point.dtype not in (np.int8, np.uint8):
            return False
        has_several = scale.size > 1
        is_along = axis is not None and scale.ndim == 1 and _number(node, "axis", 1) == axis
        return not has_several or (is_along and not point.any())

    def _dequantized(self, name: str, axis: int | None = None) -> list[str] | None:
        """Integers, scale and zero point of a tensor; None if it was not made of these."""
        node = self._producers.get(name)
        if node is None or node.op_type != "DequantizeLinear" or not self._is_simple(node, axis):
            return None
        return list(node.input[:3])

    def _type(self, triple: Sequence[str]) -> int:
        """Element type of the integers."""
        return int(self._constants[triple[2]].data_type)

    # Replacements

    def _folded(self, group: _Group) -> onnx.NodeProto | None:
        """The operator on quantised tensors; None if there is none."""
        node, output = group.node, list(group.quantize.input[1:3])
        names_in = self._given(node)
        if names_in is None:
            return None
        if self._type(names_in[:3]) != self._constants[output[1]].data_type:
            return None
        kind = node.op_type
        bias = node.input[2] if kind in _WEIGHTED and len(node.input) > 2 else ""
        inputs = {
            "Concat": [*output, *names_in],
            "Conv": [*names_in, *output, bias],
            "Gemm": [*names_in, bias, *output],
        }.get(kind, [*names_in, *output, *(node.input[1:] if kind in _MOVING else ())])
        name = {"Conv": "QLinearConv", "MatMul": "QLinearMatMul"}.get(kind, kind)
        domain = "" if kind == "MatMul" else DOMAIN
        folded = helper.make_node(
            name, inputs, list(group.quantize.output), node.name, domain=domain
        )
        folded.attribute.extend(self._attributes(group))
        return folded

    def _given(self, node: onnx.NodeProto) -> list[str] | None:
        """Return an operator's inputs, as integers with scales and zero points."""
        kind = node.op_type
        if kind in _WEIGHTED:
            return self._weighted(node)
        count = {"Concat": len(node.input), **dict.fromkeys(_BINARY, 2)}.get(kind, 1)
        return self._triples(node.input[:count])

    def _attributes(self, group: _Group) -> list[onnx.AttributeProto]:
        """An operator's attributes and those of the operators folded into it."""
        attributes = [*group.node.attribute, helper.make_attribute("opset", self._version)]
        if group.activation is not FusedActivation.NONE:
            attributes.append(helper.make_attribute("activation", group.activation.name))
        return attributes

    def _triples(self, names: Iterable[str]) -> list[str] | None:
        """Tensors with their scales and zero points, all of one type."""
        triples: list[str] = []
        for name in names:
            triple = self._dequantized(name)
            if triple is None or (triples and self._type(triple) != self._type(triples[:3])):
                return None
            triples.extend(triple)
        return triples or None

    def _weighted(self, node: onnx.NodeProto) -> list[str] | None:
        """Input and weights with their scales and zero points."""
        if len(node.input) < 2:
            return None
        is_turned = bool(_number(node, "transB", 0))
        axis = {"Conv": 0, "Gemm": 0 if is_turned else 1, "MatMul": 1}[node.op_type]
        first = self._dequantized(node.input[0])
        weights = self._dequantized(node.input[1], axis)
        if first is None or weights is None:
            return None
        is_constant, rank = self._is_constant(weights[0]), self._rank_of_constant(weights[0])
        if node.op_type == "Conv" and rank not in (3, 4):
            return None
        if node.op_type == "MatMul":
            scale = self._array(weights[1])
            if rank != 2 and scale is not None and scale.size > 1:
                return None
            alike = self._type(first) == self._type(weights)
            return [*first, *weights] if is_constant or alike else None
        has_bias = len(node.input) > 2 and bool(node.input[2])
        if not is_constant or (has_bias and not self._is_constant(node.input[2])):
            return None
        if node.op_type == "Gemm" and not self._is_plain_gemm(node, has_bias):
            return None
        return [*first, *weights]

    def _is_plain_gemm(self, node: onnx.NodeProto, has_bias: bool) -> bool:
        """Return whether the addend is a bias per column, and both factors are as they come."""
        factors = {
            attribute.name: attribute.f
            for attribute in node.attribute
            if attribute.name in ("alpha", "beta")
        }
        if any(factor != 1 for factor in factors.values()):
            return False
        return not has_bias or self._rank_of_constant(node.input[2]) == 1

    def _rank_of_constant(self, name: str) -> int | None:
        """Number of axes of a constant, see `_is_constant`; None of others."""
        tensor = self._original_constant(name)
        return None if tensor is None else len(tensor.dims)

    def _is_constant(self, name: str) -> bool:
        """Return whether a tensor is an initializer, or quantised or dequantised from one."""
        return self._original_constant(name) is not None

    def _original_constant(self, name: str) -> onnx.TensorProto | None:
        """The initializer that a tensor is, or is made of by no more than a pair."""
        for _ in range(3):  # itself, and after either node of a pair
            if name in self._constants:
                return self._constants[name]
            node = self._producers.get(name)
            kinds = ("QuantizeLinear", "DequantizeLinear")
            if node is None or node.op_type not in kinds or not node.input:
                return None
            name = node.input[0]
        return None


def _number(node: onnx.NodeProto, name: str, default: int) -> int:
    """An attribute that is an integer."""
    return next(
        (int(attribute.i) for attribute in node.attribute if attribute.name == name), default
    )


def _captured(node: onnx.NodeProto) -> Iterator[str]:
    """Names that graphs inside a node may read from around it."""
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            for inner in graph.node:
                yield from inner.input
                yield from _captured(inner)
            yield from (value.name for value in graph.output)
