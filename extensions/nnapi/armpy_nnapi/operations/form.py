"""Forms of NNAPI operations: the arguments that they take, and operands that match them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from armpy.core.dataclass import dataclass
from armpy.ops.operation import Array, require
from armpy_nnapi.codes import OPERAND_TRAITS, FeatureLevel, OperandCode
from armpy_nnapi.description.model_description import Operand


@dataclass(frozen=True, slots=True)
class Argument:
    """One input or output of an operation's form."""

    name: str  # standard name: ``input``, ``filter``, ``padding_left``
    type: OperandCode | str  # a type, or the name of a column of the operation's type rows
    text: str = ""  # a description for documentation, where the name is not enough
    optional: bool = False  # whether the operand may be there without a value (lifetime NO_VALUE)
    decisive: bool = False
    """Whether the elements of a tensor must be known before the operation can be lowered (a shape,
    axes, paddings). Scalars always must.
    """
    ranks: tuple[int, ...] = ()  # ranks that are allowed; empty if any is
    variadic: bool = False
    """Whether it stands for one or more operands of the type; one argument per list may."""
    default: object = None
    """The value that means the same as leaving a trailing scalar out; None if there is none."""

    def code(self, row: TypeRow) -> OperandCode:
        """The type that the argument has in a row."""
        if isinstance(self.type, OperandCode):
            return self.type
        return row.types[self.type]


@dataclass(frozen=True, slots=True)
class Form:
    """One list of arguments that an operation can be called with."""

    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]
    feature_level: int = FeatureLevel.LEVEL_1  # lowest feature level that has the form

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
        Inputs of the shortest form.
    *trailing : tuple of (int, sequence of Argument)
        Each further group with the feature level that its form needs.
    """
    forms_made = [Form(tuple(inputs), tuple(outputs), feature_level)]
    for level, group in trailing:
        # One after the other: a model gives arguments by position, and cannot skip a group.
        last = forms_made[-1]
        forms_made.append(replace(last, inputs=(*last.inputs, *group), feature_level=level))
    return tuple(forms_made)


def spread(arguments: Sequence[Argument], count: int) -> list[Argument] | None:
    """The argument that each of `count` operands is; None if the number does not fit."""
    variadic = [i for i, argument in enumerate(arguments) if argument.variadic]
    if not variadic:
        return list(arguments) if len(arguments) == count else None
    extra = count - len(arguments)
    if extra < 0:
        return None
    # One argument per list may be variadic, and takes all the rest.
    at = variadic[0]
    return [*arguments[:at], *[arguments[at]] * (extra + 1), *arguments[at + 1 :]]


@dataclass(frozen=True, slots=True)
class Match:
    """The form and types that an operation was called with."""

    form: Form
    row: TypeRow
    # What each operand is; a variadic argument is repeated.
    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]

    @classmethod
    def of(
        cls, form: Form, row: TypeRow, inputs: Sequence[Operand], outputs: Sequence[Operand]
    ) -> Match | None:
        """The match of operands with one form and row, if they do match."""
        ins, outs = spread(form.inputs, len(inputs)), spread(form.outputs, len(outputs))
        if ins is None or outs is None:
            return None
        pairs = [*zip(ins, inputs, strict=True), *zip(outs, outputs, strict=True)]
        # Of operands without a value, too: NNAPI counts their types like all others.
        if any(argument.code(row) != operand.type for argument, operand in pairs):
            return None
        return cls(form, row, tuple(ins), tuple(outs))

    @property
    def feature_level(self) -> int:
        """Lowest feature level that has both."""
        return max(self.form.feature_level, self.row.feature_level)

    def decides(self, index: int) -> bool:
        """Return whether the elements of an input must be known to lower the operation."""
        argument = self.inputs[index]
        # Scalars become attributes of the core's operations, which are known beforehand.
        return argument.decisive or not OPERAND_TRAITS[argument.code(self.row)].is_tensor


class Arguments:
    """The operands of one operation by name, for checks."""

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
        entry = self._by_name.get(name)
        return None if entry is None else entry[0].elements

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
            # An open rank is checked when it is known; an omitted operand has none.
            if argument.ranks and operand.dimensions and not operand.is_omitted:
                require(
                    len(operand.dimensions) in argument.ranks,
                    f"'{argument.name}' has the wrong rank",
                    expected="rank " + " or ".join(map(str, argument.ranks)),
                    actual=operand.dimensions,
                )
