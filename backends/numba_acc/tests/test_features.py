"""Kernels carry the features that they use, whatever LLVM says of the processor at hand.

LLVM ends the process at an instruction that its target lacks: kernels are compiled in others.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence

import pytest
from armpy_numba_acc.machine.isa import Isa, make_isa

from armpy_testing.effort import IS_CAMPAIGN

from .families import FAMILIES, family_network, kernels_of
from .support import run_apart

ARM = "aarch64-unknown-linux-gnu"
HIDDEN = frozenset({"aes", "sha2", "rand", "sve"})
"""What LLVM finds missing if ``/proc/cpuinfo`` is that of the machine below an emulated one."""

AVAILABLE = {
    "i8mm": frozenset({"neon", "fullfp16", "dotprod", "i8mm", "bf16"}),
    "neon": frozenset({"neon", "fullfp16", "dotprod"}),
    "neon-basic": frozenset({"neon"}),
    "portable": frozenset[str](),
}
"""Features of processors, by the best instruction set that they have."""

INSTRUCTIONS = {
    "dotprod": ("sdot", "udot"),
    "i8mm": ("usdot", "sudot", "usmmla", "ummla", "smmla"),
    "bf16": ("bfmmla", "bfdot", "bfcvtn"),
}
"""Arm's instructions that not every processor has, by LLVM's name of the feature."""

OWN = ("svdf, integers", "svdf, bytes", "vector_matrix_u8", "lstm_q8", "convolution_u8, products")
"""Families of which some kernels multiply bytes by instructions of their own."""

SHORT = ("i8mm",)
"""Instruction sets that are enough where time is short: the one of most instructions."""

COMPILE = """
import faulthandler, importlib, json, sys
faulthandler.enable()
from numba.core.codegen import JITCodeLibrary
from armpy_numba_acc.llvm.compiler import compile_assembly
from armpy_numba_acc.machine.isa import Isa
isa, kernels = json.loads({given!r})
isa = Isa(*isa)
# Numba compiles parts of its own, which are for any processor.
compile_for_this_processor = JITCodeLibrary._finalize_specific
def checked(library):
    assert "llvm.aarch64" not in library.get_llvm_str(), library.name
    compile_for_this_processor(library)
JITCodeLibrary._finalize_specific = checked
found = {{}}
for name, parameters in kernels:
    print(name, parameters, file=sys.stderr)
    function = importlib.import_module(f"armpy_numba_acc.kernels.{{name}}").make(isa, *parameters)
    text = compile_assembly(function, "kernel", isa)
    found[name] = sorted(set(text.split()) | set(found.get(name, ())))
print(json.dumps(found))
"""

SELECT = """
import llvmlite.binding as llvm
llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()
name = "<4 x i32> @llvm.aarch64.neon.usmmla.v4i32.v16i8(<4 x i32> %0, <16 x i8> %1, <16 x i8> %2)"
types = name.replace(" %0", "").replace(" %1", "").replace(" %2", "")
text = f"declare {{types}}\\n" + name.join((
    "define <4 x i32> @f(<4 x i32> %0, <16 x i8> %1, <16 x i8> %2) {{\\n%4 = call ",
    "\\nret <4 x i32> %4\\n}}",
))
for features in {features}:
    target = llvm.Target.from_triple("aarch64-unknown-linux-gnu")
    machine = target.create_target_machine(cpu="generic", features=features)
    assembly = machine.emit_assembly(llvm.parse_assembly(text))
    print(*(word for word in assembly.split() if word == "usmmla"))
"""


def arm_isa(name: str) -> Isa:
    return make_isa(name, ARM, "generic", AVAILABLE[name], HIDDEN)


def compiled(isa: Isa, families: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Compile the families' kernels, each once, in a process of its own; the words of each."""
    lowered = (kernels_of(family_network(family)[0], isa) for family in families)
    kernels = dict.fromkeys(kernel for program_kernels in lowered for kernel in program_kernels)
    request = json.dumps([isa, [[kernel.name, kernel.parameters] for kernel in kernels]])
    return run_apart(COMPILE.format(given=request), 1200)


@pytest.mark.slow
@pytest.mark.parametrize("name", AVAILABLE)
def test_families_are_of_the_kernels_that_they_are_named_after(name: str) -> None:
    for family in FAMILIES:
        names = [kernel.name for kernel in kernels_of(family_network(family)[0], arm_isa(name))]
        assert any(kernel_name.startswith(family.partition(",")[0]) for kernel_name in names), (
            family
        )


@pytest.mark.slow
@pytest.mark.parametrize("name", AVAILABLE)
def test_llvm_selects_every_instruction_of_each_family(name: str) -> None:
    if not IS_CAMPAIGN and name not in SHORT:
        pytest.skip("is of campaigns (ARMPY_TEST_EFFORT=3)")
    isa = arm_isa(name)
    done = compiled(isa, FAMILIES if IS_CAMPAIGN else OWN)
    assert done.returncode == 0, done.stderr[-2000:]
    words = json.loads(done.stdout)
    used = {word for word_list in words.values() for word in word_list}
    has = set(isa.features.split(","))
    for feature, instructions in INSTRUCTIONS.items():
        if f"+{feature}" not in has:
            assert used.isdisjoint(instructions), feature
    if name != "portable":
        expected = {"i8mm": "usdot", "neon": "sdot", "neon-basic": "smlal"}[name]
        assert any(word.startswith(expected) for word in words["svdf"])


@pytest.mark.slow
def test_a_kernel_without_its_feature_is_found_out() -> None:
    isa = arm_isa("i8mm")
    done = compiled(isa._replace(features=isa.features.replace("+i8mm", "-i8mm")), OWN[:1])
    assert done.returncode != 0
    assert "Cannot select" in done.stderr
    assert "svdf" in done.stderr


def test_what_llvm_misses_takes_nothing_from_what_kernels_use() -> None:
    parts = ("fp-armv8", "neon", "dotprod", "i8mm")
    isas = [make_isa("i8mm", ARM, "generic", AVAILABLE["i8mm"], HIDDEN | {part}) for part in parts]
    done = run_apart(SELECT.format(features=[isa.features for isa in isas]))
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["usmmla"] * len(parts)
