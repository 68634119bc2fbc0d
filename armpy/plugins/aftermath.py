"""Undoes what the code of a candidate that fails has done to the interpreter."""

from __future__ import annotations

import builtins
import operator
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

T = TypeVar("T")
_MISSING = object()
_PLACES: list[list[Any]] = [sys.meta_path, sys.path_hooks, sys.path]


class InterpreterState:
    """State of the interpreter that all code of a process shares, as it is now.

    Notes
    -----
    The names that are built in, the modules that there are, and the places where they are looked
    for (``sys.meta_path``, ``sys.path_hooks``, ``sys.path``).
    """

    def __init__(self) -> None:
        self._builtins = vars(builtins)
        # Copies, as the dictionaries themselves are what a candidate changes.
        self._names = dict(self._builtins)
        self._modules = dict(sys.modules)
        self._places = [places[:] for places in _PLACES]

    def changes(self) -> Changes:
        """What has been changed since."""
        # Nothing that is built in is called here: it may be what was changed.
        return Changes(
            _changed(self._names, self._builtins),
            _changed(self._modules, sys.modules),
            self._places,
            [places[:] for places in _PLACES],
        )


class Changes:
    """Changes that some code has made in the interpreter.

    Parameters
    ----------
    names, modules : mapping of str to (object, object)
        What was there before and what came in its place, in `builtins` and ``sys.modules``.
    before, after : list of list
        The places where modules are looked for.
    """

    def __init__(
        self,
        names: Mapping[str, tuple[object, object]],
        modules: Mapping[str, tuple[object, object]],
        before: list[list[Any]],  # Any: what the interpreter calls them is private
        after: list[list[Any]],
    ) -> None:
        self._names, self._modules = names, modules
        self._before, self._after = before, after

    def undo_names(self) -> None:
        """Put back what was built in and nobody else has changed again; all else calls it."""
        _restore(builtins.__dict__, self._names)

    def undo_imports(self) -> None:
        """Do the same with modules and the places where they are looked for.

        Notes
        -----
        Modules that were imported in the ordinary way stay: others may hold them by now.
        """
        by_hand = {n: c for n, c in self._modules.items() if not _was_imported(n, *c)}
        _restore(sys.modules, by_hand)  # type: ignore[arg-type]  # what was in it, is modules
        for places, before, after in zip(_PLACES, self._before, self._after, strict=True):
            _restore_list(places, before, after)


def undo(changes: Sequence[Changes]) -> None:
    """Take changes back, the first of which is the latest."""
    # Builtins first, those of all changes: whatever puts the rest back calls them.
    for one in changes:
        one.undo_names()
    for one in changes:
        one.undo_imports()


def _changed(
    before: Mapping[str, object], now: Mapping[str, object]
) -> dict[str, tuple[object, object]]:
    """Old and new value of each name whose value is another one."""
    now = dict(now)  # at once: other threads import meanwhile
    changed = {n: (before.get(n, _MISSING), v) for n, v in now.items() if before.get(n) is not v}
    return changed | {name: (before[name], _MISSING) for name in before.keys() - now.keys()}


def _restore(names: dict[str, object], changed: Mapping[str, tuple[object, object]]) -> None:
    """Put old values back where the new ones still are."""
    for name, (old, new) in changed.items():
        # Whatever somebody else has put there since is not the candidate's, and stays.
        if names.get(name, _MISSING) is not new:
            continue
        if old is _MISSING:
            del names[name]
        else:
            names[name] = old


def _restore_list(items: list[T], before: Sequence[T], after: Sequence[T]) -> None:
    """Take out what was put in, and put back what was taken out, in front if need be."""
    # By identity: `==` would call methods of finders that the candidate has put there.
    if len(items) == len(after) and all(map(operator.is_, items, after)):
        items[:] = before  # nobody else has changed it: the order too
        return
    added, removed = _missing_from(before, after), _missing_from(after, before)
    items[:] = removed + _missing_from(added, items)


def _missing_from(others: Iterable[T], items: Iterable[T]) -> list[T]:
    """The items that are not among others; identity counts, as anything may call itself equal."""
    known = {id(other) for other in others}
    return [item for item in items if id(item) not in known]


def _was_imported(name: str, old: object, new: object) -> bool:
    """Whether a module has come into ``sys.modules`` by an import rather than by hand."""
    return old is _MISSING and getattr(getattr(new, "__spec__", None), "name", None) == name
