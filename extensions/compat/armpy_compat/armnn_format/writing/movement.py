"""Writes layers that move, join, cut and reduce elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from armpy import DataType, TensorInfo, ops
from armpy.graph import Layer
from armpy.ops import PaddingMode, ReduceOperation, ResizeMethod
from armpy.plugins.hooks.flatbuffers import Field, FlatTable
from armpy_compat.armnn_format.writing.elementwise import Emit, described, plain
from armpy_compat.armnn_format.writing.file_writer import (
    ArmnnWriter,
    Slot,
    known,
    layer_error,
    shape_of,
    unsigned,
)
from armpy_compat.armnn_format.writing.weighted import LAYOUT_NUMBERS

_MODES = (PaddingMode.CONSTANT, PaddingMode.REFLECT, PaddingMode.SYMMETRIC)


def _axis(layer: Layer, axis: int, extra: int = 0) -> int:
    """An axis counted from the front."""
    rank = len(shape_of(layer, layer.inputs[0])) + extra
    return axis % rank


def _first(
    writer: ArmnnWriter, layer: Layer, kind: str, fields: Mapping[str, Field]
) -> Sequence[Slot]:
    """Write a layer that reads the first input alone, as the others are attributes of it."""
    return writer.put(
        kind,
        layer.name,
        [value for value in layer.inputs[:1] if value is not None],
        layer.output_infos,
        descriptor=(f"{kind}Descriptor", fields),
    )


def _reshape(writer: ArmnnWriter, layer: Layer) -> Sequence[Slot]:
    """Write what gives the same elements another shape."""
    return _first(
        writer, layer, "Reshape", {"targetShape": unsigned(shape_of(layer, layer.output))}
    )


def _broadcast_to(writer: ArmnnWriter, layer: Layer) -> Sequence[Slot]:
    """Write repeated axes as Tile, after a Reshape to the rank of the output."""
    target, value = shape_of(layer, layer.output), layer.inputs[0]
    shape = shape_of(layer, value)
    assert value is not None
    lifted = (1,) * (len(target) - len(shape)) + shape
    if 0 in lifted:
        raise layer_error(layer, "a tensor without elements cannot be repeated")
    fields: dict[str, Field] = {"targetShape": unsigned(lifted)}
    slots = writer.put(
        "Reshape",
        f"{layer.name}/shape",
        (value,),
        (value.info.with_shape(lifted),),
        descriptor=("ReshapeDescriptor", fields),
    )
    multiples = [size // of for size, of in zip(target, lifted, strict=True)]
    return writer.put(
        "Tile",
        layer.name,
        slots,
        layer.output_infos,
        descriptor=("TileDescriptor", {"m_Multiples": unsigned(multiples)}),
    )


def _transpose(writer: ArmnnWriter, layer: Layer) -> Sequence[Slot]:
    rank = len(shape_of(layer, layer.inputs[0]))
    perm = [axis % rank for axis in known(layer, "perm")]
    return _first(writer, layer, "Transpose", {"dimMappings": unsigned(perm)})


def _pad(writer: ArmnnWriter, layer: Layer) -> Sequence[Slot]:
    operation, info = layer.operation, layer.output.info
    assert isinstance(operation, ops.Pad)
    if operation.padding_mode not in _MODES:
        raise layer_error(layer, f"the .armnn format has no mode {operation.padding_mode.name}")
    number, pad_value = operation.pad_value, layer.operand("pad_value")
    if pad_value is not None:
        if pad_value.data is None:
            raise layer_error(layer, "its value is known only when the network runs")
        number = float(pad_value.data.item())
    elif info.quantization is not None and info.data_type.is_quantized:
        stored = info.quantization.quantize(np.array([number], np.float32), info.data_type)
        number = float(stored[0]) if number else info.zero_point
    fields: dict[str, Field] = {
        "padList": unsigned(np.reshape(known(layer, "pad_list"), -1).tolist()),
        "padValue": number,
        "paddingMode": operation.padding_mode.value,
    }
    return _first(writer, layer, "Pad", fields)


def _tile(writer: ArmnnWriter, layer: Layer) -> Sequence[Slot]:
    return _first(writer, layer, "Tile", {"m_Multiples": unsigned(known(layer, "multiples"))})


def _reverse(writer: ArmnnWriter, layer: Layer) -> Sequence[Slot]:
    """Write the axes as the second input."""
    axes = np.array(known(layer, "axes"), np.int32)
    info = TensorInfo(axes.shape, DataType.SIGNED32)
    slot = writer.constant(axes, info, f"{layer.name}/axes")
    value = layer.inputs[0]
    assert value is not None
    return writer.put("ReverseV2", layer.name, (value, slot), layer.output_infos)


def _channel_shuffle(writer: ArmnnWriter, layer: Layer) -> Sequence[Slot]:
    operation = layer.operation
    assert isinstance(operation, ops.ChannelShuffle)
    fields: dict[str, Field] = {
        "axis": _axis(layer, operation.axis),
        "numGroups": operation.num_groups,
    }
    return _first(writer, layer, "ChannelShuffle", fields)


def _block(writer: ArmnnWriter, layer: Layer) -> Sequence[Slot]:
    operation = layer.operation
    assert isinstance(operation, ops.DepthToSpace | ops.SpaceToDepth)
    fields: dict[str, Field] = {
        "blockSize": operation.block_size,
        "dataLayout": LAYOUT_NUMBERS[operation.data_layout],
    }
    return _first(writer, layer, operation.name, fields)


def _batches(writer: ArmnnWriter, layer: Layer) -> Sequence[Slot]:
    operation = layer.operation
    assert isinstance(operation, ops.SpaceToBatchNd | ops.BatchToSpaceNd)
    is_crop = isinstance(operation, ops.BatchToSpaceNd)
    ours, theirs = ("crops", "crops") if is_crop else ("pad_list", "padList")
    fields: dict[str, Field] = {
        "blockShape": unsigned(known(layer, "block_shape")),
        theirs: unsigned(np.reshape(known(layer, ours), -1).tolist()),
        "dataLayout": LAYOUT_NUMBERS[operation.data_layout],
    }
    return _first(writer, layer, operation.name, fields)


def _resize(writer: ArmnnWriter, layer: Layer) -> Sequence[Slot]:
    operation = layer.operation
    assert isinstance(operation, ops.Resize)
    height, width = known(layer, "size")
    fields: dict[str, Field] = {
        "targetHeight": height,
        "targetWidth": width,
        "method": 1 if operation.method is ResizeMethod.BILINEAR else 0,
        "alignCorners": operation.align_corners,
        "halfPixelCenters": operation.half_pixel_centers,
        "dataLayout": LAYOUT_NUMBERS[operation.data_layout],
    }
    return _first(writer, layer, "Resize", fields)


def _gather(writer: ArmnnWriter, layer: Layer) -> Sequence[Slot]:
    operation = layer.operation
    assert isinstance(operation, ops.Gather)
    if operation.batch_dims:
        raise layer_error(layer, "the .armnn format has no Gather with batches")
    return described(writer, layer, "Gather", {"axis": operation.axis})


def _gather_nd(writer: ArmnnWriter, layer: Layer) -> Sequence[Slot]:
    operation = layer.operation
    assert isinstance(operation, ops.GatherNd)
    if operation.batch_dims or operation.wraps_negative:
        raise layer_error(layer, "the .armnn format has GatherNd in its plain form only")
    return plain("GatherNd")(writer, layer)


def _fill(writer: ArmnnWriter, layer: Layer) -> Sequence[Slot]:
    value = layer.inputs[0]
    if value is None or value.data is None or value.info.data_type.is_quantized:
        raise layer_error(layer, "its value is not a constant number")
    number = float(value.data.item())
    if float(np.float32(number)) != number:
        raise layer_error(layer, "its value does not fit into float32")
    sizes = np.array(known(layer, "shape"), np.int32)
    info = TensorInfo(sizes.shape, DataType.SIGNED32)
    slot = writer.constant(sizes, info, f"{layer.name}/shape")
    return writer.put(
        "Fill",
        layer.name,
        (slot,),
        layer.output_infos,
        descriptor=("FillDescriptor", {"value": number}),
    )


def _slice(writer: ArmnnWriter, layer: Layer) -> Sequence[Slot]:
    fields: dict[str, Field] = {
        "begin": unsigned(known(layer, "begin")),
        "size": unsigned(shape_of(layer, layer.output)),
    }
    return _first(writer, layer, "Slice", fields)


def _strided_slice(writer: ArmnnWriter, layer: Layer) -> Sequence[Slot]:
    operation = layer.operation
    assert isinstance(operation, ops.StridedSlice)
    if operation.end_is_offset:
        raise layer_error(layer, "the .armnn format counts no ends from the beginning")
    fields: dict[str, Field] = {
        **{name: np.array(known(layer, name), np.int32) for name in ("begin", "end", "stride")},
        "beginMask": operation.begin_mask,
        "endMask": operation.end_mask,
        "shrinkAxisMask": operation.shrink_axis_mask,
        "ellipsisMask": operation.ellipsis_mask,
        "newAxisMask": operation.new_axis_mask,
    }
    return _first(writer, layer, "StridedSlice", fields)


def _views(numbers: Sequence[Sequence[int]]) -> list[FlatTable]:
    return [FlatTable("UintVector", {"data": unsigned(view)}) for view in numbers]


def _origins(layer: Layer, axis: int, sizes: Sequence[int], rank: int) -> dict[str, Field]:
    """The descriptor of windows that follow each other along an axis."""
    starts = [sum(sizes[:number]) for number in range(len(sizes))]
    views = [[start if at == axis else 0 for at in range(rank)] for start in starts]
    return {
        "concatAxis": axis,
        "numViews": len(sizes),
        "numDimensions": rank,
        "viewOrigins": _views(views),
    }


def _concat(writer: ArmnnWriter, layer: Layer) -> Sequence[Slot]:
    operation = layer.operation
    assert isinstance(operation, ops.Concat)
    axis, rank = _axis(layer, operation.axis), len(shape_of(layer, layer.inputs[0]))
    sizes = [shape_of(layer, value)[axis] for value in layer.inputs]
    inputs = [value for value in layer.inputs if value is not None]
    return writer.put(
        "Concat",
        layer.name,
        inputs,
        layer.output_infos,
        descriptor=("OriginsDescriptor", _origins(layer, axis, sizes, rank)),
    )


def _splitter(writer: ArmnnWriter, layer: Layer) -> Sequence[Slot]:
    return _parts(writer, layer, _axis(layer, known(layer, "axis")), layer.output_infos)


def _parts(
    writer: ArmnnWriter, layer: Layer, axis: int, infos: Sequence[TensorInfo]
) -> Sequence[Slot]:
    """Write windows along an axis, each with its own output."""
    shapes = [info.known_shape for info in infos if info.is_fully_shaped]
    if len(shapes) < len(infos):
        raise layer_error(layer, "the shapes of its outputs are not known")
    sizes = [shape[axis] for shape in shapes]
    origins = FlatTable("OriginsDescriptor", _origins(layer, axis, sizes, len(shapes[0])))
    views: dict[str, Field] = {
        "origins": origins,
        "viewSizes": _views(shapes),
        "hasAxis": True,
        "axis": axis,
    }
    source = layer.inputs[0]
    assert source is not None
    return writer.put(
        "Splitter", layer.name, (source,), infos, descriptor=("ViewsDescriptor", views)
    )


def _unstack(writer: ArmnnWriter, layer: Layer) -> Sequence[Slot]:
    """Write windows of size 1, each followed by a Reshape that drops the axis."""
    operation = layer.operation
    assert isinstance(operation, ops.Unstack)
    axis = _axis(layer, operation.axis)
    shape = list(shape_of(layer, layer.inputs[0]))
    shape[axis] = 1
    slots = _parts(
        writer, layer, axis, [info.with_shape(tuple(shape)) for info in layer.output_infos]
    )
    return [
        writer.put(
            "Reshape",
            f"{layer.name}/{number}",
            (slot,),
            (info,),
            descriptor=("ReshapeDescriptor", {"targetShape": unsigned(info.known_shape)}),
        )[0]
        for number, (slot, info) in enumerate(zip(slots, layer.output_infos, strict=True))
    ]


def _stack(writer: ArmnnWriter, layer: Layer) -> Sequence[Slot]:
    operation = layer.operation
    assert isinstance(operation, ops.Stack)
    fields: dict[str, Field] = {
        "axis": _axis(layer, operation.axis, extra=1),
        "numInputs": len(layer.inputs),
        "inputShape": unsigned(shape_of(layer, layer.inputs[0])),
    }
    return described(writer, layer, "Stack", fields)


def _reduce(writer: ArmnnWriter, layer: Layer) -> Sequence[Slot]:
    """Write axes counted from the front; all of them are none in the format."""
    operation = layer.operation
    assert isinstance(operation, ops.Reduce)
    if operation.operation.is_logical or operation.rounds_down or operation.zero_absorbs:
        raise layer_error(layer, "the .armnn format has no reduction of its kind")
    axes = known(layer, "axes")
    axes = (axes,) if isinstance(axes, int) else axes
    if axes == ():
        raise layer_error(layer, "it reduces no axis, which the .armnn format cannot say")
    numbers = sorted({_axis(layer, axis) for axis in axes or ()})
    fields: dict[str, Field] = {"axis": unsigned(numbers), "keepDims": operation.keep_dims}
    if operation.operation is ReduceOperation.MEAN:
        return _first(writer, layer, "Mean", fields)
    fields["reduceOperation"] = operation.operation.value
    return _first(writer, layer, "Reduce", fields)


def _arg_min_max(writer: ArmnnWriter, layer: Layer) -> Sequence[Slot]:
    operation = layer.operation
    assert isinstance(operation, ops.ArgMinMax)
    axis = known(layer, "axis")
    fields: dict[str, Field] = {
        "argMinMaxFunction": operation.function.value,
        "axis": axis[0] if isinstance(axis, tuple) else axis,
    }
    return _first(writer, layer, "ArgMinMax", fields)


def _stand_in(writer: ArmnnWriter, layer: Layer) -> Sequence[Slot]:
    operation = layer.operation
    assert isinstance(operation, ops.StandIn)
    if operation.operator in ("Merge", "Switch"):
        return plain(operation.operator)(writer, layer)
    if operation.operator != "StandIn":
        raise layer_error(layer, "the .armnn format does not name custom operations")
    fields: dict[str, Field] = {
        "numInputs": len(layer.inputs),
        "numOutputs": len(layer.outputs),
    }
    return described(writer, layer, "StandIn", fields)


EMITTERS: Mapping[str, Emit] = {
    "ArgMinMax": _arg_min_max,
    "BatchToSpaceNd": _batches,
    "BroadcastTo": _broadcast_to,
    "ChannelShuffle": _channel_shuffle,
    "Concat": _concat,
    "DepthToSpace": _block,
    "ExpandDims": _reshape,
    "Fill": _fill,
    "Gather": _gather,
    "GatherNd": _gather_nd,
    "Pad": _pad,
    "Rank": plain("Rank"),
    "Reduce": _reduce,
    "Reshape": _reshape,
    "Resize": _resize,
    "ReverseV2": _reverse,
    "Shape": plain("Shape"),
    "Slice": _slice,
    "SpaceToBatchNd": _batches,
    "SpaceToDepth": _block,
    "Splitter": _splitter,
    "Squeeze": _reshape,
    "Stack": _stack,
    "StandIn": _stand_in,
    "StridedSlice": _strided_slice,
    "Tile": _tile,
    "Transpose": _transpose,
    "Unstack": _unstack,
}
