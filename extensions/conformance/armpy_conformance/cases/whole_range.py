"""Cases of elementwise operations over the whole range of each type, with unusual scales."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from armpy.ops import (
    Activation,
    ActivationFunction,
    BinaryOperation,
    Cast,
    Comparison,
    ComparisonOperation,
    Dequantize,
    ElementwiseBinary,
    ElementwiseUnary,
    FusedActivation,
    L2Normalization,
    LogSoftmax,
    Operation,
    Prelu,
    Quantize,
    Softmax,
    UnaryOperation,
)
from armpy.ops.operation import NUMBER_TYPES
from armpy.types import DataType
from armpy_conformance.cases import functions
from armpy_conformance.comparison.seeded_values import (
    Values,
    few,
    from_zero,
    halves,
    thorough,
    thorough_positive,
)
from armpy_conformance.sampling.case_template import CaseTemplate, Scale, Types, every, of

_SQUARE, _LONG = (16, 17), (8, 64)
"""Room for every element of 8 bits, and for many of 16."""

_BYTES = (DataType.QASYMM_S8, DataType.QASYMM_U8)
_QUANTIZED = (*_BYTES, DataType.QSYMM_S16)
_FLOATS = (DataType.FLOAT32, DataType.FLOAT16)

_ON_INTEGERS = (UnaryOperation.ABS, UnaryOperation.NEG, UnaryOperation.SQUARE)
_ABOVE_ZERO = (UnaryOperation.SQRT, UnaryOperation.RSQRT, UnaryOperation.LOG)
_DIVIDING = (
    BinaryOperation.DIV,
    BinaryOperation.FLOOR_DIV,
    BinaryOperation.FLOOR_MOD,
    BinaryOperation.POWER,
)
_NOT_QUANTIZED = (UnaryOperation.LOGICAL_NOT, *functions.UNARY)
_REAL_OR_INTEGER = (BinaryOperation.FLOOR_DIV, BinaryOperation.FLOOR_MOD, BinaryOperation.POWER)
_NOT_OF_BYTES = (*_REAL_OR_INTEGER, *functions.BINARY)

SCALES: dict[str, tuple[Scale, Scale, Scale]] = {
    "coarse-left": (Scale(0.7, 0.3), Scale(1 / 90, -0.6), Scale(0.9, 0.1)),
    "coarse-right": (Scale(1 / 90, -1.0), Scale(0.7, 1.0), Scale(0.8, -0.2)),
    "fine-output": (Scale(1 / 20, 0.2), Scale(1 / 30, -0.3), Scale(1 / 300, 0.1)),
    "coarse-output": (Scale(1 / 20, 0.2), Scale(1 / 30, -0.3), Scale(5.0, -0.1)),
    "tiny": (Scale(3e-6, 0.5), Scale(2e-6, -0.5), Scale(4e-6, 0.2)),
    "huge": (Scale(6e4, 0.5), Scale(3.5e4, -0.5), Scale(9e4, 0.0)),
}
"""Scales of both inputs and of the output: factors far above and below 1, zero points anywhere."""


def case_templates() -> Iterator[CaseTemplate]:
    """Lines of the table."""
    yield from _binary()
    yield from _unary()
    yield from _activations()
    yield from _rows()
    yield from _conversions()
    yield from _without_axes_or_elements()


def _without_axes_or_elements() -> Iterator[CaseTemplate]:
    """Tensors of rank 0, and empty ones."""
    scales, output = (Scale(1 / 30, 0.1), Scale(1 / 50, -0.4)), Scale(1 / 40, 0.2)
    types = of(DataType.FLOAT32, DataType.QASYMM_S8, DataType.QSYMM_S16)
    operations: list[tuple[str, Operation, int]] = [
        *((f.name, Activation(f, *_PARAMETERS.get(f, ())), 1) for f in ActivationFunction),
        *((f.name, ElementwiseUnary(f), 1) for f in UnaryOperation if f not in _NOT_QUANTIZED),
        *((f.name, ElementwiseBinary(f), 2) for f in BinaryOperation if f not in _NOT_OF_BYTES),
        *((f.name, Comparison(f), 2) for f in ComparisonOperation),
        ("each", Prelu(), 2),
    ]
    for name, operation, count in operations:
        line = CaseTemplate(
            f"{name.lower()}-rank-0",
            operation,
            ((),) * count,
            types,
            (thorough_positive,),
            scales,
            output,
        )
        yield line
        empty: tuple[tuple[int, ...], ...] = ((2, 0, 3),) * count
        yield replace(line, label=f"{name.lower()}-of-nothing", shapes=empty)
    shapes: dict[str, tuple[int, ...]] = {"rank-0": (), "empty": (3, 0)}
    for label, shape in shapes.items():
        line = CaseTemplate(label, Quantize(), (shape,), types, (thorough,), scales, output, _BYTES)
        yield line
        yield replace(line, operation=Dequantize(), types=of(*_BYTES), output_types=_FLOATS[:1])
    for last in (Softmax(), LogSoftmax(), L2Normalization()):
        yield CaseTemplate("empty", last, ((0, 5),), types, (thorough,), scales, output)


def _binary() -> Iterator[CaseTemplate]:
    """Arithmetic, comparisons and slopes on two tensors."""
    for function in (f for f in BinaryOperation if f not in functions.BINARY):
        name = function.name.lower()
        second: Values = thorough_positive if function in _DIVIDING else thorough
        first: Values = thorough_positive if function is BinaryOperation.POWER else thorough
        line = CaseTemplate(
            f"{name}-whole-range",
            ElementwiseBinary(function),
            (_SQUARE, _SQUARE),
            of(*_FLOATS, *_QUANTIZED, DataType.SIGNED32),
            (first, second),
            (Scale(1 / 30, 0.1), Scale(1 / 50, -0.4)),
            Scale(1 / 10, 0.2),
        )
        if function in _REAL_OR_INTEGER:
            line = replace(line, types=of(*_FLOATS, DataType.SIGNED32))
        if function is BinaryOperation.POWER:
            line = replace(line, types=of(*_FLOATS), values=(thorough_positive, few))
        yield line
        if function in _REAL_OR_INTEGER:
            continue
        for label, (left, right, output) in SCALES.items():
            yield replace(
                line,
                label=f"{name}-{label}",
                types=of(*_QUANTIZED),
                scales=(left, right),
                output=output,
            )
    for activation in FusedActivation:
        yield CaseTemplate(
            f"sub-{activation.name.lower()}-whole-range",
            ElementwiseBinary(BinaryOperation.SUB, activation),
            (_SQUARE, _SQUARE),
            of(*_FLOATS, *_QUANTIZED),
            (thorough,),
            (Scale(1 / 10, 0.1),),
            Scale(1 / 14, 0.3),
        )
    for comparison in ComparisonOperation:
        for label, (left, right, _) in SCALES.items():
            yield CaseTemplate(
                f"{comparison.name.lower()}-{label}",
                Comparison(comparison),
                (_SQUARE, _SQUARE),
                of(*_QUANTIZED) if label != "tiny" else of(*_FLOATS, *_QUANTIZED),
                (thorough,),
                (left, right),
            )
    for label, (left, right, output) in SCALES.items():
        yield CaseTemplate(
            f"{label}", Prelu(), (_SQUARE, (17,)), every, (thorough,), (left, right), output
        )


def _unary() -> Iterator[CaseTemplate]:
    """Functions of one element."""
    for function in (f for f in UnaryOperation if f not in _NOT_QUANTIZED):
        values = (thorough_positive if function in _ABOVE_ZERO else thorough,)
        name = function.name.lower()
        line = CaseTemplate(
            f"{name}-whole-range",
            ElementwiseUnary(function),
            (_SQUARE,),
            of(*_FLOATS, *_QUANTIZED, *([DataType.SIGNED32] if function in _ON_INTEGERS else [])),
            values,
            (Scale(1 / 30, 0.1),),
            Scale(1 / 40, -0.3),
        )
        yield line
        if function in _ABOVE_ZERO:
            # Stored elements from real 0 on, which only some of these functions are finite for.
            yield replace(line, label=f"{name}-from-0", values=(from_zero,))
        for label, (source, _, output) in SCALES.items():
            if label in ("tiny", "huge") and function is UnaryOperation.RSQRT:
                continue
            yield replace(
                line,
                label=f"{name}-{label}",
                types=of(*_QUANTIZED),
                scales=(source,),
                output=output,
            )


_PARAMETERS = {
    ActivationFunction.TANH: (1.0, 1.0),
    ActivationFunction.LINEAR: (-0.75, 0.375),
    ActivationFunction.BOUNDED_RELU: (2.5, -1.5),
    ActivationFunction.LEAKY_RELU: (0.3, 0.0),
    ActivationFunction.ELU: (0.7, 0.0),
}


def _activations() -> Iterator[CaseTemplate]:
    for function in ActivationFunction:
        a, b = _PARAMETERS.get(function, (0.0, 0.0))
        values = (thorough_positive if function is ActivationFunction.SQRT else thorough,)
        name = function.name.lower()
        line = CaseTemplate(
            f"{name}-whole-range",
            Activation(function, a, b),
            (_SQUARE,),
            every,
            values,
            (Scale(1 / 12, 0.1),),
            Scale(1 / 20, -0.3),
        )
        if function is ActivationFunction.SIGMOID:
            line = replace(line, output=Scale(1 / 256, -1.0))
        if function is ActivationFunction.TANH:
            line = replace(line, output=Scale(1 / 128, 0.0))
        yield line
        for label in ("coarse-left", "fine-output", "tiny"):
            source, _, output = SCALES[label]
            is_fixed = function in (ActivationFunction.SIGMOID, ActivationFunction.TANH)
            yield replace(
                line,
                label=f"{name}-{label}",
                types=of(*_QUANTIZED),
                scales=(source,),
                output=line.output if is_fixed else output,
            )


def _rows() -> Iterator[CaseTemplate]:
    """Softmax and its relatives over rows of elements from the whole range."""
    for operation, output in (
        (Softmax(), Scale(1 / 256, -1.0)),
        (Softmax(1.7), Scale(1 / 256, -1.0)),
        (LogSoftmax(), Scale(1 / 16, 1.0)),
        (L2Normalization(), Scale(1 / 128, 0.0)),
    ):
        for label, step in (("fine", 1 / 300), ("middle", 1 / 17), ("coarse", 0.6)):
            # LogSoftmax multiplies by nothing before TFLite's kernels round.
            name = f"{label}-beta" if getattr(operation, "beta", 1.0) != 1.0 else label
            scales = (Scale(step, 0.4),)
            yield CaseTemplate(name, operation, (_LONG,), every, (thorough,), scales, output)
        yield CaseTemplate(
            f"{name}-short", operation, ((40, 3),), every, (thorough,), (Scale(1 / 40),), output
        )


def _conversions() -> Iterator[CaseTemplate]:
    """Quantize, Dequantize and Cast."""
    targets = tuple(t for t in DataType if t.is_quantized)
    for label, output in (("halves", Scale(1.0, 0.1)), ("halves-highest", Scale(0.5, 1.0))):
        yield CaseTemplate(
            label,
            Quantize(),
            ((20, 20),),
            of(*_FLOATS),
            (halves,),
            output=output,
            output_types=targets,
        )
    for label, (source, _, output) in SCALES.items():
        yield CaseTemplate(
            f"requantize-{label}",
            Quantize(),
            (_SQUARE,),
            of(*_QUANTIZED),
            (thorough,),
            (source,),
            output,
            output_types=_QUANTIZED,
        )
        yield CaseTemplate(
            label,
            Dequantize(),
            (_SQUARE,),
            _is_quantized,
            (thorough,),
            (source,),
            output_types=_FLOATS[:1],
        )
    integers = tuple(
        t
        for t in NUMBER_TYPES
        if not (t.is_float or t.is_quantized or t.is_narrow) and t is not DataType.BOOLEAN
    )
    for target in (*integers, *_FLOATS, DataType.BOOLEAN):
        yield CaseTemplate(
            f"to-{target.name.lower()}-whole-range",
            Cast(),
            ((10, 20),),
            of(*(t for t in (*integers, DataType.FLOAT32) if t is not target)),
            (thorough if target.is_float or target is DataType.BOOLEAN else halves,),
            output_types=(target,),
        )


def _is_quantized(types: Types) -> bool:
    """Select what can be dequantised."""
    return types[0].is_quantized
