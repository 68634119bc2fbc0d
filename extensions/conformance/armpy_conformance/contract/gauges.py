"""Rules about growth and about resources without a counter: handles, memory, times."""

from __future__ import annotations

import time
from collections.abc import ItemsView, Iterator, KeysView, ValuesView
from contextlib import suppress
from copy import deepcopy
from functools import partial
from typing import Any

from armpy.backend import (
    HostTensorHandle,
    IBackendInternal,
    ITensorHandle,
    NetworkResources,
    OptionValues,
    PreparationRequest,
    TensorHandleFactoryRegistry,
)
from armpy.backend.options import OptionScope, OptionValue
from armpy.backend.timing import ExecutionTiming, timed_by
from armpy.compiler import specialize
from armpy.errors import ArmpyError
from armpy.execution import Runtime
from armpy.graph import SubgraphView
from armpy.ops.operation import Array
from armpy_conformance.backend_under_test import BackendUnderTest
from armpy_conformance.case import Case
from armpy_conformance.contract.case import (
    NotApplicableError,
    NothingToKeepError,
    check,
)
from armpy_conformance.contract.demanding import (
    WEIGHTS_BYTES,
    enlarged,
    enlarged_bytes,
    is_taken,
    weighted_case,
)
from armpy_conformance.contract.driven import Driven, backend_of_runtime, options_of
from armpy_conformance.contract.growth import Repetition, check_growth
from armpy_conformance.contract.loops import taken_cases
from armpy_conformance.contract.networks import Bench, sample_bench, samples, with_constants
from armpy_conformance.contract.profiles import Record

_EXECUTIONS = 200
_LOADS = 60
_RUNTIMES = 30
_LOAD_BYTES = 512
"""Memory that a load may leave: caches of the interpreter and of the core are bounded."""

_TENSOR_BYTES = 1 << 16
_SLACK_S = 0.002


def every_map_is_unmapped(subject: BackendUnderTest) -> None:
    """A workload unmaps its maps, at least as often, where unmapping has an effect."""
    backend = backend_of_runtime(subject)
    has_any = False
    for case in samples(subject):
        driven = Driven(backend, sample_bench(subject, case))
        memory = driven.memory()
        handles = [h for h in memory.handles.values() if _has_unmap(h)]
        if not handles:
            continue
        has_any = True
        with driven.held():
            memory.feed(driven.bench.feeds)
            counts = [_counted(handle) for handle in handles]
            for number in range(3):
                for step in driven.steps:
                    step.workload.execute(*memory.of(step))
                for handle, (maps, unmaps) in zip(handles, counts, strict=True):
                    check(
                        len(maps) <= len(unmaps),
                        f"after {number + 1} executions of {case.operation.name}, {handle.info} "
                        f"was mapped {len(maps)} times and unmapped {len(unmaps)} times",
                    )
        memory.release()
    if not has_any:
        raise NothingToKeepError("unmap does nothing for its tensors")


def _has_unmap(handle: ITensorHandle) -> bool:
    """Return whether a tensor does anything when it is unmapped."""
    is_host = isinstance(handle, HostTensorHandle)
    return not is_host and type(handle).unmap is not ITensorHandle.unmap


def _counted(handle: ITensorHandle) -> tuple[list[None], list[None]]:
    """Let a tensor write down that it is mapped and unmapped."""
    kind = type(handle)
    maps: list[None] = []
    unmaps: list[None] = []

    def mapped(self: ITensorHandle, *, read: bool = True, write: bool = True) -> Array:
        maps.append(None)
        return kind.map(self, read=read, write=write)

    def unmapped(self: ITensorHandle) -> None:
        unmaps.append(None)
        kind.unmap(self)

    members = {"__slots__": (), "map": mapped, "unmap": unmapped, "__module__": kind.__module__}
    try:
        handle.__class__ = type(kind.__name__, (kind,), members)
    except TypeError as error:
        raise NotApplicableError(f"its tensors cannot be watched: {error}") from error
    return maps, unmaps


def nothing_grows_from_execution_to_execution(subject: BackendUnderTest) -> None:
    """After 200 executions there are as many tensors, files, threads and bytes as before them."""
    flows = tuple(taken_cases(subject))[:1]
    for case in (*samples(subject), *flows):
        _check_executions(subject, sample_bench(subject, case))
        larger = _of_bytes(subject, case, _TENSOR_BYTES)
        if larger is not None:
            _check_executions(subject, sample_bench(subject, larger), _TENSOR_BYTES)


def _check_executions(subject: BackendUnderTest, bench: Bench, data_bytes: int = 0) -> None:
    """Check that executions of a network leave nothing, and are right after many others."""
    runtime = subject.runtime
    network_id = runtime.load_network(bench.graph)
    feeds = dict(bench.feeds)
    name = f"executions of {bench.graph.layers[0].operation.name}"
    check_growth(
        Repetition(
            lambda: runtime.enqueue_workload(network_id, feeds),
            name,
            _EXECUTIONS,
            data_bytes=data_bytes,
        )
    )
    bench.run(runtime, network_id, f"after {_EXECUTIONS} executions")
    runtime.unload_network(network_id)


def nothing_grows_from_load_to_load(subject: BackendUnderTest) -> None:
    """After 60 loads there are as many tensors, files, threads and bytes as before them."""
    runtime = subject.runtime
    for bench, data_bytes in _loaded(subject):
        check_growth(
            Repetition(
                partial(_load_and_run, runtime, bench),
                f"loads of {bench.operations}",
                _LOADS,
                object_bytes=_LOAD_BYTES,
                data_bytes=data_bytes,
            )
        )


def nothing_grows_from_runtime_to_runtime(subject: BackendUnderTest) -> None:
    """After 30 runtimes there are as many tensors, files, threads and bytes as before them."""
    for bench, data_bytes in _loaded(subject):

        def action(bench: Bench = bench) -> None:
            with Runtime(subject.options) as runtime:
                _load_and_run(runtime, bench)

        check_growth(
            Repetition(
                action,
                f"runtimes that run {bench.operations}",
                _RUNTIMES,
                object_bytes=_LOAD_BYTES,
                data_bytes=data_bytes,
            )
        )


def _load_and_run(runtime: Runtime, bench: Bench) -> None:
    """Load a network with constants of its own, execute it once, unload it."""
    network_id = runtime.load_network(deepcopy(bench.graph))
    runtime.enqueue_workload(network_id, dict(bench.feeds))
    runtime.unload_network(network_id)


def _loaded(subject: BackendUnderTest) -> Iterator[tuple[Bench, int]]:
    """A small network, one with large weights, one with large tensors; and bytes of the large."""
    first = samples(subject)[0]
    yield sample_bench(subject, first), 0
    weighted = weighted_case(subject)
    if weighted is not None:
        yield Bench(weighted.graph(), weighted.feeds(), {}), WEIGHTS_BYTES
    larger = _of_bytes(subject, first, _TENSOR_BYTES)
    if larger is not None:
        yield Bench(larger.graph(), larger.feeds(), {}), _TENSOR_BYTES


def _of_bytes(subject: BackendUnderTest, case: Case, size_bytes: int) -> Case | None:
    """A case with its inputs repeated to so many bytes; None if it or the backend refuses them."""
    once = enlarged_bytes(case, 1)
    if not once:
        return None
    with suppress(ArmpyError):
        larger = enlarged(case, -(-size_bytes // once))
        return larger if is_taken(subject, larger) else None
    return None


def neighbours_come_and_go(subject: BackendUnderTest) -> None:
    """Networks answer as before while others beside them are unloaded, and loaded again."""
    pairs = with_constants(subject)
    cases = list(dict.fromkeys((*samples(subject), *(case for pair in pairs for case in pair))))
    benches = [sample_bench(subject, case) for case in cases]
    with Runtime(subject.options) as runtime:
        loaded = [runtime.load_network(bench.graph) for bench in benches]
        for turn in range(2 * len(benches)):
            place = (turn * 2 + turn // len(benches)) % len(benches)
            runtime.unload_network(loaded[place])
            for number, bench in enumerate(benches):
                if number != place:
                    bench.run(runtime, loaded[number], "after a neighbour was unloaded")
            # A new object takes the place of the one that has gone, and may look the same.
            other = (place + 1) % len(benches) if turn % 2 else place
            benches[place] = sample_bench(subject, cases[other])
            loaded[place] = runtime.load_network(benches[place].graph)
            for number, bench in enumerate(benches):
                bench.run(runtime, loaded[number], "after a neighbour was loaded again")


class _ReadOptions(dict[str, OptionValue]):
    """Values of options that know which of them were looked at."""

    def __init__(self, values: OptionValues, read: set[str]) -> None:
        super().__init__(values)
        self._read = read

    def __getitem__(self, name: str) -> OptionValue:
        self._read.add(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:  # Any: as of every mapping
        self._read.add(name)
        return super().get(name, default)

    def __iter__(self) -> Iterator[str]:
        self._read.update(super().keys())
        return super().__iter__()

    def keys(self) -> KeysView[str]:  # type: ignore[override]  # as of every mapping
        self._read.update(super().keys())
        return KeysView(self)

    def items(self) -> ItemsView[str, OptionValue]:  # type: ignore[override]
        return ItemsView(self)

    def values(self) -> ValuesView[OptionValue]:  # type: ignore[override]
        return ValuesView(self)


def every_option_is_read(subject: BackendUnderTest) -> None:
    """Each option is read when something is made for a runtime or a network."""
    declared = tuple(subject.raw_backend.options)
    if not declared:
        raise NothingToKeepError("it declares no options")
    read: set[str] = set()
    by_scope = {
        scope: _ReadOptions(options_of(subject, scope), read)
        for scope in (OptionScope.RUNTIME, OptionScope.MODEL)
    }
    own = subject.raw_backend.for_runtime(by_scope[OptionScope.RUNTIME])
    context = own.create_backend_context(by_scope[OptionScope.RUNTIME])
    for case in samples(subject):
        _make_all(own, by_scope[OptionScope.MODEL], sample_bench(subject, case))
    if context is not None:
        context.close()
    idle = [option.name for option in declared if option.name not in read]
    check(not idle, f"nothing looks at the value of {', '.join(idle)}: it changes nothing")


def _make_all(backend: IBackendInternal, options: OptionValues, bench: Bench) -> None:
    """Make everything for a network that depends on options of networks."""
    context = backend.create_backend_specific_model_context(options)
    profiling = backend.create_backend_profiling_context(options, Record())
    manager = backend.create_memory_manager()
    resources = NetworkResources(
        manager, options, context, profiling=None, profiling_context=profiling
    )
    backend.get_layer_support(PreparationRequest(options))
    whole = specialize(bench.graph)
    view = SubgraphView.of(whole, whole.layers)
    backend.optimize_subgraph_view(view, PreparationRequest(options))
    backend.create_workload_factory(resources)
    registry = TensorHandleFactoryRegistry()
    backend.register_tensor_handle_factories(registry, resources)
    if context is not None:
        context.close()


def device_times_are_no_longer_than_the_clocks(subject: BackendUnderTest) -> None:
    """An execution's time on the device is not longer than its whole time."""
    backend = backend_of_runtime(subject)
    has_times = False
    for case in samples(subject):
        larger = _of_bytes(subject, case, 1 << 20) or case
        driven = Driven(backend, Bench(larger.graph(), larger.feeds(), {}))
        memory = driven.memory()
        shares = []
        for _ in range(3):
            timing = ExecutionTiming()
            with driven.held(), timed_by(timing):
                memory.feed(driven.bench.feeds)
                started = time.perf_counter()
                for step in driven.steps:
                    step.workload.execute(*memory.of(step))
                wall_s = time.perf_counter() - started
            if timing.on_device_ns is None:
                break
            has_times = True
            device_s = timing.on_device_ns / 1e9
            check(
                device_s <= wall_s + _SLACK_S,
                f"an execution of {case.operation.name} that took {wall_s * 1e6:.0f} us is said "
                f"to have taken {device_s * 1e6:.0f} us on the device",
            )
            shares.append(device_s / wall_s)
        memory.release()
        check(
            not shares or max(shares) >= _LEAST_SHARE,
            f"executions of {case.operation.name} are said to take {max(shares, default=0):.1e} of "
            "their time on the device: are these microseconds?",
        )
    if not has_times:
        raise NothingToKeepError("it does not report the times of its device")


_LEAST_SHARE = 1 / 200
"""Less of the time than this is the wrong unit, or nothing."""
