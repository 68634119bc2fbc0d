"""Base of every operation definition: operands, type rules, shape rule."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from armpy.core.dataclass import dataclass
from armpy.errors import ArmpyError, BackendError, InvalidArgumentError, LayerValidationError
from armpy.tensor import Shape, TensorInfo, format_shape, merge_shapes
from armpy.types import DataType

Array: TypeAlias = npt.NDArray[Any]  # Any: the element type is in the TensorInfo
OperandInfos: TypeAlias = Sequence[TensorInfo | None]
"""One TensorInfo per operand; None for an optional operand that is left out."""


NUMBER_TYPES = tuple(t for t in DataType if not t.is_string)
"""Every type whose elements are stored numbers."""


@dataclass(frozen=True, slots=True)
class Operand:
    """One input or output of an operation."""

    name: str
    """Standard name: ``input``, ``weights``, ``bias``."""
    optional: bool = False
    """Whether the operand may be left out."""
    variadic: bool = False
    """Whether the operand stands for any number of operands (only the last one can)."""
    ranks: tuple[int, ...] = ()
    """Ranks that are allowed; empty if any is."""
    becomes: str = ""
    """Name of the attribute that a constant operand turns into. Such an operand carries no data but
    says how to work (a shape, an axis); the core turns it into the attribute as soon as its value
    is known, so that no backend ever sees it. Such operands are optional and come after the data
    operands.
    """
    types: tuple[DataType, ...] = (DataType.SIGNED32, DataType.SIGNED64)
    """Types that an operand that becomes an attribute may have; integers by default. Type rules
    list the types of all others.
    """

    @property
    def may_be_left_out(self) -> bool:
        """Return whether the operand need not be there."""
        return self.optional or bool(self.becomes)

    @property
    def is_single(self) -> bool:
        """Whether the operand is data of one element."""
        return self.ranks == (0, 1) and not self.becomes


@dataclass(frozen=True, slots=True)
class TypeRule:
    """One allowed combination of data types, operand by operand."""

    inputs: tuple[frozenset[DataType], ...]
    outputs: tuple[frozenset[DataType], ...]
    """`inputs` and `outputs`: what each operand may be. The last entry of `inputs` also holds for
    further operands (variadic ones), and the last of `outputs` for further outputs.
    """

    def accepts(self, inputs: OperandInfos, outputs: OperandInfos) -> bool:
        """Return whether the given operands are one of this rule's combinations."""
        return _all_in(self.inputs, inputs) and _all_in(self.outputs, outputs)

    def misfits(self, inputs: OperandInfos) -> list[tuple[int, frozenset[DataType]]]:
        """The numbers of inputs that have none of the rule's types, with these."""
        columns = [self.inputs[min(i, len(self.inputs) - 1)] for i in range(len(inputs))]
        pairs = enumerate(zip(inputs, columns, strict=True))
        return [(i, types) for i, (info, types) in pairs if info and info.data_type not in types]


def _all_in(allowed: tuple[frozenset[DataType], ...], infos: OperandInfos) -> bool:
    """Return whether each present operand has a type of its column."""
    # Plain loops, as every layer of every graph comes here several times.
    last = len(allowed) - 1
    for i, info in enumerate(infos):
        if info is not None and info.data_type not in allowed[i if i < last else last]:
            return False
    return True


TypeSpec: TypeAlias = DataType | Sequence[DataType]


def rule(inputs: Sequence[TypeSpec], outputs: Sequence[TypeSpec]) -> TypeRule:
    """Write a `TypeRule` with single types or sequences of types as columns."""
    return TypeRule(tuple(map(_column, inputs)), tuple(map(_column, outputs)))


def _column(spec: TypeSpec) -> frozenset[DataType]:
    """Types of one operand as a set."""
    return frozenset((spec,)) if isinstance(spec, DataType) else frozenset(spec)


def same(*types: DataType, also: Sequence[TypeSpec] = ()) -> tuple[TypeRule, ...]:
    """One rule per type in which all data operands have that type.

    `also` holds the columns of further inputs, after the first, that have types of their own.
    """
    return tuple(rule((t, *also), (t,)) for t in types)


class Operation(ABC):
    """Operation of a layer: attributes as fields, operands and rules on the class.

    A subclass is a frozen slotted dataclass. Its fields are the attributes. Class
    variables say which operands it has and which data types go together; two methods say
    which shapes come out and what else must hold. Builder checks, layer-support tables
    and documentation are derived from these and never written again. An attribute that an
    operand becomes is None until the operand is known; negative axes count from the end.
    """

    __slots__ = ()

    inputs: ClassVar[tuple[Operand, ...]] = (Operand("input"),)
    outputs: ClassVar[tuple[Operand, ...]] = (Operand("output"),)
    type_rules: ClassVar[tuple[TypeRule, ...]] = ()
    """The allowed combinations of data types; empty if every one is."""
    requantizes: ClassVar[bool] = True
    """Whether a quantised output may have another scale than the first input."""
    has_data_dependent_outputs: ClassVar[bool] = False
    """Whether output shapes depend on the elements of inputs; only the workload knows them."""
    is_random: ClassVar[bool] = False
    """Whether equal inputs may give other outputs the next time, so that nothing is folded."""
    extension: ClassVar[str] = ""
    """Name of the vendor extension that the operation belongs to; empty for armpy's own."""

    @abstractmethod
    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """Shapes of the outputs, as far as they follow from the inputs.

        Parameters
        ----------
        inputs
            One per operand, of known rank (`infer` answers for unknown ranks itself) and of
            a rank that `Operand.ranks` allows. Unknown dimensions do occur. Left-out
            optional operands are None, or missing at the end, which only operations that
            declare such operands need to think of.

        Raises
        ------
        LayerValidationError
            If no output is possible for these inputs; `require` helps to say why.
        """

    def infer_types(self, inputs: Sequence[TensorInfo]) -> tuple[DataType, ...]:
        """Data types of the outputs where the caller does not give them: the first input's."""
        return (inputs[0].data_type,) * self.num_outputs

    def validate(self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> None:
        """Check what types and shapes alone do not say; nothing by default.

        Raises
        ------
        LayerValidationError
            If a rule of the operation is broken.
        """
        return

    def infer_values(self, inputs: Sequence[TensorInfo]) -> tuple[Array, ...] | None:
        """Output elements that follow from the inputs' infos alone (as a shape does)."""
        return None

    def identity_of(
        self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]
    ) -> int | None:
        """Index of the input that the only output always equals, if there is one."""
        return None

    def scratch_bytes(
        self, inputs: Sequence[TensorInfo | None], outputs: Sequence[TensorInfo]
    ) -> int:
        """Bytes that computing it takes beside its operands, where these do not bound it.

        Parameters
        ----------
        outputs
            All fully shaped.

        Notes
        -----
        Counted against the memory limit before any backend is asked. It is for attributes that
        let a small tensor take much: windows that reach far into padding, numbers of samples.
        """
        return 0

    @property
    def name(self) -> str:
        """The operation's name, for messages and reports."""
        return type(self).__name__

    @property
    def required_extensions(self) -> tuple[str, ...]:
        """Vendor extensions that a backend must have to be asked about the operation.

        By default its own. An operation with operand types of other extensions adds these.
        """
        return (self.extension,) if self.extension else ()

    @property
    def num_outputs(self) -> int:
        """Number of outputs; operations with a variable number override it."""
        return len(self.outputs)

    def infer(
        self, inputs: OperandInfos, declared: Sequence[TensorInfo | None] = ()
    ) -> tuple[TensorInfo, ...]:
        """Check the operands and complete the outputs' properties.

        Parameters
        ----------
        inputs
            One per input operand.
        declared
            The caller's declarations of the outputs; each missing one is inferred.

        Returns
        -------
        tuple of TensorInfo
            Shape merged from both sides; type and quantisation as declared, else the
            inferred type and, for quantised types, the first input's quantisation.

        Raises
        ------
        LayerValidationError
            If the operands' number, ranks, types or shapes break a rule.
        BackendError
            If the rules of a vendor's operation raise anything else.
        """
        try:
            return self._infer(inputs, declared)
        except ArmpyError:
            raise
        except Exception as error:
            if not self.extension:
                raise
            raise BackendError(
                f"the rules of an operation of {self.extension} raised {error!r}", where=self.name
            ) from error

    def _infer(
        self, inputs: OperandInfos, declared: Sequence[TensorInfo | None]
    ) -> tuple[TensorInfo, ...]:
        """See `infer`."""
        _check_operand_counts(self, inputs)
        _check_operands(self, inputs)
        present: Sequence[TensorInfo] = inputs  # type: ignore[assignment]  # see infer_shapes
        ranks_known = all(info is None or info.shape is not None for info in inputs)
        shapes = self.infer_shapes(present) if ranks_known else (None,) * self.num_outputs
        types: Sequence[DataType] = ()
        outputs = []
        for i, shape in enumerate(shapes):
            info = declared[i] if i < len(declared) else None
            if info is None:
                types = types or self.infer_types(present)
                info = self._inferred_info(present[0] if inputs else None, types[i], shape)
            else:
                info = self._merged_info(info, shape)
            outputs.append(info)
        self.check_types(inputs, outputs)
        if ranks_known:
            self.validate(present, outputs)
        return tuple(outputs)

    def _inferred_info(
        self, first: TensorInfo | None, data_type: DataType, shape: Shape | None
    ) -> TensorInfo:
        """Info of an output of which the caller says nothing."""
        if data_type.is_quantized and (first is None or first.data_type is not data_type):
            raise LayerValidationError(
                "a quantised output needs its scale and zero point",
                where=self.name,
                expected="a TensorInfo with quantisation for the output",
                actual="none",
                fix="Pass it as outputs=[TensorInfo(...)]",
            )
        quantization = first.quantization if first and data_type.is_quantized else None
        return TensorInfo(shape, data_type, quantization)

    def _merged_info(self, declared: TensorInfo, shape: Shape | None) -> TensorInfo:
        """Declared info of an output with the inferred shape merged in."""
        try:
            merged = merge_shapes(declared.shape, shape)
        except InvalidArgumentError as error:
            raise LayerValidationError(
                "the declared output shape does not match the inputs",
                where=self.name,
                expected=error.expected,
                actual=error.actual,
                fix="Leave the output's shape out or give the inferred one",
            ) from error
        return declared.with_shape(merged)

    def takes_elements(self, data_type: DataType) -> bool:
        """Return whether its attributes allow elements of a type that a rule has."""
        return True

    def check_types(self, inputs: OperandInfos, outputs: OperandInfos) -> None:
        """Check data types against the type rules; `LayerValidationError` if none allows them."""
        if not self.type_rules:
            return
        for type_rule in self.type_rules:
            if type_rule.accepts(inputs, outputs):
                return
        # The inputs that the nearest rule wants otherwise; none if it is an output, or all are.
        wrong = min((r.misfits(inputs) for r in self.type_rules), key=len)
        expected = " and ".join(
            f"'{self.input_operand(i).name}' of type {_names(r)}" for i, r in wrong
        )
        if len(wrong) in (0, len(inputs)):
            expected = " or ".join(sorted({_names(r.inputs[0]) for r in self.type_rules}))
        present = [(self.input_operand(i).name, info) for i, info in enumerate(inputs) if info]
        input_types = ", ".join(f"'{name}' {info.data_type.name}" for name, info in present)
        output_types = ", ".join("-" if i is None else i.data_type.name for i in outputs)
        raise LayerValidationError(
            "this combination of data types is not allowed",
            where=self.name,
            expected=expected,
            actual=f"{input_types} and outputs ({output_types})",
            fix="Convert an input with a Cast layer, or correct its TensorInfo",
        )

    def with_attributes(self, **attributes: object) -> Operation:
        """A copy with some attributes changed."""
        return dataclasses.replace(self, **attributes)  # type: ignore[type-var]  # subclasses are

    def attributes(self) -> dict[str, Any]:  # Any: attributes are of many types
        """Attribute values by name."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}  # type: ignore[arg-type]

    def decides(self, index: int) -> bool:
        """Return whether the elements of an input must be known before the layer can be run."""
        return bool(self.inputs) and bool(self.input_operand(index).becomes)

    def input_operand(self, index: int) -> Operand:
        """The operand that input number `index` belongs to."""
        return self.inputs[min(index, len(self.inputs) - 1)]

    def input_name(self, index: int) -> str:
        """Name of input number `index`, numbered where the operand is variadic."""
        operand = self.input_operand(index)
        first = len(self.inputs) - 1
        return f"{operand.name}[{index - first}]" if operand.variadic else operand.name


def _names(types: frozenset[DataType]) -> str:
    return "/".join(sorted(data_type.name for data_type in types))


@cache
def _input_counts(kind: type[Operation]) -> tuple[int, int | None]:
    """Least and largest number of inputs of an operation."""
    least = sum(1 for o in kind.inputs if not o.may_be_left_out and not o.variadic)
    most = None if kind.inputs and kind.inputs[-1].variadic else len(kind.inputs)
    return least, most


def _check_operand_counts(operation: Operation, inputs: OperandInfos) -> None:
    """Check the number of inputs, and that none but optional ones are left out."""
    least, most = _input_counts(type(operation))
    if len(inputs) < least or (most is not None and len(inputs) > most):
        names = ", ".join(o.name + ("?" if o.optional else "") for o in operation.inputs)
        upper = " or more" if most is None else f" to {most}" * (most != least)
        count = f"{least}{upper}"
        raise LayerValidationError(
            "the number of inputs is wrong",
            where=operation.name,
            expected=f"{count} inputs ({names}{', ...' if most is None else ''})",
            actual=f"{len(inputs)} input{'s' * (len(inputs) != 1)}",
            fix="Pass one value per input" + "; one with ? may be None" * ("?" in names),
        )
    for i, info in enumerate(inputs):
        if info is None and not operation.input_operand(i).may_be_left_out:
            raise LayerValidationError(
                f"the input '{operation.input_name(i)}' is missing",
                where=operation.name,
                fix="Only optional inputs may be None",
            )


def _check_operands(operation: Operation, inputs: OperandInfos) -> None:
    """Check known ranks, and types of what becomes an attribute, operand by operand."""
    for i, info in enumerate(inputs):
        if info is None:
            continue
        operand = operation.input_operand(i)
        if operand.becomes and info.data_type not in operand.types:
            raise LayerValidationError(
                f"'{operand.name}' has the wrong type",
                where=operation.name,
                expected=" or ".join(t.name for t in operand.types),
                actual=info.data_type.name,
            )
        ranks = operand.ranks
        if info.shape is not None and ranks and len(info.shape) not in ranks:
            raise LayerValidationError(
                f"'{operation.input_name(i)}' has the wrong rank",
                where=operation.name,
                expected="rank " + " or ".join(map(str, ranks)),
                actual=f"rank {len(info.shape)}, shape {format_shape(info.shape)}",
                fix="Pass a tensor of the expected rank; a Reshape layer changes the rank",
            )
        if operand.is_single and info.shape not in (None, (), (1,), (None,)):
            raise LayerValidationError(
                f"'{operand.name}' is not one element",
                where=operation.name,
                expected="a shape of () or (1,)",
                actual=format_shape(info.shape),
            )


def require(
    condition: object, failed: str, *, expected: str = "", actual: object = "", fix: str = ""
) -> None:
    """Raise a `LayerValidationError` unless the condition holds; `located` adds the layer."""
    if not condition:
        text = format_shape(actual) if isinstance(actual, tuple) else str(actual)
        raise LayerValidationError(failed, expected=expected, actual=text, fix=fix)


def located(where: Callable[[], str], error: ArmpyError) -> ArmpyError:
    """Put the layer's name in front of where an error happened."""
    inner = error.where
    outer = where()
    if not inner or outer.startswith(inner):
        error.where = outer
    elif not inner.startswith(outer):  # one exception object may be raised again and again
        error.where = f"{outer} / {inner}"
    return error


def as_attribute(value: Array) -> object:
    """A constant operand's elements as an attribute: a number, or (nested) tuples."""
    plain = np.asarray(value).tolist()
    return _tuples(plain)


def _tuples(value: object) -> object:
    """Nested lists as nested tuples."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
