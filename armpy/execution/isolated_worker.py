"""Carries out the application's requests in the worker."""

from __future__ import annotations

import _thread
import gc
import json
import logging
import mmap
import os
import pickle
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import numpy as np

from armpy.backend import (
    Cancellation,
    ExecutionTiming,
    ILayerSupport,
    PreparationRequest,
    ReasonCode,
    cancellable,
    timed_by,
)
from armpy.backend.preparation import postponed_compilation
from armpy.compiler.compiled_cache import saved_programs
from armpy.core.processes.attachments import Attachments
from armpy.core.processes.confinement import in_force
from armpy.core.processes.fitness import LONGEST_START_S, NO_MEMORY, UnfitError
from armpy.core.processes.protocol import error_as_fields, shortened
from armpy.core.processes.worker import record_line
from armpy.execution.loaded_network import LoadedNetwork
from armpy.execution.runtime import Runtime
from armpy.execution.setup.options import RuntimeOptions
from armpy.execution.setup.properties import NetworkProperties
from armpy.graph import Graph, SubgraphView
from armpy.plugins import BackendRegistry
from armpy.plugins.isolation.messages import (
    CLOSE,
    CONFIGURE,
    DONE,
    GO_TIMED,
    LOAD,
    MAX_FAILURE_BYTES,
    OPEN,
    PREPARE,
    RELEASE,
    SUPPORT,
    BackendSource,
    facts_fields,
)
from armpy.plugins.isolation.parts import graph_of_view
from armpy.plugins.isolation.shared_block import TensorLayout, device_time, map_block
from armpy.plugins.proxy.facts import read_facts
from armpy.plugins.proxy.guard import BackendProxy
from armpy.plugins.proxy.guarded_call import checked_support

_log = logging.getLogger("armpy.plugins.isolation.worker")
_CORE_LOGGERS = ("armpy.core", "armpy.compiler", "armpy.execution", "armpy.plugins")

_SHORT = MAX_FAILURE_BYTES // (6 * 6)
"""Characters of each text of an error that is too long for a line: six take six bytes each."""

_LONGEST_REASON = 2000
"""Characters of a refusal's text that are sent."""


class StopFlag(Cancellation):
    """A cancellation that the application sets in shared memory."""

    __slots__ = ()

    def __init__(
        self,
        block: mmap.mmap,  # its first int64 is not 0 once executions are to stop
    ) -> None:
        flag = np.frombuffer(block, np.int64, 1)
        self.address = int(flag.ctypes.data)
        self._flag = flag.data
        # The application has it, and sets the flag when it comes.
        self.deadline_s = None


class _Records(logging.Handler):
    """Sends log records of the backend's code to the application."""

    def emit(self, record: logging.LogRecord) -> None:
        # Those of the core concern this process, and its failures reach the application as errors.
        if not record.name.startswith(_CORE_LOGGERS):
            text = f"{record.name}: {record.getMessage()}"
            os.write(2, record_line(record.levelno, text))
        elif logging.lastResort is not None and record.levelno >= logging.WARNING:
            logging.lastResort.handle(record)


class BackendServer:
    """One backend, and the parts of networks that it has prepared."""

    def __init__(self) -> None:
        self._registry: BackendRegistry | None = None
        self._source: BackendSource | None = None
        self._runtime: Runtime | None = None
        self._backend: BackendProxy | None = None
        self._parts: dict[int, int] = {}
        self._asked: ILayerSupport | None = None  # keeps programs for the parts
        self._does: dict[str, Callable[..., Mapping[str, object]]] = {
            LOAD: self._load,
            CLOSE: self._close,
            CONFIGURE: self._configure,
            SUPPORT: self._support,
            PREPARE: self._prepare,
            OPEN: self._open,
            RELEASE: self._release,
        }

    def answer(self, request: Any, attachments: Attachments) -> Mapping[str, object]:
        """Carry out the request."""  # Any: a tuple of the kind and what belongs to it
        kind, *arguments = request
        leading = (attachments,) if kind in (SUPPORT, PREPARE, OPEN) else ()
        return self._does[kind](*leading, *arguments)

    def _load(self, source: BackendSource, log_level: int) -> Mapping[str, object]:
        logging.basicConfig(handlers=[_Records()], level=log_level)
        self._registry, backend = source.load()
        self._source = source
        return facts_fields(read_facts(backend)) | {"in_force": in_force()}

    def _configure(self, options: Mapping[str, object]) -> Mapping[str, object]:
        assert self._source is not None  # the first request
        backend_id = self._source.backend_id
        self._runtime = runtime = Runtime(
            RuntimeOptions(
                backends=[backend_id],
                registry=self._registry,
                backend_options={backend_id: options} if options else {},
                # None, as the application stops what takes too long.
                loop_timeout_s=None,
                memory_limit_bytes=1 << 62,  # the application has its own
                # Places have threads of their own.
                execution_threads=1,
                caching=self._source.caching,
            )
        )
        self._backend = runtime.backends[0]
        # Objects loaded by now stay; collections need not walk them during executions.
        gc.freeze()
        return {}

    def _support(
        self,
        attachments: Attachments,
        about: tuple[Any, ...],  # a layer, or what `_unpacked` takes. Any: as both are
        model_options: Mapping[str, Any],
        relaxed: bool,
        postpones: bool,
    ) -> Mapping[str, object]:
        backend = self._backend
        assert backend is not None  # it is configured first
        with postponed_compilation(postpones):
            request = PreparationRequest(model_options, relaxed=relaxed)
            support: ILayerSupport = backend.get_layer_support(request)
            answers: Sequence[object]
            if attachments.files:
                self._asked = support
                graph, *_ = _unpacked(attachments.files[0], *about)
                caching = self._source.caching if self._source else None

                def as_sent(view: SubgraphView) -> SubgraphView:
                    """A part as it comes to be prepared, with other names of its inputs."""
                    part = graph_of_view(view)
                    return SubgraphView.of(part, part.layers)

                with saved_programs(graph, backend, request, caching, as_sent):
                    answers = support.are_layers_supported(graph.layers)
            else:
                answers = [support.is_layer_supported(*about)]
        return {"answers": [*map(_support_fields, answers)]}

    def _prepare(
        self,
        attachments: Attachments,
        number: int,
        pickle_bytes: int,
        buffers: Sequence[tuple[int, int]],
        postpones: bool,
    ) -> Mapping[str, object]:
        graph, model_options, relaxed = _unpacked(attachments.files[0], pickle_bytes, buffers)
        assert self._runtime is not None  # it is configured first
        assert self._source is not None
        options = {self._source.backend_id: model_options} if model_options else {}
        optimizer = replace(self._runtime.options.optimizer_options(), relaxed=relaxed)
        properties = NetworkProperties(model_options=options, optimizer=optimizer)
        with postponed_compilation(postpones):
            self._parts[number] = self._runtime.load_network(graph, properties)
        return {}

    def _close(self) -> Mapping[str, object]:
        """Let the backend close its devices."""
        if self._runtime is not None:
            self._runtime.close()
        self._asked = self._runtime = self._backend = None
        self._parts.clear()
        gc.unfreeze()
        gc.collect()  # a device may be closed with its last program
        return {}

    def _release(self, number: int) -> Mapping[str, object]:
        assert self._runtime is not None  # it is configured first
        network_id = self._parts.pop(number, None)
        if network_id is not None:
            self._runtime.unload_network(network_id)
        return {}

    def _open(self, attachments: Attachments, number: int) -> Mapping[str, object]:
        """Execute a part whenever the application says so, in a thread of its own."""
        assert self._runtime is not None  # it is configured first
        self._asked = None  # all parts are prepared when the first one is executed
        network = self._runtime.get_network(self._parts[number])
        block = map_block(attachments.files[0])
        call = bound_call(network, block)
        timed = timed_call(call, block)
        connection = attachments.sockets[0].dup()  # the request's is closed when it is answered
        has_begun = _thread.allocate_lock()
        has_begun.acquire()

        def execute() -> None:
            has_begun.release()
            _execute(connection, call, timed)

        try:
            # Not by `Thread.start`, which waits for ever for one that has no memory to begin with.
            ident = _thread.start_new_thread(execute, ())
            if not has_begun.acquire(timeout=LONGEST_START_S):
                raise UnfitError(NO_MEMORY)
        except BaseException:
            connection.close()
            raise
        return {"thread": ident}


def _unpacked(
    descriptor: int, pickle_bytes: int, buffers: Sequence[tuple[int, int]]
) -> tuple[Graph, dict[str, Any], bool]:  # Any: as the options are
    """The graph of a `PackedPart`, the options of the model, and whether float32 is relaxed."""
    # Constants are used where they lie, and the next worker is to find the same bytes.
    whole = memoryview(map_block(descriptor, writable=False))
    places = [whole[start : start + size] for start, size in buffers]
    graph, model_options, relaxed = pickle.loads(whole[:pickle_bytes], buffers=places)
    assert isinstance(graph, Graph)  # the application's word
    return graph, model_options, relaxed


def _support_fields(answer: object) -> dict[str, object]:
    """A backend's answer about a layer, as JSON."""
    support = checked_support(answer)
    code = support.code or ReasonCode.OTHER
    text = support.text[:_LONGEST_REASON]
    return {"is_supported": support.is_supported, "code": code.value, "text": text}


def bound_call(network: LoadedNetwork, block: mmap.mmap) -> Callable[[], object]:
    """Return a function that executes a part once, with tensors in shared memory."""
    graph = network.graph
    infos = [value.info for value in (*graph.inputs, *graph.outputs)]
    arrays = TensorLayout(infos).arrays(block)
    inputs, outputs = arrays[: len(graph.inputs)], arrays[len(graph.inputs) :]
    prepared = network.prepared_for(inputs)
    with ExitStack() as stack:
        if prepared.stops_in_place:
            # Others could not stop: the application ends the process when they are late.
            stack.enter_context(cancellable(StopFlag(block)))
        return prepared.bind(inputs, outputs)


def timed_call(call: Callable[[], object], block: mmap.mmap) -> Callable[[], object]:
    """Return a function that executes a part once, and records the time of the device."""
    target = device_time(block)

    def execute() -> None:
        timing = ExecutionTiming()
        with timed_by(timing):
            call()
        target[0] = -1 if timing.on_device_ns is None else timing.on_device_ns

    return execute


def _execute(
    connection: socket.socket, call: Callable[[], object], timed: Callable[[], object]
) -> None:
    receive, send, owner = connection.recv, connection.sendall, os.getpid()
    try:
        while command := receive(1):
            answer = DONE
            try:
                if command == GO_TIMED:
                    timed()
                else:
                    call()
            except BaseException as error:  # noqa: BLE001 - worker boundary: it is the answer
                answer = failure_line(error)
            if os.getpid() != owner:
                os._exit(0)  # a child that the backend has forked, and the worker answers itself
            send(answer)
    except OSError as error:  # the application waits no longer
        _log.debug("an execution's place is closed: %s", error)
    finally:
        connection.close()


def failure_line(error: BaseException) -> bytes:
    """Return the line of an execution's failure."""
    fields = error_as_fields(error)
    line = json.dumps(fields)
    if len(line) >= MAX_FAILURE_BYTES:
        line = json.dumps(shortened(fields, _SHORT))
    return line.encode() + b"\n"
