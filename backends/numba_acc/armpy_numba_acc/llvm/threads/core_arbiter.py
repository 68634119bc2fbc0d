"""Arbiter of the cores: how long executions share processors and find workers.

Notes
-----
`armpy_numba_acc.machine.core_arbiter` says the layout of its memory,
`armpy_numba_acc.machine.execution` what an execution shares with its workers. All of it is written
with `CodeValue`: as functions that Numba translates and puts into the executor it took three
seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from armpy_numba_acc.llvm.calls import CallFields
from armpy_numba_acc.llvm.control import loop_while, when
from armpy_numba_acc.llvm.primitives import Definition, defined, linked
from armpy_numba_acc.llvm.threads.joining import await_definition
from armpy_numba_acc.llvm.threads.tickets import each_own, each_ticket
from armpy_numba_acc.llvm.threads.waiting import pause, read_clock
from armpy_numba_acc.llvm.values import I32, I64, Code, CodeValue, Number, choose, larger, smaller
from armpy_numba_acc.machine.core_arbiter import (
    ACTIVE,
    CROWD,
    FIRST,
    LAST,
    LIMIT,
    LOCK,
    PEAK,
    RUNNING,
    SEATS,
    SINCE,
    WAIT_US,
    WAITING,
    WINDOW_NS,
)
from armpy_numba_acc.machine.execution import (
    ASLEEP,
    OWNER,
    SLEEP_LOCK,
    ExecutionRecord,
)
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.machine.layout import word_of

_ENTER, _SHARE, _LEAVE = "armpy_claim_cores", "armpy_share_cores", "armpy_release_cores"

claim_cores = linked(_ENTER, 1, returns=True)
"""``(execution)`` begins when it is the execution's turn, and notifies its workers: returns the
number of its threads, or 0 if it was cancelled."""

share_cores = linked(_SHARE, 2, returns=True)
"""``(execution, num_threads)``, between two commands, lets go of workers that others should have,
and wakes the others; gives how many threads are left."""

release_cores = linked(_LEAVE, 2)
"""``(execution, num_threads)`` lets others have threads and seat, at the end."""

_WANTED, _GRANTED, _NEXT, _TURN, _TEAM = (
    word_of(ExecutionRecord, field) for field in ("num_threads", "granted", "next", "turn", "team")
)

_ACQUIRED = 1
"""CPython's ``PY_LOCK_ACQUIRED``."""


def arbiter_definitions(isa: Isa) -> str:
    """Functions that the three above and `await_shares` call, in LLVM's language."""

    def enter(code: Code, execution: CodeValue) -> CodeValue:
        return _Visitor(code, isa, execution).enter()

    def share(code: Code, execution: CodeValue, num_threads: CodeValue) -> CodeValue:
        return _Visitor(code, isa, execution).share(num_threads)

    def leave(code: Code, execution: CodeValue, num_threads: CodeValue) -> None:
        _Visitor(code, isa, execution).leave(num_threads)

    return defined(
        Definition(_ENTER, 1, enter, returns=True),
        Definition(_SHARE, 2, share, returns=True),
        Definition(_LEAVE, 2, leave),
        await_definition(isa),
    )


def _wait_until(code: Code, isa: Isa, look: Callable[[], CodeValue]) -> None:
    """Look until something is so, with pauses."""

    def turn(carried: list[CodeValue]) -> tuple[CodeValue, Sequence[CodeValue]]:
        (spins,) = carried
        is_so = look()

        def wait() -> list[CodeValue]:
            pause(code, isa, spins)
            return []

        when(is_so, list, wait)
        return is_so.equals(0), [spins + 1]

    loop_while(code, [code.integer(0)], turn)


class _ArbiterWords:
    """An arbiter's words; all methods but `locked` are for the holder of the lock."""

    def __init__(self, code: Code, isa: Isa, address: CodeValue) -> None:
        self.code, self.isa, self.address = code, isa, address

    def __getitem__(self, word: int) -> CodeValue:
        return self.address.load(I64, word)

    def __setitem__(self, word: int, value: Number) -> None:
        # Some words are looked at without the lock, too.
        self.address.store_shared(value, word)

    def locked(self, change: Callable[[], Sequence[CodeValue]]) -> list[CodeValue]:
        """Change an arbiter, which takes less than a microsecond; returns the change's result."""

        def is_taken() -> CodeValue:
            return self.address.exchanged(0, 1, LOCK).equals(0)

        _wait_until(self.code, self.isa, is_taken)
        results = list(change())
        self.address.store_shared(0, LOCK)
        return results

    def has_seat(self) -> CodeValue:
        """Return whether one more execution may begin."""
        return self[ACTIVE] < self[SEATS]

    def remember(self, num_executions: CodeValue, now: CodeValue) -> None:
        passed = now - self[SINCE]

        def begin_window() -> list[CodeValue]:
            # A window without executions is forgotten, too: the peak is that of an older one.
            self[CROWD] = choose(passed >= 2 * WINDOW_NS, 0, self[PEAK])
            self[PEAK] = 0
            self[SINCE] = now
            return []

        when(passed >= WINDOW_NS, begin_window)
        self[PEAK] = larger(self[PEAK], num_executions)

    def let_in(self, execution: CodeValue) -> CodeValue:
        """Count an execution as being under way; gives its number of threads."""
        self[ACTIVE] = self[ACTIVE] + 1
        num_sharers = larger(larger(self[ACTIVE] + self[WAITING], self[CROWD]), self[PEAK])
        wanted, limit = execution.load(I64, _WANTED), self[LIMIT]
        # Those that wait count as well: threads would have to be given back to them at once.
        fair = smaller(smaller(wanted, limit // num_sharers), limit - self[RUNNING])
        # A single execution has all threads that it asked for, even more than processors.
        granted = choose(num_sharers.equals(1), wanted, larger(fair, 1))
        self[RUNNING] = self[RUNNING] + granted
        return granted

    def admit(self) -> CodeValue:
        """Let those in for whom there is room now; the first of a chain, or 0."""

        def turn(carried: list[CodeValue]) -> tuple[CodeValue, Sequence[CodeValue]]:
            head, last = carried
            first = self[FIRST]
            can_enter = first.differs(0) & self.has_seat()

            def take() -> list[CodeValue]:
                self[FIRST] = first.load(I64, _NEXT)
                self[WAITING] = self[WAITING] - 1
                first.store(self.let_in(first), _GRANTED)
                return [choose(head.equals(0), first, head), first]

            return can_enter, when(can_enter, take, lambda: [head, last])

        none = self.code.integer(0)
        # They are woken once the arbiter is free again, as waking takes microseconds.
        head, last = loop_while(self.code, [none, none], turn)
        self[LAST] = choose(self[FIRST].equals(0), 0, self[LAST])

        def end_chain() -> list[CodeValue]:
            last.store(none, _NEXT)
            return []

        when(last.differs(0), end_chain)
        return head

    def join_queue(self, execution: CodeValue) -> None:
        """Append an execution to the queue."""
        for word in (_GRANTED, _NEXT):
            execution.store(self.code.integer(0), word)
        last = self[LAST]

        def begin() -> list[CodeValue]:
            self[FIRST] = execution
            return []

        def append() -> list[CodeValue]:
            last.store(execution, _NEXT)
            return []

        when(last.equals(0), begin, append)
        self[LAST] = execution
        self[WAITING] = self[WAITING] + 1

    def leave_queue(self, execution: CodeValue) -> None:
        """Take an execution out that waits."""

        def turn(carried: list[CodeValue]) -> tuple[CodeValue, Sequence[CodeValue]]:
            before, visitor = carried
            goes_on = visitor.differs(execution)

            def move() -> list[CodeValue]:
                return [visitor, visitor.load(I64, _NEXT)]

            return goes_on, when(goes_on, move, lambda: [before, visitor])

        before, _ = loop_while(self.code, [self.code.integer(0), self[FIRST]], turn)
        follower = execution.load(I64, _NEXT)

        def take_first() -> list[CodeValue]:
            self[FIRST] = follower
            return []

        def take_later() -> list[CodeValue]:
            before.store(follower, _NEXT)
            return []

        when(before.equals(0), take_first, take_later)
        self[LAST] = choose(follower.equals(0), before, self[LAST])
        self[WAITING] = self[WAITING] - 1


class _Visitor:
    """An execution that asks the arbiter."""

    def __init__(self, code: Code, isa: Isa, execution: CodeValue) -> None:
        self.code, self.isa, self.execution = code, isa, execution
        self.call = CallFields(ExecutionRecord, execution)
        self.arbiter = _ArbiterWords(code, isa, self.call.arbiter)

    def enter(self) -> CodeValue:
        """See `claim_cores`."""
        arbiter, now = self.arbiter, read_clock(self.code, self.isa)

        def ask() -> list[CodeValue]:
            arbiter.remember(arbiter[ACTIVE] + arbiter[WAITING] + 1, now)
            is_free = arbiter[FIRST].equals(0) & arbiter.has_seat()

            def queue() -> list[CodeValue]:
                arbiter.join_queue(self.execution)
                return [self.code.integer(0)]

            may_enter = is_free | self.call.is_patient.equals(0)
            return when(may_enter, lambda: [arbiter.let_in(self.execution)], queue)

        (granted,) = arbiter.locked(ask)
        (granted,) = when(granted.equals(0), lambda: [self._turn()], lambda: [granted])
        return when(granted > 1, lambda: [self._invite(granted)], lambda: [granted])[0]

    def _turn(self) -> CodeValue:
        """Sleep until others let the execution in; its number of threads, 0 if it was cancelled."""
        call = self.call

        def turn(_: list[CodeValue]) -> tuple[CodeValue, Sequence[CodeValue]]:
            at_any_signal = self.code.constant(I32, 0)
            limit_us = self.code.integer(WAIT_US)
            # The thread that lets it in sets the number first, and frees its lock once each time.
            is_let_in = call.acquire.called(I32, call.turn, limit_us, at_any_signal)
            is_asleep = is_let_in.differs(_ACQUIRED)
            may_stop = is_asleep & call.cancel.load_shared().differs(0)
            (has_left,) = when(may_stop, self._leave_queue, lambda: [self.code.integer(0)])
            return is_asleep & has_left.equals(0), [has_left]

        (has_left,) = loop_while(self.code, [self.code.integer(0)], turn)
        granted = [self.execution.load(I64, _GRANTED)]
        return choose(has_left.differs(0), 0, granted[0])

    def _leave_queue(self) -> list[CodeValue]:
        """Leave the queue unless the execution was just let in; returns whether it was."""

        def leave() -> list[CodeValue]:
            # Under the lock: it is either in the queue or let in, and never both.
            has_waited = self.execution.load(I64, _GRANTED).equals(0)

            def take_out() -> list[CodeValue]:
                self.arbiter.leave_queue(self.execution)
                return []

            when(has_waited, take_out)
            return [has_waited.unsigned(I64)]

        return self.arbiter.locked(leave)

    def share(self, num_threads: CodeValue) -> CodeValue:
        """See `share_cores`."""
        address = self.call.arbiter
        # Without the lock: this is asked between any two commands, and may be late by one.
        num_sharers = address.load_shared(ACTIVE) + address.load_shared(WAITING)
        fair = larger(address.load(I64, LIMIT) // larger(num_sharers, 1), 1)
        has_surplus = (num_sharers > 1) & (num_threads > fair)

        def let_go() -> list[CodeValue]:
            self._dismiss()
            self._give_back(num_threads - fair)
            return [self._invite(fair)]

        def keep() -> list[CodeValue]:
            each_own(self.execution, self._wake)
            return [num_threads]

        return when(has_surplus, let_go, keep, likely=False)[0]

    def leave(self, num_threads: CodeValue) -> None:
        """See `release_cores`."""

        def dismiss() -> list[CodeValue]:
            self._dismiss()
            return []

        when(num_threads > 1, dismiss)
        arbiter, now, release = self.arbiter, read_clock(self.code, self.isa), self.call.release

        def admit() -> list[CodeValue]:
            arbiter.remember(arbiter[ACTIVE] + arbiter[WAITING], now)
            arbiter[RUNNING] = arbiter[RUNNING] - num_threads
            arbiter[ACTIVE] = arbiter[ACTIVE] - 1
            return [arbiter.admit()]

        (chain,) = arbiter.locked(admit)

        def turn(carried: list[CodeValue]) -> tuple[CodeValue, Sequence[CodeValue]]:
            (execution,) = carried
            is_there = execution.differs(0)

            def wake() -> list[CodeValue]:
                # After the call the execution may end at any time.
                following = execution.load(I64, _NEXT)
                release.called(I64, execution.load(I64, _TURN))
                return [following]

            return is_there, when(is_there, wake, lambda: [execution])

        loop_while(self.code, [chain], turn)

    def _give_back(self, num_threads: CodeValue) -> None:
        """Let others have threads."""

        def change() -> list[CodeValue]:
            self.arbiter[RUNNING] = self.arbiter[RUNNING] - num_threads
            return []

        self.arbiter.locked(change)

    def _invite(self, num_threads: CodeValue) -> CodeValue:
        """Invite workers to the execution; returns the number of its threads.

        Those whom another execution has are left alone, and their share is given back.
        """
        wanted = num_threads - 1

        def ask(ticket: CodeValue, so_far: CodeValue) -> CodeValue:
            def take() -> list[CodeValue]:
                is_mine = (ticket + OWNER).exchanged(0, self.execution).equals(0)

                def invite() -> list[CodeValue]:
                    # The memory of the first one is the team's.
                    team = choose(so_far.equals(0), ticket, self.execution.load(I64, _TEAM))
                    self.execution.store(team, _TEAM)
                    # It joins from here on, at any time, also while commands run.
                    ticket.store_shared(team + so_far + 1)
                    self._wake(ticket)
                    return []

                when(is_mine, invite)
                return [is_mine.unsigned(I64)]

            return when(so_far < wanted, take, lambda: [self.code.integer(0)])[0]

        num_invited = each_ticket(self.execution, ask)

        def give_back() -> list[CodeValue]:
            self._give_back(wanted - num_invited)
            return []

        when(num_invited < wanted, give_back)
        return num_invited + 1

    def _dismiss(self) -> None:
        """Dismiss the workers, without waiting until they have noticed."""
        # All of them first: another execution may take the first one's ticket, which is the team,
        # as soon as it is free, and must not meet workers of this one there.
        each_own(self.execution, lambda ticket: ticket.store_shared(0))
        each_own(self.execution, lambda ticket: (ticket + OWNER).store_shared(0))

    def _wake(self, ticket: CodeValue) -> None:
        """Wake a worker if it sleeps; one that falls asleep just now sleeps through a command."""

        def wake() -> list[CodeValue]:
            def release() -> list[CodeValue]:
                self.call.release.called(I64, (ticket + SLEEP_LOCK).load(I64))
                return []

            when((ticket + ASLEEP).exchanged(1, 0).equals(1), release)
            return []

        when((ticket + ASLEEP).load_shared().differs(0), wake, likely=False)
