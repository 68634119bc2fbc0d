"""Cases of the conformance kit as .tflite models of one operator."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from armpy.ops import BatchMatMul, Range
from armpy.ops.operation import Array, Operation
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_conformance import Case, CaseInput
from armpy_conformance.cases import all_case_templates
from armpy_testing.models.tflite_writer import OptionValue, Subgraph, Tensor, TfliteModel
from tests.support.tflite_operators import Form, forms_of

TYPES = {
    DataType.FLOAT32: "FLOAT32",
    DataType.QASYMM_U8: "UINT8",
    DataType.QASYMM_S8: "INT8",
    DataType.QSYMM_S8: "INT8",
    DataType.QSYMM_S16: "INT16",
    DataType.SIGNED16: "INT16",
    DataType.SIGNED32: "INT32",
    DataType.SIGNED64: "INT64",
    DataType.BOOLEAN: "BOOL",
    DataType.UNSIGNED32: "UINT32",
    DataType.UNSIGNED8: "UINT8",
    DataType.SIGNED8: "INT8",
    DataType.FLOAT64: "FLOAT64",
    DataType.FLOAT16: "FLOAT16",
}
"""What a file calls each data type that it has."""

_VERSIONS = {"BROADCAST_TO": 2}
"""Of operators whose first version LiteRT does not know."""


@dataclass(frozen=True)
class Spec:
    """One tensor to write; a constant if it has data."""

    shape: tuple[int, ...]
    type: str = "FLOAT32"
    data: object = None
    scale: float | tuple[float, ...] | None = None
    zero_point: int | tuple[int, ...] = 0
    variable: bool = False
    axis: int = 0

    @classmethod
    def of(cls, info: TensorInfo, data: object = None, variable: bool = False) -> Spec:
        """A tensor as its info says."""
        spec = cls(
            () if info.shape is None else info.known_shape,
            TYPES[info.data_type],
            data,
            variable=variable,
        )
        quant = info.quantization
        if quant is None:
            return spec
        return dataclasses.replace(
            spec, scale=quant.scales, zero_point=quant.zero_points, axis=quant.axis or 0
        )

    def write(self, graph: Subgraph, name: str) -> Tensor:
        """Add the tensor to a subgraph."""
        return graph.tensor(
            name,
            self.shape,
            self.type,
            data=self.data,  # type: ignore[arg-type]  # each case knows its data
            scale=self.scale,
            zero_point=self.zero_point,
            variable=self.variable,
            axis=self.axis,
        )


@dataclass(frozen=True)
class Model:
    """One operator, and its expected layers."""

    operator: str
    inputs: Sequence[Spec | None]
    expected: Operation
    options: Mapping[str, OptionValue] | None = None
    outputs: Sequence[Spec] = (Spec((1,)),)
    # Which of the operator's inputs the layer reads, None for an operand left out; the same ones in
    # the same order if not given
    order: tuple[int | None, ...] | None = None
    intermediates: Sequence[Spec] = field(default=())

    def model(self) -> TfliteModel:
        """The model with this one operator."""
        model = TfliteModel()
        graph = model.subgraph()
        inputs = [
            None if spec is None else spec.write(graph, f"in{i}")
            for i, spec in enumerate(self.inputs)
        ]
        outputs = [spec.write(graph, f"out{i}") for i, spec in enumerate(self.outputs)]
        between = [spec.write(graph, f"between{i}") for i, spec in enumerate(self.intermediates)]
        graph.operator(
            self.operator,
            inputs,
            outputs,
            self.options,
            intermediates=between,
            version=_VERSIONS.get(self.operator, 1),
        )
        computed = [
            tensor
            for spec, tensor in zip(self.inputs, inputs, strict=True)
            if spec is not None and tensor is not None and spec.data is None and not spec.variable
        ]
        graph.inputs(*computed)
        graph.outputs(*outputs)
        return model

    def __str__(self) -> str:
        return self.operator


def models_of(case: Case, positions: DataType = DataType.SIGNED32) -> Iterator[Model]:
    """A case as models, one per form that its operation has; none if a file cannot say it.

    `positions`: of operands that the operation has as attributes: axes, sizes, positions.
    """
    infos = [item.info for item in case.inputs if item is not None]
    if all(map(_is_known, (*infos, *case.outputs))) and not _gives_sums(case):
        for form in forms_of(case.operation):
            model = _model(case, form, positions)
            if model is not None:
                yield model


def _is_known(info: TensorInfo) -> bool:
    """Whether files have such tensors; none has unsigned bytes with several scales."""
    several = info.quantization is not None and len(info.quantization.scales) > 1
    return info.data_type in TYPES and not (several and info.data_type is DataType.QASYMM_U8)


def _gives_sums(case: Case) -> bool:
    """Whether the output is sums of products of bytes, which no file asks for."""
    is_product = isinstance(case.operation, BatchMatMul) or (
        "weights" in [operand.name for operand in case.operation.inputs]
    )
    first = case.inputs[0] if case.inputs else None
    is_quantized = first is not None and first.info.data_type.is_quantized
    return is_product and is_quantized and case.outputs[0].data_type is DataType.SIGNED32


def _model(case: Case, form: Form, positions: DataType) -> Model | None:
    """A case in one form; None if that has no place for an operand."""
    operation = case.operation
    specs: dict[str, Spec | None] = {
        operand.name: None for operand in operation.inputs if not operand.variadic
    }
    specs |= dict(zip(_names(case), map(_spec, _names(case), case.inputs), strict=True))
    attributes = _as_stored(operation)
    for operand in operation.inputs:
        if operand.becomes in form.kept:
            attributes[operand.becomes] = attributes[operand.becomes] or ()
        elif operand.becomes:
            specs[operand.name] = _attribute(case, operand.becomes, positions)
            attributes[operand.becomes] = None
    names_given = [name for name, spec in specs.items() if spec is not None]
    wanted = form.operands.split() or list(specs)
    needed = {o.name for o in operation.inputs if not o.optional or o.becomes} | {"pad_value"}
    if not set(names_given) <= set(wanted) or any(
        n in needed and n not in names_given for n in wanted
    ):
        return None
    while wanted and not form.operands and wanted[-1] not in names_given:
        wanted.pop()
    options = form.options
    if form.code == "PACK":
        options = {**(options or {}), "values_count": len(names_given)}
    kinds = [None if spec is None else spec.type for spec in specs.values()]
    if form.code in ("CONV_2D", "FULLY_CONNECTED") and kinds == ["INT16", "INT8", "INT32"]:
        options = {**(options or {}), "quantized_bias_type": "INT32"}
    return Model(
        form.code,
        [specs[name] for name in wanted],
        operation.with_attributes(**attributes),
        options,
        [Spec.of(info) for info, name in zip(case.outputs, _results(case), strict=True) if name],
        tuple(wanted.index(name) if name in names_given else None for name in specs),
        [Spec((0,), kind, None, scale or None, zero) for kind, scale, zero in form.hidden],
    )


def _as_stored(operation: Operation) -> dict[str, object]:
    """An operation's attributes, floats as a file keeps them."""
    return {
        name: float(np.float32(value)) if isinstance(value, float) and name != "epsilon" else value
        for name, value in operation.attributes().items()
    }


def _spec(name: str, item: CaseInput | None) -> Spec | None:
    """An operand; one kept from execution to execution is a variable."""
    if item is None:
        return None
    data = item.data if item.is_constant else None
    return Spec.of(item.info, data, name.endswith("state_in"))


def _results(case: Case) -> list[str]:
    """Names of the outputs; empty for those that a file has in variables, or not at all."""
    operands = case.operation.outputs
    names = [operands[min(i, len(operands) - 1)].name for i in range(len(case.outputs))]
    return ["" if n == "scratch" or "state_out" in n else n for n in names]


def _names(case: Case) -> list[str]:
    """The operands' names, numbered where one stands for several."""
    names = [case.operation.input_operand(i).name for i in range(len(case.inputs))]
    return [n if names.count(n) == 1 else f"{n} {i}" for i, n in enumerate(names)]


def _attribute(case: Case, name: str, positions: DataType) -> Spec | None:
    """A constant operand that the operation has as an attribute."""
    value = getattr(case.operation, name)
    if value is None and name == "output_shape":
        value = case.outputs[0].shape
    if value is None:
        return None
    if isinstance(case.operation, Range):
        positions = case.operation.output_type
    array: Array = np.array(value, positions.dtype)
    return Spec(array.shape, TYPES[positions], array)


@cache
def different_models() -> tuple[Model, ...]:
    """The first model of each operator with each set of options and each number of operands."""
    by_key: dict[object, Model] = {}
    for template in all_case_templates():
        if forms_of(template.operation):
            for case in itertools.islice(template.cases(), 1):
                for model in models_of(case):
                    key = (model.operator, repr(model.options), len(model.inputs))
                    by_key.setdefault(key, model)
    return tuple(by_key.values())


@cache
def operator_models() -> tuple[Model, ...]:
    """The first of `different_models` of each operator with each number of operands."""
    by_key: dict[object, Model] = {}
    for model in different_models():
        by_key.setdefault((model.operator, len(model.inputs)), model)
    return tuple(by_key.values())
