"""What LiteRT says of cases of the conformance kit, where it means the same by them.

LiteRT's kernels know few of the types that operations have, compute with some that they do not
know, and leave quantisations out of account. What is judged stands in `_TYPES`; what of that is
not, with the reason, in `_UNLIKE`. LiteRT has to take all the rest, and armpy to give the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from armpy import ops
from armpy.ops import Operation, UnaryOperation
from armpy.ops.operation import Array
from armpy.ops.tolerance import EXACT, FLOAT32, OFF_BY_ONE, Tolerance
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_conformance import Case
from armpy_conformance.sampling.case_template import CaseTemplate
from armpy_testing.litert_oracle import run_litert
from tests.support.tflite_cases import Model, models_of
from tests.support.tflite_operators import forms_of

F32, F16, BOOL = DataType.FLOAT32, DataType.FLOAT16, DataType.BOOLEAN
U8, S8, S16, W8 = DataType.QASYMM_U8, DataType.QASYMM_S8, DataType.QSYMM_S16, DataType.QSYMM_S8
I32, I64 = DataType.SIGNED32, DataType.SIGNED64

_NAMES = {
    **{"f32": F32, "f16": F16, "bool": BOOL, "i32": I32, "i64": I64},
    **{"u8": U8, "s8": S8, "s16": S16, "i16": DataType.SIGNED16},
    **{"f64": DataType.FLOAT64, "u32": DataType.UNSIGNED32},
    **{"i8": DataType.SIGNED8, "b8": DataType.UNSIGNED8},
}
_TYPES: Mapping[str, str] = {
    "ADD": "f32 i32 u8 s8 s16",
    "DIV": "f32 i32 u8 s8",
    "SUB MUL MAXIMUM MINIMUM": "f32 i32 i64 u8 s8 s16",
    "SQUARED_DIFFERENCE": "f32 i32 s8",
    "POW FLOOR_DIV": "f32 i32",
    "FLOOR_MOD": "f32 i32 i64",
    "ABS": "f32 i32 s8 s16",
    "EXP LOG RSQRT": "f32 s8 s16",
    "NEG": "f32 i32 i64 s8",
    "SQRT SIN COS CEIL FLOOR ROUND SQUARE": "f32",
    "LOGICAL_NOT LOGICAL_AND LOGICAL_OR REDUCE_ANY REDUCE_ALL": "bool",
    "EQUAL NOT_EQUAL": "f32 i32 i64 u8 s8 s16 bool",
    "LESS LESS_EQUAL GREATER GREATER_EQUAL": "f32 i32 i64 u8 s8 s16",
    "SELECT SELECT_V2": "f32 i32 i64 u8 s8 s16 bool",
    "PRELU GELU HARD_SWISH RELU_0_TO_1 RELU_N1_TO_1": "f32 u8 s8",
    "RELU RELU6 LEAKY_RELU TANH LOGISTIC SOFTMAX": "f32 u8 s8 s16",
    "ELU": "f32 s8",
    "LOG_SOFTMAX L2_NORMALIZATION": "f32 u8 s8",
    "CAST": "f64 f32 f16 i64 u32 i32 i16 i8 b8 u8 s8 bool",
    "QUANTIZE": "f32 u8 s8 s16 i32",
    "DEQUANTIZE": "f16 u8 s8 s16",
    "CONV_2D DEPTHWISE_CONV_2D TRANSPOSE_CONV FULLY_CONNECTED": "f32 u8 s8 s16",
    "BATCH_MATMUL": "f32 s8 s16",
    "AVERAGE_POOL_2D MAX_POOL_2D": "f32 u8 s8 s16",
    "L2_POOL_2D LOCAL_RESPONSE_NORMALIZATION LSH_PROJECTION": "f32",
    "MEAN SUM REDUCE_MAX REDUCE_MIN": "f32 i32 i64 u8 s8 s16",
    "REDUCE_PROD": "f32 i32 i64 s8 s16",
    "ARG_MAX ARG_MIN": "f32 i32 u8 s8 bool",
    "RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR": "f32 u8 s8 s16",
    "RESHAPE EXPAND_DIMS SQUEEZE TRANSPOSE": "f32 f16 i32 i64 u8 s8 s16",
    "TILE BROADCAST_TO PAD PADV2": "f32 f16 i32 i64 u8 s8 s16",
    "MIRROR_PAD SLICE STRIDED_SLICE GATHER GATHER_ND": "f32 i32 u8 s8",
    "REVERSE_V2 CONCATENATION PACK": "f32 i32 i64 u8 s8 s16",
    "UNPACK SPLIT SPLIT_V": "f32 i32 u8 s8 s16",
    "DEPTH_TO_SPACE SPACE_TO_DEPTH SPACE_TO_BATCH_ND BATCH_TO_SPACE_ND": "f32 i32 u8 s8",
    "FILL": "f32 i32 i64 s8",
    "RANGE": "f32 i32 i64",
    "ONE_HOT": "f32 i32 i64 bool",
    "SHAPE RANK": "f32 i32 i64 u8 s8 s16 bool",
    "TOPK_V2": "f32 i32 i64 u8 s8",
    "HASHTABLE_LOOKUP": "f32",
}
"""Types of the elements that LiteRT's kernels compute with, or move, by operator."""

_OPTIMISED_ONLY = ("CEIL", "ROUND", "ELU", "LOCAL_RESPONSE_NORMALIZATION")
"""Operators that the set of reference kernels lacks, or that are wrong there: it leaves the last
neighbour out."""

_JUDGED = {
    code: {_NAMES[name] for name in names.split()}
    for codes, names in _TYPES.items()
    for code in codes.split()
}


_ANY_POSITIONS = (ops.Tile, ops.BroadcastTo, ops.Slice, ops.Fill)
"""Operations whose kernels take sizes and positions of 64 bits, too."""


def opinions(case: Case) -> Iterator[tuple[Model, list[Array], Tolerance]]:
    """LiteRT's outputs of a case in each form that it has, and how close to these is right.

    Raises
    ------
    RuntimeError, ValueError
        If LiteRT does not take what `_TYPES` says that it does.
    """
    wide = isinstance(case.operation, _ANY_POSITIONS)
    for model in (*models_of(case), *(models_of(case, I64) if wide else ())):
        if _subject(case).data_type in _JUDGED.get(model.operator, ()) and not _is_unlike(
            case, model
        ):
            of_sums = model.operator == "SUM" and _subject(case).data_type in (S8, S16)
            is_reference = not of_sums and model.operator not in _OPTIMISED_ONLY
            outputs = run_litert(
                model.model().to_bytes(), _given(case, model), reference=is_reference
            )
            tolerance = FLOAT32 if case.outputs[0].data_type is F32 else EXACT
            # The reference kernel takes every quantised input for uint8.
            yield model, list(outputs), OFF_BY_ONE if of_sums else tolerance


_PLACES = {ops.Select: 1, ops.OneHot: 1, ops.HashtableLookup: 2}
"""Which input's type decides on the kernel, where it is not the first one's."""


def of_judged_types(template: CaseTemplate) -> CaseTemplate:
    """A line of the table for those of its types that LiteRT has an opinion on."""
    codes = [form.code for form in forms_of(template.operation)]
    judged = {data_type for code in codes for data_type in _JUDGED.get(code, ())}
    if not template.shapes:
        return template
    place = _PLACES.get(type(template.operation), 0)
    return replace(template, types=lambda types: types[place] in judged and template.types(types))


def _subject(case: Case) -> TensorInfo:
    """The tensor whose type decides on the kernel."""
    item = case.inputs[_PLACES.get(type(case.operation), 0)] if case.inputs else None
    return case.outputs[0] if item is None else item.info


def _given(case: Case, model: Model) -> list[Array]:
    """Elements of the model's inputs."""
    places = {place: i for i, place in enumerate(model.order or ()) if place is not None}
    items = [case.inputs[places[i]] for i, s in enumerate(model.inputs) if s and s.data is None]
    return [item.data for item in items if item is not None]


def _is_unlike(case: Case, model: Model) -> bool:
    """Whether LiteRT means something else by a case, or nothing."""
    infos = [item.info for item in case.inputs if item is not None]
    if "no-numbers" in case.id:  # its kernels drop NaN or keep it by the order of operands
        return True
    is_empty = any(0 in info.known_shape for info in (*infos, *case.outputs))
    reason = _UNLIKE.get(type(case.operation))
    return is_empty or (reason is not None and reason(case, model))


def _values(case: Case) -> list[Array]:
    """Elements of the inputs."""
    return [item.data for item in case.inputs if item is not None]


def _scales(case: Case) -> list[float]:
    """Scales of quantised inputs and outputs."""
    infos = [*(item.info for item in case.inputs if item is not None), *case.outputs]
    return [info.scale for info in infos if info.data_type.is_quantized]


def _quants(case: Case, inputs: int | None = None, outputs: int = 1) -> int:
    """How many quantisations inputs and outputs have between them."""
    infos = [item.info for item in case.inputs[:inputs] if item is not None]
    return len({info.quantization for info in (*infos, *case.outputs[:outputs])})


def _binary(case: Case, model: Model) -> bool:
    info = _subject(case)
    if model.operator in ("MAXIMUM", "MINIMUM"):  # without regard to scales
        return info.data_type.is_quantized and _quants(case) > 1
    if not info.data_type.is_quantized:
        has_kernel = info.data_type is not I64 or model.options is None
        return not (has_kernel or model.options == {**(model.options or {}), **_NO_ACTIVATION})
    if model.operator == "DIV":  # shifts by more than 31 bits are undefined
        values = [item.data.astype(np.int64) - item.info.zero_point for item in case.inputs if item]
        left, right, output = _scales(case)
        is_coarse = output > left / right or output < left / right / 64
        return is_coarse or int(np.abs(values[0]).min()) < 32 or not values[1].all()
    if model.operator == "MUL":  # in 32 bits
        left, right, output = _scales(case)
        return left * right >= output * (1 if info.data_type is S16 else 2**15)
    if getattr(case.operation, "power_of_two_scales", False):  # of one shape
        return len({item.info.shape for item in case.inputs if item is not None}) > 1
    return _is_refused(case, model)


_NO_ACTIVATION = {"fused_activation_function": "NONE"}


def _is_refused(case: Case, model: Model) -> bool:
    """Whether armpy's front-end refuses what ends LiteRT's process: an output that is too fine."""
    left, right, output = _scales(case)
    most = 2 * max(left, right)
    bits = 20
    if model.operator == "SQUARED_DIFFERENCE":
        most, bits = most**2, 14
    elif _subject(case).data_type is S16:
        bits = 15
    return bool(most / 2**bits >= output)


def _unary(case: Case, model: Model) -> bool:
    info, operation = _subject(case), case.operation
    kind = operation.attributes()["operation"]
    if not info.data_type.is_quantized:
        return False
    if kind is UnaryOperation.NEG:  # without regard to scales, and the lowest wraps
        return _quants(case) > 1 or info.zero_point != 0 or int(_values(case)[0].min()) == -128
    # What leaves int32 there is not the largest element.
    return kind is UnaryOperation.EXP and bool(
        info.scale * 2 ** (8 * info.data_type.size_bytes - 1) > 20
    )


def _comparison(case: Case, model: Model) -> bool:
    """Of scales above 1, and of 16-bit elements of several scales, which are taken as they are."""
    info = _subject(case)
    if not info.data_type.is_quantized:
        return False
    is_equality = "EQUAL" in (model.operator, model.operator.removeprefix("NOT_"))
    if info.data_type is not S16 or is_equality:
        return max(_scales(case)) >= 1
    left, right = (array.astype(np.int64) for array in _values(case))
    apart = np.abs(left - right)
    # armpy compares what is left of 8 bits more than the integers that elements stand for.
    is_near = bool(((apart > 0) & (apart * info.scale * 2**8 < 2)).any())
    return is_near or _quants(case, outputs=0) > 1


def _select(case: Case, model: Model) -> bool:
    shapes = {item.info.shape for item in case.inputs if item is not None}
    condition, *others = (item.info for item in case.inputs if item is not None)
    is_rank_1 = model.operator == "SELECT" and len(condition.known_shape) == 1
    return (model.operator == "SELECT" and (len(shapes) > 1 or is_rank_1)) or len(
        {info.quantization for info in (*others, *case.outputs)}
    ) > 1


def _prelu(case: Case, model: Model) -> bool:
    """Products that are made larger by far overflow."""
    if not _subject(case).data_type.is_quantized:
        return False
    left, right, output = _scales(case)
    return left * right / output >= 2**15


def _local_response(case: Case, model: Model) -> bool:
    """The kernel takes squares off its sum again, and loses small ones beside large ones."""
    return bool(np.abs(_real(case)).max() > 1000)


def _activation(case: Case, model: Model) -> bool:
    info, output = _subject(case), case.outputs[0]
    if not info.data_type.is_quantized:
        return False
    if info.data_type is S16 and model.operator in ("LOGISTIC", "TANH"):
        return output.scale != 2.0**-15
    if model.operator == "HARD_SWISH":  # a finer output is refused
        return output.scale > 1.01 * info.scale
    return model.operator == "LOGISTIC" and (
        output.scale != 1 / 256 or output.zero_point != output.data_type.integer_range[0]
    )


def _rows(case: Case, model: Model) -> bool:
    """Where rows are long, exponentials of bytes add up to more than the kernel asserts."""
    info, output = _subject(case), case.outputs[0]
    if not info.data_type.is_quantized:
        return False
    low, high = output.data_type.integer_range
    wanted = {
        ops.Softmax: (1 / 256, low),
        ops.LogSoftmax: (1 / 16, high),
        ops.L2Normalization: (1 / 128, (low + high + 1) // 2),
    }[type(case.operation)]
    if output.data_type is S16:
        wanted = (2.0**-15, 0) if info.data_type is S16 else (2.0**-16, low)
    return (output.scale, output.zero_point) != wanted


_CONVERSIONS = {
    F32: (U8, S8, S16),
    U8: (U8, S8, S16),
    S8: (U8, S8, S16),
    S16: (S8, S16, I32),
    I32: (S8, S16),
}


def _quantize(case: Case, model: Model) -> bool:
    source, output = _subject(case), case.outputs[0]
    has_scales = source.data_type is F32 or source.quantization is not None
    return output.data_type not in _CONVERSIONS[source.data_type] or not has_scales


def _dequantize(case: Case, model: Model) -> bool:
    has_kernel = _subject(case).data_type in (U8, S8) or not _is_per_axis(_subject(case))
    return case.outputs[0].data_type is not F32 or not has_kernel


def _weighted(case: Case, model: Model) -> bool:
    """Whether no kernel is for the types together, or takes a zero point for 0."""
    source, weights, *bias = (None if item is None else item.info for item in case.inputs)
    assert source is not None
    assert weights is not None
    kinds = (source.data_type, weights.data_type, bias[0].data_type if bias and bias[0] else None)
    is_dense, per_axis = model.operator == "FULLY_CONNECTED", _is_per_axis(weights)
    if kinds[1] is S8 and not any(weights.quantization.zero_points if weights.quantization else ()):
        kinds = (kinds[0], W8, kinds[2])
    if kinds[2] is None:  # the kernels of the others ask for a bias
        if not is_dense and model.operator != "DEPTHWISE_CONV_2D":
            return True
        kinds = (*kinds[:2], {F32: F32, S16: I64}.get(kinds[0], I32))
    if kinds in ((F32, F32, F32), (U8, U8, I32)):
        return per_axis
    if kinds == (S8, W8, I32) or (is_dense and kinds == (S8, S8, I32)):
        return False
    if kinds[:2] == (F32, W8):
        if case.inputs[1] is not None and int(case.inputs[1].data.min()) == -128:
            return True  # of which vector code makes 128
        return model.operator == "TRANSPOSE_CONV" or (model.operator[0] == "D" and not per_axis)
    if kinds == (S16, W8, I64):
        return not per_axis and not is_dense
    return (
        kinds != (S16, W8, I32)
        or not per_axis
        or model.operator not in ("CONV_2D", "FULLY_CONNECTED")
    )


def _is_per_axis(info: TensorInfo) -> bool:
    """Whether there is a scale per index along an axis."""
    return info.quantization is not None and info.quantization.axis is not None


def _transposed(case: Case, model: Model) -> bool:
    """Of an output that windows do not reach to the end of, the kernel finds another input."""
    return case.operation.attributes()["output_shape"] is not None or _weighted(case, model)


def _product(case: Case, model: Model) -> bool:
    """16-bit products that are made larger overflow."""
    if _subject(case).data_type is not S16:
        return False
    left, right, output = _scales(case)
    return left * right * 8 >= output


def _reduce(case: Case, model: Model) -> bool:
    """What depends on the order: sums of large numbers and small ones."""
    return bool(_subject(case).data_type is F32 and np.abs(_real(case)).max() > 100)


def _real(case: Case) -> Array:
    """The first input as floats."""
    return np.asarray(_values(case)[0], np.float64)


def _concat(case: Case, model: Model) -> bool:
    """Only bytes without a sign are given another scale."""
    return _subject(case).data_type is not U8 and _quants(case) > 1


def _reverse(case: Case, model: Model) -> bool:
    axes = case.operation.attributes()["axes"]
    return not isinstance(axes, tuple) or len(axes) > 1


def _strided(case: Case, model: Model) -> bool:
    """Ends that count from the begin, of fewer axes than there are, end LiteRT's process."""
    attributes = case.operation.attributes()
    begin, rank = attributes["begin"], len(_subject(case).known_shape)
    return bool(attributes["end_is_offset"]) and isinstance(begin, tuple) and len(begin) < rank


def _projection(case: Case, model: Model) -> bool:
    """Signatures of 32 bits and more overflow there."""
    return case.operation.attributes()["projection_type"] is not ops.LshProjectionType.DENSE and (
        _subject(case).known_shape[1] > 31
    )


_UNLIKE: Mapping[type[Operation], Callable[[Case, Model], bool]] = {
    ops.ElementwiseBinary: _binary,
    ops.ElementwiseUnary: _unary,
    ops.Comparison: _comparison,
    ops.Select: _select,
    ops.Prelu: _prelu,
    ops.Normalization: _local_response,
    ops.Activation: _activation,
    **dict.fromkeys((ops.Softmax, ops.LogSoftmax, ops.L2Normalization), _rows),
    ops.Quantize: _quantize,
    ops.Dequantize: _dequantize,
    **dict.fromkeys((ops.Convolution2d, ops.DepthwiseConvolution2d, ops.FullyConnected), _weighted),
    ops.TransposeConvolution2d: _transposed,
    ops.BatchMatMul: _product,
    ops.Reduce: _reduce,
    ops.Concat: _concat,
    ops.ReverseV2: _reverse,
    ops.LshProjection: _projection,
    ops.Fill: lambda case, model: _subject(case).shape != (),
    ops.StridedSlice: _strided,
}
"""Why not all that LiteRT has a kernel for is judged, by operation."""
