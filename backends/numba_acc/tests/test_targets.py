"""Targets need what LLVM's models of the processors say that code for them may use."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np
import pytest
from armpy_numba_acc import NumbaBackend, ahead
from armpy_numba_acc.llvm.host import host_isas
from armpy_numba_acc.machine.isa import make_isa
from armpy_numba_acc.machine.processors import arm, targets
from armpy_numba_acc.machine.processors import features as processor
from armpy_numba_acc.machine.processors.features import Processor, this_processor
from armpy_numba_acc.machine.processors.targets import PROCESSORS, best_first, named_target, runs_on
from armpy_numba_acc.native.object_file import BEGINNING
from armpy_numba_acc.runtime.instance import Instance, LoadedCode

from armpy.backend import PreparationRequest
from armpy.errors import InvalidArgumentError
from armpy.graph import SubgraphView
from armpy.ops import PreCompiled

from .networks import convolutions, image
from .support import addresses_of, check_outputs, run_reference

X86_NAMES = frozenset(processor._LINUX_X86.values())
ARM_NAMES = frozenset(name for name, _, _ in arm._LINUX)

FUNCTIONS = """
define internal i32 @inner(i32 %x) #1 {{
  %y = add i32 %x, 1
  ret i32 %y
}}
define i32 @outer(i32 %x) #0 {{
  %y = call i32 @inner(i32 %x)
  ret i32 %y
}}
attributes #0 = {{ "target-cpu"="{cpu}" "tune-cpu"="generic" }}
attributes #1 = {{ "target-cpu"="{least}" "tune-cpu"="generic" "target-features"="{features}" }}
"""
"""LLVM puts the inner one into the outer one only if the outer one's processor has its features."""

LEAST = {"x86_64": ("x86-64", ""), "aarch64": ("generic", "-trbe,-ete,")}
"""A processor that all others of an architecture include, with what has to be taken off it."""


def has_by_llvm(triple: str, cpu: str, feature: str) -> bool:
    """Whether LLVM's model of a processor has a feature."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, opt=2)
    least, without = LEAST[triple.partition("-")[0]]
    text = FUNCTIONS.format(cpu=cpu, least=least, features=f"{without}+{feature}")
    module = llvm.parse_assembly(text)
    module.triple, module.data_layout = triple, str(machine.target_data)
    passes = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2))
    passes.getModulePassManager().run(module, passes)
    return "@inner" not in str(module)


@pytest.mark.sampled(7)
@pytest.mark.parametrize("name", PROCESSORS)
def test_targets_need_what_llvm_says_that_the_processor_has(name: str) -> None:
    target = named_target(name)
    triple = target.isa.triple
    known = X86_NAMES if triple.startswith("x86_64") else ARM_NAMES
    features = {feature for feature in known if has_by_llvm(triple, target.isa.cpu, feature)}
    assert features == target.needs


@pytest.mark.parametrize("name", PROCESSORS)
def test_what_is_asked_of_llvm_is_among_what_is_needed(name: str) -> None:
    target = named_target(name)
    wanted = {word[1:] for word in target.isa.features.split(",") if word.startswith("+")}
    # Every processor of these architectures has them.
    assert wanted <= target.needs


def test_features_are_read_as_llvm_reads_them() -> None:
    here = this_processor()
    if here.system != "linux" or here.architecture != "x86_64":
        pytest.skip("the kernel describes the features of x86-64 on Linux alone")
    of_llvm = {name for name, has in llvm.get_host_cpu_features().items() if has}
    assert here.features == of_llvm & X86_NAMES


def test_flags_are_those_of_the_first_processor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    description = tmp_path / "cpuinfo"
    description.write_text("processor : 0\nflags\t\t: fpu avx pni\n\nprocessor : 1\nflags : fma\n")
    monkeypatch.setattr(processor, "_DESCRIPTION", str(description))
    monkeypatch.setattr(sys, "platform", "linux")
    assert processor._described() == {"avx", "sse3"}
    description.unlink()
    assert processor._described() == frozenset()


def machine_with(architecture: str, features: Iterable[str], system: str = "linux") -> Processor:
    return Processor(system, architecture, frozenset(features))


SAPPHIRE_RAPIDS = machine_with("x86_64", named_target("sapphirerapids").needs)
GRAVITON2 = machine_with("aarch64", named_target("neoverse-n1").needs)


@pytest.mark.parametrize(
    ("name", "machine", "reason"),
    [
        ("sapphirerapids", SAPPHIRE_RAPIDS, ""),
        ("x86-64-v2", SAPPHIRE_RAPIDS, ""),
        ("znver4", SAPPHIRE_RAPIDS, "this processor lacks sse4a, according to the system"),
        ("cortex-a72", GRAVITON2, ""),
        ("neoverse-v1", GRAVITON2, "lacks bf16, complxnum, flagm, fp16fml, i8mm, jsconv, lse2,"),
        ("neoverse-n1", SAPPHIRE_RAPIDS, "it is for aarch64, and this is x86_64"),
        (
            "haswell",
            machine_with("x86_64", X86_NAMES, "darwin"),
            "it is for linux, and this is darwin",
        ),
        ("x86-64-v3", machine_with("x86_64", ()), "lacks avx, avx2, bmi, "),
    ],
)
def test_it_is_said_why_a_processor_cannot_run_code(
    name: str, machine: Processor, reason: str
) -> None:
    said = runs_on(named_target(name), machine)
    assert re.search(reason, said) if reason else said == ""


def test_the_matrix_unit_needs_the_systems_permission(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "this_processor", lambda: SAPPHIRE_RAPIDS)
    for allowed in (True, False):
        monkeypatch.setattr(targets, "may_use_matrix_unit", lambda allowed=allowed: allowed)
        assert ("does not let" in runs_on(named_target("sapphirerapids"))) is not allowed
        assert runs_on(named_target("icelake-server")) == ""


@pytest.mark.parametrize(
    ("machine", "names"),
    [
        (
            SAPPHIRE_RAPIDS,
            "sapphirerapids icelake-server x86-64-v4 skylake-avx512 x86-64-v3 haswell x86-64-v2",
        ),
        (machine_with("x86_64", named_target("znver5").needs), "znver5 znver4 icelake-server"),
        (machine_with("x86_64", named_target("haswell").needs), "x86-64-v3 haswell x86-64-v2"),
        (machine_with("aarch64", named_target("neoverse-v1").needs), "neoverse-v1"),
        (GRAVITON2, "cortex-a76 neoverse-n1 cortex-a72"),
        (machine_with("aarch64", {"neon"}), "cortex-a72"),
        (machine_with("riscv64", ()), ""),
    ],
)
def test_what_makes_most_of_a_processor_comes_first(machine: Processor, names: str) -> None:
    names_found = [target.name for target in best_first(map(named_target, PROCESSORS), machine)]
    assert names_found[: len(names.split())] == names.split()
    if not names:
        assert not names_found


def test_macs_run_what_was_compiled_on_them() -> None:
    machine = machine_with("aarch64", {"neon", "dotprod"}, "darwin")
    isa = make_isa("neon", "arm64-apple-darwin24.0.0", "apple-m1", machine.features)
    target = targets.host_target(isa, 4, machine)
    assert runs_on(target, machine) == ""
    assert runs_on(target, GRAVITON2) == "it is for darwin, and this is linux"


def test_this_machine_runs_its_own_code() -> None:
    here = ahead.target("host")
    assert runs_on(here) == ""
    assert here.isa == host_isas()[0]
    assert here.needs >= {w[1:] for w in here.isa.features.split(",") if w.startswith("+")}


def test_code_of_this_machine_needs_all_that_llvms_model_may_use() -> None:
    isa = next((isa for isa in host_isas() if isa.name.startswith("avx512")), None)
    if isa is None:
        pytest.skip("other instruction sets are compiled for a model of their own")
    assert targets.host_target(isa, 1).needs == this_processor().features
    weaker = Processor("linux", "x86_64", this_processor().features - {"gfni", "avx512bitalg"})
    if weaker != this_processor():
        assert "lacks avx512bitalg, gfni" in runs_on(targets.host_target(isa, 1), weaker)


@pytest.mark.parametrize(
    ("name", "said"),
    [("neoverse", "Did you mean 'neoverse-"), ("z80", "Expected host or x86-64-v2")],
)
def test_unknown_targets_are_refused_with_those_that_there_are(name: str, said: str) -> None:
    with pytest.raises(InvalidArgumentError, match=said) as caught:
        ahead.target(name)
    assert all(name in str(caught.value) for name in ("host", *PROCESSORS))


def test_targets_are_known_without_numpy_llvm_and_the_rest_of_armpy() -> None:
    code = (
        "import sys; from armpy_numba_acc.machine.processors import targets; "
        "list(map(targets.named_target, targets.PROCESSORS)); "
        "targets.best_first(map(targets.named_target, targets.PROCESSORS)); "
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = done.stdout.split()
    assert not {"numpy", "numba", "llvmlite"} & {*modules}
    assert len([name for name in modules if name.startswith("armpy")]) <= 14


MACHINES = {"x86_64": 62, "aarch64": 183}
"""In the headers of object files (ELF)."""


@pytest.mark.slow
@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["x86-64-v2", "znver5", "cortex-a72", "neoverse-v2"])
def test_code_is_made_for_any_target_on_any_machine(name: str) -> None:
    graph = convolutions(8, 4).build()
    aim = ahead.target(name, {"num_threads": 2})
    program, objects = ahead.compile_for(SubgraphView.of(graph, graph.layers), aim)
    assert program.num_threads == 2
    assert {*program.kernels} < objects.keys()
    assert {kernel.name for kernel in objects} >= {"executor", "python_call", "worker"}
    for code in objects.values():
        assert code.startswith(BEGINNING)
        assert int.from_bytes(code[18:20], "little") == MACHINES[aim.isa.triple.partition("-")[0]]


def test_code_for_this_machine_is_what_it_compiles_anyway() -> None:
    graph = convolutions(8, 4).build()
    view = SubgraphView.of(graph, graph.layers)
    views = NumbaBackend().optimize_subgraph_view(view, PreparationRequest())
    (layer,) = views.substitutions[0].replacement.layers
    _, objects = ahead.compile_for(view, ahead.target("host"))
    assert isinstance(layer.operation, PreCompiled)
    assert {*layer.operation.program.kernels} < objects.keys()


@pytest.mark.slow
@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", PROCESSORS)
def test_code_runs_on_processors_that_have_what_it_needs(name: str) -> None:
    aim = ahead.target(name, {"num_threads": 2})
    if reason := runs_on(aim):
        pytest.skip(reason)
    network, inputs = convolutions(8, 4, 2), image(8, 4)
    graph = network.build()
    program, objects = ahead.compile_for(SubgraphView.of(graph, graph.layers), aim)
    result = np.empty_like(inputs["x"])
    Instance(LoadedCode(program, aim.isa, addresses=addresses_of(objects))).run(
        [inputs["x"], result]
    )
    check_outputs(network, run_reference(network, inputs), {"y": result}, name)
