"""Rules about working memory: tensors that share it, executions that do not."""

from __future__ import annotations

from contextlib import suppress
from functools import partial

from armpy.errors import ArmpyError
from armpy.tensor import TensorInfo
from armpy_conformance.backend_under_test import BackendUnderTest
from armpy_conformance.case import Case
from armpy_conformance.contract.case import NothingToKeepError, check
from armpy_conformance.contract.demanding import enlarged
from armpy_conformance.contract.driven import Driven, backend_of_runtime, poison
from armpy_conformance.contract.growth import Repetition, check_growth
from armpy_conformance.contract.networks import (
    Bench,
    ChainBuilder,
    bench,
    chain,
    link_of,
    sample_bench,
    samples,
)
from armpy_conformance.differential_run import other_feeds

_LAYERS = 6
_ROWS = 64
"""Times the rows of a small case: the sizes of tensors become multiples of any alignment."""

_TIMES = 256
_ARENA_BYTES = 1 << 20
_GUARD_BYTES = 256
_BUDGET_S = 2.0


def _chained(subject: BackendUnderTest) -> Driven:
    """A chain that is long enough for tensors to take the place of others."""
    builder = chain(subject)
    value = builder.layer(builder.source)
    first = value
    for _ in range(_LAYERS - 1):
        value = builder.layer(value)
    builder.net.output("first", first)
    builder.net.output("last", value)
    return Driven(backend_of_runtime(subject), builder.bench(subject))


def _without_gaps(subject: BackendUnderTest) -> Driven:
    """A chain of larger tensors that are all outputs: each begins where another one ends."""
    for case in samples(subject):
        with suppress(ArmpyError):  # it does not take more rows
            larger = enlarged(case, _ROWS)
            link = link_of(larger)
            if link is not None:
                return Driven(backend_of_runtime(subject), _all_as_outputs(subject, larger, link))
    return _chained(subject)


def _all_as_outputs(subject: BackendUnderTest, case: Case, link: int) -> Bench:
    """A chain of layers, each of which gives an output."""
    builder = ChainBuilder(case, link)
    value = builder.source
    for number in range(_LAYERS):
        value = builder.layer(value)
        builder.net.output(f"y{number}", value)
    return builder.bench(subject)


def tensors_share_what_others_have_left(subject: BackendUnderTest) -> None:
    """Tensors lie where others lay before that are not needed any more; none that is changes."""
    for driven in (_chained(subject), _without_gaps(subject)):
        memory = driven.memory()
        for number in range(3):
            driven.run(memory, f"in execution {number + 1} in memory that tensors share")
        memory.release()


def executions_have_memory_of_their_own(subject: BackendUnderTest) -> None:
    """Two executions whose steps take turns do not see each other's tensors."""
    driven = _chained(subject)
    feeds = (dict(driven.bench.feeds), other_feeds(driven.bench.graph, driven.bench.feeds))
    benches = [bench(subject, driven.bench.graph, inputs) for inputs in feeds]
    memories = [driven.memory() for _ in benches]
    with driven.held():
        for memory, trial in zip(memories, benches, strict=True):
            memory.feed(trial.feeds)
        for step in driven.steps:
            for memory in memories:
                step.workload.execute(*memory.of(step))
        for memory, trial in zip(memories, benches, strict=True):
            trial.check(memory.read(), "beside another execution of the same network")
    for memory in memories:
        memory.release()


def idle_memory_can_be_given_back(subject: BackendUnderTest) -> None:
    """Executions stay right after workloads have given back their idle memory."""
    driven = _chained(subject)
    memory = driven.memory()
    for number in range(3):
        driven.run(memory, f"after idle memory was given back {number} times")
        for step in driven.steps:
            step.workload.free_idle_memory()
    memory.release()


def nothing_is_written_past_the_padding(subject: BackendUnderTest) -> None:
    """Executions write to their outputs and, where it is declared, to the padding after them."""
    backend = backend_of_runtime(subject)
    for case in samples(subject):
        driven = Driven(backend, sample_bench(subject, case))
        memory = driven.memory(_GUARD_BYTES)
        if memory.arena is not None:
            raise NothingToKeepError("its tensors lie in arenas of its own")
        driven.run(memory, "in memory with guards between tensors")
        check(
            memory.are_guards_whole,
            f"{case.operation.name} has written past an output, and past the "
            f"{driven.declared.padding_bytes} bytes to which padding_bytes rounds it up",
        )
        memory.release()


def arenas_can_be_made_again_and_again(subject: BackendUnderTest) -> None:
    """Freed memory of an arena is available to the next one, and memory does not grow."""
    backend = backend_of_runtime(subject)
    for case in samples(subject):
        driven = Driven(backend, sample_bench(subject, case))
        info = _filling(driven)
        size_bytes = driven.declared.room_bytes(info)
        arena = driven.factory.create_arena(size_bytes)
        if arena is None:
            raise NothingToKeepError("its tensors lie in arenas of the core's")
        arena.release()
        del arena
        check_growth(
            Repetition(
                partial(_make_and_release, driven, info, size_bytes),
                "arenas",
                _TIMES,
                data_bytes=_ARENA_BYTES,
                budget_s=_BUDGET_S,
            )
        )
        driven.run(driven.memory(), f"after {_TIMES} arenas were made and released")


def _filling(driven: Driven) -> TensorInfo:
    """A tensor as large as an arena."""
    info = next(iter(driven.sources.values())).info
    return info.with_shape((_ARENA_BYTES // info.data_type.dtype.itemsize,))


def _make_and_release(driven: Driven, info: TensorInfo, size_bytes: int) -> None:
    """Make an arena, write to a tensor in it as an execution does, and release it."""
    arena = driven.factory.create_arena(size_bytes)
    if arena is None:
        raise NothingToKeepError("it has an arena only now and then")
    handle = arena.create_tensor_handle(info, (0, 0), 0)
    with driven.held():  # a memory manager may have no memory between executions
        poison(handle)
    arena.release()
