"""Cases of activation functions and normalisations."""

from __future__ import annotations

from collections.abc import Iterator

from armpy.ops import (
    Activation,
    ActivationFunction,
    L2Normalization,
    LogSoftmax,
    Operation,
    Softmax,
)
from armpy.tensor import Quantization
from armpy.types import DataType
from armpy_conformance.comparison.seeded_values import anything, positive, zeros
from armpy_conformance.sampling.case_template import CaseTemplate, Scale, every, of

_PARAMETERS = {
    ActivationFunction.TANH: (1.0, 1.0),
    ActivationFunction.LINEAR: (0.5, 1.0),
    ActivationFunction.BOUNDED_RELU: (3.0, -1.0),
    ActivationFunction.LEAKY_RELU: (0.125, 0.0),
    ActivationFunction.ELU: (1.0, 0.0),
}
_INPUT = (Scale(1 / 32, 0.1),)
_BYTES = (DataType.QASYMM_S8, DataType.QASYMM_U8)


def case_templates() -> Iterator[CaseTemplate]:
    """Lines of the table."""
    for function in ActivationFunction:
        a, b = _PARAMETERS.get(function, (0.0, 0.0))
        values = positive if function is ActivationFunction.SQRT else anything
        output = Scale(1 / 256, -1.0) if function is ActivationFunction.SIGMOID else _INPUT[0]
        if function is ActivationFunction.TANH:
            output = Scale(1 / 128, 0.0)
        operation = Activation(function, a, b)
        name = function.name.lower()
        yield CaseTemplate(name, operation, ((2, 5, 7),), every, (values,), _INPUT, output)
        yield CaseTemplate(f"{name}-scalar", operation, ((),), of(DataType.FLOAT32), (values,))
    yield CaseTemplate(
        "gelu-approximate", Activation(ActivationFunction.GELU, approximate=True), ((3, 7),), every
    )
    for where in (-1.0, 1.0):
        side = "lowest" if where < 0 else "highest"
        for function in (ActivationFunction.RELU, ActivationFunction.SIGMOID):
            yield CaseTemplate(
                f"{function.name.lower()}-{side}-zero-point",
                Activation(function),
                ((3, 7),),
                of(*_BYTES),
                scales=(Scale(1 / 16, where),),
                output=Scale(1 / 256, -1.0),
            )
    yield from _normalizations()
    for of_15_bits in (Activation(ActivationFunction.SIGMOID), Softmax()):
        yield CaseTemplate(
            "15-bits", of_15_bits, ((3, 7),), of(DataType.QSYMM_S16), output_scale=_of_15_bits
        )
    yield CaseTemplate(
        "to-16-bits",
        Softmax(),
        ((3, 7),),
        of(*_BYTES),
        output_types=(DataType.QSYMM_S16,),
        output_scale=_from_the_lowest,
    )


def _of_15_bits(inputs: object, data_type: DataType) -> Quantization:
    return Quantization.per_tensor(2.0**-15)


def _from_the_lowest(inputs: object, data_type: DataType) -> Quantization:
    """Numbers from 0 to 1 in 16 bits."""
    return Quantization.per_tensor(2.0**-16, -(2**15))


def _normalizations() -> Iterator[CaseTemplate]:
    """Softmax and its relatives in every type, and rows of one element."""
    for make, output in (
        (Softmax, Scale(1 / 256, -1.0)),
        (LogSoftmax, Scale(1 / 16, 1.0)),
        (L2Normalization, Scale(1 / 128, 0.0)),
    ):
        scales = (Scale(1 / 16, 0.1),)
        last: Operation = make()
        yield CaseTemplate("rows", last, ((3, 7),), every, scales=scales, output=output)
        yield CaseTemplate("vector", last, ((9,),), scales=scales, output=output)
        yield CaseTemplate("one", last, ((2, 1),), scales=scales, output=output)
    unit = Scale(1 / 128, 0.0)
    yield CaseTemplate("zeros", L2Normalization(), ((2, 7),), every, (zeros,), output=unit)
