"""Kernels that were compiled elsewhere, in kernel packs."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple
from weakref import WeakSet

from armpy.errors import BackendUnavailableError, ParserError
from armpy.store.archive.kernel_packs import KernelPack, packs_of
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.machine.kernel import Kernel
from armpy_numba_acc.machine.processors.targets import (
    Target,
    described,
    runs_on,
    target_of,
)
from armpy_numba_acc.store.abi import abi_digest
from armpy_numba_acc.store.keys import code_digest

_ID = "NumbaAcc"

_DIGITS = 16
"""Of a digest that stand in a name: enough to tell versions of a kernel apart."""

_log = logging.getLogger("armpy.NumbaAcc")


class PackedCode(NamedTuple):
    """A kernel's object code, and the pack that it is from."""

    code: bytes
    where: str


def about_kernels(target: Target) -> dict[str, object]:
    """Describe a pack's kernels, for `why_not`."""
    return {**described(target), "abi": abi_digest()}


def packed_name(name: str, symbol: str) -> str:
    """Name in a pack of a kernel, or of what kernels share: with the sources that it comes from.

    Parameters
    ----------
    name, symbol
        As of `Kernel`.

    Raises
    ------
    BackendUnavailableError
        If the sources have changed since this process has read them.
    """
    if digest := code_digest(name):
        return _named(symbol, digest)
    raise BackendUnavailableError(
        f"a pack cannot be made: the kernel '{symbol}' would have no version",
        where=_ID,
        expected="the sources that this process has read",
        actual="others on disk",
        fix="Start anew",
    )


def _named(symbol: str, digest: str) -> str:
    return f"{symbol} from {digest[:_DIGITS]}"


def why_not(about: Mapping[str, object], isa: Isa) -> str:
    """Why a pack's kernels cannot be used for an instruction set; empty if they can.

    They can if they are for an instruction set whose programs are laid out alike; the processor's
    model only decides on how LLVM orders instructions. Their names say which sources they are from.

    Parameters
    ----------
    about
        As `about_kernels` has made it, or whatever a file holds.
    """
    target = target_of(about)
    if target is None:
        return "its description cannot be parsed"
    if about.get("abi") != abi_digest():
        return "its kernels take other records than this NumbaAcc's"
    if reason := runs_on(target):
        return reason
    if target.isa.name != isa.name:
        return f"it is for {target.isa.name}, and {isa.name} is used"
    theirs, ours = _layout(target.isa), _layout(isa)
    if theirs != ours:
        others = [
            n
            for n, theirs_field, two in zip(Isa._fields, theirs, ours, strict=True)
            if theirs_field != two
        ]
        return f"its {target.isa.name} differs from this processor's in {', '.join(others)}"
    return ""


def packed_code(kernel: Kernel, isa: Isa) -> PackedCode | None:
    """A kernel's object code from a pack; None if there is none from these very sources."""
    digest = code_digest(kernel.name)
    if not digest:
        return None
    for pack in _fitting(packs_of(_ID), isa.strict()):
        if pack in _damaged:
            continue
        try:
            code = pack.find(_named(kernel.symbol, digest))
        except ParserError as error:
            _damaged.add(pack)
            _log.warning("kernels are compiled, as their pack cannot be used: %s", error)
            continue
        if code is not None:
            return PackedCode(code, pack.where)
    return None


_damaged: WeakSet[KernelPack] = WeakSet()
"""Packs that nothing more is read of."""


@lru_cache(maxsize=8)
def _fitting(packs: tuple[KernelPack, ...], isa: Isa) -> tuple[KernelPack, ...]:
    """The packs that fit an instruction set, this very processor's first."""
    fitting: list[tuple[Target, KernelPack]] = []
    for pack in packs:
        reason, target = why_not(pack.about, isa), target_of(pack.about)
        if reason:
            _log.info("kernels are not taken from %s: %s", pack.where, reason)
        elif target is not None:
            fitting.append((target, pack))
    # Several packs of one target complete each other, in the order in which they are named.
    fitting.sort(key=lambda pair: (pair[0].isa.cpu != isa.cpu, -len(pair[0].needs)))
    return tuple(pack for _, pack in fitting)


def _layout(isa: Isa) -> Isa:
    """Return the part of an instruction set that decides on kernels and on their data."""
    return isa.strict()._replace(triple="", cpu="", features="+f16c" * isa.has_half_conversions)
