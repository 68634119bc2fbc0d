"""Builds models with a Python function per operation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from armpy.core.dataclass import dataclass
from armpy_nnapi.codes import OPERAND_TRAITS, OperandCode, OperationCode
from armpy_nnapi.description.operand_type import TENSOR_TYPES, OperandType
from armpy_nnapi.devices import DeviceManager
from armpy_nnapi.model.builder_values import (
    any_scale,
    converted,
    number_of_outputs,
    operand_code,
)
from armpy_nnapi.model.model import Model
from armpy_nnapi.model.operation_functions import (
    FIXED_OUTPUTS,
    OUTPUTS,
    SIGNED_OFFSET,
    OperationCall,
    documentation,
    functions,
    resolve,
    signature,
)
from armpy_nnapi.operations import Argument, OperationDefinition
from armpy_nnapi.results import bad_data, require_data

_TRUTH_VALUES = frozenset(
    {
        OperationCode.EQUAL,
        OperationCode.GREATER,
        OperationCode.GREATER_EQUAL,
        OperationCode.LESS,
        OperationCode.LESS_EQUAL,
        OperationCode.LOGICAL_AND,
        OperationCode.LOGICAL_NOT,
        OperationCode.LOGICAL_OR,
        OperationCode.NOT_EQUAL,
    }
)
"""Operations that give truth values, for conditions, whose dimensions have to be known."""


@dataclass(frozen=True, slots=True, eq=False)
class ModelOperand:
    """An operand of a model under construction."""

    builder: ModelBuilder
    index: int  # in the model
    type: OperandType

    def __repr__(self) -> str:
        return f"ModelOperand({self.index}, {self.type})"


class ModelBuilder:
    """Builds a model with a function per operation, named as NNAPI's in lower case.

    Parameters
    ----------
    manager : DeviceManager, optional
        Manager, as for `Model`.

    Notes
    -----
    Where an operation takes an operand, its function takes a `ModelOperand`; an array of float32,
    float16, int32 or bool; a list of numbers; or, for a scalar, a number. Arguments that NNAPI
    lets out may be left out, `activation` too. Outputs are of the type of the first input
    where they have to be of one type, of unknown rank; ``outputs=`` says otherwise.
    ``help(builder.conv_2d)`` shows what an operation takes. `if_` and `while_` run other
    models.

    Examples
    --------
    >>> import numpy as np
    >>> builder = ModelBuilder()
    >>> x = builder.input(np.float32, (1, 2))
    >>> y = builder.relu(builder.add(x, np.float32([[-3, 3]])))
    >>> model = builder.finish(y)
    """

    def __init__(self, manager: DeviceManager | None = None) -> None:
        self._model = Model(manager)
        self._inputs: list[int] = []

    @property
    def model(self) -> Model:
        """The model, to which operands and operations can be added directly as well."""
        return self._model

    def input(
        self,
        type: object,
        dimensions: Sequence[int] = (),
        scale: float = 0.0,
        zero_point: int = 0,
    ) -> ModelOperand:
        """Add an input of the model.

        Parameters
        ----------
        type : OperandType, OperandCode or dtype
            Type of the tensor; for a dtype, the one that `OperandType.of` gives an array of it.
        dimensions : sequence of int
            0 where not known; empty for a scalar, and for a tensor of unknown rank.
        scale, zero_point : float, int
            Scale and zero point of quantised types.

        Raises
        ------
        NnapiError
            BAD_DATA if the type is not valid.
        """
        if not isinstance(type, OperandType):
            type = OperandType(operand_code(type), tuple(dimensions), scale, zero_point)
        value = self._add(type)
        self._inputs.append(value.index)
        return value

    def constant(
        self,
        elements: object,
        scale: float = 0.0,
        zero_point: int = 0,
        *,
        type: OperandCode | None = None,
        channel_scales: Sequence[float] | None = None,
        channel_dim: int = 0,
    ) -> ModelOperand:
        """Add a constant tensor.

        Parameters
        ----------
        elements : array_like
            Stored elements. Large arrays must not change until the model is finished.
        scale, zero_point : float, int
            Scale and zero point of quantised types.
        type : OperandCode, optional
            Type, as for `OperandType.of`.
        channel_scales : sequence of float, optional
            Makes it TENSOR_QUANT8_SYMM_PER_CHANNEL.
        channel_dim : int
            The dimension that these scales run along.

        Raises
        ------
        NnapiError
            BAD_DATA if the type is not valid or the elements do not fit it.
        """
        if channel_scales is not None:
            type = OperandCode.TENSOR_QUANT8_SYMM_PER_CHANNEL
        array = np.asarray(elements)
        if type is not None:
            array = converted(array, type, "constant")
        value = self._add(OperandType.of(array, scale, zero_point, type))
        if channel_scales is not None:
            self._model.set_operand_symm_per_channel_quant_params(
                value.index, channel_scales, channel_dim
            )
        self._model.set_operand_value(value.index, array)
        return value

    def scalar(self, number: float, type: OperandCode) -> ModelOperand:
        """Add a constant scalar.

        Raises
        ------
        NnapiError
            BAD_DATA if the number does not fit the type.
        """
        value = self._add(OperandType(type))
        self._model.set_operand_value(value.index, number)
        return value

    def if_(
        self,
        condition: ModelOperand,
        then_model: Model,
        else_model: Model,
        inputs: Sequence[ModelOperand],
        outputs: Sequence[OperandType],
    ) -> tuple[ModelOperand, ...]:
        """Run one of two models.

        Parameters
        ----------
        condition : ModelOperand, TENSOR_BOOL8 of dimensions (1,)
        then_model, else_model : Model
            Finished; they take the inputs and give the outputs.

        Raises
        ------
        NnapiError
            BAD_DATA if they do not go together.

        References
        ----------
        NNAPI IF.
        """
        models = [self._model_operand(then_model), self._model_operand(else_model)]
        ins = [condition.index, *models, *(value.index for value in inputs)]
        return self._operation(OperationCode.IF, ins, outputs)

    def while_(
        self,
        condition_model: Model,
        body_model: Model,
        inputs: Sequence[ModelOperand],
        outputs: Sequence[OperandType],
    ) -> tuple[ModelOperand, ...]:
        """Run a model as long as another says so.

        Parameters
        ----------
        condition_model : Model
            Finished; takes the inputs and gives one TENSOR_BOOL8 of dimensions (1,).
        body_model : Model
            Finished; takes the inputs and gives the next turn's, or the first of them.
        outputs : sequence of OperandType
            The first of the body's outputs.

        Raises
        ------
        NnapiError
            BAD_DATA if they do not go together.

        References
        ----------
        NNAPI WHILE.
        """
        models = [self._model_operand(condition_model), self._model_operand(body_model)]
        ins = [*models, *(value.index for value in inputs)]
        return self._operation(OperationCode.WHILE, ins, outputs)

    def finish(self, *outputs: ModelOperand) -> Model:
        """Name the model's outputs and finish it.

        Raises
        ------
        NnapiError
            BAD_DATA if the model is not valid; BAD_STATE if it is finished.
        """
        indexes = [value.index for value in outputs]
        self._model.identify_inputs_and_outputs(self._inputs, indexes)
        self._model.finish()
        return self._model

    def __getattr__(self, name: str) -> Callable[..., Any]:  # Any: one ModelOperand, or several
        """The function of an operation."""
        # All definitions are imported for this, so not before a function is asked for.
        definition = functions().get(name)
        if definition is None:
            raise AttributeError(f"ModelBuilder has no operation or attribute '{name}'")
        return self._function(definition)

    def __dir__(self) -> list[str]:
        """Everything that can be called."""
        return sorted({*super().__dir__(), *functions()})

    def _function(self, definition: OperationDefinition) -> Callable[..., Any]:  # Any: as above
        """The function of an operation, with its signature and documentation."""
        parameters = signature(definition)

        def function(*args: object, **kwargs: object) -> ModelOperand | tuple[ModelOperand, ...]:
            try:
                arguments = parameters.bind(*args, **kwargs).arguments
            except TypeError as error:
                # Without the TypeError for a cause: the caller has not called `bind`.
                raise bad_data(
                    str(error), where=definition.name, expected=str(parameters)
                ) from None
            outputs = arguments.pop(OUTPUTS, None)
            return self._call(definition, arguments, outputs)

        function.__name__ = function.__qualname__ = definition.name.lower()
        function.__doc__ = documentation(definition)
        function.__signature__ = parameters  # type: ignore[attr-defined]  # shown by help()
        return function

    def _call(
        self, definition: OperationDefinition, arguments: Mapping[str, object], outputs: object
    ) -> ModelOperand | tuple[ModelOperand, ...]:
        # None says the same as leaving it out, and lets shorter forms match.
        arguments = {name: value for name, value in arguments.items() if value is not None}
        asked: Sequence[OperandType | None] | None = None
        num_outputs = None
        if isinstance(outputs, int):
            num_outputs = outputs
        elif isinstance(outputs, OperandType):
            asked, num_outputs = [outputs], 1
        elif outputs is not None:
            asked = list(outputs)  # type: ignore[call-overload]  # a sequence, as documented
            num_outputs = len(asked)
        call = resolve(definition, arguments, num_outputs, _code_of)
        values = [self._operand(call, argument, value) for argument, value in call.inputs]
        types = self._output_types(call, values, asked, num_outputs)
        operands = self._operation(definition.code, [v.index for v in values], types)
        return operands[0] if len(operands) == 1 else operands

    def _operand(self, call: OperationCall, argument: Argument, value: object) -> ModelOperand:
        if isinstance(value, ModelOperand):
            require_data(
                value.builder is self,
                f"{argument.name} belongs to another builder",
                where=call.definition.name,
            )
            return value
        code = argument.code(call.row)
        if value is None:
            # The type is checked with its scale, although there is nothing to scale.
            left_out = self._add(OperandType(code, (), any_scale(code)))
            self._model.set_operand_value(left_out.index, None)
            return left_out
        require_data(
            not OPERAND_TRAITS[code].needs_scale,
            f"{argument.name} has no scale",
            where=call.definition.name,
            fix="Give quantised elements with ModelBuilder.constant",
        )
        array = converted(np.asarray(value), code, f"{call.definition.name} / {argument.name}")
        operand = self._add(OperandType(code, array.shape))
        self._model.set_operand_value(operand.index, array)
        return operand

    def _output_types(
        self,
        call: OperationCall,
        values: Sequence[ModelOperand],
        asked: Sequence[OperandType | None] | None,
        num_outputs: int | None,
    ) -> list[OperandType]:
        """Types of the outputs: as asked for, else as they follow from the inputs."""
        arguments = list(call.form.outputs)
        if arguments[-1].variadic:
            count = num_outputs or number_of_outputs(call)
            arguments = arguments * count
        wanted = asked or [None] * len(arguments)
        return [
            operand_type or self._inferred(call, argument, values)
            for argument, operand_type in zip(arguments, wanted, strict=True)
        ]

    def _inferred(
        self, call: OperationCall, argument: Argument, values: Sequence[ModelOperand]
    ) -> OperandType:
        """Type of an output that follows from the inputs; its rank is mostly left open."""
        code = argument.code(call.row)
        if call.definition.code in _TRUTH_VALUES:
            return OperandType(code, _broadcast([value.type.dimensions for value in values]))
        if not OPERAND_TRAITS[code].needs_scale:
            return OperandType(code)
        fixed = FIXED_OUTPUTS.get((call.definition.code, argument.name))
        if fixed is not None:
            # The signed type stands for the same numbers, 128 lower.
            is_signed = code == OperandCode.TENSOR_QUANT8_ASYMM_SIGNED
            return OperandType(code, (), fixed[0], fixed[1] - SIGNED_OFFSET * is_signed)
        for (other, _), value in zip(call.inputs, values, strict=True):
            if other.type == argument.type and value.type.type == code:
                return OperandType(code, (), value.type.scale, value.type.zero_point)
        raise bad_data(
            f"the scale of {argument.name} does not follow from the inputs",
            where=call.definition.name,
            fix=f"Give its type: {OUTPUTS}=[OperandType(OperandCode.{code.name}, ...)]",
        )

    def _operation(
        self, code: OperationCode, inputs: Sequence[int], outputs: Sequence[OperandType]
    ) -> tuple[ModelOperand, ...]:
        """Add an operation and the operands that it writes."""
        operands = tuple(self._add(operand_type) for operand_type in outputs)
        self._model.add_operation(code, inputs, [value.index for value in operands])
        return operands

    def _model_operand(self, model: Model) -> int:
        index = self._model.add_operand(OperandType(OperandCode.MODEL))
        self._model.set_operand_value_from_model(index, model)
        return index

    def _add(self, operand_type: OperandType) -> ModelOperand:
        return ModelOperand(self, self._model.add_operand(operand_type), operand_type)


def _broadcast(shapes: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """The dimensions of tensors broadcast together; none if they are not known."""
    try:
        dimensions = np.broadcast_shapes(*map(tuple, shapes))
    except ValueError:  # which `Model.finish` says better
        return ()
    # Unknown shapes, with a rank or a size of 0, cannot be broadcast.
    return dimensions if all(all(shape) and len(shape) for shape in shapes) else ()


def _code_of(value: object) -> OperandCode | None:
    """The operand type that something given for an argument has of its own."""
    if isinstance(value, ModelOperand):
        return OperandCode(value.type.type)
    # Lists and numbers take whatever type the argument needs.
    if isinstance(value, np.ndarray) and value.ndim:
        return TENSOR_TYPES.get(value.dtype.name)
    return None
