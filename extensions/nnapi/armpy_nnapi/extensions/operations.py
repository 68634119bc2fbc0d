"""Creation of the core's operations for those of vendor extensions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from armpy.backend import ExtensionOperand
from armpy.backend.extension import LARGEST_EXTENSION_ID
from armpy.errors import BackendError, LayerValidationError
from armpy.ops.operation import Operation
from armpy_nnapi.codes import EXTENSION_PREFIX_SHIFT
from armpy_nnapi.description.model_description import Operand
from armpy_nnapi.extensions.extensions import ExtensionLookup
from armpy_nnapi.results import as_bad_data, bad_data


def create_operation(
    lookup: ExtensionLookup,
    names: Mapping[int, str],
    code: int,
    inputs: Sequence[Operand],
    outputs: Sequence[Operand],
) -> Operation:
    """Make the operation that an extension's code stands for.

    Parameters
    ----------
    lookup : callable
        See `ExtensionLookup`.
    names : mapping of int to str
        The model's extensions by prefix.

    Raises
    ------
    NnapiError
        BAD_DATA if there is no such extension or operation, or it cannot have these operands.
    BackendError
        If an object that the extension creates has the wrong type.
    """
    name = _named(names, code)
    extension = lookup(name)
    operation = extension.operation(code & LARGEST_EXTENSION_ID)
    if operation is None:
        raise bad_data(
            "the extension has no such operation",
            where=name,
            expected=", ".join(f"{o.id} ({o.name})" for o in extension.operations) or "none",
            actual=str(code & LARGEST_EXTENSION_ID),
        )
    where = f"{name} / {operation.name}"
    operands = [_extension_operand(names, operand) for operand in (*inputs, *outputs)]
    try:
        # A vendor's code: LayerValidationError is its way to refuse, anything else is its failure.
        operation_made = operation.create(operands[: len(inputs)], operands[len(inputs) :])
    except LayerValidationError as error:
        error.where = ""  # that of the plugin boundary; the operation says it better
        raise as_bad_data(error, where) from error
    # Each once, in the order of the operands, so that messages are the same every time.
    used = dict.fromkeys(operand.extension for operand in operands if operand.extension)
    _check_created(operation_made, name, used, len(outputs), where)
    return operation_made


def _named(names: Mapping[int, str], code: int) -> str:
    """Name of the model's extension that a code belongs to."""
    name = names.get(code >> EXTENSION_PREFIX_SHIFT)
    if name is None:
        raise bad_data("the model has no extension with this prefix", actual=f"{code:#x}")
    return name


def _extension_operand(names: Mapping[int, str], operand: Operand) -> ExtensionOperand:
    own = operand.extension_type
    return ExtensionOperand(
        operand.info,
        "" if own is None else _named(names, operand.type),
        None if own is None else own.type,
        operand.extension_data,
        operand.is_omitted,
    )


def _check_created(
    operation: object, name: str, used: Iterable[str], num_outputs: int, where: str
) -> None:
    if not isinstance(operation, Operation):
        raise BackendError(
            "it creates an object that is not an operation",
            where=where,
            expected="an instance of a subclass of Operation",
            actual=type(operation).__name__,
        )
    if operation.extension != name:
        raise BackendError(
            "the operation that it creates does not belong to it",
            where=where,
            expected=f"{type(operation).__name__}.extension = {name!r}",
            actual=repr(operation.extension),
        )
    missing = [other for other in used if other not in operation.required_extensions]
    if missing:
        raise BackendError(
            "the operation takes operand types of an extension that it does not require",
            where=where,
            expected=f"{', '.join(missing)} in its required_extensions",
            actual=", ".join(operation.required_extensions),
        )
    # The model's mistake and not the backend's, so BAD_DATA: the operation has another number.
    if operation.num_outputs != num_outputs:
        raise bad_data(
            "the number of outputs is wrong",
            where=where,
            expected=str(operation.num_outputs),
            actual=str(num_outputs),
        )
