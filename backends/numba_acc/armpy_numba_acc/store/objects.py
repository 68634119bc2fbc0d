"""Compiled kernels: in the process, on disk, or made now."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from armpy.backend import (
    CacheUse,
    Progress,
    postpone_compilation,
    report_cache_use,
    report_progress,
)
from armpy.core.units import counted
from armpy.errors import BackendUnavailableError
from armpy.store.entries import Entries
from armpy_numba_acc import llvm, native, store  # packs: imported where a kernel is not kept
from armpy_numba_acc.machine.compiler import check_working_directory, missing_compiler
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.machine.kernel import Kernel
from armpy_numba_acc.store.keys import is_current, object_key
from armpy_numba_acc.store.parallel_compile import CompileWorkers, compile_workers
from armpy_numba_acc.store.settings import disk_entries

_log = logging.getLogger("armpy.NumbaAcc")

KERNELS = "object"
"""Kind of the entries of compiled kernels."""

LOOPS = "loops"
"""Kind of the entries of loops that kernels are made with, as LLVM's bitcode."""

_LOCK = threading.RLock()
_ADDRESSES: dict[tuple[str, Kernel], int] = {}

if hasattr(os, "register_at_fork"):
    # A child must not be left with a kernel half made, nor with locks of threads it does not have.
    os.register_at_fork(
        before=_LOCK.acquire, after_in_parent=_LOCK.release, after_in_child=_LOCK.release
    )


def kernel_addresses(
    kernels: Sequence[Kernel], isa: Isa, num_processes: int = 1
) -> dict[Kernel, int]:
    """Address of each kernel's code, compiled if need be.

    Parameters
    ----------
    num_processes
        Limit for those that compile side by side if many are missing.

    Raises
    ------
    BackendUnavailableError
        If a kernel is missing that cannot be compiled here.
    """
    with _LOCK:
        # Under the lock: two threads that load one model would compile everything twice.
        missing = [k for k in dict.fromkeys(kernels) if (isa.key, k) not in _ADDRESSES]
        if missing:
            codes = _without_foreign(object_codes(missing, isa, num_processes), isa)
            addresses = _loaded(codes, isa)
            for kernel in missing:
                _ADDRESSES[isa.key, kernel] = addresses[kernel.symbol]
        return {kernel: _ADDRESSES[isa.key, kernel] for kernel in kernels}


def _loaded(codes: Mapping[Kernel, bytes], isa: Isa) -> dict[str, int]:
    """The addresses by symbol; code that the own loader does not support is compiled anew."""
    objects = {kernel.symbol: code for kernel, code in codes.items()}
    try:
        return native.load_objects(objects, are_compiled_here=False)
    except native.UnsupportedError as error:
        reasons = {kernel: native.why_unsupported(kernel.symbol, codes[kernel]) for kernel in codes}
        damaged = [kernel for kernel in codes if reasons[kernel]] or [*codes]
        reason = f"the code of '{damaged[0].symbol}' cannot be used: {reasons[damaged[0]] or error}"
    anew = _compiled_anew(damaged, isa, reason)
    return native.load_objects(objects | {kernel.symbol: code for kernel, code in anew.items()})


def _without_foreign(codes: Mapping[Kernel, bytes], isa: Isa) -> dict[Kernel, bytes]:
    """The object codes, those that are not for this processor compiled anew."""
    reasons = {kernel: native.why_foreign(code) for kernel, code in codes.items()}
    foreign = [kernel for kernel, reason in reasons.items() if reason]
    if not foreign:
        return {**codes}
    reason = f"the code of '{foreign[0].symbol}' cannot be used: {reasons[foreign[0]]}"
    return {**codes, **_compiled_anew(foreign, isa, reason)}


def _compiled_anew(kernels: Sequence[Kernel], isa: Isa, reason: str) -> dict[Kernel, bytes]:
    """Object codes in the place of ones that cannot be used for some reason."""
    if missing := missing_compiler():
        raise BackendUnavailableError(missing, where="NumbaAcc", actual=reason)
    _log.warning("%d kernels are compiled again: %s", len(kernels), reason)
    return {kernel: _compiled(kernel, isa) for kernel in kernels}


def object_codes(
    kernels: Sequence[Kernel], isa: Isa, num_processes: int = 1
) -> dict[Kernel, bytes]:
    """Object code of each kernel, from disk, from a kernel pack, or compiled and kept on disk.

    Parameters
    ----------
    kernels
        Each once.
    num_processes
        As for `kernel_addresses`.

    Raises
    ------
    BackendUnavailableError
        If a kernel is missing that cannot be compiled here.
    """
    entries = disk_entries()
    keys = {kernel: object_key(kernel, isa) if entries else "" for kernel in kernels}
    codes: dict[Kernel, bytes] = {}
    for kernel, key in keys.items():
        if entries is not None and key and (parts := entries.read(KERNELS, key)):
            codes[kernel] = bytes(parts[0])
    num_kept = len(codes)
    missing = [kernel for kernel in kernels if kernel not in codes]
    packed = store.packed_codes(missing, isa) if missing else {}
    packs = Counter(code.where for code in packed.values())
    codes |= {kernel: code.code for kernel, code in packed.items()}
    absent = [kernel for kernel in missing if kernel not in packed]
    if absent and (reason := missing_compiler()):
        raise BackendUnavailableError(
            reason,
            where="NumbaAcc",
            expected=f"code of '{absent[0].symbol}' for {isa.name}",
            actual=f"none; {len(absent)} of {len(kernels)} kernels are missing",
        )
    if absent:
        is_kept = entries is not None and all(keys.values()) and is_current()
        postpone_compilation("NumbaAcc", counted(len(absent), "kernel"), is_kept=is_kept)
    if entries is not None or packs:
        problem = "" if entries is None else entries.problem
        _report_sources(num_kept, packs, len(absent), f"not kept: {problem}" if problem else "")
    if entries is not None and all(keys.values()) and is_current():
        # Kernels of one name share what Numba translates: one process does most of them.
        absent.sort(key=lambda kernel: kernel.name)
        with compile_workers(absent, isa, num_processes, compile_free) as others:
            return codes | _shared(absent, isa, entries, keys, others)
    for number, kernel in enumerate(absent):
        _report(number, len(absent))
        codes[kernel] = _compiled(kernel, isa)
    _report(len(absent), len(absent))
    return codes


def _report_sources(kept: int, packs: Mapping[str, int], compiled: int, problem: str) -> None:
    """Report how many kernels come from the cache, from packs by path, and from the compiler."""
    uses = [
        (kept, " from the cache", True, ""),
        *((count, " from packs", True, path) for path, count in packs.items()),
        (compiled, "", False, problem),
    ]
    for count, origin, is_hit, reason in uses:
        if count:
            what = counted(count, "kernel") + origin
            report_cache_use(CacheUse("NumbaAcc", what, is_hit, reason))


def _shared(
    kernels: Sequence[Kernel],
    isa: Isa,
    entries: Entries,
    keys: Mapping[Kernel, str],
    workers: CompileWorkers,
) -> dict[Kernel, bytes]:
    """Object code of kernels that are not on disk, each compiled by one process of many.

    What another process is compiling comes last, so that several share the work.
    """
    codes: dict[Kernel, bytes] = {}
    waiting: list[Kernel] = [*kernels]
    # First those that are free, then those that another process has not finished.
    for is_last in (False, True):
        others: list[Kernel] = []
        for kernel in waiting:
            until_s = None if is_last else time.perf_counter()  # waits, or does not
            with entries.making(KERNELS, keys[kernel], until_s) as is_held:
                if not (is_held or is_last):
                    others.append(kernel)
                    continue
                _report(len(codes), len(kernels))
                codes[kernel] = _kept_or_made(kernel, isa, entries, keys[kernel])
        waiting = others
        if waiting:
            workers.finish()
    _report(len(kernels), len(kernels))
    return codes


def compile_free(kernels: Sequence[Kernel], isa: Isa) -> None:
    """Compile and keep those kernels that are not on disk, and that no process is compiling."""
    entries = disk_entries()
    for kernel in kernels:
        key = object_key(kernel, isa)
        if entries is None or not (key and is_current()):
            return
        with entries.making(KERNELS, key, time.perf_counter()) as is_held:
            if is_held:
                _kept_or_made(kernel, isa, entries, key)


def _kept_or_made(kernel: Kernel, isa: Isa, entries: Entries, key: str) -> bytes:
    """Object code that has just been written by another process, or is made now and kept."""
    if parts := entries.read(KERNELS, key):
        return bytes(parts[0])
    code = _compiled(kernel, isa)
    # Sources that were changed meanwhile have other keys: this code is not theirs.
    if is_current():
        about = f"{kernel.symbol} for {isa.name}"
        entries.write(KERNELS, key, [code], about, f"kernels for {isa.name}, of all models")
    return code


def _compiled(kernel: Kernel, isa: Isa) -> bytes:
    """A kernel's object code, made now."""
    check_working_directory()
    return llvm.build_kernel(kernel, isa, _kept_loops)


def shared_loops(kernels: Sequence[Kernel], isa: Isa) -> dict[str, bytes]:
    """Loops that kernels are made with, by name, as packs have them among kernels."""
    loops: dict[str, bytes] = {}
    for kernel in kernels:
        loops |= llvm.loops_for(kernel, isa, _kept_loops)
    return loops


def _kept_loops(name: str, isa: Isa, make: Callable[[], bytes]) -> bytes:
    """Loops that kernels are made with: from disk, from a kernel pack, or made now and kept."""
    entries, kernel = disk_entries(), Kernel(name)
    key = object_key(kernel, isa) if entries is not None else ""
    if entries is not None and key and (parts := entries.read(LOOPS, key)):
        return bytes(parts[0])
    if packed := store.packed_codes([kernel], isa):
        return packed[kernel].code
    loops = make()
    if entries is not None and key and is_current():
        about = f"{name} for {isa.name}"
        entries.write(LOOPS, key, [loops], about, f"kernels for {isa.name}, of all models")
    return loops


def _report(done: int, total: int) -> None:
    """Say how many kernels are compiled, if any has to be."""
    if total:
        report_progress(Progress("NumbaAcc", "compiling kernels", done, total))
