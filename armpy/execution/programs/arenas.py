"""Arenas of one execution, and the handles of the tensors in them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from armpy.backend import ITensorHandle
from armpy.compiler import OptimizedNetwork
from armpy.compiler.memory.plan import ArenaId, MemoryPlan, PlannedTensor
from armpy.core.vlog import wants_traceback
from armpy.errors import ArmpyError, BackendError, MemoryLimitError
from armpy.execution.memory.allocators import pooled_source
from armpy.execution.memory.arena_pool import arena_pool
from armpy.execution.steps.session import BackendSession, Constant
from armpy.graph import Value
from armpy.ops.operation import Array
from armpy.plugins.proxy.guarded_call import call_method
from armpy.plugins.proxy.memory import HandleFactoryProxy
from armpy.types import BackendId

if TYPE_CHECKING:
    from armpy.execution.programs.memory import StepMemory

_log = logging.getLogger("armpy.execution")


class OutOfMemoryError(Exception):
    """A backend could not make working memory; caught by callers that can do without it."""

    def __init__(self, backend_id: BackendId, cause: ArmpyError) -> None:
        super().__init__(str(cause))
        self.backend_id = backend_id
        self.cause = cause


class Holdings:
    """Resources taken from backends, to be given back, the last first."""

    def __init__(self) -> None:
        self._held: list[Callable[[], object]] = []

    def add(self, backend_id: BackendId, owner: object, method: str, *args: object) -> None:
        """Remember what to call to give something back."""
        self._held.append(lambda: call_method(backend_id, owner, method, *args))

    def give_back(self) -> None:
        """Give everything back; errors are only logged."""
        # The last first: imports lie in memory that was made before them.
        while self._held:
            try:
                self._held.pop()()
            except ArmpyError as error:
                _log.warning("%s", error, exc_info=wants_traceback(_log))


Constants: TypeAlias = Mapping[tuple[Value, BackendId], Constant]
"""By value and reader's backend."""


def make_constants(
    network: OptimizedNetwork, sessions: Mapping[BackendId, BackendSession]
) -> Constants:
    """Let every backend make a handle of each constant that its layers read.

    Raises OutOfMemoryError if a backend fails to make one.
    """
    constants: dict[tuple[Value, BackendId], Constant] = {}
    for layer in network.graph.layers:
        session = sessions[network.backend_ids[layer.id]]
        for value in filter(None, layer.inputs):
            try:
                constant = session.constants.get(value, session.factories[0])
            except ArmpyError as error:
                raise out_of_memory(session.backend_id, error) from error
            if constant is not None:
                constants[value, session.backend_id] = constant
    return constants


def make_handles(
    memory: StepMemory,  # whose they are
    plan: MemoryPlan,
    sessions: Mapping[BackendId, BackendSession],  # by backend id
    holdings: Holdings,  # receives all that has to be given back
) -> dict[Value, ITensorHandle]:
    """Make the arenas of one execution, and the handle of every tensor in them.

    Raises OutOfMemoryError if a backend fails to make something.
    """
    make: dict[ArenaId, Callable[[Value, PlannedTensor], ITensorHandle]] = {}
    handles: dict[Value, ITensorHandle] = {}
    offsets: dict[ArenaId, list[int]] = {}
    for tensor in plan.tensors.values():
        offsets.setdefault(tensor.arena, []).append(tensor.offset_bytes)
    for arena, size in plan.arenas.items():
        session = sessions[arena.backend_id]
        factory = _factory_of(arena, session, [size, *offsets.get(arena, [])])
        make[arena] = _making(memory, session, factory, size, holdings)
    for value, tensor in plan.tensors.items():
        try:
            handles[value] = make[tensor.arena](value, tensor)
        except ArmpyError as error:
            raise out_of_memory(tensor.arena.backend_id, error) from error
    return handles


def _making(
    memory: StepMemory,
    session: BackendSession,
    factory: HandleFactoryProxy,
    size_bytes: int,
    holdings: Holdings,
) -> Callable[[Value, PlannedTensor], ITensorHandle]:
    """Make one arena; what makes the handles of the tensors in it."""
    backend_id = session.backend_id
    try:
        arena = factory.create_arena(size_bytes)
        # It has the lifetimes of one network, so no other network can have it in turn.
        if arena is not None:
            holdings.add(backend_id, arena, "release")
            return lambda value, tensor: arena.create_tensor_handle(
                value.info, tensor.lifetime, tensor.offset_bytes
            )
        allocator = session.allocator

        def allocated() -> tuple[Array, Callable[[], object]]:
            elements = allocator.allocate(size_bytes, factory.block_bytes)
            return elements, partial(allocator.free, elements)

        # Networks that do not run together have it in turn, or each loaded one would keep its own.
        source = pooled_source(allocator)
        whole = arena_pool.take(
            memory, backend_id, source, size_bytes, factory.block_bytes, allocated
        )
        return lambda value, tensor: factory.create_tensor_handle(
            value.info, whole[tensor.offset_bytes :][: factory.room_bytes(value.info)]
        )
    except ArmpyError as error:
        raise out_of_memory(backend_id, error) from error


def _factory_of(
    arena: ArenaId, session: BackendSession, places: Sequence[int]
) -> HandleFactoryProxy:
    """The factory of an arena, for which the plan was made.

    Raises OutOfMemoryError if the backend has none, or one that declares more than when the plan
    was made, which may have been in another process.
    """
    try:
        factory = session.factory(arena.factory_id)
        if any(place % factory.block_bytes for place in places):
            raise BackendError(
                "the memory plan does not match the tensor handle factory's declarations",
                where=f"{session.backend_id} / {arena.factory_id}",
                expected=f"tensors at multiples of {factory.block_bytes} bytes",
                fix="Compile the model again",
            )
    except ArmpyError as error:
        raise out_of_memory(session.backend_id, error) from error
    return factory


def out_of_memory(backend_id: BackendId, error: ArmpyError) -> OutOfMemoryError:
    """Return the error of a backend that makes memory; Python's MemoryError as a typed one."""
    # The boundary to backends has wrapped it.
    if isinstance(error.__cause__, MemoryError):
        text = "the backend has no memory for one more execution"
        limit = MemoryLimitError(text, where=error.where, actual=str(error.__cause__))
        limit.__cause__ = error.__cause__
        error = limit
    return OutOfMemoryError(backend_id, error)
