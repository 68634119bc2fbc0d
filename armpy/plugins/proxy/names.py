"""Finds methods that were meant for the contract and are called otherwise there.

Notes
-----
Nobody would call such a method, so that nothing else tells of it: it is refused.
"""

from __future__ import annotations

import difflib
import weakref
from abc import ABC, ABCMeta
from collections.abc import Iterator, Mapping

_NEAR = 0.9
"""How like two names are, by `difflib`, if one is the other misspelt."""

_CALLED_OTHERWISE: Mapping[str, Mapping[str, str]] = {
    "IBackendInternal": {
        "apiversion": "get_api_version",
        "backendid": "get_id",
        "canuseallocator": "use_custom_memory_allocator",
        "createbackendmodelcontext": "create_backend_specific_model_context",
        "createprofilingcontext": "create_backend_profiling_context",
        "createworkloadfactoryfornetwork": "create_workload_factory",
        "createworkloadfactorywithoptions": "create_workload_factory",
        "devicetype": "get_devices",
        "featurelevel": "get_devices",
        "getdevicefigures": "get_devices",
        "getlayersupportwithoptions": "get_layer_support",
        "getoptimizations": "optimize_subgraph_view",
        "getperformance": "get_devices",
        "loadcompiled": "get_programs",
        "numberofcachefiles": "get_programs",
        "numberofdatacachefiles": "get_programs",
        "optimizesubgraph": "optimize_subgraph_view",
        "optimizesubgraphfornetwork": "optimize_subgraph_view",
        "optimizesubgraphwithoptions": "optimize_subgraph_view",
        "registertensorhandlefactoriesfornetwork": "register_tensor_handle_factories",
        "savecompiled": "get_programs",
        "supportstensorallocatorapi": "register_tensor_handle_factories",
    },
    "ITensorHandleFactory": {"getcapabilities": "padding_bytes", "getid": "factory_id"},
    "ITensorHandle": {"gettensorinfo": "info"},
    "IWorkload": {"executeasync": "enqueue"},
}
"""Names of Arm NN, and of older contracts, for what is called otherwise, in small letters.

References
----------
Arm NN backend developer guide; IBackendInternal.hpp, ITensorHandleFactory.hpp, IWorkload.hpp.
"""

# Weak, so that classes of a module from a directory can go with their registry.
_found: weakref.WeakKeyDictionary[type, str] = weakref.WeakKeyDictionary()
"""By class, as each is looked at once."""


def why_misnamed(kind: type) -> str:
    """What is wrong with the names of a class's own public methods and properties; may be empty."""
    if type(kind) not in (type, ABCMeta):  # others may be odd in any way
        return ""
    known = _found.get(kind)
    if known is None:
        known = _found[kind] = "; ".join(_look_at(kind))
    return known


def _look_at(kind: type) -> Iterator[str]:
    """What is wrong with a class that implements parts of the contract."""
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
        # armpy's own classes may have more than the contract names.
        if base is ABC or _module(base).partition(".")[0] in ("armpy", "builtins", "typing"):
            continue
        for name, member in vars(base).items():
            if name.startswith("_") or name in known:
                continue
            meant = otherwise.get(_plain(name), "")
            # A vendor's own constants may be called anything.
            if not meant and (_is_method(member) or isinstance(member, property)):
                meant = _nearest(_plain(name), members, _is_method(member))
            if meant:
                yield (
                    f"{base.__name__}.{name} is not part of the contract, so that nobody calls it. "
                    f"Did you mean '{meant}'? Begin it with '_' if it is your own"
                )


def _nearest(plain: str, members: Mapping[str, tuple[str, bool]], is_method: bool) -> str:
    """The member that a name is nearly that of; empty if there is none."""
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
