"""The kernel packs that come with NumbaAcc: what their lists name, from the sources of today."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest
from armpy_numba_acc import ahead
from armpy_numba_acc.llvm.build import build_kernel
from armpy_numba_acc.llvm.host import host_isas
from armpy_numba_acc.machine.kernel import Kernel
from armpy_numba_acc.machine.processors.targets import named_target, runs_on
from armpy_numba_acc.store.abi import abi_digest
from armpy_numba_acc.store.keys import code_digest
from armpy_numba_acc.store.packs import OWN_PACKS, own_packs, why_not

from armpy.store.archive.container import open_container
from armpy.store.archive.kernel_packs import KernelPack
from armpy_testing.digits import MODEL
from armpy_testing.effort import effort

from .support import instructions

pytest.importorskip("lab.build_kernels", reason="lab/ is in a checkout of armpy alone")
from lab.build_kernels import TARGETS, read_table

REMEDY = "run lab/build_kernels.py and commit what it writes"


def opened(target: str) -> KernelPack:
    return KernelPack(open_container(OWN_PACKS / f"{target}.kernels"))


def test_each_target_has_a_pack() -> None:
    assert [Path(path).stem for path in own_packs()] == sorted(TARGETS)


@pytest.mark.parametrize("target", TARGETS)
def test_a_pack_has_what_its_list_names_and_is_current(target: str) -> None:
    pack = opened(target)
    pack.check()
    kernels = read_table()[target]
    symbols = {kernel.symbol for kernel in kernels}
    loops = {name for name in pack.names() if name.startswith("armpy_numba_acc.")}
    assert loops
    assert {*pack.names()} == symbols | loops, REMEDY
    names = {kernel.name for kernel in kernels} | loops
    assert pack.about["sources"] == {name: code_digest(name) for name in names}, REMEDY
    assert pack.about["abi"] == abi_digest(), REMEDY
    assert pack.about["isa"] == [*named_target(target).isa]


@pytest.mark.slow
@pytest.mark.parametrize(
    "kernel",
    [Kernel("executor"), Kernel("pad_image"), Kernel("softmax", ("softmax",))],
    ids=lambda kernel: kernel.symbol,
)
@pytest.mark.parametrize("target", ["x86-64-v3", "neoverse-v1"])
def test_the_code_is_what_the_sources_give(kernel: Kernel, target: str) -> None:
    code = opened(target).find([kernel.symbol])[kernel.symbol]
    assert instructions(code) == instructions(build_kernel(kernel, named_target(target).isa))


_FIRST_START = """
import sys
import armpy
model = armpy.load(sys.argv[1], backends=["NumbaAcc"])
print(*(use for use in model.placement.cache_uses if "kernel" in use.what), sep="\\n")
print("numba" in sys.modules)
"""


@pytest.mark.slow
def test_a_first_start_compiles_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    abouts = [opened(target).about for target in TARGETS]
    isas = [isa for isa in host_isas() if not all(why_not(about, isa) for about in abouts)]
    if not isas:
        pytest.skip("no pack is for this machine")
    monkeypatch.setenv("ARMPY_NUMBA_ISA", isas[0].name)
    monkeypatch.delenv("ARMPY_KERNELS")
    monkeypatch.setenv("ARMPY_CACHE_DIR", str(tmp_path))
    # With measured figures, another kernel may be best from one run to the next.
    monkeypatch.setenv("ARMPY_NUMBA_MACHINE", "typical")
    command = [sys.executable, "-c", _FIRST_START, str(MODEL)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert "compiled" not in printed
    assert f"kernels from packs: found ({OWN_PACKS}" in printed
    assert printed.endswith("False\n")


def test_kernels_for_other_targets_are_saved_with_what_they_share() -> None:
    saved = ahead.saved_kernels([Kernel("lookup", (1, 1))], named_target("neoverse-n1"))
    assert {*saved.kernels} == {"lookup_1_1", "armpy_numba_acc.kernels.lookup._lookup_bytes"}


_DAMAGED_START = """
import hashlib, sys
from pathlib import Path
from armpy_numba_acc.store import packs
packs.OWN_PACKS = Path(sys.argv[2])
import armpy
import numpy as np
model = armpy.load(sys.argv[1], backends=["NumbaAcc"])
picture = np.random.default_rng(5).integers(-128, 128, (1, 16, 16, 1), np.int8)
print(hashlib.sha256(model(picture).tobytes()).hexdigest())
"""


@pytest.mark.slow
def test_a_pack_with_a_changed_byte_gives_the_same_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = next(name for name in TARGETS if not runs_on(named_target(name)))
    (tmp_path / "packs").mkdir()
    changed = tmp_path / "packs" / f"{target}.kernels"
    monkeypatch.setenv("ARMPY_NUMBA_ISA", named_target(target).isa.name)
    monkeypatch.delenv("ARMPY_KERNELS")

    def start(number: int) -> tuple[str, list[str]]:
        """The answer of a first start, and the lines about packs."""
        monkeypatch.setenv("ARMPY_CACHE_DIR", str(tmp_path / f"cache {number}"))
        model = str(MODEL)
        command = [sys.executable, "-c", _DAMAGED_START, model, str(changed.parent)]
        ended = subprocess.run(command, check=True, capture_output=True, text=True)
        return ended.stdout, [line for line in ended.stderr.splitlines() if "pack" in line]

    whole = (OWN_PACKS / f"{target}.kernels").read_bytes()
    changed.write_bytes(whole)
    expected, lines = start(0)
    assert lines == []
    chance, said = random.Random(7), list[str]()
    for number in range(1, 1 + effort(4)):
        damaged = bytearray(whole)
        damaged[chance.randrange(len(whole))] ^= 1 << chance.randrange(8)
        changed.write_bytes(damaged)
        answer, lines = start(number)
        assert answer == expected
        assert len(lines) <= 1
        said += lines
    assert said
