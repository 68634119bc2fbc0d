"""Features of this processor, as LLVM reports them."""

from __future__ import annotations

import llvmlite.binding as llvm

from armpy_numba_acc.machine.isa import Host, Isa, isas_of
from armpy_numba_acc.machine.processors.arm import arm_features


def read_host() -> Host:
    """Read the features of this processor from LLVM, and of Arm's from the operating system."""
    features = llvm.get_host_cpu_features()
    available = frozenset(name for name, has in features.items() if has) | arm_features()
    lacking = frozenset(features) - available
    return Host(llvm.get_process_triple(), llvm.get_host_cpu_name(), available, lacking)


def host_isas() -> tuple[Isa, ...]:
    """The instruction sets that this processor has, best first."""
    return isas_of(read_host())
