"""Rules about what a backend shares with its application: settings, output, inputs, forks."""

from __future__ import annotations

import faulthandler
import gc
import os
import select
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn

import numpy as np

from armpy.core.dataclass import dataclass
from armpy.errors import ArmpyError
from armpy.execution import Runtime
from armpy.ops.operation import Array
from armpy_conformance.backend_under_test import BackendUnderTest
from armpy_conformance.contract.case import (
    NotApplicableError,
    NothingToKeepError,
    ViolationError,
    check,
)
from armpy_conformance.contract.driven import Driven, ExecutionTensors, backend_of_runtime
from armpy_conformance.contract.every_operation import one_of_each
from armpy_conformance.contract.networks import Bench, sample_bench, samples
from armpy_conformance.contract.protected_memory import protected
from armpy_conformance.processes.process_state import ProcessState, captured_output

_FORK_LIMIT_S = 30.0
_MOST_BYTES = 4000
_END = "\0"
"""Stands in front of what a child says in the end, and after where it was before."""

_FORKS = 2
"""Children that must fail one after the other: the machine may have other things to do."""


def settings_stay(subject: BackendUnderTest) -> None:
    """Environment, signal handlers, random state and the like are afterwards as they were."""
    check(
        not subject.settings_changed,
        f"making the backend changes {'; '.join(subject.settings_changed)}. Leave it as it is",
    )
    with _unchanged("the first use of the backend"):
        benches = [sample_bench(subject, case) for case in samples(subject)]
    for bench in benches:
        _check_stages(subject, bench)
    with _unchanged("an operation"):
        everything = one_of_each(subject)
    for case in everything:
        bench = sample_bench(subject, case)
        with _unchanged(f"loading, executing and unloading {bench.operations}"):
            _load_and_run(subject.runtime, bench, "beside the application's settings")
    _in_a_thread(lambda: _check_stages(subject, benches[0]))


@contextmanager
def _unchanged(action: str) -> Iterator[None]:
    """Raise a `ViolationError` if the settings of the process or the thread change."""
    before = ProcessState.current()
    yield
    changes = before.changes()
    check(not changes, f"{action} changes {'; '.join(changes)}. Restore it")


def _check_stages(subject: BackendUnderTest, bench: Bench) -> None:
    """Check the state of the process after each stage of a network's life."""
    runtime = subject.runtime
    with _unchanged("a runtime"), Runtime(subject.options):
        pass
    with _unchanged(f"loading {bench.operations}"):
        network_id = runtime.load_network(bench.graph)
    with _unchanged(f"executing {bench.operations}"):
        bench.run(runtime, network_id, "beside the application's settings")
    with _unchanged(f"unloading {bench.operations}"):
        runtime.unload_network(network_id)


def _load_and_run(runtime: Runtime, bench: Bench, when: str) -> None:
    """Load a network, execute it once, check the answers, unload it."""
    network_id = runtime.load_network(bench.graph)
    bench.run(runtime, network_id, when)
    runtime.unload_network(network_id)


def _in_a_thread(action: Callable[[], None]) -> None:
    """Run an action in another thread, and raise its error here."""
    raised: list[Exception] = []

    def run() -> None:
        try:
            action()
        except Exception as error:  # noqa: BLE001 - raised again in the caller's thread
            raised.append(error)

    thread = threading.Thread(target=run, name="armpy-kit-settings")
    thread.start()
    thread.join()
    if raised:
        raise raised[0]


def nothing_is_printed(subject: BackendUnderTest) -> None:
    """Standard output and standard error belong to the application; logging is the way."""
    everything = dict.fromkeys((*samples(subject), *one_of_each(subject)))
    with captured_output() as output, Runtime(subject.options) as runtime:
        for case in everything:
            _load_and_run(runtime, sample_bench(subject, case), "with captured output")
    check(not output.texts, f"the backend writes {output}. Use logging")


def inputs_are_only_read(subject: BackendUnderTest) -> None:
    """Executions read inputs in memory that nothing can be written to, and leave them alone."""
    backend = backend_of_runtime(subject)
    for case in samples(subject):
        bench = sample_bench(subject, case)
        _check_application_inputs(subject.runtime, bench)
        driven = Driven(backend, bench)
        memory = driven.memory()
        memory.feed(bench.feeds)
        with driven.held(), protected(memory, driven.sources.values()):
            memory.execute()
            bench.check(memory.read(), "with inputs in read-only memory")
            _check_inputs(driven, memory)
            for call in memory.bound():
                completion = call()
                if completion is not None and hasattr(completion, "wait"):
                    completion.wait()
            bench.check(memory.read(), "bound to inputs in read-only memory")
            _check_inputs(driven, memory)
        memory.release()


def _check_application_inputs(runtime: Runtime, bench: Bench) -> None:
    """Execute with read-only arrays of the application."""
    feeds = {name: array.copy() for name, array in bench.feeds.items()}
    for array in feeds.values():
        array.flags.writeable = False
    network_id = runtime.load_network(bench.graph)
    bench.check(runtime.enqueue_workload(network_id, feeds), "with read-only inputs")
    runtime.unload_network(network_id)
    for name, array in feeds.items():
        same = array.tobytes() == bench.feeds[name].tobytes()
        check(same, f"an execution of {bench.operations} writes to the input '{name}'")


def _check_inputs(driven: Driven, memory: ExecutionTensors) -> None:
    """Check that the tensors of the inputs hold the given values."""
    for name, value in driven.sources.items():
        elements: Array = np.empty(value.info.known_shape, value.info.data_type.dtype)
        memory.handles[value].copy_out_to(elements)
        same = elements.tobytes() == driven.bench.feeds[name].tobytes()
        check(same, f"an execution of {driven.bench.operations} writes to the input '{name}'")


def forked_children_answer_or_refuse(subject: BackendUnderTest) -> None:
    """A forked child executes its parent's networks right, or gets an error; it does not hang."""
    if not hasattr(os, "fork"):
        raise NothingToKeepError("this system has no fork")
    runtime = subject.runtime
    benches = [sample_bench(subject, case) for case in samples(subject)]
    loaded = [(bench, runtime.load_network(bench.graph)) for bench in benches]
    for bench, network_id in loaded:
        bench.run(runtime, network_id, "before a fork")
    ends: list[_ChildEnd] = []
    for _ in range(_FORKS):
        ends.append(_in_a_forked_child(lambda: _run_all(runtime, loaded)))
        if not ends[-1].text and not ends[-1].is_late:
            break
    if ends[-1].text or ends[-1].is_late:
        # One child may be late where another one is wrong, which says more.
        ends.sort(key=lambda end: end.is_late, reverse=True)
    end = ends[-1]
    limit = f"a forked child executes for more than {_FORK_LIMIT_S:g} s"
    if end.is_late:  # a queue whose thread only the parent has: such backends forbid it in words
        raise NotApplicableError(f"{limit}: fork is to be forbidden in its documents. {end.text}")
    check(not end.text, f"in a forked child: {end.text}")
    for bench, network_id in loaded:
        bench.run(runtime, network_id, "after a fork")
        runtime.unload_network(network_id)


def _run_all(runtime: Runtime, loaded: list[tuple[Bench, int]]) -> str:
    """Execute networks; describe the wrong answers, empty if there are none."""
    for bench, network_id in loaded:
        try:
            bench.run(runtime, network_id, "in a forked child")
        except ViolationError as violation:
            return str(violation)
        except ArmpyError:  # it refuses, which is allowed
            continue
        except Exception as error:  # noqa: BLE001 - returned to the parent
            return f"{type(error).__name__}: {error}"
    return ""


@dataclass(frozen=True, slots=True)
class _ChildEnd:
    """End of a forked child."""

    text: str  # the failure; where the child was if it is late
    is_late: bool = False  # whether it did not end in time


def _in_a_forked_child(action: Callable[[], str]) -> _ChildEnd:
    """Run an action, which returns the failure's text, in a forked child with a time limit."""
    reading, writing = os.pipe()
    # Garbage of the parent may have finalizers that wait for threads, which a child has none of.
    gc.collect()
    gc.disable()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # some Pythons warn of forks beside threads
            child = os.fork()
    finally:
        gc.enable()
    if child == 0:
        _be_the_child(action, writing)
    os.close(writing)
    try:
        text, is_late = _read_in_time(reading)
        if is_late:
            os.kill(child, signal.SIGKILL)
    finally:
        os.close(reading)
        _, status = os.waitpid(child, 0)
    where, has_ended, problem = text.partition(_END)
    if has_ended or is_late:
        return _ChildEnd(problem if has_ended else where, is_late)
    return _ChildEnd(f"it ends with status {status}. {where}")


def _be_the_child(action: Callable[[], str], writing: int) -> NoReturn:
    """Write what an action returns, or where it is when half of the time has passed."""
    code = 1
    try:
        gc.disable()
        faulthandler.dump_traceback_later(_FORK_LIMIT_S / 2, file=writing)
        text = action()
        faulthandler.cancel_dump_traceback_later()
        os.write(writing, (_END + text).encode("utf-8", "replace")[:_MOST_BYTES])
        code = 0
    finally:
        os._exit(code)  # without the parent's exit handlers


def _read_in_time(reading: int) -> tuple[str, bool]:
    """Read a child's output until it ends, and whether it is late."""
    output, end_s = b"", time.monotonic() + _FORK_LIMIT_S
    poll = select.poll()  # `select` takes no descriptor above 1023
    poll.register(reading, select.POLLIN)
    while poll.poll(1e3 * max(0.0, end_s - time.monotonic())):
        part = os.read(reading, _MOST_BYTES)
        if not part:
            return output.decode("utf-8", "replace"), False
        output += part
    return output.decode("utf-8", "replace"), True
