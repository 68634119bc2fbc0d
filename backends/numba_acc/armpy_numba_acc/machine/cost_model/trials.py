"""Trials: small loops by which a machine's figures are measured."""

from __future__ import annotations

from typing import NamedTuple

from armpy_numba_acc.machine.isa import Isa

MEMORY_BYTES = 1 << 16
"""That trials work on which do not read more on purpose: it stays in the second level of the cache,
and what each of them reads again and again in the first one."""

ROWS_OFFSET, RESULTS_OFFSET, CONFIGURATION_OFFSET = 32 << 10, 60 << 10, 62 << 10
"""Where in it rows of elements begin, and results and the matrix unit's configuration are."""

ROW_BYTES = 1 << 10

NUM_TOTALS = 12
"""Sums that do not wait for each other: enough to hide how long one instruction takes."""

NUM_ACCESSES = 16
"""Loads or stores of a turn."""


class TimedLoop(NamedTuple):
    """A loop, and what a turn of it does."""

    # ``chain`` of integer multiplications; ``steps`` of products whose sums do not wait for each
    # other, or ``wait`` for the last one; ``loads``, ``stores`` and ``broadcasts`` of registers;
    # ``tile`` of a product of float32; ``dots``, ``fetches`` or ``puts`` of a matrix unit.
    what: str
    # Of products, as `armpy_numba_acc.machine.cost_model.model.MachineModel.products` takes it.
    kind: str = ""
    vector_bytes: int = 0
    rows: int = 0  # of a tile
    vectors: int = 0

    def __str__(self) -> str:
        shape = f"{self.rows}x{self.vectors}" if self.rows else ""
        return " ".join(filter(None, (self.what, self.kind, str(self.vector_bytes or ""), shape)))


def trials_of(isa: Isa) -> tuple[TimedLoop, ...]:
    """All that say something about an instruction set's choices, in the order of their numbers."""
    full = isa.vector_bytes
    widths = [full, full // 2] if full > 32 else [full]
    trials = [TimedLoop("chain")]
    for width in widths:
        trials += [TimedLoop("steps", "f32", width), TimedLoop("wait", "f32", width)]
        trials += [TimedLoop("steps", "u8", width), TimedLoop("wait", "u8", width)]
        trials += [TimedLoop(access, "", width) for access in ("loads", "stores", "broadcasts")]
    if isa.has_bfloat16:
        trials += [TimedLoop("steps", "bf16", full), TimedLoop("wait", "bf16", full)]
    # As many rows as leave registers for the weights and an element: others would be spilled.
    rows = 7 if isa.num_registers > 16 else 6
    trials += [TimedLoop("tile", "f32", full, rows, 2), TimedLoop("tile", "f32", full, 12, 1)]
    if isa.matrix_unit == "amx":
        trials += [TimedLoop("dots", "u8", full), TimedLoop("fetches"), TimedLoop("puts")]
        trials += [TimedLoop("dots", "bf16", full)] if "+amx-bf16" in isa.features else []
    return tuple(trials)
