"""The innermost loops of products keep Arm's multipliers busy, as LLVM's models of them say.

What is looked at is the kernel that lowering chooses, so that tiles are judged with it.
"""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from armpy_numba_acc.kernels import convolution_f32
from armpy_numba_acc.llvm.compiler import compile_assembly
from armpy_numba_acc.machine.isa import Isa, make_isa
from armpy_numba_acc.passes.region import lower_region

from armpy import DataType, Network, TensorInfo, ops
from armpy.graph import SubgraphView
from armpy.tensor import Quantization

from .pipes import (
    CORES,
    Core,
    find_mca,
    innermost_loops,
    multiplications,
    share_of_peak,
)

MCA = find_mca()
LEAST = 0.85
FEATURES = {
    "neon-basic": {"neon"},
    "neon": {"neon", "dotprod", "fullfp16"},
    "i8mm": {"neon", "dotprod", "fullfp16", "i8mm", "bf16"},
}
FAMILIES = {
    "float32": ("convolution_f32", "fmla"),
    "bytes": ("convolution_u8", "sdot"),
    "bytes, two rows at a time": ("convolution_u8_paired", "usmmla"),
    "bytes without dot products": ("convolution_u8", "smlal"),
    "bfloat16": ("convolution_bf16_paired", "bfmmla"),
    "16 bits": ("convolution_i16", "smlal"),
}
"""The kernel, and what multiplies in it."""

ONLY_V = ("bytes, two rows at a time", "bfloat16")
"""What Neoverse V alone has of them."""

needs_mca = pytest.mark.skipif(not MCA, reason="there is no llvm-mca of version 19 or newer")


def isa_of(core: Core, family: str) -> Isa:
    name = "i8mm" if core.name.startswith("neoverse-v") else "neon"
    if family == "bytes":
        name = "neon"
    elif family == "bytes without dot products":
        name = "neon-basic"
    isa = make_isa(name, "aarch64-unknown-linux-gnu", core.model, frozenset(FEATURES[name]))
    return isa.relaxed() if family == "bfloat16" else isa


def pointwise(family: str) -> Network:
    """A convolution whose steps take nearly all of its time."""
    shape, filters = (1, 14, 14, 256), 256
    weights = np.ones((filters, 1, 1, 256))
    network = Network()
    if family in ("float32", "bfloat16"):
        x = network.input("x", TensorInfo(shape, DataType.FLOAT32))
        output = TensorInfo(None, DataType.FLOAT32)
        constant = network.constant(weights.astype(np.float32))
    else:
        kind = DataType.QSYMM_S16 if family == "16 bits" else DataType.QASYMM_U8
        scale = Quantization.per_tensor(0.01, 0)
        x, output = (
            network.input("x", TensorInfo(shape, kind, scale)),
            TensorInfo(None, kind, scale),
        )
        constant = network.constant(
            weights.astype(np.int8), data_type=DataType.QSYMM_S8, quantization=scale
        )
    network.output("y", network.add(ops.Convolution2d(), x, constant, output=output))
    return network


def assembly_of(family: str, core: Core) -> str:
    """The chosen kernel's."""
    isa, graph = isa_of(core, family), pointwise(family).build()
    program = lower_region(SubgraphView.of(graph, graph.layers), isa)
    (kernel,) = (
        candidate for candidate in program.kernels if candidate.name == FAMILIES[family][0]
    )
    module = importlib.import_module(f"armpy_numba_acc.kernels.{kernel.name}")
    return compile_assembly(module.make(isa, *kernel.parameters), "kernel", isa)


CASES = [
    (family, core)
    for family in FAMILIES
    for core in CORES
    if core.name.startswith("neoverse-v") or family not in ONLY_V
]


@needs_mca
@pytest.mark.parametrize(
    ("family", "core"), CASES, ids=[f"{family}, {core.name}" for family, core in CASES]
)
def test_loops_keep_the_multipliers_busy(family: str, core: Core) -> None:
    share = share_of_peak(assembly_of(family, core), FAMILIES[family][1], core, MCA)
    print(f"\n{family} on {core.name}: {share:.3f} of the peak, computed")
    assert LEAST <= share <= 1.0


@needs_mca
@pytest.mark.parametrize("core", CORES[::2], ids=lambda core: core.name)
def test_a_tile_with_few_sums_leaves_them_idle(core: Core) -> None:
    isa = isa_of(core, "float32")
    assembly = compile_assembly(convolution_f32.make(isa, 2, 1, 0, 0), "kernel", isa)
    assert share_of_peak(assembly, "fmla", core, MCA) < 0.5


def test_a_loop_is_found_without_what_is_around_it() -> None:
    text = """
kernel:                                 // @kernel
\t.cfi_startproc
\tmov\tx0, xzr
.LBB0_1:                                // outer
\tadd\tx0, x0, #1
.LBB0_2:                                // inner
\tldr\tq1, [x1], #16
\tfmla\tv0.4s, v1.4s, v2.s[1]
\tb.ne\t.LBB0_2
\tcbnz\tx0, .LBB0_1
\tret
"""
    (loop,) = innermost_loops(text)
    assert [line.split()[0] for line in loop] == ["ldr", "fmla", "b.ne"]
    assert multiplications(loop, "fmla") == 4
