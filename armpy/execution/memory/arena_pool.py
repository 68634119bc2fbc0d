"""Arenas that networks of one backend which do not run together have in turn."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # a model that was prepared ahead of time starts without all this
    from armpy.ops.operation import Array

    class ArenaUser(Protocol):
        """A working memory whose handles lie in arenas that others may have in turn."""

        arenas: list[PooledArena]  # what it has handles in

        def rest(self) -> bool:
            """Let others have its arenas, with the pool's lock held; whether it was idle."""

        def forget(self) -> bool:
            """Be its program's no more, with the pool's lock held, as it rests; whether it was."""

        def free(self) -> None:
            """Give everything back at once."""


class PooledArena:
    """Memory of the host for one execution at a time, of any network that fits into it."""

    __slots__ = ("__weakref__", "backend_id", "memory", "owner", "source", "users")

    def __init__(
        self,
        backend_id: str,  # whose tensors lie in it
        source: object,  # where it comes from; see `ArenaPool.take`
        memory: Array,  # uint8
        free: Callable[[], object],  # gives it back; called with the last reference to the arena
    ) -> None:
        self.backend_id = backend_id
        self.source = source
        self.memory = memory
        # Weak, both: users keep the arena, and one that is gone leaves it to the others.
        # To the working memory whose executions use it; they do so without asking.
        self.owner: weakref.ref[ArenaUser] | None = None
        # Every working memory with handles in it, and how many bytes that needs.
        self.users: weakref.WeakKeyDictionary[ArenaUser, int] = weakref.WeakKeyDictionary()
        weakref.finalize(self, free).atexit = False  # their owners, such as runtimes, end before

    def is_vacated(self, claimant: ArenaUser) -> bool:
        """Return whether no other owner uses it, or its owner was idle and has released it."""
        owner = None if self.owner is None else self.owner()
        # One that executes does not rest: the claimant gets new memory, as to wait could take long.
        return owner is None or owner is claimant or owner.rest()


class ArenaPool:
    """The arenas of the process that working memories have handles in.

    It keeps none: an arena goes with the last working memory that has handles in it. An arena is
    its owner's until another one is needed while the owner is idle; so executions of a network
    that has the arena to itself do not ask.

    Attributes
    ----------
    lock : RLock
        Held while owners change. Reentrant, as the garbage collector may end whatever it likes.
    """

    def __init__(self) -> None:
        self._reset()
        self._arenas: list[weakref.ref[PooledArena]] = []
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._reset)

    def _reset(self) -> None:
        """Begin with a lock that is free, as a child process does."""
        self.lock = threading.RLock()

    def take(
        self,
        claimant: ArenaUser,
        backend_id: str,
        source: object,  # memory of one source can stand for other memory of it: an allocator
        size_bytes: int,
        alignment_bytes: int,
        # Gives new memory, and what gives that back.
        allocate: Callable[[], tuple[Array, Callable[[], object]]],
    ) -> Array:
        """Memory for handles of a working memory, which owns it now."""
        with self.lock:
            alive = self._alive()
            # By identity: `pooled_source` gives one object for allocators whose memory is alike.
            ours = [
                arena
                for arena in alive
                if arena.backend_id == backend_id
                and arena.source is source
                and arena.memory.ctypes.data % alignment_bytes == 0
            ]
            arena, given_up = self._found(claimant, ours, size_bytes)
            if arena is not None:
                self._own(claimant, arena, size_bytes)
                return arena.memory
        del alive, ours  # outside the lock: an allocator is called with the last reference
        _free(given_up)
        # Without the lock: an application's allocator may take its time, and locks of its own.
        new_arena = PooledArena(backend_id, source, *allocate())
        with self.lock:
            self._own(claimant, new_arena, size_bytes)
            # The dead ones leave when there is a new one, so that none needs a callback.
            self._arenas = [other for other in self._arenas if other() is not None]
            self._arenas.append(weakref.ref(new_arena))
        return new_arena.memory

    def _own(self, claimant: ArenaUser, arena: PooledArena, size_bytes: int) -> None:
        """Note whose it is."""
        arena.owner = weakref.ref(claimant)
        arena.users[claimant] = size_bytes
        claimant.arenas.append(arena)

    def _alive(self) -> list[PooledArena]:
        """All arenas; the caller drops them outside the lock."""
        return [arena for reference in self._arenas if (arena := reference()) is not None]

    def _found(
        self, claimant: ArenaUser, arenas: Sequence[PooledArena], size_bytes: int
    ) -> tuple[PooledArena | None, list[ArenaUser]]:
        """The smallest arena that will do; else whom the largest that will not is taken from."""
        # A working memory with several arenas uses them at the same time.
        ours = [arena for arena in arenas if arena not in claimant.arenas]
        ours.sort(key=lambda arena: arena.memory.nbytes)
        # Small ones first: large ones are left for those who have no choice.
        large = [arena for arena in ours if arena.memory.nbytes >= size_bytes]
        for arena in large:
            if arena.is_vacated(claimant):
                return arena, []
        # The one that is nearly enough goes back before a larger one is made: not both take room.
        for arena in reversed(ours[: len(ours) - len(large)]):
            if arena.is_vacated(claimant):
                return None, _given_up(arena)
        return None, []

    def leave(self, memory: ArenaUser) -> None:
        """Forget a working memory whose handles are not used any more."""
        with self.lock:
            left, memory.arenas = memory.arenas, []
            for arena in left:
                arena.users.pop(memory, None)
                if arena.owner is not None and arena.owner() is memory:
                    arena.owner = None
        # Outside the lock the last reference may go, and an allocator be called.

    def claim(self, memory: ArenaUser) -> bool:
        """Let a released working memory use its arenas again, if no other one does."""
        if not all([arena.is_vacated(memory) for arena in memory.arenas]):
            return False
        for arena in memory.arenas:
            arena.owner = weakref.ref(memory)
        return True

    def discard_oversized(self) -> None:
        """Give back what lies idle and is far larger than those need who are left."""
        given_up: list[ArenaUser] = []
        with self.lock:
            alive = self._alive()
            for arena in alive:
                needed = max(arena.users.values(), default=0)
                owner = None if arena.owner is None else arena.owner()
                is_oversized = arena.memory.nbytes > 2 * needed
                if is_oversized and (owner is None or owner.rest()):
                    given_up += _given_up(arena)
        _free(given_up)


def _given_up(arena: PooledArena) -> list[ArenaUser]:
    """All working memories with handles in an arena, which lie idle, taken from their programs."""
    return [user for user in [*arena.users] if user.forget()]


def _free(memories: list[ArenaUser]) -> None:
    """Give working memories back, without the pool's lock: allocators take locks of their own."""
    for memory in memories:
        memory.free()


arena_pool = ArenaPool()
"""That of the process."""
