"""Loads and runs damaged models on NumbaAcc, with every buffer between inaccessible pages.

A process of its own, as `run_guarded` starts it, tries one model after the other and writes a line
before and after each; where it dies, or hangs, its parent knows at which. Usage::

    python -m tests.support.guarded_runs KIND START STOP STEP NUM_THREADS {end|begin}
"""

from __future__ import annotations

import os
import random
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import armpy_numba_acc.backend as numba_backend
import numpy as np
from armpy_numba_acc.machine.cost_model.model import MachineModel
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.machine.memory import Buffer
from armpy_numba_acc.passes.region import lower_region
from armpy_numba_acc.program import emitter, estimate
from armpy_numba_acc.program.choices import Choices
from armpy_numba_acc.program.constant_pool import SLACK_BYTES
from armpy_numba_acc.program.program import Program
from armpy_numba_acc.runtime import instance

import armpy
from armpy.compiler.memory import plan as memory_plan
from armpy.errors import ArmpyError, BackendError
from armpy.execution import Runtime, RuntimeOptions
from armpy.execution.memory import arena_pool
from armpy.graph import SubgraphView
from armpy.model import Model
from armpy.ops.operation import Array
from armpy_testing.models.mutations import mutated
from armpy_testing.models.tflite_control_flow import small_models
from armpy_testing.shared import SHARED
from tests.support.guard_pages import GuardPages, make_read_only
from tests.support.odd_models import odd_model
from tests.support.tflite_cases import operator_models

MEMORY_LIMIT_BYTES = 64 << 20
LARGEST_RUN_BYTES = 1 << 20
ADDRESS_SPACE_BYTES = 4 << 30
SECONDS_EACH = 20.0
"""Of the processor, compiling of kernels included."""
HANGS_AFTER_S = 240.0
LOOP_TIMEOUT_S = 0.5
"""A sound loop takes a millisecond; on a busy machine, a thread may not run for 20 of them."""

KINDS = ("odd", "damaged", "control-flow", "real")
_REAL = (
    "micro/hello_world_int8",
    "micro/simple_add_model",
    "micro/keyword_scrambled",
    "micro/trained_lstm_int8",
    "mlperf_tiny/kws_ref_model",
)
_LARGEST_OPERATOR_BYTES = 32 << 10


def maker(kind: str) -> Callable[[int], bytes] | None:
    """What makes the models of a kind by their numbers; None if there are no seeds for it."""
    if kind == "odd":
        return odd_model
    seeds = {
        "damaged": lambda: [case.model().to_bytes() for case in operator_models()],
        "control-flow": lambda: [model.to_bytes() for model in small_models()],
        "real": _real_seeds,
    }[kind]()
    return (lambda number: mutated(seeds, number)) if seeds else None


def _real_seeds() -> list[bytes]:
    """Small real models and models of single operators, if they are there."""
    models = SHARED / "models"
    real = [models / f"{name}.tflite" for name in _REAL]
    single = sorted((models / "operators").glob("*.tflite"))
    return [path.read_bytes() for path in real if path.exists()] + [
        path.read_bytes() for path in single if path.stat().st_size <= _LARGEST_OPERATOR_BYTES
    ]


def guard(pages: GuardPages) -> None:
    """Let the core and NumbaAcc put every buffer and every constant between such pages."""

    def plan_arena(buffers: Sequence[Buffer]) -> int:
        used = [buffer for buffer in buffers if buffer.first >= 0]
        offsets, size = pages.plan([buffer.size_bytes for buffer in used], 64)
        for buffer, offset in zip(used, offsets, strict=True):
            buffer.offset = offset
        return size

    def packed_constants(self: emitter.Emitter) -> Array:
        constants = self._constants
        sizes = [buffer.size_bytes + SLACK_BYTES for buffer, _ in constants]
        offsets, size = pages.plan(sizes, 64)
        memory = pages.memory(size)
        for (buffer, array), offset, room in zip(constants, offsets, sizes, strict=True):
            buffer.offset = offset
            data = array.reshape(-1).view(np.uint8)
            memory[offset : offset + data.size] = data
            make_read_only(memory, offset, room)
        return memory

    def aligned(size_bytes: int, *, zeroed: bool = True) -> Array:
        return pages.memory(size_bytes)

    def compiled_program(
        view: SubgraphView, isa: Isa, num_threads: int, model: MachineModel
    ) -> Program:
        return lower_region(view, isa, num_threads, Choices(isa, model))

    pooled_arena = arena_pool.PooledArena

    def arena_of_pages(
        backend_id: str, source: object, memory: Array, free: Callable[[], object]
    ) -> arena_pool.PooledArena:
        free()
        return pooled_arena(backend_id, source, pages.memory(memory.nbytes), lambda: None)

    def no_pooled_arena(pool: object, claimant: object, arenas: object, size_bytes: int) -> object:
        # Another plan's arena has its accessible pages elsewhere.
        return None, []

    for place, name, value in (
        (emitter, "plan_arena", plan_arena),
        (emitter.Emitter, "_packed_constants", packed_constants),
        (instance, "aligned", aligned),
        (memory_plan, "DEFAULT_STRATEGY", pages),
        (arena_pool, "PooledArena", arena_of_pages),
        (arena_pool.ArenaPool, "_found", no_pooled_arena),
        # No program is taken from disk, and threads are worth their while for none so small.
        (numba_backend, "compiled_program", compiled_program),
        (estimate, "least_shared_us", lambda _: (0.0, 0.0)),
    ):
        assert hasattr(place, name)
        setattr(place, name, value)


def runtime_of(num_threads: int) -> Runtime:
    """A runtime whose first choice is NumbaAcc."""
    options = RuntimeOptions(
        backends=["NumbaAcc", "CpuRef"],
        num_threads=num_threads,
        memory_limit_bytes=MEMORY_LIMIT_BYTES,
        loop_timeout_s=LOOP_TIMEOUT_S,
    )
    return Runtime(options)


def try_one(data: bytes, number: int, runtime: Runtime, pages: GuardPages) -> str:
    """Load a file and run it if it is small: what came of it, after a ``!`` if that is wrong."""
    begin = time.process_time()
    outcome = "refused"
    try:
        with armpy.load(data, memory_limit_bytes=MEMORY_LIMIT_BYTES, runtime=runtime) as model:
            outcome = _run_if_small(model, number, pages)
    except ArmpyError as error:
        if isinstance(error, BackendError) or not error.where:
            outcome = f"! {error!r}"
    except Exception as error:  # noqa: BLE001  # the test looks for any other error
        outcome = f"! {type(error).__name__}: {error}"
    finally:
        pages.forget()
    duration = time.process_time() - begin
    return outcome if duration < SECONDS_EACH else f"! it took {duration:.1f} s"


def _run_if_small(model: Model, number: int, pages: GuardPages) -> str:
    """Run a model on noise between inaccessible pages."""
    infos = [spec.info for spec in model.inputs]
    if model.placement is None or not all(info.is_fully_shaped for info in infos):
        return "open"
    layers = model.placement.layers
    names = {layer.backend for layer in layers}
    where = "numba" if "NumbaAcc" in names else "other"
    if not all(spec.info.is_fully_shaped for spec in model.outputs):
        return f"loaded, {where}"
    everything = [*infos, *(spec.info for spec in model.outputs)]
    if sum(info.size_bytes for info in everything) > LARGEST_RUN_BYTES:
        return f"loaded, {where}"
    noise = random.Random(number)
    inputs = {
        spec.name: pages.array(
            spec.info.known_shape, spec.info.data_type.dtype, _noise(spec.info.size_bytes, noise)
        )
        for spec in model.inputs
    }
    outputs = {
        spec.name: pages.array(spec.info.known_shape, spec.info.data_type.dtype)
        for spec in model.outputs
    }
    try:
        with np.errstate(all="ignore"):
            model.run(inputs, outputs=outputs)
    except BackendError:
        raise
    except ArmpyError:
        return f"failed, {where}"
    return f"ran, {where}"


def _noise(size: int, rng: random.Random) -> bytes:
    """Bytes that are any, small, or zero, so that indices are often in range."""
    kind = rng.randrange(3)
    return bytes(size) if kind == 0 else rng.randbytes(size) if kind == 1 else _small(size, rng)


def _small(size: int, rng: random.Random) -> bytes:
    """Every fourth byte is small, all others are 0."""
    return bytes(rng.randrange(4) if index % 4 == 0 else 0 for index in range(size))


@dataclass
class Tally:
    """What came of some models."""

    counts: dict[str, int] = field(default_factory=dict)  # by outcome
    failures: dict[int, str] = field(default_factory=dict)  # by number of the model

    def add(self, number: int, outcome: str) -> None:
        """Count one model."""
        if outcome.startswith("!"):
            self.failures[number] = outcome[2:]
            outcome = "wrong"
        self.counts[outcome] = self.counts.get(outcome, 0) + 1


def run_guarded(kind: str, numbers: range, num_threads: int, side: str) -> Tally:
    """Try models in processes of their own, a new one where one dies or hangs."""
    tally = Tally()
    left = numbers
    while left:
        at, errors, code = _run_process(kind, left, num_threads, side, tally)
        if at is None and not code:
            break
        if at is None:
            raise RuntimeError(f"a process ended with {code}: {errors}")
        tally.add(at, f"! the process ended with {code}: {errors[-2000:]}")
        left = range(at + numbers.step, numbers.stop, numbers.step)
    return tally


def _run_process(
    kind: str, numbers: range, num_threads: int, side: str, tally: Tally
) -> tuple[int | None, str, int]:
    """One process: at which number it died, if it did, its output, and its end."""
    command = [kind, numbers.start, numbers.stop, numbers.step, num_threads, side]
    errors: list[str] = []
    with subprocess.Popen(
        [sys.executable, "-X", "faulthandler", "-m", __name__, *map(str, command)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    ) as process:
        assert process.stderr is not None  # it was asked for
        reader = threading.Thread(target=errors.extend, args=(process.stderr,))
        reader.start()
        at = _follow(process, tally)
        reader.join()
    return at, "".join(errors), process.returncode


def _follow(process: subprocess.Popen[str], tally: Tally) -> int | None:
    """Count the results of a process; the number at which it died, if it did."""
    at: int | None = None
    timer = threading.Timer(HANGS_AFTER_S, process.kill)
    timer.start()
    assert process.stdout is not None  # it was asked for
    for line in process.stdout:
        number, _, outcome = line.rstrip("\n").partition(" ")
        timer.cancel()
        timer = threading.Timer(HANGS_AFTER_S, process.kill)
        timer.start()
        if outcome:
            tally.add(int(number), outcome)
            at = None
        else:
            at = int(number)
    timer.cancel()
    return at


def main() -> None:
    """Try the models that the command line names."""
    kind, (start, stop, step, num_threads), side = sys.argv[1], map(int, sys.argv[2:6]), sys.argv[6]
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE_BYTES, ADDRESS_SPACE_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    make = maker(kind)
    if make is None:
        return
    pages = GuardPages(side == "end")
    guard(pages)
    runtime = runtime_of(num_threads)
    for number in range(start, stop, step):
        print(number, flush=True)
        outcome = try_one(make(number), number, runtime, pages).replace("\n", " ")
        print(number, outcome, flush=True)


if __name__ == "__main__":
    main()
