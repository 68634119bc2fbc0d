"""Kernels that were compiled elsewhere, in kernel packs.

Notes
-----
A pack says from which sources each of its kernels comes, as a digest for each name: that of a
kernel's module, or of what kernels share. A kernel is taken if its sources are the same here.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple
from weakref import WeakSet

from armpy.errors import BackendUnavailableError, ParserError
from armpy.store.archive.kernel_packs import SUFFIX, KernelPack, packs_of, why_damaged
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.machine.kernel import Kernel
from armpy_numba_acc.machine.processors.targets import (
    PROCESSORS,
    Target,
    described,
    named_target,
    runs_on,
    target_of,
)
from armpy_numba_acc.store.abi import abi_digest
from armpy_numba_acc.store.keys import code_digest

_ID = "NumbaAcc"

OWN_PACKS = Path(__file__).parents[1] / "packs"
"""Folder of the packs that come with NumbaAcc, named by their targets."""

_log = logging.getLogger("armpy.NumbaAcc")


class PackedCode(NamedTuple):
    """A kernel's object code, and the pack that it is from."""

    code: bytes
    where: str


def about_kernels(target: Target, names: Iterable[str]) -> dict[str, object]:
    """Describe a pack's kernels, for `why_not`.

    Parameters
    ----------
    names
        Of the kernels' modules, and of what kernels share.

    Raises
    ------
    BackendUnavailableError
        If the sources have changed since this process has read them.
    """
    sources = {name: code_digest(name) for name in dict.fromkeys(names)}
    if not all(sources.values()):
        raise BackendUnavailableError(
            "a pack cannot be made: its kernels would have no version",
            where=_ID,
            expected="the sources that this process has read",
            actual="others on disk",
            fix="Start anew",
        )
    return {**described(target), "abi": abi_digest(), "sources": sources}


def own_packs() -> tuple[str, ...]:
    """Paths of the packs that come with NumbaAcc."""
    return tuple(sorted(map(str, OWN_PACKS.glob(f"*{SUFFIX}"))))


def why_not(about: Mapping[str, object], isa: Isa) -> str:
    """Why a pack's kernels cannot be used for an instruction set; empty if they can.

    They can if they are for an instruction set whose programs are laid out alike; the processor's
    model only decides on how LLVM orders instructions. At least one must be from these sources.

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
    sources = about.get("sources")
    if not isinstance(sources, dict) or not any(_is_current(name, about) for name in sources):
        return "none of its kernels was made from this NumbaAcc's sources"
    return ""


def packed_codes(kernels: Sequence[Kernel], isa: Isa) -> dict[Kernel, PackedCode]:
    """Object code, or loops that kernels share, from packs: what these very sources gave."""
    codes: dict[Kernel, PackedCode] = {}
    for pack in _fitting(isa.strict()):
        missing = {
            kernel.symbol: kernel
            for kernel in kernels
            if kernel not in codes and _is_current(kernel.name, pack.about)
        }
        if pack in _damaged or not missing:
            continue
        try:
            found = pack.find(missing)
        except ParserError as error:
            _damaged.add(pack)
            reason = why_damaged(error, is_own=pack.where in own_packs())
            text = "kernels are compiled, as their pack %s cannot be used: %s"
            _log.warning(text, pack.where, reason)
            continue
        codes |= {missing[name]: PackedCode(code, pack.where) for name, code in found.items()}
    return codes


def _is_current(name: str, about: Mapping[str, object]) -> bool:
    """Return whether a pack's code comes from the sources that are here."""
    sources = about.get("sources")
    digest = code_digest(name) if isinstance(name, str) else ""
    return bool(digest) and isinstance(sources, dict) and sources.get(name) == digest


_damaged: WeakSet[KernelPack] = WeakSet()
"""Packs that nothing more is read of."""


def _fitting(isa: Isa) -> tuple[KernelPack, ...]:
    """The packs that fit an instruction set."""
    targets = [name for name in PROCESSORS if named_target(name).isa.name == isa.name]
    own = [path for path in own_packs() if Path(path).stem in targets]
    return _sorted(packs_of(_ID, own), isa)


@lru_cache(maxsize=8)
def _sorted(packs: tuple[KernelPack, ...], isa: Isa) -> tuple[KernelPack, ...]:
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
