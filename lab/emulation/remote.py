"""Programs for Arm, compiled here and run in an emulated process.

Notes
-----
Emulated code takes ten times as long as the processor's own and more, Python's and LLVM's like any
other. So everything but the compiled kernels runs here: networks are made, placed and lowered, and
kernels compiled, by the processor's own code, for another one's instruction set.
"""

from __future__ import annotations

import atexit
import itertools
import math
import subprocess
import weakref
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
from armpy_numba_acc import options
from armpy_numba_acc.llvm import host as llvm_host
from armpy_numba_acc.machine.isa import Isa, make_isa
from armpy_numba_acc.machine.kernel import Kernel
from armpy_numba_acc.program.program import Program
from armpy_numba_acc.runtime import instance as instances
from armpy_numba_acc.runtime import workload
from armpy_numba_acc.runtime.threads import WORKER
from armpy_numba_acc.store import host as store_host
from armpy_numba_acc.store.objects import object_codes

from armpy_nnapi.conformance.random_graphs import runner as graphs_runner
from armpy_nnapi.conformance.vectors import runner as vectors_runner
from emulation.environment import Environment, default_environment
from emulation.worker import read_message, write_message

TRIPLE = "aarch64-unknown-linux-gnu"

PROCESSORS = {
    "i8mm": "max",
    "neon": "neoverse-n1",
    "neon-basic": "cortex-a72",
    "portable": "cortex-a72",
}
"""Which processor, in qemu's words, has an instruction set and nothing better."""

_FEATURES = {
    "i8mm": frozenset({"neon", "fullfp16", "dotprod", "i8mm", "bf16"}),
    "neon": frozenset({"neon", "fullfp16", "dotprod"}),
    "neon-basic": frozenset({"neon"}),
    "portable": frozenset[str](),
}


def arm_isa(name: str) -> Isa:
    """An instruction set as the emulated processor has it."""
    return make_isa(name, TRIPLE, "generic", _FEATURES[name])


class Peer:
    """An emulated process that runs programs.

    Parameters
    ----------
    environment : Environment
    processor : str
    """

    def __init__(self, environment: Environment, processor: str) -> None:
        command = environment.command(processor, ["-m", "lab.emulation.worker"])
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._kernels: set[tuple[str, Kernel]] = set()
        atexit.register(self.close)

    def ask(self, *request: object) -> Any:  # Any: whatever is answered
        """Have something done."""
        assert self._process.stdin is not None  # both are pipes
        assert self._process.stdout is not None
        write_message(self._process.stdin, request)
        answer = read_message(self._process.stdout)
        if answer is None:
            raise RuntimeError(f"the emulated process died: {self._process.wait()}")
        kind, value = answer
        if kind == "raised":
            raise value
        if kind == "failed":
            raise RuntimeError(f"in the emulated process: {value}")
        return value

    def send_kernels(self, kernels: Sequence[Kernel], isa: Isa) -> None:
        """Let the process have kernels that it does not have yet."""
        new = [
            kernel for kernel in dict.fromkeys(kernels) if (isa.key, kernel) not in self._kernels
        ]
        if new:
            self.ask("add_kernels", isa, object_codes(new, isa))
        self._kernels.update((isa.key, kernel) for kernel in new)

    def close(self) -> None:
        """End the process."""
        if self._process.poll() is None and self._process.stdin is not None:
            self._process.stdin.close()
            self._process.wait()


class RemoteCode:
    """A program that an emulated process has; what `LoadedCode` is here.

    Parameters
    ----------
    peer : Peer
    program : Program
    isa : Isa
    """

    _numbers = itertools.count()

    def __init__(self, peer: Peer, program: Program, isa: Isa) -> None:
        self.peer, self.program, self.isa = peer, program, isa
        self.number = next(self._numbers)
        self.num_threads, self.has_loops = program.num_threads, program.has_loops
        needed = [*program.kernels, instances.EXECUTOR, instances.PYTHON_CALL]
        peer.send_kernels(needed + [WORKER] * (program.num_threads > 1), isa)
        peer.ask("load", self.number, isa, program)
        weakref.finalize(self, peer.ask, "forget", self.number)


class RemoteInstance:
    """A program that is run by an emulated process; what `Instance` is here."""

    is_parallel = True  # so that it is run by `run`, as there is no native function here

    def __init__(self, code: RemoteCode, *, is_profiled: bool = False, **_: object) -> None:
        self.code, self._bound = code, ()
        self.times_ns = np.zeros(code.program.num_commands + 1, np.int64) if is_profiled else None

    def resize(self, code: RemoteCode) -> None:
        """As of `Instance`."""
        self.code = code

    def bind(self, tensors: Sequence[Any]) -> None:
        """As of `Instance`."""
        self._bound = tuple(tensors)

    def bound_call(self, _: object) -> Callable[[], None]:
        """As of `Instance`."""
        return lambda: self.run(())

    def run(self, tensors: Sequence[Any], _: object = None, time_left_s: float = math.inf) -> None:
        """As of `Instance`; nothing is stopped."""
        tensors = tensors or self._bound
        count = self.code.program.num_inputs
        inputs = [np.ascontiguousarray(array) for array in tensors[:count]]
        forms = [(array.dtype, array.shape) for array in tensors[count:]]
        results = self.code.peer.ask("run", self.code.number, inputs, forms, time_left_s)
        for array, result in zip(tensors[count:], results, strict=True):
            array[...] = result


def redirect(environment: Environment, names: Sequence[str]) -> tuple[Isa, ...]:
    """Let this process have Arm's instruction sets only, and their programs run in emulation.

    Parameters
    ----------
    environment : Environment
    names : sequence of str
        Instruction sets.

    Notes
    -----
    To be called before anything imports `LoadedCode` or `Instance` from where they are defined.
    """
    isas = tuple(map(arm_isa, names))

    def code(program: Program, isa: Isa, _: object = None) -> RemoteCode:
        return RemoteCode(_peer(environment, isa.name), program, isa)

    for module in (vectors_runner, graphs_runner):
        vars(module).update(judge_in_workers=_judge_here)
    for module in (instances, workload):
        vars(module).update(LoadedCode=code, Instance=RemoteInstance)
    for module in (llvm_host, store_host, options):
        for name in ("host_isas", "known_isas"):
            if hasattr(module, name):
                setattr(module, name, lambda: isas)
    return isas


def _judge_here(
    batches: Sequence[Sequence[Any]], make_judge: Callable[[], Any], *_: object, **__: object
) -> Iterator[Any]:
    """What judges in other processes elsewhere, which would not be redirected."""
    judge = make_judge()
    for batch in batches:
        yield from map(judge, batch)


@cache
def _peer(environment: Environment, isa: str) -> Peer:
    """The process for an instruction set."""
    return Peer(environment, PROCESSORS[isa])


def run_in_turn(program: Program, isa: Isa, tensors: Sequence[Any], num_threads: int) -> None:
    """What NumbaAcc's tests have under this name, in the emulated process."""
    peer = _peer(default_environment(), isa.name)
    peer.send_kernels(program.kernels, isa)
    results = peer.ask("run_in_turn", program, isa, [*tensors], num_threads)
    for array, result in zip(tensors, results, strict=True):
        if array.flags.writeable:
            array[...] = result
