"""TFLite's operators for layers: a function per operation, in a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from armpy.core.flatbuffers.writer import Field
from armpy.frontends.tflite.schema import ENUMERATIONS
from armpy.frontends.tflite_writer.writer import TfliteWriter, layer_error
from armpy.graph import Layer, Value
from armpy.ops.activation_layers import Activation, ActivationFunction
from armpy.ops.activations import FusedActivation
from armpy.ops.movement import Pad, PaddingMode
from armpy.ops.operation import Array
from armpy.ops.pooling import Pooling2d, PoolingAlgorithm
from armpy.ops.reduction import ArgMinMax, ArgMinMaxFunction
from armpy.ops.shapes import Padding, PaddingSpec, resolve_padding
from armpy.tensor import Shape, TensorInfo
from armpy.types import DataLayout, DataType

Attributes = Mapping[str, Any]
"""Attributes by name; Any: they are of many types."""

Emit = Callable[["TfliteWriter", Layer, Attributes], None]
"""Adds the operators of a layer."""

_ACTIVATIONS = {
    FusedActivation.NONE: 0,
    FusedActivation.RELU: 1,
    FusedActivation.RELU1: 2,
    FusedActivation.RELU6: 3,
}
_SAME, _VALID = 0, 1

_VERSIONS = {
    # Of 8-bit and of 16-bit integers; floats have 1, as have types that are not here.
    "ADD": (2, 4),
    "AVERAGE_POOL_2D": (2, 3),
    "BATCH_MATMUL": (2, 3),
    "CONCATENATION": (2, 3),
    "CONV_2D": (3, 4),
    "DEPTHWISE_CONV_2D": (3, 5),
    "DEQUANTIZE": (2, 3),
    "FULLY_CONNECTED": (4, 7),
    "LOGISTIC": (2, 3),
    "MAX_POOL_2D": (2, 3),
    "MEAN": (2, 3),
    "MUL": (2, 4),
    "PAD": (2, 3),
    "QUANTIZE": (1, 2),
    "SOFTMAX": (2, 3),
    "SUB": (3, 5),
    "TANH": (2, 3),
    "TRANSPOSE_CONV": (3, 4),
}
_LOWEST_VERSIONS = {"BROADCAST_TO": 2}
"""Of operators whose first version LiteRT does not have."""

_MOST_SCALES = {
    "FLOOR_DIV": 0,
    "FLOOR_MOD": 0,
    "MAXIMUM": 1,
    "MINIMUM": 1,
    "NEG": 0,
    "SELECT_V2": 1,
}
"""Different scales of operators that compute with stored integers, whatever these stand for."""

_NO_OPTION = {
    "GatherNd": ("batch_dims",),
    "L2Normalization": ("epsilon",),
    "LogSoftmax": ("beta",),
    "Quantize": ("rounds_to_even",),
    "Reduce": ("zero_absorbs",),
}
"""Attributes that operators of .tflite do not have, by operation: they stand for the defaults.
How often a convolution rounds is none of them: LiteRT's kernels differ in it, too.
"""


def write_layer(writer: TfliteWriter, layer: Layer) -> None:
    """Add the operators of a layer.

    Raises
    ------
    UnimplementedError
        If there are none that compute the same.
    """
    operation = layer.operation
    emit = None if operation.extension else _EMITTERS.get(operation.name)
    if emit is None:
        raise layer_error(layer, "armpy writes no .tflite operator for it")
    attributes = operation.attributes()
    if attributes.get("data_layout", DataLayout.NHWC) is not DataLayout.NHWC:
        raise layer_error(layer, "its images have their channels first, which .tflite has not")
    for name in _NO_OPTION.get(operation.name, ()):
        value, default = attributes[name], getattr(type(operation)(), name)
        if value != default:
            raise layer_error(layer, f"its {name} is {value}, and .tflite has only {default}")
    emit(writer, layer, attributes)


def _put(
    writer: TfliteWriter,
    layer: Layer,
    code: str,
    inputs: Sequence[int],
    table: str = "",
    fields: Mapping[str, Field] | None = None,
) -> None:
    """Add an operator with the layer's outputs."""
    scales = {value.info.quantization for value in (*layer.inputs, *layer.outputs) if value}
    if len(scales - {None}) > _MOST_SCALES.get(code, len(scales)):
        raise layer_error(layer, f"its scales matter, and {code} of .tflite ignores them")
    outputs = [writer.value(value) for value in layer.outputs]
    options = (table, fields or {}) if table else None
    writer.operator(code, inputs, outputs, options, _version(code, layer))


def _version(code: str, layer: Layer) -> int:
    """The version of an operator for the types that it reads and writes."""
    types = {value.info.data_type for value in (*layer.inputs, *layer.outputs) if value}
    lowest = _LOWEST_VERSIONS.get(code, 1)
    eight, sixteen = _VERSIONS.get(code, (lowest, lowest))
    if DataType.QSYMM_S16 in types:
        return sixteen
    return eight if types & {DataType.QASYMM_S8, DataType.QSYMM_S8} else lowest


def _first(writer: TfliteWriter, layer: Layer) -> int:
    """The first input."""
    return writer.value(layer.inputs[0])


def _operand(
    writer: TfliteWriter, layer: Layer, name: str, numbers: object, operand: str = ""
) -> int:
    """A tensor that says how: the operand if it is there, else the attribute as a constant."""
    value = layer.operand(operand or name)
    if value is not None:
        return writer.value(value)
    if numbers is None:
        raise layer_error(layer, f"its {name} is not known")
    return writer.integers(np.asarray(numbers, np.int32), f"{layer.name}/{name}")


def _plain(code: str, table: str = "") -> Emit:
    """An operator that takes the layer's inputs and has no options of note."""

    def emit(writer: TfliteWriter, layer: Layer, _: Attributes) -> None:
        _put(writer, layer, code, [writer.value(value) for value in layer.inputs], table)

    return emit


def _moving(code: str, name: str, table: str = "", operand: str = "") -> Emit:
    """An operator with one constant after its input."""

    def emit(writer: TfliteWriter, layer: Layer, attributes: Attributes) -> None:
        how = _operand(writer, layer, name, attributes[name], operand)
        _put(writer, layer, code, [_first(writer, layer), how], table)

    return emit


def _window_padding(
    layer: Layer, padding: PaddingSpec, kernel: Sequence[int], attributes: Attributes
) -> int | None:
    """SAME or VALID if the padding is one of these; None otherwise."""
    if isinstance(padding, Padding):
        return _SAME if padding is Padding.SAME else _VALID
    if not any(map(any, padding)):
        return _VALID
    value = layer.inputs[0]
    assert value is not None
    sizes = (value.info.shape or ())[1:3]
    dilation = attributes.get("dilation", (1, 1))
    for axis, size in enumerate(sizes):
        if size is None:
            return None
        same = resolve_padding(
            Padding.SAME, size, kernel[axis], attributes["stride"][axis], dilation[axis], axis
        )
        if same != tuple(padding[axis]):
            return None
    return _SAME


def _padded_source(
    writer: TfliteWriter, layer: Layer, padding: Sequence[Sequence[int]], lowest: bool = False
) -> int:
    """The input with explicit padding around it: an operator of its own, as TFLite has none."""
    value = layer.inputs[0]
    assert value is not None
    assert value.info.shape is not None
    pairs = [(0, 0), *map(tuple, padding), (0, 0)]
    shape = tuple(
        None if size is None else size + before + after
        for size, (before, after) in zip(value.info.shape, pairs, strict=True)
    )
    info = TensorInfo(shape, value.info.data_type, value.info.quantization)
    padded = writer.tensor(f"{layer.name}/padded", info)
    inputs = [writer.value(value), writer.integers(np.array(pairs), f"{layer.name}/padding")]
    if not lowest:
        writer.operator("PAD", inputs, [padded], ("PadOptions", {}), _version("PAD", layer))
        return padded
    data_type = info.data_type
    least = -np.inf if data_type.is_float else data_type.integer_range[0]
    filler = np.array([least], data_type.dtype)
    scalar = TensorInfo((1,), data_type, info.quantization)
    inputs.append(writer.tensor(f"{layer.name}/lowest", scalar, filler))
    writer.operator("PADV2", inputs, [padded], ("PadV2Options", {}), _version("PADV2", layer))
    return padded


def _convolution(writer: TfliteWriter, layer: Layer, attributes: Attributes) -> None:
    is_depthwise = layer.operation.name == "DepthwiseConvolution2d"
    weights = layer["weights"]
    padding = _window_padding(
        layer, attributes["padding"], weights.info.known_shape[1:3], attributes
    )
    source = _first(writer, layer)
    if padding is None:
        source, padding = _padded_source(writer, layer, attributes["padding"]), _VALID
    fields: dict[str, Field] = {
        "Padding": padding,
        "StrideH": attributes["stride"][0],
        "StrideW": attributes["stride"][1],
        "DilationHFactor": attributes["dilation"][0],
        "DilationWFactor": attributes["dilation"][1],
        "FusedActivationFunction": _ACTIVATIONS[attributes["activation"]],
    }
    if is_depthwise:
        channels = (layer["input"].info.shape or ())[3]
        fields["DepthMultiplier"] = weights.info.known_shape[3] // (channels or 1)
    inputs = [source, writer.value(weights), writer.value(_bias(writer, layer))]
    table = "DepthwiseConv2DOptions" if is_depthwise else "Conv2DOptions"
    code = "DEPTHWISE_CONV_2D" if is_depthwise else "CONV_2D"
    _put(writer, layer, code, inputs, table, fields)


def _bias(writer: TfliteWriter, layer: Layer) -> Value | None:
    """The bias; convolutions of TFLite always have one."""
    bias = layer.operand("bias")
    if bias is not None or layer.operation.name == "FullyConnected":
        return bias
    axis = 3 if layer.operation.name == "DepthwiseConvolution2d" else 0
    count = layer["weights"].info.known_shape[axis]
    data_type = layer["input"].info.data_type
    if not data_type.is_float:
        raise layer_error(layer, "it has no bias")
    zeros = data_type.zeros((count,))
    return Value(-1, TensorInfo((count,), data_type), f"{layer.name}/bias", zeros)


def _transpose_convolution(writer: TfliteWriter, layer: Layer, attributes: Attributes) -> None:
    weights, shape = layer["weights"], layer.output.info.shape
    padding = attributes["padding"]
    if not isinstance(padding, Padding):
        padding = _named_cut(layer, padding, attributes["stride"])
    if layer.operand("output_shape") is not None:
        target = writer.value(layer["output_shape"])
    elif shape is None or None in shape:
        raise layer_error(
            layer, "the size of its output is not known", "Give shapes of the model's inputs"
        )
    else:
        target = writer.integers(np.array(shape), f"{layer.name}/output_shape")
    fields: dict[str, Field] = {
        "Padding": _SAME if padding is Padding.SAME else _VALID,
        "StrideH": attributes["stride"][0],
        "StrideW": attributes["stride"][1],
        "FusedActivationFunction": _ACTIVATIONS[attributes["activation"]],
    }
    inputs = [target, writer.value(weights), _first(writer, layer)]
    if layer.operand("bias") is not None:
        inputs.append(writer.value(layer["bias"]))
    _put(writer, layer, "TRANSPOSE_CONV", inputs, "TransposeConvOptions", fields)


def _named_cut(layer: Layer, padding: PaddingSpec, stride: Sequence[int]) -> Padding:
    """SAME or VALID, whichever a transposed convolution's padding stands for."""
    assert not isinstance(padding, Padding)
    if not any(map(any, padding)):
        return Padding.VALID
    sizes = (layer.output.info.shape or ())[1:3]
    kernel = layer["weights"].info.known_shape[1:3]
    for axis, size in enumerate(sizes):
        if size is None or tuple(padding[axis]) != resolve_padding(
            Padding.SAME, size, kernel[axis], stride[axis], 1, axis
        ):
            raise layer_error(layer, "its padding is neither SAME nor VALID")
    return Padding.SAME


def _fully_connected(writer: TfliteWriter, layer: Layer, attributes: Attributes) -> None:
    fields: dict[str, Field] = {
        "FusedActivationFunction": _ACTIVATIONS[attributes["activation"]],
        "KeepNumDims": attributes["keep_num_dims"],
        "AsymmetricQuantizeInputs": attributes["asymmetric_quantize_inputs"],
    }
    inputs = [writer.value(value) for value in layer.inputs]
    _put(writer, layer, "FULLY_CONNECTED", inputs, "FullyConnectedOptions", fields)


def _pooling(writer: TfliteWriter, layer: Layer, attributes: Attributes) -> None:
    operation = layer.operation
    assert isinstance(operation, Pooling2d)
    padding = _window_padding(layer, operation.padding, operation.pool_size, attributes)
    source = _first(writer, layer)
    if padding is None:
        if operation.algorithm is not PoolingAlgorithm.MAX or isinstance(
            operation.padding, Padding
        ):
            raise layer_error(layer, "its padding is neither SAME nor VALID")
        source, padding = _padded_source(writer, layer, operation.padding, lowest=True), _VALID
    code = {
        PoolingAlgorithm.MAX: "MAX_POOL_2D",
        PoolingAlgorithm.AVERAGE: "AVERAGE_POOL_2D",
        PoolingAlgorithm.L2: "L2_POOL_2D",
    }[operation.algorithm]
    fields: dict[str, Field] = {
        "Padding": padding,
        "StrideH": operation.stride[0],
        "StrideW": operation.stride[1],
        "FilterHeight": operation.pool_size[0],
        "FilterWidth": operation.pool_size[1],
        "FusedActivationFunction": _ACTIVATIONS[operation.activation],
    }
    _put(writer, layer, code, [source], "Pool2DOptions", fields)


_BINARY_OPTIONS = {
    "ADD": "AddOptions",
    "SUB": "SubOptions",
    "MUL": "MulOptions",
    "DIV": "DivOptions",
}
_BINARY_CODES = {
    **{name: name for name in (*_BINARY_OPTIONS, "MAXIMUM", "MINIMUM", "FLOOR_DIV", "FLOOR_MOD")},
    "SQUARED_DIFFERENCE": "SQUARED_DIFFERENCE",
    "POWER": "POW",
}


def _binary(writer: TfliteWriter, layer: Layer, attributes: Attributes) -> None:
    name = attributes["operation"].name
    if name not in _BINARY_CODES:
        raise layer_error(layer, f"the .tflite format has no operator {name}")
    code = _BINARY_CODES[name]
    fields: dict[str, Field] = {}
    if code in _BINARY_OPTIONS:
        fields["FusedActivationFunction"] = _ACTIVATIONS[attributes["activation"]]
    elif attributes["activation"] is not FusedActivation.NONE:
        raise layer_error(layer, "it clamps its output, which the operator of .tflite does not")
    if code in ("ADD", "SUB"):
        fields["PotScaleInt16"] = attributes["power_of_two_scales"]
    table = _BINARY_OPTIONS.get(code, "")
    _put(writer, layer, code, [writer.value(value) for value in layer.inputs], table, fields)


_UNARY = frozenset(
    (
        *("ABS", "CEIL", "COS", "EXP", "FLOOR", "LOG", "LOGICAL_NOT", "NEG", "ROUND", "RSQRT"),
        *("SIGN", "SIN", "SQRT", "SQUARE"),
    )
)


def _by_name(codes: frozenset[str] | Mapping[str, str]) -> Emit:
    """An operator whose name is in the layer's attribute."""

    def emit(writer: TfliteWriter, layer: Layer, attributes: Attributes) -> None:
        name = attributes["operation"].name
        if name not in codes:
            raise layer_error(layer, f"the .tflite format has no operator {name}")
        code = name if isinstance(codes, frozenset) else codes[name]
        _put(writer, layer, code, [writer.value(value) for value in layer.inputs])

    return emit


_COMPARISONS = {
    "EQUAL": "EQUAL",
    "GREATER": "GREATER",
    "GREATER_OR_EQUAL": "GREATER_EQUAL",
    "LESS": "LESS",
    "LESS_OR_EQUAL": "LESS_EQUAL",
    "NOT_EQUAL": "NOT_EQUAL",
}


_CLAMPS = {(6.0, 0.0): "RELU6", (1.0, -1.0): "RELU_N1_TO_1", (1.0, 0.0): "RELU_0_TO_1"}
_FUNCTIONS = {
    ActivationFunction.SIGMOID: "LOGISTIC",
    ActivationFunction.RELU: "RELU",
    ActivationFunction.HARD_SWISH: "HARD_SWISH",
    ActivationFunction.ABS: "ABS",
    ActivationFunction.SQRT: "SQRT",
    ActivationFunction.SQUARE: "SQUARE",
}


def _activation(writer: TfliteWriter, layer: Layer, _: Attributes) -> None:
    operation = layer.operation
    assert isinstance(operation, Activation)
    function, a, b = operation.function, operation.a, operation.b
    source = [_first(writer, layer)]
    if function is ActivationFunction.LEAKY_RELU:
        _put(writer, layer, "LEAKY_RELU", source, "LeakyReluOptions", {"Alpha": a})
    elif function is ActivationFunction.GELU:
        fields: dict[str, Field] = {"Approximate": operation.approximate}
        _put(writer, layer, "GELU", source, "GeluOptions", fields)
    elif function is ActivationFunction.BOUNDED_RELU and (a, b) in _CLAMPS:
        _put(writer, layer, _CLAMPS[a, b], source)
    elif function is ActivationFunction.TANH and (a, b) == (1, 1):
        _put(writer, layer, "TANH", source)
    elif function is ActivationFunction.ELU and a == 1:
        _put(writer, layer, "ELU", source)
    # Quantised, these are rounded otherwise than the unary operators of their names.
    elif function in _FUNCTIONS and (
        function.name not in _UNARY or not layer["input"].info.data_type.is_quantized
    ):
        _put(writer, layer, _FUNCTIONS[function], source)
    else:
        raise layer_error(layer, f"the .tflite format has no such {function.name}")


def _softmax(writer: TfliteWriter, layer: Layer, attributes: Attributes) -> None:
    rank = len(layer["input"].info.shape or ())
    if attributes["axis"] not in (-1, rank - 1):
        raise layer_error(layer, "its axis is not the last one")
    if layer.operation.name == "Softmax":
        _put(
            writer,
            layer,
            "SOFTMAX",
            [_first(writer, layer)],
            "SoftmaxOptions",
            {"Beta": attributes["beta"]},
        )
        return
    code = "LOG_SOFTMAX" if layer.operation.name == "LogSoftmax" else "L2_NORMALIZATION"
    _put(writer, layer, code, [_first(writer, layer)])


def _reduce(writer: TfliteWriter, layer: Layer, attributes: Attributes) -> None:
    name = attributes["operation"].name
    code = name if name in ("MEAN", "SUM") else f"REDUCE_{name}"
    if attributes["rounds_down"] and not layer["input"].info.data_type.is_float:
        raise layer_error(layer, "its mean rounds down, which that of .tflite does not")
    axes = attributes["axes"]
    if axes is None and layer.operand("axes") is None:
        axes = range(len(layer["input"].info.shape or ()))
    inputs = [_first(writer, layer), _operand(writer, layer, "axes", axes)]
    _put(writer, layer, code, inputs, "ReducerOptions", {"KeepDims": attributes["keep_dims"]})


def _arg_min_max(writer: TfliteWriter, layer: Layer, attributes: Attributes) -> None:
    operation = layer.operation
    assert isinstance(operation, ArgMinMax)
    code = "ARG_MAX" if operation.function is ArgMinMaxFunction.MAX else "ARG_MIN"
    inputs = [_first(writer, layer), _operand(writer, layer, "axis", attributes["axis"])]
    fields: dict[str, Field] = {"OutputType": _type_number(operation.output_type)}
    _put(
        writer,
        layer,
        code,
        inputs,
        "ArgMaxOptions" if code == "ARG_MAX" else "ArgMinOptions",
        fields,
    )


def _type_number(data_type: DataType) -> int:
    """The number of int32 or int64 in the schema."""
    name = "INT64" if data_type is DataType.SIGNED64 else "INT32"
    return ENUMERATIONS["TensorType"].split().index(name)


def _shape(writer: TfliteWriter, layer: Layer, attributes: Attributes) -> None:
    fields: dict[str, Field] = {"OutType": _type_number(attributes["output_type"])}
    _put(writer, layer, "SHAPE", [_first(writer, layer)], "ShapeOptions", fields)


def _pad(writer: TfliteWriter, layer: Layer, attributes: Attributes) -> None:
    operation = layer.operation
    assert isinstance(operation, Pad)
    inputs = [_first(writer, layer), _operand(writer, layer, "pad_list", attributes["pad_list"])]
    if operation.padding_mode is PaddingMode.CONSTANT:
        filler = layer.operand("pad_value")
        if filler is None and operation.pad_value != 0:
            info = layer["input"].info
            if not info.data_type.is_float:
                raise layer_error(layer, "it pads integers with another number than 0")
            data = np.array([operation.pad_value], info.data_type.dtype)
            scalar = TensorInfo((1,), info.data_type)
            inputs.append(writer.tensor(f"{layer.name}/pad_value", scalar, data))
        elif filler is not None:
            inputs.append(writer.value(filler))
        code = "PAD" if len(inputs) == 2 else "PADV2"
        _put(writer, layer, code, inputs, "PadOptions" if code == "PAD" else "PadV2Options")
        return
    modes = {PaddingMode.REFLECT: 0, PaddingMode.SYMMETRIC: 1}
    if operation.padding_mode not in modes:
        raise layer_error(layer, f"the .tflite format has no padding {operation.padding_mode.name}")
    fields: dict[str, Field] = {"Mode": modes[operation.padding_mode]}
    _put(writer, layer, "MIRROR_PAD", inputs, "MirrorPadOptions", fields)


def _resize(writer: TfliteWriter, layer: Layer, attributes: Attributes) -> None:
    bilinear = attributes["method"].name == "BILINEAR"
    inputs = [_first(writer, layer), _operand(writer, layer, "size", attributes["size"])]
    fields: dict[str, Field] = {
        "AlignCorners": attributes["align_corners"],
        "HalfPixelCenters": attributes["half_pixel_centers"],
    }
    code = "RESIZE_BILINEAR" if bilinear else "RESIZE_NEAREST_NEIGHBOR"
    table = "ResizeBilinearOptions" if bilinear else "ResizeNearestNeighborOptions"
    _put(writer, layer, code, inputs, table, fields)


def _concat(writer: TfliteWriter, layer: Layer, attributes: Attributes) -> None:
    inputs = [writer.value(value) for value in layer.inputs]
    fields: dict[str, Field] = {"Axis": attributes["axis"]}
    _put(writer, layer, "CONCATENATION", inputs, "ConcatenationOptions", fields)


def _stack(writer: TfliteWriter, layer: Layer, attributes: Attributes) -> None:
    inputs = [writer.value(value) for value in layer.inputs]
    fields: dict[str, Field] = {"ValuesCount": len(inputs), "Axis": attributes["axis"]}
    _put(writer, layer, "PACK", inputs, "PackOptions", fields)


def _unstack(writer: TfliteWriter, layer: Layer, attributes: Attributes) -> None:
    fields: dict[str, Field] = {"Num": len(layer.outputs), "Axis": attributes["axis"]}
    _put(writer, layer, "UNPACK", [_first(writer, layer)], "UnpackOptions", fields)


def _squeeze(writer: TfliteWriter, layer: Layer, attributes: Attributes) -> None:
    axes = np.asarray(attributes["axes"] or (), np.int32)
    _put(writer, layer, "SQUEEZE", [_first(writer, layer)], "SqueezeOptions", {"SqueezeDims": axes})


def _reshape(writer: TfliteWriter, layer: Layer, attributes: Attributes) -> None:
    target = attributes["target_shape"]
    shape = layer.output.info.shape
    if target is not None and shape is not None and None not in shape:
        target = shape
    how = _operand(writer, layer, "target_shape", target, "shape")
    _put(writer, layer, "RESHAPE", [_first(writer, layer), how])


def _strided_slice(writer: TfliteWriter, layer: Layer, attributes: Attributes) -> None:
    inputs = [_first(writer, layer)]
    inputs += [
        _operand(writer, layer, name, attributes[name]) for name in ("begin", "end", "stride")
    ]
    fields: dict[str, Field] = {
        "BeginMask": attributes["begin_mask"],
        "EndMask": attributes["end_mask"],
        "EllipsisMask": attributes["ellipsis_mask"],
        "NewAxisMask": attributes["new_axis_mask"],
        "ShrinkAxisMask": attributes["shrink_axis_mask"],
        "Offset": attributes["end_is_offset"],
    }
    _put(writer, layer, "STRIDED_SLICE", inputs, "StridedSliceOptions", fields)


def _slice(writer: TfliteWriter, layer: Layer, attributes: Attributes) -> None:
    how = [_operand(writer, layer, name, attributes[name]) for name in ("begin", "size")]
    _put(writer, layer, "SLICE", [_first(writer, layer), *how])


def _split(writer: TfliteWriter, layer: Layer, attributes: Attributes) -> None:
    count = len(layer.outputs)
    axis = _operand(writer, layer, "axis", attributes["axis"])
    if attributes["sizes"] is None and layer.operand("sizes") is None:
        inputs = [axis, _first(writer, layer)]
        _put(writer, layer, "SPLIT", inputs, "SplitOptions", {"NumSplits": count})
        return
    sizes = _operand(writer, layer, "sizes", attributes["sizes"])
    inputs = [_first(writer, layer), sizes, axis]
    _put(writer, layer, "SPLIT_V", inputs, "SplitVOptions", {"NumSplits": count})


def _gather(writer: TfliteWriter, layer: Layer, attributes: Attributes) -> None:
    axis, shape = attributes["axis"], layer["input"].info.shape
    indices = _indices(writer, layer, shape and (shape[axis],))
    fields: dict[str, Field] = {"Axis": axis, "BatchDims": attributes["batch_dims"]}
    _put(writer, layer, "GATHER", [_first(writer, layer), indices], "GatherOptions", fields)


def _gather_nd(writer: TfliteWriter, layer: Layer, _: Attributes) -> None:
    depth, shape = (layer["indices"].info.shape or (None,))[-1], layer["input"].info.shape
    indices = _indices(writer, layer, None if depth is None else shape and shape[:depth])
    _put(writer, layer, "GATHER_ND", [_first(writer, layer), indices])


def _indices(writer: TfliteWriter, layer: Layer, sizes: Shape | None) -> int:
    """The indices, of which those below 0 are counted from the front, as .tflite has no others."""
    indices = layer["indices"]
    if not layer.operation.attributes()["wraps_negative"]:
        return writer.value(indices)

    def tensor(name: str, info: TensorInfo, data: Array | None = None) -> int:
        return writer.tensor(f"{layer.name}/{name}", info, data)

    kind = indices.info.data_type
    known = [
        size for size in sizes or (None,) if size is not None and size <= kind.integer_range[1]
    ]
    if sizes is None or len(known) < len(sizes):
        raise layer_error(layer, f"its indices count from sizes that are no known {kind.name}")
    # A size alone is a scalar, as an index may be one.
    bounds = np.array(known if len(known) != 1 else known[0], kind.dtype)
    if indices.data is not None:
        numbers = np.where(indices.data < 0, indices.data + bounds, indices.data)
        return tensor("indices", indices.info, numbers)
    given = writer.value(indices)
    zero = tensor("zero", TensorInfo((), kind), kind.zeros(()))
    size = tensor("size", TensorInfo(bounds.shape, kind), bounds)
    is_below = tensor("is_below", TensorInfo(indices.info.shape, DataType.BOOLEAN))
    from_end, from_front = tensor("from_end", indices.info), tensor("from_front", indices.info)
    writer.operator("LESS", [given, zero], [is_below])
    writer.operator("ADD", [given, size], [from_end], ("AddOptions", {}))
    writer.operator("SELECT_V2", [is_below, from_end, given], [from_front])
    return from_front


def _blocks(code: str, table: str) -> Emit:
    def emit(writer: TfliteWriter, layer: Layer, attributes: Attributes) -> None:
        fields: dict[str, Field] = {"BlockSize": attributes["block_size"]}
        _put(writer, layer, code, [_first(writer, layer)], table, fields)

    return emit


def _batches(code: str, second: str) -> Emit:
    def emit(writer: TfliteWriter, layer: Layer, attributes: Attributes) -> None:
        how = [_operand(writer, layer, name, attributes[name]) for name in ("block_shape", second)]
        _put(writer, layer, code, [_first(writer, layer), *how])

    return emit


def _matrices(writer: TfliteWriter, layer: Layer, attributes: Attributes) -> None:
    inputs = [writer.value(value) for value in layer.inputs]
    fields: dict[str, Field] = {
        "AdjX": attributes["transpose_x"],
        "AdjY": attributes["transpose_y"],
    }
    _put(writer, layer, "BATCH_MATMUL", inputs, "BatchMatMulOptions", fields)


def _fill(writer: TfliteWriter, layer: Layer, attributes: Attributes) -> None:
    how = _operand(writer, layer, "shape", attributes["shape"])
    _put(writer, layer, "FILL", [how, _first(writer, layer)])


_EMITTERS: dict[str, Emit] = {
    "Activation": _activation,
    "ArgMinMax": _arg_min_max,
    "BatchMatMul": _matrices,
    "BatchToSpaceNd": _batches("BATCH_TO_SPACE_ND", "crops"),
    "BroadcastTo": _moving("BROADCAST_TO", "broadcast_to_shape"),
    "Cast": _plain("CAST"),
    "Comparison": _by_name(_COMPARISONS),
    "Concat": _concat,
    "Convolution2d": _convolution,
    "DepthToSpace": _blocks("DEPTH_TO_SPACE", "DepthToSpaceOptions"),
    "DepthwiseConvolution2d": _convolution,
    "Dequantize": _plain("DEQUANTIZE"),
    "ElementwiseBinary": _binary,
    "ElementwiseUnary": _by_name(_UNARY),
    "ExpandDims": _moving("EXPAND_DIMS", "axis"),
    "Fill": _fill,
    "FullyConnected": _fully_connected,
    "Gather": _gather,
    "GatherNd": _gather_nd,
    "L2Normalization": _softmax,
    "LogSoftmax": _softmax,
    "LogicalBinary": _by_name(frozenset(("LOGICAL_AND", "LOGICAL_OR"))),
    "Pad": _pad,
    "Pooling2d": _pooling,
    "Prelu": _plain("PRELU"),
    "Quantize": _plain("QUANTIZE"),
    "Rank": _plain("RANK"),
    "Reduce": _reduce,
    "Reshape": _reshape,
    "Resize": _resize,
    "ReverseV2": _moving("REVERSE_V2", "axes"),
    "Select": _plain("SELECT_V2"),
    "Shape": _shape,
    "Slice": _slice,
    "Softmax": _softmax,
    "SpaceToBatchNd": _batches("SPACE_TO_BATCH_ND", "pad_list"),
    "SpaceToDepth": _blocks("SPACE_TO_DEPTH", "SpaceToDepthOptions"),
    "Splitter": _split,
    "Squeeze": _squeeze,
    "Stack": _stack,
    "StridedSlice": _strided_slice,
    "Tile": _moving("TILE", "multiples"),
    "Transpose": _moving("TRANSPOSE", "perm"),
    "TransposeConvolution2d": _transpose_convolution,
    "Unstack": _unstack,
}
