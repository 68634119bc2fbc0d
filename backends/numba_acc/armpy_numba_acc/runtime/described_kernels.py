"""Describes what kernels come from on this machine, for `armpy doctor`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version

from armpy.core.installation import restore_command
from armpy.core.units import counted
from armpy.errors import InvalidArgumentError, ParserError
from armpy.store.archive.kernel_packs import RESTORE, FoundPack, found_packs, why_damaged
from armpy_numba_acc.machine.compiler import broken_compiler, missing_compiler
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.store.objects import KERNELS, LOOPS
from armpy_numba_acc.store.packs import own_packs, why_not
from armpy_numba_acc.store.settings import disk_entries


def described_kernels(chosen_isa: Callable[[], Isa]) -> Iterator[str]:
    """The compiler, the instruction set in force, which packs are used, and what the cache has.

    `chosen_isa` raises InvalidArgumentError where the environment names one that cannot be used.
    """
    if missing := missing_compiler():
        yield f"compiler: {missing}"
    elif broken := broken_compiler():
        # The doctor counts lines that begin so, and the command is what it prints last.
        yield (
            "problem: kernels cannot be compiled, as Numba cannot be imported: "
            f"{broken.rstrip('.')}. Run: pip install --force-reinstall numba"
        )
    else:
        yield "compiler: Numba and LLVM"
    try:
        isa = chosen_isa()
    except InvalidArgumentError as error:
        yield f"instruction set: {error}"
        return
    yield f"instruction set: {isa.name}"
    own = own_packs()
    found = found_packs(own)
    faults = {file.path: _fault(file, is_own=file.path in own) for file in found}
    for path in own:
        if fault := faults.get(path):
            yield f"problem: kernels are not taken from {path}: {fault}"
    reasons = {
        file.path: faults[file.path] or (why_not(file.pack.about, isa) if file.pack else "")
        for file in found
    }
    for path, reason in reasons.items():
        if not reason:
            yield f"pack: {path}: used"
    unused = [path for path, reason in reasons.items() if reason]
    if len(unused) == len(reasons):
        for path in unused:
            yield f"pack: {path}: not used: {reasons[path]}"
        yield "no pack is used: what is not in the cache is compiled at the first start"
    elif unused:
        yield f"{counted(len(unused), 'pack')} for other machines; armpy kernels list says why"
    yield _cached()


def _cached() -> str:
    """How many kernels the cache has, and how many parts of kernels as LLVM's bitcode."""
    entries = disk_entries()
    if entries is None:
        return "cache: switched off"
    names = [path.name for path, _ in entries.entry_files()]
    kernels, loops = (
        sum(name.startswith(f"{kind}-") for name in names) for kind in (KERNELS, LOOPS)
    )
    bitcode = f"loops that kernels share, as bitcode: {loops}"
    return f"cache: {counted(kernels, 'compiled kernel')}; {bitcode}"


def _fault(file: FoundPack, *, is_own: bool) -> str:
    """Why a pack cannot be read, with the fix; empty if it can."""
    try:
        if file.pack is not None:
            file.pack.check()
            return ""
    except ParserError as error:
        reason = why_damaged(error, is_own=is_own)
    else:
        reason = file.reason
    return reason.replace(RESTORE, f"Run: {_restore_command(file.path)}")


def _restore_command(path: str) -> str:
    """Return the command that restores a pack of the distribution that NumbaAcc comes with."""
    try:
        version("armpy-numba-acc")
    except PackageNotFoundError:
        return restore_command(path, {"armpy": "."})
    return restore_command(path, {"armpy-numba-acc": "backends/numba_acc"})
