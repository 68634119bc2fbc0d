"""Object code of kernels that comes from a file: it takes the compiler's place.

Notes
-----
What a program needs can be loaded for it alone (`addresses_of`). Code that was made from this
armpy's own sources is as good as what would be compiled now, and can be given to all (`offer`).
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass

from armpy.errors import BackendUnavailableError
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.machine.kernel import Kernel
from armpy_numba_acc.native import elf
from armpy_numba_acc.store.abi import abi_digest
from armpy_numba_acc.store.keys import sources_digest


@dataclass(frozen=True, slots=True)
class Origin:
    """What object code was made from.

    Parameters
    ----------
    abi : str
        What it agrees on with those who call it: `abi_digest`.
    sources : str
        Digest of the sources that kernels and programs are made from; empty if unknown.
    """

    abi: str
    sources: str

    @classmethod
    def here(cls) -> Origin:
        """That of what this process makes."""
        return cls(abi_digest(), sources_digest())


_LOCK = threading.Lock()
_OFFERED: dict[str, dict[Kernel, bytes]] = {}
_ISAS: list[Isa] = []


def offer(isa: Isa, objects: Mapping[Kernel, bytes], origin: Origin) -> str:
    """Let everything that is lowered for an instruction set use object code from a file.

    Parameters
    ----------
    isa : Isa
        Which this processor must have, see `armpy_numba_acc.machine.targets.runs_on`.
    objects : mapping of Kernel to bytes
        They have been checked against what their file says of them.
    origin : Origin
        What they were made from.

    Returns
    -------
    str
        Why they are not used; empty if they are.
    """
    if origin.abi != abi_digest():
        return "the code calls and is called in another way than this armpy's"
    here = sources_digest()
    if not here or origin.sources != here:
        return "the code was made from other sources than this armpy's"
    with _LOCK:
        _ISAS.append(isa.strict())
        _OFFERED.setdefault(isa.key, {}).update(objects)
    return ""


def offered(kernel: Kernel, isa: Isa) -> bytes | None:
    """Object code of a kernel that was offered, if any was."""
    return _OFFERED.get(isa.key, {}).get(kernel)


def offered_isa() -> Isa | None:
    """The instruction set of what was offered first, if anything was.

    Notes
    -----
    Where nothing can be compiled, it is the one of the process: it must not change, as what is
    lowered for one is run later.
    """
    return _ISAS[0] if _ISAS else None


def addresses_of(objects: Mapping[Kernel, bytes]) -> dict[Kernel, int]:
    """Load object code from a file; the address of each kernel.

    Raises
    ------
    BackendUnavailableError
        If it is damaged, for another processor, or calls what the process does not have.
    """
    try:
        found = elf.load({kernel.symbol: code for kernel, code in objects.items()})
    except elf.UnsupportedError as error:
        raise BackendUnavailableError(
            "object code cannot be loaded",
            where="NumbaAcc",
            actual=str(error),
            fix="Compile the model again",
        ) from error
    return {kernel: found[kernel.symbol] for kernel in objects}
