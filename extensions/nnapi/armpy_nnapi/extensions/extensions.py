"""Vendor extensions: codes of their types, and the backends' declarations of these."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

from armpy.backend import Extension, ExtensionOperandType, ExtensionOperation, IBackendInternal
from armpy.backend.extension import LARGEST_EXTENSION_ID
from armpy.types import BackendId
from armpy_nnapi.codes import EXTENSION_PREFIX_SHIFT, MAX_EXTENSION_PREFIX
from armpy_nnapi.description.model_description import ExtensionTypeInformation
from armpy_nnapi.errors import NnapiError
from armpy_nnapi.extensions.allow_list import AllowList, running_program
from armpy_nnapi.results import bad_data, unexpected_null

ExtensionLookup: TypeAlias = Callable[[str], Extension]
"""Gives the extension of a name, or raises BAD_DATA and says why there is none."""


def no_extensions(name: str) -> Extension:
    """The lookup that finds no extension."""
    raise missing_extension(name, ())


def missing_extension(name: str, backends: Iterable[BackendId]) -> NnapiError:
    """The error for an extension that no backend has."""
    asked = ", ".join(backends)
    return bad_data(
        f"no backend has the vendor extension '{name}'",
        expected=f"it among the extensions of {asked}" if asked else "",
        fix=f"Install a backend that has '{name}', or allow it where backends are named",
    )


class TypeManager:
    """Codes of extensions' types and operations, and what these types are.

    Parameters
    ----------
    backends : iterable of IBackendInternal
        Backends whose extensions can be used, most preferred first.
    allow_list : AllowList, optional
        List of applications that may use extensions; without it, all may.
    application : str
        Name of the application, for the list: ``com.foo.bar``.

    Attributes
    ----------
    disabled : mapping of str to str
        Why an extension that backends declare cannot be used, by name.

    Notes
    -----
    A code has the extension's prefix above bit 16 and the number within the extension
    below. Prefixes are handed out from 1 by name, in order of first use, whether a backend
    has the extension or not; using a type that is not declared fails.

    References
    ----------
    NNAPI ``TypeManager``.
    """

    def __init__(
        self,
        backends: Iterable[IBackendInternal],
        allow_list: AllowList | None = None,
        application: str = "",
    ) -> None:
        self._extensions: dict[BackendId, dict[str, Extension]] = {}
        self._types: dict[str, Mapping[int, ExtensionOperandType]] = {}
        self._first: dict[str, BackendId] = {}
        self._prefixes: dict[str, int] = {}
        # Of `_prefixes`, the one thing that changes after the constructor: models on several
        # threads may be the first to use an extension.
        self._lock = threading.Lock()
        disabled: dict[str, str] = {}
        self.disabled: Mapping[str, str] = MappingProxyType(disabled)
        self._refusal = _refusal(allow_list, application)
        # In order of preference: the first that declares an extension is the one that all others
        # have to agree with.
        for backend in backends:
            backend_id = backend.get_id()
            own = self._extensions.setdefault(backend_id, {})
            for extension in backend.extensions:
                own[extension.name] = extension
                self._register(backend_id, extension, disabled)

    def _register(
        self, backend_id: BackendId, extension: Extension, disabled: dict[str, str]
    ) -> None:
        """Take an extension's operand types, which must be those that others declare."""
        name = extension.name
        types = {t.id: t for t in extension.operand_types}
        first = self._first.setdefault(name, backend_id)
        if _facts(self._types.setdefault(name, types)) != _facts(types):
            # Kept and not raised: applications without this extension can go on with both backends.
            disabled.setdefault(
                name, f"{first} and {backend_id} declare other operand types for it"
            )

    @property
    def is_allowed(self) -> bool:
        """Return whether this application may use extensions."""
        return self._refusal is None

    def check_allowed(self, where: str = "") -> None:
        """Check that this application may use extensions.

        Raises
        ------
        NnapiError
            BAD_DATA if not; the text names the application and the file.
        """
        if self._refusal is not None:
            expected, fix = self._refusal
            raise bad_data(
                "this application may not use vendor extensions",
                where=where,
                expected=expected,
                fix=fix,
            )

    def get_operand_type(self, name: str, type_id: int) -> int:
        """The code of an operand type; see `get_operation_type`."""
        return self._code(name, type_id)

    def get_operation_type(self, name: str, operation_id: int) -> int:
        """The code of an operation.

        Parameters
        ----------
        name : str
            Name of the extension; need not be that of one that a backend has.
        operation_id : int
            Number within the extension.

        Raises
        ------
        NnapiError
            UNEXPECTED_NULL without a name; BAD_DATA if the number cannot be one, or too
            many extensions are in use.
        """
        return self._code(name, operation_id)

    def _code(self, name: str, number: int) -> int:
        """The code of a type or operation of an extension."""
        if name is None:
            raise unexpected_null("the extension's name")
        if not isinstance(name, str):
            raise bad_data("the extension's name is not text", actual=repr(name))
        if not isinstance(number, int) or not 0 <= number <= LARGEST_EXTENSION_ID:
            raise bad_data(
                "the number within the extension is out of range",
                where=name,
                expected=f"0 to {LARGEST_EXTENSION_ID}",
                actual=repr(number),
            )
        return self.prefix_of(name) << EXTENSION_PREFIX_SHIFT | number

    def prefix_of(self, name: str) -> int:
        """The prefix of an extension, handed out if this is its first use.

        Raises
        ------
        NnapiError
            BAD_DATA if too many extensions are in use.
        """
        with self._lock:
            if name not in self._prefixes and len(self._prefixes) >= MAX_EXTENSION_PREFIX:
                raise bad_data(
                    "too many extensions are in use",
                    where=name,
                    expected=f"at most {MAX_EXTENSION_PREFIX}",
                )
            # In order of use and from 1: prefix 0 is NNAPI's own, and a name keeps its prefix for
            # good, as codes with it are in applications' models.
            return self._prefixes.setdefault(name, len(self._prefixes) + 1)

    def name_of(self, code: int) -> str:
        """Name of the extension that a code belongs to.

        Raises
        ------
        NnapiError
            BAD_DATA if its prefix was never handed out.
        """
        prefix = code >> EXTENSION_PREFIX_SHIFT
        with self._lock:
            # Dictionaries keep the order of insertion, so the position gives the prefix.
            names = list(self._prefixes)
        if not 0 < prefix <= len(names):
            raise bad_data(
                "the code belongs to no extension",
                expected="one that get_extension_operand_type or _operation_type gave",
                actual=f"{code:#x}",
            )
        return names[prefix - 1]

    def names_of(self, codes: Iterable[int]) -> dict[int, str]:
        """Names by prefix of the extensions that codes belong to."""
        return {code >> EXTENSION_PREFIX_SHIFT: self.name_of(code) for code in codes}

    def operand_type_information(self, code: int, where: str = "") -> ExtensionTypeInformation:
        """Look up the operand type of a code.

        Raises
        ------
        NnapiError
            BAD_DATA if this application may not use extensions, or no backend that can be
            used has the extension or the type.
        """
        name = self.name_of(code)
        self.check_allowed(where or name)
        self._check_enabled(name)
        if name not in self._types:
            raise missing_extension(name, self._extensions)
        operand_type = self._types[name].get(code & LARGEST_EXTENSION_ID)
        if operand_type is None:
            known = ", ".join(f"{t.id} ({t.name})" for t in self._types[name].values())
            raise bad_data(
                "the extension has no such operand type",
                where=name,
                expected=known or "none: it has only operations",
                actual=str(code & LARGEST_EXTENSION_ID),
            )
        return ExtensionTypeInformation(
            operand_type.id, operand_type.is_tensor, operand_type.size_bytes
        )

    def check_operation_type(self, code: int, where: str = "") -> None:
        """Check that a code may be that of an operation.

        Raises
        ------
        NnapiError
            BAD_DATA if no extension has its prefix, or this application may not use extensions.

        Notes
        -----
        Whether a backend has the operation is seen when the model is compiled.
        """
        name = self.name_of(code)
        self.check_allowed(where or name)

    def _check_enabled(self, name: str) -> None:
        """Check that backends agree about an extension."""
        if name in self.disabled:
            raise bad_data(
                f"the vendor extension is disabled: {self.disabled[name]}",
                where=name,
                fix="Remove one of these backends, or allow only one of them",
            )

    def lookup(self, backend_ids: Iterable[BackendId] | None = None) -> ExtensionLookup:
        """Make the function that `lower_model` looks up extensions with.

        Parameters
        ----------
        backend_ids : iterable of str, optional
            The backends whose extensions count, most preferred first; all if left out.
        """
        # Now and not in `find`: later changes of the list have no effect here.
        asked = list(self._extensions) if backend_ids is None else list(backend_ids)

        def find(name: str) -> Extension:
            self.check_allowed(name)
            self._check_enabled(name)
            declared = [self._extensions.get(backend_id, {}).get(name) for backend_id in asked]
            extensions = [extension for extension in declared if extension is not None]
            if not extensions:
                raise missing_extension(name, asked)
            return _union(extensions)

        return find


def _refusal(allow_list: AllowList | None, application: str) -> tuple[str, str] | None:
    """The expectation and the fix to name if the list lacks this application; None if it may."""
    program = running_program()
    if allow_list is None or allow_list.allows(program, application):
        return None
    who = f"'{program}'" + (f" or '{application}'" if application else "")
    if allow_list.problem:
        return f"{who} in '{allow_list.path}', but {allow_list.problem}", "Make it readable"
    return f"{who} in '{allow_list.path}'", "Add a line with it to the file"


def _facts(types: Mapping[int, ExtensionOperandType]) -> list[tuple[int, bool, int]]:
    """The facts about operand types that backends must agree on."""
    # Sorted, as backends may list the types in any order; names do not count.
    return sorted((t.id, t.is_tensor, t.size_bytes) for t in types.values())


def _union(extensions: Sequence[Extension]) -> Extension:
    """One extension with the operations of several, the first one's first."""
    operations: dict[int, ExtensionOperation] = {}
    for extension in extensions:
        for operation in extension.operations:
            # The more preferred backend's, where several have it.
            operations.setdefault(operation.id, operation)
    # Their operand types are the same: otherwise the extension is disabled.
    first = extensions[0]
    return Extension(first.name, first.operand_types, tuple(operations.values()))
