"""Legalisation: writes layers that have no lowering in terms of such that have.

Notes
-----
float16 becomes float32 in front of a layer and is rounded after it, as CpuRef does. Images with
channels in front, and rows along other axes than the last ones, are transposed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from itertools import count
from operator import is_

import numpy as np

from armpy.core.dataclass import dataclass
from armpy.graph import Layer, SubgraphView, Value
from armpy.ops.activation_layers import L2Normalization, LogSoftmax, Softmax
from armpy.ops.convolution import Convolution2d, Convolution3d, DepthwiseConvolution2d
from armpy.ops.movement import Transpose
from armpy.ops.normalization import (
    InstanceNormalization,
    LayerNormalization,
    RmsNormalization,
)
from armpy.ops.operation import OperandInfos, Operation
from armpy.ops.pooling import Pooling2d
from armpy.ops.quantizing import Cast
from armpy.ops.region_pooling import RoiAlign
from armpy.ops.resizing import Resize
from armpy.ops.shapes import normalize_axes
from armpy.ops.transpose_convolution import TransposeConvolution2d, TransposeConvolution3d
from armpy.tensor import TensorInfo
from armpy.types import DataLayout, DataType
from armpy_numba_acc.program.registry import refusal_of

_WITH_IMAGES = (
    Convolution2d,
    Convolution3d,
    DepthwiseConvolution2d,
    InstanceNormalization,
    Pooling2d,
    Resize,
    RoiAlign,
    TransposeConvolution2d,
    TransposeConvolution3d,
)
"""Whose first input and output have a layout."""

_CHANNELS_LAST = {DataLayout.NCHW: DataLayout.NHWC, DataLayout.NCDHW: DataLayout.NDHWC}

_WITH_ROWS = (L2Normalization, LogSoftmax, Softmax)
"""Whose first input and output have an axis."""

_OVER_AXES = (LayerNormalization, RmsNormalization)
"""Which have axes that must be the last ones, and nothing per element of those."""

Permutation = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Another operation that does the same to changed tensors."""

    operation: Operation
    permutation: Permutation | None = None  # of the first input's axes, and of the output's

    def input_info(self, info: TensorInfo | None, index: int) -> TensorInfo | None:
        """Return the description of the operation's replaced input."""
        return None if info is None else self._changed(info, index == 0)

    def output_info(self, info: TensorInfo) -> TensorInfo:
        """Return the description of the operation's replaced output."""
        return self._changed(info, True)

    def _changed(self, info: TensorInfo, is_permuted: bool) -> TensorInfo:
        """A tensor as float32, and transposed."""
        if info.data_type is DataType.FLOAT16:
            info = replace(info, data_type=DataType.FLOAT32)
        return _transposed(info, self.permutation) if is_permuted else info


def rewrite_of(
    operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
) -> Rewrite | None:
    """Return how a layer is written otherwise; None if there is no way."""
    rank = len(outputs[0].known_shape)
    if isinstance(operation, _WITH_IMAGES) and operation.data_layout in _CHANNELS_LAST:
        layout = _CHANNELS_LAST[operation.data_layout]
        return Rewrite(replace(operation, data_layout=layout), (0, *range(2, rank), 1))
    if isinstance(operation, _WITH_ROWS) and rank and operation.axis % rank != rank - 1:
        axis = operation.axis % rank
        others = tuple(number for number in range(rank) if number != axis)
        return Rewrite(replace(operation, axis=-1), (*others, axis))
    if isinstance(operation, _OVER_AXES) and not any(inputs[1:]):
        axes = normalize_axes(operation.axes, rank)
        order = (*(axis for axis in range(rank) if axis not in axes), *axes)
        if order != tuple(range(rank)):
            last = tuple(range(rank - len(axes), rank))
            return Rewrite(replace(operation, axes=last), order)
    infos = [info for info in (*inputs, *outputs) if info is not None]
    if any(info.data_type is DataType.FLOAT16 for info in infos):
        return Rewrite(operation)
    return None


def rewritten(view: SubgraphView) -> SubgraphView:
    """A region with other layers in the place of those that have no lowering.

    Parameters
    ----------
    view
        Whose layers `armpy_numba_acc.passes.support.support` has taken.
    """
    rewriter = _LayerRewriter()
    for layer in view.layers:
        rewriter.add(layer)
    # A layer that reads converted constants only may take another one's place alone.
    if len(rewriter.layers) == len(view.layers) and all(map(is_, rewriter.layers, view.layers)):
        return view
    return replace(view, layers=_needed(rewriter.layers, view.outputs))


@dataclass(eq=False)
class _LayerRewriter:
    """Layers as they are written, and the tensors between them that the graph does not have."""

    layers: list[Layer] = field(default_factory=list)
    _made: dict[tuple[Value, Permutation | None, DataType], Value] = field(default_factory=dict)
    _numbers: count[int] = field(default_factory=lambda: count(-1, -1))

    def add(self, layer: Layer) -> None:
        infos = layer.operation, layer.input_infos, layer.output_infos
        rewrite = rewrite_of(*infos)
        if rewrite is None or not refusal_of(*infos):
            self.layers.append(layer)
            return
        inputs = tuple(
            value and self._input(value, rewrite.permutation if index == 0 else None)
            for index, value in enumerate(layer.inputs)
        )
        outputs = tuple(self._given(value, rewrite) for value in layer.outputs)
        self.layers.append(
            replace(layer, operation=rewrite.operation, inputs=inputs, outputs=outputs)
        )
        for value, output in zip(layer.outputs, outputs, strict=True):
            if output is not value:
                self._output(value, output, rewrite.permutation)

    def _given(self, value: Value, rewrite: Rewrite) -> Value:
        """Return the other operation's output: the graph's tensor, if it is just that."""
        info = rewrite.output_info(value.info)
        is_same = rewrite.permutation is None and info == value.info
        return value if is_same else self._value(info, value.name)

    def _input(self, value: Value, permutation: Permutation | None) -> Value:
        """A tensor as a layer wants it."""
        data_type = value.info.data_type
        wanted = DataType.FLOAT32 if data_type is DataType.FLOAT16 else data_type
        value = self._converted(value, permutation, data_type)
        return self._converted(value, None, wanted)

    def _output(self, value: Value, output: Value, permutation: Permutation | None) -> None:
        """Write a tensor of the graph from what a layer gives."""
        data_type = value.info.data_type
        if permutation is None:
            self._layer(Cast(), output, value, "convert")
            return
        output = self._converted(output, None, data_type)
        # A reader that wants it transposed gets it unchanged.
        self._made[value, permutation, data_type] = output
        self._layer(Transpose(perm=_inverse(permutation)), output, value, "transpose")

    def _converted(
        self, value: Value, permutation: Permutation | None, data_type: DataType
    ) -> Value:
        """A tensor with other axes or of another type; the same if there is nothing to do."""
        if permutation is None and value.info.data_type is data_type:
            return value
        key = value, permutation, data_type
        if key not in self._made:
            info = replace(_transposed(value.info, permutation), data_type=data_type)
            if value.data is not None:
                data = value.data if permutation is None else value.data.transpose(permutation)
                data = np.ascontiguousarray(data, data_type.dtype)
                self._made[key] = Value(next(self._numbers), info, value.name, data)
            else:
                self._made[key] = self._value(info, value.name)
                operation = Cast() if permutation is None else Transpose(perm=permutation)
                verb = "convert" if permutation is None else "transpose"
                self._layer(operation, value, self._made[key], verb)
        return self._made[key]

    def _value(self, info: TensorInfo, name: str) -> Value:
        return Value(next(self._numbers), info, name)

    def _layer(self, operation: Operation, source: Value, target: Value, verb: str) -> None:
        """Add a layer of one input and one output."""
        name = f"{verb} {target.name}"
        self.layers.append(Layer(next(self._numbers), name, operation, (source,), (target,)))


def _needed(layers: Sequence[Layer], outputs: Sequence[Value]) -> tuple[Layer, ...]:
    """Layers without those whose outputs are never read."""
    wanted = set(outputs)
    needed = []
    for layer in reversed(layers):
        # Layers that the rewrite adds have one output; all others were needed before.
        is_added = layer.id < 0
        if not is_added or layer.outputs[0] in wanted:
            needed.append(layer)
            wanted.update(value for value in layer.inputs if value is not None)
    return tuple(reversed(needed))


def _inverse(permutation: Permutation) -> Permutation:
    """Return the inverse of an order of axes."""
    return tuple(int(number) for number in np.argsort(permutation))


def _transposed(info: TensorInfo, permutation: Permutation | None) -> TensorInfo:
    """A tensor with its axes in another order."""
    if permutation is None:
        return info
    shape = tuple(info.known_shape[axis] for axis in permutation)
    quantization = info.quantization
    if quantization is not None and quantization.axis is not None:
        axis = permutation.index(quantization.axis % len(shape))
        quantization = replace(quantization, axis=axis)
    return replace(info, shape=shape, quantization=quantization)
