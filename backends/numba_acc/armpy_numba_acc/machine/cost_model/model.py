"""Model of a machine: the figures that decide how layers are computed.

Notes
-----
A model holds nanoseconds, bytes, and bytes per nanosecond, and arithmetic on them. Where the
figures come from is not known here: `armpy_numba_acc.machine.cost_model.figures` has those of some
processors.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, replace

from armpy.core.dataclass import dataclass
from armpy_numba_acc.machine.isa import Isa


@dataclass(frozen=True, slots=True)
class Pace:
    """Pace of one kind of multiplication and addition."""

    # What multiplies, such as ``f32`` or ``vpdpbusd``; see
    # `armpy_numba_acc.machine.cost_model.model.MachineModel.pace`.
    instruction: str
    vector_bytes: int  # width of the registers
    step_ns: float  # of one register of sums, while others keep the processor busy
    latency_ns: float  # until the same sums can be added to again


_MULTIPLIED = {
    "vpdpbusd": 4,
    "sdot": 4,
    "usdot": 4,
    "smmla": 8,
    "pmaddwd": 2,
    "bf16": 2,
    "f16": 2,
    "tdpbusd": 4 * 16,
    "tdpbf16ps": 2 * 16,
}
"""Products that are added to each lane of 32 bits in a step, where they are not one."""


@dataclass(frozen=True, slots=True)
class Width:
    """Costs of registers of one width."""

    vector_bytes: int
    load_ns: float  # from and to the first level of the cache
    store_ns: float
    broadcast_ns: float  # one element in memory to all lanes


@dataclass(frozen=True, slots=True)
class Level:
    """A level of the cache, or the memory after the last one."""

    size_bytes: int  # that one thread may count on; of the memory, none
    bytes_per_ns: float  # that one thread reads


@dataclass(frozen=True, slots=True)
class FinishCost:
    """Costs of a tile besides its steps: to store its results and begin the next one."""

    kind: str  # of product, such as ``f32``
    tile_ns: float
    register_ns: float  # of a register of sums
    row_ns: float = 0.0  # of a pixel
    lone_row_ns: float = 0.0  # more of a pixel whose sums are one register
    # More of a register of the pixels after the first ones, whose addresses fit no registers.
    far_ns: float = 0.0
    near_rows: int = 0
    # Of a register of sums, even where all else is done while the next tile is computed.
    least_register_ns: float = 0.0
    line_ns: float = 0.0  # of a pixel, once for all of its panels, to find where it lies
    turn_ns: float = 0.0  # of a step, besides its arithmetic

    def after_steps_ns(self, rows: int, vectors: float) -> float:
        """Return the time after a tile's steps, by its pixels and registers."""
        registers = rows * vectors
        row_ns = self.row_ns + (self.lone_row_ns if vectors <= 1 else 0.0)
        far = max(rows - self.near_rows, 0) * vectors if self.near_rows else 0.0
        total_ns = self.tile_ns + self.register_ns * registers + row_ns * rows + self.far_ns * far
        return max(self.least_register_ns * registers, total_ns)

    def scaled(self, factor: float) -> FinishCost:
        """The same where every nanosecond takes so many times as long."""
        times = {
            name: value * factor for name, value in asdict(self).items() if name.endswith("_ns")
        }
        return replace(self, **times)


@dataclass(frozen=True, slots=True)
class Unit:
    """Costs of a matrix unit that multiplies tiles of 16 by 64 bytes."""

    load_ns: float  # of a tile
    store_ns: float


@dataclass(frozen=True, slots=True)
class MachineModel:
    """The figures of one kind of machine."""

    name: str  # where they come from
    cycle_ns: float
    paces: tuple[Pace, ...]
    widths: tuple[Width, ...]
    levels: tuple[Level, ...]  # nearest first; the last one is the memory
    finishes: tuple[FinishCost, ...]
    fork_ns: float  # cost of sharing a command among threads that are awake
    wake_ns: float  # cost of having other threads take part in an execution at all
    unit: Unit | None = None

    def __str__(self) -> str:
        return self.name

    @property
    def is_measured(self) -> bool:
        """Return whether trials of a machine have given the figures."""
        return self.name.startswith("measured")

    @property
    def digest(self) -> str:
        """Digest of all figures; not of the name."""
        return hashlib.sha256(json.dumps(asdict(replace(self, name=""))).encode()).hexdigest()[:16]

    @property
    def figures(self) -> dict[str, str]:
        """The figures for people, by their subjects."""
        by_name = {"clock": f"{1 / self.cycle_ns:.2f} GHz"}
        for pace in self.paces:
            multiplied = _MULTIPLIED.get(pace.instruction, 1)
            rate = 2 * multiplied * pace.vector_bytes / 4 / pace.step_ns
            name = f"{pace.instruction}, {8 * pace.vector_bytes} bits"
            by_name[name] = f"{rate:.0f} G operations/s"
        for number, level in enumerate(self.levels[:-1], 1):
            text = f"{level.size_bytes >> 10} KB, {level.bytes_per_ns:.0f} GB/s"
            by_name[f"cache, level {number}"] = text
        by_name["memory"] = f"{self.levels[-1].bytes_per_ns:.0f} GB/s"
        return by_name

    def has(self, instruction: str) -> bool:
        """Return whether it is known how fast a kind of multiplication is."""
        return any(pace.instruction == instruction for pace in self.paces)

    def pace(self, instruction: str, vector_bytes: int) -> Pace:
        """Return how fast an instruction is on registers of a width.

        For an unknown width the nearest known one decides: wider registers take several of its
        steps, narrower ones no less. Products of 16 bits count as those of bytes if only these are
        known, another unknown instruction as float32 at four times the time.
        """
        paces = [pace for pace in self.paces if pace.instruction == instruction]
        if not paces and instruction == "pmaddwd" and self.has("vpdpbusd"):
            return replace(self.pace("vpdpbusd", vector_bytes), instruction=instruction)
        if not paces:
            known = self.pace("f32", vector_bytes)
            return replace(known, instruction=instruction, step_ns=4 * known.step_ns)
        pace = min(paces, key=lambda pace: abs(pace.vector_bytes - vector_bytes))
        factor = max(vector_bytes / pace.vector_bytes, 1.0)
        return replace(pace, vector_bytes=vector_bytes, step_ns=factor * pace.step_ns)

    def products(self, kind: str, isa: Isa, vector_bytes: int = 0) -> Pace:
        """Return how fast an instruction set multiplies.

        Parameters
        ----------
        kind : {"f32", "bf16", "f16", "u8", "i16"}
            What: one, two, two, four or two elements for each lane of 32 bits.
        vector_bytes
            Width of the registers; those of the instruction set if left out.
        """
        vector_bytes = vector_bytes or isa.vector_bytes
        if kind == "i16":
            has_pairs = isa.dot.startswith("vpdp")
            return self.pace(isa.byte_products if has_pairs else "pmaddwd", vector_bytes)
        if kind != "u8":
            return self.pace(kind, vector_bytes)
        pace = self.pace(isa.byte_products, vector_bytes)
        # Where there are products of 16 bits only, two of them make four of bytes.
        return pace if isa.dot else replace(pace, step_ns=2 * pace.step_ns)

    def width(self, vector_bytes: int) -> Width:
        """Return the costs of registers of a width; of the nearest one if it is not known."""
        return min(self.widths, key=lambda width: abs(width.vector_bytes - vector_bytes))

    def finish(self, kind: str) -> FinishCost:
        """Cost of tiles of a kind of product besides their steps; float32's if unknown."""
        by_kind = {finish.kind: finish for finish in self.finishes}
        return by_kind.get(kind, by_kind["f32"])

    def level(self, size_bytes: float) -> Level:
        """The level of the cache that so many bytes fit; the memory if none."""
        return next(
            (level for level in self.levels if size_bytes <= level.size_bytes), self.levels[-1]
        )

    def read_ns(self, size_bytes: float, working_bytes: float) -> float:
        """Nanoseconds that reading takes where so many bytes are worked on in turn."""
        return size_bytes / self.level(working_bytes).bytes_per_ns


def paces_of(cycle_ns: float, table: Sequence[tuple[str, int, float, float]]) -> tuple[Pace, ...]:
    """Paces of a table of instruction, width, and cycles of a step and until the next one."""
    return tuple(
        Pace(name, width, step * cycle_ns, latency * cycle_ns)
        for name, width, step, latency in table
    )
