"""Built-in figures of some kinds of processor.

References
----------
Measured with this package's own kernels on an AMD Zen 4 and on an Intel server processor with AMX;
Agner Fog, "Instruction tables"; Intel's and Arm's optimisation guides for the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from armpy_numba_acc.machine.cost_model.model import (
    FinishCost,
    Level,
    MachineModel,
    Unit,
    Width,
    paces_of,
)
from armpy_numba_acc.machine.isa import Isa

_KB, _MB = 1 << 10, 1 << 20


def _finishes(cycle_ns: float, *finishes: FinishCost) -> tuple[FinishCost, ...]:
    return tuple(finish.scaled(cycle_ns) for finish in finishes)


_BYTES = FinishCost("u8", tile_ns=8, register_ns=1.5, row_ns=0.8, lone_row_ns=1.2)
_PAIRS = replace(_BYTES, kind="i16", register_ns=10)
_BF16 = FinishCost("bf16", tile_ns=5, register_ns=3.2, lone_row_ns=-0.6)
_F32 = FinishCost("f32", tile_ns=-34, register_ns=5, least_register_ns=1, line_ns=5)
"""In cycles, as measured on Zen 4."""

_ZEN4 = 1 / 3.7

ZEN4 = MachineModel(
    "zen4",
    cycle_ns=_ZEN4,
    # Registers of 64 bytes are computed as two halves.
    paces=paces_of(
        _ZEN4,
        [
            ("f32", 64, 1, 4),
            ("f32", 32, 0.5, 4),
            ("vpdpbusd", 64, 1, 4),
            ("vpdpbusd", 32, 0.5, 4),
            ("pmaddwd", 64, 1, 3),
            ("pmaddwd", 32, 0.5, 3),
            ("bf16", 64, 1, 6),
        ],
    ),
    widths=(Width(64, _ZEN4, _ZEN4, 0.55 * _ZEN4), Width(32, _ZEN4 / 2, _ZEN4, 0.5 * _ZEN4)),
    levels=(
        Level(32 * _KB, 230),
        Level(_MB, 100),
        Level(16 * _MB, 60),
        Level(0, 20),
    ),
    finishes=_finishes(
        _ZEN4,
        # The addresses of more than eight or nine rows do not fit registers.
        replace(_F32, lone_row_ns=1, far_ns=1, near_rows=9),
        _BF16,
        replace(_BYTES, tile_ns=12, row_ns=0.4, lone_row_ns=0, far_ns=1, near_rows=8),
        _PAIRS,
    ),
    fork_ns=1_500,
    wake_ns=20_000,
)

_SPR = 1 / 3.5

SAPPHIRE_RAPIDS = MachineModel(
    "sapphire-rapids",
    cycle_ns=_SPR,
    # As measured: the clock is lower while registers of 64 bytes are multiplied.
    paces=paces_of(
        _SPR,
        [
            ("f32", 64, 0.58, 4.3),
            ("f32", 32, 0.53, 4.3),
            ("vpdpbusd", 64, 0.62, 5.9),
            ("vpdpbusd", 32, 0.53, 5.3),
            ("pmaddwd", 64, 0.62, 5.9),
            ("pmaddwd", 32, 0.53, 5.3),
            ("bf16", 64, 2.2, 8.5),
            ("f16", 64, 0.58, 4.3),
            # Of sixteen rows by a register of sums, for each four bytes of depth.
            ("tdpbusd", 64, 1.18, 1.18),
            ("tdpbf16ps", 64, 1.18, 1.18),
        ],
    ),
    widths=(
        Width(64, 0.62 * _SPR, 1.05 * _SPR, 0.77 * _SPR),
        Width(32, 0.5 * _SPR, 0.53 * _SPR, 0.53 * _SPR),
    ),
    levels=(
        Level(48 * _KB, 366),
        Level(2 * _MB, 150),
        Level(16 * _MB, 33),
        Level(0, 19),
    ),
    finishes=_finishes(
        _SPR,
        # The addresses of more than nine rows do not fit registers.
        replace(
            _F32, tile_ns=25, register_ns=1, far_ns=9, near_rows=9, least_register_ns=0, turn_ns=1
        ),
        replace(_BF16, turn_ns=1),
        replace(_BYTES, tile_ns=0, register_ns=9.4, row_ns=6.5, lone_row_ns=0, turn_ns=3),
        replace(_PAIRS, turn_ns=3),
    ),
    fork_ns=1_500,
    wake_ns=20_000,
    unit=Unit(load_ns=9.6 * _SPR, store_ns=18.7 * _SPR),
)

_HSW = 1 / 3.5

HASWELL = MachineModel(
    "haswell",
    cycle_ns=_HSW,
    paces=paces_of(
        _HSW,
        [
            ("f32", 32, 0.5, 5),
            ("vpdpbusd", 32, 0.5, 5),
            ("pmaddwd", 32, 1, 5),
        ],
    ),
    widths=(Width(32, 0.5 * _HSW, _HSW, 0.5 * _HSW),),
    levels=(Level(32 * _KB, 200), Level(256 * _KB, 90), Level(4 * _MB, 40), Level(0, 10)),
    finishes=_finishes(_HSW, _F32, _BF16, _BYTES, _PAIRS),
    fork_ns=1_500,
    wake_ns=20_000,
)

_NEO = 1 / 2.6

NEOVERSE = MachineModel(
    "neoverse",
    cycle_ns=_NEO,
    paces=paces_of(
        _NEO,
        [
            ("f32", 16, 0.5, 4),
            ("f16", 16, 0.5, 4),
            ("sdot", 16, 0.5, 3),
            ("usdot", 16, 0.5, 3),
            ("usmmla", 16, 0.5, 3),
            ("bf16", 16, 0.5, 5),
            # Two smlal, and one of them per cycle.
            ("pmaddwd", 16, 2, 5),
        ],
    ),
    widths=(Width(16, 0.5 * _NEO, _NEO, 0.5 * _NEO),),
    levels=(Level(64 * _KB, 80), Level(_MB, 50), Level(8 * _MB, 25), Level(0, 12)),
    finishes=_finishes(_NEO, _F32, _BF16, _BYTES, _PAIRS),
    fork_ns=1_500,
    wake_ns=20_000,
)

NEOVERSE_V = replace(
    NEOVERSE,
    name="neoverse-v",
    # Twice as many pipes, and three loads per cycle.
    paces=paces_of(
        _NEO,
        [
            ("f32", 16, 0.25, 4),
            ("f16", 16, 0.25, 4),
            ("sdot", 16, 0.25, 3),
            ("usdot", 16, 0.25, 3),
            ("usmmla", 16, 0.25, 3),
            ("bf16", 16, 0.25, 5),
            ("bfmmla", 16, 0.25, 6),
            ("pmaddwd", 16, 1, 5),
        ],
    ),
    widths=(Width(16, _NEO / 3, 0.5 * _NEO, _NEO / 3),),
)

BUILT_IN: Mapping[str, MachineModel] = MappingProxyType(
    {model.name: model for model in (ZEN4, SAPPHIRE_RAPIDS, HASWELL, NEOVERSE, NEOVERSE_V)}
)
"""Models by name."""


def family_of(isa: Isa) -> tuple[MachineModel, ...]:
    """The built-in models of processors with an instruction set of the same family."""
    if isa.triple.startswith("aarch64"):
        return NEOVERSE, NEOVERSE_V
    return (ZEN4, SAPPHIRE_RAPIDS) if isa.vector_bytes == 64 else (HASWELL,)


def typical(isa: Isa) -> MachineModel:
    """The built-in model of a processor that has an instruction set."""
    if isa.vector_bytes == 16:
        return NEOVERSE_V if isa.has_paired_products else NEOVERSE
    if isa.vector_bytes == 32:
        return HASWELL
    return SAPPHIRE_RAPIDS if isa.matrix_unit == "amx" else ZEN4
