"""Vendor extensions: operand types and operations that a backend adds under a name of its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import TypeAlias, TypeVar

from armpy.core.dataclass import dataclass
from armpy.errors import InvalidArgumentError
from armpy.ops.operation import Operation
from armpy.tensor import TensorInfo

LARGEST_EXTENSION_ID = 0xFFFF
"""Largest number of an operand type or operation within its extension: NNAPI's type and operation
codes reserve their low 16 bits for it."""

OEM_EXTENSION = "android.oem"
"""Name of the extension by which a backend opts in to NNAPI's deprecated ``OEM_OPERATION``."""

OEM_OPERATION_ID = 10000
"""Number of the operation ``OEM_OPERATION`` in `OEM_EXTENSION`."""

_Entry = TypeVar("_Entry", "ExtensionOperandType", "ExtensionOperation")
_NAME = re.compile(r"[a-z0-9_]+(\.[a-z0-9_]+)+")
_MAX_NAME_LENGTH = 253
"""Maximum length of a domain name, which the name of an extension is."""


@dataclass(frozen=True, slots=True)
class ExtensionOperandType:
    """An operand type of an extension.

    Raises
    ------
    InvalidArgumentError
        If the number is out of range, or the size is not at least 1.

    Notes
    -----
    The core does not know what elements mean. It carries them as unsigned integers of their
    size; elements that are not 1, 2, 4 or 8 bytes large are carried as UNSIGNED8 with an
    extra last axis of length `size_bytes`.

    References
    ----------
    NNAPI HAL 1.2 ``Extension::OperandTypeInformation``.
    """

    id: int  # number within the extension, 0 to 65535
    name: str  # for people
    is_tensor: bool  # whether operands of the type have dimensions
    size_bytes: int  # of one element

    def __post_init__(self) -> None:
        _check_id(self.id, f"operand type '{self.name}'")
        if not _is_integer(self.size_bytes) or self.size_bytes < 1:
            raise InvalidArgumentError(
                "the size of an element is not a positive integer",
                where=f"operand type '{self.name}'",
                expected="1 byte or more",
                actual=repr(self.size_bytes),
            )


@dataclass(frozen=True, slots=True)
class ExtensionOperand:
    """Operand of an extension operation, as far as known when the operation is created."""

    info: TensorInfo
    """Type and shape as the core carries them, see `ExtensionOperandType`; dimensions may be
    unknown.
    """
    extension: str = ""
    """Name of the extension that the operand's type belongs to; empty for NNAPI's own types."""
    type_id: int | None = None  # the type's number within that extension
    data: bytes | None = None  # the application's data of the operand, if any
    is_omitted: bool = False  # whether it is an input without a value


CreateOperation: TypeAlias = Callable[
    [Sequence[ExtensionOperand], Sequence[ExtensionOperand]], Operation
]
"""Makes the operation for the inputs and outputs that a model gives it."""


@dataclass(frozen=True, slots=True)
class ExtensionOperation:
    """An operation of an extension.

    Raises
    ------
    InvalidArgumentError
        If the number is out of range, or `create` is not callable.
    """

    id: int  # number within the extension, 0 to 65535
    name: str  # for people
    create: CreateOperation = field(compare=False)
    """Takes the operation's inputs and outputs as sequences of `ExtensionOperand`, and returns an
    `armpy.ops.Operation` with these inputs as operands, in order. Raises LayerValidationError if
    they are invalid: only the extension can check them.
    """

    def __post_init__(self) -> None:
        where = f"operation '{self.name}'"
        _check_id(self.id, where)
        if not callable(self.create):
            raise InvalidArgumentError(
                "`create` is not callable", where=where, actual=repr(self.create)
            )


@dataclass(frozen=True, slots=True)
class Extension:
    """Operand types and operations of a vendor.

    Raises
    ------
    InvalidArgumentError
        If the name is not a reversed domain name, or two types or two operations share a number.

    Notes
    -----
    Backends that have the same extension declare the same operand types, and get its
    operations from one package. A backend that runs NNAPI's ``OEM_OPERATION`` declares the
    extension `OEM_EXTENSION` with an operation of the number `OEM_OPERATION_ID`. OEM tensors and
    scalars are vectors of UNSIGNED8 there.

    References
    ----------
    NNAPI vendor extensions; HAL 1.2 ``Extension``.
    """

    name: str
    """Globally unique: begins with the vendor's reversed domain, as ``com.example.fibonacci``."""
    operand_types: Sequence[ExtensionOperandType] = ()
    operations: Sequence[ExtensionOperation] = ()

    def __post_init__(self) -> None:
        check_extension_name(self.name)
        types = _checked(self.name, "operand_types", ExtensionOperandType, self.operand_types)
        operations = _checked(self.name, "operations", ExtensionOperation, self.operations)
        object.__setattr__(self, "operand_types", types)
        object.__setattr__(self, "operations", operations)

    def operand_type(self, type_id: int) -> ExtensionOperandType | None:
        """The operand type of a number; None if there is none."""
        return next((t for t in self.operand_types if t.id == type_id), None)

    def operation(self, operation_id: int) -> ExtensionOperation | None:
        """The operation of a number; None if there is none."""
        return next((o for o in self.operations if o.id == operation_id), None)


def check_extension_name(name: object) -> None:
    """Check the form of an extension's name.

    Raises
    ------
    InvalidArgumentError
        If it is not a reversed domain name: at least two parts of lowercase letters, digits and
        underscores, separated by dots.

    References
    ----------
    NNAPI HAL 1.2 ``Extension::name``.
    """
    if not (isinstance(name, str) and len(name) <= _MAX_NAME_LENGTH and _NAME.fullmatch(name)):
        raise InvalidArgumentError(
            "not a valid extension name",
            where=repr(name)[:300],
            expected="a reversed domain name of at least two parts and at most "
            f"{_MAX_NAME_LENGTH} lowercase letters, digits, dots and underscores, such as "
            "com.example.fibonacci",
            fix="Begin it with a domain of yours, so that the name is unique",
        )


def _checked(extension: str, noun: str, kind: type[_Entry], entries: object) -> tuple[_Entry, ...]:
    """The entries of an extension, if each is of its kind and has a number of its own."""
    # A copy, as an extension is frozen and a list could change under it.
    items = tuple(entries) if isinstance(entries, Sequence) else ()
    if not isinstance(entries, Sequence) or not all(isinstance(e, kind) for e in items):
        raise InvalidArgumentError(
            f"the {noun} have the wrong type",
            where=extension,
            expected=f"a sequence of {kind.__name__}",
            actual=repr(entries),
        )
    names: dict[int, str] = {}
    for entry in items:
        if entry.id in names:
            raise InvalidArgumentError(
                f"'{names[entry.id]}' and '{entry.name}' have the same number",
                where=f"{extension} / {noun}",
                actual=str(entry.id),
            )
        names[entry.id] = entry.name
    return items


def _check_id(number: object, where: str) -> None:
    """Check a number within an extension."""
    if not _is_integer(number) or not 0 <= number <= LARGEST_EXTENSION_ID:  # type: ignore[operator]
        raise InvalidArgumentError(
            "the number within the extension is out of range",
            where=where,
            expected=f"0 to {LARGEST_EXTENSION_ID}",
            actual=repr(number),
        )


def _is_integer(value: object) -> bool:
    """Return whether a value is a plain integer."""
    # bool is a subclass of int.
    return isinstance(value, int) and not isinstance(value, bool)
