"""The instruction sets that kernels are made for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Isa(NamedTuple):
    """An instruction set, as the kernels' generators need to know it."""

    name: str  # also what ``ARMPY_NUMBA_ISA`` calls it
    triple: str  # for LLVM
    cpu: str
    features: str
    vector_bytes: int  # width of a register
    num_registers: int  # vector registers that a tile may fill
    # Instruction for 8-bit dot products: ``vpdpbusd512``, ``vpdpbusd256``, ``vpdpbssd256``,
    # ``usdot``, ``sdot`` or, where there is none, empty: products of 16-bit integers then.
    dot: str = ""
    has_bfloat16: bool = False  # whether there are dot products of bfloat16
    has_byte_permute: bool = False  # whether one instruction looks up 64 bytes in a table of 128
    is_relaxed: bool = False  # whether these may take the place of float32
    # Whether there are products of tiles of 16 by 64 bytes (AMX), or plain code in their place: a
    # process has to ask for the first, see `armpy_numba_acc.machine.processors.matrix_unit`.
    matrix_unit: str = ""
    # Whether one instruction multiplies bytes of two rows with those of two columns (Arm's
    # ``usmmla``), and, if there are dot products of bfloat16, these (``bfmmla``).
    has_paired_products: bool = False
    # Whether one instruction multiplies 16-bit elements by one that is the same for all, and adds
    # 32 bits (Arm's ``smlal``).
    has_long_products: bool = False
    has_unit_bfloat16: bool = False  # whether the unit multiplies bfloat16, too

    def relaxed(self) -> Isa:
        """The same, with dot products of bfloat16 for float32 if there are any."""
        return self._replace(is_relaxed=self.has_bfloat16)

    def strict(self) -> Isa:
        """The same, with float32 as it is."""
        return self._replace(is_relaxed=False)

    @property
    def has_matrix_unit(self) -> bool:
        """Return whether there is one, or something in its place."""
        return bool(self.matrix_unit)

    @property
    def has_signed_dots(self) -> bool:
        """True if products of bytes take signed elements: 128 less than programs hold."""
        return self.byte_products in ("sdot", "vpdpbssd")

    @property
    def has_saturating_bytes(self) -> bool:
        """True if products of bytes are at best added up in 16 bits: x86 without dot products."""
        return "avx" in self.name and not self.dot

    @property
    def has_byte_signs(self) -> bool:
        """True if one instruction multiplies bytes by the signs of others: AVX2, not AVX-512."""
        return self.has_saturating_bytes and self.vector_bytes == 32

    @property
    def has_half_conversions(self) -> bool:
        """Return whether instructions convert between float16 and float32."""
        return not {"+f16c", "+neon"}.isdisjoint(self.features.split(","))

    @property
    def lanes(self) -> int:
        """float32 elements per register."""
        return self.vector_bytes // 4

    @property
    def byte_products(self) -> str:
        """The instruction that multiplies bytes, or else 16-bit elements, without its width."""
        return self.dot.rstrip("0123456789") or "pmaddwd"

    @property
    def key(self) -> str:
        """Everything that compiled code depends on."""
        return f"{self.name} {self.triple} {self.cpu} {self.features}"


_AVX2 = ("sse4.2", "avx", "avx2", "fma", "f16c", "bmi", "bmi2", "popcnt")
_AVX512 = (*_AVX2, "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd")

_NEEDED: Mapping[str, tuple[str, ...]] = {
    "avx512amx": (*_AVX512, "avx512vnni", "amx-tile", "amx-int8"),
    "avx512vnni": (*_AVX512, "avx512vnni"),
    "avx512": _AVX512,
    "avx2vnni": (*_AVX2, "avxvnni"),
    "avx2": _AVX2,
    "i8mm": ("neon", "dotprod", "i8mm"),
    "neon": ("neon", "dotprod"),
    "neon-basic": ("neon",),
    "portable": (),
    "amx-emulated": (*_AVX512, "avx512vnni"),
    "avx2vnniint8": (*_AVX2, "avxvnni", "avxvnniint8"),
}
"""What a processor must have for each instruction set, best first. Those after ``portable`` are
used by those only who ask for them. Programs hold unsigned bytes, so that instructions which
multiply signed ones gain nothing over ``vpdpbusd``, which every processor with them has, too."""

NAMES = tuple(_NEEDED)
"""Every instruction set, best first; then those that have to be asked for."""


def make_isa(
    name: str,
    triple: str,
    cpu: str,
    available: frozenset[str],
    lacking: frozenset[str] = frozenset(),
) -> Isa:
    """An instruction set on a processor.

    Parameters
    ----------
    available
        LLVM's names of the features that the processor has.
    lacking
        Those that it has not, whatever its model says: virtual machines hide some.
    """
    wanted = [*_NEEDED[name]]
    bfloat16 = [
        feature
        for needed, feature in (("avx512vnni", "avx512bf16"), ("i8mm", "bf16"))
        if needed in wanted and feature in available
    ]
    wanted += bfloat16
    has_bfloat16 = bool(bfloat16)
    has_byte_permute = "avx512vnni" in wanted and "avx512vbmi" in available
    if has_byte_permute:
        wanted.append("avx512vbmi")
    if name == "avx512amx" and "amx-bf16" in available:
        wanted.append("amx-bf16")
    if "avx512vnni" in wanted and "avx512fp16" in available:
        # LLVM adds and multiplies float16 by it where that rounds as float32 in between does.
        wanted.append("avx512fp16")
    # The last word counts, and without a feature those are gone that build on it: whatever LLVM
    # misses on this processor, what kernels use is there.
    signed = [
        *(f"-{feature}" for feature in sorted(lacking)),
        *(f"+{feature}" for feature in wanted),
    ]
    features = ",".join(signed)
    if name == "portable":
        return Isa(name, triple, _baseline(triple), "", 16, 16)
    if "neon" in wanted:
        dot = "usdot" if "i8mm" in wanted else "sdot" if "dotprod" in wanted else ""
        isa = Isa(name, triple, cpu, features, 16, 32, dot, has_bfloat16, has_long_products=True)
        return isa._replace(has_paired_products="i8mm" in wanted)
    if "avx512f" in wanted:
        dot = "vpdpbusd512" if "avx512vnni" in wanted else ""
        # The processor's own model says how to schedule; more features than listed do no harm.
        isa = Isa(name, triple, cpu, features, 64, 32, dot, has_bfloat16, has_byte_permute)
        unit = _matrix_unit(name)
        has_unit_bfloat16 = unit == "emulated" or "amx-bf16" in wanted
        return isa._replace(matrix_unit=unit, has_unit_bfloat16=has_unit_bfloat16)
    dot = "vpdpbusd256" if "avxvnni" in wanted else ""
    dot = "vpdpbssd256" if "avxvnniint8" in wanted else dot
    return Isa(name, triple, "haswell", features, 32, 16, dot)


def _matrix_unit(name: str) -> str:
    """Return the matrix unit of an instruction set."""
    return {"avx512amx": "amx", "amx-emulated": "emulated"}.get(name, "")


def _baseline(triple: str) -> str:
    """A processor that every one of an architecture can stand in for."""
    return "x86-64" if triple.startswith("x86_64") else "generic"


class Host(NamedTuple):
    """A processor, in LLVM's words."""

    triple: str
    cpu: str
    available: frozenset[str]  # features that it has and has not
    lacking: frozenset[str]


def isas_of(host: Host) -> tuple[Isa, ...]:
    """The instruction sets that a processor has, best first."""
    return tuple(
        make_isa(name, host.triple, host.cpu, host.available, host.lacking)
        for name, needed in _NEEDED.items()
        if host.available.issuperset(needed)
    )
