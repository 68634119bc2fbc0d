"""Rules about a backend that serves several runtimes: options, allocators, contexts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from armpy.backend import (
    ALIGNMENT_BYTES,
    BackendOption,
    DefaultAllocator,
    NetworkResources,
    OptionScope,
)
from armpy.errors import BackendCapabilityError
from armpy.ops.operation import Array
from armpy.plugins import BackendProxy
from armpy_conformance.backend_under_test import BackendUnderTest
from armpy_conformance.contract.case import NothingToKeepError, check
from armpy_conformance.contract.driven import Driven, backend_of_runtime, options_of
from armpy_conformance.contract.networks import sample_bench, samples
from armpy_conformance.contract.options import allowed_values


def _run(subject: BackendUnderTest, backend: BackendProxy, when: str) -> None:
    driven = Driven(backend, sample_bench(subject, samples(subject)[0]))
    memory = driven.memory()
    driven.run(memory, when)
    memory.release()


def for_runtime_keeps_who_it_is(subject: BackendUnderTest) -> None:
    """The backend of a runtime has the id, the kind, and the options that it was chosen for."""
    backend = subject.backend
    own = backend_of_runtime(subject)
    for name, before, after in (
        ("get_id", backend.get_id(), own.get_id()),
        ("version", backend.version, own.version),
        ("get_devices", backend.get_devices(), own.get_devices()),
        ("options", backend.options, own.options),
    ):
        check(before == after, f"for a runtime, {name} is {after!r}, not {before!r}")
    _run(subject, own, "on the backend of one runtime")


def for_runtime_leaves_others_alone(subject: BackendUnderTest) -> None:
    """Options of one runtime do not change the backend of the others."""
    raw = subject.raw_backend
    first = backend_of_runtime(subject)
    before = _state(raw)
    for option, value in _other_values(subject):
        own = subject.backend.for_runtime(options_of(subject, others={option.name: value}))
        changed = [
            name
            for name, value_now in _state(raw).items()
            if before.get(name, value_now) != value_now
        ]
        check(
            not changed,
            f"for_runtime with {option.name} = {value!r} changes {', '.join(changed)} of the "
            "backend that other runtimes use. Return another object",
        )
        guarded = own if isinstance(own, BackendProxy) else BackendProxy(own)
        check(
            guarded.get_id() == subject.backend_id,
            f"for_runtime with {option.name} = {value!r} makes {guarded.get_id()!r}",
        )
    _run(subject, first, "after other runtimes were given other options")


def _state(backend: object) -> dict[str, object]:
    """State of an object, as far as its values can be compared directly or by their text."""
    plain = (bool, int, float, str, bytes, tuple, type(None))
    attributes = getattr(backend, "__dict__", {})
    return {n: v if isinstance(v, plain) else id(v) for n, v in attributes.items()}


def _other_values(subject: BackendUnderTest) -> Iterator[tuple[BackendOption, object]]:
    """Values other than the defaults that options of scope RUNTIME can have."""
    options = [o for o in subject.backend.options if o.scope is OptionScope.RUNTIME]
    if not options:
        raise NothingToKeepError("it declares no options of runtimes")
    for option in options:
        for value in allowed_values(option):
            if value != option.default:
                yield option, value


class _CountingAllocator(DefaultAllocator):
    """An allocator that knows its allocations."""

    def __init__(self) -> None:
        self.given: list[Array] = []
        self.num_given = 0
        self.strange: list[str] = []

    def allocate(self, size_bytes: int, alignment_bytes: int = ALIGNMENT_BYTES) -> Array:
        memory = super().allocate(size_bytes, alignment_bytes)
        memory[...] = 0x55
        self.given.append(memory)
        self.num_given += 1
        return memory

    def free(self, memory: Array) -> None:
        for number, allocated in enumerate(self.given):
            if allocated is memory:
                del self.given[number]
                return
        self.strange.append(f"memory of {np.shape(memory)} is freed that was not allocated")


def allocators_give_and_get_back(subject: BackendUnderTest) -> None:
    """An arena of the backend's own comes from the allocator that it takes, and goes back there."""
    allocator = _CountingAllocator()
    backend = _for_allocator(subject, allocator)
    for case in samples(subject):
        resources = NetworkResources(allocator=allocator)
        driven = Driven(backend, sample_bench(subject, case), resources)
        memories = [driven.memory() for _ in range(2)]
        check(
            allocator.num_given >= len(memories),
            f"the allocator is accepted, and was asked {allocator.num_given} times for "
            f"{len(memories)} working memories",
        )
        for memory in memories:
            driven.run(memory, "in memory of an application's allocator")
        for memory in memories:
            memory.release()
        allocator.num_given = 0
        del driven, memories, memory
    check(not allocator.strange, "; ".join(allocator.strange))
    left = len(allocator.given)
    check(not left, f"{left} pieces of the allocator's memory were not given back")


def allocators_do_not_stick(subject: BackendUnderTest) -> None:
    """A network without an allocator does not use that of another network."""
    allocator = _CountingAllocator()
    backend = _for_allocator(subject, allocator)
    _run(subject, backend, "after an allocator was accepted")
    check(
        not allocator.num_given,
        "the allocator that was asked about is used for a network that was given none",
    )


def _for_allocator(subject: BackendUnderTest, allocator: _CountingAllocator) -> BackendProxy:
    backend = BackendProxy(subject.raw_backend).for_runtime(options_of(subject))
    try:
        takes_it = backend.use_custom_memory_allocator(allocator)
    except BackendCapabilityError as error:
        raise NothingToKeepError(f"it takes no allocator: {error}") from error
    if not takes_it:
        raise NothingToKeepError("it takes no allocator")
    return backend


def contexts_can_be_closed(subject: BackendUnderTest) -> None:
    """Other runtimes on the same backend work as before after one is closed."""
    options = options_of(subject)
    backends = [backend_of_runtime(subject) for _ in range(2)]
    gone, stays = (backend.create_backend_context(options) for backend in backends)
    if gone is None or stays is None:
        raise NothingToKeepError("it has no contexts")
    driven = Driven(backends[1], sample_bench(subject, samples(subject)[0]))
    memory = driven.memory()
    _run(subject, backends[0], "with two runtimes")
    gone.close()
    driven.run(memory, "after the context of another runtime was closed")
    memory.release()
    del driven, memory
    stays.close()


def model_contexts_can_be_closed(subject: BackendUnderTest) -> None:
    """Other networks work as before after one is closed."""
    options = options_of(subject, OptionScope.MODEL)
    if not options:
        raise NothingToKeepError("it declares no options of networks")
    backend = backend_of_runtime(subject)
    gone, stays = (backend.create_backend_specific_model_context(options) for _ in range(2))
    if gone is None or stays is None:
        raise NothingToKeepError("it has no contexts of networks")
    case = samples(subject)[0]
    drivens = [
        Driven(backend, sample_bench(subject, case), NetworkResources(None, options, context))
        for context in (gone, stays)
    ]
    memories = [driven.memory() for driven in drivens]
    for driven, memory in zip(drivens, memories, strict=True):
        driven.run(memory, "with model options")
    memories[0].release()
    del drivens[0]
    gone.close()
    drivens[0].run(memories[1], "after the context of another network was closed")
    memories[1].release()
    stays.close()
