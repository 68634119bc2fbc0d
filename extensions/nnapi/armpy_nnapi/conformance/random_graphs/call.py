"""One operation of a random model while its operands are being made up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import TypeAlias

import numpy as np

from armpy.core.dataclass import dataclass
from armpy.ops.operation import Array
from armpy_nnapi.codes import OPERAND_TRAITS, OperandCode, OperationCode
from armpy_nnapi.description.model_description import ChannelQuant, Lifetime, Operand
from armpy_nnapi.operations import Argument, Form, OperationDefinition, TypeRow

Recipe: TypeAlias = Callable[["RandomOperation"], None]
"""Makes up every operand of one operation, of the form and types that the call has."""

ANY_RANK = (1, 2, 3, 4, 5)
"""Ranks for operations that take any."""

_REUSED = 0.7
"""Part of the tensors taken from earlier operations where one fits."""

_COMPUTED = 0.03
"""Part of the scalars and other parameters that are inputs of the model."""

_SYMMETRIC = (OperandCode.TENSOR_QUANT8_SYMM, OperandCode.TENSOR_QUANT8_SYMM_PER_CHANNEL)


@dataclass(eq=False, slots=True)
class Source:
    """An operand that a random model may use: its description, and elements if it has any."""

    operand: Operand
    data: Array | None = None
    """Elements of an input or a constant; None for what an operation gives."""
    made_by: OperationCode | None = None  # what gives it

    @property
    def shape(self) -> tuple[int, ...]:
        """Dimensions."""
        return self.operand.dimensions


@dataclass(eq=False, slots=True)
class RandomOperation:
    """Call of an operation, which a recipe fills in."""

    definition: OperationDefinition
    form: Form
    row: TypeRow  # required types of the operands
    random: np.random.Generator
    pool: Sequence[Source] = ()  # what earlier operations give, for `data`
    given: dict[str, list[Source]] = field(default_factory=dict)  # what arguments have been given
    quantized: dict[str, tuple[float, int]] = field(default_factory=dict)
    """Scales and zero points of outputs; others have those of the first input of their type."""
    private: set[str] = field(default_factory=set)  # outputs that no other operation is to read
    num_outputs: int = 1  # more than the form has arguments where the last one is variadic

    def has(self, name: str) -> bool:
        """Return whether the form has an argument."""
        return name in self.form.input_names

    def argument(self, name: str) -> Argument:
        """An input or output of the form."""
        return next(a for a in (*self.form.inputs, *self.form.outputs) if a.name == name)

    def code(self, name: str) -> OperandCode:
        """Type of an argument."""
        return self.argument(name).code(self.row)

    def is_quantized(self, name: str) -> bool:
        """Return whether an argument's type has one scale and zero point."""
        return OPERAND_TRAITS[self.code(name)].needs_scale is True

    def is_float(self, name: str) -> bool:
        """Return whether an argument's elements are floating-point numbers."""
        return OPERAND_TRAITS[self.code(name)].dtype.kind == "f"

    # Numbers

    def integer(self, low: int, high: int) -> int:
        """A number from `low` to `high`, both included."""
        return int(self.random.integers(low, high + 1))

    def chance(self, probability: float = 0.5) -> bool:
        """True with a probability."""
        return bool(self.random.random() < probability)

    def choose(self, *options: int) -> int:
        """One of several numbers."""
        return int(options[self.integer(0, len(options) - 1)])

    def real(self, low: float, high: float) -> float:
        """A number between two."""
        return float(self.random.uniform(low, high))

    def shape(self, rank: int, low: int = 1, high: int = 6) -> tuple[int, ...]:
        """A shape with sizes from `low` to `high`."""
        return tuple(self.integer(low, high) for _ in range(rank))

    # Operands

    def data(
        self,
        name: str,
        shape: Sequence[int] | None = None,
        *,
        ranks: Sequence[int] = (1, 2, 3, 4),
        accept: Callable[[Source], bool] = lambda source: True,
        quant: tuple[float, int] | None = None,
        low: float | None = None,
        high: float | None = None,
    ) -> tuple[int, ...]:
        """Give an argument a tensor that an earlier operation made, or a new one.

        Parameters
        ----------
        shape : sequence of int, optional
            The shape that it must have; any of `ranks` if left out.
        accept : callable
            Predicate of the earlier tensors that are allowed.
        quant : (float, int), optional
            Scale and zero point that it must have.
        low, high : float, optional
            Limits of a new tensor, as for `tensor`.

        Returns
        -------
        tuple of int
            Shape of the tensor.
        """
        code = self.code(name)
        fitting = [
            source
            for source in self.pool
            if source.operand.type == code
            and (source.shape == tuple(shape) if shape is not None else len(source.shape) in ranks)
            and accept(source)
            and (quant is None or (source.operand.scale, source.operand.zero_point) == quant)
        ]
        if fitting and self.chance(_REUSED):
            source = fitting[self.integer(0, len(fitting) - 1)]
            self.given.setdefault(name, []).append(source)
            return source.shape
        if shape is None:
            shape = self.shape(int(self.random.choice(list(ranks))))
        return self.tensor(name, shape, quant=quant, low=low, high=high)

    def tensor(
        self,
        name: str,
        shape: Sequence[int],
        *,
        low: float | None = None,
        high: float | None = None,
        quant: tuple[float, int] | None = None,
        channel_quant: ChannelQuant | None = None,
        constant: bool | None = None,
    ) -> tuple[int, ...]:
        """Give an argument a new tensor of random elements.

        Parameters
        ----------
        low, high : float, optional
            Limits of the elements; the whole type if left out, but at most -2 and 2 for floats
            and -100 and 100 for 32-bit integers.
        constant : bool, optional
            Whether it is part of the model; even chances if left out.
        """
        code = self.code(name)
        size = tuple(int(dim) for dim in shape)
        return self.elements(
            name,
            self._random_elements(code, size, low, high),
            quant=quant,
            channel_quant=channel_quant,
            constant=constant,
        )

    def _random_elements(
        self, code: OperandCode, shape: tuple[int, ...], low: float | None, high: float | None
    ) -> Array:
        dtype = OPERAND_TRAITS[code].dtype
        if dtype == np.bool_:
            return self.random.random(shape) < 0.5
        least, most = _limits(code)
        first, last = least if low is None else low, most if high is None else high
        if dtype.kind == "f":
            return np.asarray(self.random.uniform(first, last, shape), dtype)
        return self.random.integers(int(first), int(last) + 1, shape).astype(dtype)

    def elements(
        self,
        name: str,
        data: Array,
        *,
        quant: tuple[float, int] | None = None,
        channel_quant: ChannelQuant | None = None,
        constant: bool | None = None,
    ) -> tuple[int, ...]:
        """Give an argument a new tensor with these elements; parameters as for `tensor`."""
        code = self.code(name)
        scale, zero_point = (0.0, 0) if channel_quant else self.quantization(code, quant)
        is_constant = self.chance() if constant is None else constant
        array = np.ascontiguousarray(data, OPERAND_TRAITS[code].dtype)
        operand = Operand(
            code,
            array.shape,
            scale,
            zero_point,
            Lifetime.CONSTANT_COPY if is_constant else Lifetime.SUBGRAPH_INPUT,
            array.tobytes() if is_constant else None,
            channel_quant,
        )
        self.given.setdefault(name, []).append(Source(operand, array))
        return operand.dimensions

    def per_channel(
        self, name: str, shape: Sequence[int], dim: int | None = None
    ) -> tuple[int, ...]:
        """Give an argument a new tensor with a scale per index along a dimension."""
        along = self.integer(0, len(shape) - 1) if dim is None else dim
        scales = self.random.uniform(0.1, 2.0, shape[along]).astype(np.float32)
        quant = ChannelQuant(tuple(float(scale) for scale in scales), along)
        return self.tensor(name, shape, channel_quant=quant)

    def parameter(self, name: str, values: object) -> None:
        """Give an argument integers that decide on the output's shape, mostly a constant."""
        is_constant = not self.chance(_COMPUTED)
        self.elements(name, np.asarray(values, np.int32), constant=is_constant)

    def quantization(
        self, code: OperandCode, quant: tuple[float, int] | None = None
    ) -> tuple[float, int]:
        """Scale and zero point for a type: the given ones, or random ones."""
        traits = OPERAND_TRAITS[code]
        if quant is not None:
            return float(np.float32(quant[0])), quant[1]
        if not traits.needs_scale:
            return 0.0, 0
        low, high = traits.zero_points
        return float(np.float32(self.random.uniform(0.1, 2.0))), self.integer(low, high)

    def scalar(self, name: str, value: float | bool) -> None:
        """Give a scalar argument a constant value, if the form has it."""
        if not self.has(name):
            return
        code = self.code(name)
        array = np.asarray(value, OPERAND_TRAITS[code].dtype)
        operand = Operand(code, lifetime=Lifetime.CONSTANT_COPY, data=array.tobytes())
        if self.chance(_COMPUTED):
            operand = Operand(code, lifetime=Lifetime.SUBGRAPH_INPUT)
        self.given.setdefault(name, []).append(Source(operand, array))

    def omit(self, name: str) -> None:
        """Leave an optional argument without a value."""
        code = self.code(name)
        operand = Operand(code, (), *self.quantization(code), Lifetime.NO_VALUE)
        self.given.setdefault(name, []).append(Source(operand))

    def source(self, name: str) -> Source:
        """Return the source of an argument."""
        return self.given[name][0]

    def quant_of(self, name: str) -> tuple[float, int]:
        """Scale and zero point of what an argument was given."""
        operand = self.source(name).operand
        return operand.scale, operand.zero_point

    # Outputs

    def output(self, name: str, scale: float, zero_point: int = 0) -> None:
        """Fix the quantisation of an output, where its type is quantised."""
        if self.is_quantized(name):
            self.quantized[name] = (float(np.float32(scale)), zero_point)

    def any_output_quant(self, name: str = "output") -> None:
        """Give a quantised output a scale and zero point of its own."""
        self.output(name, *self.quantization(self.code(name)))

    def output_arguments(self) -> list[Argument]:
        """Return the declaration of each output; a variadic argument is repeated."""
        arguments = list(self.form.outputs)
        return arguments + arguments[-1:] * (self.num_outputs - len(arguments))

    def inputs(self) -> list[Source]:
        """All inputs in order."""
        return [source for argument in self.form.inputs for source in self.given[argument.name]]


def _limits(code: OperandCode) -> tuple[float, float]:
    """Limits of random elements of a type."""
    data_type = OPERAND_TRAITS[code].data_type
    if data_type is not None and data_type.is_quantized:
        least, most = data_type.integer_range
        return (-127 if code in _SYMMETRIC else least), most
    return (-2.0, 2.0) if OPERAND_TRAITS[code].dtype.kind == "f" else (-100, 100)
