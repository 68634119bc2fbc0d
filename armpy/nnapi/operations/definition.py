"""Definition of an NNAPI operation: its forms, the types that go together, its lowering."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from armpy.errors import LayerValidationError
from armpy.nnapi.codes import OPERAND_TRAITS, FeatureLevel, OperandCode, OperationCode
from armpy.nnapi.description.model_description import Operand
from armpy.ops.operation import Array, require

if TYPE_CHECKING:
    from armpy.nnapi.compile.lowering import LoweringContext


@dataclass(frozen=True, slots=True)
class Argument:
    """One input or output of an operation's form.

    Parameters
    ----------
    name : str
        Standard name: ``input``, ``filter``, ``padding_left``.
    type : OperandCode or str
        A type, or the name of a column of the operation's type rows.
    text : str
        What it is, for documentation, where the name does not say it.
    optional : bool
        Whether the operand may be there without a value (lifetime NO_VALUE).
    decisive : bool
        Whether the elements of a tensor must be known before the operation can be lowered
        (a shape, axes, paddings). Scalars always must.
    ranks : tuple of int
        Ranks that are allowed; empty if any is.
    variadic : bool
        Whether it stands for one or more operands of the type; one argument per list may.
    default : object
        The value that means the same as leaving a trailing scalar out; None if there is none.
    """

    name: str
    type: OperandCode | str
    text: str = ""
    optional: bool = False
    decisive: bool = False
    ranks: tuple[int, ...] = ()
    variadic: bool = False
    default: object = None

    def code(self, row: TypeRow) -> OperandCode:
        """The type that the argument has in a row."""
        if isinstance(self.type, OperandCode):
            return self.type
        return row.types[self.type]


@dataclass(frozen=True, slots=True)
class Form:
    """One list of arguments that an operation can be called with.

    Parameters
    ----------
    inputs, outputs : tuple of Argument
    feature_level : int
        Lowest feature level that has the form.
    """

    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]
    feature_level: int = FeatureLevel.LEVEL_1

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the inputs."""
        return tuple(argument.name for argument in self.inputs)


@dataclass(frozen=True, slots=True)
class TypeRow:
    """Types that go together, by column, and the lowest feature level that allows them."""

    types: Mapping[str, OperandCode]
    feature_level: int = FeatureLevel.LEVEL_1


def rows(columns: str, *given: tuple[int, ...]) -> tuple[TypeRow, ...]:
    """Write type rows as a table.

    Parameters
    ----------
    columns : str
        Names of the columns, separated by blanks.
    *given : tuple of OperandCode, then int
        One type per column, and the feature level.
    """
    names = columns.split()
    return tuple(
        TypeRow(
            {name: OperandCode(code) for name, code in zip(names, types[:-1], strict=True)},
            types[-1],
        )
        for types in given
    )


def forms(
    inputs: Sequence[Argument],
    *trailing: tuple[int, Sequence[Argument]],
    outputs: Sequence[Argument],
    feature_level: int = FeatureLevel.LEVEL_1,
) -> tuple[Form, ...]:
    """Forms whose trailing arguments may be left out, group by group.

    Parameters
    ----------
    inputs : sequence of Argument
        Of the shortest form.
    *trailing : tuple of (int, sequence of Argument)
        Each further group with the feature level that its form needs.
    """
    made = [Form(tuple(inputs), tuple(outputs), feature_level)]
    for level, group in trailing:
        last = made[-1]
        made.append(replace(last, inputs=(*last.inputs, *group), feature_level=level))
    return tuple(made)


Check: TypeAlias = Callable[["Arguments"], int]
"""Checks what types alone do not say; returns the lowest feature level that allows it."""

Lower: TypeAlias = Callable[["LoweringContext"], Any]  # Any: a Value, or a sequence of them
"""Adds the layers that an operation is made of; returns its output or outputs."""


@dataclass(frozen=True, slots=True, eq=False)
class OperationDefinition:
    """All that armpy knows of an NNAPI operation.

    Parameters
    ----------
    code : OperationCode
    summary : str
        One line for documentation.
    forms : tuple of Form
    type_rows : tuple of TypeRow
        Empty if the forms' types are all fixed.
    lower : callable
        See `Lower`.
    check : callable, optional
        See `Check`. Raises LayerValidationError.
    allows_zero_sized : bool
        Whether inputs may have a dimension of 0.
    """

    code: OperationCode
    summary: str
    forms: tuple[Form, ...]
    type_rows: tuple[TypeRow, ...]
    lower: Lower
    check: Check | None = None
    allows_zero_sized: bool = False

    @property
    def name(self) -> str:
        """NNAPI's name."""
        return self.code.name

    @property
    def feature_level(self) -> int:
        """Lowest feature level that has the operation in any form."""
        return min(
            max(form.feature_level, row.feature_level)
            for form in self.forms
            for row in self.type_rows or (TypeRow({}),)
        )

    def signatures(self) -> Iterator[tuple[Form, TypeRow]]:
        """Every form with every row of types."""
        for form in self.forms:
            for row in self.type_rows or (TypeRow({}),):
                yield form, row

    def match(self, inputs: Sequence[Operand], outputs: Sequence[Operand]) -> Match:
        """Find the form and row that operands have.

        Raises
        ------
        LayerValidationError
            If there is none; the text names the operand that does not fit.
        """
        found: Match | None = None
        for form, row in self.signatures():
            match = Match.of(form, row, inputs, outputs)
            if match is not None and (found is None or match.feature_level < found.feature_level):
                found = match
        if found is None:
            raise self._mismatch(inputs, outputs)
        return found

    def _mismatch(
        self, inputs: Sequence[Operand], outputs: Sequence[Operand]
    ) -> LayerValidationError:
        """The error for operands that fit no form: about the form that fits furthest."""
        best: tuple[int, str, str, str] | None = None
        for form, row in self.signatures():
            for what, arguments, operands in (
                ("input", form.inputs, inputs),
                ("output", form.outputs, outputs),
            ):
                spread = _spread(arguments, len(operands))
                if spread is None:
                    break
                for i, (argument, operand) in enumerate(zip(spread, operands, strict=True)):
                    wanted = argument.code(row)
                    if operand.type != wanted:
                        where = f"{what} {i} ({argument.name})"
                        fits = i + (1000 if what == "output" else 0)
                        if best is None or fits > best[0]:
                            best = (fits, where, wanted.name, operand.type_name)
                        break
                else:
                    continue
                break
        counts_fit = any(
            _spread(form.inputs, len(inputs)) and _spread(form.outputs, len(outputs)) is not None
            for form in self.forms
        )
        if best is None or not counts_fit:
            allowed = sorted({_count_text(form) for form in self.forms})
            return LayerValidationError(
                "the number of operands is wrong",
                where=self.name,
                expected=" or ".join(allowed),
                actual=f"{len(inputs)} inputs and {len(outputs)} outputs",
            )
        _, where, wanted_type, actual = best
        return LayerValidationError(
            f"{where} has the wrong type",
            where=self.name,
            expected=f"{wanted_type} beside the other operands",
            actual=actual,
        )


def _count_text(form: Form) -> str:
    """Numbers of operands of a form, for messages."""
    texts = []
    for arguments, what in ((form.inputs, "inputs"), (form.outputs, "outputs")):
        least = any(argument.variadic for argument in arguments)
        texts.append(f"{len(arguments)}{' or more' if least else ''} {what}")
    return " and ".join(texts)


def _spread(arguments: Sequence[Argument], count: int) -> list[Argument] | None:
    """The argument that each of `count` operands is; None if the number does not fit."""
    variadic = [i for i, argument in enumerate(arguments) if argument.variadic]
    if not variadic:
        return list(arguments) if len(arguments) == count else None
    extra = count - len(arguments)
    if extra < 0:
        return None
    at = variadic[0]
    return [*arguments[:at], *[arguments[at]] * (extra + 1), *arguments[at + 1 :]]


@dataclass(frozen=True, slots=True)
class Match:
    """The form and types that an operation was called with.

    Parameters
    ----------
    form : Form
    row : TypeRow
    inputs, outputs : tuple of Argument
        What each operand is; a variadic argument is repeated.
    """

    form: Form
    row: TypeRow
    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]

    @classmethod
    def of(
        cls, form: Form, row: TypeRow, inputs: Sequence[Operand], outputs: Sequence[Operand]
    ) -> Match | None:
        """The match of operands with one form and row, if they do match."""
        ins, outs = _spread(form.inputs, len(inputs)), _spread(form.outputs, len(outputs))
        if ins is None or outs is None:
            return None
        pairs = [*zip(ins, inputs, strict=True), *zip(outs, outputs, strict=True)]
        if any(argument.code(row) != operand.type for argument, operand in pairs):
            return None
        return cls(form, row, tuple(ins), tuple(outs))

    @property
    def feature_level(self) -> int:
        """Lowest feature level that has both."""
        return max(self.form.feature_level, self.row.feature_level)

    def decides(self, index: int) -> bool:
        """Whether the elements of an input must be known to lower the operation."""
        argument = self.inputs[index]
        return argument.decisive or not OPERAND_TRAITS[argument.code(self.row)].is_tensor


class Arguments:
    """The operands of one operation by name, for checks.

    Parameters
    ----------
    match : Match
    inputs, outputs : sequence of Operand
    """

    def __init__(self, match: Match, inputs: Sequence[Operand], outputs: Sequence[Operand]) -> None:
        self.match = match
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self._by_name: dict[str, list[Operand]] = {}
        for arguments, operands in ((match.inputs, inputs), (match.outputs, outputs)):
            for argument, operand in zip(arguments, operands, strict=True):
                self._by_name.setdefault(argument.name, []).append(operand)

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def __getitem__(self, name: str) -> Operand:
        return self._by_name[name][0]

    def all(self, name: str) -> list[Operand]:
        """Every operand of a variadic argument."""
        return self._by_name[name]

    def constant(self, name: str) -> Array | None:
        """Elements of an operand, if it is there and constant."""
        found = self._by_name.get(name)
        return None if found is None else found[0].elements

    def check_ranks(self) -> None:
        """Check the ranks that are known.

        Raises
        ------
        LayerValidationError
            If one is not allowed.
        """
        pairs = [
            *zip(self.match.inputs, self.inputs, strict=True),
            *zip(self.match.outputs, self.outputs, strict=True),
        ]
        for argument, operand in pairs:
            if argument.ranks and operand.dimensions and not operand.is_omitted:
                require(
                    len(operand.dimensions) in argument.ranks,
                    f"{argument.name} has the wrong rank",
                    expected="rank " + " or ".join(map(str, argument.ranks)),
                    actual=operand.dimensions,
                )
