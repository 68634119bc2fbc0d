"""Rooms that import a module of theirs when something in it is first asked for.

Notes
-----
A process pays for what it uses: a model of three kinds of layers needs the definitions of three
operations. A room says where its names come from and takes the two functions that modules may
have for this (PEP 562)::

    if not TYPE_CHECKING:
        __getattr__, __dir__ = offer(__name__, {"Convolution2d": "armpy.ops.convolution"})

Type checkers read the imports that stand beside it under ``TYPE_CHECKING``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def offer(
    room: str, sources: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """A room's ``__getattr__`` and ``__dir__``.

    Parameters
    ----------
    room : str
        The package's name.
    sources : mapping of str to str
        For each name the module that defines it, or the module itself if it is called that.
    """
    contents = vars(sys.modules[room])

    def find(name: str) -> object:
        """Import what a name comes from; it is asked for once."""
        source = sources.get(name)
        if source is None:
            raise AttributeError(f"module '{room}' has no attribute '{name}'")
        module = import_module(source)
        found = module if source == f"{room}.{name}" else getattr(module, name)
        contents[name] = found
        return found

    def names() -> list[str]:
        """Everything that can be used."""
        return sorted({*contents, *sources})

    return find, names
