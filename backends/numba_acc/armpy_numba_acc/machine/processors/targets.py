"""Processors that kernels can be compiled for on any machine, by name.

Notes
-----
What a target needs is what LLVM's model of the processor says that code may use, but for what no
compiler uses of its own accord (cryptography, what only operating systems need). Arm's scalable
vectors are left out: kernels do not use them, and systems and hypervisors may switch them off.

References
----------
LLVM 22, ``X86.td`` and ``AArch64Processors.td``; a test compares this table with them. x86-64 psABI
for the levels ``x86-64-v2`` to ``v4``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from armpy.errors import InvalidArgumentError, did_you_mean
from armpy_numba_acc.machine.isa import NAMES as ISA_NAMES
from armpy_numba_acc.machine.isa import Isa, make_isa
from armpy_numba_acc.machine.processors.cores import MOST_THREADS
from armpy_numba_acc.machine.processors.features import Processor, architecture_of, this_processor
from armpy_numba_acc.machine.processors.matrix_unit import may_use_matrix_unit

HOST = "host"
"""The target that is this machine."""

_MOST_SAID, _LONGEST_NAME = 12, 40
"""Of features that are missing: whatever a file says is not said again at any length."""

NUM_THREADS = 4
"""Most threads of a program that is compiled for machines with an unknown number of cores. A
machine with fewer cores runs it on those."""

_X86, _ARM = "x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"
_SYSTEMS = {"linux": "linux", "darwin": "darwin", "windows": "win32"}
"""`sys.platform`, by how LLVM's triples begin to name the system."""

_V2 = frozenset(["cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3"])
_V3 = _V2 | frozenset(["avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"])
_V4 = _V3 | frozenset(["avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"])
_ICELAKE = _V4 | frozenset(
    [
        "avx512bitalg",
        "avx512ifma",
        "avx512vbmi",
        "avx512vbmi2",
        "avx512vnni",
        "avx512vpopcntdq",
        "gfni",
    ]
)
_ZEN4 = _ICELAKE | {"avx512bf16", "sse4a"}
_N1 = frozenset(["dotprod", "fullfp16", "lse", "neon", "rcpc", "rdm"])
_V8_4 = _N1 | frozenset(["complxnum", "flagm", "fp16fml", "jsconv", "lse2", "rcpc-immo"])
_V1 = _V8_4 | {"bf16", "i8mm", "sha3"}


class _Entry(NamedTuple):
    """Table row of a target: instruction set, LLVM's triple and model, features."""

    isa: str
    triple: str
    cpu: str
    features: frozenset[str]


_TABLE: Mapping[str, _Entry] = {
    "x86-64-v2": _Entry("portable", _X86, "x86-64-v2", _V2),
    "x86-64-v3": _Entry("avx2", _X86, "haswell", _V3),
    "x86-64-v4": _Entry("avx512", _X86, "x86-64-v4", _V4),
    "haswell": _Entry("avx2", _X86, "haswell", _V3),
    "skylake-avx512": _Entry("avx512", _X86, "skylake-avx512", _V4),
    "icelake-server": _Entry("avx512vnni", _X86, "icelake-server", _ICELAKE),
    "sapphirerapids": _Entry(
        "avx512amx",
        _X86,
        "sapphirerapids",
        _ICELAKE
        | frozenset(["amx-bf16", "amx-int8", "amx-tile", "avx512bf16", "avx512fp16", "avxvnni"]),
    ),
    "znver4": _Entry("avx512vnni", _X86, "znver4", _ZEN4),
    "znver5": _Entry("avx512vnni", _X86, "znver5", _ZEN4 | {"avxvnni"}),
    "cortex-a72": _Entry("neon-basic", _ARM, "cortex-a72", frozenset({"neon"})),
    "cortex-a76": _Entry("neon", _ARM, "cortex-a76", _N1),
    "neoverse-n1": _Entry("neon", _ARM, "neoverse-n1", _N1),
    "neoverse-v1": _Entry("i8mm", _ARM, "neoverse-v1", _V1),
    "neoverse-v2": _Entry("i8mm", _ARM, "neoverse-v2", (_V1 - {"sha3"}) | {"altnzcv", "fptoint"}),
}

PROCESSORS = tuple(_TABLE)
"""Targets that are not a particular machine."""


class Target(NamedTuple):
    """Target that kernels are compiled for."""

    name: str
    isa: Isa  # for the kernels' generators and LLVM
    # LLVM's names of features that a processor must have to run the code, beside what all of its
    # architecture have.
    needs: frozenset[str]
    num_threads: int = NUM_THREADS  # most threads that programs are made for


def named_target(name: str) -> Target:
    """A target that is not a particular machine.

    Parameters
    ----------
    name
        Of `PROCESSORS`.

    Raises
    ------
    InvalidArgumentError
        If there is none of this name.
    """
    if name not in _TABLE:
        raise InvalidArgumentError(
            "there is no such target",
            where="target",
            expected=" or ".join((HOST, *PROCESSORS)),
            actual=repr(name),
            fix=did_you_mean(name, (HOST, *PROCESSORS)),
        )
    entry = _TABLE[name]
    lacking = frozenset({"sve"}) if entry.triple == _ARM else frozenset[str]()
    isa = make_isa(entry.isa, entry.triple, entry.cpu, entry.features, lacking)
    return Target(name, isa._replace(cpu=entry.cpu), entry.features)


def host_target(isa: Isa, num_threads: int, processor: Processor | None = None) -> Target:
    """Make a target of this machine, with an instruction set that it has.

    Parameters
    ----------
    processor
        What this machine is; else it is looked at.
    """
    processor = processor or this_processor()
    wanted = {word[1:] for word in isa.features.split(",") if word.startswith("+")}
    if isa.name == "portable":
        needs = frozenset[str]()
    elif isa.cpu == "haswell":
        needs = _V3 | wanted
    else:
        # LLVM's model of the processor may use all of them.
        needs = processor.features | wanted
    return Target(HOST, isa, needs, num_threads)


def runs_on(target: Target, processor: Processor | None = None) -> str:
    """Why a processor cannot run code compiled for a target; empty if it can.

    Parameters
    ----------
    processor
        The one that this process runs on if left out, and then also whether the operating system
        lets the process use all of it.
    """
    is_here = processor is None
    processor = processor or this_processor()
    architecture, _, system = target.isa.triple.partition("-")
    if architecture_of(architecture) != processor.architecture:
        return f"it is for {architecture}, and this is {processor.architecture}"
    if (system := _system_of(system)) != processor.system:
        return f"it is for {system}, and this is {processor.system}"
    missing = sorted(target.needs - processor.features)
    if missing:
        few = f" and {len(missing) - _MOST_SAID} more" if len(missing) > _MOST_SAID else ""
        named = ", ".join(name[:_LONGEST_NAME] for name in missing[:_MOST_SAID])
        return f"this processor lacks {named}{few}, according to the system"
    if is_here and target.isa.matrix_unit == "amx" and not may_use_matrix_unit():
        return "the system does not let this process use the matrix unit"
    return ""


def _system_of(rest: str) -> str:
    """Return Python's name of the operating system that the rest of a triple names."""
    parts = rest.split("-")
    systems = (
        system for name, system in _SYSTEMS.items() if any(part.startswith(name) for part in parts)
    )
    return next(systems, rest)


def best_first(targets: Iterable[Target], processor: Processor | None = None) -> Sequence[Target]:
    """Those targets that a processor can run, the one first that makes most of it.

    A better instruction set comes first; then what uses more of the processor, for `HOST` is this
    very machine or one like it; then the order that is given.
    """
    fitting = [target for target in targets if not runs_on(target, processor)]
    return sorted(
        fitting, key=lambda target: (ISA_NAMES.index(target.isa.name), -len(target.needs))
    )


def described(target: Target) -> dict[str, object]:
    """Parse a file's description of a target, for `target_of`."""
    return {
        "target": target.name,
        "isa": [*target.isa],
        "needs": sorted(target.needs),
        "threads": target.num_threads,
    }


def target_of(about: Mapping[str, object]) -> Target | None:
    """The target that a file speaks of; None if it does not say so in a form that is understood."""
    fields, needs, count = about.get("isa"), about.get("needs"), about.get("threads")
    kinds = [str, str, str, str, int, int, str, bool, bool, bool, str, bool, bool, bool]
    if not isinstance(fields, list) or list(map(type, fields)) != kinds:
        return None
    if not isinstance(needs, list) or not all(isinstance(name, str) for name in needs):
        return None
    if type(count) is not int or not 1 <= count <= MOST_THREADS:
        return None
    return Target(str(about.get("target")), Isa(*fields), frozenset(needs), count)
