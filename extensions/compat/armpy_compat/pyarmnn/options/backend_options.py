"""Ids of backends, and options for them."""

from __future__ import annotations

from collections.abc import Iterator

from armpy_compat.pyarmnn.swig import SwigObject, wrong_arguments


class BackendId(SwigObject):
    """Id of a backend: "CpuRef", "CpuAcc", "GpuAcc", "EthosNAcc", or that of an installed one.

    Raises
    ------
    TypeError
        If it is not text.
    """

    def __init__(self, id: str) -> None:
        if not isinstance(id, str):
            raise TypeError("in method 'new_BackendId', argument 1 of type 'std::string const &'")
        self._id = id

    def Get(self) -> str:
        """Return the text."""
        return self._id

    def IsCpuRef(self) -> bool:
        """Return whether it is the reference backend."""
        return self._id == "CpuRef"

    def __str__(self) -> str:
        return self._id


class BackendOption(SwigObject):
    """An option of a backend.

    Raises
    ------
    TypeError
        If the name is not text, or the value has another type than those below.
    """

    def __init__(self, name: str, value: bool | float | str) -> None:
        if not isinstance(name, str) or not isinstance(value, bool | int | float | str):
            raise wrong_arguments("new_BackendOption")
        self._name = name
        self.value = value
        """Value of the option; PyArmNN does not show it."""

    def GetName(self) -> str:
        """Return the name."""
        return self._name


class BackendOptions(SwigObject):
    """Options of one backend.

    Takes a BackendId, or other options, which are copied.

    Raises
    ------
    TypeError
        For anything else.
    """

    def __init__(self, backend: BackendId | BackendOptions) -> None:
        self._options: list[BackendOption] = []
        self._backend: BackendId
        if isinstance(backend, BackendOptions):
            self._backend = backend._backend
            self._options += backend._options
        elif isinstance(backend, BackendId):
            self._backend = backend
        else:
            raise wrong_arguments("new_BackendOptions")

    def AddOption(self, option: BackendOption) -> None:
        """Add a copy of an option."""
        if not isinstance(option, BackendOption):
            raise TypeError(
                "in method 'BackendOptions_AddOption', argument 2 of type 'BackendOption const &'"
            )
        copy = BackendOption(option.GetName(), option.value)
        copy.thisown = False
        self._options.append(copy)

    def GetBackendId(self) -> BackendId:
        """Return the backend's id."""
        return self._backend

    def GetOptionCount(self) -> int:
        """Return the number of options."""
        return len(self._options)

    def GetOption(self, idx: int) -> BackendOption:
        """Return an option by its place."""
        return self[idx]

    def __getitem__(self, idx: int) -> BackendOption:
        if not 0 <= idx < len(self._options):
            raise IndexError(f"there is no option {idx}, but {len(self._options)} of them")
        return self._options[idx]

    def __len__(self) -> int:
        return len(self._options)

    def __iter__(self) -> Iterator[BackendOption]:
        return iter(tuple(self._options))
