"""How the schema's operators say each operation: codes, operands in their order, options."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import tflite

from armpy import ops
from armpy.ops import ActivationFunction as F
from armpy.ops import (
    FusedActivation,
    Operation,
    Padding,
    PaddingMode,
    RecurrentActivation,
    ReduceOperation,
)
from armpy.types import DataLayout, DataType
from armpy_testing.models.tflite_writer import OptionValue

Options = Mapping[str, OptionValue]
Kind = TypeVar("Kind", bound=Operation)


@dataclass(frozen=True)
class Form:
    """One way to say an operation."""

    code: str  # the operator's name
    # Names of the operation's operands in the operator's order; all of them in the operation's own
    # order if empty
    operands: str = ""
    options: Options | None = None
    # Attributes that become operands in other forms and are options here
    kept: tuple[str, ...] = ()
    # Types, scales and zero points of intermediate tensors
    hidden: tuple[tuple[str, float, int], ...] = field(default=())


_FORMS: dict[type[Operation], Callable[[Any], Iterator[Form]]] = {}  # Any: of that type

FUSED = {
    FusedActivation.NONE: "NONE",
    FusedActivation.RELU: "RELU",
    FusedActivation.RELU1: "RELU_N1_TO_1",
    FusedActivation.RELU6: "RELU6",
}
_RECURRENT = {RecurrentActivation[a.name]: name for a, name in FUSED.items()}
_RECURRENT[RecurrentActivation.TANH] = "TANH"
_TYPE_NAMES = {DataType.SIGNED32: "INT32", DataType.SIGNED64: "INT64"}


def forms_of(operation: Operation) -> list[Form]:
    """All ways to say an operation; none if the schema has no operator for it."""
    layout = getattr(operation, "data_layout", DataLayout.NHWC)
    make = _FORMS.get(type(operation))
    return [] if make is None or layout is not DataLayout.NHWC else list(make(operation))


def _says(
    *kinds: type[Operation],
) -> Callable[[Callable[[Any], Iterator[Form]]], Callable[[Any], Iterator[Form]]]:
    """Register what says operations of some types."""

    def register(make: Callable[[Any], Iterator[Form]]) -> Callable[[Any], Iterator[Form]]:
        _FORMS.update(dict.fromkeys(kinds, make))
        return make

    return register


def _are_default(operation: Operation, *names: str) -> bool:
    """Return whether attributes have their defaults."""
    defaults = {f.name: f.default for f in dataclasses.fields(operation)}  # type: ignore[arg-type]
    return all(getattr(operation, name) == defaults[name] for name in names)


_SAME_NAMES: dict[type[Operation], str] = {
    ops.Prelu: "PRELU",
    ops.Dequantize: "DEQUANTIZE",
    ops.Cast: "CAST",
    ops.GatherNd: "GATHER_ND",
    ops.HashtableLookup: "HASHTABLE_LOOKUP",
    ops.BroadcastTo: "BROADCAST_TO",
    ops.ExpandDims: "EXPAND_DIMS",
    ops.ReverseV2: "REVERSE_V2",
    ops.Slice: "SLICE",
    ops.Tile: "TILE",
    ops.Transpose: "TRANSPOSE",
    ops.SpaceToBatchNd: "SPACE_TO_BATCH_ND",
    ops.BatchToSpaceNd: "BATCH_TO_SPACE_ND",
    ops.Rank: "RANK",
    ops.Range: "RANGE",
}
"""Operations that an operator of the same operands, and without options, stands for."""


@_says(*_SAME_NAMES)
def _same(operation: Operation) -> Iterator[Form]:
    yield Form(_SAME_NAMES[type(operation)])


@_says(ops.Quantize)
def _quantize(operation: ops.Quantize) -> Iterator[Form]:
    if _are_default(operation, "rounds_to_even"):
        yield Form("QUANTIZE")


@_says(ops.ElementwiseBinary)
def _binary(operation: ops.ElementwiseBinary) -> Iterator[Form]:
    kind = operation.operation
    options: dict[str, OptionValue] = {}
    if kind.name in ("ADD", "SUB", "MUL", "DIV"):
        options = {"fused_activation_function": FUSED[operation.activation]}
        if kind.name in ("ADD", "SUB") and not operation.power_of_two_scales:
            options["pot_scale_int16"] = False
    elif not _are_default(operation, "activation"):
        return
    code = _OTHER_CODES.get(kind.name, kind.name)
    if hasattr(tflite.BuiltinOperator, code):
        yield Form(code, options=options or None)


_OTHER_CODES = {"POWER": "POW", "SHIFT_LEFT": "STABLEHLO_SHIFT_LEFT"}


@_says(ops.ElementwiseUnary, ops.LogicalBinary)
def _by_name(operation: ops.ElementwiseUnary | ops.LogicalBinary) -> Iterator[Form]:
    if hasattr(tflite.BuiltinOperator, operation.operation.name):
        yield Form(operation.operation.name)


@_says(ops.Comparison)
def _comparison(operation: ops.Comparison) -> Iterator[Form]:
    yield Form(operation.operation.name.replace("_OR_EQUAL", "_EQUAL"))


@_says(ops.Select)
def _select(operation: ops.Select) -> Iterator[Form]:
    yield Form("SELECT_V2")
    yield Form("SELECT")  # of three tensors of one shape


_BOUNDS = {(6.0, 0.0): "RELU6", (1.0, -1.0): "RELU_N1_TO_1", (1.0, 0.0): "RELU_0_TO_1"}
_ACTIVATIONS = {F.RELU: "RELU", F.HARD_SWISH: "HARD_SWISH", F.SIGMOID: "LOGISTIC"}


@_says(ops.Activation)
def _activation(operation: ops.Activation) -> Iterator[Form]:
    function, a, b = operation.function, operation.a, operation.b
    if function is F.BOUNDED_RELU and (a, b) in _BOUNDS:
        yield Form(_BOUNDS[a, b])
    elif function in _ACTIVATIONS:
        yield Form(_ACTIVATIONS[function])
    elif (function is F.TANH and (a, b) == (1, 1)) or (function is F.ELU and a == 1):
        yield Form(function.name)
    elif function is F.GELU:
        yield Form("GELU", options={"approximate": operation.approximate})
    elif function is F.LEAKY_RELU:
        yield Form("LEAKY_RELU", options={"alpha": a})


@_says(ops.Softmax, ops.LogSoftmax, ops.L2Normalization)
def _rows(operation: ops.Softmax | ops.LogSoftmax | ops.L2Normalization) -> Iterator[Form]:
    if operation.axis != -1:
        return
    if isinstance(operation, ops.Softmax):
        yield Form("SOFTMAX", options={"beta": operation.beta})
    elif isinstance(operation, ops.L2Normalization):
        yield Form("L2_NORMALIZATION", options={})
    elif _are_default(operation, "beta"):
        yield Form("LOG_SOFTMAX")


def _window(operation: Any) -> dict[str, OptionValue] | None:  # Any: one with windows
    """Options that operators with windows share; None if they cannot say the padding."""
    if not isinstance(operation.padding, Padding):
        return None
    names = (
        ("stride", "stride_h", "stride_w"),
        ("dilation", "dilation_h_factor", "dilation_w_factor"),
        ("pool_size", "filter_height", "filter_width"),
    )
    options: dict[str, OptionValue] = {
        "padding": operation.padding.name,
        "fused_activation_function": FUSED[operation.activation],
    }
    for attribute, *pair in names:
        options |= zip(pair, getattr(operation, attribute, ()), strict=False)
    return options


_WINDOWS: dict[type[Operation], tuple[str, str]] = {
    ops.Convolution2d: ("CONV_2D", ""),
    ops.DepthwiseConvolution2d: ("DEPTHWISE_CONV_2D", ""),
    ops.TransposeConvolution2d: ("TRANSPOSE_CONV", "output_shape weights input bias"),
}


@_says(*_WINDOWS, ops.Pooling2d)
def _windows(operation: Any) -> Iterator[Form]:  # Any: one with windows
    options = _window(operation)
    if options is not None and isinstance(operation, ops.Pooling2d):
        yield Form(f"{operation.algorithm.name}_POOL_2D", options=options)
    elif options is not None and not getattr(operation, "rounds_once", False):
        code, operands = _WINDOWS[type(operation)]
        yield Form(code, operands, options)


@_says(ops.FullyConnected)
def _dense(operation: ops.FullyConnected) -> Iterator[Form]:
    options: Options = {
        "fused_activation_function": FUSED[operation.activation],
        "keep_num_dims": operation.keep_num_dims,
        "asymmetric_quantize_inputs": operation.asymmetric_quantize_inputs,
    }
    yield Form("FULLY_CONNECTED", options=options)


@_says(ops.BatchMatMul)
def _product(operation: ops.BatchMatMul) -> Iterator[Form]:
    options: Options = {"adj_x": operation.transpose_x, "adj_y": operation.transpose_y}
    yield Form("BATCH_MATMUL", options=options)


@_says(ops.Reshape)
def _reshape(operation: ops.Reshape) -> Iterator[Form]:
    yield Form("RESHAPE", options={})
    shape = list(operation.target_shape or (0,))  # files say a scalar so
    yield Form("RESHAPE", "input", {"new_shape": shape}, kept=("target_shape",))


@_says(ops.Squeeze)
def _squeeze(operation: ops.Squeeze) -> Iterator[Form]:
    options: Options = {"squeeze_dims": list(operation.axes or ())}
    yield Form("SQUEEZE", "input", options, kept=("axes",))


@_says(ops.Pad)
def _pad(operation: ops.Pad) -> Iterator[Form]:
    if operation.padding_mode in (PaddingMode.REFLECT, PaddingMode.SYMMETRIC):
        options: Options = {"mode": operation.padding_mode.name}
        yield Form("MIRROR_PAD", "input pad_list", options)
    elif _are_default(operation, "pad_value", "padding_mode"):
        yield Form("PADV2", "input pad_list pad_value")
        yield Form("PAD", "input pad_list")


_MASKS = ("begin_mask", "end_mask", "shrink_axis_mask", "ellipsis_mask", "new_axis_mask")


@_says(ops.StridedSlice)
def _strided(operation: ops.StridedSlice) -> Iterator[Form]:
    masks = {name: getattr(operation, name) for name in _MASKS if getattr(operation, name)}
    yield Form("STRIDED_SLICE", options=masks | {"offset": operation.end_is_offset})


@_says(ops.Splitter)
def _split(operation: ops.Splitter) -> Iterator[Form]:
    options: Options = {"num_splits": operation.num_splits or 0}
    if operation.sizes is None:
        yield Form("SPLIT", "axis input", options)
    else:
        yield Form("SPLIT_V", "input sizes axis", options)


@_says(ops.Concat)
def _concat(operation: ops.Concat) -> Iterator[Form]:
    yield Form("CONCATENATION", options={"axis": operation.axis})


@_says(ops.Stack)
def _stack(operation: ops.Stack) -> Iterator[Form]:
    yield Form("PACK", options={"axis": operation.axis})


@_says(ops.Unstack)
def _unstack(operation: ops.Unstack) -> Iterator[Form]:
    yield Form("UNPACK", options={"num": operation.num, "axis": operation.axis})


@_says(ops.Gather)
def _gather(operation: ops.Gather) -> Iterator[Form]:
    yield Form("GATHER", options={"axis": operation.axis, "batch_dims": operation.batch_dims})


@_says(ops.DepthToSpace, ops.SpaceToDepth)
def _blocks(operation: ops.DepthToSpace | ops.SpaceToDepth) -> Iterator[Form]:
    code = "DEPTH_TO_SPACE" if isinstance(operation, ops.DepthToSpace) else "SPACE_TO_DEPTH"
    yield Form(code, options={"block_size": operation.block_size})


@_says(ops.Resize)
def _resize(operation: ops.Resize) -> Iterator[Form]:
    names = ("align_corners", "half_pixel_centers")
    options = {name: getattr(operation, name) for name in names}
    yield Form(f"RESIZE_{operation.method.name}", options=options)


@_says(ops.Fill)
def _fill(operation: ops.Fill) -> Iterator[Form]:
    yield Form("FILL", "shape value")


@_says(ops.OneHot)
def _one_hot(operation: ops.OneHot) -> Iterator[Form]:
    yield Form("ONE_HOT", "indices depth on_value off_value", {"axis": operation.axis})


@_says(ops.Shape)
def _shape(operation: ops.Shape) -> Iterator[Form]:
    yield Form("SHAPE", options={"out_type": _TYPE_NAMES[operation.output_type]})


_REDUCTIONS = {ReduceOperation.SUM: "SUM", ReduceOperation.MEAN: "MEAN"}


@_says(ops.Reduce)
def _reduce(operation: ops.Reduce) -> Iterator[Form]:
    if _are_default(operation, "rounds_down", "zero_absorbs") and operation.axes is not None:
        code = _REDUCTIONS.get(operation.operation, f"REDUCE_{operation.operation.name}")
        yield Form(code, options={"keep_dims": operation.keep_dims})


@_says(ops.ArgMinMax)
def _position(operation: ops.ArgMinMax) -> Iterator[Form]:
    options: Options = {"output_type": _TYPE_NAMES[operation.output_type]}
    yield Form(f"ARG_{operation.function.name}", options=options)


@_says(ops.Normalization)
def _local_response(operation: ops.Normalization) -> Iterator[Form]:
    if operation.axes == (-1,):
        names = {"radius": "radius", "alpha": "alpha", "beta": "beta", "bias": "k"}
        options = {option: getattr(operation, name) for option, name in names.items()}
        yield Form("LOCAL_RESPONSE_NORMALIZATION", options=options)


@_says(ops.LshProjection)
def _projection(operation: ops.LshProjection) -> Iterator[Form]:
    if "DEPRECATED" not in operation.projection_type.name:
        yield Form("LSH_PROJECTION", options={"type": operation.projection_type.name})


@_says(ops.TopkV2)
def _topk(operation: ops.TopkV2) -> Iterator[Form]:
    if operation.largest and not operation.larger_index_first:
        yield Form("TOPK_V2", options={})


_RECURRENT_CODES: dict[type[Operation], str] = {
    ops.Rnn: "RNN",
    ops.UnidirectionalSequenceRnn: "UNIDIRECTIONAL_SEQUENCE_RNN",
    ops.BidirectionalSequenceRnn: "BIDIRECTIONAL_SEQUENCE_RNN",
    ops.Lstm: "LSTM",
    ops.UnidirectionalSequenceLstm: "UNIDIRECTIONAL_SEQUENCE_LSTM",
    ops.BidirectionalSequenceLstm: "BIDIRECTIONAL_SEQUENCE_LSTM",
    ops.Svdf: "SVDF",
}
_GATES = ("input", "forget", "cell", "output")


@_says(*_RECURRENT_CODES)
def _recurrent(operation: Any) -> Iterator[Form]:  # Any: one with a state
    if operation.activation not in _RECURRENT:
        return
    options: dict[str, OptionValue] = {
        "fused_activation_function": _RECURRENT[operation.activation]
    }
    names = {"projection_clip": "proj_clip"}
    for name in ("cell_clip", "projection_clip", "time_major", "merge_outputs", "rank"):
        if hasattr(operation, name):
            options[names.get(name, name)] = getattr(operation, name)
    hidden: list[tuple[str, float, int]] = []
    if getattr(operation, "hidden_state_scale", 0):
        scales = (getattr(operation, f"{gate}_intermediate_scale") for gate in _GATES)
        last = ("INT8", operation.hidden_state_scale, operation.hidden_state_zero_point)
        hidden = [*(("INT16", scale, 0) for scale in scales), last]
    if _are_default(operation, *({"shifts_state_first"} & {*operation.attributes()})):
        yield Form(_RECURRENT_CODES[type(operation)], options=options, hidden=tuple(hidden))
