"""Rules about the memory that a backend holds while networks run."""

from __future__ import annotations

from copy import copy
from dataclasses import replace

from armpy.backend import IBackendInternal, IMemoryManager, OptionValues
from armpy.execution import Runtime
from armpy.plugins import BackendRegistry
from armpy_conformance.backend_under_test import BackendUnderTest
from armpy_conformance.contract.case import NotApplicableError, NothingToKeepError, check
from armpy_conformance.contract.networks import sample_bench, samples


def manager_can_be_used_again(subject: BackendUnderTest) -> None:
    """A memory manager is acquired and released in turn, any number of times."""
    manager = subject.backend.create_memory_manager()
    if manager is None:
        raise NothingToKeepError("it has no memory manager")
    for _ in range(3):
        manager.acquire()
        manager.release()


def memory_is_held_while_running(subject: BackendUnderTest) -> None:
    """Memory is acquired before an execution and released after it; answers do not suffer."""
    log: list[str] = []
    runtime = Runtime(replace(subject.options, registry=_watched(subject, log)))
    for case in samples(subject):
        bench = sample_bench(subject, case)
        network_id = runtime.load_network(bench.graph)
        check(not log, f"the memory manager was called while a network was loaded: {log}")
        for number in range(3):
            bench.run(runtime, network_id, f"in execution {number + 1}")
            check(
                log == ["acquire", "release"],
                f"the memory manager was called out of order: {log}",
            )
            log.clear()
        runtime.unload_network(network_id)


def _watched(subject: BackendUnderTest, log: list[str]) -> BackendRegistry:
    """A registry with a copy of the backend, whose memory managers write a log."""
    if subject.backend.create_memory_manager() is None:
        raise NothingToKeepError("it has no memory manager")
    try:
        backend = _with_watched_managers(subject.raw_backend, [], log)
    except (TypeError, AttributeError) as error:
        raise NotApplicableError(f"it cannot be watched: {error}") from error
    registry = BackendRegistry()
    registry.register(subject.backend_id, lambda: backend)
    return registry


def _with_watched_managers(
    raw: IBackendInternal, watched: list[IMemoryManager], log: list[str]
) -> IBackendInternal:
    """A copy of a backend whose memory managers write a log, as do those of its runtimes' own."""
    backend = copy(raw)

    def create_watched() -> IMemoryManager | None:
        manager = raw.create_memory_manager()
        if manager is not None and all(manager is not other for other in watched):
            watched.append(manager)
            _watch(manager, log)
        return manager

    def for_runtime(options: OptionValues) -> IBackendInternal:
        own = raw.for_runtime(options)
        return backend if own is raw else _with_watched_managers(own, watched, log)

    backend.create_memory_manager = create_watched  # type: ignore[method-assign]
    backend.for_runtime = for_runtime  # type: ignore[method-assign]
    return backend


def _watch(manager: IMemoryManager, log: list[str]) -> None:
    """Let a memory manager write down when it is called."""
    acquire, release = manager.acquire, manager.release

    def logged_acquire() -> None:
        log.append("acquire")
        acquire()

    def logged_release() -> None:
        log.append("release")
        release()

    manager.acquire = logged_acquire  # type: ignore[method-assign]
    manager.release = logged_release  # type: ignore[method-assign]
