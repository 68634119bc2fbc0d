"""Finds methods that were meant for the contract and are called otherwise there.

Notes
-----
Nobody calls such a method, so that nothing else tells of it. It is remarked on and not refused: a
later version of the contract may have a name that is like that of a vendor's own helper.
"""

from __future__ import annotations

import logging
import weakref
from abc import ABC, ABCMeta
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from armpy.types import BackendId

_log = logging.getLogger("armpy.plugins")

_NEAR = 0.9
"""How like two names are, by `difflib`, if one is the other misspelt."""

_CALLED_OTHERWISE: Mapping[str, Mapping[str, str]] = {
    "IBackendInternal": {
        "getid": "backend_id",
        "getapiversion": "api_version",
        "optimizesubgraphview": "optimize_subgraph",
        "getoptimizations": "optimize_subgraph",
        "createbackendspecificmodelcontext": "create_backend_model_context",
        "supportstensorallocatorapi": "register_tensor_handle_factories",
    },
    "ITensorHandleFactory": {"getid": "factory_id"},
    "ITensorHandle": {"gettensorinfo": "info"},
    "IWorkload": {"executeasync": "enqueue"},
}
"""Arm NN's names of what the contract calls otherwise, without case and punctuation.

References
----------
Arm NN backend developer guide; IBackendInternal.hpp, ITensorHandleFactory.hpp, IWorkload.hpp.
"""

_remarks: weakref.WeakKeyDictionary[type, tuple[str, ...]] = weakref.WeakKeyDictionary()
"""By class, as each is looked at once."""

_said: set[tuple[BackendId, str]] = set()
"""What was logged, which is enough once."""

_gathered: ContextVar[dict[str, None] | None] = ContextVar("gathered", default=None)


def remarks_on(kind: type) -> tuple[str, ...]:
    """What is to be said about the names of a class's own public methods and properties."""
    if type(kind) not in (type, ABCMeta):  # others may be odd in any way
        return ()
    known = _remarks.get(kind)
    if known is None:
        known = _remarks[kind] = tuple(_look_at(kind))
    return known


def remark_on(backend_id: BackendId, thing: object) -> None:
    """Say once what is to be said about the class of something that a backend made."""
    remarks = remarks_on(type(thing))
    if not remarks:
        return
    gathered = _gathered.get()
    if gathered is not None:
        gathered.update(dict.fromkeys(remarks))
    for remark in remarks:
        if (backend_id, remark) not in _said:
            _said.add((backend_id, remark))
            _log.warning("%s: %s", backend_id, remark)


@contextmanager
def gathered_remarks() -> Iterator[dict[str, None]]:
    """Gather what is remarked on in a block, each remark once."""
    found: dict[str, None] = {}
    token = _gathered.set(found)
    try:
        yield found
    finally:
        _gathered.reset(token)


def _look_at(kind: type) -> Iterator[str]:
    """The remarks on a class that implements parts of the contract."""
    contract = [base for base in kind.__mro__ if _module(base).startswith("armpy.backend.")]
    if not contract:
        return
    members = {
        _plain(name): (name, _is_method(member))
        for base in contract
        for name, member in vars(base).items()
        if not name.startswith("_")
    }
    otherwise = {
        plain: name
        for base in contract
        for plain, name in _CALLED_OTHERWISE.get(base.__name__, {}).items()
    }
    known = {name for name, _ in members.values()}
    for base in kind.__mro__:
        if base is ABC or _module(base).partition(".")[0] in ("armpy", "builtins", "typing"):
            continue
        for name, member in vars(base).items():
            is_method = _is_method(member)
            if name.startswith("_") or name in known:
                continue
            if not is_method and not isinstance(member, property):
                continue
            meant = otherwise.get(_plain(name)) or _nearest(_plain(name), members, is_method)
            if meant:
                yield (
                    f"{base.__name__}.{name} is not part of the contract, so that nobody calls "
                    f"it. Did you mean '{meant}'?"
                )


def _nearest(plain: str, members: Mapping[str, tuple[str, bool]], is_method: bool) -> str:
    """The member that a name is nearly that of; empty if there is none."""
    import difflib  # noqa: PLC0415 - most backends have no such names

    same_kind = [key for key, (_, is_routine) in members.items() if is_routine == is_method]
    near = difflib.get_close_matches(plain, same_kind, 1, _NEAR)
    return members[near[0]][0] if near else ""


def _is_method(member: object) -> bool:
    """Whether a class's member is something to call."""
    return callable(member) or isinstance(member, (staticmethod, classmethod))


def _module(kind: type) -> str:
    """The module of a class; empty if it says something else."""
    name = kind.__module__
    return name if isinstance(name, str) else ""


def _plain(name: str) -> str:
    """A name without case and punctuation."""
    return name.replace("_", "").casefold()
