"""Layers that take parts of a tensor, join tensors, and reduce axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from armpy import DataType, TensorInfo, ops
from armpy.graph import Value
from armpy.ops import ArgMinMaxFunction, ReduceOperation
from armpy_compat.armnn_format.layer import ArmnnLayer, Converter, LayerTable, signed

_REDUCTIONS: Mapping[int, ReduceOperation] = {
    operation.value: operation for operation in ReduceOperation if not operation.is_logical
}
_ARGUMENTS: Mapping[int, ArgMinMaxFunction] = {
    function.value: function for function in ArgMinMaxFunction
}


def _slice(layer: ArmnnLayer) -> Sequence[Value]:
    layer.expect_inputs(1)
    descriptor = layer.descriptor
    begin, size = tuple(descriptor.numbers("begin")), tuple(descriptor.numbers("size"))
    return (layer.add(ops.Slice(begin, size), layer.inputs[0]),)


def _strided_slice(layer: ArmnnLayer) -> Sequence[Value]:
    layer.expect_inputs(1)
    descriptor = layer.descriptor
    begin, end, stride = (tuple(descriptor.numbers(field)) for field in ("begin", "end", "stride"))
    operation = ops.StridedSlice(
        begin,
        end,
        stride,
        descriptor.integer("beginMask"),
        descriptor.integer("endMask"),
        descriptor.integer("shrinkAxisMask"),
        descriptor.integer("ellipsisMask"),
        descriptor.integer("newAxisMask"),
    )
    return (layer.add(operation, layer.inputs[0]),)


def _views(table: LayerTable, field: str, layer: ArmnnLayer, count: int) -> list[tuple[int, ...]]:
    """Coordinates of each view of a Concat or Splitter layer."""
    views = [tuple(view.numbers("data")) for view in table.tables(field, "view")]
    if len(views) != count or len(set(map(len, views))) > 1:
        raise layer.error(
            f"{field} are not one of equal length per tensor",
            expected=f"{count} of one length",
            actual=len(views),
        )
    return views


def _concat(layer: ArmnnLayer) -> Sequence[Value]:
    """Join tensors along the axis by which their origins differ, in the order of these."""
    layer.expect_outputs(1)
    origins = _views(layer.descriptor, "viewOrigins", layer, len(layer.inputs))
    axis = _joined_axis(layer, origins)
    order = sorted(range(len(origins)), key=lambda view: origins[view][axis])
    at = 0
    for view in order:
        size = (layer.inputs[view].info.shape or ())[axis : axis + 1]
        if origins[view][axis] != at or not size or size[0] is None:
            raise layer.error("the inputs do not follow each other along the axis", actual=origins)
        at += size[0]
    inputs = [_requantized(layer, layer.inputs[view]) for view in order]
    return (layer.add(ops.Concat(axis), *inputs),)


def _joined_axis(layer: ArmnnLayer, origins: Sequence[tuple[int, ...]]) -> int:
    """The only axis along which views begin elsewhere than at 0."""
    axes = {axis for origin in origins for axis, start in enumerate(origin) if start}
    if len(axes) > 1:
        raise layer.error("inputs that are joined along several axes are not supported")
    axis = axes.pop() if axes else layer.descriptor.integer("concatAxis")
    if not origins or axis >= len(origins[0]):
        raise layer.error("the axis of the views does not exist", actual=axis)
    return axis


def _requantized(layer: ArmnnLayer, value: Value) -> Value:
    """A value in the quantisation of the output, for types whose Concat does not requantise."""
    source, info = value.info, layer.output(layer.inputs[0].info)
    is_fitting = source.data_type is not info.data_type or not source.data_type.is_symmetric
    return value if is_fitting else layer.encoded(value, info)


def _stack(layer: ArmnnLayer) -> Sequence[Value]:
    layer.expect_inputs(layer.descriptor.integer("numInputs"))
    return (layer.add(ops.Stack(layer.descriptor.integer("axis")), *layer.inputs),)


def _splitter(layer: ArmnnLayer) -> Sequence[Value]:
    """Cut windows out of a tensor: a Splitter where they follow each other along one axis."""
    layer.expect_inputs(1)
    descriptor = layer.descriptor
    table = descriptor.table("origins")
    if table is None:
        raise layer.error("the layer has no origins")
    count = len(layer.outputs)
    origins = _views(table, "viewOrigins", layer, count)
    sizes = _views(descriptor, "viewSizes", layer, count)
    value = layer.inputs[0]
    axis = _split_axis(value.info, origins, sizes)
    infos = [layer.output(value.info, index).with_shape(None) for index in range(count)]
    infos_out = [TensorInfo(None, info.data_type, value.info.quantization) for info in infos]
    if axis is not None:
        operation = ops.Splitter(None, axis, tuple(size[axis] for size in sizes))
        parts = layer.network.add_layer(
            operation, (value,), name=layer.name, outputs=infos_out
        ).outputs
    else:
        parts = tuple(
            layer.network.add(ops.Slice(origin, size), value, name=f"{layer.name}/{number}")
            for number, (origin, size) in enumerate(zip(origins, sizes, strict=True))
        )
    return tuple(_declared(layer, value, info) for value, info in zip(parts, infos, strict=True))


def _declared(layer: ArmnnLayer, value: Value, info: TensorInfo) -> Value:
    """A part of a tensor as the file declares it."""
    if not info.data_type.is_quantized or value.info.quantization == info.quantization:
        return value
    return layer.reinterpreted(value, info)


def _split_axis(
    info: TensorInfo, origins: Sequence[tuple[int, ...]], sizes: Sequence[tuple[int, ...]]
) -> int | None:
    """The axis along which windows follow each other and make up the tensor, if there is one."""
    shape = info.shape
    if shape is None or not origins or len(origins[0]) != len(shape):
        return None
    for axis in range(len(shape)):
        at = 0
        for origin, size in zip(origins, sizes, strict=True):
            if origin != (*(0,) * axis, at, *(0,) * (len(shape) - axis - 1)):
                break
            if (*size[:axis], *size[axis + 1 :]) != (*shape[:axis], *shape[axis + 1 :]):
                break
            at += size[axis]
        else:
            if at == shape[axis]:
                return axis
    return None


def _mean(layer: ArmnnLayer) -> Sequence[Value]:
    return _reduced(layer, ReduceOperation.MEAN)


def _reduce(layer: ArmnnLayer) -> Sequence[Value]:
    operation = layer.descriptor.choice("reduceOperation", _REDUCTIONS, "ReduceOperation")
    return _reduced(layer, operation)


def _reduced(layer: ArmnnLayer, function: ReduceOperation) -> Sequence[Value]:
    """Reduce axes; none in the file are all of them."""
    layer.expect_inputs(1)
    descriptor = layer.descriptor
    axes = tuple(signed(axis) for axis in descriptor.numbers("axis"))
    operation = ops.Reduce(function, axes or None, descriptor.flag("keepDims"))
    return (layer.add(operation, layer.inputs[0]),)


def _arg_min_max(layer: ArmnnLayer) -> Sequence[Value]:
    layer.expect_inputs(1)
    layer.expect_outputs(1)
    descriptor = layer.descriptor
    function = descriptor.choice("argMinMaxFunction", _ARGUMENTS, "ArgMinMaxFunction")
    data_type = layer.output(TensorInfo(None, DataType.SIGNED32)).data_type
    operation = ops.ArgMinMax(function, descriptor.integer("axis"), data_type)
    return (layer.add(operation, layer.inputs[0]),)


CONVERTERS: Mapping[str, Converter] = {
    "ArgMinMax": _arg_min_max,
    "Concat": _concat,
    "Mean": _mean,
    "Merger": _concat,
    "Reduce": _reduce,
    "Slice": _slice,
    "Splitter": _splitter,
    "Stack": _stack,
    "StridedSlice": _strided_slice,
}
