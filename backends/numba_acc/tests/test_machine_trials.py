"""Trials of a machine execute in their loops what they are to measure: by their assembly."""

from __future__ import annotations

import re

import pytest
from armpy_numba_acc.kernels import machine_trial
from armpy_numba_acc.llvm.compiler import compile_assembly
from armpy_numba_acc.machine.cost_model.trials import NUM_ACCESSES, NUM_TOTALS, TimedLoop, trials_of
from armpy_numba_acc.machine.isa import Isa, make_isa

X86, ARM = "x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"
AVX512 = frozenset({"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd"})
ISAS = (
    make_isa("avx2", X86, "haswell", frozenset()),
    make_isa("avx2vnni", X86, "arrowlake-s", frozenset()),
    make_isa("avx512", X86, "skylake-avx512", AVX512),
    make_isa("avx512vnni", X86, "znver4", AVX512 | {"avx512vnni", "avx512bf16"}),
    make_isa("neon-basic", ARM, "cortex-a72", frozenset()),
    make_isa("neon", ARM, "neoverse-n1", frozenset()),
    make_isa("i8mm", ARM, "neoverse-v1", frozenset()),
)

PATTERNS = {
    "chain": ("imul", "m(ul|add)"),
    "f32": (r"vfn?madd\w+ps", "fml[as]"),
    "u8": (r"(\{vex\}\s+)?vp(maddwd|dpbusd|dpbssd)", r"(sm(ul|la)l2?|[su]{1,2}dot)"),
    "bf16": ("vdpbf16ps", "bf(dot|mmla|mlal[bt])"),
    "loads": (r"\w+.*\(%r\w+.*%[yz]mm\d+$", "ld[rp]"),
    "stores": (r"v?mov\w+\s+%[yz]mm\d+, .*\(%r", "st[rp]"),
    "broadcasts": (r"v\w*broadcast|vaddps.*.*1to", "(ld1r|fmla.*\\[|dup)"),
}
"""Instructions of x86 and of Arm, by trial or by its kind."""


def instructions_of(isa: Isa, trial: TimedLoop, monkeypatch: pytest.MonkeyPatch) -> int:
    """How often the block that has most of a trial's instruction has it."""
    monkeypatch.setattr(machine_trial, "trials_of", lambda _: (trial,))
    assembly = compile_assembly(machine_trial.make(isa), "kernel", isa)
    is_product = trial.what in ("steps", "wait")
    name = trial.what
    if is_product:
        name = trial.kind
    elif name == "tile":
        name = "f32"
    pattern = re.compile(PATTERNS[name][isa.triple == ARM])
    blocks = re.split(r"^\.?\w+:.*$", assembly, flags=re.MULTILINE)
    loops = [block for block in blocks if re.search(r"^\s+(j[a-z]+|b\.\w+|cbn?z)\s", block, re.M)]
    return max(
        sum(bool(pattern.match(line.strip())) for line in block.splitlines()) for block in loops
    )


def least(isa: Isa, trial: TimedLoop) -> int:
    """How often a turn of the loop executes it."""
    if trial.what == "tile":
        return trial.rows * trial.vectors
    per_sum = 2 if trial.kind == "u8" and not isa.dot else 1
    counts = {"chain": 4, "steps": NUM_TOTALS * per_sum, "wait": per_sum}
    # A pair of registers may be loaded or stored together.
    accesses = NUM_ACCESSES // 2 if isa.triple == ARM else NUM_ACCESSES
    return counts.get(trial.what, accesses)


@pytest.mark.slow
@pytest.mark.sampled(23)
@pytest.mark.parametrize("isa", ISAS, ids=lambda isa: isa.name)
def test_a_trial_executes_its_instruction_in_its_loop(
    isa: Isa, monkeypatch: pytest.MonkeyPatch
) -> None:
    trials = trials_of(isa)
    counts = {
        str(trial): (instructions_of(isa, trial, monkeypatch), least(isa, trial))
        for trial in trials
    }
    missing = {trial: count for trial, count in counts.items() if count[0] < count[1]}
    assert not missing
