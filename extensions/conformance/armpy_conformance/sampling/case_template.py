"""Expansion of a line of a family's table to cases, one for each combination of data types."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import TypeAlias

import numpy as np

from armpy.core.dataclass import dataclass
from armpy.ops import Quantize
from armpy.ops.operation import Array, Operation, TypeRule, rule
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType
from armpy_conformance.case import Case, CaseInput
from armpy_conformance.comparison.seeded_values import Values, anything

Types: TypeAlias = tuple[DataType, ...]
"""Data types of a layer's inputs."""

OutputTypes: TypeAlias = tuple[DataType | None, ...]
"""Data types of a layer's outputs; None for one that the operation says itself."""

Selection: TypeAlias = Callable[[Types], bool]
"""Says which combinations of input types a template is expanded over."""


@dataclass(frozen=True, slots=True)
class Scale:
    """A quantisation that fits any quantised type."""

    step: float
    """Scale of an 8-bit type; one of 16 bits has the 256th part, so that both stand for the same
    real range.
    """
    where: float = 0.0
    """Zero point's place in the type's range, from -1 (lowest) to 1 (highest). Symmetric types have
    it at 0.
    """

    def of(self, data_type: DataType) -> Quantization:
        """The quantisation for a type."""
        bits = 8 * data_type.size_bytes
        step = self.step if bits == 8 else self.step / 256
        if data_type.is_symmetric or not data_type.is_quantized:
            return Quantization.per_tensor(step, 0)
        low, high = data_type.integer_range
        middle = (low + high + 1) // 2
        half = high - middle if self.where > 0 else middle - low
        return Quantization.per_tensor(step, middle + round(self.where * half))


COMMON_TYPES = (DataType.FLOAT32, DataType.QASYMM_S8)
"""What a template is expanded over unless it says more."""


_LONGEST_TAG = 5
"""Most types that a case's id lists in order; of more it lists the different ones."""


def every(types: Types) -> bool:
    """Select every combination."""
    return True


def common(types: Types) -> bool:
    """Select combinations that begin with a common type and do not mix floats and integers."""
    return types[0] in COMMON_TYPES and not is_hybrid(types)


def of(*firsts: DataType) -> Selection:
    """Select combinations by the type of the first input."""
    return lambda types: types[0] in firsts and not is_hybrid(types)


def is_hybrid(types: Types) -> bool:
    """Return whether floats meet quantised weights."""
    return types[0].is_float and any(t.is_quantized for t in types[1:])


Infos: TypeAlias = Callable[["CaseTemplate", Types], list[TensorInfo | None]]
OutputScale: TypeAlias = Callable[[Sequence[TensorInfo | None], DataType], Quantization]


@dataclass(frozen=True, eq=False)
class CaseTemplate:
    """One line of a family's table."""

    label: str  # its special property, for the case's id
    operation: Operation
    shapes: Sequence[tuple[int, ...] | None]
    """One per data operand; None leaves an optional one out."""
    types: Selection = common
    """Selects combinations of input types from those that the type rules allow (all data types
    where there are no rules).
    """
    values: Sequence[Values] = (anything,)
    """Kinds of elements of the inputs; the last entry holds for further inputs."""
    scales: Sequence[Scale] = (Scale(1 / 16, 0.1),)
    """Scales of quantised inputs; the last entry holds for further inputs."""
    output: Scale | None = None  # of quantised outputs; the first input's quantisation if left out
    output_types: Sequence[DataType] | None = None
    """Types that the first output is to have where it does not follow from the inputs."""
    constants: tuple[int, ...] = ()  # numbers of the inputs that are part of the network
    # Make the inputs' infos, and an output's quantisation, where these hang together.
    infos: Infos | None = None
    output_scale: OutputScale | None = None
    gives_sums: bool = False
    """Whether products of bytes are the output as they are, in SIGNED32; a line is for that or for
    all else.
    """
    is_exact: bool = False  # as of `Case`

    def cases(self, seed: int = 0) -> Iterator[Case]:
        """One case per selected combination of types.

        Parameters
        ----------
        seed : int
            Other seeds give other elements, and ids that say so.
        """
        for types, outputs in self.type_combinations():
            yield self.case(types, outputs, seed)

    def type_combinations(self) -> Iterator[tuple[Types, OutputTypes]]:
        """Selected combinations of the inputs' and the outputs' types."""
        rules = self.operation.type_rules or tuple(rule((t,), (t,)) for t in DataType)
        for type_rule in rules:
            if _gives_sums(type_rule) is not self.gives_sums:
                continue
            for types in _input_types(type_rule, max(len(self.shapes), 1)):
                # The kit has no elements of strings, and few backends take any.
                if self.types(types) and not any(t.is_string for t in types):
                    for outputs in self._output_types(type_rule):
                        yield types, outputs

    def at_run_time(self) -> CaseTemplate:
        """The same with every input given at each execution."""
        return replace(self, label=f"{self.label}-run-time", constants=())

    def _output_types(self, type_rule: TypeRule) -> Iterator[OutputTypes]:
        """Types of the outputs; None for one that the operation says itself."""
        columns = type_rule.outputs
        count = self.operation.num_outputs
        single = [
            next(iter(column)) if len(column) == 1 else None
            for column in (columns[min(i, len(columns) - 1)] for i in range(count))
        ]
        if self.output_types is None:
            yield tuple(single)
            return
        free = not self.operation.type_rules
        for first in self.output_types:
            if free or first in columns[0]:
                yield (first, *single[1:])

    def case(self, types: Types, output_types: OutputTypes, seed: int = 0) -> Case:
        """The case of one combination of types; parameters as for `cases`."""
        inputs = (self.infos or _input_infos)(self, types)
        while inputs and inputs[-1] is None:
            inputs.pop()
        declared = [self._declared(inputs, data_type) for data_type in output_types]
        outputs = self.operation.infer(inputs, declared)
        name = f"{self.label}-{seed}" if seed else self.label
        label = "/".join((self.operation.name, name, _tag(inputs, outputs)))
        made = cache(partial(self._elements, zlib.crc32(label.encode()), inputs))
        tensors = tuple(
            None
            if info is None
            else CaseInput(info, partial(_one_of, made, index), index in self.constants)
            for index, info in enumerate(inputs)
        )
        return Case(label, self.operation, tensors, outputs, is_exact=self.is_exact)

    def _declared(
        self, inputs: Sequence[TensorInfo | None], data_type: DataType | None
    ) -> TensorInfo | None:
        """Return the author's declaration of an output."""
        if data_type is None:
            return None
        first = inputs[0] if inputs else None
        quantization = None
        if self.output_scale is not None:
            quantization = self.output_scale(inputs, data_type)
        elif self.output is not None:
            quantization = self.output.of(data_type)
        elif first is not None and first.data_type is data_type:
            quantization = first.quantization
        else:
            quantization = self.scales[0].of(data_type)
        has_scale = data_type.is_quantized or isinstance(self.operation, Quantize)
        return TensorInfo(None, data_type, quantization if has_scale else None)

    def _elements(self, seed: int, inputs: Sequence[TensorInfo | None]) -> tuple[Array | None, ...]:
        """Elements of all inputs, which are drawn one after the other."""
        rng = np.random.default_rng(seed)
        return tuple(
            None if info is None else self.values[min(index, len(self.values) - 1)](rng, info)
            for index, info in enumerate(inputs)
        )


def _one_of(made: Callable[[], Sequence[Array | None]], index: int) -> Array:
    """The elements of an input that is there."""
    elements = made()[index]
    assert elements is not None
    return elements


def _gives_sums(type_rule: TypeRule) -> bool:
    """Return whether a rule is for products of quantised elements that stay sums."""
    factors = type_rule.inputs[:2]
    is_product = len(factors) == 2 and all(t.is_quantized for column in factors for t in column)
    return is_product and type_rule.outputs[0] == {DataType.SIGNED32}


def _input_types(type_rule: TypeRule, count: int) -> Iterator[Types]:
    """Combinations of a rule in which every type of every column occurs."""
    columns = [
        sorted(type_rule.inputs[min(i, len(type_rule.inputs) - 1)], key=lambda t: t.value)
        for i in range(count)
    ]
    for turn in range(max(map(len, columns))):
        yield tuple(column[turn % len(column)] for column in columns)


def _input_infos(template: CaseTemplate, types: Types) -> list[TensorInfo | None]:
    """Infos of the inputs, each with the quantisation that the template says."""
    infos: list[TensorInfo | None] = []
    for index, shape in enumerate(template.shapes):
        if shape is None:
            infos.append(None)
            continue
        data_type = types[index]
        scale = template.scales[min(index, len(template.scales) - 1)]
        quantization = scale.of(data_type) if data_type.is_quantized else None
        infos.append(TensorInfo(shape, data_type, quantization))
    return infos


def indexed(
    template: CaseTemplate, types: Types, index_type: DataType = DataType.SIGNED32
) -> list[TensorInfo | None]:
    """Infos of elements of the first type and, as the second input, of indices into them."""
    infos = _input_infos(template, (types[0],) * len(template.shapes))
    infos[1] = TensorInfo(template.shapes[1], index_type)
    return infos


def _tag(inputs: Sequence[TensorInfo | None], outputs: Sequence[TensorInfo]) -> str:
    """Short text of the types: those of the inputs, and the output's where it differs."""
    names = [info.data_type.name.lower() for info in inputs if info is not None]
    names_in_turn = [name for name, _ in itertools.groupby(names)]
    if len(names_in_turn) > _LONGEST_TAG:
        names_in_turn = list(dict.fromkeys(names))
    result = outputs[0].data_type.name.lower() if outputs else ""
    text = "-".join(names_in_turn)
    return text if result in names_in_turn or not result else f"{text}-to-{result}".lstrip("-")
