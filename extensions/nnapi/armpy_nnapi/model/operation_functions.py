"""Operations as Python functions: which form a call means, and what its operands are."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import TypeAlias

import numpy as np

from armpy.core.dataclass import dataclass
from armpy_nnapi.codes import OPERAND_TRAITS, FuseCode, OperandCode, OperationCode
from armpy_nnapi.errors import NnapiError
from armpy_nnapi.operations import Argument, Form, OperationDefinition, TypeRow, definitions
from armpy_nnapi.results import bad_data

CodeOf: TypeAlias = Callable[[object], OperandCode | None]
"""Gives the operand type that something has; None if it can be made what fits."""

OUTPUTS = "outputs"
"""Keyword of every operation that says how many outputs there are, or of which types."""

_BUILDER_DEFAULTS: Mapping[str, object] = {"activation": FuseCode.NONE}
"""Arguments that NNAPI has no default for, but which mostly say the same."""

_C = OperationCode
FIXED_OUTPUTS: Mapping[tuple[OperationCode, str], tuple[float, int]] = {
    (_C.HASHTABLE_LOOKUP, "hits"): (1.0, 0),
    (_C.LOGISTIC, "output"): (1 / 256, 0),
    (_C.SOFTMAX, "output"): (1 / 256, 0),
    (_C.L2_NORMALIZATION, "output"): (1 / 128, 128),
    (_C.TANH, "output"): (1 / 128, 128),
}
"""Scale and zero point that an operation prescribes for an output of TENSOR_QUANT8_ASYMM."""

SIGNED_OFFSET = 128
"""Difference between zero points of TENSOR_QUANT8_ASYMM and of the signed type."""


@dataclass(frozen=True, slots=True)
class OperationCall:
    """Call of an operation's function, matched to a form and a row of types."""

    definition: OperationDefinition
    form: Form
    row: TypeRow
    inputs: tuple[tuple[Argument, object], ...]
    """Inputs, each with its argument; None for one without a value."""


@cache
def functions() -> Mapping[str, OperationDefinition]:
    """Every operation by the name of its function."""
    return {definition.name.lower(): definition for definition in definitions().values()}


def signature(definition: OperationDefinition) -> inspect.Signature:
    """The signature of an operation's function: all forms in one."""
    kinds = inspect.Parameter
    parameters: dict[str, inspect.Parameter] = {}
    leading = _leading_names(definition)
    for argument in _arguments(definition):
        is_leading = argument.name in leading
        parameters[argument.name] = kinds(
            argument.name,
            kinds.POSITIONAL_OR_KEYWORD if is_leading else kinds.KEYWORD_ONLY,
            default=kinds.empty if is_leading else _default(argument),
        )
    parameters[OUTPUTS] = kinds(OUTPUTS, kinds.KEYWORD_ONLY, default=None)
    # Stable: among those that may be given by position NNAPI's order stays.
    ordered = sorted(parameters.values(), key=lambda parameter: parameter.kind)
    return inspect.Signature(ordered)


def _default(argument: Argument) -> object:
    """The default of an argument, as a signature shows it."""
    if argument.default is not None:
        return argument.default
    return _BUILDER_DEFAULTS.get(argument.name)


def _arguments(definition: OperationDefinition) -> list[Argument]:
    """Every argument of every form, each once, as they follow each other."""
    by_name: dict[str, Argument] = {}
    for form in definition.forms:
        for argument in form.inputs:
            by_name.setdefault(argument.name, argument)
    return list(by_name.values())


def _leading_names(definition: OperationDefinition) -> list[str]:
    """Names of the arguments that all forms begin with and require."""
    names = []
    # Up to the end of the shortest form: after it nothing is in all of them.
    for arguments in zip(*(form.inputs for form in definition.forms), strict=False):
        first = arguments[0]
        if len({argument.name for argument in arguments}) > 1 or _may_be_missing(first):
            break
        names.append(first.name)
    return names


def _may_be_missing(argument: Argument) -> bool:
    """Return whether a call need not say the argument."""
    has_default = argument.default is not None or argument.name in _BUILDER_DEFAULTS
    return has_default or argument.optional


def documentation(definition: OperationDefinition) -> str:
    """The docstring of an operation's function."""
    lines = [definition.summary, "", "Parameters", "----------"]
    for argument in _arguments(definition):
        quantity = "several of " if argument.variadic else ""
        lines.append(f"{argument.name} : {quantity}{_type_text(definition, argument)}")
        ranks = f" Rank {' or '.join(map(str, argument.ranks))}." if argument.ranks else ""
        text = f"{argument.text}{'.' if argument.text[-1:].isalpha() else ''}{ranks}".strip()
        if text:
            lines.append(f"    {text}")
    lines += [
        f"{OUTPUTS} : int or sequence of (OperandType or None), optional",
        "    How many outputs, or of which types; None for what follows from the inputs.",
        "",
        "Returns",
        "-------",
        "ModelOperand, or tuple of ModelOperand",
    ]
    names = dict.fromkeys(", ".join(a.name for a in form.outputs) for form in definition.forms)
    lines += [f"    {' | '.join(names)}", "", "References", "----------"]
    level = definition.feature_level
    return "\n".join([*lines, f"NNAPI {definition.name}, from feature level {int(level)} on."])


def _type_text(definition: OperationDefinition, argument: Argument) -> str:
    codes = dict.fromkeys(argument.code(row) for _, row in definition.signatures())
    text = ", ".join(code.name for code in codes)
    return f"{text}, optional" if _may_be_missing(argument) else text


def resolve(
    definition: OperationDefinition,
    given: Mapping[str, object],
    num_outputs: int | None,
    code_of: CodeOf,
) -> OperationCall:
    """Find the form and types that a call means.

    Parameters
    ----------
    given : mapping of str to object
        Values by argument; those left out are not in it.
    code_of : callable
        The operand type that something given has; None if it has none of its own.

    Raises
    ------
    NnapiError
        BAD_DATA if no form takes these arguments, or no row these types.
    """
    forms = [
        form
        for form in definition.forms
        if set(given) <= set(form.input_names)
        and all(a.name in given or _may_be_missing(a) for a in form.inputs)
        and (num_outputs in (None, len(form.outputs)) or form.outputs[-1].variadic)
    ]
    if not forms:
        raise _no_form(definition, given, num_outputs)
    # The shortest form and the oldest types first: more devices can run these.
    for form in sorted(forms, key=lambda form: (len(form.inputs), len(form.outputs))):
        for row in sorted(definition.type_rows or (TypeRow({}),), key=lambda r: r.feature_level):
            pairs = tuple(_pairs(form, given))
            if all(_fits(argument.code(row), value, code_of) for argument, value in pairs):
                return OperationCall(definition, form, row, pairs)
    types = ", ".join(
        f"{name} {operand_type.name}"
        for name, value in given.items()
        if (operand_type := code_of(value)) is not None
    )
    raise bad_data(
        "the operation does not take operands of these types together",
        where=definition.name,
        expected=f"one of {len(definition.type_rows)} rows of types, see the function's help",
        actual=types,
    )


def _pairs(form: Form, arguments: Mapping[str, object]) -> Iterator[tuple[Argument, object]]:
    for argument in form.inputs:
        value = arguments.get(argument.name, _default(argument))
        if not argument.variadic:
            yield argument, value
        elif isinstance(value, Sequence):
            yield from ((argument, item) for item in value)
        else:
            raise bad_data(
                f"{argument.name} is not a sequence",
                expected="a list of values",
                actual=type(value).__name__,
            )


def _no_form(
    definition: OperationDefinition, arguments: Mapping[str, object], num_outputs: int | None
) -> NnapiError:
    unknown = [name for name in arguments if name not in {a.name for a in _arguments(definition)}]
    forms = dict.fromkeys(", ".join(form.input_names) for form in definition.forms)
    actual = ", ".join(arguments)
    if num_outputs is not None:
        actual += f"; {num_outputs} outputs"
    return bad_data(
        f"there is no argument {', '.join(unknown)}"
        if unknown
        else "arguments are missing, or do not go together",
        where=definition.name,
        expected=" | ".join(forms),
        actual=actual,
    )


def _fits(code: OperandCode, value: object, code_of: CodeOf) -> bool:
    """Return whether something given can be an operand of a type."""
    # An omitted operand has the type of the form.
    if value is None:
        return True
    operand_type = code_of(value)
    if operand_type is not None:
        return operand_type == code
    traits = OPERAND_TRAITS[code]
    elements = np.asarray(value)
    # A rank of 0 is a scalar to NNAPI, and plain numbers say no scale.
    is_shaped = traits.is_tensor == (elements.ndim > 0)
    return is_shaped and not traits.needs_scale and elements.dtype.kind in _KINDS[traits.dtype.kind]


_KINDS: Mapping[str, str] = {"f": "fiu", "i": "iu", "u": "iu", "b": "b"}
"""Kinds of numbers that an operand can be made from, by kind of its dtype."""
