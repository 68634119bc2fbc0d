"""Delegates: what LiteRT's programs load to run on something else than its own kernels."""

from __future__ import annotations

import os
from collections.abc import Mapping

from armpy_compat.litert.delegate_options import DelegateOptions, read_delegate_options

_NAMES = ("armnn", "armpy")


class DelegateLibraryError(OSError, ValueError):
    """A delegate's library cannot be loaded: an OSError, as in LiteRT, and a ValueError."""


class Delegate:
    """Arm NN's delegate: which of armpy's backends run the model; see `load_delegate`.

    Raises
    ------
    DelegateLibraryError
        If the library is another delegate's.
    ValueError
        If an option cannot be used.
    """

    def __init__(
        self, library: str | os.PathLike[str], options: Mapping[str, object] | None = None
    ) -> None:
        name = os.path.basename(os.fspath(library))
        if not any(part in name.lower() for part in _NAMES):
            raise DelegateLibraryError(
                f"{name} is not Arm NN's delegate, whose place armpy takes. Install a backend of"
                " armpy for the device; every installed backend is used without a delegate"
            )
        self.options: DelegateOptions = read_delegate_options(options or {})


def load_delegate(
    library: str | os.PathLike[str], options: Mapping[str, object] | None = None
) -> Delegate:
    """Take the place of Arm NN's delegate; no library is loaded.

    Parameters
    ----------
    library : path
        Library whose name says the delegate: ``libarmnnDelegate.so``.
    options : mapping of str to object, optional
        Options by the names that Arm NN's delegate has for them; see
        docs/how_to/run_litert_programs.md.

    Raises
    ------
    DelegateLibraryError
        If the library is another delegate's.
    ValueError
        If an option is unknown or cannot be used.
    """
    try:
        return Delegate(library, options)
    except DelegateLibraryError as error:
        raise DelegateLibraryError(f"Failed to load delegate from {library}\n{error}") from error
    except ValueError as error:
        raise ValueError(f"Failed to load delegate from {library}\n{error}") from error
