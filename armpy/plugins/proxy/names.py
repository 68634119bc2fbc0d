"""Finds methods that were meant for the contract and are called otherwise there.

Notes
-----
Such a method would never be called, without any other sign of the mistake, so it is refused.
"""

from __future__ import annotations

import difflib
import re
import weakref
from abc import ABC, ABCMeta
from collections.abc import Iterator, Mapping

from armpy.backend import BACKEND_API_VERSION
from armpy.types import BackendId

_NEAR = 0.9
"""How like two names are, by `difflib`, if one is the other misspelt."""

_SHORTEST_SWAPPED, _SHORTEST_DOUBLED, _SHORTEST_CUT, _SHORTEST_REPLACED = 3, 4, 5, 7
"""Letters of a name that another one may be with two letters swapped, one doubled, one more or
less, or one replaced: shorter words that differ so are often words of their own (find, bind)."""

_PREFIX = re.compile("(get|create)_(?=.)")
_BRITISH = re.compile("is(?=e|ation|ing)")

_CALLED_OTHERWISE: Mapping[str, Mapping[str, str]] = {
    "IBackendInternal": {
        "apiversion": "get_api_version",
        "backendid": "get_id",
        "canuseallocator": "use_custom_memory_allocator",
        "createbackendmodelcontext": "create_backend_specific_model_context",
        "createcontext": "create_backend_context",
        "createmodelcontext": "create_backend_specific_model_context",
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
"""Names of Arm NN, and of older contracts, for renamed concepts, in small letters.

References
----------
Arm NN backend developer guide; IBackendInternal.hpp, ITensorHandleFactory.hpp, IWorkload.hpp.
"""

_ADDED: Mapping[str, Mapping[str, str]] = {
    "IBackendInternal": {"get_typical_figures": "2.2", "get_diagnosis": "2.7"},
    "ILayerSupport": {"are_layers_supported": "2.4"},
    "IPrograms": {"check_kernels": "2.1", "save_kernels": "2.1"},
    "IWorkload": {"for_arrays": "2.5"},
}
"""Version of the contract that added a member to an older interface, by interface and name."""

# Weak, so that classes of a module from a directory can go with their registry.
_found: weakref.WeakKeyDictionary[type, dict[str, str]] = weakref.WeakKeyDictionary()
"""By class and version, as each is looked at once."""

_declared: dict[BackendId, str] = {}
"""Version of the contract that the backend of an id declares, for the classes that it makes."""


def note_declared_version(backend_id: BackendId, version: str) -> None:
    """Keep the version of the contract that a backend was written for."""
    _declared[backend_id] = version


def declared_version(backend_id: BackendId) -> str:
    """The version of the contract that a backend was written for; the core's if unknown."""
    return _declared.get(backend_id, BACKEND_API_VERSION)


def is_later(interface: str, name: str, version: str) -> bool:
    """Return whether a member came after a version, ``"major.minor"`` of the core's major."""
    added = _ADDED.get(interface, {}).get(name, version)
    return int(added.partition(".")[2]) > int(version.partition(".")[2])


def why_misnamed(kind: type, version: str = BACKEND_API_VERSION) -> str:
    """Describe errors in the names of a class's own public methods and properties, or return ''.

    Only members of the contract of `version` count: the class was written before later ones.
    """
    if type(kind) not in (type, ABCMeta):  # others may be odd in any way
        return ""
    known = _found.setdefault(kind, {})
    if version not in known:
        known[version] = "; ".join(_look_at(kind, version))
    return known[version]


def _look_at(kind: type, version: str) -> Iterator[str]:
    contract = [base for base in kind.__mro__ if _module(base).startswith("armpy.backend.")]
    if not contract:
        return
    members = {
        _plain(name): (name, _is_method(member))
        for base in contract
        for name, member in vars(base).items()
        if not name.startswith("_") and not is_later(base.__name__, name, version)
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
                meant = _nearest(name, members, _is_method(member))
            if meant:
                yield (
                    f"{base.__name__}.{name} is not part of the contract, so it is never called. "
                    f"Did you mean '{meant}'? Begin it with '_' if it is your own"
                )


def _nearest(name: str, members: Mapping[str, tuple[str, bool]], is_method: bool) -> str:
    """The member that a name is nearly that of; empty if there is none.

    Properties stand for getters, and getters for properties, where their words are equal; a plural
    stands for its singular, and the reverse.
    Misspelt names are compared with members of the same kind: ``closed`` beside ``close`` is a
    name of its own.
    """
    words = _words(name)
    plain = _plain(name)
    for key, (member, _) in members.items():
        # A single word, such as `device`, may be a name of the vendor's own.
        if "_" in name and _singular(words) == _singular(_words(member)):
            return member
        if words == _words(member) or _is_swapped(words, _words(member)) or _is_swapped(plain, key):
            return member
    same_kind = [key for key, (_, is_routine) in members.items() if is_routine == is_method]
    near = difflib.get_close_matches(plain, same_kind, 1, _NEAR)
    near += [key for key in same_kind if _is_one_letter_off(plain, key)]
    return members[near[0]][0] if near else ""


def _words(name: str) -> str:
    return _plain(_PREFIX.sub("", name, count=1))


def _singular(words: str) -> str:
    return f"{words[:-3]}y" if words.endswith("ies") else words.removesuffix("s")


def _is_swapped(name: str, member: str) -> bool:
    if len(name) != len(member) or len(name) < _SHORTEST_SWAPPED:
        return False
    places = [place for place, (a, b) in enumerate(zip(name, member, strict=True)) if a != b]
    if len(places) != 2 or places[1] - places[0] != 1:
        return False
    first, second = places
    return name[first] == member[second] and name[second] == member[first]


def _is_one_letter_off(name: str, member: str) -> bool:
    short, long = sorted((name, member), key=len)
    if len(long) - len(short) > 1:
        return False
    if len(short) == len(long):
        differing = sum(a != b for a, b in zip(short, long, strict=True))
        return differing == 1 and len(member) >= _SHORTEST_REPLACED
    cuts = [place for place in range(len(long)) if long[:place] + long[place + 1 :] == short]
    is_doubled = len(cuts) > 1 and long == name
    return bool(cuts) and len(member) >= (_SHORTEST_DOUBLED if is_doubled else _SHORTEST_CUT)


def _is_method(member: object) -> bool:
    return callable(member) or isinstance(member, (staticmethod, classmethod))


def _module(kind: type) -> str:
    """The module of a class; empty if it says something else."""
    name = kind.__module__
    return name if isinstance(name, str) else ""


def _plain(name: str) -> str:
    return _BRITISH.sub("iz", name.replace("_", "").casefold())
